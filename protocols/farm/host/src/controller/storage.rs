//! The store behind the serving threads: they leave verdicts in queues, and never wait for a disk.

mod syncer;
#[cfg(test)]
mod tests;
mod writer;

use super::status::StoreStatus;
use hodo_daemon::Health;
use hodo_farm::Likeness;
use hodo_farm::controller::Final;
use hodo_farm::wire::Verdict;
use hodo_io::Waker;
use hodo_store::{Store, Uploader};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use writer::Writer;

/// The thread that writes verdicts to the store, and a queue to it for each serving thread.
pub struct Storage {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The times between actions of the writer.
#[derive(Debug, Clone, Copy)]
pub struct StoragePace {
    /// The least time between two commits.
    pub commit_every: Duration,
    /// The most time that the disk may lag behind, where a commit does not wait for it.
    pub sync_every: Duration,
    /// The bytes of the open segment with which the disk is asked for them at once.
    pub sync_bytes: u64,
}

struct Shared {
    queues: Vec<Queue>,
    /// Whether the writer sleeps until it is woken.
    asleep: Mutex<bool>,
    wake: Condvar,
    end: AtomicBool,
    /// Why nothing can be stored; `None` once it can be again.
    failing: Mutex<Option<String>>,
    /// A thread of the store has died.
    is_dead: AtomicBool,
    health: Arc<Health>,
    stored: AtomicU64,
    stored_bytes: AtomicU64,
    commits: AtomicU64,
    upload: Option<Upload>,
}

/// The copying of closed segments elsewhere, and the time that it may take at the end.
pub struct Upload {
    pub uploader: Uploader,
    pub within: Duration,
}

#[derive(Default)]
struct Queue {
    verdicts: Mutex<Vec<Final>>,
    queued: AtomicU64,
    committed: AtomicU64,
    /// The outcomes for data that were in doubt, in their order: they come before the count of what is committed.
    compared: Mutex<Vec<Likeness>>,
    waker: Mutex<Option<Waker>>,
}

/// The queue of one serving thread to the writer.
#[derive(Clone)]
pub struct StorageQueue {
    shared: Arc<Shared>,
    index: usize,
}

impl Storage {
    /// Starts the writer for `threads` serving threads.
    ///
    /// # Errors
    /// The operating system's error if no thread can be started.
    pub fn start(
        store: Store,
        threads: usize,
        pace: StoragePace,
        upload: Option<Upload>,
        health: &Arc<Health>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queues: (0..threads).map(|_| Queue::default()).collect(),
            asleep: Mutex::new(false),
            wake: Condvar::new(),
            end: AtomicBool::new(false),
            failing: Mutex::new(None),
            is_dead: AtomicBool::new(false),
            health: Arc::clone(health),
            stored: AtomicU64::new(0),
            stored_bytes: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            upload,
        });
        let writer = Writer::new(store, &shared, pace)?;
        // In the common table of descriptors: the wakers of the threads that serve are in that one, and in a table of
        // this thread's own their numbers may be those of the store's files, which a wake would write into.
        let thread = Builder::new().name("store".to_owned()).spawn(move || writer.run())?;
        Ok(Storage { shared, thread: Some(thread) })
    }

    /// Returns the queue of the serving thread with this index.
    pub fn queue(&self, index: usize) -> StorageQueue {
        StorageQueue { shared: Arc::clone(&self.shared), index }
    }

    /// Commits what is queued, waits until the disk has it, and ends the writer.
    ///
    /// # Errors
    /// A sentence that says what is not stored, and why.
    pub fn finish(mut self) -> Result<(), String> {
        self.end();
        let queued: u64 = self.shared.queues.iter().map(|queue| queue.queued.load(Ordering::Acquire)).sum();
        let committed: u64 = self.shared.queues.iter().map(|queue| queue.committed.load(Ordering::Acquire)).sum();
        let why = self.shared.failing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (queued - committed, why) {
            (0, None) => Ok(()),
            (0, Some(why)) => Err(why),
            (left, why) => {
                let why = why.unwrap_or_else(|| "the writer has ended".to_owned());
                Err(format!("{left} verdicts are not stored: {why}; their events are still with whoever gave them"))
            }
        }
    }

    fn end(&mut self) {
        self.shared.end.store(true, Ordering::Release);
        self.shared.wake_writer();
        let Some(thread) = self.thread.take() else { return };
        // A panic is in the log, and what it left undone is in the counters.
        let _ = thread.join();
        if let Some(Upload { uploader, within }) = &self.shared.upload
            && let left @ 1.. = uploader.finish(*within).waiting
        {
            tracing::warn!("{left} segments are left to be uploaded by the next controller");
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn wake_writer(&self) {
        let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        if *asleep {
            *asleep = false;
            self.wake.notify_one();
        }
    }

    /// Sleeps until a verdict is queued, a sync has ended, the writer is to end, or for this long.
    fn sleep(&self, at_most: Duration, is_due: impl Fn() -> bool) {
        let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        let some = |queue: &Queue| !queue.verdicts.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if self.queues.iter().any(some) || self.end.load(Ordering::Acquire) || is_due() {
            return;
        }
        *asleep = true;
        let waited = self.wake.wait_timeout_while(asleep, at_most, |asleep| *asleep);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    fn set_failing(&self, why: Option<String>) {
        self.health.set_failing(why.as_ref().map(|why| format!("nothing can be stored: {why}")));
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

/// Says so when a thread of the store dies, however it does.
struct LastWords<'a> {
    shared: &'a Shared,
    thread: &'static str,
}

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.is_dead.store(true, Ordering::Release);
            self.shared.set_failing(Some(format!("the thread `{}` has died; start the controller again", self.thread)));
        }
    }
}

impl StorageQueue {
    /// Sets the thread that is woken after each commit.
    pub fn set_waker(&self, waker: Waker) {
        *self.queue().waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
    }

    fn queue(&self) -> &Queue {
        &self.shared.queues[self.index]
    }

    /// Queues verdicts to be written.
    pub fn push(&self, verdicts: &mut Vec<Final>) {
        let mut queue = self.queue().verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = queue.is_empty();
        self.queue().queued.fetch_add(verdicts.len() as u64, Ordering::Release);
        queue.append(verdicts);
        drop(queue);
        if was_empty {
            self.shared.wake_writer();
        }
    }

    /// Returns the number of verdicts of this thread that are committed.
    #[inline]
    pub fn committed(&self) -> u64 {
        self.queue().committed.load(Ordering::Acquire)
    }

    /// Takes the outcomes for data that were in doubt, among the verdicts that are committed.
    pub fn compared(&self) -> Vec<Likeness> {
        std::mem::take(&mut *self.queue().compared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns what the writer has done so far.
    pub fn status(&self) -> StoreStatus {
        let shared = &self.shared;
        StoreStatus {
            events: shared.stored.load(Ordering::Relaxed),
            bytes: shared.stored_bytes.load(Ordering::Relaxed),
            commits: shared.commits.load(Ordering::Relaxed),
            failing: shared.failing.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            uploads: shared.upload.as_ref().map(|upload| upload.uploader.uploads()),
        }
    }
}

/// Returns the verdict under which the store keeps an event.
pub fn stored_verdict(verdict: Verdict) -> hodo_store::Verdict {
    match verdict {
        Verdict::Accepted => hodo_store::Verdict::Accepted,
        Verdict::Rejected => hodo_store::Verdict::Rejected,
        Verdict::Quarantined | Verdict::Failed => hodo_store::Verdict::Quarantined,
        Verdict::Incomplete => hodo_store::Verdict::Incomplete,
    }
}
