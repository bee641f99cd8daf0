use crate::sums::{Content, Data, Likeness, Sums};
use crate::wire::Verdict;
use crate::{Error, Ranges};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// Gaps that one source may open in the numbers of a run.
const GAPS_MAX: usize = 65_536;
/// Gaps of a run with which a source may open no more than its reserve.
const GAPS_ALL_MAX: usize = 8 * GAPS_MAX;
/// Gaps that each source may open however many the others have opened.
const GAPS_RESERVED: usize = 64;
/// Sources of a run that may have gaps.
const GAPPED_MAX: usize = 4096;

/// Which events are in hand, and which have their verdict: each run's own.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    runs: Vec<Run>,
    sums: Sums,
    counts: Counts,
    /// The last run that was forgotten: neither it nor one before it may come again.
    forgotten: Option<u32>,
}

#[derive(Debug, Clone, Default)]
struct Run {
    number: u32,
    /// Whether events of it were made in this process: their data are compared with nobody's.
    has_own: bool,
    /// Whether events of it came to this process, or were made in it.
    has_begun: bool,
    seen: Ranges,
    decided: Ranges,
    in_hand: u64,
    gaps: Gaps,
}

/// The sources that have opened the gaps of a run: each is bounded by its own, so that none can end the run of another.
#[derive(Debug, Clone, Default)]
struct Gaps {
    /// The first event behind each gap, and the source that gave it.
    openers: BTreeMap<u64, u32>,
    /// Gaps of each source that has any.
    by_source: BTreeMap<u32, usize>,
}

impl Gaps {
    /// Returns whether a source may open one more.
    fn has_room(&self, source: u32) -> bool {
        match self.by_source.get(&source) {
            None => self.by_source.len() < GAPPED_MAX,
            Some(own) => *own < GAPS_MAX && (*own < GAPS_RESERVED || self.openers.len() < GAPS_ALL_MAX),
        }
    }

    fn open(&mut self, event: u64, source: u32) {
        self.openers.insert(event, source);
        *self.by_source.entry(source).or_default() += 1;
    }

    /// Enters an event before the one at which a gap ends: the gap is smaller, or closed.
    fn fill(&mut self, event: u64, is_closed: bool) {
        let Some(source) = event.checked_add(1).and_then(|behind| self.openers.remove(&behind)) else { return };
        if !is_closed {
            self.openers.insert(event, source);
        } else if let Some(own) = self.by_source.get_mut(&source) {
            *own -= 1;
            if *own == 0 {
                self.by_source.remove(&source);
            }
        }
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
    /// Another event has its number, which is here or has its verdict: this one is not in the balance.
    Conflict,
    /// It is known, but its data are not, or cannot be compared: it is counted once that is over.
    Doubtful,
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
    /// Those of them that could not be compared with what was given before.
    pub unchecked: u64,
    /// Other data under the number of an event that was there; counted nowhere else.
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
            unchecked: self.unchecked + other.unchecked,
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

    /// Creates a ledger that has so many bytes for the checksums by which data are compared.
    #[must_use]
    pub fn with_memory(bytes: usize) -> Self {
        Ledger { sums: Sums::new(bytes), ..Ledger::default() }
    }

    /// Enters what an earlier process has decided.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`] if the run is over, or too many runs are open at once.
    pub fn recover(&mut self, run: u32, verdict: Verdict, decided: &[Range<u64>]) -> Result<(), Error> {
        let index = self.index(run)?;
        let entry = &mut self.runs[index];
        let before = entry.decided.count();
        for range in decided {
            entry.seen.insert_range(range.clone());
            entry.decided.insert_range(range.clone());
        }
        let count = entry.decided.count() - before;
        self.counts.taken_in += count;
        self.counts.add(verdict, count);
        Ok(())
    }

    /// Enters the data of an event that an earlier process has decided, so that what comes under its number is compared.
    pub fn recover_content(&mut self, run: u32, event: u64, content: Content) {
        self.sums.enter_content(run, event, content);
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

    /// Returns the highest number of a run of which events came to this process.
    pub(crate) fn newest_begun(&self) -> Option<u32> {
        self.runs.iter().filter(|entry| entry.has_begun).map(|entry| entry.number).max()
    }

    /// Closes this run and all before it that are not open: they may not come again.
    pub fn forget(&mut self, run: u32) {
        self.forgotten = self.forgotten.max(Some(run));
    }

    /// Takes an event of a source in, where it is new, and returns what of its data is compared with what comes later. A
    /// source's events may have so many gaps at most, and an event that is refused changes nothing.
    ///
    /// # Errors
    /// [`Error::NoNumber`] for `u64::MAX`, [`Error::TooManyGaps`] if a gap would be one too many, and
    /// [`Error::NoSuchRun`] if the run is not open.
    #[inline]
    pub fn offer(&mut self, source: u32, run: u32, event: u64, data: Data<'_>) -> Result<(Standing, Content), Error> {
        if event == u64::MAX {
            return Err(Error::NoNumber);
        }
        let index = self.runs.iter().rposition(|entry| entry.number == run).ok_or(Error::NoSuchRun { run })?;
        let entry = &mut self.runs[index];
        if !entry.seen.contains(event) {
            let follows = event.checked_sub(1).is_some_and(|before| entry.seen.contains(before));
            if entry.seen.contains(event + 1) {
                entry.gaps.fill(event, follows);
            } else if !follows {
                if !entry.gaps.has_room(source) {
                    return Err(Error::TooManyGaps { max: GAPS_MAX });
                }
                entry.gaps.open(event, source);
            }
        }
        if self.enter(index, event) {
            return Ok((Standing::New, self.sums.enter(run, event, data)));
        }
        let entry = &self.runs[index];
        let standing = match self.sums.compare(run, event, data) {
            Likeness::Other => Standing::Conflict,
            Likeness::Unknown if entry.has_own => Standing::Conflict,
            Likeness::Unknown => return Ok((Standing::Doubtful, data.content())),
            Likeness::Same | Likeness::Late => {
                self.counts.duplicates += 1;
                if entry.decided.contains(event) { Standing::Decided } else { Standing::InHand }
            }
        };
        Ok((standing, Content::Unknown))
    }

    /// Returns the fragments of a built event that are not known to be those which their sources have for it, each with its
    /// source; none where nothing is known of any.
    pub(crate) fn differing<'a>(&self, run: u32, event: u64, payload: &'a [u8]) -> Vec<(u32, &'a [u8])> {
        self.sums.differing(run, event, payload)
    }

    /// Returns the sources of the fragments without which an event is known to have gone on, as [`Token::with_sources`] has them.
    ///
    /// [`Token::with_sources`]: crate::wire::Token::with_sources
    pub(crate) fn late(&self, run: u32, event: u64, payload: &[u8]) -> u64 {
        self.sums.late(run, event, payload)
    }

    /// Counts data that came under the number of another event, for the first time or again.
    pub fn conflict(&mut self, is_new: bool) {
        *(if is_new { &mut self.counts.conflicts } else { &mut self.counts.duplicates }) += 1;
    }

    /// Counts data that were in doubt and are a duplicate, as far as that could be told.
    pub fn duplicate(&mut self, is_checked: bool) {
        self.counts.duplicates += 1;
        self.counts.unchecked += u64::from(!is_checked);
    }

    /// Returns whether an event has its verdict.
    pub fn is_decided(&self, run: u32, event: u64) -> bool {
        self.decided(run).is_some_and(|decided| decided.contains(event))
    }

    /// Takes an event in that was made in this process, and returns whether it is new.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`] if the run is over, or too many runs are open at once.
    #[inline]
    pub fn offer_own(&mut self, run: u32, event: u64) -> Result<bool, Error> {
        let index = self.index(run)?;
        self.runs[index].has_own = true;
        Ok(self.enter(index, event))
    }

    /// Enters an event, and returns whether it is new.
    #[inline]
    fn enter(&mut self, index: usize, event: u64) -> bool {
        let entry = &mut self.runs[index];
        let is_new = entry.seen.insert(event);
        if is_new {
            entry.has_begun = true;
            entry.in_hand += 1;
            self.counts.taken_in += 1;
        }
        is_new
    }

    /// Enters the final verdict on an event in hand.
    #[inline]
    pub fn decide(&mut self, run: u32, event: u64, verdict: Verdict) {
        let Some(entry) = self.runs.iter_mut().rev().find(|entry| entry.number == run) else { return };
        if entry.decided.insert(event) {
            entry.in_hand = entry.in_hand.saturating_sub(1);
            self.counts.add(verdict, 1);
        }
    }

    /// Returns the balance over all runs, those of earlier processes included.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the events of a run that have their verdict.
    #[must_use]
    pub fn decided(&self, run: u32) -> Option<&Ranges> {
        self.runs.iter().find(|entry| entry.number == run).map(|entry| &entry.decided)
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
        self.runs.push(Run { number: run, ..Run::default() });
        Ok(self.runs.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers an event whose data follow from its number.
    fn offer(ledger: &mut Ledger, source: u32, run: u32, event: u64) -> Result<Standing, Error> {
        ledger.offer(source, run, event, Data::Event(&event.to_le_bytes())).map(|(standing, _)| standing)
    }

    fn stands(ledger: &mut Ledger, event: u64, data: Data<'_>) -> Standing {
        ledger.offer(1, 1, event, data).unwrap().0
    }

    #[test]
    fn other_data_under_a_number_are_no_duplicate_whether_it_is_decided_or_not() {
        let mut ledger = opened([1]);
        for event in 0..4 {
            assert_eq!(offer(&mut ledger, 0, 1, event), Ok(Standing::New));
        }
        ledger.decide(1, 0, Verdict::Accepted);
        ledger.decide(1, 1, Verdict::Rejected);
        for event in 0..4 {
            assert_eq!(stands(&mut ledger, event, Data::Event(b"other")), Standing::Conflict);
            let again = if event < 2 { Standing::Decided } else { Standing::InHand };
            assert_eq!(offer(&mut ledger, 1, 1, event), Ok(again), "the first data stay those of the number");
            assert_eq!(stands(&mut ledger, event, Data::Nothing), again, "nothing is lost with it");
        }
        let counts = ledger.counts();
        assert_eq!((counts.taken_in, counts.decided(), counts.in_hand()), (4, 2, 2));
        assert_eq!(
            (counts.conflicts, counts.duplicates, counts.unchecked),
            (0, 8, 0),
            "who has them stored counts them"
        );
    }

    #[test]
    fn what_cannot_be_compared_is_in_doubt_and_counted_when_that_is_over() {
        let mut ledger = opened([1]);
        ledger.recover(1, Verdict::Rejected, &[0..1, 1..2]).unwrap();
        assert_eq!(offer(&mut ledger, 0, 1, 0), Ok(Standing::Doubtful), "an earlier process knew its data");
        assert_eq!(stands(&mut ledger, 2, Data::Part), Standing::New);
        assert_eq!(offer(&mut ledger, 0, 1, 2), Ok(Standing::Doubtful));
        assert_eq!([0, 2].map(|event| ledger.is_decided(1, event)), [true, false]);
        assert_eq!(ledger.counts().duplicates, 0);
        ledger.duplicate(false);
        ledger.duplicate(true);
        assert_eq!((ledger.counts().duplicates, ledger.counts().unchecked, ledger.counts().conflicts), (2, 1, 0));
        ledger.recover_content(1, 1, Content::of(b"abc"));
        assert_eq!(stands(&mut ledger, 1, Data::Event(b"abc")), Standing::Decided);
        assert_eq!(stands(&mut ledger, 1, Data::Event(b"abd")), Standing::Conflict, "where it has told of them");
    }

    #[test]
    fn nobody_gives_an_event_that_was_made_here() {
        let mut ledger = opened([1]);
        assert_eq!(ledger.offer_own(1, 5), Ok(true));
        assert_eq!(offer(&mut ledger, 0, 1, 5), Ok(Standing::Conflict));
        assert_eq!(offer(&mut ledger, 0, 1, 6), Ok(Standing::New));
        assert_eq!(ledger.offer_own(1, 6), Ok(false));
    }

    #[test]
    fn every_event_has_one_verdict() {
        let mut ledger = Ledger::default();
        ledger.recover(1, Verdict::Accepted, &[0..2, 5..6]).unwrap();
        assert_eq!(offer(&mut ledger, 0, 1, 1), Ok(Standing::Doubtful));
        assert_eq!(offer(&mut ledger, 0, 1, 2), Ok(Standing::New));
        assert_eq!(offer(&mut ledger, 0, 1, 2), Ok(Standing::InHand));
        ledger.decide(1, 2, Verdict::Rejected);
        ledger.decide(1, 2, Verdict::Accepted);
        let counts = ledger.counts();
        assert_eq!((counts.taken_in, counts.accepted, counts.rejected, counts.duplicates), (4, 3, 1, 1));
        assert_eq!(counts.in_hand(), 0);
    }

    fn opened(runs: impl IntoIterator<Item = u32>) -> Ledger {
        let mut ledger = Ledger::default();
        runs.into_iter().for_each(|run| ledger.open(run).unwrap());
        ledger
    }

    /// Opens gaps as a source until that is refused, and returns the reason.
    fn opens_gaps(ledger: &mut Ledger, source: u32, from: u64) -> Option<Error> {
        (0..).find_map(|number| offer(ledger, source, 1, from + number * 2).err())
    }

    #[test]
    fn gaps_and_runs_are_bounded() {
        let mut ledger = opened([1]);
        assert_eq!(opens_gaps(&mut ledger, 0, 0), Some(Error::TooManyGaps { max: GAPS_MAX }));
        let mut ledger = Ledger::default();
        for run in 0..100 {
            ledger.open(run).unwrap();
            assert_eq!(offer(&mut ledger, 0, run, 1), Ok(Standing::New));
            ledger.decide(run, 1, Verdict::Rejected);
        }
        assert_eq!(ledger.open(3), Err(Error::NoSuchRun { run: 3 }), "a run that is forgotten must not come again");
        assert_eq!(ledger.runs.len(), Ledger::RUNS_MAX);
    }

    #[test]
    fn a_gap_can_be_filled_when_there_are_as_many_as_may_be() {
        let mut ledger = opened([1]);
        opens_gaps(&mut ledger, 0, 0);
        assert_eq!(offer(&mut ledger, 0, 1, 1), Ok(Standing::New));
        assert_eq!(offer(&mut ledger, 0, 1, 1_000_000), Ok(Standing::New), "that made room");
    }

    #[test]
    fn a_source_with_too_many_gaps_takes_no_room_from_the_others() {
        let mut ledger = opened([1]);
        for rogue in 10..30 {
            opens_gaps(&mut ledger, rogue, u64::from(rogue) << 32);
        }
        // Two that share their numbers, one of them ahead.
        for event in 0..2_000_u64 {
            let ahead = event ^ 1;
            assert_eq!(offer(&mut ledger, (ahead % 2) as u32, 1, ahead), Ok(Standing::New));
        }
        let Gaps { openers, by_source } = &ledger.runs[0].gaps;
        assert!(openers.len() <= GAPS_ALL_MAX + 30 * GAPS_RESERVED, "{}", openers.len());
        assert_eq!(by_source.values().sum::<usize>(), openers.len());
        assert!(!by_source.contains_key(&0) || by_source[&0] == 1, "what is closed is nobody's");
    }

    #[test]
    fn an_event_of_a_run_that_nobody_has_opened_is_refused_and_changes_nothing() {
        let mut ledger = opened([1]);
        offer(&mut ledger, 0, 1, 0).unwrap();
        for run in 100..200 {
            assert_eq!(offer(&mut ledger, 7, run, 0), Err(Error::NoSuchRun { run }));
        }
        assert_eq!((ledger.runs.len(), ledger.counts().taken_in), (1, 1));
        assert_eq!(offer(&mut ledger, 0, 1, 1), Ok(Standing::New));
    }

    #[test]
    fn a_run_that_was_forgotten_is_not_begun_anew() {
        let mut ledger = Ledger::default();
        for run in [9, 1, 2, 3, 4, 5, 6, 7, 10, 11] {
            ledger.open(run).unwrap();
            assert_eq!(offer(&mut ledger, 0, run, 0), Ok(Standing::New));
            ledger.decide(run, 0, Verdict::Accepted);
        }
        for run in [1, 2] {
            assert_eq!(ledger.open(run), Err(Error::NoSuchRun { run }));
            assert_eq!(offer(&mut ledger, 0, run, 0), Err(Error::NoSuchRun { run }));
        }
        assert_eq!(offer(&mut ledger, 0, 9, 0), Ok(Standing::Decided));
        assert_eq!(offer(&mut ledger, 0, 9, u64::MAX), Err(Error::NoNumber));
    }
}
