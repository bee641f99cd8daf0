//! The folder: names of files, and the lock against two writers.

use crate::error::Error;
use crate::files::{Files, OpenFile};
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
pub fn segments(files: &dyn Files, directory: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let paths = files.list(directory).map_err(Error::io("list", directory))?;
    let numbered = paths.into_iter().filter_map(|path| Some((number(&path)?, path)));
    let mut found: Vec<(u64, PathBuf)> = numbered.collect();
    found.sort_unstable();
    Ok(found)
}

/// Returns the number in a segment's name.
pub fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    name.parse().ok().filter(|number| *number > 0)
}

/// Makes the names in this file's folder durable.
pub fn sync(files: &dyn Files, path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    files.sync_folder(parent).map_err(Error::io("sync", parent))
}

/// A folder's lock, released when it is dropped, and by the kernel when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: Box<dyn OpenFile>,
}

impl Lock {
    pub fn take(files: &dyn Files, directory: &Path) -> Result<Self, Error> {
        let path = directory.join("lock");
        match files.lock(&path) {
            Ok(file) => Ok(Lock { _file: file }),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                Err(Error::Locked { directory: directory.to_owned() })
            }
            Err(error) => Err(Error::io("lock", path)(error)),
        }
    }
}
