//! The folder: names of files, and the lock against two writers.

use crate::error::Error;
use crate::files::{Files, OpenFile};
use std::path::{Path, PathBuf};

const EXTENSION: &str = "hodo";
const PREFIX: &str = "segment-";

/// The path of a segment.
pub fn segment(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{PREFIX}{number:08}.{EXTENSION}"))
}

/// The path of the ledger.
pub fn ledger(directory: &Path) -> PathBuf {
    directory.join(format!("ledger.{EXTENSION}"))
}

/// The segments that are there, ascending.
pub fn segments(files: &dyn Files, directory: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let paths = files.list(directory).map_err(Error::io("list", directory))?;
    let numbered = paths.into_iter().filter_map(|path| Some((number(&path)?, path)));
    let mut found: Vec<(u64, PathBuf)> = numbered.collect();
    found.sort_unstable();
    Ok(found)
}

/// The number in a segment's name.
pub fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    name.parse().ok().filter(|number| *number > 0)
}

/// Makes names in the folder of this file durable.
pub fn sync(files: &dyn Files, path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    files.sync_folder(parent).map_err(Error::io("sync", parent))
}

/// Held as long as it lives; the kernel lets go when the process ends, however it ends.
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
