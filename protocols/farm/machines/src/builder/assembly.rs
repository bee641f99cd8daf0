use super::Incomplete;
use super::streams::Streams;
use crate::Error;
use crate::ledger::{Ledger, Standing};
use crate::sums::{Content, Data, Likeness, Sums};
use crate::wire::{Kind, Verdict};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use hodo_machine::{Instant, Peer};

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
}

/// The effect of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Others are missing.
    Waits,
    /// It was the last.
    Completes,
    /// The event went on without it.
    Late,
    /// The event went on without it, and has its verdict.
    TooLate,
    /// Another fragment of its source has its number: this one is handed back.
    Conflict(Content, Bytes),
    /// It was here already.
    Duplicate,
    /// The event had its verdict already: there is nothing to wait for.
    Decided,
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
    sources: u32,
    /// For whom the events wait that lack fragments.
    pub(super) streams: Streams,
    ledger: Ledger,
    events: BTreeMap<Key, InHand>,
    /// Bytes of each source's fragments.
    in_hand: Vec<u64>,
    /// Checksums of fragments.
    sums: Sums,
}

#[derive(Debug)]
struct InHand {
    fragments: Vec<Fragment>,
    missing: u32,
    is_given: bool,
    claims: Vec<Claim>,
}

#[derive(Debug, Clone, Default)]
enum Fragment {
    #[default]
    Missing,
    /// The source has none of this event.
    Skipped,
    /// It came when the event had gone on without it.
    Late,
    Here {
        payload: Bytes,
        length: u32,
        partial: bool,
    },
}

impl Assembly {
    pub(super) fn new(sources: u32, streams: Streams) -> Self {
        Assembly {
            sources,
            streams,
            ledger: Ledger::default(),
            events: BTreeMap::new(),
            in_hand: alloc::vec![0; sources as usize],
            sums: Sums::default(),
        }
    }

    /// Events of which fragments are awaited, and all that are here.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.streams.open().len(), self.events.len())
    }

    /// Opens a run that the controller has opened, in the place of the oldest one if there are many.
    pub(crate) fn open(&mut self, run: u32) {
        // Where that fails there is too much in hand of others, and fragments of it are refused.
        let _ = self.ledger.open(run);
    }

    /// Returns whether any run is open.
    pub(crate) fn has_runs(&self) -> bool {
        self.ledger.runs().next().is_some()
    }

    /// Bytes of a source's fragments.
    pub(crate) fn in_hand(&self, source: u32) -> u64 {
        self.in_hand.get(source as usize).copied().unwrap_or(0)
    }

    /// Returns the state of a fragment that comes piece by piece.
    pub(crate) fn knows(&self, (run, event): Key, claim: &Claim) -> Known {
        match self.events.get(&(run, event)) {
            Some(in_hand) if matches!(in_hand.fragments[claim.source as usize], Fragment::Missing) => Known::No,
            Some(_) => Known::Here,
            None if self.ledger.decided(run).is_some_and(|decided| decided.contains(event)) => Known::Decided,
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
    ) -> Result<Outcome, Error> {
        let index = claim.source as usize;
        let held = self.in_hand.get_mut(index).ok_or(Error::Unexpected { kind: kind.code() })?;
        let content = if kind == Kind::Skip { Content::Nothing } else { Content::of(&payload) };
        let (standing, _) = self.ledger.offer(claim.source, run, event, Data::Part)?;
        let likeness = self.sums.compare_part((run, event), claim.source, content);
        if !self.events.contains_key(&(run, event)) {
            // The controller knows more than a builder that came later, or that has forgotten it: it is built again.
            match likeness {
                Likeness::Same if standing != Standing::New => return Ok(Outcome::Decided),
                Likeness::Late => return Ok(Outcome::TooLate),
                Likeness::Other => return Ok(Outcome::Conflict(content, payload)),
                Likeness::Same | Likeness::Unknown => {}
            }
            let fragments = alloc::vec![Fragment::Missing; self.sources as usize];
            let event_in_hand = InHand { fragments, missing: self.sources, is_given: false, claims: Vec::new() };
            self.events.insert((run, event), event_in_hand);
            self.streams.begin(now, (run, event));
        }
        let Some(in_hand) = self.events.get_mut(&(run, event)) else { return Ok(Outcome::Decided) };
        let place = &mut in_hand.fragments[index];
        match place {
            Fragment::Missing => {}
            Fragment::Here { .. } | Fragment::Skipped if likeness == Likeness::Other => {
                return Ok(Outcome::Conflict(content, payload));
            }
            Fragment::Here { .. } | Fragment::Skipped | Fragment::Late => {
                in_hand.claims.push(claim);
                return Ok(Outcome::Duplicate);
            }
        }
        in_hand.claims.push(claim);
        if in_hand.is_given {
            // So that it is late once, and a duplicate from then on.
            *place = Fragment::Late;
            return Ok(Outcome::Late);
        }
        self.sums.enter_part((run, event), claim.source, content);
        *place = match kind {
            Kind::Skip => Fragment::Skipped,
            _ => {
                *held += u64::from(claim.length) + HELD;
                Fragment::Here { payload, length: claim.length, partial: kind == Kind::Partial }
            }
        };
        in_hand.missing -= 1;
        Ok(if in_hand.waits_for_any(&self.streams) { Outcome::Waits } else { Outcome::Completes })
    }

    /// Compares a fragment with what its source has under this number.
    pub(crate) fn compare(&self, key: Key, source: u32, content: Content) -> Likeness {
        self.sums.compare_part(key, source, content)
    }

    /// Notes that an event has nothing of a source, whatever comes.
    pub(crate) fn was_late(&mut self, key: Key, source: u32) {
        self.sums.enter_part(key, source, Content::Missing);
    }

    /// Forgets what a source has under this number, and returns it.
    pub(crate) fn forget(&mut self, key: Key, source: u32) -> Content {
        let before = self.sums.part(key, source);
        self.sums.enter_part(key, source, Content::Unknown);
        before
    }

    /// Counts the bytes of a fragment that is not of the event of its number, until [`Assembly::apart_is_over`].
    pub(crate) fn set_apart(&mut self, claim: &Claim) {
        if let Some(held) = self.in_hand.get_mut(claim.source as usize) {
            *held += u64::from(claim.length) + HELD;
        }
    }

    /// Forgets such a fragment, which is stored.
    pub(crate) fn apart_is_over(&mut self, claim: &Claim) {
        if let Some(held) = self.in_hand.get_mut(claim.source as usize) {
            *held = held.saturating_sub(u64::from(claim.length) + HELD);
        }
    }

    /// Forgets the claims of an event that are of connections which are gone.
    pub(crate) fn retain_claims(&mut self, key: Key, is_alive: impl FnMut(&Claim) -> bool) {
        if let Some(in_hand) = self.events.get_mut(&key) {
            in_hand.claims.retain(is_alive);
        }
    }

    /// Returns whether all that an event lacks was passed by its sources, or is of some that are not waited for.
    pub(crate) fn is_passed(&self, key: Key) -> bool {
        let lacks = |in_hand: &InHand| in_hand.lacking().any(|source| self.streams.may_come(source, key));
        !self.events.get(&key).is_some_and(lacks)
    }

    /// Returns the events that lack only fragments of sources that are not waited for.
    pub(crate) fn released(&self) -> Vec<Key> {
        let is_released =
            |key: &&Key| self.events.get(key).is_some_and(|in_hand| !in_hand.waits_for_any(&self.streams));
        self.streams.open().keys().filter(is_released).copied().collect()
    }

    /// Returns the sources for which the first event that is open waits.
    pub(crate) fn waited_for(&self) -> Vec<u32> {
        let first = self.streams.open().keys().next().and_then(|key| self.events.get(key));
        let lacking = first.into_iter().flat_map(InHand::lacking);
        lacking.filter(|source| self.streams.waits_for(*source)).collect()
    }

    /// Makes an event of what is here of it.
    pub(crate) fn build(&mut self, key: Key, incomplete: Incomplete) -> Option<Built> {
        let in_hand = self.events.get_mut(&key).filter(|in_hand| !in_hand.is_given)?;
        in_hand.is_given = true;
        self.streams.end(key);
        let (mut size, mut missing, mut is_whole) = (0, 0, true);
        for fragment in &in_hand.fragments {
            match fragment {
                Fragment::Here { payload, partial, .. } => {
                    size += FRAGMENT + payload.len();
                    is_whole &= !partial;
                }
                Fragment::Missing | Fragment::Skipped | Fragment::Late => missing += 1,
            }
        }
        if missing == self.sources || (missing > 0 && incomplete == Incomplete::Drop) {
            in_hand.let_go();
            return Some(Built { kind: Kind::Skip, payload: Bytes::new(), missing });
        }
        let mut bytes = BytesMut::with_capacity(size);
        for (number, fragment) in (0..).zip(&in_hand.fragments) {
            if let Fragment::Here { payload, .. } = fragment {
                put(number, payload, &mut bytes);
            }
        }
        in_hand.let_go();
        let kind = if missing == 0 && is_whole { Kind::Event } else { Kind::Partial };
        Some(Built { kind, payload: bytes.freeze(), missing })
    }

    /// Enters the verdict on an event, and returns the claims of those who are to be told, and whether each was late: who was
    /// has no part in it.
    pub(crate) fn decide(&mut self, (run, event): Key, verdict: Verdict) -> Vec<(Claim, bool)> {
        let Some(InHand { fragments, claims, .. }) = self.events.remove(&(run, event)) else { return Vec::new() };
        self.ledger.decide(run, event, verdict);
        for ((source, fragment), held) in (0..).zip(&fragments).zip(&mut self.in_hand) {
            match fragment {
                Fragment::Here { length, .. } => *held = held.saturating_sub(u64::from(*length) + HELD),
                Fragment::Missing | Fragment::Late => {
                    self.sums.enter_part((run, event), source, Content::Missing);
                }
                Fragment::Skipped => {}
            }
        }
        let was_late = |claim: &Claim| matches!(fragments.get(claim.source as usize), Some(Fragment::Late));
        claims.into_iter().map(|claim| (claim, was_late(&claim))).collect()
    }
}

/// Returns an event of one fragment.
pub(crate) fn alone(source: u32, payload: &Bytes) -> Bytes {
    let mut bytes = BytesMut::with_capacity(FRAGMENT + payload.len());
    put(source, payload, &mut bytes);
    bytes.freeze()
}

fn put(source: u32, payload: &Bytes, into: &mut BytesMut) {
    into.put_u32_le(source);
    into.put_u32_le(payload.len() as u32);
    into.put_slice(payload);
}

impl InHand {
    /// Returns the sources of which it has nothing.
    fn lacking(&self) -> impl Iterator<Item = u32> {
        (0..)
            .zip(&self.fragments)
            .filter(|(_, fragment)| matches!(fragment, Fragment::Missing))
            .map(|(source, _)| source)
    }

    /// Returns whether it lacks a fragment of a source that is waited for.
    fn waits_for_any(&self, streams: &Streams) -> bool {
        let missing = self.missing as usize;
        missing > streams.not_waited_for() || self.lacking().any(|source| streams.waits_for(source))
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
