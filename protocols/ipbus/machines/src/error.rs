use crate::wire::hub::Code;
use crate::wire::packet::Kind;
use crate::wire::transaction::Info;
use core::fmt;
use core::net::SocketAddrV4;
use hodo_machine::{Closed, Truncated};
use thiserror::Error;

/// An error of one packet, one transaction or one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The first word is no packet's.
    #[error("the far end speaks another protocol or version of IPbus: its first bytes are {first:08X} \"{}\"; check the port and the version in the URI", first.to_be_bytes().escape_ascii())]
    NotIpbus {
        /// That word, as it stands.
        first: u32,
    },
    /// A packet of a type that is not assigned, or not allowed there.
    #[error("a packet of an unexpected type: its header is 0x{header:08X}")]
    PacketKind {
        /// The packet's header.
        header: u32,
    },
    /// A packet that is big-endian only came little-endian.
    #[error("a {kind:?} packet in little-endian words; these are big-endian always")]
    LittleEndian {
        /// The packet's type.
        kind: Kind,
    },
    /// A transaction's header that cannot be read, or is not allowed there.
    #[error("0x{header:08X} is not the header of a transaction that is allowed there")]
    TransactionHeader {
        /// That word.
        header: u32,
    },
    /// A packet or chunk ends inside a field.
    #[error("{}", Truncated { need: *need, have: *have })]
    Truncated {
        /// Bytes that the field needs.
        need: usize,
        /// Bytes that were left.
        have: usize,
    },
    /// A packet of fixed length has another.
    #[error("a packet of {came} bytes where {due} were expected")]
    Length {
        /// Bytes that it must have.
        due: usize,
        /// Bytes that came.
        came: usize,
    },
    /// A chunk over our bound.
    #[error("a chunk of {length} bytes exceeds the limit of {max}; is that an IPbus peer, and the right port?")]
    ChunkTooLong {
        /// Length of the chunk in bytes.
        length: usize,
        /// The bound in bytes.
        max: usize,
    },
    /// A packet answers another one.
    #[error("the device answered packet 0x{came:08X} where 0x{sent:08X} was expected")]
    WrongPacket {
        /// The header that was sent.
        sent: u32,
        /// The one that came.
        came: u32,
    },
    /// A reply came to what was not asked.
    #[error("the far end sent a reply without a request")]
    Unasked,
    /// A reply answers another transaction.
    #[error("the device answered transaction 0x{came:08X} where 0x{sent:08X} was expected")]
    WrongTransaction {
        /// The header that was sent.
        sent: u32,
        /// The one that came.
        came: u32,
    },
    /// The hub answers for another device.
    #[error("the hub replied for {came} instead of {asked}")]
    WrongTarget {
        /// The device asked for.
        asked: SocketAddrV4,
        /// The one that it names.
        came: SocketAddrV4,
    },
    /// The device could not do a transaction.
    #[error("{info}{}", After(*done))]
    Transaction {
        /// Why.
        info: Info,
        /// Words that it had done.
        done: u16,
    },
    /// The device met an error earlier in the packet, and left this out.
    #[error("skipped after an earlier error in the same packet; it was not executed, so request it again")]
    LeftOut,
    /// This version of the protocol has no such transaction.
    #[error("IPbus 1.3 has no configuration space; use a device of version 2.0")]
    Unsupported,
    /// The hub got no answer of the device.
    #[error("{0}")]
    Hub(Code),
    /// The device does not answer.
    #[error("the device does not answer; is it on, and are its address, port and version as in the URI?")]
    NoAnswer,
    /// The device has forgotten the packets in flight.
    #[error("the device has restarted: what was in flight may be done or not, and is not sent again; read it back")]
    Restarted,
    /// Somebody else uses the numbers of the device's packets.
    #[error(
        "another client sends numbered packets to this device; let all go through one hub, or let each add reliable=false to its URI"
    )]
    Contended,
    /// More asked for than the bound allows.
    #[error("more than {max} requests at a time")]
    TooMany {
        /// The bound.
        max: usize,
    },
    /// The connection is gone.
    #[error("{why}{}", remedy(*.0), why = .0)]
    Closed(Closed),
}

impl From<Truncated> for Error {
    fn from(Truncated { need, have }: Truncated) -> Self {
        Error::Truncated { need, have }
    }
}

/// The words that a transaction had done before its error; nothing for none.
struct After(u16);

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str(" (after 1 word)"),
            words => write!(f, " (after {words} words)"),
        }
    }
}

fn remedy(why: Closed) -> &'static str {
    if why == Closed::Refused { "; is it on, and is that its address and port?" } else { "" }
}
