use crate::Address;

/// The two ends of a connection, or of an exchange of datagrams, as they are known when a peer is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    /// The address at this end. For a peer that sent a datagram it is the address that the datagram was sent to, which may
    /// be a group's or a broadcast address, if the port tells it; otherwise it is the address of the socket.
    pub local: Address,
    /// The address of the peer.
    pub remote: Address,
    /// The index of the network interface where the datagram came in, if the port tells it.
    pub interface: Option<u32>,
    /// The user id of the process at the other end, if it is a Unix socket's.
    pub user: Option<u32>,
}

impl Ends {
    /// Creates the ends of a connection between two addresses.
    #[must_use]
    pub const fn new(local: Address, remote: Address) -> Self {
        Ends { local, remote, interface: None, user: None }
    }

    /// Creates the ends of a connection between two nodes of the simulated network.
    #[must_use]
    pub const fn nodes(local: u32, remote: u32) -> Self {
        Self::new(Address::Node(local), Address::Node(remote))
    }
}
