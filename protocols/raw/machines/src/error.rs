use crate::wire::VERSION;
use core::fmt;
use hodo_machine::Closed;

/// What went wrong with one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes are of another protocol.
    NotRaw {
        /// The bytes, as far as they came.
        first: [u8; 4],
    },
    /// The peer speaks another version.
    Version {
        /// Which.
        theirs: u16,
    },
    /// A message that is not allowed there.
    Unexpected {
        /// Its kind on the wire.
        kind: u8,
    },
    /// An answer to an operation that is not the next one of a stream.
    OutOfOrder {
        /// The sequence number due.
        due: u64,
        /// The one that came.
        came: u64,
    },
    /// A message over the peer's or our own bound.
    TooLarge {
        /// Its size in bytes.
        size: u32,
        /// The bound in bytes.
        max: u32,
    },
    /// A datagram whose length is not what its header says.
    Length {
        /// Bytes that the header tells.
        told: usize,
        /// Bytes that came.
        came: usize,
    },
    /// More operations asked for than the bound allows.
    TooMany {
        /// The bound.
        max: usize,
    },
    /// No greeting in time.
    NoAnswer,
    /// The connection is gone.
    Closed(Closed),
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotRaw { first } => {
                f.write_str("the far end speaks another protocol: its first bytes are ")?;
                for byte in first {
                    write!(f, "{byte:02X}")?;
                }
                write!(f, " \"{}\"; start `hodo serve` there", first.escape_ascii())
            }
            Error::Version { theirs } => {
                write!(
                    f,
                    "the far end speaks version {theirs}, this is version {VERSION}; use the same hodo on both sides"
                )
            }
            Error::Unexpected { kind } => write!(f, "the far end sent a message of kind 0x{kind:02X} out of place"),
            Error::OutOfOrder { due, came } => {
                write!(f, "the far end answered operation {came} where {due} was due")
            }
            Error::TooLarge { size, max } => {
                write!(
                    f,
                    "a message of {size} bytes is over the bound of {max}; lower --sizes or raise it at the server"
                )
            }
            Error::Length { told, came } => write!(f, "a datagram of {came} bytes says that it has {told}"),
            Error::TooMany { max } => write!(f, "more than {max} operations asked for at once"),
            Error::NoAnswer => {
                f.write_str("no answer to the greeting; is a `hodo serve` of this protocol on that port?")
            }
            Error::Closed(why) => why.fmt(f),
        }
    }
}
