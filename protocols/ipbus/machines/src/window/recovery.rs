//! Rules of a window for answers, and for answers that are late.

use super::identity::OwnIds;
use super::sharing::LOOK_BACK;
use super::{After, Answer, Cause, Heard, Out, Progress, Slot, Stage, State, StatusRequest, Window};
use crate::Error;
use crate::wire::IN_FLIGHT;
use crate::wire::Order;
use crate::wire::packet::{HEADER, Header, Kind, Packet, distance, following, has_restarted, is_header};
use crate::wire::status::Status;
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::Instant;

/// After a loss, so many packets have to go well before a lone one may take its time again.
const TROUBLED: u32 = 4096;
/// So often an answer has to be late before anything is given up, so that a host that was stopped does not give up at
/// once.
const TRIES_MIN: u32 = 3;
/// Replies under a packet's number that are not its own, before it is given up.
const REFUSED: u32 = 4;
/// So often packets are sent again at the usual intervals before any of them is taken: a network that loses a third does not lose as many in a
/// row.
pub(super) const VAIN: u32 = 16;
/// So often a window begins anew, with any other number that the status tells, before a packet is answered.
const RESUMES: u32 = 24;
/// The numbers that others may have taken since the status told the last one.
const TAKEN: u16 = 1024;
/// Status requests that are waited for at most; the oldest of more is taken for lost.
const STATUSES: usize = 16;
/// The number of statuses with an id of long ago that are taken for late ones while nothing gets on.
const OF_LONG_AGO_MAX: u32 = 8;

impl Window {
    /// Starts the wait for something new.
    pub(super) fn begin(&mut self, now: Instant) {
        self.progress = Progress::start(now);
    }

    /// Notes that something was lost.
    pub(super) fn trouble(&mut self) {
        self.troubled = TROUBLED;
    }

    pub(super) fn append(&mut self, now: Instant, key: u64, chain: u32, fill: impl FnOnce(&mut Vec<u8>)) -> u16 {
        if self.slots.is_empty() {
            self.begin(now);
        }
        let mut packet = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= packet.capacity();
        packet.clear();
        fill(&mut packet);
        let id = self.next;
        let begun = packet.first_chunk_mut::<HEADER>().expect("a packet has a header");
        let header = *begun;
        let order = Order::BOTH.into_iter().find(|order| is_header(order.u32(header)));
        let order = order.expect("a packet begins with its header");
        *begun = order.bytes_32(Header { id, kind: Kind::Control }.encode());
        let first = self.mark(id, order, &mut packet);
        let is_suspect = self.is_suspect(chain, packet.len());
        self.slots.push_back(Slot {
            id,
            key,
            chain,
            header,
            first,
            packet,
            stage: Stage::New,
            sent: now,
            turn: 0,
            once: false,
            alone: self.is_new || id == 1 || is_suspect,
            kept_back: Vec::new(),
            refused: 0,
        });
        self.next = following(id);
        id
    }

    pub(super) fn limit(&self) -> usize {
        let buffers = usize::try_from(self.device.buffers).unwrap_or(usize::MAX);
        if self.sharing.contended > 0 || self.is_new || self.next == 1 {
            1
        } else {
            self.config.in_flight.min(buffers).max(1)
        }
    }

    /// Tells whether nothing may go with what is in flight.
    pub(super) fn is_alone(&self) -> bool {
        self.slots.back().is_some_and(|slot| slot.alone || self.next == 1)
    }

    /// Takes the next datagram to be sent, and notes it as sent.
    pub(super) fn next_out(&mut self, now: Instant) -> Option<Out> {
        if let Some(id) = self.next_known(now) {
            self.turns += 1;
            return Some(Out::Resend(id));
        }
        if self.status.wanted {
            return Some(self.ask_status(now));
        }
        if self.state != State::Open || self.sharing.checks {
            return None;
        }
        if self.to_ask > 0
            && let Some(slot) = self.slots.iter_mut().take(self.done).find(|slot| slot.stage == Stage::ToAsk)
        {
            self.turns += 1;
            (slot.stage, slot.sent, slot.turn, slot.once) = (Stage::Asked, now, self.turns, false);
            self.to_ask -= 1;
            self.counters.replies_lost += 1;
            return Some(Out::Resend(slot.id));
        }
        if self.is_held_back(now) {
            return self.ask_behind(now);
        }
        if !self.slots.is_empty() && self.is_number_old(now) {
            self.sharing.checks = true;
            return Some(self.ask_status(now));
        }
        let is_unsure = self.is_unsure();
        let Some(slot) = self.slots.get_mut(self.unsent) else { return self.ask_behind(now) };
        let first = slot.stage == Stage::New;
        let once = first && self.sharing.is_unasked(slot.id);
        if self.unsent == 0 {
            self.progress.waiting = now;
        }
        self.turns += 1;
        (slot.stage, slot.sent, slot.turn, slot.once) = (Stage::Sent, now, self.turns, once);
        self.unsent += 1;
        self.sharing.number.used();
        self.sharing.echo = self.sharing.contended > 0 && !is_unsure;
        self.status.behind = self.troubled > 0 && !self.progress.sent_again || self.glances();
        if first && self.slots[self.unsent - 1].alone {
            self.begin_alone(now);
        }
        self.counters.alone += u64::from(self.sharing.contended > 0);
        if first {
            self.counters.packets += 1;
        } else {
            self.counters.requests_lost += 1;
        }
        Some(Out::Packet(self.unsent - 1))
    }

    fn ask_status(&mut self, now: Instant) -> Out {
        (self.status.wanted, self.status.behind) = (false, false);
        self.turns += 1;
        if self.status.asked.len() >= STATUSES {
            self.status.asked.pop_front();
        }
        self.status.asked.push_back(StatusRequest { at: now, turn: self.turns });
        self.status.due += 1;
        self.counters.statuses += 1;
        Out::Status
    }

    /// Requests the status right behind what was sent, if packets were lost lately: it comes behind the replies, and
    /// shows what is missing within a round-trip, long before anything is late. A packet that is sent again has to wait
    /// until it is late: a device that takes nothing is not asked for ever.
    #[inline]
    fn ask_behind(&mut self, now: Instant) -> Option<Out> {
        if !self.status.behind {
            return None;
        }
        let longest = self.config.late_max();
        while self.status.asked.front().is_some_and(|asked| now >= asked.at + longest) {
            self.status.asked.pop_front();
        }
        self.status.asked.is_empty().then(|| self.ask_status(now))
    }

    #[inline]
    pub(super) fn replied(
        &mut self,
        now: Instant,
        reply: &Packet<'_>,
        packet: &[u8],
        take: impl FnOnce(Answer<'_>) -> bool,
    ) -> Heard {
        let id = reply.header.id;
        let index = usize::from(distance(self.base, id));
        let waits = |slot: &&mut Slot| matches!(slot.stage, Stage::Sent | Stage::ToAsk | Stage::Asked);
        let Some(slot) = self.slots.get_mut(index).filter(waits).filter(|_| id != 0 && self.failing == 0) else {
            let is_known = self.failing == 0 && (self.is_witness(now, reply) || self.is_from_before(now, reply));
            return if is_known { Heard::Status } else { Heard::Stray };
        };
        let Slot { key, header, stage, sent, once, .. } = *slot;
        let first = slot.unmarked(reply);
        let answer = slot.answered_by(reply).map(|length| &packet[..length]);
        let is_asked_for = !once || stage != Stage::Sent;
        if let Some(answer) = answer.filter(|_| is_asked_for)
            && self.keep_back(now, index, answer)
        {
            return Heard::Status;
        }
        let slot = &mut self.slots[index];
        let taken = |packet| take(Answer { key, header, first, packet });
        if !answer.is_some_and(taken) {
            if !self.is_anothers(now, index, reply) {
                self.not_taken(now, index);
            }
            return Heard::NotTaken;
        }
        slot.stage = Stage::Answered;
        let (chain, length) = (slot.chain, slot.packet.len());
        self.note_taken(now, chain, length);
        self.is_new = false;
        self.to_ask -= usize::from(stage == Stage::ToAsk);
        self.progress.vain = 0;
        self.round_trip.answered();
        if once {
            self.round_trip.answered_after(now.nanos_since(sent));
            self.troubled = self.troubled.saturating_sub(1);
        }
        self.progress.waiting = now;
        self.did_all_before(index);
        self.note_own_reply(now, index);
        self.drop_answered(now);
        self.renumber_if_resolved(now);
        Heard::Reply
    }

    /// Takes in that the device has done a packet: it does them in order, and so has done all before it.
    pub(super) fn did_all_before(&mut self, index: usize) {
        let done = self.done;
        self.done = done.max(index + 1);
        self.unsent = self.unsent.max(self.done);
        for missing in done..index {
            self.ask(missing);
        }
    }

    /// Requests the status after a reply that answers no known packet, and so does not show which packets are done. It
    /// is asked for at once, but only once until something gets on, for a device may answer nothing else; and it is not
    /// asked for ever.
    fn not_taken(&mut self, now: Instant, index: usize) {
        self.troubled = TROUBLED;
        self.slots[index].refused += 1;
        if index == 0 && self.done > 0 && self.slots[0].refused >= REFUSED {
            self.fail(1, Cause::ReplyLost, After::GoOn);
            return self.begin(now);
        }
        self.status.wanted |= !self.progress.sent_again && self.status.asked.is_empty();
        self.progress.sent_again = true;
    }

    pub(super) fn drop_answered(&mut self, now: Instant) {
        while self.slots.front().is_some_and(|slot| slot.stage == Stage::Answered) {
            self.drop_oldest();
            (self.progress.since, self.progress.tries, self.progress.vain) = (now, 0, 0);
            (self.status.of_long_ago, self.progress.sent_again) = (0, false);
        }
    }

    /// Forgets the oldest slot, and keeps its buffer.
    fn drop_oldest(&mut self) -> Option<Slot> {
        let mut slot = self.slots.pop_front()?;
        self.base = following(slot.id);
        self.done = self.done.saturating_sub(1);
        self.unsent = self.unsent.saturating_sub(1);
        self.failing = self.failing.saturating_sub(1);
        self.to_ask -= usize::from(slot.stage == Stage::ToAsk);
        self.keep_buffer(core::mem::take(&mut slot.packet));
        Some(slot)
    }

    /// Keeps a buffer for a packet to come, unless there are enough.
    #[inline]
    pub(super) fn keep_buffer(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() <= self.config.spare_bytes.saturating_sub(self.spare_bytes) {
            self.spare_bytes += buffer.capacity();
            self.spare.push(buffer);
        }
    }

    pub(super) fn ask(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index)
            && matches!(slot.stage, Stage::Sent | Stage::Asked)
        {
            slot.stage = Stage::ToAsk;
            self.to_ask += 1;
            self.troubled = TROUBLED;
        }
    }

    pub(super) fn told_status(&mut self, now: Instant, bytes: &[u8]) -> Heard {
        let status = match Status::decode(bytes) {
            Ok(status) if status.next_id == 0 => {
                let header = Header { id: 0, kind: Kind::Control }.encode();
                return Heard::Malformed(Error::PacketKind { header });
            }
            Ok(status) => status,
            Err(error) => return Heard::Malformed(error),
        };
        self.status.due = self.status.due.saturating_sub(1);
        let (Some(&asked), 0) = (self.status.asked.front(), self.failing) else { return Heard::Stray };
        // After a long silence it may be that of a device that has restarted; else a late copy would have us take our own earlier reply.
        let follows = !self.sharing.checks || self.sharing.contended > 0;
        if self.state == State::Open && follows && self.is_of_long_ago(status.next_id) {
            return Heard::Stray;
        }
        let ahead = usize::from(distance(self.base, status.next_id));
        // A device that tells its status and takes no packet is asked less and less often.
        if self.progress.vain <= VAIN {
            self.round_trip.answered();
        }
        let last = self.status.asked.back().map_or(asked.at, |last| last.at);
        // Where nothing is known, too short a time is better than none: it makes us ask sooner, and do nothing wrong.
        if asked.at == last || self.round_trip.smoothed().is_none() {
            self.round_trip.answered_after(now.nanos_since(last));
        }
        self.status.asked.pop_front();
        self.look_at_others(status.next_id);
        self.device = status;
        self.progress.waiting = now;
        match self.state {
            State::Down | State::Opening => {
                // One packet is tried with each opening, until one is answered.
                self.resumed = self.resumed.min(RESUMES - 1);
                self.resume(now, status.next_id);
            }
            _ if self.sharing.checks => self.checked(now, status.next_id, asked.at),
            // It may answer the last request, long after the first: there may have been time for a restart.
            _ if ahead <= self.sent() => self.recover(now, ahead, StatusRequest { at: last, turn: asked.turn }),
            State::Open if self.is_surely_overtaken(now, status.next_id) => {
                self.overtaken(now, status.next_id, asked.at);
            }
            State::Open => {
                self.state = State::Doubtful(now + self.until_late_ones_have_come());
                self.status.asked.clear();
            }
            State::Doubtful(_) => self.believe_the_next(now, status.next_id, asked.at),
        }
        self.look_at_history(&status.history);
        self.give_up_unproven(now);
        Heard::Status
    }

    /// Tells whether a status is the copy of an earlier one, or a very late one: its id is one of a short time ago. A
    /// device that goes on telling such an id is not believed to be late any more.
    fn is_of_long_ago(&mut self, next_id: u16) -> bool {
        let behind = usize::from(distance(next_id, self.base));
        let is = next_id != 1 && (1..=4 * IN_FLIGHT).contains(&behind) && self.status.of_long_ago < OF_LONG_AGO_MAX;
        self.status.of_long_ago += u32::from(is);
        is
    }

    /// Returns how long late statuses may still come, since a status carries nothing that tells which request it
    /// answers: if some are due, they get all the time that an answer may take.
    fn until_late_ones_have_come(&self) -> Duration {
        if self.status.due == 0 { self.round_trip.late() } else { self.config.late_max() }
    }

    /// Sends again what is missing, where the device has done so many slots; its status was asked for in the turn `asked`.
    pub(super) fn recover(&mut self, now: Instant, ahead: usize, asked: StatusRequest) {
        self.state = State::Open;
        if self.done < ahead {
            (self.done, self.progress.vain) = (ahead, 0);
        }
        for index in 0..self.done {
            if self.slots[index].turn < asked.turn {
                self.ask(index);
            }
        }
        // Whatever the device dropped for its id is gone, with all that was sent behind it.
        let missing = self
            .slots
            .get(self.done)
            .is_some_and(|slot| matches!(slot.stage, Stage::Sent | Stage::Asked) && slot.turn < asked.turn);
        if missing && self.unsent > self.done && self.may_send_again(asked) {
            self.progress.vain += 1;
            if self.isolate_ignored(now) {
                return;
            }
            self.unsent = self.done;
            self.trouble();
            self.progress.sent_again = true;
        }
    }

    /// Takes the device's next id for true, which is none of ours for the second time: it has restarted, or others have
    /// sent packets.
    fn believe_the_next(&mut self, now: Instant, next_id: u16, asked: Instant) {
        match (has_restarted(self.base, next_id), self.slots.is_empty()) {
            (true, _) => self.lost_track(next_id, Cause::Restarted),
            (false, true) => self.resume(now, next_id),
            (false, false) => self.overtaken(now, next_id, asked),
        }
    }

    /// Tells whether a next id beyond all that were sent needs no second look: no status of before the opening may still come.
    fn is_surely_overtaken(&self, now: Instant, next_id: u16) -> bool {
        now >= self.status.old_until && !has_restarted(self.base, next_id) && !self.slots.is_empty()
    }

    /// Fails all packets: nobody can say which were done.
    pub(super) fn lost_track(&mut self, next_id: u16, cause: Cause) {
        self.counters.restarts += u64::from(cause == Cause::Restarted);
        self.fail(self.slots.len(), cause, After::Resume(next_id));
    }

    /// Begins anew with this id.
    pub(super) fn resume(&mut self, now: Instant, id: u16) {
        // Others take the numbers one after the other.
        let is_others = (1..=TAKEN).contains(&distance(self.resumed_at, id));
        (self.resumed, self.resumed_at) = (self.resumed + u32::from(!is_others), id);
        if self.resumed > RESUMES {
            // Its status tells any number, and it takes no packet.
            return self.fail_all(self.cause);
        }
        (self.base, self.next) = (id, id);
        self.sharing.begin();
        // A device that tells any number has been asked often enough.
        self.look_back(id, if self.resumed < RESUMES { LOOK_BACK } else { 0 });
        self.state = State::Open;
        self.is_new = true;
        if self.status.due > 0 {
            self.status.old_until = now + self.config.late_max();
        }
        // Replies of before a restart have the old numbers, and others' of then prove nothing: each of them draws anew, too.
        self.own.iter_mut().for_each(OwnIds::draw);
        self.begin(now);
    }

    /// Returns when there is something to do next, if nothing is received before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.late_at().into_iter().chain(self.pause_ends()).min()
    }

    /// Returns when the oldest answer is late.
    pub(super) fn late_at(&self) -> Option<Instant> {
        match self.state {
            State::Down => None,
            State::Doubtful(until) if !self.is_status_awaited() => Some(until),
            State::Open if self.slots.is_empty() => None,
            State::Open if self.unsent == 0 && !self.is_status_awaited() => None,
            _ => Some(self.progress.waiting + self.patience_for_one()),
        }
    }

    fn is_status_awaited(&self) -> bool {
        self.status.wanted || !self.status.asked.is_empty()
    }

    fn patience_for_one(&self) -> Duration {
        let late = self.round_trip.late();
        let lone = self.slots.len() == 1 && self.slots[0].once && self.slots[0].stage == Stage::Sent;
        if lone && self.troubled == 0 { late.max(self.config.calm) } else { late }
    }

    /// Handles the oldest answer being late.
    pub(super) fn late(&mut self, now: Instant) {
        let first_doubt = matches!(self.state, State::Doubtful(_)) && !self.is_status_awaited();
        self.progress.waiting = now;
        self.status.wanted = true;
        if first_doubt {
            self.status.due = 0;
            return;
        }
        self.counters.late += 1;
        self.progress.tries += 1;
        if self.progress.tries >= TRIES_MIN
            && now.nanos_since(self.progress.since) >= self.config.patience.as_nanos() as u64
        {
            return self.nothing_gets_on(now);
        }
        if self.isolate_unanswered(now) {
            return;
        }
        self.progress.vain += u32::from(self.done > 0);
        self.round_trip.was_late();
        self.miss_witness();
        for index in 0..self.done {
            self.ask(index);
        }
    }

    fn nothing_gets_on(&mut self, now: Instant) {
        if self.sharing.is_in_doubt() {
            return self.lost_track(self.device.next_id, Cause::Restarted);
        }
        if self.done > 0 && self.progress.heard {
            self.fail(self.done, Cause::ReplyLost, After::GoOn);
            return self.begin(now);
        }
        let silent = if self.progress.heard { Cause::Ignored } else { Cause::Silent };
        let cause = self.progress.malformed.map_or(silent, Cause::Malformed);
        self.fail_all(cause);
    }

    pub(super) fn fail_all(&mut self, cause: Cause) {
        self.state = State::Down;
        self.status.wanted = false;
        self.status.asked.clear();
        self.sharing.begin();
        self.fail(self.slots.len(), cause, After::Down);
    }

    fn fail(&mut self, count: usize, cause: Cause, after: After) {
        (self.failing, self.cause, self.after) = (count, cause, after);
    }

    /// Returns the key of the next packet that is given up, if it has one and was not answered.
    pub(super) fn next_failed(&mut self) -> Option<u64> {
        self.drop_oldest().filter(|slot| slot.stage != Stage::Answered).map(|slot| slot.key)
    }
}
