mod run;

use crate::Error;
use crate::wire::Verdict;
use alloc::vec::Vec;
use core::ops::Range;
use run::Run;

/// Ranges of a run's numbers that are kept apart, if nothing else is said.
const RANGES_MAX: usize = 65_536;

/// Which events are in hand, and which have their verdict: each run's own.
///
/// The numbers of a run may have gaps, of any stride. Each is known for itself as long as there are not too many of them; then the
/// lowest are merged, up to the position of the connected source that is furthest behind. Of a merged number only is known that it
/// was passed: [`Standing::Passed`].
#[derive(Debug, Clone)]
pub struct Ledger {
    runs: Vec<Run>,
    ranges_max: usize,
    counts: Counts,
    /// The last run that was forgotten: neither it nor one before it may come again.
    forgotten: Option<u32>,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger::with_ranges(RANGES_MAX)
    }
}

/// How an event stands that is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was not known.
    New,
    /// It is here, without a verdict.
    InHand,
    /// It has its verdict.
    Decided,
    /// The number was passed: whether the event came is no longer known.
    Passed,
}

/// The balance: what came in has exactly one verdict, or is in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Events that came in, each once.
    pub taken_in: u64,
    /// Stored for good.
    pub accepted: u64,
    /// Not kept.
    pub rejected: u64,
    /// Stored apart after too many nodes failed over them.
    pub quarantined: u64,
    /// Given up because fragments were missing.
    pub incomplete: u64,
    /// Events offered again; counted nowhere else.
    pub duplicates: u64,
    /// Events offered under numbers that other data has; counted nowhere else.
    pub conflicts: u64,
}

impl Counts {
    /// Events with a verdict.
    #[must_use]
    pub const fn decided(&self) -> u64 {
        self.accepted + self.rejected + self.quarantined + self.incomplete
    }

    /// Events without one.
    #[must_use]
    pub const fn in_hand(&self) -> u64 {
        self.taken_in - self.decided()
    }

    /// Adds the counts of another thread.
    #[must_use]
    pub const fn plus(&self, other: &Counts) -> Counts {
        Counts {
            taken_in: self.taken_in + other.taken_in,
            accepted: self.accepted + other.accepted,
            rejected: self.rejected + other.rejected,
            quarantined: self.quarantined + other.quarantined,
            incomplete: self.incomplete + other.incomplete,
            duplicates: self.duplicates + other.duplicates,
            conflicts: self.conflicts + other.conflicts,
        }
    }

    fn add(&mut self, verdict: Verdict, count: u64) {
        match verdict {
            Verdict::Accepted => self.accepted += count,
            Verdict::Rejected => self.rejected += count,
            Verdict::Quarantined => self.quarantined += count,
            Verdict::Incomplete => self.incomplete += count,
            Verdict::Failed => {}
        }
    }
}

impl Ledger {
    /// Runs whose events are remembered; the oldest one that has no event in hand makes room for one more.
    pub const RUNS_MAX: usize = 8;

    /// Creates a ledger that keeps so many ranges of each run's numbers apart.
    #[must_use]
    pub fn with_ranges(ranges_max: usize) -> Self {
        Ledger { runs: Vec::new(), ranges_max, counts: Counts::default(), forgotten: None }
    }

    /// Enters what an earlier process has decided: how many events have each verdict, and the ranges of all of them, ascending.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`] if the run is over, or too many runs are open at once.
    pub fn recover(
        &mut self,
        run: u32,
        verdicts: &[(Verdict, u64)],
        decided: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<(), Error> {
        let index = self.index(run)?;
        let entry = &mut self.runs[index];
        decided.into_iter().for_each(|range| entry.recover(range));
        for (verdict, count) in verdicts {
            entry.decided_count += count;
            self.counts.taken_in += count;
            self.counts.add(*verdict, *count);
        }
        Ok(())
    }

    /// Opens a run: events of it may be offered. The oldest run without an event in hand makes room.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`] if the run is over, or too many runs have events in hand.
    pub fn open(&mut self, run: u32) -> Result<(), Error> {
        self.index(run).map(|_| ())
    }

    /// Returns the numbers of the runs that are open.
    pub fn runs(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs.iter().map(|entry| entry.number)
    }

    /// Closes this run and all before it that are not open: they may not come again.
    pub fn forget(&mut self, run: u32) {
        self.forgotten = self.forgotten.max(Some(run));
    }

    /// Takes an event of a source in, where it is new.
    ///
    /// # Errors
    /// [`Error::NoNumber`] for `u64::MAX`, and [`Error::NoSuchRun`] if the run is not open: nothing is changed then.
    #[inline]
    pub fn offer(&mut self, source: u32, run: u32, event: u64) -> Result<Standing, Error> {
        if event == u64::MAX {
            return Err(Error::NoNumber);
        }
        let index = self.runs.iter().rposition(|entry| entry.number == run).ok_or(Error::NoSuchRun { run })?;
        let standing = self.runs[index].offer(source, event);
        Ok(self.counted(standing))
    }

    /// Takes in the event that was offered last and whose number was passed, where it cannot have come before this process began. The
    /// caller knows that it did not come since. Returns `false`, and takes it for one that came again, if it can.
    pub fn enter_passed(&mut self, run: u32, event: u64) -> bool {
        let is_new = self.run(run).is_some_and(|entry| entry.enter_passed(event));
        self.count_passed(is_new)
    }

    /// Takes in an event that was made in this process and whose number was passed; returns `false` if it is in hand.
    pub fn enter_made(&mut self, run: u32, event: u64) -> bool {
        let is_new = self.run(run).is_some_and(|entry| entry.enter_made(event));
        self.count_passed(is_new)
    }

    /// Notes that a source is not connected: nobody waits for what it has not given.
    pub fn left(&mut self, source: u32) {
        self.runs.iter_mut().for_each(|entry| entry.left(source));
    }

    /// Takes an event in that was made in this process.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`] if the run is over, or too many runs are open at once.
    #[inline]
    pub fn offer_own(&mut self, run: u32, event: u64) -> Result<Standing, Error> {
        let index = self.index(run)?;
        let standing = self.runs[index].enter(event);
        Ok(self.counted(standing))
    }

    #[inline]
    fn counted(&mut self, standing: Standing) -> Standing {
        match standing {
            Standing::New => self.counts.taken_in += 1,
            Standing::InHand | Standing::Decided | Standing::Passed => self.counts.duplicates += 1,
        }
        standing
    }

    /// Counts the event that was offered last as new, where it is.
    fn count_passed(&mut self, is_new: bool) -> bool {
        self.counts.duplicates -= u64::from(is_new);
        self.counts.taken_in += u64::from(is_new);
        is_new
    }

    #[inline]
    fn run(&mut self, run: u32) -> Option<&mut Run> {
        self.runs.iter_mut().rev().find(|entry| entry.number == run)
    }

    /// Counts what was offered last as other data under a known number, and not as an event that came again.
    pub fn conflicted(&mut self) {
        self.counts.duplicates -= 1;
        self.counts.conflicts += 1;
    }

    /// Takes back what was offered last under a known number.
    pub fn withdrawn(&mut self) {
        self.counts.duplicates -= 1;
    }

    /// Enters the final verdict on an event in hand.
    #[inline]
    pub fn decide(&mut self, run: u32, event: u64, verdict: Verdict) {
        if self.run(run).is_some_and(|entry| entry.decide(event)) {
            self.counts.add(verdict, 1);
        }
    }

    /// Returns the balance over all runs, those of earlier processes included.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns how many events of a run have their verdict.
    #[must_use]
    pub fn decided(&self, run: u32) -> u64 {
        self.runs.iter().find(|entry| entry.number == run).map_or(0, |entry| entry.decided_count)
    }

    /// Returns how many ranges of numbers are kept apart, of all runs.
    #[must_use]
    #[inline]
    pub(crate) fn ranges(&self) -> usize {
        self.runs.iter().map(Run::ranges).sum()
    }

    /// Tells whether an event has its verdict, or its number was passed.
    #[must_use]
    pub fn is_decided(&self, run: u32, event: u64) -> bool {
        let entry = self.runs.iter().find(|entry| entry.number == run);
        entry.is_some_and(|entry| entry.is_decided(event))
    }

    #[inline]
    fn index(&mut self, run: u32) -> Result<usize, Error> {
        if let Some(index) = self.runs.iter().rposition(|entry| entry.number == run) {
            return Ok(index);
        }
        if self.forgotten.is_some_and(|forgotten| run <= forgotten) {
            return Err(Error::NoSuchRun { run });
        }
        if self.runs.len() >= Self::RUNS_MAX {
            let idle = self.runs.iter().enumerate().filter(|(_, entry)| entry.in_hand == 0);
            let (index, oldest) = idle.min_by_key(|(_, entry)| entry.number).ok_or(Error::NoSuchRun { run })?;
            if oldest.number > run {
                return Err(Error::NoSuchRun { run });
            }
            self.forgotten = self.forgotten.max(Some(oldest.number));
            self.runs.remove(index);
        }
        self.runs.push(Run::new(run, self.ranges_max));
        Ok(self.runs.len() - 1)
    }
}

#[cfg(test)]
mod tests;
