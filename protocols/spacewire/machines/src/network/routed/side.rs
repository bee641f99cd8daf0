//! One end of a link for as long as a batch lasts.
use alloc::collections::VecDeque;

use super::super::port::{NEVER, Owner};
use super::super::queue::Bytes;
use super::super::ring::Ring;
use super::{Mark, Offer};
use crate::character::Code;
use crate::end::{CREDIT_OF_FCT, Counts};

/// N-chars on their way, or in the buffer of a router's input.
pub(super) type Run = super::super::run::Run<Kind>;

/// The N-chars of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes of data.
    Data,
    /// The end of a packet of this many bytes.
    End(Code, u64),
}

/// Places in a receive buffer that become free, one after another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) at: u64,
    pub(super) count: u64,
    pub(super) spacing: u64,
}

/// One end of a link.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) owner: Owner,
    pub(super) bit: u64,
    pub(super) cable: u64,
    /// The least time from the first bit of an N-char to that of the next one, if this is an output of a router.
    pub(super) step: u64,
    /// The input that feeds this output of a router, from when on, and how long an N-char takes from there.
    pub(super) from: Option<usize>,
    pub(super) switched: u64,
    pub(super) latency: u64,
    /// Whether something of its packet has left.
    pub(super) begun: bool,
    /// The output that this input of a router feeds, and when an N-char left the input last.
    pub(super) to: Option<usize>,
    pub(super) moved: u64,
    /// When the next code is chosen. If idle: where the first NULL begins that has not been counted.
    pub(super) boundary: u64,
    /// Nothing but NULLs leaves before `resume`, the first boundary from `wake` on.
    pub(super) idle: bool,
    pub(super) wake: u64,
    pub(super) resume: u64,
    pub(super) credit: u64,
    /// Places that have to become free until the next FCT is due, without those accounted for.
    pub(super) need: i64,
    /// When the next FCT is due, if known.
    pub(super) due: u64,
    rooms: Ring<Room>,
    /// FCTs that arrive here.
    pub(super) fcts: Ring<u64>,
    /// N-chars that arrive here or stand in the buffer, and the bytes of those at a router.
    pub(super) runs: Ring<Run>,
    pub(super) bytes: Bytes,
    /// How many N-chars these are, at a router.
    pub(super) standing: u64,
    /// When the router looks at the first of the runs.
    pub(super) look: u64,
    /// Bytes of the packet that arrives, if there is one.
    pub(super) open: Option<u64>,
    /// Whether the last N-char that left was data.
    pub(super) sending: bool,
    pub(super) sent: Counts,
    /// Codes that arrived in the batch, or will after it if `returned` does not say how many of them.
    pub(super) received: Counts,
    pub(super) returned: Counts,
    /// Beginnings and ends of packets that arrive, for the observer.
    pub(super) marks: VecDeque<Mark>,
}

impl Default for Side {
    fn default() -> Self {
        Side {
            owner: Owner::Node(usize::MAX),
            bit: 0,
            cable: 0,
            step: 0,
            from: None,
            switched: 0,
            latency: 0,
            begun: false,
            to: None,
            moved: 0,
            boundary: 0,
            idle: true,
            wake: NEVER,
            resume: NEVER,
            credit: 0,
            need: 0,
            due: NEVER,
            rooms: Ring::default(),
            fcts: Ring::default(),
            runs: Ring::default(),
            bytes: Bytes::default(),
            standing: 0,
            look: NEVER,
            open: None,
            sending: false,
            sent: Counts::default(),
            received: Counts::default(),
            returned: Counts::default(),
            marks: VecDeque::new(),
        }
    }
}

impl Side {
    /// Forgets everything of the last batch.
    pub(super) fn reset(&mut self) {
        self.rooms.clear();
        self.fcts.clear();
        self.runs.clear();
        self.bytes.clear();
        self.marks.clear();
        (self.sent, self.received, self.returned) = Default::default();
        self.standing = 0;
        (self.from, self.to) = (None, None);
        (self.idle, self.wake, self.resume, self.look) = (true, NEVER, NEVER, NEVER);
    }

    /// Returns twice the time at which this end is looked at next, plus one if its transmitter chooses then.
    #[inline]
    pub(super) fn key(&self) -> u64 {
        let choice = if self.idle { self.resume } else { self.boundary };
        self.look.saturating_mul(2).min(choice.saturating_mul(2).saturating_add(1))
    }

    /// Returns when an N-char that arrives at the source can leave this output of a router.
    #[inline]
    pub(super) fn ready(&self, arrive: u64) -> u64 {
        self.switched.max(arrive + self.latency)
    }

    /// Ends the idle time by `at` at the latest.
    #[inline]
    pub(super) fn wake_at(&mut self, at: u64) -> bool {
        let sooner = self.idle && at < self.wake;
        if sooner {
            self.wake = at;
            let null = 8 * self.bit;
            self.resume = self.boundary + at.saturating_sub(self.boundary).div_ceil(null) * null;
        }
        sooner
    }

    /// Returns when an N-char leaves, as far as it is known at `now`.
    #[inline]
    pub(super) fn sends_at(&self, offer: Offer, now: u64) -> u64 {
        let ready = match offer {
            Offer::Nothing => NEVER,
            Offer::Later(ready) => ready,
            Offer::Data(_) | Offer::End(_) => now,
        };
        if self.credit > 0 { ready } else { ready.max(self.fcts.front().copied().unwrap_or(NEVER)) }
    }

    /// Counts the NULLs of an idle time that is over. Returns how many, and where the first began.
    pub(super) fn end_idle(&mut self) -> (u64, u64) {
        let (began, null) = (self.boundary, 8 * self.bit);
        let count = (self.resume - began) / null;
        self.sent.nulls += count;
        (self.boundary, self.idle, self.wake) = (self.resume, false, NEVER);
        (count, began)
    }

    /// Takes the FCTs that arrive by `now`.
    #[inline]
    pub(super) fn absorb(&mut self, now: u64) {
        while self.fcts.front().is_some_and(|arrive| *arrive <= now) {
            self.fcts.pop_front();
            self.credit += u64::from(CREDIT_OF_FCT);
            self.received.fcts += 1;
        }
    }

    /// Makes room in the receive buffer.
    #[inline]
    pub(super) fn make_room(&mut self, room: Room) {
        self.rooms.push_back(room);
        if self.due == NEVER {
            self.account();
        }
    }

    /// Finds when the next FCT is due.
    #[inline]
    fn account(&mut self) {
        while self.need > 0
            && let Some(room) = self.rooms.front_mut()
        {
            let n = room.count.min(self.need as u64);
            self.need -= n as i64;
            if self.need == 0 {
                self.due = room.at + (n - 1) * room.spacing;
            }
            if n == room.count {
                self.rooms.pop_front();
            } else {
                (room.at, room.count) = (room.at + n * room.spacing, room.count - n);
            }
        }
    }

    /// Takes note that the FCT that was due has left.
    #[inline]
    pub(super) fn promise(&mut self) {
        self.need += i64::from(CREDIT_OF_FCT);
        if self.need > 0 {
            self.due = NEVER;
            self.account();
        }
    }

    /// Removes N-chars of the first run at an input of a router.
    #[inline]
    pub(super) fn take(&mut self, count: u64) {
        let Some(front) = self.runs.front_mut() else { return };
        self.standing -= count;
        if front.kind == Kind::Data {
            self.bytes.take(count as usize);
        }
        if front.count == count {
            self.runs.pop_front();
        } else {
            front.arrive += count * front.length;
            front.count -= count;
        }
    }
}
