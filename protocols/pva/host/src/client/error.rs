use hodo_machine::DriverError;
use hodo_pva::wire::Status;
use std::time::Duration;
use thiserror::Error;

/// An error of a client, which names the channel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Something went wrong with one channel.
    #[error("{name}: {why}")]
    Channel {
        /// Name of the channel, as it was asked for.
        name: Box<str>,
        /// The reason.
        why: Trouble,
    },
    /// The operating system refuses what is needed.
    #[error("sockets: {0}")]
    System(DriverError),
    /// A socket could not be made.
    #[error("sockets: {0}")]
    Sockets(String),
    /// A thread cannot be started.
    #[error("no thread can be started: {0}; raise the limit on threads or memory")]
    NoThread(String),
    /// Too many operations are under way.
    #[error("{max} operations are under way, and no more are allowed: wait for some of them, or raise operations_max")]
    Overloaded {
        /// How many may be.
        max: usize,
    },
    /// The context was closed before the operation was over.
    #[error("the context is closed")]
    Closed,
}

/// The trouble with one channel, or with one execution.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The text is no name of a channel.
    #[error("{0}")]
    Name(String),
    /// No server has answered the search.
    #[error("no server has it: none has answered within {} s; check the name, that its server runs, and EPICS_PVA_ADDR_LIST or EPICS_PVA_NAME_SERVERS", within.as_secs_f64())]
    NotFound {
        /// The time that was given.
        within: Duration,
    },
    /// The server has not been reached.
    #[error("server {server} is not reached: {why}; check host and port, and that the server runs")]
    Unreachable {
        /// Address of the server.
        server: String,
        /// The reason.
        why: String,
    },
    /// The channel was not opened in time.
    #[error("not connected within {} s: check the name, and that its server runs and can be reached", within.as_secs_f64())]
    NotConnected {
        /// The time that was given.
        within: Duration,
    },
    /// The server refuses the channel.
    #[error("the server does not open it: {0}")]
    NotOpened(Status),
    /// The channel was lost.
    #[error("{0}")]
    Lost(String),
    /// The connection was lost before the reply. Whether the server has done it is not known.
    #[error("the connection was lost before the reply; the server may have done it or not")]
    Disconnected,
    /// The channel is open, and the server has not replied in time.
    #[error("no reply within {} s: a longer timeout may help", within.as_secs_f64())]
    NoReply {
        /// The time that was given.
        within: Duration,
    },
    /// The server refuses the operation.
    #[error("{0}")]
    Refused(Status),
    /// The execution could not be done.
    #[error("{0}")]
    Failed(String),
    /// The value could not be made.
    #[error("{0}")]
    Value(String),
    /// The server has replied with nothing.
    #[error("the server has replied without a value")]
    Nothing,
}

impl ClientError {
    pub(crate) fn new(name: &str, why: Trouble) -> Self {
        ClientError::Channel { name: name.into(), why }
    }

    /// Returns the trouble with a channel, if it is that.
    #[must_use]
    pub const fn trouble(&self) -> Option<&Trouble> {
        match self {
            ClientError::Channel { why, .. } => Some(why),
            _ => None,
        }
    }
}
