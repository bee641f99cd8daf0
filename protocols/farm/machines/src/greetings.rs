use crate::Error;
use alloc::collections::{BTreeMap, VecDeque};
use hodo_machine::{Address, Peer, Random};

/// Connections from one host that may be without a greeting at once.
pub(crate) const GREETING_MAX: u32 = 256;

/// Which connections from each host have not greeted yet.
#[derive(Debug, Default)]
pub(crate) struct Greetings {
    pub(crate) hosts: BTreeMap<u64, VecDeque<Peer>>,
}

impl Greetings {
    /// Adds a connection. Returns the oldest if that is one too many: whoever means it greets at once, and is not kept
    /// out by others that do not.
    pub(crate) fn begin(&mut self, host: u64, peer: Peer) -> Option<(Peer, Error)> {
        let peers = self.hosts.entry(host).or_default();
        peers.push_back(peer);
        let oldest = *peers.front()?;
        (peers.len() > GREETING_MAX as usize).then_some((oldest, Error::Full { max: GREETING_MAX }))
    }

    /// Removes a connection that has greeted, or is gone.
    pub(crate) fn over(&mut self, host: u64, peer: Peer) {
        if let Some(peers) = self.hosts.get_mut(&host) {
            peers.retain(|other| *other != peer);
            if peers.is_empty() {
                self.hosts.remove(&host);
            }
        }
    }
}

/// Returns one number for all connections from a host.
pub(crate) fn host(address: &Address) -> u64 {
    match address {
        // An IPv4 host is itself also at a socket of IPv6, where all of them have the same first bits.
        Address::Tcp(address) | Address::Udp(address) => match address.ip().to_canonical() {
            core::net::IpAddr::V4(ip) => u64::from(u32::from(ip)),
            core::net::IpAddr::V6(ip) => Random::new((u128::from(ip) >> 64) as u64).bits() | 1 << 63,
        },
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_ipv4_are_told_apart_at_a_socket_of_ipv6() {
        let of = |address: &str| host(&Address::Tcp(address.parse().expect("an address")));
        assert_eq!(of("[::ffff:10.0.0.1]:7"), of("10.0.0.1:8"));
        assert_ne!(of("[::ffff:10.0.0.1]:7"), of("[::ffff:10.0.0.2]:7"));
        // A host of IPv6 has a whole network.
        assert_eq!(of("[2001:db8::1]:7"), of("[2001:db8::2]:7"));
        assert_ne!(of("[2001:db8::1]:7"), of("[2001:db8:0:1::1]:7"));
    }
}
