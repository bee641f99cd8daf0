//! Copies closed segments elsewhere, on a thread that the writer never waits for.

use crate::directory;
use crate::error::Error;
use crate::files::System;
use crate::recovery;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A place that segments are copied to.
pub trait Destination: Send {
    /// Copies a file there under this name, whole or not at all; what has the name already is replaced.
    ///
    /// # Errors
    /// A sentence that says what failed.
    fn put(&mut self, name: &str, file: &Path) -> Result<(), String>;
}

/// A folder, as one of a shared file system.
#[derive(Debug, Clone)]
pub struct Folder(pub PathBuf);

impl Destination for Folder {
    fn put(&mut self, name: &str, file: &Path) -> Result<(), String> {
        let (part, to) = (self.0.join(format!("{name}.part")), self.0.join(name));
        let copied = fs::create_dir_all(&self.0).and_then(|()| {
            io::copy(&mut File::open(file)?, &mut File::create(&part)?)?;
            File::open(&part)?.sync_data()?;
            fs::rename(&part, &to)
        });
        copied.map_err(|why| format!("cannot copy {} to {}: {why}", file.display(), to.display()))
    }
}

/// The times between looks for closed segments, and after failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The wait between looks.
    pub look: Duration,
    /// The wait after a failure, twice as long after each more.
    pub first: Duration,
    /// The longest wait after a failure.
    pub longest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { look: Duration::from_secs(1), first: Duration::from_secs(1), longest: Duration::from_secs(60) }
    }
}

/// Counts of uploads since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uploads {
    /// Segments that were uploaded.
    pub segments: u64,
    /// Bytes of those segments.
    pub bytes: u64,
    /// Closed segments that are not uploaded yet.
    pub waiting: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// The message of the last failure; `None` after a success.
    pub last_failure: Option<String>,
}

/// A thread that uploads the closed segments of a folder, until this is dropped. The folder's file `uploaded` lists those
/// that are done, so that none is uploaded again after a restart.
#[derive(Debug)]
pub struct Uploader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    uploads: Uploads,
    /// Whether the next look is the last.
    finishing: bool,
    finished: bool,
    ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds it can panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Uploader {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder's `uploaded` cannot be read or written, or no thread can be started.
    pub fn start(folder: PathBuf, to: impl Destination + 'static, pace: Pace) -> Result<Self, Error> {
        let done = Done::open(&folder)?;
        let shared = Arc::new(Shared::default());
        let work = Work { folder, to: Box::new(to), pace, done, shared: shared.clone() };
        let thread = std::thread::Builder::new().name("upload".to_owned()).spawn(move || work.run());
        let thread = thread.map_err(Error::io("start a thread for", "uploads"))?;
        Ok(Uploader { shared, thread: Some(thread) })
    }

    /// Returns the counts of uploads.
    #[must_use]
    pub fn uploads(&self) -> Uploads {
        self.shared.state().uploads.clone()
    }
}

impl Uploader {
    /// Looks once more, uploads the segments that are closed by now, and stops. Waits for that no longer than `within`;
    /// segments that are not uploaded then are left to the next uploader.
    pub fn finish(&self, within: Duration) -> Uploads {
        let mut state = self.shared.state();
        state.finishing = true;
        self.shared.changed.notify_all();
        let waited = self.shared.changed.wait_timeout_while(state, within, |state| !state.finished);
        waited.unwrap_or_else(PoisonError::into_inner).0.uploads.clone()
    }
}

impl Drop for Uploader {
    /// Waits for the segment that is on its way.
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    folder: PathBuf,
    to: Box<dyn Destination>,
    pace: Pace,
    done: Done,
    shared: Arc<Shared>,
}

impl Work {
    fn run(mut self) {
        let mut pause = self.pace.first;
        loop {
            let is_last = self.shared.state().finishing;
            let result = self.round();
            let mut state = self.shared.state();
            let wait = if let Err(why) = result {
                state.uploads.failures += 1;
                state.uploads.last_failure = Some(why);
                let wait = pause;
                pause = (pause * 2).min(self.pace.longest);
                wait
            } else {
                pause = self.pace.first;
                self.pace.look
            };
            if is_last {
                state.finished = true;
                self.shared.changed.notify_all();
                return;
            }
            let waits = |state: &mut State| !state.ended && !state.finishing;
            let ended = self.shared.changed.wait_timeout_while(state, wait, waits);
            if ended.unwrap_or_else(PoisonError::into_inner).0.ended {
                return;
            }
        }
    }

    /// Uploads all segments that are closed and not done.
    fn round(&mut self) -> Result<(), String> {
        let waiting = self.waiting().map_err(|why| why.to_string())?;
        self.shared.state().uploads.waiting = waiting.len() as u64;
        for (number, path) in waiting {
            if self.shared.state().ended {
                return Ok(());
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.to.put(&name, &path)?;
            self.done.add(number).map_err(|why| why.to_string())?;
            let bytes = path.metadata().map_or(0, |metadata| metadata.len());
            let uploads = &mut self.shared.state().uploads;
            uploads.segments += 1;
            uploads.bytes += bytes;
            uploads.waiting -= 1;
            uploads.last_failure = None;
        }
        Ok(())
    }

    /// Returns the segments that are never written to again, and not done.
    fn waiting(&self) -> Result<Vec<(u64, PathBuf)>, Error> {
        let mut all = directory::segments(&System, &self.folder)?;
        if let Some((number, path)) = all.pop()
            && !self.done.numbers.contains(&number)
            && recovery::is_closed(&path, number)?
        {
            all.push((number, path));
        }
        all.retain(|(number, _)| !self.done.numbers.contains(number));
        Ok(all)
    }
}

/// The numbers of uploaded segments, a line each in a file.
struct Done {
    path: PathBuf,
    file: File,
    numbers: BTreeSet<u64>,
}

impl Done {
    fn open(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let path = folder.join("uploaded");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => String::new(),
            Err(why) => return Err(Error::io("read", &path)(why)),
        };
        // A last line without its end was never finished: that segment is uploaded once more.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let numbers = text[..whole].lines().filter_map(|line| line.parse().ok()).collect();
        let opened = File::options().append(true).create(true).open(&path).and_then(|file| {
            file.set_len(whole as u64)?;
            Ok(file)
        });
        let file = opened.map_err(Error::io("open", &path))?;
        Ok(Done { path, file, numbers })
    }

    fn add(&mut self, number: u64) -> Result<(), Error> {
        let line = format!("{number}\n");
        let length = self.file.metadata().map_err(Error::io("read", &self.path))?.len();
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(why) = written {
            // Half a line would spoil the next one.
            let _ = self.file.set_len(length);
            return Err(Error::io("write to", &self.path)(why));
        }
        self.numbers.insert(number);
        Ok(())
    }
}
