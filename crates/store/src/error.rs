use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why files could not be written or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused; a commit can be called again.
    Io {
        /// What was tried, as "write to".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process writes to this folder.
    Locked {
        /// The folder.
        directory: PathBuf,
    },
    /// A file is not one of ours, or of a later version.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is there instead.
        found: String,
    },
    /// The ledger is damaged, and segments that it covered are gone, so that what was decided is not known.
    LedgerLost {
        /// The ledger.
        path: PathBuf,
        /// The first segment that would be needed.
        segment: u64,
    },
    /// The data of an event are longer than a block may be.
    TooLong {
        /// How long.
        bytes: usize,
    },
    /// The event has the number `u64::MAX`, which stands for none.
    EventNumber,
    /// A place for uploads cannot be used.
    #[cfg(feature = "cloud")]
    Destination {
        /// Its URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file for the export could not be made.
    #[cfg(feature = "parquet")]
    Export {
        /// The file.
        path: PathBuf,
        /// What the library said.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }

    /// Is it that the disk, or a quota, is full?
    #[must_use]
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, Error::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { action, path, source } => {
                write!(f, "cannot {action} {}: {source}", path.display())?;
                if self.is_full() { f.write_str("; make room, nothing is lost meanwhile") } else { Ok(()) }
            }
            Error::Locked { directory } => {
                write!(f, "another process writes to {}: stop it, or take another folder", directory.display())
            }
            Error::Foreign { path, found } => {
                write!(f, "{} is no file of events that this version can read: {found}", path.display())
            }
            Error::LedgerLost { path, segment } => write!(
                f,
                "{} is damaged and segment {segment}, which it covered, is not beside it: bring the segments back, or \
                 take a new folder",
                path.display()
            ),
            Error::TooLong { bytes } => {
                write!(f, "an event of {bytes} bytes: at most {} can be stored", crate::DATA_MAX)
            }
            Error::EventNumber => write!(f, "event {} cannot be stored: this number stands for none", u64::MAX),
            #[cfg(feature = "cloud")]
            Error::Destination { url, reason } => write!(f, "cannot upload to {url}: {reason}"),
            #[cfg(feature = "parquet")]
            Error::Export { path, reason } => write!(f, "cannot export to {}: {reason}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
