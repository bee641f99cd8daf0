use super::status::StoreStatus;
use hodo_farm::controller::Final;
use hodo_farm::wire::Verdict;
use hodo_io::{Waker, sleep, unix_time_ns};
use hodo_store::{Record, Store, Uploader};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How soon a commit that failed is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// The thread that writes verdicts to the store, and a queue to it for each serving thread.
pub struct Storage {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queues: Vec<Queue>,
    /// Whether the writer sleeps until it is woken.
    asleep: Mutex<bool>,
    wake: Condvar,
    end: AtomicBool,
    /// Why the last commit failed; `None` once one has succeeded.
    failing: Mutex<Option<String>>,
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
    committed: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

/// The queue of one serving thread to the writer.
#[derive(Clone)]
pub struct StorageQueue {
    shared: Arc<Shared>,
    index: usize,
}

impl Storage {
    /// Starts the writer for `threads` serving threads; it commits at most once per `every`.
    pub fn start(store: Store, threads: usize, every: Duration, upload: Option<Upload>) -> Self {
        let shared = Arc::new(Shared {
            queues: (0..threads).map(|_| Queue::default()).collect(),
            asleep: Mutex::new(false),
            wake: Condvar::new(),
            end: AtomicBool::new(false),
            failing: Mutex::new(None),
            stored: AtomicU64::new(0),
            stored_bytes: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            upload,
        });
        let writer = Arc::clone(&shared);
        // In the common table of descriptors: the wakers of the threads that serve are in that one, and in a table of
        // this thread's own their numbers may be those of the store's files, which a wake would write into.
        let thread = std::thread::spawn(move || write(store, &writer, every));
        Storage { shared, thread: Some(thread) }
    }

    /// Returns the queue of the serving thread with this index.
    pub fn queue(&self, index: usize) -> StorageQueue {
        StorageQueue { shared: Arc::clone(&self.shared), index }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Release);
        self.shared.wake_writer();
        if let Some(thread) = self.thread.take() {
            // It has said what it had to say.
            let _ = thread.join();
        }
        if let Some(Upload { uploader, within }) = &self.shared.upload
            && let left @ 1.. = uploader.finish(*within).waiting
        {
            tracing::warn!("{left} segments are left to be uploaded by the next controller");
        }
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

    /// Sleeps until a verdict is queued, or the writer is to end.
    fn sleep(&self) {
        let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        let some = |queue: &Queue| !queue.verdicts.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if self.queues.iter().any(some) || self.end.load(Ordering::Acquire) {
            return;
        }
        *asleep = true;
        let waited = self.wake.wait_while(asleep, |asleep| *asleep);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
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

/// Writes queued verdicts, group after group, until the end.
fn write(mut store: Store, shared: &Shared, every: Duration) {
    let mut taken: Vec<Vec<Final>> = shared.queues.iter().map(|_| Vec::new()).collect();
    loop {
        shared.sleep();
        let ending = shared.end.load(Ordering::Acquire);
        for (queue, verdicts) in shared.queues.iter().zip(&mut taken) {
            std::mem::swap(verdicts, &mut *queue.verdicts.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if taken.iter().all(Vec::is_empty) {
            if ending {
                if shared.upload.is_some() {
                    // Where it cannot be closed now, the next controller goes on with it.
                    let _ = store.close_segment();
                }
                return;
            }
            continue;
        }
        let time_ns = unix_time_ns();
        for verdict in taken.iter().flatten() {
            attempt(shared, ending, || store.put(&record(verdict, time_ns)).map(|_| ()));
        }
        if !attempt(shared, ending, || store.commit().map(|_| ())) {
            return;
        }
        shared.commits.fetch_add(1, Ordering::Relaxed);
        for (queue, verdicts) in shared.queues.iter().zip(&mut taken) {
            acknowledge(shared, queue, verdicts);
        }
        if !ending && !every.is_zero() {
            sleep(every);
        }
    }
}

/// Tells a serving thread that its verdicts are committed.
fn acknowledge(shared: &Shared, queue: &Queue, verdicts: &mut Vec<Final>) {
    if verdicts.is_empty() {
        return;
    }
    let kept = verdicts.iter().filter(|verdict| matches!(verdict.verdict, Verdict::Accepted | Verdict::Quarantined));
    let (events, bytes) = kept.fold((0, 0), |(events, bytes), kept| (events + 1, bytes + kept.data.len() as u64));
    shared.stored.fetch_add(events, Ordering::Relaxed);
    shared.stored_bytes.fetch_add(bytes, Ordering::Relaxed);
    queue.committed.fetch_add(verdicts.len() as u64, Ordering::Release);
    verdicts.clear();
    if let Some(waker) = &*queue.waker.lock().unwrap_or_else(PoisonError::into_inner) {
        waker.wake();
    }
}

/// Repeats an action until it succeeds: a full disk is emptied some time, and nothing is acknowledged before it is stored.
/// Returns `false` only if the writer ends first.
fn attempt(shared: &Shared, ending: bool, mut act: impl FnMut() -> Result<(), hodo_store::Error>) -> bool {
    let mut failed = false;
    loop {
        let Err(error) = act() else {
            if failed {
                tracing::info!("the store works again");
                *shared.failing.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            return true;
        };
        if !std::mem::replace(&mut failed, true) {
            tracing::error!("{error}; no event is acknowledged until this is fixed");
        }
        *shared.failing.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        if ending || shared.end.load(Ordering::Acquire) {
            return false;
        }
        sleep(AGAIN);
    }
}

fn record(verdict: &Final, time_ns: u64) -> Record<'_> {
    Record {
        run: verdict.run,
        event: verdict.event,
        verdict: stored_verdict(verdict.verdict),
        node: verdict.node,
        attempts: verdict.attempts,
        partial: verdict.partial,
        time_ns,
        data: &verdict.data,
    }
}
