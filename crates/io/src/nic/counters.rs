//! Packets that interfaces moved, and those that they lost: `RTM_GETLINK` with `struct rtnl_link_stats64` (linux/if_link.h).

use super::Nic;
use crate::netlink::{DUMP, attribute, query, text, u32_at, u64_at};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
/// Bytes of `struct ifinfomsg`, in which the index stands at 4.
const FIXED: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_RX_QUEUES: u16 = 32;

/// Counters of an interface since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NicCounters {
    /// The number of packets received.
    pub rx_packets: u64,
    /// The number of packets sent.
    pub tx_packets: u64,
    /// The number of packets that arrived and found no buffer: the card's ring was full, or its memory.
    pub rx_missed: u64,
    /// The number of packets that arrived and were dropped above the card. It includes packets of protocols that nobody takes.
    pub rx_dropped: u64,
    /// The number of packets that were dropped on their way to the line.
    pub tx_dropped: u64,
    /// The number of packets that were damaged on the line, in either direction.
    pub errors: u64,
}

/// An interface as the kernel's table describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Link {
    pub(super) name: String,
    /// The number of receive queues that it was made with; fewer of them may be in use.
    pub(super) rx_queues_max: Option<u32>,
    pub(super) counters: Option<NicCounters>,
}

impl NicCounters {
    /// Returns the counters since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &NicCounters) -> NicCounters {
        NicCounters {
            rx_packets: self.rx_packets.saturating_sub(earlier.rx_packets),
            tx_packets: self.tx_packets.saturating_sub(earlier.tx_packets),
            rx_missed: self.rx_missed.saturating_sub(earlier.rx_missed),
            rx_dropped: self.rx_dropped.saturating_sub(earlier.rx_dropped),
            tx_dropped: self.tx_dropped.saturating_sub(earlier.tx_dropped),
            errors: self.errors.saturating_sub(earlier.errors),
        }
    }
}

impl Nic {
    /// Reads the counters of the interface of this name; `None` if there is none.
    #[must_use]
    pub fn counters(name: &str) -> Option<NicCounters> {
        link(name)?.counters
    }
}

/// Returns the interface of this name in this network namespace.
pub(super) fn link(name: &str) -> Option<Link> {
    let links = query(RTM_GETLINK, DUMP, &[0; FIXED], RTM_NEWLINK).ok()?;
    links.iter().filter_map(|body| parse(body)).find(|link| link.name == name)
}

fn parse(body: &[u8]) -> Option<Link> {
    let attributes = body.get(FIXED..)?;
    Some(Link {
        name: text(attribute(attributes, IFLA_IFNAME)?),
        rx_queues_max: attribute(attributes, IFLA_NUM_RX_QUEUES).and_then(|value| u32_at(value, 0)),
        counters: attribute(attributes, IFLA_STATS64).and_then(parse_counters),
    })
}

fn parse_counters(statistics: &[u8]) -> Option<NicCounters> {
    let at = |place: usize| u64_at(statistics, 8 * place);
    Some(NicCounters {
        rx_packets: at(0)?,
        tx_packets: at(1)?,
        errors: at(4)?.saturating_add(at(5)?),
        rx_dropped: at(6)?,
        tx_dropped: at(7)?,
        // rx_over_errors, rx_fifo_errors, rx_missed_errors: drivers differ in which of them they count.
        rx_missed: at(11)?.max(at(14)?).max(at(15)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::encoded;

    #[test]
    fn an_interface_is_read_from_its_attributes() {
        let statistics: Vec<u8> = (0..24_u64).flat_map(u64::to_ne_bytes).collect();
        let body = [
            vec![0; FIXED],
            encoded(IFLA_IFNAME, b"va\0"),
            encoded(IFLA_NUM_RX_QUEUES, &[2, 0, 0, 0]),
            encoded(IFLA_STATS64, &statistics),
        ]
        .concat();
        let link = parse(&body).expect("it has a name");
        assert_eq!((link.name.as_str(), link.rx_queues_max), ("va", Some(2)));
        let counters = link.counters.expect("they are there");
        assert_eq!((counters.rx_packets, counters.tx_packets, counters.errors), (0, 1, 9));
        assert_eq!((counters.rx_dropped, counters.tx_dropped, counters.rx_missed), (6, 7, 15));
        assert_eq!(counters.since(&counters), NicCounters::default());
        for length in 0..body.len() {
            let _ = parse(&body[..length]);
        }
    }

    #[test]
    fn the_loopback_counts_and_what_does_not_exist_does_not() {
        let link = link("lo").expect("every Linux has a loopback");
        assert!(link.counters.is_some());
        assert_eq!(Nic::counters("no-such-nic"), None);
    }
}
