use super::nodes::{Dispatched, PendingEvent, node};
use super::report::State;
use super::stages::Stages;
use super::{Controller, Event};
use crate::supply::{Next, Supply};
use crate::wire::{Header, Kind, Verdict};
use bytes::Bytes;
use hodo_machine::{Instant, Outbox, Peer};

impl<S: Supply> Controller<S> {
    /// Gives the next event to a node, and returns the node.
    #[inline]
    pub(super) fn dispatch(&mut self, now: Instant, out: &mut Outbox) -> Option<Peer> {
        if matches!(self.state, State::Paused | State::Configured) || self.is_full() {
            return None;
        }
        if self.suspects_due
            && let Some(peer) = self.dispatch_suspect(now, out)
        {
            return Some(peer);
        }
        if self.feed.supply.is_paced() {
            while self.waiting.len() < self.config.waiting_max && self.pull(now) {}
        } else if self.waiting.is_empty() && self.queue.has_token(&mut self.lines) {
            self.pull(now);
        }
        let length = self.waiting.front()?.payload.len();
        if let Some(max) = self.queue.too_small_for(length) {
            let held = self.waiting.pop_front()?;
            self.too_large(held, max);
            return None;
        }
        let peer = self.queue.pick(&mut self.lines, length)?;
        let held = self.waiting.pop_front()?;
        if held.came < now {
            self.counters.waited_for_token += 1;
        }
        self.hand(now, peer, held, out);
        Some(peer)
    }

    /// Tells whether so many verdicts wait to be committed, or with so much data, that no more events are to be given.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.config.uncommitted_max.is_some_and(|max| self.commits.told - self.commits.committed >= max)
            || self.commits.uncommitted.bytes() >= self.config.uncommitted_bytes_max.max(1)
    }

    /// Has an event made; answers whether one was.
    pub(super) fn pull(&mut self, now: Instant) -> bool {
        if self.feed.ended || now < self.feed.at || self.state != State::Running {
            return false;
        }
        match self.feed.supply.next(now) {
            Next::Event(event) => {
                let kind = if event.partial { Kind::Partial } else { Kind::Event };
                self.made(now, event.number, event.payload, kind, false);
                true
            }
            Next::Later(at) => {
                self.feed.at = at;
                false
            }
            Next::Ended => {
                self.feed.ended = true;
                false
            }
        }
    }

    /// Gives a suspect to a node that has nothing else, and gets nothing else meanwhile.
    #[cold]
    pub(super) fn dispatch_suspect(&mut self, now: Instant, out: &mut Outbox) -> Option<Peer> {
        while let Some(length) = self.suspects.front().map(|held| held.payload.len()) {
            if let Some(max) = self.queue.too_small_for(length) {
                let held = self.suspects.pop_front()?;
                self.too_large(held, max);
                return None;
            }
            let Some(peer) = self.queue.to_reserve(&mut self.lines, length) else { break };
            let Some((_, node)) = node(&mut self.lines, peer) else { break };
            node.reserved = self.suspects.pop_front();
        }
        let mut returned = false;
        for index in 0..self.queue.nodes().len() {
            let peer = self.queue.nodes()[index];
            let Some((blocked, node)) = node(&mut self.lines, peer) else { continue };
            if blocked || !node.given.is_empty() {
                continue;
            }
            let Some(held) = node.reserved.take() else { continue };
            if node.credits == 0 {
                // It has not given back the credits for what it had.
                self.suspects.push_front(held);
                returned = true;
                continue;
            }
            node.alone = true;
            self.queue.spend(&mut self.lines, peer);
            self.hand(now, peer, held, out);
            return Some(peer);
        }
        // Not chosen again, so that this comes to an end.
        self.suspects_due = returned;
        if returned { self.dispatch_suspect(now, out) } else { None }
    }

    /// Quarantines an event that no node takes, the largest bound of theirs being `max`.
    #[cold]
    fn too_large(&mut self, held: PendingEvent, max: u32) {
        let (data, attempts) = (held.payload.clone(), held.deaths);
        let (run, event, size) = (held.run, held.event, data.len() as u32);
        self.counters.too_large += 1;
        self.decide(held, Verdict::Quarantined, (0, attempts), data);
        self.events.push_back(Event::TooLarge { run, event, size, max });
    }

    #[inline]
    pub(super) fn hand(&mut self, now: Instant, peer: Peer, held: PendingEvent, out: &mut Outbox) {
        let Some((_, node)) = node(&mut self.lines, peer) else { return };
        if node.run != held.run {
            node.run = held.run;
            out.copy(&Header::new(Kind::Run, 0, u64::from(held.run)).encode());
        }
        if held.stamped {
            Stages::give(held.event, out);
        }
        let length = held.payload.len();
        out.copy(&Header::new(held.kind, length as u32, held.event).encode());
        out.share(held.payload.clone());
        node.share.given += 1;
        node.share.bytes += length as u64;
        self.counters.given += 1;
        self.counters.given_bytes += length as u64;
        if node.answers() {
            node.given.push_back(Dispatched { held, at: now });
        } else {
            // It never says what became of it, and takes the next one as soon as its connection does.
            node.credits += 1;
            node.served += 1;
            let number = node.hello.number;
            self.queue.tokens_came(peer, 1);
            self.decide(held, Verdict::Rejected, (number, 1), Bytes::new());
        }
    }

    /// Returns what is to be told once no more events can be given: one that no node takes, or that nothing is in hand.
    pub(super) fn after_dispatch(&mut self, now: Instant) -> Option<Event> {
        self.account(now);
        if self.events.is_empty() && !self.drained && self.is_drained() {
            self.drained = true;
            return Some(Event::Drained);
        }
        self.events.pop_front()
    }

    /// Adds up the time during which events could not be given.
    fn account(&mut self, now: Instant) {
        let held_up = !self.waiting.is_empty() || self.is_full();
        match (held_up, self.idle_since) {
            (true, None) => self.idle_since = Some(now),
            (true, Some(since)) => {
                self.counters.dead_time_ns += (now - since).as_nanos() as u64;
                self.idle_since = Some(now);
            }
            (false, Some(since)) => {
                self.counters.dead_time_ns += (now - since).as_nanos() as u64;
                self.idle_since = None;
            }
            (false, None) => {}
        }
    }
}
