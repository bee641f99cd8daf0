use crate::Transport;
use alloc::string::String;
use core::fmt;
use core::net::SocketAddr;

/// One far end of a machine: a connection, or a source of datagrams. The number is meaningful to one driver only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer(pub u32);

impl Peer {
    /// Peers from this number on came by themselves and were numbered by the driver; a machine numbers below it.
    pub const FIRST_ACCEPTED: u32 = 1 << 31;

    /// Tells whether the peer came to this machine, rather than being opened by it.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        self.0 >= Self::FIRST_ACCEPTED
    }

    /// Returns the number counted from the first of its kind: of those opened, or of those accepted.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0 & !Self::FIRST_ACCEPTED) as usize
    }

    /// Returns the accepted peer whose [`Peer::index`] is `number`.
    #[must_use]
    pub const fn accepted(number: u32) -> Peer {
        Peer(Self::FIRST_ACCEPTED | number)
    }
}

/// Where a peer is, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Address {
    /// A TCP stream to an IP address and port.
    Tcp(SocketAddr),
    /// UDP datagrams to an IP address and port, from a socket of their own.
    Udp(SocketAddr),
    /// UDP datagrams to an IP address and port, sent from this port of ours, which also receives what others send to it. The
    /// address may be a broadcast's or a group's: who answers is then a peer of its own.
    UdpFrom(u16, SocketAddr),
    /// A Unix stream socket's path. Empty for a peer without a name.
    Path(String),
    /// A node of the simulated network.
    Node(u32),
}

impl Address {
    /// Returns the IP address and port, where there is one.
    #[must_use]
    pub const fn ip(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(ip) | Address::Udp(ip) | Address::UdpFrom(_, ip) => Some(*ip),
            Address::Path(_) | Address::Node(_) => None,
        }
    }

    /// Returns the multicast group and port that datagrams go to, where it is one.
    #[must_use]
    pub fn group(&self) -> Option<SocketAddr> {
        match self {
            Address::Udp(ip) | Address::UdpFrom(_, ip) if ip.ip().is_multicast() => Some(*ip),
            _ => None,
        }
    }

    /// Returns what carries a protocol's messages there; `None` if the address does not say it.
    #[must_use]
    pub const fn transport(&self) -> Option<Transport> {
        match self {
            Address::Tcp(_) | Address::Path(_) => Some(Transport::Stream),
            Address::Udp(_) | Address::UdpFrom(..) => Some(Transport::Datagram),
            Address::Node(_) => None,
        }
    }

    /// Returns this IP address and port, with messages carried by `transport`; any other address as it is.
    #[must_use]
    pub fn over(self, transport: Transport) -> Self {
        match self {
            Address::Tcp(ip) | Address::Udp(ip) => Address::of(transport, ip),
            other => other,
        }
    }

    /// Returns the address of an IP socket whose messages are carried by `transport`.
    #[must_use]
    pub const fn of(transport: Transport, ip: SocketAddr) -> Self {
        match transport {
            Transport::Stream => Address::Tcp(ip),
            Transport::Datagram => Address::Udp(ip),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // IPv4 is shown as such, also where a socket of IPv6 receives it.
            Address::Tcp(ip) | Address::Udp(ip) | Address::UdpFrom(_, ip) if ip.ip().to_canonical().is_ipv4() => {
                SocketAddr::new(ip.ip().to_canonical(), ip.port()).fmt(f)
            }
            Address::Tcp(ip) | Address::Udp(ip) | Address::UdpFrom(_, ip) => ip.fmt(f),
            Address::Path(path) if path.is_empty() => f.write_str("a local peer"),
            Address::Path(path) => f.write_str(path),
            Address::Node(node) => write!(f, "simulated node {node}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn ipv4_is_shown_as_such() {
        for (address, shown) in [
            ("[::ffff:10.0.0.1]:7", "10.0.0.1:7"),
            ("10.0.0.1:7", "10.0.0.1:7"),
            ("[::1]:7", "[::1]:7"),
            ("[fe80::1%3]:7", "[fe80::1%3]:7"),
        ] {
            assert_eq!(Address::Tcp(address.parse().expect("an address")).to_string(), shown);
        }
    }
}
