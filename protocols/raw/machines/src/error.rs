use crate::wire::VERSION;
use hodo_machine::Closed;
use thiserror::Error;

/// An error of one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes are of another protocol.
    #[error("the far end speaks another protocol: its first bytes are {:08X} \"{}\"; start `hodo serve` there", u32::from_be_bytes(*first), first.escape_ascii())]
    NotRaw {
        /// The bytes, as far as they came.
        first: [u8; 4],
    },
    /// The peer speaks another version.
    #[error("the far end speaks version {theirs}, this is version {VERSION}; use the same hodo on both sides")]
    Version {
        /// Which.
        theirs: u16,
    },
    /// A message that is not allowed there.
    #[error("the far end sent an unexpected message of kind 0x{kind:02X}")]
    Unexpected {
        /// Kind of the message on the wire.
        kind: u8,
    },
    /// An answer to an operation that is not the next one of a stream.
    #[error("the far end replied to operation {came} where {due} was expected")]
    OutOfOrder {
        /// The sequence number due.
        due: u64,
        /// The one that came.
        came: u64,
    },
    /// A message over the peer's or our own bound.
    #[error("a message of {size} bytes exceeds the limit of {max}; lower --sizes, or raise --size-max at the server")]
    TooLarge {
        /// Size of the message in bytes.
        size: u32,
        /// The bound in bytes.
        max: u32,
    },
    /// A datagram whose length is not what its header says.
    #[error("a datagram of {came} bytes claims to have {told}")]
    Length {
        /// Bytes that the header tells.
        told: usize,
        /// Bytes that came.
        came: usize,
    },
    /// One RECEIVE for more operations than the bound allows.
    #[error("the far end asks for {count} operations at once; at most {max} are allowed")]
    AsksTooMuch {
        /// Operations asked for.
        count: u16,
        /// The bound.
        max: u16,
    },
    /// More operations asked for than the bound allows.
    #[error("more than {max} operations in flight")]
    TooMany {
        /// The bound.
        max: usize,
    },
    /// An acknowledgement without the count of what has arrived.
    #[error(
        "the far end is an older hodo, which does not count what arrives; give --window a number, or start this version there"
    )]
    NoCount,
    /// The server does not look at payloads.
    #[error(
        "the far end is an older hodo, which does not check payloads; leave out --check, or start this version there"
    )]
    NoCheck,
    /// Not all of a group have greeted in time.
    #[error(
        "{found} of {wanted} receivers of the group have replied; start `hodo serve` with the group's address on each, and see that --ttl and --device take the packets there"
    )]
    Receivers {
        /// How many have.
        found: u32,
        /// How many should.
        wanted: u32,
    },
    /// No greeting in time.
    #[error("no reply to the greeting; is a `hodo serve` of this protocol on that port?")]
    NoAnswer,
    /// The connection is gone.
    #[error("{0}")]
    Closed(Closed),
}
