//! Room for peers: whose memory and whose place others get.

use super::{Device, DeviceCounters, DeviceEvent};
use crate::Error;
use alloc::collections::BTreeMap;
use core::time::Duration;
use hodo_machine::{Instant, Over, Peer, Transport};

/// How long a peer over a stream has been silent, at least, that makes room for another one; and how long none is looked for after there
/// was none.
const SILENT_MIN: Duration = Duration::from_secs(10);
const FULL: Duration = Duration::from_millis(100);
/// Steps in which the replies of a turn are counted as memory.
const STEP: usize = 64 << 10;
/// Places of peers that have closed, beyond twice those that are there, after which they are forgotten.
const STALE: usize = 64;

/// The place of a peer among those that may have been silent for longest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    peer: Peer,
    /// The number of its session, which no other session has.
    session: u64,
    /// When it was last heard, as known here.
    heard: Instant,
}

impl Device {
    /// Notes that a peer has come, as the last of all.
    pub(super) fn note_newest(&mut self, now: Instant, peer: Peer, session: u64) {
        if self.turns.len() > 2 * self.sessions.len() + STALE {
            let Device { turns, sessions, .. } = self;
            turns.retain(|turn| sessions.get(turn.peer).is_some_and(|session| session.number == turn.session));
        }
        self.turns.push_back(Turn { peer, session, heard: now });
    }

    /// Gives the place of the peer that has been silent for longest to a new one. Returns whether there was one that may go: over
    /// datagrams any may, for its next datagram makes it known again.
    pub(super) fn make_room(&mut self, now: Instant) -> bool {
        if now < self.full_until {
            return false;
        }
        // Each is looked at once, and once more if it was heard since it was put here.
        let mut left = 2 * self.turns.len();
        while let Some(turn) = self.turns.pop_front() {
            let Some(session) = self.sessions.get(turn.peer).filter(|session| session.number == turn.session) else {
                continue;
            };
            let is_silent = match self.transport {
                Transport::Datagram => true,
                Transport::Stream => session.held.is_empty() && now >= session.heard + SILENT_MIN,
            };
            if session.heard == turn.heard && is_silent {
                self.forget(turn.peer);
                self.closing.push_back(turn.peer);
                self.note_crowd(|counters| &mut counters.displaced);
                return true;
            }
            self.turns.push_back(Turn { heard: session.heard, ..turn });
            left -= 1;
            if left == 0 {
                break;
            }
        }
        self.full_until = now + FULL;
        false
    }

    /// Counts a peer that made room for another one, or found none, and reports it when the count has doubled.
    pub(super) fn note_crowd(&mut self, count: fn(&mut DeviceCounters) -> &mut u64) {
        let counters = self.board.counters_mut();
        let count = count(counters);
        *count += 1;
        if count.is_power_of_two() {
            let DeviceCounters { displaced, refused_peers: refused, .. } = *counters;
            self.events.push_back(DeviceEvent::Crowded { displaced, refused });
        }
    }

    /// Counts a datagram that is longer than the buffers, and reports it when the count has doubled.
    #[cold]
    pub(super) fn note_too_long(&mut self, peer: Peer, bytes: usize) {
        let counters = self.board.counters_mut();
        counters.too_long += 1;
        let (count, buffer) = (counters.too_long, self.buffer_bytes);
        if count.is_power_of_two()
            && let Some(session) = self.sessions.get(peer)
        {
            let remote = session.remote.clone();
            self.events.push_back(DeviceEvent::TooLong { remote, bytes, buffer, count });
        }
    }

    /// Charges a peer for the memory that is retained for it, if that has changed.
    #[inline]
    pub(super) fn charge(&mut self, peer: Peer) {
        if let Some(session) = self.sessions.get(peer)
            && let Err(over) = self.charges.set(peer, session.retained())
        {
            self.relieve(over);
        }
    }

    /// Charges a peer for packets on its way to it or from it. Returns the peer to lose some of its packets if that is too much.
    pub(super) fn charge_on_way(&mut self, peer: Peer, bytes: u64) -> Option<Over> {
        let session = self.sessions.at(peer)?;
        session.on_way = bytes;
        self.charges.set(peer, session.retained()).err()
    }

    /// Takes in how many bytes of replies wait in this turn, with what is retained beside them.
    #[inline]
    pub(super) fn charge_turn(&mut self) {
        let waiting = (self.replies.len() - self.handed).saturating_sub(self.lost) / STEP * STEP;
        if waiting as u64 != self.waiting {
            let before = core::mem::replace(&mut self.waiting, waiting as u64);
            self.charges.set_common(self.waiting);
            if self.waiting > before && self.charges.pooled() > self.charges.allowance().bytes {
                self.relieve_turn();
            }
        }
    }

    /// Ends peers to whom most is due, or has been, while the replies of this turn are too much.
    #[cold]
    fn relieve_turn(&mut self) {
        loop {
            let mut parts = BTreeMap::new();
            for (peer, number, bytes) in self.waiting_for() {
                if self.sessions.get(peer).is_some_and(|session| session.number == number) {
                    *parts.entry(peer).or_insert(0) += bytes as u64;
                }
            }
            self.charges.set_common(parts.values().sum());
            match self.charges.check(&parts, 0) {
                Err(over) if self.sessions.get(over.peer).is_some() => self.end(over.peer, Error::TooMuchMemory(over)),
                _ => break,
            }
        }
        self.charge_turn();
        self.charges.set_common(self.waiting);
    }

    /// Iterates over the replies of this turn that have not been handed on: the peer, the number of its session, and their bytes.
    pub(super) fn waiting_for(&self) -> impl Iterator<Item = (Peer, u64, usize)> {
        let mut begun = self.handed;
        self.owed.iter().map(move |&(peer, number, end)| (peer, number, end - core::mem::replace(&mut begun, end)))
    }

    /// Ends the peers for which most memory is retained, while it is too much; over datagrams their oldest replies are dropped.
    #[cold]
    fn relieve(&mut self, over: Over) {
        let mut next = Some(over);
        while let Some(over) = next {
            match self.transport {
                Transport::Stream => self.end(over.peer, Error::TooMuchMemory(over)),
                Transport::Datagram => {
                    let Some(session) = self.sessions.at(over.peer).filter(|session| !session.held.is_empty()) else {
                        return;
                    };
                    let dropped = session.held.drop_older_half();
                    self.board.counters_mut().unsent += dropped;
                    // Less is never too much.
                    let _ = self.charges.set(over.peer, session.retained());
                }
            }
            next = self.charges.next_over();
        }
    }

    /// Closes a peer, and says why.
    pub(super) fn end(&mut self, peer: Peer, error: Error) {
        if let Some(session) = self.forget(peer) {
            self.closing.push_back(peer);
            self.board.counters_mut().ended += 1;
            self.events.push_back(DeviceEvent::Misbehaved(peer, session.remote, error));
        }
    }
}
