//! The two ends of a link that talk to each other in runs.
use alloc::collections::VecDeque;

use super::super::node::Node;
use super::super::port::NEVER;
use super::super::ring::Ring;
use super::super::run::end_of_packet;
use super::super::{EndOfPacket, Observer, Place, Record};
use super::Mark;
use crate::character::Code;
use crate::end::{CREDIT_MAX, CREDIT_OF_FCT, Counts};
use crate::time::Picos;

/// The N-chars of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes of data.
    Data,
    /// The end of a packet.
    End(Code),
    /// The end of a packet with nothing in it.
    Empty(Code),
}

/// N-chars on their way to an end.
pub(super) type Run = super::super::run::Run<Kind>;

/// One end.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// The next boundary.
    pub(super) boundary: u64,
    /// Nothing that the far end has or will send on its own up to the horizon makes it send anything but NULLs.
    pub(super) idle: bool,
    pub(super) bit: u64,
    pub(super) cable: u64,
    pub(super) credit: u64,
    /// Whether there is a packet to send, how many of its bytes are left, how many have left here, and how it ends.
    pub(super) has_packet: bool,
    pub(super) rest: u64,
    pub(super) left: usize,
    pub(super) eep: bool,
    /// Arrivals of N-chars until the next FCT is due, without those accounted for. Not positive: it is due.
    pub(super) need: i64,
    /// When the next FCT is due, if known.
    pub(super) due: u64,
    /// N-chars that arrive here, and how many of them are accounted for: runs, and N-chars of the next run.
    pub(super) runs: Ring<Run>,
    accounted: usize,
    within: u64,
    /// FCTs that arrive here.
    pub(super) fcts: Ring<u64>,
    /// Codes that left in the batch.
    pub(super) sent: Counts,
    /// FCTs that arrived in the batch, and N-chars that were on their way here before it.
    pub(super) received: Counts,
    /// N-chars that are still on their way here after it.
    pub(super) returned: Counts,
}

impl Side {
    pub(super) fn reset(&mut self, boundary: u64, bit: u64, cable: u64, credit: u64, need: i64) {
        (self.boundary, self.bit, self.cable, self.credit, self.need) = (boundary, bit, cable, credit, need);
        (self.idle, self.has_packet, self.rest, self.left) = (false, false, 0, 0);
        self.due = if need <= 0 { 0 } else { NEVER };
        self.runs.clear();
        self.fcts.clear();
        (self.accounted, self.within) = (0, 0);
        (self.sent, self.received, self.returned) = Default::default();
    }

    /// Takes a run that is on its way. Nothing before `floor` will be asked for again.
    // In a function of its own the run goes through memory, which took a third of the whole time.
    #[inline(always)]
    pub(super) fn receive(&mut self, run: Run, floor: u64) {
        while self.accounted > 0 && self.runs.front().is_some_and(|first| first.last() <= floor) {
            self.runs.pop_front();
            self.accounted -= 1;
        }
        self.runs.push_back(run);
        self.idle = false;
        if self.due == NEVER {
            self.account();
        }
    }

    /// Finds when the next FCT is due, from the N-chars that are on their way.
    #[inline]
    fn account(&mut self) {
        while self.need > 0
            && let Some(run) = self.runs.get(self.accounted)
        {
            let n = (run.count - self.within).min(self.need as u64);
            self.within += n;
            self.need -= n as i64;
            if self.need == 0 {
                self.due = run.arrive + (self.within - 1) * run.length;
            }
            if self.within == run.count {
                (self.accounted, self.within) = (self.accounted + 1, 0);
            }
        }
    }

    /// Returns the earliest time at which an FCT could be due.
    #[inline]
    fn due_at_least(&self, far: &Side) -> u64 {
        if self.due != NEVER {
            return self.due;
        }
        if !far.has_packet || far.idle {
            return NEVER;
        }
        let missing = self.need as u64;
        let data = missing.min(far.rest);
        far.boundary + far.cable + (10 * data + 4 * (missing - data)) * far.bit
    }

    /// Sends the FCT that is due.
    #[inline]
    fn send_fct(&mut self, far: &mut Side) {
        self.boundary += 4 * self.bit;
        far.fcts.push_back(self.boundary + self.cable);
        far.idle = false;
        self.sent.fcts += 1;
        self.need += i64::from(CREDIT_OF_FCT);
        if self.need > 0 {
            self.due = NEVER;
            self.account();
        }
    }
}

/// A link that runs undisturbed.
pub(super) struct Exchange<'a, O> {
    pub(super) sides: &'a mut [Side; 2],
    pub(super) marks: &'a mut [VecDeque<Mark>; 2],
    pub(super) nodes: [&'a mut Node; 2],
    pub(super) places: [Place; 2],
    pub(super) observer: &'a mut O,
    pub(super) horizon: u64,
}

impl<O: Observer> Exchange<'_, O> {
    /// Runs to the horizon, or to a packet that the receive queue has no room for. Returns up to when everything is known.
    pub(super) fn run(&mut self) -> u64 {
        for at in 0..2 {
            if !self.load(at) {
                return 0;
            }
        }
        loop {
            let [one, other] = &*self.sides;
            let at = match (one.idle, other.idle) {
                (true, true) => return self.horizon,
                (true, false) => 1,
                (false, true) => 0,
                (false, false) => usize::from(other.boundary < one.boundary),
            };
            if self.sides[at].boundary > self.horizon {
                return self.horizon;
            }
            if !self.turn(at) {
                let both = self.sides.iter().filter(|side| !side.idle).map(|side| side.boundary);
                return both.min().unwrap_or(self.horizon).min(self.horizon);
            }
            if O::ACTIVE {
                let floor = self.sides[0].boundary.min(self.sides[1].boundary).min(self.horizon);
                self.flush(floor);
            }
        }
    }

    /// Lets one end go on, as far as the far end cannot act on it. Returns `false` if the receive queue has no room.
    #[inline]
    fn turn(&mut self, at: usize) -> bool {
        loop {
            let [one, other] = &mut *self.sides;
            let (side, far) = if at == 0 { (one, other) } else { (other, one) };
            // An FCT is the shortest that the far end can send next.
            let known = if far.idle { self.horizon } else { far.boundary + 4 * far.bit + far.cable - 1 };
            if side.idle || side.boundary > known.min(self.horizon) {
                return true;
            }
            while side.fcts.front().is_some_and(|arrive| *arrive <= side.boundary) {
                side.fcts.pop_front();
                side.credit += u64::from(CREDIT_OF_FCT);
                side.received.fcts += 1;
            }
            if side.due <= side.boundary {
                let began = side.boundary;
                side.send_fct(far);
                self.record(began, at, Record::Code(Code::Fct));
            } else if side.has_packet && side.credit > 0 {
                if side.rest > 0 {
                    self.send_data(at);
                } else if !self.send_end(at) {
                    return false;
                }
            } else {
                self.send_nulls(at);
            }
        }
    }

    #[inline]
    fn send_data(&mut self, at: usize) {
        let [one, other] = &mut *self.sides;
        let (side, far) = if at == 0 { (one, other) } else { (other, one) };
        let last = (side.due_at_least(far) - 1).min(self.horizon);
        let length = 10 * side.bit;
        let wanted = side.rest.min(side.credit);
        let began = side.boundary;
        let span = last - began;
        // A division takes longer than all the rest.
        let count = if span >= (wanted - 1) * length { wanted } else { span / length + 1 };
        side.boundary += count * length;
        side.credit -= count;
        side.rest -= count;
        side.sent.data += count;
        let from = side.left;
        side.left += count as usize;
        let floor = began.min(far.boundary);
        let arrive = began + length + side.cable;
        far.receive(Run { arrive, count, length, kind: Kind::Data }, floor);
        if from == 0 {
            self.arrives_first(1 - at, arrive);
        }
        if O::ACTIVE {
            let bit = Picos(self.sides[at].bit);
            if let Some((bytes, _)) = self.nodes[at].outgoing.front() {
                let bytes = &bytes[from..from + count as usize];
                self.observer.record(Picos(began), self.places[at], Record::Data { bytes, bit });
            }
        }
    }

    /// Takes note of when the first byte of a packet arrives, if this is the first one.
    pub(super) fn arrives_first(&mut self, at: usize, arrive: u64) {
        if !self.nodes[at].incoming.is_open() {
            self.nodes[at].incoming.begin(Picos(arrive));
            self.mark(at, arrive, None);
        }
    }

    /// Sends the end of a packet and turns to the next. Returns `false` if there is no room for that.
    fn send_end(&mut self, at: usize) -> bool {
        let [one, other] = &mut *self.sides;
        let (side, far) = if at == 0 { (one, other) } else { (other, one) };
        let (began, length) = (side.boundary, 4 * side.bit);
        side.boundary += length;
        side.credit -= 1;
        let code = if side.eep { Code::Eep } else { Code::Eop };
        side.sent.count(code, 1);
        let (floor, arrive) = (began.min(far.boundary), side.boundary + side.cable);
        side.has_packet = false;
        side.left = 0;
        self.nodes[at].outgoing.finish();
        let kind = self.end_in_flight(1 - at, code, arrive);
        self.sides[1 - at].receive(Run { arrive, count: 1, length, kind }, floor);
        self.record(began, at, Record::Code(code));
        self.load(at)
    }

    /// Ends the packet that arrives at a node, at the time when its end will arrive.
    pub(super) fn end_in_flight(&mut self, at: usize, code: Code, arrive: u64) -> Kind {
        let end = end_of_packet(code);
        let incoming = &mut self.nodes[at].incoming;
        if incoming.is_open() {
            let length = incoming.end(end, Picos(arrive)) as u64;
            self.mark(at, arrive, Some((length, end)));
            Kind::End(code)
        } else {
            self.mark(at, arrive, None);
            self.mark(at, arrive, Some((0, end)));
            Kind::Empty(code)
        }
    }

    fn send_nulls(&mut self, at: usize) {
        let [one, other] = &mut *self.sides;
        let (side, far) = if at == 0 { (one, other) } else { (other, one) };
        let mut until = side.due_at_least(far);
        if side.has_packet {
            let uncommitted = if far.idle { NEVER } else { far.boundary + 4 * far.bit + far.cable };
            until = until.min(side.fcts.front().copied().unwrap_or(uncommitted));
        }
        let (began, length) = (side.boundary, 8 * side.bit);
        // With nothing up to the horizon, only the NULL that begins now is certain: what follows is for whoever asks.
        side.idle = until > self.horizon;
        let count = if side.idle { 1 } else { (until - 1 - began) / length + 1 };
        side.boundary += count * length;
        side.sent.nulls += count;
        let bit = Picos(side.bit);
        self.record(began, at, Record::Nulls { count, bit });
    }

    /// Turns to the next packet that an end has to send. Returns `false` if the receive queue has no room for it.
    #[inline]
    pub(super) fn load(&mut self, at: usize) -> bool {
        let [one, other] = &mut self.nodes;
        let (sender, receiver) = if at == 0 { (one, other) } else { (other, one) };
        let Some((bytes, end)) = sender.outgoing.front() else { return true };
        if !receiver.has_room(bytes.len()) {
            return false;
        }
        receiver.incoming.append(bytes);
        let side = &mut self.sides[at];
        (side.has_packet, side.rest, side.left) = (true, bytes.len() as u64, 0);
        side.eep = end == EndOfPacket::Eep;
        true
    }

    fn record(&mut self, at: u64, side: usize, record: Record<'_>) {
        if O::ACTIVE {
            self.observer.record(Picos(at), self.places[side], record);
        }
    }

    fn mark(&mut self, side: usize, at: u64, end: Option<(u64, EndOfPacket)>) {
        if O::ACTIVE {
            self.marks[side].push_back(Mark { at, end });
        }
    }

    /// Records beginnings and ends of packets that arrived by `now`.
    pub(super) fn flush(&mut self, now: u64) {
        for side in 0..2 {
            while let Some(mark) = self.marks[side].front().copied().filter(|mark| mark.at <= now) {
                self.marks[side].pop_front();
                let record = match mark.end {
                    None => Record::PacketBegins,
                    Some((length, end)) => Record::PacketEnds { length, end },
                };
                self.record(mark.at, side, record);
            }
        }
    }
}

/// Returns how many N-chars have to arrive until an FCT is due.
pub(super) fn need(promised: u16, buffer: u16) -> i64 {
    i64::from(promised) + i64::from(CREDIT_OF_FCT) - i64::from(CREDIT_MAX.min(buffer))
}
