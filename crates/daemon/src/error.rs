use std::path::PathBuf;
use thiserror::Error;

/// Why a daemon cannot start, or be started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process holds the file with the process number.
    #[error(
        "already running{}, which holds {}; stop that one first",
        pid.map_or_else(|| " as another process".to_owned(), |pid| format!(" as process {pid}")),
        file.display()
    )]
    Running {
        /// The file.
        file: PathBuf,
        /// The number in it, if there is one.
        pid: Option<u32>,
    },
    /// The file with the process number cannot be written.
    #[error("cannot write the process number to {}: {why}; choose another file", file.display())]
    PidFile {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        why: String,
    },
    /// The pages cannot be served at this address.
    #[error("cannot serve pages at {address}: {why}; choose another port, or stop the process that holds it")]
    Listen {
        /// The address.
        address: String,
        /// The system's reason.
        why: String,
    },
    /// The pages at this address have no thread.
    #[error("no thread can be started for the pages at {address}: {why}; raise the limit on threads or memory")]
    NoThread {
        /// The address.
        address: String,
        /// The system's reason.
        why: String,
    },
    /// A page of a daemon cannot be read.
    #[error("cannot read {page}: {why}; is the daemon running, and are its pages at that address (--metrics)?")]
    Page {
        /// The page's URL.
        page: String,
        /// The reason.
        why: String,
    },
    /// A program cannot be started.
    #[error("{what} cannot be started: {why}")]
    Start {
        /// The program.
        what: String,
        /// The reason.
        why: String,
    },
    /// A list of hosts cannot be parsed.
    #[error("`{list}` is not a list of hosts: {why}; write sfc,node[1-20]")]
    Hosts {
        /// The list.
        list: String,
        /// The mistake in it.
        why: String,
    },
    /// Signals cannot be caught.
    #[error("signals cannot be caught: {why}")]
    Signals {
        /// The system's reason.
        why: String,
    },
    /// The log cannot be opened.
    #[error("cannot log to {to}: {why}; choose another file")]
    Log {
        /// The file or stream.
        to: String,
        /// The system's reason.
        why: String,
    },
    /// A level of the log does not exist.
    #[error("{from}={name}: not a log level; choose one of {}", crate::log::LEVELS.join(", "))]
    LogLevel {
        /// The environment variable.
        from: &'static str,
        /// The name in it.
        name: String,
    },
    /// Standard output cannot be written.
    #[error("standard output cannot be written: {why}")]
    Output {
        /// The system's reason.
        why: String,
    },
}

impl Error {
    pub(crate) fn signals(error: &std::io::Error) -> Self {
        Error::Signals { why: error.to_string() }
    }
}
