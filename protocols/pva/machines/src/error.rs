use thiserror::Error;

/// An error in what a peer sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The first byte of a header is of another protocol.
    #[error(
        "the far end speaks another protocol: its first byte is {first:02X}, pvAccess begins with CA; check the port"
    )]
    NotPva {
        /// The byte.
        first: u8,
    },
    /// The header says that it comes from the side that receives it.
    #[error("the far end plays the same part as this end, client or server; check the port")]
    SameSide,
    /// A segment that continues no message, or belongs to another command.
    #[error("the far end sent a segment of command {command} out of order")]
    Segment {
        /// Command of the segment.
        command: u8,
    },
    /// A message ended within a field.
    #[error("a message ended early: {need} more bytes needed, {have} there")]
    Truncated {
        /// Bytes that the field needs.
        need: usize,
        /// Bytes that were left.
        have: usize,
    },
    /// A count or a size over the configured bound.
    #[error("{what}: {count} are over the limit of {max}; raise the limit if the far end is trusted")]
    OverLimit {
        /// The noun of the bound.
        what: &'static str,
        /// The count.
        count: u64,
        /// The bound.
        max: u64,
    },
    /// A type nested deeper than the configured bound.
    #[error("a type is nested deeper than {max} levels; raise the limit if the far end is trusted")]
    TooDeep {
        /// The bound.
        max: usize,
    },
    /// A type code that is not assigned, or not allowed there.
    #[error("type code {code:02X} is unknown, or not allowed there")]
    TypeCode {
        /// The code.
        code: u8,
    },
    /// A type's number that the peer has not defined.
    #[error("the far end refers to its type {id}, which it has not sent")]
    TypeId {
        /// The number.
        id: u16,
    },
    /// The choice of a union that has no such member.
    #[error("a union of {members} members cannot hold member {selector}")]
    Selector {
        /// The choice.
        selector: u64,
        /// Members of the union.
        members: usize,
    },
    /// A null where there has to be something.
    #[error("{what} is null where it has to be there")]
    Null {
        /// The noun.
        what: &'static str,
    },
    /// A message that is not allowed at that point of the connection.
    #[error("the far end sent command {command} where it is not allowed")]
    Unexpected {
        /// The command.
        command: u8,
    },
    /// The server knows no way of authentication that this client does.
    #[error(
        "the server accepts neither anonymous clients nor the names of user and host; state a user, or use another server"
    )]
    NoCommonAuthentication,
    /// The other side has not been heard for too long.
    #[error("the far end has not been heard for too long")]
    Silent,
    /// A code that is not assigned.
    #[error("{what} {code} is unknown")]
    Code {
        /// The noun.
        what: &'static str,
        /// The code.
        code: u8,
    },
}

impl From<hodo_machine::Truncated> for Error {
    fn from(cut: hodo_machine::Truncated) -> Self {
        Error::Truncated { need: cut.need, have: cut.have }
    }
}
