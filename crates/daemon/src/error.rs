use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a daemon cannot start, or be started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Another process holds the file with the process number.
    Running {
        /// The file.
        file: PathBuf,
        /// The number in it, where there is one.
        pid: Option<u32>,
    },
    /// The file with the process number cannot be written.
    PidFile {
        /// The file.
        file: PathBuf,
        /// What the system says.
        why: String,
    },
    /// Nobody can be answered at this address.
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        why: String,
    },
    /// A page of a daemon cannot be read.
    Page {
        /// Its URL.
        page: String,
        /// Why not.
        why: String,
    },
    /// A program cannot be started.
    Start {
        /// The program.
        what: String,
        /// Why not.
        why: String,
    },
    /// A list of hosts is none.
    Hosts {
        /// The list.
        list: String,
        /// What is wrong with it.
        why: String,
    },
    /// Signals cannot be caught.
    Signals {
        /// What the system says.
        why: String,
    },
}

impl Error {
    pub(crate) fn signals(error: &io::Error) -> Self {
        Error::Signals { why: error.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Running { file, pid: Some(pid) } => {
                write!(f, "already running as process {pid}, which holds {}; stop that one first", file.display())
            }
            Error::Running { file, pid: None } => {
                write!(f, "already running: another process holds {}; stop that one first", file.display())
            }
            Error::PidFile { file, why } => {
                write!(f, "cannot write the process number to {}: {why}; choose another file", file.display())
            }
            Error::Listen { address, why } => {
                write!(f, "cannot answer at {address}: {why}; choose another address or port, or end who has it")
            }
            Error::Page { page, why } => {
                write!(f, "cannot read {page}: {why}; is the daemon running, and are its pages there?")
            }
            Error::Start { what, why } => write!(f, "{what} cannot be started: {why}"),
            Error::Hosts { list, why } => {
                write!(f, "`{list}` is not a list of hosts: {why}; write sfc,node[1-20]")
            }
            Error::Signals { why } => write!(f, "signals cannot be caught: {why}"),
        }
    }
}

impl std::error::Error for Error {}
