//! Packets that a device never takes, or whose replies never arrive, and the packets of others behind them.
//!
//! A device takes nothing behind a packet that it drops each time: one that is longer than its buffers, or than the network carries. Its
//! status shows that it is alive and waits for that number. So where packets of others wait, such a packet is given up alone, long before
//! the patience is over, and its number goes to another packet:
//!
//! | shown | then |
//! |---|---|
//! | it was sent in vain a few times | nothing is sent with it any more |
//! | it was sent in vain, or its reply asked for, many times and for a quarter of the patience | it is given up alone; its client is suspect |
//! | a packet of a suspect client, or longer than what the device says it takes, or than one that was given up | it goes alone, and is given up after a few times; then others get a longer turn |
//! | so many packets of a suspect client were taken | it is suspect no longer |
//!
//! A copy of a packet that was sent may be late, and be taken under its old number once that is the next. So others get new numbers only
//! where they were last sent long ago, or do nothing but read; and what was given up is told apart by the window's new offset.

use super::identity::OwnIds;
use super::recovery::VAIN;
use super::{Cause, Slot, Stage, State, Window};
use core::time::Duration;
use hodo_machine::Instant;

/// A packet that was sent in vain so often is sent alone.
const VAIN_ALONE: u32 = 4;
/// A packet of a suspect client is tried so often.
const VAIN_SUSPECT: u32 = 3;
/// The part of the patience that any other is tried for.
const PART: u32 = 4;
/// Suspect clients that are remembered.
const SUSPECTS: usize = 8;
/// Packets of a suspect client that have to be taken before it is suspect no longer.
const TAKEN: u32 = 256;
/// The turn of others after a packet of a suspect client is so many times as long as the packet took.
const TURN: u32 = 8;

/// The clients and lengths of packets that the device does not take.
#[derive(Debug)]
pub(super) struct Isolation {
    /// Chains of suspect clients, the last one first, and the packets that have to be taken of each.
    suspects: [(u32, u32); SUSPECTS],
    /// The longest packet that the device has taken, and the shortest one beyond that it has not.
    taken_bytes: usize,
    ignored_bytes: usize,
    /// Whether packets of other chains wait outside the window.
    pressed: bool,
    /// Whether a packet was given up alone since the device has answered one.
    judged: bool,
    /// When the packet that goes alone was sent first.
    alone: Instant,
    /// No packet of a suspect client is taken in before this.
    turn_ends: Instant,
}

impl Default for Isolation {
    fn default() -> Self {
        Isolation {
            suspects: [(0, 0); SUSPECTS],
            taken_bytes: 0,
            ignored_bytes: usize::MAX,
            pressed: false,
            judged: false,
            alone: Instant::ZERO,
            turn_ends: Instant::ZERO,
        }
    }
}

impl Isolation {
    fn is_suspect_chain(&self, chain: u32) -> bool {
        self.suspects.iter().any(|(suspect, left)| *left > 0 && *suspect == chain)
    }

    /// Remembers that the device does not take a packet of this chain and length.
    fn suspect(&mut self, chain: u32, bytes: usize) {
        let known = self.suspects.iter().position(|(suspect, left)| *left > 0 && *suspect == chain);
        self.suspects[..=known.unwrap_or(SUSPECTS - 1)].rotate_right(1);
        self.suspects[0] = (chain, TAKEN);
        if bytes > self.taken_bytes {
            self.ignored_bytes = self.ignored_bytes.min(bytes);
        }
        self.judged = true;
    }
}

impl Window {
    /// Tells whether a packet of this chain and length may be pushed now: the device has not taken others like it, and those of other chains
    /// have their turn first.
    #[must_use]
    #[inline]
    pub fn admits(&self, now: Instant, chain: u32, bytes: usize) -> bool {
        now >= self.isolation.turn_ends || !self.is_suspect(chain, bytes)
    }

    /// Returns the instant from which on any packet may be pushed, if it is to come.
    #[must_use]
    pub fn admits_at(&self, now: Instant) -> Option<Instant> {
        Some(self.isolation.turn_ends).filter(|at| now < *at)
    }

    /// Returns the chain of the oldest packet, if it has been tried in vain several times.
    #[must_use]
    #[inline]
    pub fn stuck(&self) -> Option<u32> {
        let is_stuck = self.progress.vain.max(self.progress.tries) + 1 >= VAIN_SUSPECT;
        self.slots.front().filter(|_| is_stuck).map(|slot| slot.chain)
    }

    /// Takes in whether packets of other chains than the oldest packet's wait outside the window.
    pub fn press(&mut self, pressed: bool) {
        self.isolation.pressed = pressed;
    }

    /// Tells whether the device may not take a packet of this chain and length.
    #[inline]
    pub(super) fn is_suspect(&self, chain: u32, bytes: usize) -> bool {
        let told = usize::try_from(self.device.buffer_bytes).unwrap_or(usize::MAX);
        let is_long = bytes > self.isolation.taken_bytes && (bytes >= self.isolation.ignored_bytes || bytes > told);
        is_long || self.isolation.is_suspect_chain(chain)
    }

    /// Tells whether packets behind the oldest are not to be sent again with it.
    pub(super) fn is_sent_in_vain(&self) -> bool {
        self.progress.vain >= VAIN_ALONE
    }

    /// Notes that a packet goes alone from now on.
    pub(super) fn begin_alone(&mut self, now: Instant) {
        self.isolation.alone = now;
    }

    /// Takes in that the device has answered a packet of this chain and length.
    #[inline]
    pub(super) fn note_taken(&mut self, now: Instant, chain: u32, bytes: usize) {
        let isolation = &mut self.isolation;
        isolation.judged = false;
        isolation.taken_bytes = isolation.taken_bytes.max(bytes);
        if let Some((_, left)) = isolation.suspects.iter_mut().find(|(suspect, left)| *left > 0 && *suspect == chain) {
            *left -= 1;
            self.end_turn(now);
        }
    }

    /// Gives others a turn after a packet of a suspect client.
    fn end_turn(&mut self, now: Instant) {
        let took = Duration::from_nanos(now.nanos_since(self.isolation.alone));
        self.isolation.turn_ends = now + (took * TURN).min(self.config.patience);
    }

    /// Gives up the oldest packet, and those of its client behind it, if the device takes it in vain. Returns whether it has.
    pub(super) fn isolate_ignored(&mut self, now: Instant) -> bool {
        if self.done > 0 || !self.is_to_be_isolated(now, self.progress.vain) {
            return false;
        }
        let longest = self.config.late_max();
        let (chain, bytes) = (self.slots[0].chain, self.slots[0].packet.len());
        let is_on_its_way = self.slots.iter().any(|slot| {
            slot.chain != chain && slot.stage != Stage::New && now < slot.sent + longest && !slot.only_reads()
        });
        if is_on_its_way {
            return false;
        }
        for slot in &mut self.slots {
            if slot.chain == chain {
                slot.stage = Stage::Answered;
                self.sharing.lost.push_back((slot.key, Cause::Ignored));
                self.counters.isolated += 1;
            } else if slot.stage != Stage::New {
                slot.stage = Stage::NotDone;
            }
        }
        self.note_isolated(now, chain, bytes);
        // A late copy of it may yet be done, with the number that the next one gets.
        self.own.iter_mut().for_each(OwnIds::draw);
        self.round_trip.answered();
        self.renumber_from(now, self.base, false);
        true
    }

    /// Gives up the oldest packet, and those of its client that were done and asked for in vain too, if the device never sends its reply.
    /// Returns whether it has.
    pub(super) fn isolate_unanswered(&mut self, now: Instant) -> bool {
        let is_asked_for = |slot: &Slot| matches!(slot.stage, Stage::ToAsk | Stage::Asked) && !slot.once;
        let is_oldest = self.done > 0 && self.slots.front().is_some_and(is_asked_for);
        if !is_oldest || !self.progress.heard || !self.is_to_be_isolated(now, self.progress.tries) {
            return false;
        }
        let (chain, bytes) = (self.slots[0].chain, self.slots[0].packet.len());
        for slot in self.slots.iter_mut().take(self.done).filter(|slot| slot.chain == chain && is_asked_for(slot)) {
            self.to_ask -= usize::from(slot.stage == Stage::ToAsk);
            slot.stage = Stage::Answered;
            self.sharing.lost.push_back((slot.key, Cause::ReplyLost));
            self.counters.isolated += 1;
        }
        self.note_isolated(now, chain, bytes);
        self.round_trip.answered();
        self.drop_answered(now);
        self.begin(now);
        true
    }

    fn note_isolated(&mut self, now: Instant, chain: u32, bytes: usize) {
        if self.isolation.is_suspect_chain(chain) {
            self.end_turn(now);
        }
        self.isolation.suspect(chain, bytes);
    }

    /// Tells whether the oldest packet, which was tried so often, is to be given up alone.
    fn is_to_be_isolated(&self, now: Instant, tries: u32) -> bool {
        let Some(oldest) = self.slots.front().filter(|_| self.state == State::Open && !self.sharing.is_in_doubt())
        else {
            return false;
        };
        let others = self.isolation.pressed || self.slots.iter().any(|slot| slot.chain != oldest.chain);
        let is_tried = if self.is_suspect(oldest.chain, oldest.packet.len()) {
            tries >= VAIN_SUSPECT
        } else {
            let tried = now.nanos_since(self.progress.since) >= (self.config.patience / PART).as_nanos() as u64;
            tries >= VAIN && tried && !self.isolation.judged
        };
        others && is_tried
    }
}
