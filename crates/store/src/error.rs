use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The reason that files could not be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused; a commit can be called again.
    #[error("cannot {action} {}: {source}{}", .path.display(), remedy(.source))]
    Io {
        /// The attempted action, as "write to".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process writes to this folder.
    #[error("another process writes to {}: stop it, or use another folder", .directory.display())]
    Locked {
        /// The folder.
        directory: PathBuf,
    },
    /// A file was not written by a store, or by a later version.
    #[error("{} is not a file of events that this version can read: {found}", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// A description of what the file begins with.
        found: String,
    },
    /// The ledger is damaged, and segments that it covered are gone, so that past verdicts are not known.
    #[error(
        "{} is damaged and segment {segment}, which it covered, is not beside it: bring the segments back, or use a new \
         folder",
        .path.display()
    )]
    LedgerLost {
        /// The ledger.
        path: PathBuf,
        /// The first segment that is needed.
        segment: u64,
    },
    /// A folder for a copy has events already.
    #[error("{} has events already: choose a new folder", .path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// Bytes are not as they were written.
    #[error("{} is damaged at byte {offset}: `hodo farm verify` says more", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first byte.
        offset: u64,
    },
    /// Bytes that were acknowledged could not be written to the disk, and the system has dropped them.
    #[error(
        "{}: {bytes} bytes from byte {offset} were acknowledged and then lost by the disk; stop the controller, mend the \
         disk, and give those events again into a new folder",
        .path.display()
    )]
    Lost {
        /// The segment.
        path: PathBuf,
        /// The first byte that is lost.
        offset: u64,
        /// The bytes from there to the end of what was acknowledged.
        bytes: u64,
    },
    /// The data of an event are longer than a block may be.
    #[error("an event of {bytes} bytes: at most {} can be stored", crate::DATA_MAX)]
    TooLong {
        /// The length of the data.
        bytes: usize,
    },
    /// The event has the number `u64::MAX`, which stands for none.
    #[error("event {} cannot be stored: this number is reserved", u64::MAX)]
    EventNumber,
    /// A destination for uploads cannot be used.
    #[cfg(feature = "cloud")]
    #[error("cannot upload to {url}: {reason}")]
    Destination {
        /// The URL of the destination.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A file could not be exported.
    #[cfg(feature = "parquet")]
    #[error("cannot export to {}: {reason}", .path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// The library's message.
        reason: String,
    },
    /// A table cannot be read or written.
    #[cfg(feature = "parquet")]
    #[error("{} is not a Parquet file that this version can use: {reason}", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }

    /// Returns whether the disk, or a quota, is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Io { source, .. } if is_full(source))
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn remedy(error: &io::Error) -> &'static str {
    if is_full(error) { "; make room, nothing is lost meanwhile" } else { "" }
}
