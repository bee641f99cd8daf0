//! The folder for what a user's programs leave each other while the system runs: the sockets of daemons among them.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bits of a folder's mode that let others write to it.
const OTHERS_WRITE: u32 = 0o022;
/// Folders of other users' daemons that are looked at, at most.
const UNITS_MAX: usize = 1000;
const ROOT: u32 = 0;

/// Returns this user's folder: the first of `RUNTIME_DIRECTORY`, which the service manager has made; else `hodo` in `XDG_RUNTIME_DIR`, if
/// that is the user's; else `/run/hodo` for root, and `/tmp/hodo-UID` for anybody else. It is made if it is missing, for its user alone.
///
/// # Errors
/// The system's error, or [`ErrorKind::PermissionDenied`] if it is a link, another user's, or others may write to it.
pub fn folder() -> Result<PathBuf> {
    let uid = crate::process::user();
    let folder = match manager_folders().into_iter().next() {
        Some(made) => made,
        None => session_folder(uid).unwrap_or_else(|| usual_folder(uid)),
    };
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(Error::new(error.kind(), format!("{} cannot be made: {error}", folder.display())));
        }
        _ => {}
    }
    match owner(&folder)? {
        owner if owner == uid => Ok(folder),
        owner => Err(denied(&folder, &format!("belongs to user {owner}"))),
    }
}

/// A folder that daemons leave their sockets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder.
    pub folder: PathBuf,
    /// The id of its user: nobody else but root can have put anything there.
    pub owner: u32,
}

/// The folders that daemons may have, and why others were passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Folders whose daemons this user may steer.
    pub found: Vec<Place>,
    /// Folders that are not to be trusted, each with the reason.
    pub refused: Vec<String>,
}

/// Returns the folders of daemons of `user`, or without one of those that are this user's, or root's. To root belong also those of
/// services, `/run/hodo-NAME` and `/run/hodo/NAME`, whichever user they run as.
#[must_use]
pub fn places(user: Option<u32>) -> Places {
    let uid = crate::process::user();
    let of = user.unwrap_or(uid);
    let mut places = Places::default();
    let mut known = BTreeSet::new();
    let own = manager_folders().into_iter().chain(session_folder(of));
    let usual = [format!("/run/user/{of}/hodo").into(), "/run/hodo".into(), format!("/tmp/hodo-{of}").into()];
    let is_ours = |owner: u32| user.map_or(owner == uid || owner == ROOT, |user| owner == user);
    for folder in own.chain(usual).filter(|folder| known.insert(folder.clone())) {
        places.add(folder, is_ours);
    }
    for folder in services().into_iter().filter(|folder| known.insert(folder.clone())) {
        // Only root makes folders there, for whom it chooses.
        places.add(folder, |owner| is_ours(owner) || (user.is_none() && uid == ROOT));
    }
    places
}

impl Places {
    fn add(&mut self, folder: PathBuf, may_be_of: impl Fn(u32) -> bool) {
        match owner(&folder) {
            Ok(owner) if may_be_of(owner) => self.found.push(Place { folder, owner }),
            // Folders of others are theirs, except where ours would be.
            Ok(owner) if folder.starts_with("/tmp") => {
                self.refused.push(denied(&folder, &format!("belongs to user {owner}")).to_string());
            }
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound) => self.refused.push(error.to_string()),
            _ => {}
        }
    }
}

fn usual_folder(uid: u32) -> PathBuf {
    if uid == ROOT { PathBuf::from("/run/hodo") } else { PathBuf::from(format!("/tmp/hodo-{uid}")) }
}

/// Returns the folders that the service manager has made for this process.
fn manager_folders() -> Vec<PathBuf> {
    let all = std::env::var_os("RUNTIME_DIRECTORY").unwrap_or_default();
    std::env::split_paths(&all).filter(|folder| folder.is_absolute()).collect()
}

/// Returns the folder within a user's session, if the environment names that: it may be left from another user's, as behind `su`.
fn session_folder(user: u32) -> Option<PathBuf> {
    let session = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    let is_theirs = std::fs::metadata(&session).is_ok_and(|found| found.is_dir() && found.uid() == user);
    (session.is_absolute() && is_theirs).then(|| session.join("hodo"))
}

/// Returns the folders of services.
fn services() -> Vec<PathBuf> {
    let within = |folder: &str, begin: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(begin)));
        let folders = named.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.path()).take(UNITS_MAX).collect()
    };
    [within("/run", "hodo-"), within("/run/hodo", "")].concat()
}

/// Returns the user who alone can put anything into a folder, apart from root.
fn owner(folder: &Path) -> Result<u32> {
    // A link would lead anywhere.
    let found = std::fs::symlink_metadata(folder)?;
    if found.is_symlink() {
        return Err(denied(folder, "is a link"));
    }
    if !found.is_dir() {
        return Err(denied(folder, "is no folder"));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(denied(folder, &format!("may be written to by others (mode {:03o})", found.mode() & 0o777)));
    }
    Ok(found.uid())
}

fn denied(folder: &Path, why: &str) -> Error {
    let text = format!("{} {why}: it has to be this user's alone; remove it, or set XDG_RUNTIME_DIR", folder.display());
    Error::new(ErrorKind::PermissionDenied, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_folder_is_ones_own_and_nobody_else_writes_to_it() {
        let folder = folder().expect("this user can have a folder");
        let found = fs::symlink_metadata(&folder).expect("it is there");
        assert_eq!((found.uid(), found.mode() & OTHERS_WRITE), (crate::process::user(), 0), "{}", folder.display());
        let places = places(None).found;
        assert!(places.iter().any(|place| place.folder == folder), "{places:?}");
    }

    #[test]
    fn links_files_and_folders_that_others_write_to_are_refused() {
        let base = std::env::temp_dir().join(format!("hodo-runtime-{}", std::process::id()));
        fs::create_dir(&base).expect("a new name");
        let [good, open, link, file] = ["good", "open", "link", "file"].map(|name| base.join(name));
        for (folder, mode) in [(&good, 0o755), (&open, 0o777)] {
            fs::create_dir(folder).expect("a new name");
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("it is ours");
        }
        symlink(&good, &link).expect("a new name");
        fs::write(&file, "").expect("a new name");
        assert_eq!(owner(&good).expect("it is ours"), crate::process::user());
        for (path, why) in [(&open, "mode 777"), (&link, "is a link"), (&file, "is no folder")] {
            let error = owner(path).expect_err(why);
            assert!(error.kind() == ErrorKind::PermissionDenied && error.to_string().contains(why), "{error}");
        }
        fs::remove_dir_all(base).expect("it is ours");
    }
}
