//! Rules of a window for answers, and for answers that are late.

use super::identity::OwnIds;
use super::{After, Answer, Cause, Heard, Out, Progress, Slot, Stage, State, StatusRequest, Window};
use crate::Error;
use crate::wire::IN_FLIGHT;
use crate::wire::Order;
use crate::wire::packet::{HEADER, Header, Kind, Packet, distance, following, is_header};
use crate::wire::status::Status;
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::Instant;

/// After a loss, so many packets have to go well before a lone one may take its time again.
const TROUBLED: u32 = 4096;
/// The status is asked for behind so many packets after a loss. Where losses are rare, asking costs more than a loss that
/// shows only when it is late.
const BEHIND: u32 = 256;
/// So often an answer has to be late before anything is given up, so that a host that was stopped does not give up at
/// once.
const TRIES_MIN: u32 = 3;
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

    pub(super) fn append(
        &mut self,
        now: Instant,
        key: Option<u64>,
        chain: u32,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> u16 {
        if self.slots.is_empty() {
            self.begin(now);
        }
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        fill(&mut packet);
        let id = self.next;
        let begun = packet.first_chunk_mut::<HEADER>().expect("a packet has a header");
        let header = *begun;
        let order = Order::BOTH.into_iter().find(|order| is_header(order.u32(header)));
        let order = order.expect("a packet begins with its header");
        *begun = order.bytes_32(Header { id, kind: Kind::Control }.encode());
        let first = self.mark(id, order, &mut packet);
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
        });
        self.next = following(id);
        id
    }

    pub(super) fn limit(&self) -> usize {
        let buffers = usize::try_from(self.device.buffers).unwrap_or(usize::MAX);
        if self.sharing.contended > 0 { 1 } else { self.config.in_flight.min(buffers).max(1) }
    }

    /// Tells whether only the greeting may be in flight: a read of no words, which does no harm if it is done twice. It
    /// shows that the ids agree, and it is what id 1 is spent on.
    pub(super) fn is_greeting(&self) -> bool {
        self.to_greet || self.next == 1 || self.slots.back().is_some_and(|slot| slot.key.is_none())
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
        if self.slots.is_empty() && (self.to_greet || self.next == 1) {
            self.to_greet = false;
            self.append_greeting(now);
        }
        if self.is_held_back(now) {
            return self.ask_behind(now);
        }
        let Some(slot) = self.slots.get_mut(self.unsent) else { return self.ask_behind(now) };
        let first = slot.stage == Stage::New;
        if self.unsent == 0 {
            self.progress.waiting = now;
        }
        self.turns += 1;
        (slot.stage, slot.sent, slot.turn, slot.once) = (Stage::Sent, now, self.turns, first);
        self.unsent += 1;
        self.sharing.echo = self.sharing.contended > 0 && slot.key.is_some();
        self.status.behind = self.troubled > TROUBLED - BEHIND && !self.progress.sent_again;
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
        self.status.asked.push_back(StatusRequest { at: now, turn: self.turns, silence_ns: 0 });
        self.status.due += 1;
        self.counters.statuses += 1;
        Out::Status
    }

    /// Requests the status right behind what was sent, if packets were lost lately: it comes behind the replies, and
    /// shows what is missing within a round-trip, long before anything is late. A packet that is sent again has to wait
    /// until it is late: a device that takes nothing is not asked for ever.
    #[inline]
    fn ask_behind(&mut self, now: Instant) -> Option<Out> {
        (self.status.behind && self.status.asked.is_empty()).then(|| self.ask_status(now))
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
            let is_known = self.failing == 0 && (self.is_from_before(reply) || self.is_witness(now, reply));
            return if is_known { Heard::Status } else { Heard::Stray };
        };
        let Slot { header, stage, sent, turn, once, .. } = *slot;
        let first = slot.unmarked(reply);
        if !slot.is_answered_by(reply) || !slot.key.is_none_or(|key| take(Answer { key, header, first, packet })) {
            if !self.is_anothers(now, index, reply) {
                self.not_taken();
            }
            return Heard::NotTaken;
        }
        slot.stage = Stage::Answered;
        self.to_ask -= usize::from(stage == Stage::ToAsk);
        self.round_trip.answered();
        if once {
            if self.sharing.contended == 0 {
                self.status.lose_before(turn);
            }
            self.round_trip.answered_after(now.nanos_since(sent));
            self.troubled = self.troubled.saturating_sub(1);
        }
        self.progress.waiting = now;
        // The device does packets in order: it has done all before this one.
        let done = self.done;
        self.done = done.max(index + 1);
        self.unsent = self.unsent.max(self.done);
        for missing in done..index {
            self.ask(missing);
        }
        self.note_own_reply(now, index);
        self.drop_answered(now);
        self.renumber_if_resolved(now);
        Heard::Reply
    }

    /// Requests the status after a reply that answers no known packet, and so does not show which packets are done. It
    /// is asked for at once, but only once until something gets on, for a device may answer nothing else.
    fn not_taken(&mut self) {
        self.troubled = TROUBLED;
        self.status.wanted |= !self.progress.sent_again && self.status.asked.is_empty();
        self.progress.sent_again = true;
    }

    pub(super) fn drop_answered(&mut self, now: Instant) {
        while self.slots.front().is_some_and(|slot| slot.stage == Stage::Answered) {
            self.drop_oldest();
            (self.progress.since, self.progress.tries, self.status.of_long_ago, self.progress.sent_again) =
                (now, 0, 0, false);
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
        self.spare.push(core::mem::take(&mut slot.packet));
        Some(slot)
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
        let (Some(&StatusRequest { at: latest, .. }), 0) = (self.status.asked.back(), self.failing) else {
            return Heard::Stray;
        };
        if self.state == State::Open && !self.sharing.checks && self.is_of_long_ago(status.next_id) {
            return Heard::Stray;
        }
        self.round_trip.answered();
        let late = if self.sharing.contended == 0 { self.round_trip.late() } else { self.config.late_max() };
        let Some(asked) = self.status.take_oldest(now, late) else { return Heard::Stray };
        // Where nothing is known, too short a time is better than none: it makes us ask sooner, and do nothing wrong.
        if asked.at == latest || self.round_trip.smoothed().is_none() {
            self.round_trip.answered_after(now.nanos_since(latest));
        }
        // It may answer any of them: the oldest shows the least of what is missing, and the latest leaves the most time for
        // a restart.
        let asked_until = StatusRequest { at: latest, ..asked };
        self.device = status;
        self.progress.waiting = now;
        let ahead = usize::from(distance(self.base, status.next_id));
        match self.state {
            State::Down | State::Opening => self.resume(now, status.next_id),
            _ if self.sharing.checks => self.checked(now, status.next_id, asked.at),
            _ if ahead <= self.sent() => self.recover(ahead, asked_until),
            State::Open if self.is_surely_overtaken(status.next_id) => self.overtaken(now, status.next_id),
            State::Open => {
                self.state = State::Doubtful(now + self.until_late_ones_have_come());
                self.status.asked.clear();
            }
            State::Doubtful(_) => self.believe_the_next(now, status.next_id),
        }
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

    /// Sends again what is missing, where the device has done so many slots. Its status was asked for in the turn of `asked`
    /// or later, and not after its instant.
    pub(super) fn recover(&mut self, ahead: usize, asked: StatusRequest) {
        self.state = State::Open;
        self.done = self.done.max(ahead);
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
            self.unsent = self.done;
            self.trouble();
            self.progress.sent_again = true;
        }
    }

    /// Takes the device's next id for true, which is none of ours for the second time: it has restarted, or others have
    /// sent packets.
    fn believe_the_next(&mut self, now: Instant, next_id: u16) {
        let is_behind = self.is_behind(next_id);
        let greets = self.slots.iter().all(|slot| slot.key.is_none());
        match (is_behind, greets) {
            (true, _) => self.lost_track(next_id, Cause::Restarted),
            (false, true) => self.fail(self.slots.len(), Cause::Contended, After::Resume(next_id)),
            (false, false) => self.overtaken(now, next_id),
        }
    }

    /// Tells whether a next id is not beyond all that were sent, but of before: the device has restarted.
    fn is_behind(&self, next_id: u16) -> bool {
        next_id == 1 || distance(next_id, self.base) < u16::MAX / 2
    }

    /// Tells whether a next id beyond all that were sent needs no second look: no status of long ago may still come.
    fn is_surely_overtaken(&self, next_id: u16) -> bool {
        self.status.due == 0 && !self.is_behind(next_id) && self.slots.iter().any(|slot| slot.key.is_some())
    }

    /// Fails all packets: nobody can say which were done.
    pub(super) fn lost_track(&mut self, next_id: u16, cause: Cause) {
        self.counters.restarts += u64::from(cause == Cause::Restarted);
        self.fail(self.slots.len(), cause, After::Resume(next_id));
    }

    /// Begins anew with this id.
    pub(super) fn resume(&mut self, now: Instant, id: u16) {
        (self.base, self.next) = (id, id);
        self.sharing.begin();
        self.look_back(id);
        self.state = State::Open;
        self.to_greet = true;
        self.own.iter_mut().for_each(OwnIds::renew);
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
        self.round_trip.was_late();
        self.miss_witness();
        for index in 0..self.done {
            self.ask(index);
        }
    }

    fn nothing_gets_on(&mut self, now: Instant) {
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
        self.drop_oldest().filter(|slot| slot.stage != Stage::Answered)?.key
    }
}
