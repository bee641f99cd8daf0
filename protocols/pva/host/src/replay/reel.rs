//! The thread that reads a recording ahead of time.

use super::LOOK;
use super::recording::{Recording, failed, open};
use crate::record::COLUMNS;
use hodo_io::Stop;
use hodo_store::table::Batch;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

/// A step of reading.
pub(super) enum Step {
    /// Rows of a file, which is named by its number.
    Rows(usize, Batch),
    /// The end of the last file.
    End,
}

/// A recording that is read by a thread of its own: while a batch is played, the next one waits in memory, and no more.
pub(super) struct Reel(Receiver<Result<Step, String>>);

impl Reel {
    /// Starts to read, again and again if it `repeats`. With `has_to_stay`, files that have changed are an error.
    ///
    /// # Errors
    /// A sentence if there can be no thread.
    pub(super) fn start(recording: &Arc<Recording>, repeats: bool, has_to_stay: bool) -> Result<Self, String> {
        let (to, steps) = sync_channel(0);
        let recording = Arc::clone(recording);
        let read = move || {
            if let Err(why) = read(&recording, repeats, has_to_stay, &to) {
                // A player that is gone needs not know.
                let _ = to.send(Err(why));
            }
        };
        let started = std::thread::Builder::new().name("pva recording".to_owned()).spawn(read);
        started.map_err(|why| format!("a thread for reading cannot be started: {why}"))?;
        Ok(Reel(steps))
    }

    /// Waits for the next step; returns `None` once `stop` is set.
    ///
    /// # Errors
    /// A sentence with the file and the reason.
    pub(super) fn next(&self, stop: &Stop) -> Result<Option<Step>, String> {
        while !stop.load(Ordering::Relaxed) {
            match self.0.recv_timeout(LOOK) {
                Ok(step) => return step.map(Some),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err("the thread that reads has panicked".to_owned()),
            }
        }
        Ok(None)
    }
}

/// Reads until the end, or until nobody takes what was read.
fn read(
    recording: &Recording,
    repeats: bool,
    has_to_stay: bool,
    to: &SyncSender<Result<Step, String>>,
) -> Result<(), String> {
    loop {
        if has_to_stay {
            recording.check_is_unchanged()?;
        }
        for at in 0..recording.files() {
            let mut reader = open(recording.file(at), COLUMNS)?;
            while let Some(batch) = reader.next_batch().map_err(|why| failed(&why))? {
                if to.send(Ok(Step::Rows(at, batch))).is_err() {
                    return Ok(());
                }
            }
        }
        if to.send(Ok(Step::End)).is_err() || !repeats {
            return Ok(());
        }
    }
}
