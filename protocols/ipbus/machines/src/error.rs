use crate::wire::hub::Code;
use crate::wire::packet::Kind;
use crate::wire::transaction::Info;
use core::fmt;
use core::net::SocketAddrV4;
use hodo_machine::{Closed, Truncated};

/// What went wrong with one packet, one transaction or one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The first word is no packet's.
    NotIpbus {
        /// That word, as it stands.
        first: u32,
    },
    /// A packet of a type that is not assigned, or not allowed there.
    PacketKind {
        /// Its header.
        header: u32,
    },
    /// A packet that is big-endian only came little-endian.
    LittleEndian {
        /// Its type.
        kind: Kind,
    },
    /// A transaction's header that cannot be read, or is not allowed there.
    TransactionHeader {
        /// That word.
        header: u32,
    },
    /// A packet or chunk ends inside a field.
    Truncated {
        /// Bytes that the field needs.
        need: usize,
        /// Bytes that were left.
        have: usize,
    },
    /// A packet of fixed length has another.
    Length {
        /// Bytes that it must have.
        due: usize,
        /// Bytes that came.
        came: usize,
    },
    /// A chunk over our bound.
    ChunkTooLong {
        /// Its length in bytes.
        length: usize,
        /// The bound in bytes.
        max: usize,
    },
    /// A packet answers another one.
    WrongPacket {
        /// The header that was sent.
        sent: u32,
        /// The one that came.
        came: u32,
    },
    /// A reply came to what was not asked.
    Unasked,
    /// A reply answers another transaction.
    WrongTransaction {
        /// The header that was sent.
        sent: u32,
        /// The one that came.
        came: u32,
    },
    /// The hub answers for another device.
    WrongTarget {
        /// The device asked for.
        asked: SocketAddrV4,
        /// The one that it names.
        came: SocketAddrV4,
    },
    /// The device could not do a transaction.
    Transaction {
        /// Why.
        info: Info,
        /// Words that it had done.
        done: u16,
    },
    /// The device met an error earlier in the packet, and left this out.
    LeftOut,
    /// This version of the protocol has no such transaction.
    Unsupported,
    /// The hub got no answer of the device.
    Hub(Code),
    /// The device does not answer.
    NoAnswer,
    /// The device has forgotten the packets in flight.
    Restarted,
    /// Somebody else uses the numbers of the device's packets.
    Contended,
    /// More asked for than the bound allows.
    TooMany {
        /// The bound.
        max: usize,
    },
    /// The connection is gone.
    Closed(Closed),
}

impl core::error::Error for Error {}

impl From<Truncated> for Error {
    fn from(Truncated { need, have }: Truncated) -> Self {
        Error::Truncated { need, have }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotIpbus { first } => {
                let bytes = first.to_be_bytes();
                write!(f, "the far end speaks another protocol or version of IPbus: its first bytes are {first:08X} ")?;
                write!(f, "\"{}\"; check the port and the version in the URI", bytes.escape_ascii())
            }
            Error::PacketKind { header } => {
                write!(f, "a packet of a type that is not allowed there: its header is 0x{header:08X}")
            }
            Error::LittleEndian { kind } => {
                write!(f, "a {kind:?} packet in little-endian words; these are big-endian always")
            }
            Error::TransactionHeader { header } => {
                write!(f, "no transaction that is allowed there begins with 0x{header:08X}")
            }
            Error::Truncated { need, have } => Truncated { need: *need, have: *have }.fmt(f),
            Error::Length { due, came } => write!(f, "a packet of {came} bytes where {due} are due"),
            Error::ChunkTooLong { length, max } => write!(
                f,
                "a chunk of {length} bytes is over the bound of {max}; is that an IPbus peer, and the right port?"
            ),
            Error::WrongPacket { sent, came } => {
                write!(f, "the device answered packet 0x{came:08X} where 0x{sent:08X} was due")
            }
            Error::Unasked => f.write_str("the far end answered what was not asked"),
            Error::WrongTransaction { sent, came } => {
                write!(f, "the device answered transaction 0x{came:08X} where 0x{sent:08X} was due")
            }
            Error::WrongTarget { asked, came } => write!(f, "the hub answered for {came} where {asked} was asked for"),
            Error::Transaction { info, done: 0 } => info.fmt(f),
            Error::Transaction { info, done } => {
                write!(f, "{info} (after {done} word{})", if *done == 1 { "" } else { "s" })
            }
            Error::LeftOut => {
                f.write_str("left out after an earlier error in the same packet; it was not done, ask again")
            }
            Error::Unsupported => f.write_str("IPbus 1.3 has no configuration space; use a device of version 2.0"),
            Error::Hub(code) => code.fmt(f),
            Error::NoAnswer => f.write_str(
                "the device does not answer; is it on, and are its address, port and version as in the URI?",
            ),
            Error::Restarted => f.write_str(
                "the device has restarted: what was in flight may be done or not, and is not sent again; read it back",
            ),
            Error::Contended => f.write_str(
                "another client sends numbered packets to this device; let all go through one hub, or let each add \
                 reliable=false to its URI",
            ),
            Error::TooMany { max } => write!(f, "more than {max} asked for at once"),
            Error::Closed(why @ Closed::Refused) => write!(f, "{why}; is it on, and is that its address and port?"),
            Error::Closed(why) => why.fmt(f),
        }
    }
}
