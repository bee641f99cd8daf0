use super::{ARRIVALS, SETTLED, Streams};
use crate::listener::Arrivals;
use crate::{Clock, Listener, Mailbox};
use hodo_machine::{Instant, Machine};
use std::io;
use std::sync::Arc;

impl Streams {
    /// Accepts the connections to `listener` here.
    pub(crate) fn listen(&mut self, listener: Listener) -> io::Result<()> {
        self.arrive(Arrivals::listening(listener)?)
    }

    /// Takes the connections that another thread leaves in `mailbox`.
    pub(crate) fn collect(&mut self, mailbox: Arc<Mailbox>) -> io::Result<()> {
        self.arrive(Arrivals::Mailbox(mailbox))
    }

    fn arrive(&mut self, arrivals: Arrivals) -> io::Result<()> {
        if let Some(watched) = arrivals.watched() {
            self.poller.add(watched, ARRIVALS + self.arrivals.len() as u64, false)?;
        }
        self.arrivals.push(arrivals);
        Ok(())
    }

    /// Returns whether connections may come by themselves.
    pub(crate) fn arrives(&self) -> bool {
        !self.arrivals.is_empty()
    }

    #[inline]
    pub(crate) fn has_arrivals(&self) -> bool {
        self.arrivals.iter().any(|arrivals| arrivals.is_due(self.heard))
    }

    /// Reads the clock if a listener rests, which may be over.
    #[inline]
    pub(crate) fn look_at_clock(&mut self, clock: &Clock) {
        if self.rests {
            self.heard = clock.now();
        }
    }

    /// Takes the connections that have come.
    pub(crate) fn take_arrivals(&mut self, clock: &Clock) -> io::Result<()> {
        let now = clock.now();
        self.heard = now;
        for (token, arrivals) in (ARRIVALS..).zip(&mut self.arrivals) {
            let rested = arrivals.rests();
            let places = self.settings.peers_max.saturating_sub(self.count + self.arrived.len());
            let taken = arrivals.take(now, places, self.arrived.is_empty(), &self.settings)?;
            if !taken.is_empty() {
                self.unsettled_until = now + SETTLED;
            }
            if arrivals.rests() != rested
                && let Some(watched) = arrivals.watched()
            {
                match rested {
                    true => self.poller.add(watched, token, false)?,
                    false => self.poller.remove(watched, token),
                }
            }
            let mailed = matches!(arrivals, Arrivals::Mailbox(_));
            self.arrived.extend(taken.into_iter().map(|accepted| (accepted, mailed)));
        }
        self.rests = self.arrivals.iter().any(Arrivals::rests);
        Ok(())
    }

    /// Returns whether another thread has left something in a mailbox, or has called.
    pub(crate) fn is_woken(&self) -> bool {
        self.arrivals.iter().any(|arrivals| matches!(arrivals, Arrivals::Mailbox(mailbox) if mailbox.has_some()))
    }

    /// Returns whether connections have come that the machine has not been notified of.
    #[inline]
    pub(crate) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Returns whether it is the turn of a new connection. Every second turn belongs to the existing ones, so that a
    /// flood of connections does not keep them waiting.
    #[inline]
    pub(crate) fn is_to_welcome(&mut self) -> bool {
        self.welcomed = self.has_arrived() && !self.welcomed;
        self.welcomed
    }

    /// Notifies the machine of a new connection.
    pub(crate) fn welcome<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> Option<Instant> {
        let ((fd, address), mailed) = self.arrived.pop_front()?;
        let peer = self.numbering.take(&mut self.accepted);
        self.insert(peer, fd, address, false);
        if let Some(stream) = self.stream(peer) {
            stream.mailed = mailed;
        }
        self.tell_opened(peer, clock, machine)
    }

    /// Stops accepting connections. A mailbox continues to count the existing ones, and to wake the thread.
    pub(crate) fn stop_listening(&mut self) {
        for (index, arrivals) in (0..).zip(&mut self.arrivals) {
            if matches!(arrivals, Arrivals::Listener { .. }) {
                if let Some(watched) = arrivals.watched() {
                    self.poller.remove(watched, ARRIVALS + index);
                }
                *arrivals = Arrivals::Nowhere;
            }
        }
    }

    /// Returns the bytes that wait in user space for all peers together.
    pub(crate) fn backlog(&self) -> usize {
        self.opened.iter().chain(&self.accepted).flatten().map(|stream| stream.backlog.len()).sum()
    }
}
