//! Syncs beside those of a commit: of files that were read or written, and that the disk may not have.

use crate::directory;
use crate::error::Error;
use crate::files::Files;
use crate::scan::{Scan, Step};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of bytes that are copied at once.
const CHUNK: usize = 1 << 20;

/// A place in a segment, behind a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// The commit's number in the segment; 0 for none.
    pub commit: u64,
    /// The place behind it.
    pub end: u64,
}

/// Writes a part of a file once more, and makes the file durable.
///
/// After an error the kernel may hold for clean what the disk does not have: only writing it again makes the sync honest.
pub fn settle(files: &dyn Files, path: &Path, range: Range<u64>) -> Result<(), Error> {
    let source = files.read(path).map_err(Error::io("open", path))?;
    let mut file = files.open(path).map_err(Error::io("open", path))?;
    let mut chunk = vec![0; CHUNK.min((range.end - range.start) as usize)];
    let mut place = range.start;
    while place < range.end {
        let most = chunk.len().min((range.end - place) as usize);
        let read = match source.read_at(&mut chunk[..most], place) {
            Ok(0) => return Err(Error::io("read", path)(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read", path)(error)),
        };
        let mut written = 0;
        while written < read {
            match file.write_at(&chunk[written..read], place + written as u64) {
                Ok(0) => return Err(Error::io("write to", path)(io::ErrorKind::WriteZero.into())),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("write to", path)(error)),
            }
        }
        place += read as u64;
    }
    file.sync_all().map_err(Error::io("sync", path))
}

/// Settles a part of a segment that was acknowledged, if the system still has all of it.
///
/// # Errors
/// [`Error::Lost`] if bytes are not as they were written, else as [`settle`].
pub fn settle_blocks(files: &dyn Files, path: &Path, number: u64, range: Range<u64>) -> Result<(), Error> {
    let file = files.read(path).map_err(Error::io("open", path))?;
    let mut scan = Scan::new(file, number).map_err(Error::io("read", path))?;
    let mut place = range.start.max(crate::block::FILE_HEADER as u64);
    scan.seek(place);
    while place < range.end {
        match scan.next().map_err(Error::io("read", path))? {
            Some(Step::Block { header, offset }) => place = offset + header.block_length(),
            _ => return Err(Error::Lost { path: path.to_owned(), offset: place, bytes: range.end - place }),
        }
    }
    settle(files, path, range)
}

/// A segment that is to be synced on a thread that may wait for the disk, with the ledger and the folder's names.
#[derive(Debug)]
pub struct Sync {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) folder: PathBuf,
    pub(crate) segment: u64,
    pub(crate) mark: Mark,
}

/// The outcome of a [`Sync`].
#[derive(Debug)]
pub struct Synced {
    pub(crate) segment: u64,
    pub(crate) mark: Mark,
    pub(crate) result: Result<(), Error>,
}

impl Sync {
    /// Waits until the disk has the segment, or fails.
    #[must_use]
    pub fn run(self) -> Synced {
        let result = self.sync();
        Synced { segment: self.segment, mark: self.mark, result }
    }

    fn sync(&self) -> Result<(), Error> {
        sync_file(&*self.files, &directory::segment(&self.folder, self.segment))?;
        match sync_file(&*self.files, &directory::ledger(&self.folder)) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
        self.files.sync_folder(&self.folder).map_err(Error::io("sync", &self.folder))
    }
}

/// Makes a file durable.
pub fn sync_file(files: &dyn Files, path: &Path) -> Result<(), Error> {
    let mut file = files.read(path).map_err(Error::io("open", path))?;
    file.sync_all().map_err(Error::io("sync", path))
}
