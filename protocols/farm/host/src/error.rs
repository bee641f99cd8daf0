use std::net::SocketAddr;

/// Why a part of a farm cannot run, or does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Settings that do not go together.
    #[error("{0}")]
    Settings(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {at}: {why}; choose another port, or stop the process that holds it")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The message of the system.
        why: String,
    },
    /// The network failed under a part that runs.
    #[error("{what}: {why}")]
    Run {
        /// The operation that failed.
        what: String,
        /// The message of the system.
        why: String,
    },
    /// The store cannot be opened.
    #[error("--store: {0}")]
    Store(String),
    /// A controller has stopped before all that it had decided was stored.
    #[error(
        "it has stopped, and not all that it had decided is stored: {0}; sources keep their events for the next one"
    )]
    Stopped(String),
    /// Events were over the limit of the controller.
    #[error("{events} events were thrown away: the controller takes at most {max} bytes; raise its --event-max")]
    Discarded {
        /// The number of events.
        events: u64,
        /// The most bytes that it takes.
        max: u64,
    },
    /// Events went on without sources that were there.
    #[error("{times} times a source was connected, and gave nothing for --behind: events went on without it")]
    Behind {
        /// How often.
        times: u64,
    },
    /// Events were over the limit of every node.
    #[error("{events} events were quarantined: no node takes more than {max} bytes; raise --event-max of the nodes")]
    TooLarge {
        /// The number of events.
        events: u64,
        /// The most bytes that a node takes.
        max: u32,
    },
    /// Events came under the numbers of others.
    #[error(
        "{events} events came under numbers with other data: look at how the sources count; with --store they are in quarantine"
    )]
    Conflicts {
        /// The number of events.
        events: u64,
    },
    /// Recorded events cannot be read.
    #[error("--replay: {0}")]
    Replay(String),
    /// Closed segments cannot be copied elsewhere.
    #[error("{0}")]
    Upload(String),
    /// Pages, signals or the file with the process number.
    #[error(transparent)]
    Daemon(#[from] hodo_daemon::Error),
    /// A text is not the status of this part of a farm.
    #[error("this is not the status of a farm's {what}: {why}")]
    NoStatus {
        /// The part.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// An order was not carried out in time.
    #[error("{0}")]
    TimedOut(String),
}

impl Error {
    /// Makes the error of a part that the network failed while it was `doing` something.
    #[must_use]
    pub fn run(doing: impl Into<String>, why: &std::io::Error) -> Self {
        Error::Run { what: doing.into(), why: why.to_string() }
    }
}

impl From<hodo_store::Error> for Error {
    fn from(error: hodo_store::Error) -> Self {
        Error::Store(error.to_string())
    }
}
