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
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_FQ_PLIMIT: u16 = 1;
const TCA_CODEL_LIMIT: u16 = 2;
const ROOT: u32 = u32::MAX;
/// Nanoseconds of a tick, in which the kernel reports bursts.
const TICK_NS: u64 = 64;

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
    /// The most that the queue takes, if the kind has one such limit and it is known here.
    pub limit: Option<QueueLimit>,
    /// The rate in bits per second and the burst in bytes to which `tbf` shapes.
    pub shape: Option<(u64, u64)>,
}

/// The most that a queue takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes, of `tbf` and `bfifo`.
    Bytes(u32),
    /// Packets.
    Packets(u32),
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
    let kind = text(attribute(attributes, TCA_KIND)?);
    let options = attribute(attributes, TCA_OPTIONS).unwrap_or(&[]);
    Some(QueueDiscipline {
        limit: limit(&kind, options),
        shape: shape(&kind, options),
        kind,
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

/// Parses the limit from the options of a kind: a structure for some, attributes for others.
fn limit(kind: &str, options: &[u8]) -> Option<QueueLimit> {
    let number = |kind| attribute(options, kind).and_then(|value| u32_at(value, 0));
    match kind {
        // struct tc_tbf_qopt: two rates of twelve bytes each, limit, burst.
        "tbf" => attribute(options, TCA_TBF_PARMS).and_then(|value| u32_at(value, 24)).map(QueueLimit::Bytes),
        "bfifo" => u32_at(options, 0).map(QueueLimit::Bytes),
        "pfifo" => u32_at(options, 0).map(QueueLimit::Packets),
        "fq" => number(TCA_FQ_PLIMIT).map(QueueLimit::Packets),
        "codel" | "fq_codel" => number(TCA_CODEL_LIMIT).map(QueueLimit::Packets),
        _ => None,
    }
}

/// Parses rate and burst of `tbf`.
fn shape(kind: &str, options: &[u8]) -> Option<(u64, u64)> {
    let parameters = attribute(options, TCA_TBF_PARMS).filter(|_| kind == "tbf")?;
    let wide = attribute(options, TCA_TBF_RATE64).and_then(|value| u64_at(value, 0));
    let bytes_per_s = wide.or_else(|| u32_at(parameters, 8).map(u64::from))?;
    let burst_ns = TICK_NS * u64::from(u32_at(parameters, 28)?);
    let burst = u128::from(bytes_per_s) * u128::from(burst_ns) / 1_000_000_000;
    Some((8 * bytes_per_s, u64::try_from(burst).ok()?))
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
        // 98,439 kbit/s, a limit of 8 KiB, a burst of 3 KiB in ticks of 64 ns.
        let words: Vec<u8> =
            [0, 0, 12_304_875_u32, 0, 0, 0, 8192, 3_901, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let options = encoded(TCA_OPTIONS, &encoded(TCA_TBF_PARMS, &words));
        let body = [fixed, encoded(TCA_KIND, b"tbf\0"), options, encoded(TCA_STATS2, &statistics)].concat();
        let expected = QueueDiscipline {
            kind: "tbf".into(),
            handle: 0x8001_0000,
            is_root: true,
            sent_bytes: 6_000,
            sent_packets: 4,
            dropped: 17,
            overlimits: 99,
            backlog_packets: 3,
            limit: Some(QueueLimit::Bytes(8192)),
            shape: Some((98_439_000, 3_072)),
        };
        assert_eq!(parse(&body), Some(expected.clone()));
        let child = QueueDiscipline { is_root: false, ..expected.clone() };
        assert_eq!(QueueDiscipline::dropped_by_roots(&[expected, child]), 17);
        for length in 0..body.len() {
            let _ = parse(&body[..length]);
        }
    }

    #[test]
    fn limits_stand_where_each_kind_has_them() {
        assert_eq!(limit("pfifo", &100_u32.to_ne_bytes()), Some(QueueLimit::Packets(100)));
        assert_eq!(limit("fq", &encoded(TCA_FQ_PLIMIT, &[0x10, 0x27, 0, 0])), Some(QueueLimit::Packets(10_000)));
        assert_eq!(limit("fq_codel", &encoded(TCA_CODEL_LIMIT, &[0, 4, 0, 0])), Some(QueueLimit::Packets(1024)));
        assert_eq!((limit("noqueue", &[]), limit("tbf", &[]), shape("fq", &[])), (None, None, None));
    }

    #[test]
    fn the_loopback_has_no_queue_to_drop_from() {
        let all = QueueDiscipline::of("lo");
        assert!(all.iter().all(|each| each.kind != "noqueue" || each.dropped == 0), "{all:?}");
        assert!(QueueDiscipline::of("no-such-nic").is_empty());
    }
}
