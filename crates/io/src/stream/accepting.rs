use super::{ARRIVALS, SETTLED, Streams};
use crate::Clock;
use crate::attended::Accepting;
use crate::listener::Arrivals;
use hodo_machine::{Input, Instant, Machine, Peer};
use std::io;

impl Streams {
    #[inline]
    pub(crate) fn has_arrivals(&self) -> bool {
        self.arrivals.is_due(self.heard)
    }

    /// Takes in the connections that have come.
    pub(crate) fn take_arrivals(&mut self, clock: &Clock) -> io::Result<()> {
        let now = clock.now();
        self.heard = now;
        let room = self.settings.peers_max.saturating_sub(self.count + self.arrived.len());
        let taken = self.arrivals.take(now, room, &self.settings)?;
        if !taken.is_empty() {
            self.unsettled_until = now + SETTLED;
        }
        self.arrived.extend(taken);
        Ok(())
    }

    /// Whether connections have come that the machine has not been told of.
    #[inline]
    pub(crate) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Whether it is the turn of one that has come. Each second time it is that of those who are there: a flood of
    /// connections does not keep them waiting.
    #[inline]
    pub(crate) fn is_to_welcome(&mut self) -> bool {
        self.welcomed = self.has_arrived() && !self.welcomed;
        self.welcomed
    }

    /// Tells the machine of one that has come.
    pub(crate) fn welcome<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> Option<Instant> {
        let (fd, address) = self.arrived.pop_front()?;
        let index = self.free.pop().unwrap_or_else(|| {
            self.accepted.push(None);
            (self.accepted.len() - 1) as u32
        });
        let peer = Peer(Peer::FIRST_ACCEPTED + index);
        self.insert(peer, fd, address.clone(), false);
        let now = clock.now();
        machine.handle(now, Input::Opened(peer, &address));
        Some(now)
    }
}

impl Accepting for Streams {
    fn stop_listening(&mut self) {
        // A mailbox goes on to count those who are there, and to wake whoever is woken by it.
        if self.wakeable {
            return;
        }
        if let Some(watched) = self.arrivals.watched() {
            self.poller.remove(watched, ARRIVALS);
        }
        if matches!(self.arrivals, Arrivals::Listener { .. }) {
            self.arrivals = Arrivals::Nowhere;
        }
    }

    fn backlog(&self) -> usize {
        self.opened.iter().chain(&self.accepted).flatten().map(|stream| stream.backlog.len()).sum()
    }
}
