use super::nodes::{Dispatched, Origin, PendingEvent, node};
use super::quarantine::Doubt;
use super::sources::{HELD, again, giver};
use super::{Claim, Controller, Event, Final, Owner};
use crate::Error;
use crate::pool::Pool;
use crate::sums::Likeness;
use crate::supply::Supply;
use crate::wire::{FLAG_OUTPUT, Kind, Token, Verdict};
use alloc::collections::VecDeque;
use bytes::Bytes;
use hodo_machine::{Instant, Peer};

/// A verdict that its giver is to be told once it is committed.
#[derive(Debug)]
pub(super) struct Owed {
    pub(super) sequence: u64,
    peer: Peer,
    serial: u64,
    pub(super) token: Token,
    length: u32,
}

/// The verdicts and their commits.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// Verdicts that the application was told.
    pub(super) told: u64,
    /// Verdicts, counted from the start, that will survive whatever happens.
    pub(super) committed: u64,
    pub(super) uncommitted: Uncommitted,
    /// Verdicts that their givers are owed.
    pub(super) owed: VecDeque<Owed>,
    /// Data that the application compares.
    pub(super) doubts: VecDeque<Doubt>,
}

/// The data of verdicts that are not committed, which is to be stored.
#[derive(Debug, Default)]
pub(super) struct Uncommitted {
    /// The verdict's place in order, and its data.
    with_data: VecDeque<(u64, Bytes)>,
    bytes: u64,
}

impl Uncommitted {
    /// Returns the bytes of all of it.
    #[inline]
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub(super) fn add(&mut self, sequence: u64, data: &Bytes) {
        if !data.is_empty() {
            self.bytes += data.len() as u64;
            self.with_data.push_back((sequence, data.clone()));
        }
    }

    /// Drops what is committed; its memory serves the next events, where the application has let go of it.
    #[inline]
    fn commit(&mut self, up_to: u64, pool: &mut Pool) {
        while self.with_data.front().is_some_and(|(sequence, _)| *sequence <= up_to)
            && let Some((_, data)) = self.with_data.pop_front()
        {
            self.bytes -= data.len() as u64;
            pool.give(data);
        }
    }
}

impl<S: Supply> Controller<S> {
    /// Takes a token of a node.
    #[inline]
    pub(super) fn token(&mut self, now: Instant, peer: Peer, token: &Token, data: Bytes) -> Result<(), Error> {
        let credits_max = self.config.credits_max;
        let Some((_, node)) = node(&mut self.lines, peer) else { return Ok(()) };
        if matches!(token.verdict, Verdict::Quarantined | Verdict::Incomplete) {
            return Err(Error::NoVerdict { code: token.verdict.code() });
        }
        let before = node.credits;
        let given = match node.answer(token, credits_max) {
            Ok(given) => given,
            Err(error) => {
                self.counters.unasked += 1;
                return Err(error);
            }
        };
        node.answered_at = now;
        let came = node.credits - before;
        let (number, served) = (node.hello.number, node.served);
        match token.verdict {
            Verdict::Accepted => node.share.accepted += 1,
            Verdict::Failed => node.share.failed += 1,
            Verdict::Rejected | Verdict::Quarantined | Verdict::Incomplete => {}
        }
        let was_alone = core::mem::take(&mut node.alone);
        // A suspect waits for a node that has nothing, and one that is free again may be kept for the next.
        self.suspects_due |= was_alone || node.reserved.is_some();
        self.counters.tokens += 1;
        self.counters.token_bytes += data.len() as u64;
        if !self.even.holds(now, peer, served, came) {
            self.queue.tokens_came(peer, came);
        }
        if was_alone {
            self.queue.unpark(&mut self.lines, peer);
        }
        let Dispatched { held, at, .. } = given;
        let away_ns = now.nanos_since(at);
        self.answers.record(away_ns);
        let at_node_ns = 1000 * (u64::from(token.waited_us) + u64::from(token.decided_us));
        self.even.was_away(away_ns.saturating_sub(at_node_ns));
        if held.stamped {
            self.stages.answer(now, token);
        }
        let verdict = if token.verdict == Verdict::Failed { None } else { Some(token.verdict) };
        match verdict {
            None => self.failed(held, number),
            Some(Verdict::Accepted) => {
                let data = if token.flags & FLAG_OUTPUT == 0 { held.payload.clone() } else { data };
                let attempts = held.deaths.saturating_add(1);
                self.decide(held, Verdict::Accepted, (number, attempts), data);
            }
            Some(verdict) => {
                let attempts = held.deaths.saturating_add(1);
                self.decide(held, verdict, (number, attempts), Bytes::new());
            }
        }
        Ok(())
    }

    /// Notes that the node with this number failed or died over this event.
    pub(super) fn failed(&mut self, mut held: PendingEvent, node: u32) {
        held.deaths = held.deaths.saturating_add(1);
        if held.deaths >= self.config.deaths_max {
            let (data, attempts) = (held.payload.clone(), held.deaths);
            self.decide(held, Verdict::Quarantined, (node, attempts), data);
        } else {
            self.counters.redispatched += 1;
            self.suspects.push_back(held);
            self.suspects_due = true;
        }
    }

    /// Enters the final verdict on an event: by which node, and how often it was given to one.
    #[inline]
    pub(super) fn decide(&mut self, held: PendingEvent, verdict: Verdict, (node, attempts): (u32, u8), data: Bytes) {
        let PendingEvent { run, event, kind, payload, content, origin, .. } = held;
        self.ledger.decide(run, event, verdict);
        self.counters.partial += u64::from(kind == Kind::Partial);
        self.commits.told += 1;
        let (sequence, length) = (self.commits.told, payload.len() as u32);
        let token = Token::answer(run, event, verdict, 0);
        if let Origin::Peer(peer, serial) = origin {
            if let Some(giver) = giver(&mut self.lines, peer, serial) {
                giver.in_hand = giver.in_hand.saturating_sub(u64::from(length) + HELD);
                self.commits.owed.push_back(Owed { sequence, peer, serial, token, length });
            } else {
                self.accounts.orphaned = self.accounts.orphaned.saturating_sub(u64::from(length) + HELD);
            }
        }
        if !self.accounts.claims.is_empty()
            && let Some(claims) = self.accounts.claims.remove(&(run, event))
        {
            self.commits.owed.extend(claims.into_iter().map(|Claim { peer, serial, length, late }| Owed {
                sequence,
                peer,
                serial,
                token: again(run, event, verdict, late),
                length,
            }));
        }
        if data.is_empty() {
            self.lines.pool.give(payload);
        }
        if self.config.uncommitted_max.is_some() {
            self.commits.uncommitted.add(sequence, &data);
        }
        let partial = kind != Kind::Event;
        let last = Final { run, event, verdict, partial, node, attempts, owner: Owner::Itself, content, data };
        self.events.push_back(Event::Verdict(last));
        self.commit_at_once();
    }

    /// Has a giver told of the event that came with so many bytes, once all verdicts are committed that were told before.
    pub(super) fn owe(&mut self, (peer, serial): (Peer, u64), token: Token, length: u32) {
        self.commits.owed.push_back(Owed { sequence: self.commits.told, peer, serial, token, length });
        self.commit(self.commits.committed);
    }

    /// Commits all verdicts where no application does.
    #[inline]
    pub(super) fn commit_at_once(&mut self) {
        if self.config.uncommitted_max.is_none() {
            self.commit(self.commits.told);
        }
    }

    /// Verdicts up to this one are committed: who gave their events is told.
    pub(super) fn commit(&mut self, count: u64) {
        self.commits.committed = self.commits.committed.max(count.min(self.commits.told));
        self.commits.uncommitted.commit(self.commits.committed, &mut self.lines.pool);
        while self.commits.doubts.front().is_some_and(|doubt| doubt.sequence <= self.commits.committed) {
            self.compared(Likeness::Unknown);
        }
        while let Some(owed) = self.commits.owed.front()
            && owed.sequence <= self.commits.committed
            && let Some(Owed { peer, serial, token, length, .. }) = self.commits.owed.pop_front()
        {
            if let Some(giver) = giver(&mut self.lines, peer, serial) {
                giver.answered(length);
                self.lines.say(peer, &token.encode());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_what_is_committed_serves_the_next_events() {
        let (mut uncommitted, mut pool) = (Uncommitted::default(), Pool::default());
        let stored = [1, 2].map(|sequence| {
            let data = pool.take(5000).freeze();
            uncommitted.add(sequence, &data);
            data
        });
        let places = stored.each_ref().map(|data| data.as_ptr());
        drop(stored);
        uncommitted.commit(1, &mut pool);
        assert_eq!(uncommitted.bytes(), 5000);
        assert_eq!(pool.take(5000).as_ptr(), places[0]);
        uncommitted.commit(2, &mut pool);
        assert_eq!((pool.take(5000).as_ptr(), uncommitted.bytes()), (places[1], 0));
    }
}
