//! The content of operations, where a protocol lets that be chosen.

use crate::{Error, Uri};
use hodo_io::files;
use hodo_machine::Bytes;
use std::path::{Path, PathBuf};

/// Bytes of the longest file that operations carry.
const FILE_MAX: u64 = 256 << 20;

/// The content of operations.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// Whether each payload ends with a checksum, which the side that receives it looks at.
    pub is_checked: bool,
    /// The file whose bytes they carry, one after the other and again from the beginning; `None` for the protocol's own.
    pub file: Option<Payload>,
}

/// The bytes of a file.
#[derive(Debug, Clone)]
pub struct Payload {
    path: PathBuf,
    bytes: Bytes,
}

impl Payload {
    /// Reads a file, which is kept in memory.
    ///
    /// # Errors
    /// [`Error::Usage`] if it cannot be read, is empty, or has more than 256 MiB.
    pub fn read(path: &Path) -> Result<Payload, Error> {
        let why = |why: &dyn std::fmt::Display| Error::Usage(format!("--payload {}: {why}", path.display()));
        let bytes = files::read(path, FILE_MAX).map_err(|error| why(&error))?;
        if bytes.is_empty() {
            return Err(why(&"it is empty; name a file with at least one byte"));
        }
        Ok(Payload { path: path.to_owned(), bytes: Bytes::from(bytes) })
    }

    /// Returns where it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its bytes.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }
}

impl Content {
    /// Returns the bytes that operations carry; empty for the protocol's own.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.file.as_ref().map_or_else(Bytes::new, Payload::bytes)
    }

    /// Checks that a link can carry it.
    ///
    /// # Errors
    /// [`Error::Usage`], which names the option.
    pub fn check(&self, link: &Uri) -> Result<(), Error> {
        let option = match self {
            Content { is_checked: true, .. } => "--check",
            Content { file: Some(_), .. } => "--payload",
            _ => return Ok(()),
        };
        if link.protocol.has_content() {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{option}: operations of {} carry what their protocol says; use a raw link, as tcp, udp or unix",
            link.scheme
        )))
    }
}
