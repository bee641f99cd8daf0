use super::access::Doing;
use hodo_uhal::finding::{FileError, FileProblem};
use hodo_uhal::table::{AccessError, Mask, NoNode};
use hodo_uhal::uri::{Host, UriError};
use std::fmt;

/// Why registers could not be read or written. Each message names the culprit: node, address and device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionError {
    /// The text is no URI of a device.
    Uri(UriError),
    /// The expression for the address table names none, or several.
    TableFile(FileProblem),
    /// The address table cannot be used.
    Table(FileError),
    /// A name has no address.
    NoAddress {
        /// The host.
        host: Host,
        /// Why.
        why: String,
    },
    /// There is no address table in which the node could be found.
    NoTable {
        /// The node.
        node: String,
    },
    /// The table has no such node.
    NoNode(NoNode),
    /// The node cannot be used in this way.
    Access(AccessError),
    /// The value has bits that the mask does not.
    OutsideMask {
        /// The register.
        address: u32,
        /// The value.
        value: u32,
        /// The mask.
        mask: Mask,
    },
    /// More words at once than addresses.
    TooManyWords {
        /// How many.
        words: usize,
    },
    /// The device did not do it, or could not be asked.
    Failed(Failure),
    /// The operating system refused something that is needed.
    System {
        /// The device.
        uri: String,
        /// The message of the system.
        why: String,
    },
    /// It has not ended; [`dispatch`](super::Session::dispatch) it first.
    NotDone,
    /// It was taken before, or belongs to an earlier dispatch.
    Gone,
}

/// An access that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The action of the access.
    pub doing: Doing,
    /// The node, where it was named.
    pub node: Option<String>,
    /// The address that it failed at.
    pub address: u32,
    /// The device.
    pub uri: String,
    /// Why.
    pub error: hodo_ipbus::Error,
}

impl SessionError {
    /// Returns whether the access was invalid, so that nothing was sent for it.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, SessionError::Failed(_) | SessionError::System { .. })
    }
}

impl From<AccessError> for SessionError {
    fn from(error: AccessError) -> Self {
        SessionError::Access(error)
    }
}

impl From<SessionError> for hodo_tester::Error {
    fn from(error: SessionError) -> Self {
        if error.is_usage() {
            hodo_tester::Error::Usage(error.to_string())
        } else {
            hodo_tester::Error::Failed(error.to_string())
        }
    }
}

impl std::error::Error for SessionError {}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::Uri(error) => error.fmt(f),
            SessionError::TableFile(problem) => problem.fmt(f),
            SessionError::Table(error) => error.fmt(f),
            SessionError::NoAddress { host, why } => {
                write!(f, "`{}` has no address: {why}; check the name, or write the address itself", host.name)
            }
            SessionError::NoTable { node } => {
                write!(
                    f,
                    "`{node}` is the name of a node, and there is no address table; give one, or an address as 0x1000"
                )
            }
            SessionError::NoNode(error) => error.fmt(f),
            SessionError::Access(error) => error.fmt(f),
            SessionError::OutsideMask { address, value, mask } => {
                write!(f, "0x{value:X} does not fit the bits {mask} of 0x{address:08X}; ")?;
                write!(f, "the largest value is 0x{:X}", mask.value(u32::MAX))
            }
            SessionError::TooManyWords { words } => write!(f, "{words} words are more than there are addresses"),
            SessionError::Failed(failure) => failure.fmt(f),
            SessionError::System { uri, why } => write!(f, "{uri}: {why}"),
            SessionError::NotDone => f.write_str("it has not ended; dispatch it first"),
            SessionError::Gone => f.write_str("it was taken before, or belongs to an earlier dispatch"),
        }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} ", self.doing)?;
        if let Some(node) = &self.node {
            write!(f, "node `{node}` at ")?;
        }
        // Of a hub's URI nobody would know which end has closed.
        let closed = matches!(self.error, hodo_ipbus::Error::Closed(_));
        let hub = if closed && self.uri.starts_with("chtcp") { "the hub: " } else { "" };
        write!(f, "0x{:08X} of {}: {hub}{}", self.address, self.uri, self.error)
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doing::Read => "read",
            Doing::Write => "write",
            Doing::Modify => "modify",
        })
    }
}
