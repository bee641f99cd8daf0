//! The thread that writes rows to files.

use super::COLUMNS;
use hodo_store::Error;
use hodo_store::table::{Batch, TableWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Batches that may wait for the thread.
const WAITING_MAX: usize = 2;
/// How often a disk that takes nothing is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// Where a recording goes.
#[derive(Debug, Clone)]
pub enum Output {
    /// One file, which must not exist.
    File(PathBuf),
    /// Files in a folder, named by the time at which they begin.
    Folder {
        /// The folder; it is made.
        path: PathBuf,
        /// The bytes from which on a file is followed by the next.
        size: u64,
        /// The time after which a file is followed by the next.
        span: Option<Duration>,
    },
}

/// Totals of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Files.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
}

/// The state that the thread and its owner share.
#[derive(Default)]
struct Shared {
    trouble: Mutex<Option<String>>,
    groups: AtomicUsize,
    is_ending: AtomicBool,
}

/// The owner's end of the thread.
pub(super) struct Writer {
    batches: Option<SyncSender<Batch>>,
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(Written, u64), String>>,
}

impl Writer {
    /// Creates the first file, or the folder, and starts the thread.
    pub(super) fn start(output: &Output) -> Result<Self, String> {
        let table = match output {
            Output::File(path) => Some(TableWriter::create(path, COLUMNS).map_err(|why| cannot_begin(&why))?),
            Output::Folder { path, .. } => {
                let made = std::fs::create_dir_all(path);
                made.map_err(|why| format!("the folder {} cannot be made: {why}", path.display()))?;
                None
            }
        };
        let (batches, to_write) = sync_channel(WAITING_MAX);
        let shared: Arc<Shared> = Arc::default();
        let mut files = Files {
            output: output.clone(),
            shared: Arc::clone(&shared),
            written: Written { files: u64::from(table.is_some()), ..Written::default() },
            unwritten: 0,
            began_ns: 0,
            table,
        };
        let thread = Builder::new().name("pva recorder".into()).spawn(move || files.write_all(&to_write));
        let thread = thread.map_err(|why| format!("no thread can be started: {why}"))?;
        Ok(Writer { batches: Some(batches), shared, thread })
    }

    /// Hands rows on and leaves none, or leaves them if too many wait. Returns whether they were taken.
    pub(super) fn offer(&self, batch: &mut Batch) -> bool {
        let Some(batches) = &self.batches else { return false };
        match batches.try_send(std::mem::replace(batch, Batch::new(COLUMNS))) {
            Ok(()) => true,
            Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => {
                *batch = back;
                false
            }
        }
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.shared.trouble().clone()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Returns the batches of the present file.
    pub(super) fn groups(&self) -> usize {
        self.shared.groups.load(Ordering::Relaxed)
    }

    /// Writes the last rows; returns what was written, and how many rows were not.
    pub(super) fn finish(mut self, last: Batch) -> Result<(Written, u64), String> {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        let lost = last.len() as u64;
        let lost = match self.batches.take().map(|batches| batches.send(last)) {
            Some(Ok(())) => 0,
            _ => lost,
        };
        let (written, unwritten) = self.thread.join().map_err(|_| "the thread that writes panicked".to_owned())??;
        Ok((written, unwritten + lost))
    }
}

impl Shared {
    fn trouble(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of a recording, on the thread.
struct Files {
    output: Output,
    shared: Arc<Shared>,
    table: Option<TableWriter>,
    /// When the present file began, in nanoseconds since 1970.
    began_ns: i64,
    written: Written,
    unwritten: u64,
}

impl Files {
    fn write_all(&mut self, batches: &Receiver<Batch>) -> Result<(Written, u64), String> {
        let mut goes_on = true;
        for batch in batches.iter().filter(|batch| !batch.is_empty()) {
            goes_on = goes_on && self.write(&batch)?;
            self.unwritten += if goes_on { 0 } else { batch.len() as u64 };
        }
        self.close();
        Ok((self.written, self.unwritten))
    }

    /// Writes a batch, and tries again while the disk does not take it. Returns `false` if the end came first.
    fn write(&mut self, batch: &Batch) -> Result<bool, String> {
        let at_ns = batch.rows().next().map_or(0, |row| super::Row(row).arrived_ns());
        if self.is_due(at_ns) {
            self.close();
        }
        if !self.persist(|files| files.open(at_ns))? {
            return Ok(false);
        }
        let Some(table) = &mut self.table else { return Ok(false) };
        let done = match table.write(batch) {
            Ok(()) => true,
            Err(why) => {
                self.note(&why)?;
                self.persist(|files| files.table.as_mut().map_or(Ok(()), TableWriter::commit))?
            }
        };
        self.shared.groups.store(self.table.as_ref().map_or(0, TableWriter::groups), Ordering::Relaxed);
        self.written.rows += if done { batch.len() as u64 } else { 0 };
        Ok(done)
    }

    /// Repeats what the disk does not take. Returns `false` if the end came first.
    fn persist(&mut self, mut attempt: impl FnMut(&mut Self) -> Result<(), Error>) -> Result<bool, String> {
        loop {
            let is_last = self.shared.is_ending.load(Ordering::Relaxed);
            match attempt(self) {
                Ok(()) => {
                    *self.shared.trouble() = None;
                    return Ok(true);
                }
                Err(why) => self.note(&why)?,
            }
            if is_last {
                return Ok(false);
            }
            hodo_io::sleep(RETRY);
        }
    }

    /// Notes an error of the disk, which may pass; any other ends the recording.
    fn note(&self, why: &Error) -> Result<(), String> {
        if !matches!(why, Error::Io { .. }) {
            return Err(why.to_string());
        }
        *self.shared.trouble() = Some(why.to_string());
        Ok(())
    }

    /// Tells whether the next file is due.
    fn is_due(&self, at_ns: i64) -> bool {
        let (Output::Folder { size, span, .. }, Some(table)) = (&self.output, &self.table) else { return false };
        let age = Duration::from_nanos(u64::try_from(at_ns - self.began_ns).unwrap_or(0));
        table.length() >= *size || span.is_some_and(|span| age >= span)
    }

    fn close(&mut self) {
        self.written.bytes += self.table.take().map_or(0, |table| table.length());
    }

    fn open(&mut self, at_ns: i64) -> Result<(), Error> {
        if let (Output::Folder { path, .. }, None) = (&self.output, &self.table) {
            self.table = Some(TableWriter::create(&path.join(name(at_ns)), COLUMNS)?);
            self.began_ns = at_ns;
            self.written.files += 1;
        }
        Ok(())
    }
}

/// Returns the name of the file that begins at a time, so that names sort as times do.
fn name(at_ns: i64) -> String {
    chrono::DateTime::from_timestamp_nanos(at_ns).format("%Y%m%dT%H%M%S.%9fZ.parquet").to_string()
}

fn cannot_begin(why: &Error) -> String {
    match why {
        Error::Io { source, path, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => {
            format!("{} exists: choose another name, or remove it", Path::display(path))
        }
        why => why.to_string(),
    }
}
