//! A folder that only this user can enter.

use crate::Error;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The most attempts: more than the names that can be taken by chance.
const ATTEMPTS: u32 = 100;

/// A new folder under the system's temporary one that only this user can enter; removed when dropped.
pub struct PrivateDir(PathBuf);

impl PrivateDir {
    /// Creates a folder.
    ///
    /// # Errors
    /// [`Error::Failed`] if no folder can be made.
    pub fn make() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        for attempt in 0..ATTEMPTS {
            let path = parent.join(format!("hodo-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(PrivateDir(path)),
                Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
                Err(why) => {
                    return Err(Error::Failed(format!("the folder {} cannot be made: {why}", path.display())));
                }
            }
        }
        Err(Error::Failed(format!("no folder can be made in {}: all names are taken", parent.display())))
    }

    /// Returns the path of the socket in the folder.
    #[must_use]
    pub fn socket(&self) -> String {
        self.0.join("hodo.sock").display().to_string()
    }

    /// Takes over a folder that another process has made, so that it is removed although that process was killed.
    #[must_use]
    pub fn adopt(path: &Path) -> Self {
        PrivateDir(path.to_owned())
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn is_private_and_goes_away() {
        let (one, two) = (PrivateDir::make().unwrap(), PrivateDir::make().unwrap());
        assert_ne!(one.path(), two.path());
        assert_eq!(fs::metadata(one.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());
    }
}
