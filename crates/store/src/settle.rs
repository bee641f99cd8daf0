//! Syncs beside those of a commit: of files that were read or written, and that the disk may not have.

use crate::directory;
use crate::error::Error;
use crate::files::{Files, OpenFile};
use crate::scan::{Scan, Step};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of bytes that are copied at once.
const CHUNK: u64 = 1 << 20;
/// The most bytes of a file that are compared with what the disk has; of more, the file is made anew.
const HELD_MAX: u64 = 16 << 20;
/// The extension of a file that is to replace another.
pub const NEW: &str = "new";

/// A place in a segment, behind a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// The commit's number in the segment; 0 for none.
    pub commit: u64,
    /// The place behind it.
    pub end: u64,
}

/// Makes a file durable, of which the disk is known to have everything before `range`.
///
/// A sync after one that failed may succeed although the disk does not have what was written: the kernel holds for clean what
/// it could not write, and ext4 does not enter what is then written once more. So the file is read back from the disk.
pub fn settle(files: &dyn Files, path: &Path, range: Range<u64>) -> Result<(), Error> {
    if range.end - range.start > HELD_MAX {
        return remake(files, path, range.end, &[]).map(|_| ());
    }
    let mut file = files.open(path).map_err(Error::io("open", path))?;
    let held = read(&*file, path, range.clone())?;
    file.sync_all().map_err(Error::io("sync", path))?;
    if held.is_empty() {
        return Ok(());
    }
    let is_there = files.read_disk(path, range.clone()).is_ok_and(|there| there == held);
    if is_there { Ok(()) } else { remake(files, path, range.start, &held).map(|_| ()) }
}

/// Replaces a file by one with its first bytes and these behind them, and makes it durable. At every moment the old one or
/// the new one is there. Returns the new one, open.
pub fn remake(files: &dyn Files, path: &Path, length: u64, more: &[u8]) -> Result<Box<dyn OpenFile>, Error> {
    let new = path.with_extension(NEW);
    let made = copy(files, (path, &new), length, more);
    if made.is_err() {
        // It takes room that may be what is missing.
        let _ = files.remove(&new);
    }
    let file = made?;
    files.rename(&new, path).map_err(Error::io("replace", path))?;
    directory::sync(files, path)?;
    Ok(file)
}

fn copy(files: &dyn Files, (path, new): (&Path, &Path), length: u64, more: &[u8]) -> Result<Box<dyn OpenFile>, Error> {
    let mut file = files.create(new).map_err(Error::io("create", new))?;
    if length > 0 {
        let source = files.read(path).map_err(Error::io("open", path))?;
        let mut place = 0;
        while place < length {
            let chunk = read(&*source, path, place..length.min(place + CHUNK))?;
            write(&mut *file, new, &chunk, place)?;
            place += chunk.len() as u64;
        }
    }
    write(&mut *file, new, more, length)?;
    file.sync_all().map_err(Error::io("sync", new))?;
    Ok(file)
}

fn read(file: &dyn OpenFile, path: &Path, range: Range<u64>) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    let mut have = 0;
    while have < bytes.len() {
        match file.read_at(&mut bytes[have..], range.start + have as u64) {
            Ok(0) => return Err(Error::io("read", path)(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read", path)(error)),
        }
    }
    Ok(bytes)
}

/// Writes all bytes.
pub fn write(file: &mut dyn OpenFile, path: &Path, bytes: &[u8], place: u64) -> Result<(), Error> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write_at(&bytes[written..], place + written as u64) {
            Ok(0) => return Err(Error::io("write to", path)(io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("write to", path)(error)),
        }
    }
    Ok(())
}

/// Makes a segment anew from what the system still has of it after a sync has failed: the blocks of `range` are checked first. Returns it, open.
///
/// # Errors
/// [`Error::Lost`] if bytes are not as they were written, else as [`remake`].
pub fn rescue(files: &dyn Files, path: &Path, number: u64, range: Range<u64>) -> Result<Box<dyn OpenFile>, Error> {
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
    remake(files, path, range.end, &[])
}

/// Removes what a remake has left that was killed.
pub fn tidy(files: &dyn Files, folder: &Path) -> Result<(), Error> {
    let paths = files.list(folder).map_err(Error::io("list", folder))?;
    let mut left = paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == NEW));
    left.try_for_each(|path| files.remove(path).map_err(Error::io("remove", path)))
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
        sync_file(&*self.files, &directory::segment(&self.folder, self.segment))?.forget(self.mark.end);
        match sync_file(&*self.files, &directory::ledger(&self.folder)) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            other => other.map(drop)?,
        }
        self.files.sync_folder(&self.folder).map_err(Error::io("sync", &self.folder))
    }
}

/// Makes a file durable, and returns it.
pub fn sync_file(files: &dyn Files, path: &Path) -> Result<Box<dyn OpenFile>, Error> {
    let mut file = files.read(path).map_err(Error::io("open", path))?;
    file.sync_all().map_err(Error::io("sync", path))?;
    Ok(file)
}
