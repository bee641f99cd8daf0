//! A file of results: checked before anything is done, and written whole.

use crate::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where something is to be written.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// Beside and renamed, so that a reader never sees half a file; else straight into what is no plain file.
    beside: bool,
}

impl OutputFile {
    /// Checks that a file can be written: by writing one beside it, or by opening what is there and is no plain file.
    ///
    /// # Errors
    /// The system's error if it cannot.
    pub fn prepare(file: &Path) -> io::Result<Self> {
        // A link is followed, lest renaming replaces it.
        let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let beside = match fs::metadata(&path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) => {
                OpenOptions::new().write(true).open(&path)?;
                there.is_file() && can_write_beside(&path).is_ok()
            }
            Err(_) => {
                can_write_beside(&path)?;
                true
            }
        };
        Ok(OutputFile { path, beside })
    }

    /// Prepares the file that an option names.
    ///
    /// # Errors
    /// [`Error::Usage`], which names the option, if it cannot be written.
    pub fn of_option(option: &str, file: &Path) -> Result<Self, Error> {
        OutputFile::prepare(file)
            .map_err(|why| Error::Usage(format!("{option} {}: this file cannot be written: {why}", file.display())))
    }

    /// Creates an output for a folder that was made for files [`within`](Self::within) it.
    pub(crate) fn folder(path: PathBuf) -> Self {
        OutputFile { path, beside: true }
    }

    /// Returns a file in this folder.
    pub(crate) fn within(&self, name: &str) -> Self {
        OutputFile::folder(self.path.join(name))
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the content.
    ///
    /// # Errors
    /// The system's error; the file is then as it was before.
    pub fn write(&self, content: &[u8]) -> io::Result<()> {
        if !self.beside {
            return File::create(&self.path)?.write_all(content);
        }
        let part = part(&self.path)?;
        let written = create(&part).and_then(|mut file| file.write_all(content));
        let written = written.and_then(|()| fs::rename(&part, &self.path));
        if written.is_err() {
            // The first failure is the one to tell.
            let _ = fs::remove_file(&part);
        }
        written
    }
}

fn can_write_beside(path: &Path) -> io::Result<()> {
    let part = part(path)?;
    create(&part)?;
    fs::remove_file(&part)
}

/// Creates a temporary file. What is there already is removed rather than written to: it may be a link that somebody else who
/// writes to the folder has put there.
fn create(part: &Path) -> io::Result<File> {
    match File::create_new(part) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(part)?;
            File::create_new(part)
        }
        created => created,
    }
}

/// Returns the path of a temporary file beside this one, with a name of this process's own.
fn part(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut part = std::ffi::OsString::from(".");
    part.push(name);
    part.push(format!(".{}.part", std::process::id()));
    Ok(path.with_file_name(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_at_the_temporary_name_is_not_followed() {
        let folder = std::env::temp_dir().join(format!("hodo-output-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, victim) = (folder.join("result.json"), folder.join("victim"));
        fs::write(&victim, "precious").unwrap();
        let output = OutputFile::prepare(&file).unwrap();
        std::os::unix::fs::symlink(&victim, part(&file).unwrap()).unwrap();
        output.write(b"{}").unwrap();
        assert_eq!((fs::read(&victim).unwrap(), fs::read(&file).unwrap()), (b"precious".to_vec(), b"{}".to_vec()));
        assert!(fs::symlink_metadata(&file).unwrap().is_file());
        fs::remove_dir_all(&folder).unwrap();
    }
}
