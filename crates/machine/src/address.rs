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

/// Where a peer is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// An IP address and port.
    Socket(SocketAddr),
    /// A Unix socket's path. Empty for a peer without a name.
    Path(String),
    /// A node of the simulated network.
    Node(u32),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Socket(address) => address.fmt(f),
            Address::Path(path) if path.is_empty() => f.write_str("a local peer"),
            Address::Path(path) => f.write_str(path),
            Address::Node(node) => write!(f, "simulated node {node}"),
        }
    }
}
