//! Errors of building and of using a network.
use alloc::string::String;

use super::{NodeId, Place, RouterId};

/// Why a network cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two nodes or routers have one name.
    #[error("`{name}` exists already: give each node and router its own name")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A place is on a node or router of another network.
    #[error("{place} is not in this network")]
    Unknown {
        /// The place.
        place: Place,
    },
    /// A router has no port of this number.
    #[error("router `{router}` has no port {port}: its ports are 1 to {ports}")]
    UnknownPort {
        /// The name of the router.
        router: String,
        /// The number asked for.
        port: u8,
        /// The highest number.
        ports: u8,
    },
    /// A router with no ports, or more than 31.
    #[error("router `{router}` with {ports} ports: it can have 1 to 31")]
    PortCount {
        /// The name of the router.
        router: String,
        /// The number asked for.
        ports: u8,
    },
    /// Two links at one port.
    #[error("{at} is connected already: a port has one link")]
    ConnectedTwice {
        /// The node or the port, by name.
        at: String,
    },
    /// A node without a link.
    #[error("node `{node}` has no link: connect it")]
    NotConnected {
        /// The name of the node.
        node: String,
    },
    /// A receive buffer that no FCT fits.
    #[error("a receive buffer of {buffer} N-chars at {at}: it needs 8 at least, and 56 for the full rate")]
    Buffer {
        /// The node or the port, by name.
        at: String,
        /// N-chars in the buffer.
        buffer: u16,
    },
    /// A rate below the range of the standard, or above what is allowed.
    #[error("a rate of {rate} bit/s at {at}: it has to be {min} to {max} bit/s, or `any_rate` set for a higher one")]
    Rate {
        /// The node or the port, by name.
        at: String,
        /// The rate in bit/s.
        rate: u64,
        /// The lowest rate.
        min: u64,
        /// The highest rate allowed.
        max: u64,
    },
    /// A watchdog that would cut every packet.
    #[error("a watchdog of {picos} ps at {at}: it has to be a microsecond at least; leave it out for none")]
    Watchdog {
        /// The name of the router.
        at: String,
        /// The time.
        picos: u64,
    },
    /// A cable that is too long.
    #[error("a cable of {nanos} ns: it can have 5000 ns at the most")]
    Cable {
        /// The delay.
        nanos: u64,
    },
    /// A probability that is none.
    #[error("a bit error rate at {at} that is not in 0..=1")]
    BitErrors {
        /// The node or the port, by name.
        at: String,
    },
    /// An address that cannot be in a routing table.
    #[error("router `{router}`: address {address} has no entry in a table: use 32 to 254")]
    Address {
        /// The name of the router.
        router: String,
        /// The address.
        address: u8,
    },
}

/// Why a packet was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// No such node.
    #[error("{0} is not in this network")]
    UnknownNode(NodeId),
    /// As many packets wait as the settings allow.
    #[error("the transmit queue of node `{node}` has {limit} packets, its limit: let time pass, or raise the limit")]
    TooManyPackets {
        /// The name of the node.
        node: String,
        /// The limit.
        limit: usize,
    },
    /// As many bytes wait as the settings allow.
    #[error(
        "the transmit queue of node `{node}` has no room for {length} bytes beside {queued}: its limit is {limit} bytes"
    )]
    TooManyBytes {
        /// The name of the node.
        node: String,
        /// The length of the packet.
        length: usize,
        /// Bytes that wait.
        queued: usize,
        /// The limit.
        limit: usize,
    },
}

/// Why something asked of a network cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UseError {
    /// No such node.
    #[error("{0} is not in this network")]
    UnknownNode(NodeId),
    /// No such router.
    #[error("{0} is not in this network")]
    UnknownRouter(RouterId),
    /// No link there.
    #[error("no link is connected at {place}")]
    NotConnected {
        /// The place.
        place: Place,
    },
    /// Too many faults wait for their time.
    #[error("64 faults wait at {place} already")]
    TooManyFaults {
        /// The place.
        place: Place,
    },
}
