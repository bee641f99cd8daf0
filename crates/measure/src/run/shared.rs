use super::recorder::Tally;
use super::snapshots::Snapshots;
use super::{Progress, Watch};
use crate::statistics::{REPEATS_MIN, estimate};
use crate::{LinkError, Plan, Repeats};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The interval at which a link that waits for the others checks whether the run is to end.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The state that the threads of one run share. No thread waits for another but in a pause: each link runs on until all have closed
/// the repeats that are enough.
pub(super) struct Shared<'a> {
    pub watch: &'a dyn Watch,
    pub plan: &'a Plan,
    /// The snapshots of links for whoever follows the run.
    pub snapshots: Snapshots,
    closed: Mutex<Vec<Vec<Tally>>>,
    enough: AtomicU32,
    halted: AtomicBool,
    /// The latest progress of each link, at the rates of that link alone.
    told: Mutex<Vec<Option<Progress>>>,
    /// How many links are at the meeting, and how many meetings there were.
    meeting: Mutex<(usize, u64)>,
    all_met: Condvar,
}

impl<'a> Shared<'a> {
    pub fn new(watch: &'a dyn Watch, plan: &'a Plan, links: usize) -> Self {
        let enough = match plan.repeats {
            Repeats::Fixed(count) => count.max(1),
            Repeats::Confidence { .. } => u32::MAX,
        };
        Shared {
            watch,
            plan,
            snapshots: Snapshots::new(watch.snapshots(), links),
            closed: Mutex::new(vec![Vec::new(); links]),
            enough: AtomicU32::new(enough),
            halted: AtomicBool::new(false),
            told: Mutex::new(vec![None; links]),
            meeting: Mutex::default(),
            all_met: Condvar::new(),
        }
    }

    /// Returns whether a link may close repeats that turn out not to count, because another link was the one to decide.
    pub fn may_exceed(&self) -> bool {
        matches!(self.plan.repeats, Repeats::Confidence { .. }) && self.closed().len() > 1
    }

    /// Adds a repeat that a link has closed, and decides whether there are enough.
    pub fn close(&self, link: usize, tally: Tally) {
        let mut closed = self.closed();
        closed[link].push(tally);
        let by_all = closed.iter().map(Vec::len).min().unwrap_or(0);
        if let Repeats::Confidence { percent, width, max } = self.plan.repeats {
            // Only the slowest link makes this number grow, so each number is judged once.
            let grown = closed[link].len() == by_all;
            if grown && (by_all >= max.max(1) as usize || narrow(&repeats(&closed), percent, width)) {
                self.enough.fetch_min(by_all as u32, Relaxed);
            }
        }
    }

    /// Returns how many repeats are enough; `u32::MAX` while that is not known.
    pub fn enough(&self) -> u32 {
        self.enough.load(Relaxed)
    }

    /// Halts all links, because one cannot go on.
    pub fn halt(&self) {
        self.halted.store(true, Relaxed);
    }

    pub fn halted(&self) -> bool {
        self.halted.load(Relaxed)
    }

    /// Pauses a link until all of them are paused and the caller of the run has had the machine for itself. The first link's thread lends it.
    ///
    /// # Errors
    /// [`LinkError::Interrupted`] if another link cannot go on, or the user does not want to.
    pub fn pause(&self, first: bool) -> Result<(), LinkError> {
        self.meet()?;
        if first {
            self.watch.paused();
        }
        self.meet()
    }

    /// Waits for all links.
    fn meet(&self) -> Result<(), LinkError> {
        let links = self.closed().len();
        let mut meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        let number = meeting.1;
        meeting.0 += 1;
        if meeting.0 == links {
            *meeting = (0, number + 1);
            self.all_met.notify_all();
        }
        while meeting.1 == number {
            if self.halted() || self.watch.interrupted() {
                return Err(LinkError::Interrupted);
            }
            let waited = self.all_met.wait_timeout(meeting, LOOK_UP).unwrap_or_else(PoisonError::into_inner);
            meeting = waited.0;
        }
        Ok(())
    }

    /// Returns the tally of each link's closed repeats.
    pub fn closed(&self) -> MutexGuard<'_, Vec<Vec<Tally>>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the progress of a link; the first one also reports that of all links to the caller, once each of them has come as far.
    pub fn tell(&self, link: usize, progress: Progress) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told[link] = Some(progress);
        if link > 0 {
            return;
        }
        let as_far = |other: &Option<Progress>| other.filter(|other| progress.warming_up || !other.warming_up);
        let Some(all) = told.iter().map(as_far).collect::<Option<Vec<_>>>() else { return };
        drop(told);
        self.watch.progress(&Progress {
            operations_per_s: all.iter().map(|link| link.operations_per_s).sum(),
            payload_bits_per_s: all.iter().map(|link| link.payload_bits_per_s).sum(),
            ..progress
        });
    }
}

/// Returns the repeats that all links have closed, links taken together: what was done by all, in the longest time of
/// any.
pub(super) fn repeats(closed: &[Vec<Tally>]) -> Vec<Tally> {
    let by_all = closed.iter().map(Vec::len).min().unwrap_or(0);
    (0..by_all).map(|repeat| together(closed.iter().map(|link| link[repeat]))).collect()
}

/// Returns the sum of what several links did in the same repeat, in the longest time of any.
pub(super) fn together(links: impl Iterator<Item = Tally>) -> Tally {
    links.fold(Tally::default(), |sum, link| Tally {
        operations: sum.operations + link.operations,
        payload_bytes: sum.payload_bytes + link.payload_bytes,
        elapsed_s: sum.elapsed_s.max(link.elapsed_s),
    })
}

/// Returns the operations per second of each repeat.
pub(super) fn operations_per_s(repeats: &[Tally]) -> Vec<f64> {
    repeats.iter().map(|tally| tally.operations as f64 / tally.elapsed_s.max(f64::MIN_POSITIVE)).collect()
}

fn narrow(repeats: &[Tally], percent: f64, width: f64) -> bool {
    let found = estimate(&operations_per_s(repeats), percent);
    let is_narrow = |(low, high): (f64, f64)| high - low <= width * found.median;
    repeats.len() >= REPEATS_MIN && found.low.zip(found.high).is_some_and(is_narrow)
}
