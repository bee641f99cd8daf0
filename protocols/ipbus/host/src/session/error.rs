use super::access::Action;
use hodo_uhal::finding::{FileError, FileProblem};
use hodo_uhal::table::{AccessError, Mask, NoNode};
use hodo_uhal::uri::{Host, UriError};
use std::fmt;
use thiserror::Error;

/// Why registers could not be read or written. Each message names the culprit: node, address and device.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The text is no URI of a device.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The expression for the address table names none, or several.
    #[error("{0}")]
    TableFile(FileProblem),
    /// The address table cannot be used.
    #[error(transparent)]
    Table(FileError),
    /// A name has no address.
    #[error("`{}` has no address: {why}; check the name, or write the address in numbers", host.name)]
    NoAddress {
        /// The host.
        host: Host,
        /// Why.
        why: String,
    },
    /// There is no address table in which the node could be found.
    #[error("`{node}` is the name of a node, and there is no address table; name one, or write an address as 0x1000")]
    NoTable {
        /// The node.
        node: String,
    },
    /// The table has no such node.
    #[error(transparent)]
    NoNode(NoNode),
    /// The node cannot be used in this way.
    #[error("{0}")]
    Access(#[from] AccessError),
    /// The value has bits that the mask does not.
    #[error(
        "0x{value:X} does not fit the bits {mask} of 0x{address:08X}; the largest value is 0x{:X}", mask.value(u32::MAX)
    )]
    OutsideMask {
        /// The register.
        address: u32,
        /// The value.
        value: u32,
        /// The mask.
        mask: Mask,
    },
    /// More words at once than addresses.
    #[error("{words} words are more than there are addresses; transfer fewer")]
    TooManyWords {
        /// How many.
        words: usize,
    },
    /// The device did not do it, or could not be asked.
    #[error(transparent)]
    Failed(Failure),
    /// The operating system refused something that is needed.
    #[error("{uri}: {why}")]
    System {
        /// The device.
        uri: String,
        /// The message of the system.
        why: String,
    },
    /// It has not ended; [`dispatch`](super::Session::dispatch) it first.
    #[error("the access has not been carried out; dispatch it first")]
    NotDone,
    /// It was taken before, or belongs to an earlier dispatch.
    #[error("the result was taken before, or belongs to an earlier dispatch")]
    Gone,
}

/// An access that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot {action} {}0x{address:08X} of {uri}: {}{error}{}", self.node_text(), self.culprit(), self.taken_text())]
pub struct Failure {
    /// The action of the access.
    pub action: Action,
    /// The node, where it was named.
    pub node: Option<String>,
    /// The address that it failed at.
    pub address: u32,
    /// The device.
    pub uri: String,
    /// Why.
    pub error: hodo_ipbus::Error,
    /// The words that the read of a FIFO took out before it failed, in order: nobody else will find them there.
    pub taken: Vec<u32>,
}

impl SessionError {
    /// Returns whether the access was invalid, so that nothing was sent for it.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, SessionError::Failed(_) | SessionError::System { .. })
    }
}

impl Failure {
    fn node_text(&self) -> String {
        self.node.as_ref().map_or_else(String::new, |node| format!("node `{node}` at "))
    }

    fn taken_text(&self) -> String {
        match self.taken.len() {
            0 => String::new(),
            count => format!("; {count} words were taken out before"),
        }
    }

    /// Returns who closed the connection, which a hub's URI leaves open.
    fn culprit(&self) -> &'static str {
        let is_closed = matches!(self.error, hodo_ipbus::Error::Closed(_));
        if is_closed && self.uri.starts_with("chtcp") { "the hub: " } else { "" }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Read => "read",
            Action::Write => "write",
            Action::Modify => "modify",
        })
    }
}
