//! The folder: names of files, and the lock against two writers.

use crate::error::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const EXTENSION: &str = "hodo";
const PREFIX: &str = "segment-";

/// Returns the path of a segment.
pub fn segment(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{PREFIX}{number:08}.{EXTENSION}"))
}

/// Returns the path of the ledger.
pub fn ledger(directory: &Path) -> PathBuf {
    directory.join(format!("ledger.{EXTENSION}"))
}

/// Lists the segments of a folder, ascending.
pub fn segments(directory: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let entries = fs::read_dir(directory).map_err(Error::io("list", directory))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::io("list", directory))?.path();
        found.extend(number(&path).map(|number| (number, path)));
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns the number in a segment's name.
pub fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    name.parse().ok().filter(|number| *number > 0)
}

/// Makes the names in this file's folder durable.
pub fn sync(path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|folder| folder.sync_all()).map_err(Error::io("sync", parent))
}

/// A folder's lock, released when it is dropped, and by the kernel when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    pub fn take(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("lock");
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(Error::io("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked { directory: directory.to_owned() }),
            Err(error) => Err(Error::io("lock", path)(error.into())),
        }
    }
}
