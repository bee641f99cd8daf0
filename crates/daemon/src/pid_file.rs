use crate::Error;
use hodo_io::process;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file with the number of this process, for as long as it runs. The process holds a lock on it, so that a file that was
/// left behind misleads nobody, even if another process has that number by now.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    /// Keeps the lock.
    _file: File,
}

impl PidFile {
    /// Writes the file.
    ///
    /// # Errors
    /// [`Error::Running`] if another process holds the file, [`Error::PidFile`] if it cannot be written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::PidFile { file: path.to_owned(), why: error.to_string() };
        loop {
            // A link is not followed: whoever may write to the folder could have any file of ours overwritten.
            if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
                return Err(failed(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "there is a link, a pipe or a folder",
                )));
            }
            let mut file = process::open_without_links(path).map_err(failed)?;
            if !process::lock(&file).map_err(failed)? {
                return Err(Error::Running { file: path.to_owned(), pid: number(&mut file) });
            }
            // The previous holder may have removed the file between the two calls.
            if !is_at(&file, path) {
                continue;
            }
            file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
            return Ok(PidFile { path: path.to_owned(), _file: file });
        }
    }

    /// Returns the number of the process that holds this file, or `None` if no process does.
    ///
    /// # Errors
    /// The system's, if the file exists but cannot be opened.
    pub fn holder(path: &Path) -> io::Result<Option<u32>> {
        let mut file = match File::options().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        Ok(if process::is_locked(&file)? { number(&mut file) } else { None })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A file that stays behind is not locked.
        let _ = fs::remove_file(&self.path);
    }
}

fn number(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |found: io::Result<fs::Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
    identity(file.metadata()).is_some_and(|ours| identity(fs::metadata(path)) == Some(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("hodo-pid-{name}-{}", std::process::id()))
    }

    #[test]
    fn one_process_at_a_time_has_it() {
        let path = path("one");
        assert_eq!(PidFile::holder(&path).expect("a folder to look into"), None);
        let held = PidFile::create(&path).expect("a folder to write to");
        let pid = Some(std::process::id());
        assert_eq!(PidFile::holder(&path).expect("it is there"), pid);
        assert_eq!(PidFile::create(&path).err(), Some(Error::Running { file: path.clone(), pid }));
        drop(held);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_was_left_behind_is_taken_over() {
        let path = path("left");
        fs::write(&path, "1\nand more than a number").expect("a folder to write to");
        assert_eq!(PidFile::holder(&path).expect("it is there"), None);
        let _held = PidFile::create(&path).expect("nobody holds it");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_link_is_not_followed() {
        let [path, victim] = ["link", "victim"].map(path);
        fs::write(&victim, "precious").expect("a folder to write to");
        std::os::unix::fs::symlink(&victim, &path).expect("a free name");
        let error = PidFile::create(&path).err();
        assert!(matches!(&error, Some(Error::PidFile { why, .. }) if why.contains("link")), "{error:?}");
        assert_eq!(fs::read_to_string(&victim).expect("it is there"), "precious");
        fs::remove_file(&path).and_then(|()| fs::remove_file(&victim)).expect("they are ours");
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let error = PidFile::create(Path::new("/nowhere/at/all.pid")).err();
        assert!(matches!(error, Some(Error::PidFile { .. })), "{error:?}");
    }
}
