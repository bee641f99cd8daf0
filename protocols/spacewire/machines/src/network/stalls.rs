//! Hosts that stop for a while, in the middle of a packet: their packets stand in the network, as those of a node whose software hangs.
//!
//! A host that takes nothing leaves what arrives in the receive buffer of its link: the packet that is too long for it stands where it is. One
//! that gives no more than some bytes of a packet leaves the rest of the way to it open behind them. Both begin and end at times that are
//! known, so that runs of bytes go on elsewhere.
use alloc::vec::Vec;

use super::port::{NEVER, Owner};
use super::{Network, NodeId, Observer, Sink, UseError};
use crate::time::Picos;

/// Stalls of a node that may be planned.
const PLANNED_MAX: usize = 64;
/// The end of a stall without an end: an N-char that waits for it can be computed with.
const FOR_EVER: u64 = NEVER / 4;

/// A standstill of the host of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stall {
    /// It takes no N-char from the receive buffer of its link.
    Taking,
    /// It gives no more than so many bytes of a packet. One that has no more goes whole, and so does one of which more has left already.
    Giving {
        /// The bytes that leave, at least one.
        after: usize,
    },
}

/// The times of a standstill, in that of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StallTimes {
    /// When it stops.
    pub first: Picos,
    /// For how long; for ever if there is no time.
    pub lasts: Option<Picos>,
    /// The time until it stops again, if it does: longer than it lasts.
    pub every: Option<Picos>,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    stall: Stall,
    from: u64,
    until: u64,
    every: Option<u64>,
}

/// The stalls of a node.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    planned: Vec<Planned>,
    /// Until when the host takes nothing.
    pub(super) takes_nothing_until: Option<u64>,
}

impl Stalls {
    /// Forgets the stalls that are over, and plans the next ones of those that come again.
    fn advance(&mut self, now: u64) {
        for planned in &mut self.planned {
            while let (true, Some(every)) = (planned.until <= now, planned.every) {
                planned.from += every;
                planned.until += every;
            }
        }
        self.planned.retain(|planned| planned.until > now);
    }

    fn present(&self, now: u64) -> impl Iterator<Item = &Planned> {
        self.planned.iter().filter(move |planned| planned.from <= now)
    }

    /// Returns when the next stall begins or ends.
    fn next_change(&self, now: u64) -> u64 {
        let changes = self.planned.iter().map(|planned| if planned.from > now { planned.from } else { planned.until });
        changes.min().filter(|at| *at < FOR_EVER).unwrap_or(NEVER)
    }
}

impl<O: Observer> Network<O> {
    /// Has the host of a node stop to take or to give at some time, once or again and again.
    ///
    /// # Errors
    /// If the node is unknown, 64 stalls are planned there already, or one would begin before the last one is over.
    pub fn stall(&mut self, node: NodeId, stall: Stall, times: StallTimes) -> Result<(), UseError> {
        let place = node.into();
        let port = self.port(place)?;
        let StallTimes { first, lasts, every } = times;
        let this = &mut self.nodes[node.0].stalls;
        if this.planned.len() >= PLANNED_MAX {
            return Err(UseError::TooManyFaults { place });
        }
        if lasts == Some(Picos::ZERO) || every.is_some_and(|every| lasts.is_none_or(|lasts| every <= lasts)) {
            return Err(UseError::EndlessStall { place });
        }
        let from = first.0.max(self.now);
        let until = lasts.map_or(FOR_EVER, |lasts| from.saturating_add(lasts.0).min(FOR_EVER));
        this.planned.push(Planned { stall, from, until, every: every.map(|every| every.0) });
        self.change_stalls(port, self.now);
        self.touch(port);
        self.update();
        Ok(())
    }

    /// Begins and ends the stalls that are due at a port.
    pub(super) fn change_stalls(&mut self, port: usize, now: u64) {
        let Owner::Node(node) = self.ports[port].owner else { return };
        let this = &mut self.nodes[node];
        let was = (this.stalls.takes_nothing_until, this.outgoing.hold());
        this.stalls.advance(now);
        let (mut takes_nothing_until, mut gives) = (None, None);
        for planned in this.stalls.present(now) {
            match planned.stall {
                Stall::Taking => takes_nothing_until = takes_nothing_until.max(Some(planned.until)),
                Stall::Giving { after } => gives = Some(gives.unwrap_or(usize::MAX).min(after.max(1))),
            }
        }
        let begins = (takes_nothing_until.is_some() && was.0.is_none()) || (gives.is_some() && was.1.is_none());
        this.stalls.takes_nothing_until = takes_nothing_until;
        this.outgoing.set_hold(gives);
        let this = &mut self.ports[port];
        this.faults.stalls += u64::from(begins);
        this.stall_at = self.nodes[node].stalls.next_change(now);
        if takes_nothing_until.is_some() {
            // What takes one after another begins again behind it.
            this.sink_at = NEVER;
        }
        this.set_alarm();
        if takes_nothing_until.is_none() && was.0.is_some() {
            self.drain(node, now);
        }
        self.wake(port, now);
    }

    /// Returns whether the host of a node takes at once, at a rate or when it is asked, or nothing at present.
    pub(super) fn sink_of(&self, node: usize) -> Option<Sink> {
        let node = &self.nodes[node];
        node.stalls.takes_nothing_until.is_none().then_some(node.settings.sink)
    }
}
