//! Data whose numbers are those of other events, or may be: they are compared, stored and told of.

use super::sources::{HELD, giver};
use super::{Controller, Event, Final, Owner};
use crate::Error;
use crate::builder::FRAGMENT;
use crate::ledger::Standing;
use crate::sums::{Content, Likeness};
use crate::supply::Supply;
use crate::wire::{FLAG_CONFLICT, FLAG_DUPLICATE, Role, Token, Verdict};
use bytes::Bytes;
use hodo_machine::{Instant, Peer};

/// Data in quarantine that are remembered, so that they are not stored again.
pub(super) const APART_MAX: usize = 4096;

/// Bytes that the fragments of a small event may take beside them.
const SMALL: u64 = 8 * HELD;

/// Data under a number whose data are not known any more.
#[derive(Debug)]
pub(super) struct Doubt {
    /// The place in the order of verdicts.
    pub(super) sequence: u64,
    run: u32,
    event: u64,
    /// The source or the builder that gave them.
    from: (Role, u32),
    /// The data as they are, whatever they are built of.
    content: Content,
}

impl<S: Supply> Controller<S> {
    /// Returns how an event stands that is known, with data that are not known any more: in doubt where the application may
    /// know them.
    #[cold]
    pub(super) fn doubtful(&mut self, run: u32, event: u64, data: &[u8], (content, anew): (Content, bool)) -> Standing {
        let is_decided = self.ledger.is_decided(run, event);
        let is_apart = self.accounts.apart.contains(&(run, event, Content::of(data)));
        if !is_apart && is_decided && content != Content::Unknown && self.config.uncommitted_max.is_some() {
            return Standing::Doubtful;
        }
        if is_apart || anew {
            return Standing::Conflict;
        }
        self.ledger.duplicate(false);
        if is_decided { Standing::Decided } else { Standing::InHand }
    }

    /// Takes in a fragment for the quarantine, which a builder has in the form of an event that is built of it alone.
    pub(super) fn given_apart(
        &mut self,
        now: Instant,
        (peer, serial): (Peer, u64),
        run: u32,
        event: u64,
        payload: &Bytes,
    ) -> Result<(), Error> {
        let Some(from) = giver(&mut self.lines, peer, serial) else { return Ok(()) };
        from.gives(now);
        let number = payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or(Error::Truncated)?;
        let data = if payload.len() < FRAGMENT { return Err(Error::Truncated) } else { payload.slice(FRAGMENT..) };
        self.ledger.runs().find(|open| *open == run).ok_or(Error::NoSuchRun { run })?;
        let (from, length) = ((Role::Source, number, FLAG_DUPLICATE), payload.len() as u32);
        self.quarantine((peer, serial), (run, event), from, data, length);
        self.lines.check_owed(peer)
    }

    /// Has the fragments of a built event stored that are not the ones which their sources have for it, as far as that is known.
    #[cold]
    pub(super) fn quarantine_built(
        &mut self,
        from: (Peer, u64),
        (run, event): (u32, u64),
        number: u32,
        payload: &Bytes,
    ) {
        let differing = self.ledger.differing(run, event, payload);
        let sources = differing.iter().fold(0, |all, (source, _)| all | 1 << (source % 64));
        let is_apart = self.accounts.apart.contains(&(run, event, Content::of(payload)));
        // Each takes some memory beside its bytes.
        let are_many = differing.len() as u64 * HELD > payload.len() as u64 + SMALL;
        if differing.is_empty() || are_many || is_apart {
            self.keep_apart((run, event), (Role::Builder, number), payload.clone());
        } else {
            for (source, fragment) in differing {
                self.keep_apart((run, event), (Role::Source, source), payload.slice_ref(fragment));
            }
        }
        self.owe(from, self.conflict(run, event).with_sources(sources), payload.len() as u32);
    }

    /// Has data stored whose number is that of another event; who gave so many bytes with them is told when they are committed.
    #[cold]
    pub(super) fn quarantine(
        &mut self,
        from: (Peer, u64),
        (run, event): (u32, u64),
        (role, number, flags): (Role, u32, u8),
        data: Bytes,
        length: u32,
    ) {
        self.keep_apart((run, event), (role, number), data);
        let token = self.conflict(run, event);
        self.owe(from, Token { flags: token.flags | flags, ..token }, length);
    }

    /// Returns the token of other data.
    fn conflict(&self, run: u32, event: u64) -> Token {
        // Where nobody commits, nothing is stored.
        let is_kept = self.config.uncommitted_max.is_some();
        let verdict = if is_kept { Verdict::Quarantined } else { Verdict::Rejected };
        Token::answer(run, event, verdict, FLAG_CONFLICT)
    }

    /// Hands the application data whose number is that of another event, unless they are stored already.
    fn keep_apart(&mut self, (run, event): (u32, u64), from: (Role, u32), data: Bytes) {
        let content = Content::of(&data);
        if self.tell_apart((run, event), from, content) {
            self.store_apart((run, event), from.1, Owner::Other, content, data);
        }
    }

    /// Counts other data, and tells of them where the same are not in quarantine; returns whether that is so.
    fn tell_apart(&mut self, (run, event): (u32, u64), (role, number): (Role, u32), content: Content) -> bool {
        let is_new = self.accounts.apart.insert((run, event, content));
        self.ledger.conflict(is_new);
        if is_new {
            self.events.push_back(Event::Conflict { run, event, role, number });
        }
        is_new
    }

    /// Has data compared by the application, and stored where they are different; who gave them is told when that is committed.
    #[cold]
    pub(super) fn doubt(
        &mut self,
        giver: (Peer, u64),
        (run, event): (u32, u64),
        from: (Role, u32),
        (content, anew): (Content, bool),
        data: Bytes,
    ) {
        let (length, alone) = (data.len() as u32, Content::of(&data));
        self.store_apart((run, event), from.1, Owner::Unknown { anew }, content, data);
        let sequence = self.commits.told;
        self.commits.doubts.push_back(Doubt { sequence, run, event, from, content: alone });
        self.owe(giver, Token::answer(run, event, Verdict::Rejected, FLAG_DUPLICATE), length);
    }

    /// Takes the outcome for the oldest data in doubt.
    pub(super) fn compared(&mut self, likeness: Likeness) {
        let Some(Doubt { sequence, run, event, from, content }) = self.commits.doubts.pop_front() else { return };
        if likeness != Likeness::Other {
            return self.ledger.duplicate(likeness != Likeness::Unknown);
        }
        self.tell_apart((run, event), from, content);
        let token = self.conflict(run, event);
        // Others may wait for the same commit, behind it.
        let place = self.commits.owed.partition_point(|owed| owed.sequence < sequence);
        if let Some(owed) = self.commits.owed.get_mut(place).filter(|owed| owed.sequence == sequence) {
            owed.token = token;
        }
    }

    /// Hands the application data that are not those of their number's event, or perhaps not.
    fn store_apart(&mut self, (run, event): (u32, u64), number: u32, owner: Owner, content: Content, data: Bytes) {
        self.commits.told += 1;
        if self.config.uncommitted_max.is_some() {
            self.commits.uncommitted.add(self.commits.told, &data);
        }
        let (verdict, partial, node, attempts) = (Verdict::Quarantined, false, number, 0);
        let last = Final { run, event, verdict, partial, node, attempts, owner, content, data };
        self.events.push_back(Event::Verdict(last));
        self.commit_at_once();
    }
}
