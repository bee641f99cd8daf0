//! Queue disciplines of an interface and what they dropped: `RTM_GETQDISC` (linux/pkt_sched.h, linux/gen_stats.h).
//!
//! | bytes | field of `struct tcmsg` |
//! |---|---|
//! | 4..8 | index of the interface |
//! | 8..12 | handle: the upper half is the number before the colon of `1:` |
//! | 12..16 | parent's handle; all ones: none, it is the root |

use super::interfaces;
use crate::netlink::{DUMP, attribute, query, text, u32_at, u64_at};

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
/// Bytes of `struct tcmsg`.
const FIXED: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const ROOT: u32 = u32::MAX;

/// A queue discipline and its counters since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueDiscipline {
    /// The kind, as `fq`, `tbf` or `noqueue`.
    pub kind: String,
    /// The handle: `0x8001_0000` stands for `8001:`.
    pub handle: u32,
    /// Whether it is the root: packets pass it first, and it counts those that its children drop too.
    pub is_root: bool,
    /// The number of bytes sent.
    pub sent_bytes: u64,
    /// The number of packets sent.
    pub sent_packets: u64,
    /// The number of packets dropped.
    pub dropped: u64,
    /// The number of times that a packet had to wait because of the rate.
    pub overlimits: u64,
    /// The number of packets in the queue now.
    pub backlog_packets: u32,
}

impl QueueDiscipline {
    /// Reads all queue disciplines of the interface of this name; none if there is no such interface or the kernel does not report
    /// them.
    #[must_use]
    pub fn of(interface: &str) -> Vec<QueueDiscipline> {
        let Some(index) = interfaces().iter().find(|each| each.name == interface).map(|each| each.index) else {
            return Vec::new();
        };
        let mut request = [0; FIXED];
        request[4..8].copy_from_slice(&index.to_ne_bytes());
        let found = query(RTM_GETQDISC, DUMP, &request, RTM_NEWQDISC).unwrap_or_default();
        // Kernels differ in whether the index selects.
        found.iter().filter(|body| u32_at(body, 4) == Some(index)).filter_map(|body| parse(body)).collect()
    }

    /// Returns the packets that all roots of an interface dropped.
    #[must_use]
    pub fn dropped_by_roots(all: &[QueueDiscipline]) -> u64 {
        all.iter().filter(|each| each.is_root).map(|each| each.dropped).sum()
    }
}

fn parse(body: &[u8]) -> Option<QueueDiscipline> {
    let attributes = body.get(FIXED..)?;
    let statistics = attribute(attributes, TCA_STATS2)?;
    let basic = attribute(statistics, TCA_STATS_BASIC).unwrap_or(&[]);
    let queue = attribute(statistics, TCA_STATS_QUEUE).unwrap_or(&[]);
    let queue_at = |at: usize| u32_at(queue, at).unwrap_or(0);
    Some(QueueDiscipline {
        kind: text(attribute(attributes, TCA_KIND)?),
        handle: u32_at(body, 8)?,
        is_root: u32_at(body, 12)? == ROOT,
        sent_bytes: u64_at(basic, 0).unwrap_or(0),
        sent_packets: u32_at(basic, 8).unwrap_or(0).into(),
        // struct gnet_stats_queue: qlen, backlog, drops, requeues, overlimits.
        backlog_packets: queue_at(0),
        dropped: queue_at(8).into(),
        overlimits: queue_at(16).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::encoded;

    #[test]
    fn a_queue_discipline_is_read_from_its_attributes() {
        let mut fixed = vec![0; FIXED];
        fixed[8..12].copy_from_slice(&0x8001_0000_u32.to_ne_bytes());
        fixed[12..16].copy_from_slice(&ROOT.to_ne_bytes());
        let basic = [6_000_u64.to_ne_bytes().to_vec(), 4_u32.to_ne_bytes().to_vec(), vec![0; 4]].concat();
        let queue: Vec<u8> = [3_u32, 4_500, 17, 0, 99].iter().flat_map(|field| field.to_ne_bytes()).collect();
        let statistics = [encoded(TCA_STATS_BASIC, &basic), encoded(TCA_STATS_QUEUE, &queue)].concat();
        let body = [fixed, encoded(TCA_KIND, b"tbf\0"), encoded(TCA_STATS2, &statistics)].concat();
        let expected = QueueDiscipline {
            kind: "tbf".into(),
            handle: 0x8001_0000,
            is_root: true,
            sent_bytes: 6_000,
            sent_packets: 4,
            dropped: 17,
            overlimits: 99,
            backlog_packets: 3,
        };
        assert_eq!(parse(&body), Some(expected.clone()));
        let child = QueueDiscipline { is_root: false, ..expected.clone() };
        assert_eq!(QueueDiscipline::dropped_by_roots(&[expected, child]), 17);
        for length in 0..body.len() {
            let _ = parse(&body[..length]);
        }
    }

    #[test]
    fn the_loopback_has_no_queue_to_drop_from() {
        let all = QueueDiscipline::of("lo");
        assert!(all.iter().all(|each| each.kind != "noqueue" || each.dropped == 0), "{all:?}");
        assert!(QueueDiscipline::of("no-such-nic").is_empty());
    }
}
