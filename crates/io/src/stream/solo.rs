//! The only peer, which is read directly.

use super::{LOOK_UP, Streamed, Streams};
use crate::{Clock, sys};
use hodo_machine::{Instant, Machine, Peer};
use std::os::fd::AsFd;

/// The number of empty looks at one stream between two looks at everything else.
const SPINS: u32 = 64;
/// The number of direct receives in a row after which the poller stops watching a stream: to start and stop watching
/// takes as long as a few packets of a watched one.
const UNWATCHED_AFTER: u32 = 64;

impl Streams {
    /// Returns the only peer, if it can be read directly: no bytes are waiting to be sent to it, and there is no other
    /// peer.
    #[inline]
    pub(crate) fn solo(&mut self) -> Option<Peer> {
        if self.solo.is_none() && self.count == 1 {
            self.find_solo();
        }
        self.solo
    }

    fn find_solo(&mut self) {
        let only = |streams: &Streamed| {
            streams.iter().position(|slot| {
                slot.as_ref().is_some_and(|stream| {
                    !stream.connecting && !stream.closing && !stream.paused && stream.backlog.is_empty()
                })
            })
        };
        let opened = only(&self.opened).map(|index| index as u32);
        self.solo = opened.or_else(|| only(&self.accepted).map(|index| Peer::FIRST_ACCEPTED + index as u32)).map(Peer);
        if let Some(peer) = self.solo {
            self.unwatch(peer);
        }
    }

    /// Looks at the only peer again and again, until input comes, a listener has to be checked, or `SPINS` looks were
    /// empty. Returns the number of looks, too.
    pub(crate) fn spin_solo<M: Machine>(
        &mut self,
        peer: Peer,
        clock: &Clock,
        machine: &mut M,
    ) -> (Option<Instant>, u32) {
        for looks in 1..=SPINS {
            let seen = self.read_on(peer, libc::MSG_DONTWAIT, clock, machine);
            if seen.is_some() || self.has_arrivals() {
                return (seen, looks);
            }
        }
        (None, SPINS)
    }

    /// Sleeps in a receive from the only peer, which spares the poller's call. Returns `None` if nothing came in time.
    pub(crate) fn block_solo<M: Machine>(&mut self, peer: Peer, clock: &Clock, machine: &mut M) -> Option<Instant> {
        self.direct = self.direct.saturating_add(1);
        if self.direct == UNWATCHED_AFTER {
            self.unwatch(peer);
        }
        let stream = self.stream(peer)?;
        if !stream.timed {
            stream.timed = true;
            sys::set_timeout(stream.fd.as_fd(), libc::SO_RCVTIMEO, LOOK_UP).ok()?;
        }
        self.gather();
        self.read_on(peer, 0, clock, machine)
    }

    /// Receives from the only peer, and continues while whole buffers come: all of them count as received when the
    /// first was.
    #[inline]
    pub(crate) fn read_on<M: Machine>(
        &mut self,
        peer: Peer,
        flags: i32,
        clock: &Clock,
        machine: &mut M,
    ) -> Option<Instant> {
        let came = self.read(peer, flags, clock, machine)?;
        let (mut last, mut bytes) = (came, self.buffer.len());
        while self.filled
            && bytes < self.settings.together.min(self.portion.bytes())
            && let Some(now) = self.read_as_of(Some(came), peer, libc::MSG_DONTWAIT, clock, machine)
        {
            last = now;
            bytes += self.buffer.len();
        }
        Some(last)
    }
}
