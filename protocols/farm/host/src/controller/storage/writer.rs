use super::syncer::Syncer;
use super::{LastWords, Queue, Shared, StoragePace, stored_verdict};
use hodo_daemon::Pulse;
use hodo_farm::controller::{Final, Owner};
use hodo_farm::wire::Verdict;
use hodo_farm::{Content, Likeness};
use hodo_io::{Clock, sleep, unix_time_ns};
use hodo_machine::Instant;
use hodo_store::{Error, Record, Store};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The wait before an action that failed is tried again.
const AGAIN: Duration = Duration::from_millis(200);
/// The longest sleep of a writer that has nothing to do.
const IDLE: Duration = Duration::from_secs(3600);

/// The writer of a store, on a thread of its own.
pub struct Writer {
    store: Store,
    shared: Arc<Shared>,
    pace: StoragePace,
    syncer: Syncer,
    pulse: Pulse,
    clock: Clock,
    /// When the open segment is synced next.
    sync_at: Instant,
    /// Whether the log has told of a segment that cannot be read.
    told_of_unread: bool,
}

impl Writer {
    pub fn new(store: Store, shared: &Arc<Shared>, pace: StoragePace) -> std::io::Result<Self> {
        let clock = Clock::start();
        Ok(Writer {
            store,
            shared: Arc::clone(shared),
            pace,
            syncer: Syncer::start(shared)?,
            pulse: shared.health.pulse("store"),
            clock,
            sync_at: clock.now() + pace.sync_every,
            told_of_unread: false,
        })
    }

    /// Writes queued verdicts, group after group, until the end.
    pub fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let _last_words = LastWords { shared: &shared, thread: "store" };
        let mut taken: Vec<Vec<Final>> = shared.queues.iter().map(|_| Vec::new()).collect();
        loop {
            self.pulse.rest();
            self.sleep();
            self.pulse.beat();
            let ending = shared.end.load(Ordering::Acquire);
            for (queue, verdicts) in shared.queues.iter().zip(&mut taken) {
                std::mem::swap(verdicts, &mut *queue.verdicts.lock().unwrap_or_else(PoisonError::into_inner));
            }
            if !self.sync() {
                return;
            }
            if taken.iter().all(Vec::is_empty) {
                if ending {
                    return self.finish();
                }
                continue;
            }
            let time_ns = unix_time_ns();
            let clear = taken.iter().flatten().filter(|last| !is_in_doubt(last));
            if !self.put_all(clear, time_ns) || !self.settle_doubts(&taken, time_ns) {
                return;
            }
            shared.commits.fetch_add(1, Ordering::Relaxed);
            for (queue, verdicts) in shared.queues.iter().zip(&mut taken) {
                acknowledge(&shared, queue, verdicts);
            }
            if !ending && !self.pace.commit_every.is_zero() {
                sleep(self.pace.commit_every);
            }
        }
    }

    /// Writes verdicts, and commits them. Returns `false` if the writer ends first.
    fn put_all<'a>(&mut self, mut verdicts: impl Iterator<Item = &'a Final>, time_ns: u64) -> bool {
        let put = |store: &mut Store, verdict| store.put(&record(verdict, time_ns)).map(|_| ());
        let all_put = verdicts.all(|verdict| self.attempt(|store| put(store, verdict)));
        all_put && self.attempt(|store| store.commit().map(|_| ()))
    }

    /// Compares data in doubt with what is stored of their numbers, and stores those that are other data. Returns `false` if
    /// the writer ends first.
    fn settle_doubts(&mut self, taken: &[Vec<Final>], time_ns: u64) -> bool {
        let mut doubts: Vec<&Final> = taken.iter().flatten().filter(|last| is_in_doubt(last)).collect();
        if doubts.is_empty() {
            return true;
        }
        // Those of one segment after each other: it is read once.
        let place = |last: &&Final| (last.run, last.event, last.content.code());
        doubts.sort_by_key(place);
        let known = doubts.iter().map(|last| ((last.run, last.event), self.known(last))).collect::<BTreeMap<_, _>>();
        let outcome = |last: &Final| last.compared(known[&(last.run, last.event)]);
        doubts.retain(|last| outcome(last) == Likeness::Other);
        // The same data twice are stored once.
        doubts.dedup_by_key(|last| place(last));
        if !self.put_all(doubts.into_iter(), time_ns) {
            return false;
        }
        for (queue, verdicts) in self.shared.queues.iter().zip(taken) {
            let outcomes = verdicts.iter().filter(|last| is_in_doubt(last)).map(outcome);
            queue.compared.lock().unwrap_or_else(PoisonError::into_inner).extend(outcomes);
        }
        true
    }

    /// Returns what the store knows of the data that were given under a number.
    fn known(&mut self, last: &Final) -> Content {
        self.pulse.beat();
        let given = self.store.given(last.run, last.event).unwrap_or_else(|error| {
            if !std::mem::replace(&mut self.told_of_unread, true) {
                tracing::warn!(
                    "{error}; events that are given again cannot be compared with it, and are counted as unchecked"
                );
            }
            None
        });
        given.map_or(Content::Unknown, Content::from_code)
    }

    /// Sleeps until there is something to do.
    fn sleep(&self) {
        let is_lagging = !self.syncer.is_busy() && self.store.next_sync(true).is_some();
        let now = self.clock.now();
        let at_most = if is_lagging { self.sync_at.max(now) - now } else { IDLE };
        self.shared.sleep(at_most, || self.syncer.has_outcome());
    }

    /// Takes the outcome of a sync, and begins the next. Returns `false` if nothing can be acknowledged any more.
    fn sync(&mut self) -> bool {
        if self.shared.is_dead.load(Ordering::Acquire) {
            return false;
        }
        // The commit mends it before it writes anything else.
        if let Some(Err(error)) = self.syncer.outcome().map(|done| self.store.synced(done))
            && !self.attempt_after(Some(error), |store| store.commit().map(|_| ()))
        {
            return false;
        }
        if self.syncer.is_busy() {
            return true;
        }
        let now = self.clock.now();
        let is_due = now >= self.sync_at || self.store.unsynced_bytes() >= self.pace.sync_bytes;
        if is_due {
            self.sync_at = now + self.pace.sync_every;
        }
        if let Some(job) = self.store.next_sync(is_due) {
            self.syncer.begin(job);
        }
        true
    }

    /// Leaves everything on the disk; segments are closed where they are uploaded.
    fn finish(mut self) {
        if let Some(Err(error)) = self.syncer.finish().map(|done| self.store.synced(done))
            && !self.attempt_after(Some(error), |store| store.commit().map(|_| ()))
        {
            return;
        }
        let closes = self.shared.upload.is_some();
        self.attempt(|store| if closes { store.close_segment() } else { store.finish() });
    }

    /// Repeats an action until it succeeds: a full disk is emptied some time, and nothing is acknowledged before it is
    /// stored. Returns `false` only if the writer ends first.
    fn attempt(&mut self, act: impl FnMut(&mut Store) -> Result<(), Error>) -> bool {
        self.attempt_after(None, act)
    }

    /// Repeats an action, which may have failed already.
    fn attempt_after(&mut self, error: Option<Error>, mut act: impl FnMut(&mut Store) -> Result<(), Error>) -> bool {
        let mut failed = false;
        if let Some(error) = error {
            self.failed(&error, &mut failed);
        }
        while let Err(error) = act(&mut self.store) {
            self.failed(&error, &mut failed);
            if self.shared.end.load(Ordering::Acquire) {
                return false;
            }
            sleep(AGAIN);
            self.pulse.beat();
        }
        if failed {
            tracing::info!("the store works again");
            self.shared.set_failing(None);
        }
        true
    }

    fn failed(&self, error: &Error, before: &mut bool) {
        if !std::mem::replace(before, true) {
            tracing::error!("{error}; no event is acknowledged until this is fixed");
        }
        self.shared.set_failing(Some(error.to_string()));
    }
}

/// Tells a serving thread that its verdicts are committed.
fn acknowledge(shared: &Shared, queue: &Queue, verdicts: &mut Vec<Final>) {
    if verdicts.is_empty() {
        return;
    }
    let is_kept =
        |last: &&Final| matches!(last.verdict, Verdict::Accepted | Verdict::Quarantined) && last.owner == Owner::Itself;
    let kept = verdicts.iter().filter(is_kept);
    let (events, bytes) = kept.fold((0, 0), |(events, bytes), kept| (events + 1, bytes + kept.data.len() as u64));
    shared.stored.fetch_add(events, Ordering::Relaxed);
    shared.stored_bytes.fetch_add(bytes, Ordering::Relaxed);
    let committed = verdicts.len() as u64;
    // First, so that the thread that serves has the memory for itself again.
    verdicts.clear();
    queue.committed.fetch_add(committed, Ordering::Release);
    if let Some(waker) = &*queue.waker.lock().unwrap_or_else(PoisonError::into_inner) {
        waker.wake();
    }
}

fn is_in_doubt(last: &Final) -> bool {
    matches!(last.owner, Owner::Unknown { .. })
}

fn record(verdict: &Final, time_ns: u64) -> Record<'_> {
    Record {
        run: verdict.run,
        event: verdict.event,
        verdict: stored_verdict(verdict.verdict),
        node: verdict.node,
        attempts: verdict.attempts,
        partial: verdict.partial,
        conflict: verdict.owner != Owner::Itself,
        given: verdict.content.code(),
        time_ns,
        data: &verdict.data,
    }
}
