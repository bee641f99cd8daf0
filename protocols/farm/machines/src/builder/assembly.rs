use super::Incomplete;
use super::sources::{Sources, Waits};
use crate::Error;
use crate::ledger::{Ledger, Standing};
use crate::sums::{self, Sums};
use crate::wire::{FLAG_WITHOUT, Kind, Verdict};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use core::time::Duration;
use hodo_machine::{Instant, Peer, Timers};

/// Bytes before each fragment of a built event: the source's number and the fragment's length.
pub const FRAGMENT: usize = 8;

/// Bytes that a fragment takes beside its payload.
pub(crate) const HELD: u64 = 64;

/// A run and the number of an event in it.
pub(crate) type Key = (u32, u64);

/// A fragment that awaits its token: who has sent it, and over which connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) source: u32,
    pub(crate) peer: Peer,
    pub(crate) serial: u64,
    pub(crate) length: u32,
    /// Flags of the token that it gets: [`FLAG_WITHOUT`].
    pub(crate) flags: u8,
}

/// The effect of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Others are missing.
    Waits,
    /// It was the last.
    Completes,
    /// The event went on without it.
    Late,
    /// It was here already.
    Duplicate,
    /// The event had its verdict already: there is nothing to wait for.
    Decided,
    /// The event has its verdict, without this fragment.
    TooLate,
    /// The source had given other data under this number.
    Conflict,
}

/// The state of a fragment before it is taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing.
    No,
    /// It is here.
    Here,
    /// The event has its verdict.
    Decided,
}

/// An event that is made of its fragments, to be given on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) kind: Kind,
    pub(crate) payload: Bytes,
    /// Fragments that it lacks.
    pub(crate) missing: u32,
}

/// Events whose fragments come, and those that wait for their verdict.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(super) sources: Sources,
    count: u32,
    patience: Duration,
    ledger: Ledger,
    events: BTreeMap<Key, InHand>,
    /// When to look again whether the fragments of an event are waited for.
    timers: Timers<Key>,
    /// The fragments of no event have been waited for long enough before this.
    not_before: Instant,
    /// Sources that are connected, or were silent, and count as gone from now on.
    behind: Vec<u32>,
    /// Bytes of each source's fragments, and of those of all.
    in_hand: Vec<u64>,
    all_in_hand: u64,
    /// The checksums of each source's fragments.
    sums: Vec<Sums>,
    open: usize,
}

#[derive(Debug)]
struct InHand {
    fragments: Vec<Fragment>,
    missing: u32,
    is_given: bool,
    /// When the first fragment came, and when a source that has none last passed the number.
    first: Instant,
    passed: Instant,
    /// The source whose fragment it waits for longest, as of the last look.
    longest: usize,
    claims: Vec<Claim>,
    /// Fragments whose number other data of their source has, to be given behind the event: the sources, and the data.
    conflicts: Vec<(u32, Bytes)>,
}

#[derive(Debug, Clone, Default)]
enum Fragment {
    #[default]
    Missing,
    /// The source has none of this event.
    Skipped,
    /// It came when the event had gone on.
    TooLate,
    Here {
        payload: Bytes,
        length: u32,
        partial: bool,
    },
}

impl Assembly {
    pub(crate) fn new(count: u32, waits: Waits, remembered: usize) -> Self {
        let of_each = Sums::new(remembered / count.max(1) as usize);
        Assembly {
            sources: Sources::new(count, waits),
            count,
            patience: waits.patience,
            behind: Vec::new(),
            ledger: Ledger::default(),
            events: BTreeMap::new(),
            timers: Timers::default(),
            not_before: Instant::ZERO,
            in_hand: alloc::vec![0; count as usize],
            all_in_hand: 0,
            sums: alloc::vec![of_each; count as usize],
            open: 0,
        }
    }

    /// Events of which fragments are awaited, and all that are here.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.open, self.events.len())
    }

    /// Opens a run that the controller has opened, in the place of the oldest one if there are many.
    pub(crate) fn open(&mut self, run: u32) {
        // Where that fails there is too much in hand of others, and fragments of it are refused.
        let _ = self.ledger.open(run);
    }

    /// Notes that a source is connected.
    pub(crate) fn joined(&mut self, now: Instant, source: u32, instance: u64) {
        if self.sources.joined(now, source, instance) {
            self.look_again(now, source);
        }
    }

    /// Notes that a source has given its last event.
    pub(crate) fn ended(&mut self, now: Instant, source: u32) {
        self.sources.ended(source);
        self.events.values_mut().for_each(|in_hand| in_hand.passed = now);
        self.look_again(now, source);
    }

    /// Notes that a source is not connected, and why.
    pub(crate) fn left(&mut self, now: Instant, source: u32, error: &Error) {
        self.ledger.left(source);
        self.sources.left(now, source, error);
        self.look_again(now, source);
    }

    /// Looks again until when the events wait that lack a source's fragment.
    fn look_again(&mut self, now: Instant, source: u32) {
        let Assembly { sources, events, timers, .. } = self;
        let lacks = |in_hand: &InHand| !in_hand.is_given && in_hand.lacks(source as usize);
        for (key, in_hand) in events.iter_mut().filter(|(_, in_hand)| lacks(in_hand)) {
            timers.set(*key, in_hand.until(now, *key, sources));
        }
    }

    /// Notes that the stream of a source has come to a number.
    fn reached(&mut self, now: Instant, source: u32, key: Key) {
        self.sources.progress(now, source);
        let Some(passed) = self.sources.reached(source, key) else { return };
        let Assembly { sources, events, timers, .. } = self;
        for (key, in_hand) in events.range_mut(passed) {
            if !in_hand.is_given && in_hand.lacks(source as usize) {
                in_hand.passed = now;
                timers.set(*key, in_hand.until(now, *key, sources));
            }
        }
    }

    /// Returns whether any run is open.
    pub(crate) fn has_runs(&self) -> bool {
        self.ledger.runs().next().is_some()
    }

    /// Bytes of a source's fragments.
    pub(crate) fn in_hand(&self, source: u32) -> u64 {
        self.in_hand.get(source as usize).copied().unwrap_or(0)
    }

    /// Returns the bytes of memory for all events and their fragments.
    pub(crate) fn bytes(&self) -> u64 {
        self.all_in_hand + self.events.len() as u64 * event_bytes(self.count)
    }

    /// Returns how many ranges of numbers are kept apart.
    pub(crate) fn ranges(&self) -> usize {
        self.ledger.ranges()
    }

    /// Returns the state of a fragment that comes piece by piece.
    pub(crate) fn knows(&self, (run, event): Key, claim: &Claim) -> Known {
        match self.events.get(&(run, event)) {
            Some(in_hand) if matches!(in_hand.fragments[claim.source as usize], Fragment::Missing) => Known::No,
            Some(_) => Known::Here,
            None if self.ledger.is_decided(run, event) => Known::Decided,
            None => Known::No,
        }
    }

    /// Replaces the claim of a source that has given a fragment again: it awaits its token once.
    pub(crate) fn claim(&mut self, key: Key, claim: Claim) {
        if let Some(in_hand) = self.events.get_mut(&key) {
            in_hand.claims.retain(|other| other.source != claim.source);
            in_hand.claims.push(claim);
        }
    }

    /// Takes a fragment in.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        (run, event): Key,
        claim: Claim,
        kind: Kind,
        payload: Bytes,
        sum: Option<u32>,
    ) -> Result<Outcome, Error> {
        let index = claim.source as usize;
        let came = self.sums.get(index).ok_or(Error::Unexpected { kind: kind.code() })?.of((run, event));
        let standing = self.ledger.offer(claim.source, run, event)?;
        self.reached(now, claim.source, (run, event));
        let standing = if standing == Standing::Passed { self.passed((run, event), index) } else { standing };
        match standing {
            Standing::Passed => return Ok(Outcome::Conflict),
            Standing::Decided => {
                return Ok(match came {
                    sums::Known::Came(known) if !is_other(known, sum) => Outcome::Decided,
                    // It is not entered: where the answer is lost, it is told the same again.
                    sums::Known::Never => Outcome::TooLate,
                    sums::Known::Came(_) | sums::Known::Forgotten => Outcome::Conflict,
                });
            }
            Standing::InHand => {}
            Standing::New => {
                self.begin(now, (run, event));
            }
        }
        let Some(in_hand) = self.events.get_mut(&(run, event)) else { return Ok(Outcome::Decided) };
        let place = &mut in_hand.fragments[index];
        if !matches!(place, Fragment::Missing) {
            if matches!(came, sums::Known::Came(known) if is_other(known, sum)) {
                return Ok(Outcome::Conflict);
            }
            let flags = if matches!(place, Fragment::TooLate) { FLAG_WITHOUT } else { 0 };
            in_hand.claims.push(Claim { flags, ..claim });
            return Ok(Outcome::Duplicate);
        }
        if in_hand.is_given {
            // So that it is late once, as long as the event is here.
            *place = Fragment::TooLate;
            in_hand.claims.push(Claim { flags: FLAG_WITHOUT, ..claim });
            return Ok(Outcome::Late);
        }
        self.sums[index].enter((run, event), sum);
        in_hand.claims.push(claim);
        *place = match kind {
            Kind::Skip => Fragment::Skipped,
            _ => {
                self.in_hand[index] += u64::from(claim.length) + HELD;
                self.all_in_hand += u64::from(claim.length) + HELD;
                Fragment::Here { payload, length: claim.length, partial: kind == Kind::Partial }
            }
        };
        in_hand.missing -= 1;
        self.sources.lacks_no_more(index);
        if in_hand.missing == 0 {
            return Ok(Outcome::Completes);
        }
        // It waits less long where that is the one for which it would have waited longest.
        if in_hand.missing + 1 == self.count || in_hand.longest == index {
            let until = in_hand.until(now, (run, event), &self.sources);
            self.timers.set((run, event), until);
        }
        Ok(Outcome::Waits)
    }

    /// Begins an event, of which no fragment is here.
    fn begin(&mut self, now: Instant, key: Key) {
        let fragments = alloc::vec![Fragment::Missing; self.count as usize];
        let (missing, claims, conflicts) = (self.count, Vec::new(), Vec::new());
        let in_hand =
            InHand { fragments, missing, is_given: false, first: now, passed: now, longest: 0, claims, conflicts };
        self.events.insert(key, in_hand);
        (0..self.count as usize).for_each(|source| self.sources.lacks(source));
        self.open += 1;
    }

    /// Returns how an event stands whose number was passed, for a fragment of a source.
    fn passed(&mut self, (run, event): Key, index: usize) -> Standing {
        if self.sums[index].of((run, event)) != sums::Known::Never {
            return Standing::Decided;
        }
        let mut others = self.sums.iter().map(|sums| sums.of((run, event)));
        if others.any(|known| matches!(known, sums::Known::Came(_))) {
            return Standing::Decided;
        }
        let is_new = self.sums.iter().all(|sums| sums.of((run, event)) == sums::Known::Never);
        if is_new && self.ledger.enter_passed(run, event) { Standing::New } else { Standing::Passed }
    }

    /// Keeps a fragment whose number other data has, until its event is given on; returns it where that was done.
    pub(crate) fn keep_conflict(&mut self, key: Key, source: u32, payload: Bytes) -> Option<Bytes> {
        match self.events.get_mut(&key).filter(|in_hand| !in_hand.is_given) {
            Some(in_hand) => {
                in_hand.conflicts.push((source, payload));
                None
            }
            None => Some(payload),
        }
    }

    /// Takes the fragments whose number others of an event have.
    pub(crate) fn conflicts(&mut self, key: Key) -> Vec<(u32, Bytes)> {
        self.events.get_mut(&key).map(|in_hand| core::mem::take(&mut in_hand.conflicts)).unwrap_or_default()
    }

    /// Forgets the claims of an event that are of connections which are gone.
    pub(crate) fn retain_claims(&mut self, key: Key, is_alive: impl FnMut(&Claim) -> bool) {
        if let Some(in_hand) = self.events.get_mut(&key) {
            in_hand.claims.retain(is_alive);
        }
    }

    /// Takes an event whose fragments have been waited for long enough.
    pub(crate) fn overdue(&mut self, now: Instant) -> Option<Key> {
        if now < self.not_before {
            return None;
        }
        while let Some(key) = self.timers.pop_due(now) {
            let Some(in_hand) = self.events.get_mut(&key) else { continue };
            let until = in_hand.until(now, key, &self.sources);
            if until.is_none_or(|until| until > now) {
                self.timers.set(key, until);
                continue;
            }
            let lacking = (0..self.count).filter(|source| in_hand.lacks(*source as usize)).collect::<Vec<_>>();
            for source in lacking {
                if self.sources.give_up(source as usize, key) {
                    self.behind.push(source);
                    self.look_again(now, source);
                    self.timers.cancel(key);
                }
            }
            return Some(key);
        }
        None
    }

    /// Takes a source that counts as gone since the last call.
    pub(crate) fn behind(&mut self) -> Option<u32> {
        self.behind.pop()
    }

    /// Waits as long again for the fragments of every event.
    pub(crate) fn wait_on(&mut self, now: Instant) {
        self.not_before = now + self.patience;
    }

    /// Returns when the next event is given up.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.timers.next().map(|deadline| deadline.max(self.not_before))
    }

    /// Makes an event of what is here of it.
    pub(crate) fn build(&mut self, key: Key, incomplete: Incomplete) -> Option<Built> {
        let in_hand = self.events.get_mut(&key).filter(|in_hand| !in_hand.is_given)?;
        in_hand.is_given = true;
        self.open -= 1;
        self.timers.cancel(key);
        let (mut size, mut missing, mut is_whole) = (0, 0, true);
        for (source, fragment) in in_hand.fragments.iter().enumerate() {
            match fragment {
                Fragment::Here { payload, partial, .. } => {
                    size += FRAGMENT + payload.len();
                    is_whole &= !partial;
                }
                Fragment::Missing => {
                    self.sources.missing(source);
                    missing += 1;
                }
                Fragment::Skipped | Fragment::TooLate => missing += 1,
            }
        }
        if missing == self.count || (missing > 0 && incomplete == Incomplete::Drop) {
            in_hand.let_go();
            return Some(Built { kind: Kind::Skip, payload: Bytes::new(), missing });
        }
        let mut bytes = BytesMut::with_capacity(size);
        for (number, fragment) in (0..).zip(&in_hand.fragments) {
            if let Fragment::Here { payload, .. } = fragment {
                put(&mut bytes, number, payload);
            }
        }
        in_hand.let_go();
        let kind = if missing == 0 && is_whole { Kind::Event } else { Kind::Partial };
        Some(Built { kind, payload: bytes.freeze(), missing })
    }

    /// Returns whether an event waits for its verdict.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.events.contains_key(&key)
    }

    /// Counts the bytes of a fragment that is of no event here.
    pub(crate) fn hold(&mut self, claim: &Claim) {
        if let Some(held) = self.in_hand.get_mut(claim.source as usize) {
            *held += u64::from(claim.length) + HELD;
            self.all_in_hand += u64::from(claim.length) + HELD;
        }
    }

    /// Counts them no more.
    pub(crate) fn let_go(&mut self, claim: &Claim) {
        if let Some(held) = self.in_hand.get_mut(claim.source as usize) {
            *held -= u64::from(claim.length) + HELD;
            self.all_in_hand -= u64::from(claim.length) + HELD;
        }
    }

    /// Tells whether a fragment of a known event is other data than its source has given, or came too late.
    pub(crate) fn is_other(&self, key: Key, source: u32, sum: Option<u32>) -> bool {
        match self.sums.get(source as usize).map(|sums| sums.of(key)) {
            Some(sums::Known::Came(known)) => is_other(known, sum),
            Some(sums::Known::Never | sums::Known::Forgotten) => true,
            None => false,
        }
    }

    /// Makes an event of one fragment.
    pub(crate) fn alone(source: u32, payload: &Bytes) -> Bytes {
        let mut bytes = BytesMut::with_capacity(FRAGMENT + payload.len());
        put(&mut bytes, source, payload);
        bytes.freeze()
    }

    /// Enters the verdict on an event, and returns the claims of those who are to be told.
    pub(crate) fn decide(&mut self, (run, event): Key, verdict: Verdict) -> Vec<Claim> {
        let Some(in_hand) = self.events.remove(&(run, event)) else { return Vec::new() };
        self.ledger.decide(run, event, verdict);
        for (fragment, held) in in_hand.fragments.iter().zip(&mut self.in_hand) {
            if let Fragment::Here { length, .. } = fragment {
                *held -= u64::from(*length) + HELD;
                self.all_in_hand -= u64::from(*length) + HELD;
            }
        }
        in_hand.claims
    }
}

/// Returns the bytes of memory for an event of fragments from this many sources, without their payloads.
const fn event_bytes(sources: u32) -> u64 {
    (size_of::<InHand>() + sources as usize * size_of::<Fragment>()) as u64
}

/// Adds a source's fragment to an event.
fn put(bytes: &mut BytesMut, source: u32, payload: &Bytes) {
    bytes.put_u32_le(source);
    bytes.put_u32_le(payload.len() as u32);
    bytes.put_slice(payload);
}

/// Tells whether a source that has given this of an event gives other data now: it may have said that it has none.
fn is_other(known: Option<u32>, sum: Option<u32>) -> bool {
    sum.is_some() && known != sum
}

impl InHand {
    /// Tells whether a source's fragment has not come.
    fn lacks(&self, source: usize) -> bool {
        matches!(self.fragments[source], Fragment::Missing)
    }

    /// Looks until when it waits for the fragments that have not come; `None` for no end.
    fn until(&mut self, now: Instant, key: Key, sources: &Sources) -> Option<Instant> {
        let lacking = (0..self.fragments.len()).filter(|source| self.lacks(*source));
        let until = lacking.map(|source| (sources.until(now, source, key, self.first, self.passed), source)).max();
        let (until, longest) = until?;
        self.longest = longest;
        (until < Instant::MAX).then_some(until)
    }

    /// Drops the fragments, whose bytes the built event has now.
    fn let_go(&mut self) {
        for fragment in &mut self.fragments {
            if let Fragment::Here { payload, .. } = fragment {
                *payload = Bytes::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(source: u32) -> Claim {
        Claim { source, peer: Peer::accepted(source), serial: 1, length: 3, flags: 0 }
    }

    /// Gives a fragment as a source.
    fn give(assembly: &mut Assembly, source: u32, event: u64, data: &'static [u8]) -> Outcome {
        let claim = claim(source);
        let sum = Some(Sums::sum(data));
        assembly
            .offer(Instant::ZERO, (1, event), claim, Kind::Event, Bytes::from_static(data), sum)
            .expect("it is open")
    }

    #[test]
    fn a_fragment_whose_number_was_passed_is_new_or_late_or_known_or_kept_apart() {
        let second = Duration::from_secs(1);
        let waits = Waits { patience: second, behind: second, start_without: None, order: second };
        let mut assembly = Assembly::new(2, waits, 1 << 20);
        assembly.ledger = Ledger::with_ranges(4);
        assembly.open(1);
        for event in (100..5000).step_by(25) {
            assert_eq!(give(&mut assembly, 0, event, b"abc"), Outcome::Waits);
            if event > 125 {
                assert_eq!(give(&mut assembly, 1, event, b"abc"), Outcome::Completes);
            }
            assembly.build((1, event), Incomplete::Forward);
            assembly.decide((1, event), Verdict::Rejected);
        }
        assert_eq!(give(&mut assembly, 0, 150, b"abc"), Outcome::Decided);
        assert_eq!(give(&mut assembly, 0, 150, b"abd"), Outcome::Conflict);
        assert_eq!(give(&mut assembly, 1, 125, b"abc"), Outcome::TooLate);
        assert_eq!(give(&mut assembly, 1, 125, b"abc"), Outcome::TooLate, "each time that it is given");
        assert_eq!(give(&mut assembly, 1, 130, b"abc"), Outcome::Waits);
        assert_eq!(give(&mut assembly, 0, 130, b"abc"), Outcome::Completes);
        assert_eq!(assembly.knows((1, 130), &claim(0)), Known::Here);
    }
}
