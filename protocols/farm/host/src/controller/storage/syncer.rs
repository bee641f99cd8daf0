use super::{LastWords, Shared};
use hodo_store::{Sync, Synced};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The thread that waits for the disk while the writer goes on; one file at a time.
pub struct Syncer {
    jobs: Option<SyncSender<Sync>>,
    outcome: Arc<Mutex<Option<Synced>>>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread, which wakes the writer after each file.
    pub fn start(shared: &Arc<Shared>) -> std::io::Result<Self> {
        let (jobs, todo) = sync_channel::<Sync>(1);
        let outcome: Arc<Mutex<Option<Synced>>> = Arc::default();
        let (shared, slot) = (Arc::clone(shared), Arc::clone(&outcome));
        let pulse = shared.health.pulse("sync");
        // At rest for good: how long a disk takes is no sign of life, but the end of the thread is noticed.
        pulse.rest();
        let thread = std::thread::Builder::new().name("sync".to_owned()).spawn(move || {
            let _pulse = pulse;
            let _last_words = LastWords { shared: &shared, thread: "sync" };
            for job in todo {
                let done = job.run();
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
                shared.wake_writer();
            }
        })?;
        Ok(Syncer { jobs: Some(jobs), outcome, is_busy: false, thread: Some(thread) })
    }

    /// Returns whether a file is being synced, or its outcome was not taken yet.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Begins with a file. The thread is not busy.
    pub fn begin(&mut self, job: Sync) {
        self.is_busy = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
    }

    /// Returns whether the outcome of the last file is there.
    pub fn has_outcome(&self) -> bool {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes the outcome of the last file, once it is there.
    pub fn outcome(&mut self) -> Option<Synced> {
        let done = self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.is_busy &= done.is_none();
        done
    }

    /// Waits for the file that it has begun with, and ends the thread.
    pub fn finish(&mut self) -> Option<Synced> {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic has set why nothing can be stored.
            let _ = thread.join();
        }
        self.outcome()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.finish();
    }
}
