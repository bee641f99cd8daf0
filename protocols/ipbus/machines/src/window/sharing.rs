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
//!
//! Hosts tell their replies apart by the numbers of their first transactions, of which there are 4096, and so two may have
//! the same. A reply that comes unasked is one's own: a device sends it to who sent the packet. One that was asked for is kept
//! back while little is known of the others, and they are watched: who has the same numbers shows it by his other packets.

use super::age::NumberAge;
use super::identity::{OwnIds, first_of, is_alike};
use super::rivals::Rivals;
use super::{Answer, Cause, RESTART, Slot, Stage, State, StatusRequest, Window};
use crate::wire::WORD;
use crate::wire::packet::{Packet, distance, following, has_restarted, is_up_to};
use alloc::collections::VecDeque;
use core::time::Duration;
use hodo_machine::{Instant, Random};

/// After another host was noticed, so many packets have to go well before several are in flight again.
pub(super) const CONTENDED: u32 = 256;
/// So often a packet may find its number taken before it is given up.
const RACES_MAX: u32 = 1024;
/// Races that follow one another at once; then there is a pause before each, which doubles with so many more.
const RACES_AT_ONCE: u32 = 16;
const RACES_DOUBLE: u32 = 4;
/// A packet that has found its number taken for this many patiences is given up, too.
const RACES_PATIENCES: u32 = 4;
/// A window that has heard nothing for this long asks for the next number before it sends anything.
const IDLE: Duration = Duration::from_secs(1);
/// The replies from before its opening that a window asks for.
pub(super) const LOOK_BACK: u16 = 4;
/// The knowledge of a window about other hosts, and about restarts of its device.
#[derive(Debug)]
pub(super) struct Sharing {
    random: Random,
    /// Packets that have to go well before several are in flight again.
    pub(super) contended: u32,
    /// Numbers in a row that others have taken, and since when.
    races: u32,
    racing: Instant,
    /// Nothing new is sent before this.
    pub(super) pause: Instant,
    /// The age of the next number.
    pub(super) number: NumberAge,
    /// The packet whose reply the device keeps and which is known: its number, and its first transaction in the reply.
    witness: Option<(u16, u32)>,
    /// Whether that reply is to be asked for, and when it was.
    pub(super) ask: bool,
    asked: Option<Instant>,
    /// The request for the status that showed a packet as not done, where a restart may be why.
    suspect: Option<StatusRequest>,
    /// When the last datagram was sent whose answer shows that the device had not restarted.
    certain: Instant,
    /// When the witness was asked for that came last.
    witnessed: Instant,
    /// When the device was heard last.
    pub(super) heard: Instant,
    /// Those that it keeps from the device.
    pub(super) rivals: Rivals,
    /// Whether the next number is to be known before anything is sent.
    pub(super) checks: bool,
    /// A number from which on packets may be one's own, how many of the replies before it are looked at, and how many of
    /// these are still to be asked for.
    opened: u16,
    looked_at: u16,
    /// The last number whose reply was asked for though nothing had been sent with it.
    asked_to: Option<u16>,
    before: u16,
    /// Whether the reply to what was sent last is to be asked for at once: it is one's own, or shows that the number was taken.
    pub(super) echo: bool,
    /// The next number, where others have taken all that were sent.
    pub(super) beyond: Option<u16>,
    /// Whether a reply is handed on that was kept back.
    trusts: bool,
    /// Whether a reply came unasked that is not its packet's, since the device's own last came.
    misnumbers: bool,
    /// Packets that are given up, and why: such as those that cannot be done any more, because later ones of the same client were.
    pub(super) lost: VecDeque<(u64, Cause)>,
}

impl Sharing {
    pub(super) fn new(seed: u64) -> Self {
        Sharing {
            random: Random::for_purpose(seed, 1),
            contended: 0,
            races: 0,
            racing: Instant::ZERO,
            pause: Instant::ZERO,
            number: NumberAge::default(),
            witness: None,
            ask: false,
            asked: None,
            suspect: None,
            certain: Instant::ZERO,
            witnessed: Instant::ZERO,
            heard: Instant::ZERO,
            rivals: Rivals::default(),
            checks: false,
            echo: false,
            opened: 0,
            looked_at: 0,
            asked_to: None,
            before: 0,
            beyond: None,
            trusts: false,
            misnumbers: false,
            lost: VecDeque::new(),
        }
    }

    /// Forgets what was known of the device: it has restarted, or is given up.
    pub(super) fn begin(&mut self) {
        (self.witness, self.ask, self.asked, self.suspect) = (None, false, None, None);
        (self.checks, self.before, self.beyond, self.races) = (false, 0, None, 0);
        (self.asked_to, self.number.is_forgotten) = (None, false);
    }

    /// Tells whether a reply under this number, which is sent for the first time, is one's own if it comes: nobody has asked for it.
    #[inline]
    pub(super) fn is_unasked(&mut self, id: u16) -> bool {
        self.asked_to = self.asked_to.filter(|asked| is_up_to(id, *asked));
        self.asked_to.is_none()
    }

    /// Tells whether it is not known whether a packet that the status shows as not done was done before a restart.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.suspect.is_some()
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
        sharing.number.told(slot.sent);
        let is_later = sharing.witness.is_none_or(|(id, _)| is_up_to(id, slot.id));
        // Where an earlier packet is open, others may have brought a restarted device's number to ours since.
        if index == 0 || sharing.is_certain(slot.sent) {
            if let Some(first) = slot.first_header().filter(|_| is_later) {
                sharing.witness = Some((slot.id, first));
            }
            if slot.once {
                sharing.certain = sharing.certain.max(slot.sent);
            }
        }
        (sharing.races, self.resumed, sharing.misnumbers) = (0, 0, false);
        if sharing.contended > 0 {
            sharing.contended -= 1;
            if sharing.contended == 0 {
                sharing.rivals.yielded();
            }
            let usual = self.round_trip.smoothed().unwrap_or_default().as_nanos() as u64;
            let longest = sharing.rivals.pause(usual).min(self.config.late_max().as_nanos() as u64);
            sharing.pause = now + Duration::from_nanos(sharing.random.below(longest + 1));
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
        self.sharing.number.told(asked);
        // Nothing is in flight: a restart before then does not matter.
        self.sharing.certain = self.sharing.certain.max(asked);
        self.state = State::Open;
        if next_id == self.base {
            return;
        }
        if !is_up_to(self.base, next_id) {
            // Under these numbers the device may keep replies of our own.
            self.own.iter_mut().for_each(OwnIds::draw);
        }
        if has_restarted(self.base, next_id) {
            self.counters.restarts += 1;
            self.sharing.begin();
        } else {
            self.note_others();
        }
        self.base = next_id;
        self.renumber(now, false);
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

    /// Tells whether the next packet has to wait: others get a turn, or it or the one before goes alone.
    #[inline]
    pub(super) fn is_held_back(&self, now: Instant) -> bool {
        let before = self.unsent.checked_sub(1).and_then(|before| self.slots.get(before));
        let is_alone = before.is_some_and(|slot| slot.alone && slot.stage != Stage::Answered)
            || self.unsent > 0 && self.slots.get(self.unsent).is_some_and(|slot| slot.alone);
        let is_in_vain = self.is_sent_in_vain() && self.unsent > self.done;
        is_alone || is_in_vain || self.sharing.contended > 0 && (now < self.sharing.pause || self.unsent > self.done)
    }

    /// Returns when the next packet need not wait for others any more, if that is what it waits for.
    pub(super) fn pause_ends(&self) -> Option<Instant> {
        let waits = self.sharing.contended > 0 && self.state == State::Open && !self.slots.is_empty();
        (waits && self.unsent == 0 && !self.sharing.checks).then_some(self.sharing.pause)
    }

    pub(super) fn note_others(&mut self) {
        self.sharing.contended = CONTENDED;
        self.sharing.rivals.forget_traces();
        self.trouble();
    }

    /// Takes in that the device's next number is beyond all that were sent: others have taken some, or all, of them.
    pub(super) fn overtaken(&mut self, now: Instant, next_id: u16, asked: Instant) {
        self.note_others();
        self.sharing.number.told(asked);
        self.state = State::Open;
        self.sharing.beyond = Some(next_id);
        self.done = self.sent();
        self.unsent = self.done;
        for index in 0..self.done {
            let slot = &self.slots[index];
            let is_waited_for = matches!(slot.stage, Stage::Sent | Stage::ToAsk | Stage::Asked);
            if is_waited_for && !self.keeps(slot.id) {
                self.lose(index);
            } else {
                self.ask(index);
            }
        }
        self.sharing.ask |= self.slots.iter().any(|slot| slot.stage == Stage::ToAsk);
        self.drop_answered(now);
        self.renumber_if_resolved(now);
    }

    /// Takes in a reply under a packet's number that is not the packet's. Answers whether it is another host's.
    ///
    /// A device sends its reply to who sent the packet. One that comes unasked and is not the packet's is of a device that has done the
    /// packet and numbers replies wrongly: nothing that it keeps shows that a packet was not done.
    pub(super) fn is_anothers(&mut self, now: Instant, index: usize, reply: &Packet<'_>) -> bool {
        let Some(told) = first_of(reply) else { return false };
        if self.slots.iter().any(|slot| slot.first_header().is_none_or(|ours| is_alike(ours, told))) {
            // It is cut short, or the device numbers its replies wrongly and sends another of ours.
            return false;
        }
        let slot = &self.slots[index];
        self.sharing.misnumbers |= slot.once && slot.stage == Stage::Sent;
        if slot.stage != Stage::Asked || self.sharing.misnumbers {
            return false;
        }
        self.note_others();
        let slot = &mut self.slots[index];
        self.sharing.number.told(slot.sent);
        slot.stage = Stage::Anothers(told);
        let id = slot.id;
        self.note_anothers(now, told, id);
        self.believe(now);
        true
    }

    /// Tells whether another host may have the same numbers.
    pub(super) fn is_unsure(&self) -> bool {
        match &self.own {
            Some(own) => (self.is_new || self.sharing.contended > 0) && !own.knows_others(),
            None => self.is_new,
        }
    }

    /// Keeps a packet's reply that was asked for back for a time, where it may be another host's that has the same numbers by
    /// chance: what others do in that time shows it. A reply that comes unasked is one's own, for a device sends it to who sent the
    /// packet. Answers whether it is kept back.
    pub(super) fn keep_back(&mut self, now: Instant, index: usize, reply: &[u8]) -> bool {
        if !self.is_unsure() || self.sharing.trusts {
            return false;
        }
        self.did_all_before(index);
        let slot = &mut self.slots[index];
        self.to_ask -= usize::from(slot.stage == Stage::ToAsk);
        (slot.stage, slot.once) = (Stage::KeptBack(now), false);
        slot.kept_back.clear();
        slot.kept_back.extend_from_slice(reply);
        self.give_up_doubtful(now);
        true
    }

    /// Looks at what others have sent, while a reply is kept back.
    pub(super) fn look_at_others(&mut self, next_id: u16) {
        let sent = self.sent();
        let is_kept_back = |slot: &Slot| matches!(slot.stage, Stage::KeptBack(_));
        if let Some(last) = sent.checked_sub(1).and_then(|last| self.slots.get(last))
            && self.slots.iter().any(is_kept_back)
        {
            let first = following(last.id);
            self.look_back(next_id, if is_up_to(first, next_id) { distance(first, next_id) } else { 0 });
        }
    }

    /// Hands on a reply that was kept back and is one's own.
    pub(super) fn hand_on(&mut self, now: Instant, take: impl FnOnce(Answer<'_>) -> bool) {
        let (is_unsure, longest) = (self.is_unsure(), self.config.late_max());
        let is_due = |slot: &&mut Slot| matches!(slot.stage, Stage::KeptBack(at) if !is_unsure || now >= at + longest);
        let Some(slot) = self.slots.iter_mut().find(is_due).filter(|_| self.failing == 0) else { return };
        slot.stage = Stage::Asked;
        let packet = core::mem::take(&mut slot.kept_back);
        if let Ok(reply) = Packet::decode(&packet) {
            self.sharing.trusts = true;
            self.replied(now, &reply, &packet, take);
            self.sharing.trusts = false;
        }
    }

    /// Takes in the first transaction of a packet that another host has sent with this id.
    fn note_anothers(&mut self, now: Instant, told: u32, id: u16) {
        let Some(own) = &mut self.own else { return };
        if own.note_anothers(told, id) {
            // What has not been sent gets other numbers.
            for _ in 0..self.slots.len() {
                let Some(mut slot) = self.slots.pop_front() else { break };
                if slot.stage == Stage::New {
                    let id = slot.id;
                    self.number(&mut slot, id);
                }
                self.slots.push_back(slot);
            }
        }
        self.give_up_doubtful(now);
    }

    /// Gives up packets whose replies are kept back, where another host is known that numbers as they were numbered: nobody can say
    /// whether they were done.
    fn give_up_doubtful(&mut self, now: Instant) {
        let mut is_any = false;
        for index in 0..self.slots.len() {
            let (slot, own) = (&self.slots[index], self.own.as_ref());
            let is_of_known =
                || slot.first_header().zip(own).is_some_and(|(first, own)| own.is_of_known(first, slot.id));
            if !matches!(slot.stage, Stage::KeptBack(_)) || !is_of_known() {
                continue;
            }
            is_any = true;
            self.lose(index);
        }
        if is_any {
            self.note_others();
            self.drop_answered(now);
            self.renumber_if_resolved(now);
        }
    }

    /// Gives up a packet of which nobody can say whether it was done. Reads are sent again.
    fn lose(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        self.to_ask -= usize::from(slot.stage == Stage::ToAsk);
        if slot.only_reads() {
            slot.stage = Stage::NotDone;
        } else {
            slot.stage = Stage::Answered;
            self.sharing.lost.push_back((slot.key, Cause::Contended));
        }
    }

    /// Takes packets for not done whose numbers others have taken, if the device has not restarted since they were sent: what
    /// was sent once has had its reply asked for right behind it.
    fn believe(&mut self, now: Instant) {
        let mut newest = None;
        for slot in &mut self.slots {
            let Stage::Anothers(told) = slot.stage else { continue };
            if slot.once || self.sharing.is_certain(slot.sent) {
                slot.stage = Stage::NotDone;
                self.counters.taken += 1;
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
        for index in 0..self.slots.len() {
            if matches!(self.slots[index].stage, Stage::Anothers(_)) {
                self.lose(index);
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
            let id = self.sharing.opened - self.sharing.before - 1;
            self.sharing.asked_to = Some(id);
            return Some(id);
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

    /// Has the last replies from before the opening asked for, so that our numbers differ from those of who sent them.
    pub(super) fn look_back(&mut self, opened: u16, most: u16) {
        let kept = u16::try_from(self.device.buffers).unwrap_or(u16::MAX);
        self.sharing.opened = opened;
        self.sharing.looked_at = most.min(LOOK_BACK).min(opened - 1).min(kept);
        self.sharing.before = self.sharing.looked_at;
    }

    /// Takes in a reply from before the opening, whoever it went to. Answers whether it is one.
    pub(super) fn is_from_before(&mut self, now: Instant, reply: &Packet<'_>) -> bool {
        let id = reply.header.id;
        let is = (1..=self.sharing.looked_at).contains(&self.sharing.opened.saturating_sub(id));
        let Some(told) = first_of(reply).filter(|_| is) else { return is };
        self.note_anothers(now, told, id);
        if self.sharing.witness.is_none_or(|(witness, _)| is_up_to(witness, id)) {
            self.sharing.witness = Some((id, told));
        }
        true
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
            self.sharing.witnessed = asked;
            let ahead = usize::from(distance(self.base, self.device.next_id));
            if let Some(asked) = self.sharing.suspect.take().filter(|_| ahead <= self.sent()) {
                self.recover(now, ahead, asked);
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
        let Some(slot) = self.slots.get(self.done) else { return true };
        let is_young = slot.once && asked.at <= slot.sent + RESTART;
        let is_shown = asked.at <= self.sharing.witnessed;
        // A packet may restart a device, and some are back at once.
        if is_shown || slot.id != 1 && (is_young || self.sharing.is_certain(asked.at)) {
            return true;
        }
        match self.sharing.witness {
            Some((id, _)) if self.keeps(id) => {
                self.sharing.ask = self.sharing.asked.is_none();
                self.sharing.suspect = Some(asked);
            }
            // The replies to earlier ones, which are asked for, may show it.
            Some(_) if self.done > 0 => {}
            Some(_) => self.lost_track(self.device.next_id, Cause::Contended),
            // It is the first, and nothing else is in flight.
            None if slot.only_reads() => return true,
            // It may be under way still.
            None if asked.at < slot.sent + self.config.late_max() => {}
            None => {
                // And may yet be done, with the number that the next one gets.
                self.own.iter_mut().for_each(OwnIds::draw);
                self.lost_track(self.device.next_id, Cause::LeftOpen);
            }
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
            let is_over = self.raced(now);
            self.renumber(now, is_over);
        }
    }

    /// Counts one more number that others have taken, and paces the next. Answers whether it is the last.
    fn raced(&mut self, now: Instant) -> bool {
        let sharing = &mut self.sharing;
        if sharing.races == 0 {
            sharing.racing = now;
        }
        sharing.races += 1;
        sharing.rivals.yielded();
        let longest = self.config.late_max();
        if let Some(races) = sharing.races.checked_sub(RACES_AT_ONCE) {
            let usual = self.round_trip.smoothed().unwrap_or_default().max(self.config.late_min);
            sharing.pause = now + usual.saturating_mul(1 << (races / RACES_DOUBLE).min(20)).min(longest);
            sharing.number.is_forgotten = true;
        }
        sharing.races > RACES_MAX || now >= sharing.racing + RACES_PATIENCES * self.config.patience
    }

    fn renumber(&mut self, now: Instant, is_over: bool) {
        let last = self.slots.iter().rfind(|slot| slot.stage != Stage::New).map(|slot| following(slot.id));
        // What is known may be of before one's own last reply.
        let least = last.unwrap_or(self.base);
        let beyond = self.sharing.beyond.take().filter(|beyond| is_up_to(least, *beyond));
        self.renumber_from(now, beyond.unwrap_or(least), is_over);
        if self.own.as_ref().is_some_and(|own| !own.knows_others()) {
            self.look_back(self.base, distance(least, self.base));
        }
    }

    /// Gives the packets that were not done, and those that were not sent, the numbers from this one on.
    pub(super) fn renumber_from(&mut self, now: Instant, next: u16, is_over: bool) {
        self.next = next;
        let count = self.slots.len();
        for _ in 0..count {
            let Some(mut slot) = self.slots.pop_front() else { break };
            // Those that have been given their new numbers are behind.
            let later = |other: &Slot| other.stage == Stage::Answered && other.chain == slot.chain;
            let overtaken = self.slots.iter().any(later);
            match slot.stage {
                Stage::Answered => {}
                _ if overtaken || is_over => self.sharing.lost.push_back((slot.key, Cause::Contended)),
                _ => {
                    let was_sent = u64::from(slot.stage == Stage::NotDone);
                    (self.counters.packets, self.counters.requests_lost) =
                        (self.counters.packets - was_sent, self.counters.requests_lost + was_sent);
                    self.number(&mut slot, self.next);
                    self.next = following(self.next);
                    self.slots.push_back(slot);
                    continue;
                }
            }
            self.keep_buffer(slot.packet);
        }
        self.base = self.slots.front().map_or(self.next, |slot| slot.id);
        (self.done, self.unsent, self.to_ask) = (0, 0, 0);
        self.begin(now);
    }
}
