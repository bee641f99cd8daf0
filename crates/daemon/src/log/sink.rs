use crate::Error;
use signal_hook::consts::SIGHUP;
use signal_hook::flag;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The place that lines are written to: a standard stream, or a file that is opened again after SIGHUP.
pub struct Sink {
    to: File,
    reopens: Option<(PathBuf, Arc<AtomicBool>)>,
    /// The last write ended within a line.
    torn: bool,
}

impl Sink {
    /// Creates a sink to standard error, without its lock: the thread that writes may be held up for ever.
    pub fn stderr() -> Result<Self, Error> {
        let failed = |why: io::Error| Error::Log { to: "standard error".to_owned(), why: why.to_string() };
        io::stderr().as_fd().try_clone_to_owned().map(|to| Sink::to(to.into())).map_err(failed)
    }

    /// Creates a sink to standard output.
    pub fn stdout() -> io::Result<Self> {
        Ok(Sink::to(io::stdout().as_fd().try_clone_to_owned()?.into()))
    }

    /// Creates a sink that appends to a file.
    pub fn file(path: &Path) -> Result<Self, Error> {
        let failed = |why: io::Error| Error::Log { to: path.display().to_string(), why: why.to_string() };
        let to = append(path).map_err(failed)?;
        let asked = Arc::default();
        flag::register(SIGHUP, Arc::clone(&asked)).map_err(failed)?;
        Ok(Sink { reopens: Some((path.to_owned(), asked)), ..Sink::to(to) })
    }

    /// Creates a sink to an open file or stream.
    pub fn to(to: File) -> Self {
        Sink { to, reopens: None, torn: false }
    }

    /// Returns `true` if SIGHUP has the file opened again.
    pub fn reopens(&self) -> bool {
        self.reopens.is_some()
    }

    /// Opens the file again if SIGHUP came; the old one stays if that fails.
    pub fn reopen_if_asked(&mut self) {
        let Some((path, asked)) = &self.reopens else { return };
        if !asked.swap(false, Ordering::Relaxed) {
            return;
        }
        match append(path) {
            Ok(file) => (self.to, self.torn) = (file, false),
            Err(why) => tracing::warn!("{} cannot be opened again: {why}; the old file stays", path.display()),
        }
    }

    /// Writes a line, which has its line feed.
    ///
    /// # Errors
    /// The system's, after which a part of the line may be written; the next line then begins with a line feed.
    pub fn write(&mut self, mut line: &[u8]) -> io::Result<()> {
        if self.torn {
            self.to.write_all(b"\n")?;
            self.torn = false;
        }
        while !line.is_empty() {
            match self.to.write(line) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => {
                    line = &line[length..];
                    self.torn = !line.is_empty();
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Returns `true` if standard error goes to the journal: `JOURNAL_STREAM` names its device and inode.
pub fn is_journal() -> bool {
    let Some(named) = std::env::var_os("JOURNAL_STREAM") else { return false };
    let stderr = fs::metadata("/proc/self/fd/2");
    stderr.is_ok_and(|found| *named == *format!("{}:{}", found.dev(), found.ino()))
}
