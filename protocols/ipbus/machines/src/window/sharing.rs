//! Several hosts that number packets of one device.
//!
//! A device takes one packet with each number, whoever sends it, and drops all others. So a host may find that its number
//! was taken by another's packet. That packet was then not done, and is sent again with another number:
//!
//! | seen | shows |
//! |---|---|
//! | the device keeps another host's reply under the number | the packet was not done, if the device has not restarted since |
//! | it keeps a reply that was there before, the *witness* | it has not restarted |
//! | another's reply, asked for right behind a packet that was sent once | it has not restarted since: there was no time |
//! | its next number is beyond all that were sent | others send packets too |
//! | its next number, asked for before anything was sent | the number to go on with |
//!
//! While others are at it, one packet is in flight, so that none overtakes another of its client. Its reply is asked for right
//! behind it, before others have sent more than the device keeps, and after each a random pause leaves the others a turn.

use super::{Cause, RESTART, Slot, Stage, State, StatusRequest, Window};
use crate::wire::operation::{Mode, Operation, Request};
use crate::wire::packet::{Header, Kind, Packet, distance, following};
use crate::wire::transaction::{self, Info};
use crate::wire::{Order, WORD, Words};
use alloc::collections::VecDeque;
use core::time::Duration;
use hodo_machine::{Instant, Random};

/// After another host was noticed, so many packets have to go well before several are in flight again.
const CONTENDED: u32 = 256;
/// So often a packet may find its number taken before it is given up.
const RACES_MAX: u32 = 1024;
/// A window that has heard nothing for this long asks for the next number before it sends anything.
const IDLE: Duration = Duration::from_secs(1);
/// The replies from before its opening that a window asks for.
const LOOK_BACK: u16 = 4;
/// Transactions of a greeting, and the bits of each that are drawn at random.
const GREETINGS: u32 = 4;
const ID_BITS: u32 = 12;
/// The pause after a packet is random, and this many usual round-trips at most.
const PAUSE: u64 = 2;

/// The knowledge of a window about other hosts, and about restarts of its device.
#[derive(Debug)]
pub(super) struct Sharing {
    random: Random,
    /// Packets that have to go well before several are in flight again.
    pub(super) contended: u32,
    /// Numbers in a row that others have taken.
    races: u32,
    /// Nothing new is sent before this.
    pub(super) pause: Instant,
    /// The packet whose reply the device keeps and which is known: its number, and its first transaction in the reply.
    witness: Option<(u16, u32)>,
    /// Whether that reply is to be asked for, and when it was.
    pub(super) ask: bool,
    asked: Option<Instant>,
    /// The request for the status that showed a packet as not done, where a restart may be why.
    suspect: Option<StatusRequest>,
    /// When the last datagram was sent whose answer shows that the device had not restarted.
    certain: Instant,
    /// When the device was heard last.
    pub(super) heard: Instant,
    /// Whether the next number is to be known before anything is sent.
    pub(super) checks: bool,
    /// The next number at the last opening, and how many of the replies before it are still to be asked for.
    opened: u16,
    before: u16,
    /// Whether the reply to what was sent last is to be asked for at once: it is one's own, or shows that the number was taken.
    pub(super) echo: bool,
    /// The next number, where others have taken all that were sent.
    pub(super) beyond: Option<u16>,
    /// Packets that were not done and cannot be any more: later ones of the same client were.
    pub(super) lost: VecDeque<u64>,
}

impl Sharing {
    pub(super) fn new(seed: u64) -> Self {
        Sharing {
            random: Random::for_purpose(seed, 1),
            contended: 0,
            races: 0,
            pause: Instant::ZERO,
            witness: None,
            ask: false,
            asked: None,
            suspect: None,
            certain: Instant::ZERO,
            heard: Instant::ZERO,
            checks: false,
            echo: false,
            opened: 0,
            before: 0,
            beyond: None,
            lost: VecDeque::new(),
        }
    }

    /// Forgets what was known of the device: it has restarted, or is given up.
    pub(super) fn begin(&mut self) {
        (self.witness, self.ask, self.asked, self.suspect) = (None, false, None, None);
        (self.checks, self.before, self.beyond, self.races) = (false, 0, None, 0);
    }

    /// Tells whether the device had not restarted when something was sent at this instant.
    fn is_certain(&self, sent: Instant) -> bool {
        sent <= self.certain + RESTART
    }
}

impl Window {
    /// Notes that one's own reply has come.
    #[inline]
    pub(super) fn note_own_reply(&mut self, now: Instant, index: usize) {
        let Some(slot) = self.slots.get(index) else { return };
        let sharing = &mut self.sharing;
        let is_later = sharing.witness.is_none_or(|(id, _)| distance(id, slot.id) < u16::MAX / 2);
        if let Some(first) = slot.first_header().filter(|_| is_later) {
            sharing.witness = Some((slot.id, first));
        }
        if slot.once {
            sharing.certain = sharing.certain.max(slot.sent);
        }
        sharing.races = 0;
        if sharing.contended > 0 {
            sharing.contended -= 1;
            let usual = self.round_trip.smoothed().unwrap_or_default().as_nanos() as u64;
            sharing.pause = now + Duration::from_nanos(sharing.random.below(PAUSE * usual + 1));
        }
    }

    /// Has the next number asked for before the first packet after a long silence.
    pub(super) fn check_if_idle(&mut self, now: Instant) {
        let silence = if self.sharing.contended > 0 { self.round_trip.late() } else { IDLE };
        if self.slots.is_empty() && now >= self.sharing.heard + silence && self.state == State::Open {
            (self.sharing.checks, self.status.wanted) = (true, true);
        }
    }

    /// Takes in the next number that was asked for before anything was sent.
    pub(super) fn checked(&mut self, now: Instant, next_id: u16, asked: Instant) {
        self.sharing.checks = false;
        // Nothing is in flight: a restart before then does not matter.
        self.sharing.certain = self.sharing.certain.max(asked);
        self.state = State::Open;
        if next_id == self.base {
            return;
        }
        let has_restarted = next_id == 1 || distance(next_id, self.base) < u16::MAX / 2;
        if has_restarted {
            self.counters.restarts += 1;
            self.sharing.begin();
        } else {
            self.note_others();
        }
        self.base = next_id;
        self.renumber(now);
    }

    /// Returns how many packets have been sent; those behind them have not.
    pub(super) fn sent(&self) -> usize {
        self.slots.iter().take_while(|slot| slot.stage != Stage::New).count()
    }

    /// Tells whether the device still keeps the reply of this number, whoever it went to.
    fn keeps(&self, id: u16) -> bool {
        let after = distance(id, self.device.next_id);
        // A status may be older than a reply.
        u32::from(after) <= self.device.buffers || after > u16::MAX / 2
    }

    /// Tells whether the next packet has to wait: others get a turn, or the greeting before it is not answered yet.
    #[inline]
    pub(super) fn is_held_back(&self, now: Instant) -> bool {
        let before = self.unsent.checked_sub(1).and_then(|before| self.slots.get(before));
        let greets = before.is_some_and(|slot| slot.key.is_none() && slot.stage != Stage::Answered);
        greets || self.sharing.contended > 0 && (now < self.sharing.pause || self.unsent > self.done)
    }

    /// Returns when the next packet need not wait for others any more, if that is what it waits for.
    pub(super) fn pause_ends(&self) -> Option<Instant> {
        let waits = self.sharing.contended > 0 && self.state == State::Open && !self.slots.is_empty();
        (waits && self.unsent == 0 && !self.sharing.checks).then_some(self.sharing.pause)
    }

    fn note_others(&mut self) {
        self.sharing.contended = CONTENDED;
        self.trouble();
    }

    /// Takes in that the device's next number is beyond all that were sent: others have taken some, or all, of them.
    pub(super) fn overtaken(&mut self, now: Instant, next_id: u16) {
        self.note_others();
        self.state = State::Open;
        self.sharing.beyond = Some(next_id);
        self.done = self.sent();
        self.unsent = self.done;
        for index in 0..self.done {
            let is_kept = self.keeps(self.slots[index].id);
            let slot = &mut self.slots[index];
            if matches!(slot.stage, Stage::Sent | Stage::ToAsk | Stage::Asked) && !is_kept {
                self.to_ask -= usize::from(slot.stage == Stage::ToAsk);
                slot.stage = Stage::Answered;
                self.sharing.lost.extend(slot.key);
            } else {
                self.ask(index);
            }
        }
        self.sharing.ask |= self.slots.iter().any(|slot| slot.stage == Stage::ToAsk);
        self.drop_answered(now);
        self.renumber_if_resolved(now);
    }

    /// Takes in a reply under a packet's number that is not the packet's. Answers whether it is another host's.
    pub(super) fn is_anothers(&mut self, now: Instant, index: usize, reply: &Packet<'_>) -> bool {
        let slot = &self.slots[index];
        let Some(told) = first_of(reply).filter(|_| slot.stage == Stage::Asked) else { return false };
        let id = slot.id;
        if slot.key.is_none() {
            // A greeting is never taken for another's.
            self.own.iter_mut().for_each(|own| own.differ_from(told, id));
        } else if self.slots.iter().any(|slot| slot.first_header().is_none_or(|ours| is_alike(ours, told))) {
            // It is cut short, or the device numbers its replies wrongly and sends another of ours.
            return false;
        }
        self.note_others();
        self.slots[index].stage = Stage::Anothers(told);
        self.believe(now);
        true
    }

    /// Takes packets for not done whose numbers others have taken, if the device has not restarted since they were sent: what
    /// was sent once has had its reply asked for right behind it.
    fn believe(&mut self, now: Instant) {
        let mut newest = None;
        for slot in &mut self.slots {
            let Stage::Anothers(told) = slot.stage else { continue };
            if slot.key.is_none() || slot.once || self.sharing.is_certain(slot.sent) {
                slot.stage = Stage::NotDone;
                newest = Some((slot.id, told));
            }
        }
        if self.slots.iter().any(|slot| matches!(slot.stage, Stage::Anothers(_))) {
            self.sharing.ask = self.sharing.asked.is_none();
        } else {
            self.sharing.witness = newest.or(self.sharing.witness);
        }
        self.renumber_if_resolved(now);
    }

    /// Gives up packets whose numbers others have taken, where the device may have restarted since, and keeps no reply any more
    /// that would show that it has not.
    pub(super) fn give_up_unproven(&mut self, now: Instant) {
        if self.sharing.witness.is_some_and(|(id, _)| self.keeps(id)) {
            return;
        }
        for slot in &mut self.slots {
            if matches!(slot.stage, Stage::Anothers(_)) {
                slot.stage = Stage::Answered;
                self.sharing.lost.extend(slot.key);
            }
        }
        self.drop_answered(now);
        self.renumber_if_resolved(now);
    }

    /// Returns the number of a reply that is to be asked for though it is nobody's here: it shows what others do, or that the
    /// device has not restarted.
    pub(super) fn next_known(&mut self, now: Instant) -> Option<u16> {
        if self.sharing.before > 0 {
            self.sharing.before -= 1;
            return Some(self.sharing.opened - self.sharing.before - 1);
        }
        if core::mem::take(&mut self.sharing.echo)
            && let Some(slot) = self.unsent.checked_sub(1).and_then(|last| self.slots.get_mut(last))
            && slot.stage == Stage::Sent
        {
            (slot.stage, slot.turn) = (Stage::Asked, self.turns + 1);
            return Some(slot.id);
        }
        if !core::mem::take(&mut self.sharing.ask) {
            return None;
        }
        let (id, _) = self.sharing.witness?;
        self.sharing.asked = Some(now);
        Some(id)
    }

    /// Has the witness asked for again, where it has not come.
    pub(super) fn miss_witness(&mut self) {
        self.sharing.ask |= self.sharing.asked.take().is_some();
    }

    /// Appends a read of no words, several times over: it does no harm, and nobody else has the same numbers.
    pub(super) fn append_greeting(&mut self, now: Instant) {
        let bits = self.sharing.random.bits();
        self.append(now, None, 0, |packet| {
            Order::NATIVE.push(Header { id: 0, kind: Kind::Control }.encode(), packet);
            for place in 0..GREETINGS {
                let id = (bits >> (ID_BITS * place)) as u16 % transaction::IDS;
                let nothing: Operation<Words<'_>> = Operation::Read { mode: Mode::Incrementing, address: 0, words: 0 };
                Request::new(id, nothing).encode(Order::NATIVE, packet);
            }
        });
    }

    /// Has the last replies from before the opening asked for, so that our numbers differ from those of who sent them.
    pub(super) fn look_back(&mut self, opened: u16) {
        self.sharing.opened = opened;
        self.sharing.before = if self.own.is_some() { LOOK_BACK.min(opened - 1) } else { 0 };
    }

    /// Takes in a reply from before the opening, whoever it went to. Answers whether it is one.
    pub(super) fn is_from_before(&mut self, reply: &Packet<'_>) -> bool {
        let id = reply.header.id;
        let is = (1..=LOOK_BACK).contains(&self.sharing.opened.saturating_sub(id)) && self.is_greeting();
        if let (true, Some(told), Some(own)) = (is, first_of(reply), &mut self.own) {
            own.differ_from(told, id);
        }
        is
    }

    /// Takes in a reply that may be the witness. Answers whether it is.
    pub(super) fn is_witness(&mut self, now: Instant, reply: &Packet<'_>) -> bool {
        let (Some(asked), Some((id, first))) = (self.sharing.asked, self.sharing.witness) else { return false };
        if id != reply.header.id {
            return false;
        }
        let Some(told) = reply.body.first_chunk::<WORD>() else { return false };
        self.sharing.asked = None;
        if is_alike(first, reply.order.u32(*told)) {
            self.sharing.certain = self.sharing.certain.max(asked);
            let ahead = usize::from(distance(self.base, self.device.next_id));
            if let Some(asked) = self.sharing.suspect.take().filter(|_| ahead <= self.sent()) {
                self.recover(ahead, asked);
            }
            self.believe(now);
        } else {
            self.lost_track(self.device.next_id, Cause::Restarted);
        }
        true
    }

    /// Tells whether a packet that a status shows as not done may be sent again: it may have been done before a restart that
    /// nothing else shows, where others have brought the numbers back to where they were.
    pub(super) fn may_send_again(&mut self, asked: StatusRequest) -> bool {
        let Some((id, _)) = self.sharing.witness else { return true };
        let is_young = |slot: &Slot| slot.once && asked.at <= slot.sent + RESTART;
        if self.sharing.is_certain(asked.at) || self.slots.get(self.done).is_some_and(is_young) {
            return true;
        }
        if !self.keeps(id) {
            self.lost_track(self.device.next_id, Cause::Contended);
        } else {
            self.sharing.ask = self.sharing.asked.is_none();
            self.sharing.suspect = Some(asked);
        }
        false
    }

    /// Sends again what was not done, with the next numbers, once it is known of each packet whether it was done.
    pub(super) fn renumber_if_resolved(&mut self, now: Instant) {
        if self.sharing.contended == 0 || self.failing > 0 || self.state != State::Open {
            return;
        }
        let others = self.sharing.beyond.is_some() || self.slots.iter().any(|slot| slot.stage == Stage::NotDone);
        let is_resolved = |slot: &Slot| matches!(slot.stage, Stage::Answered | Stage::NotDone | Stage::New);
        if others && self.slots.iter().all(is_resolved) {
            self.renumber(now);
        }
    }

    fn renumber(&mut self, now: Instant) {
        let last = self.slots.iter().rfind(|slot| slot.stage != Stage::New).map(|slot| following(slot.id));
        // What is known may be of before one's own last reply.
        let least = last.unwrap_or(self.base);
        let beyond = self.sharing.beyond.take().filter(|beyond| distance(least, *beyond) < u16::MAX / 2);
        self.next = beyond.unwrap_or(least);
        self.sharing.races += 1;
        let is_over = self.sharing.races > RACES_MAX;
        let count = self.slots.len();
        if self.slots.iter().any(|slot| slot.key.is_none() && slot.stage != Stage::Answered) {
            self.append_greeting(now);
        }
        for _ in 0..count {
            let Some(mut slot) = self.slots.pop_front() else { break };
            // Those that have been given their new numbers are behind.
            let later = |other: &Slot| other.stage == Stage::Answered && other.chain == slot.chain;
            let overtaken = self.slots.iter().any(later);
            match slot.key {
                Some(key) if slot.stage != Stage::Answered && (overtaken || is_over) => {
                    self.sharing.lost.push_back(key);
                }
                Some(_) if slot.stage != Stage::Answered => {
                    if self.next == 1 {
                        self.append_greeting(now);
                    }
                    let was_sent = u64::from(slot.stage == Stage::NotDone);
                    (self.counters.packets, self.counters.requests_lost) =
                        (self.counters.packets - was_sent, self.counters.requests_lost + was_sent);
                    self.number(&mut slot, self.next);
                    self.next = following(self.next);
                    self.slots.push_back(slot);
                    continue;
                }
                _ => {}
            }
            self.spare.push(slot.packet);
        }
        self.base = self.slots.front().map_or(self.next, |slot| slot.id);
        (self.done, self.unsent, self.to_ask) = (0, 0, 0);
        self.begin(now);
    }
}

/// Returns the header of a reply's first transaction, if it can be read.
fn first_of(reply: &Packet<'_>) -> Option<u32> {
    let first = reply.order.u32(*reply.body.first_chunk::<WORD>()?);
    let header = transaction::Header::decode(first).ok()?;
    (header.info != Info::BadHeader).then_some(first)
}

/// Tells whether two transactions have the same number and type.
fn is_alike(one: u32, other: u32) -> bool {
    (one ^ other) & 0x0FFF_00F0 == 0
}
