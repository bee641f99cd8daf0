use super::lines::Lines;
use hodo_catalog::farm::controller::Final;
use hodo_catalog::farm::wire::Verdict;
use hodo_io::Waker;
use hodo_store::{Record, Store, Uploader, Uploads};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How soon a commit that failed is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// Where the threads that serve leave verdicts, and the thread that writes them.
pub struct Storing {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    inboxes: Vec<Inbox>,
    /// The writer sleeps, and is to be woken.
    asleep: Mutex<bool>,
    wake: Condvar,
    end: AtomicBool,
    /// Commits that have failed since the last that did not; the reason of the last.
    failing: Mutex<Option<String>>,
    stored: AtomicU64,
    stored_bytes: AtomicU64,
    commits: AtomicU64,
    upload: Option<Upload>,
}

/// Who copies closed segments elsewhere, and how long that may take at the end.
pub struct Upload {
    pub uploader: Uploader,
    pub within: Duration,
}

#[derive(Default)]
struct Inbox {
    verdicts: Mutex<Vec<Final>>,
    committed: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

/// One thread's way to the writer.
#[derive(Clone)]
pub struct Desk {
    shared: Arc<Shared>,
    index: usize,
}

/// What the writer has done.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    pub events: u64,
    pub bytes: u64,
    pub commits: u64,
    /// Why nothing can be committed now, where that is so.
    pub failing: Option<String>,
    /// What was copied elsewhere, where that is asked for.
    pub uploads: Option<Uploads>,
}

impl Storing {
    /// Begins to write for so many threads.
    pub fn start(store: Store, threads: usize, every: Duration, upload: Option<Upload>) -> Self {
        let shared = Arc::new(Shared {
            inboxes: (0..threads).map(|_| Inbox::default()).collect(),
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
        Storing { shared, thread: Some(thread) }
    }

    /// For the thread with this index.
    pub fn desk(&self, index: usize) -> Desk {
        Desk { shared: Arc::clone(&self.shared), index }
    }
}

impl Drop for Storing {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Release);
        self.shared.rouse();
        if let Some(thread) = self.thread.take() {
            // It has said what it had to say.
            let _ = thread.join();
        }
        if let Some(Upload { uploader, within }) = &self.shared.upload
            && let left @ 1.. = uploader.finish(*within).waiting
        {
            Lines::of("controller").say(&format!("{left} segments are left to be uploaded by the next controller"));
        }
    }
}

impl Shared {
    fn rouse(&self) {
        let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        if *asleep {
            *asleep = false;
            self.wake.notify_one();
        }
    }

    /// Sleeps until a verdict is left, or the end.
    fn sleep(&self) {
        let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        let some = |inbox: &Inbox| !inbox.verdicts.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if self.inboxes.iter().any(some) || self.end.load(Ordering::Acquire) {
            return;
        }
        *asleep = true;
        let waited = self.wake.wait_while(asleep, |asleep| *asleep);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Desk {
    /// Who is to be woken when something is committed.
    pub fn set_waker(&self, waker: Waker) {
        *self.inbox().waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
    }

    fn inbox(&self) -> &Inbox {
        &self.shared.inboxes[self.index]
    }

    /// Leaves verdicts to be written.
    pub fn leave(&self, verdicts: &mut Vec<Final>) {
        let mut inbox = self.inbox().verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = inbox.is_empty();
        inbox.append(verdicts);
        drop(inbox);
        if was_empty {
            self.shared.rouse();
        }
    }

    /// Verdicts of this thread that are committed.
    #[inline]
    pub fn committed(&self) -> u64 {
        self.inbox().committed.load(Ordering::Acquire)
    }

    pub fn stored(&self) -> Stored {
        let shared = &self.shared;
        Stored {
            events: shared.stored.load(Ordering::Relaxed),
            bytes: shared.stored_bytes.load(Ordering::Relaxed),
            commits: shared.commits.load(Ordering::Relaxed),
            failing: shared.failing.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            uploads: shared.upload.as_ref().map(|upload| upload.uploader.uploads()),
        }
    }
}

/// The store's word for a verdict.
pub fn stored_verdict(verdict: Verdict) -> hodo_store::Verdict {
    match verdict {
        Verdict::Accepted => hodo_store::Verdict::Accepted,
        Verdict::Rejected => hodo_store::Verdict::Rejected,
        Verdict::Quarantined | Verdict::Failed => hodo_store::Verdict::Quarantined,
        Verdict::Incomplete => hodo_store::Verdict::Incomplete,
    }
}

/// Writes what is left, group after group, until the end.
fn write(mut store: Store, shared: &Shared, every: Duration) {
    let mut lines = Lines::of("controller");
    let mut taken: Vec<Vec<Final>> = shared.inboxes.iter().map(|_| Vec::new()).collect();
    loop {
        shared.sleep();
        let ending = shared.end.load(Ordering::Acquire);
        for (inbox, verdicts) in shared.inboxes.iter().zip(&mut taken) {
            std::mem::swap(verdicts, &mut *inbox.verdicts.lock().unwrap_or_else(PoisonError::into_inner));
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
        let time_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        for verdict in taken.iter().flatten() {
            attempt(shared, &mut lines, ending, || store.put(&record(verdict, time_ns)).map(|_| ()));
        }
        if !attempt(shared, &mut lines, ending, || store.commit().map(|_| ())) {
            return;
        }
        shared.commits.fetch_add(1, Ordering::Relaxed);
        for (inbox, verdicts) in shared.inboxes.iter().zip(&mut taken) {
            tell(shared, inbox, verdicts);
        }
        if !ending && !every.is_zero() {
            std::thread::sleep(every);
        }
    }
}

/// Tells a thread that these are committed.
fn tell(shared: &Shared, inbox: &Inbox, verdicts: &mut Vec<Final>) {
    if verdicts.is_empty() {
        return;
    }
    let kept = verdicts.iter().filter(|verdict| matches!(verdict.verdict, Verdict::Accepted | Verdict::Quarantined));
    let (events, bytes) = kept.fold((0, 0), |(events, bytes), kept| (events + 1, bytes + kept.data.len() as u64));
    shared.stored.fetch_add(events, Ordering::Relaxed);
    shared.stored_bytes.fetch_add(bytes, Ordering::Relaxed);
    inbox.committed.fetch_add(verdicts.len() as u64, Ordering::Release);
    verdicts.clear();
    if let Some(waker) = &*inbox.waker.lock().unwrap_or_else(PoisonError::into_inner) {
        waker.wake();
    }
}

/// Does it until it succeeds: a full disk is emptied some time, and nothing is told to be stored before it is. Answers
/// whether it was done, which it is unless the end has come.
fn attempt(
    shared: &Shared,
    lines: &mut Lines,
    ending: bool,
    mut act: impl FnMut() -> Result<(), hodo_store::Error>,
) -> bool {
    let mut failed = false;
    loop {
        let Err(error) = act() else {
            if failed {
                lines.say("the store takes events again");
                *shared.failing.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            return true;
        };
        if !std::mem::replace(&mut failed, true) {
            lines.say(&format!("{error}; no event is acknowledged until this is mended"));
        }
        *shared.failing.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        if ending || shared.end.load(Ordering::Acquire) {
            return false;
        }
        std::thread::sleep(AGAIN);
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
