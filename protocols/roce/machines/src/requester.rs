//! The requester: the send queue of a queue pair (volume 1, 9.7.3 and 9.7.5).
//!
//! ```text
//!   completed | sent, not acknowledged | to be sent | free
//!             head / unacknowledged    cursor       tail
//! ```
//! A lost packet takes the cursor back to the oldest one that is not acknowledged, and everything from there is sent again.

mod answers;
mod timing;
mod window;

use crate::memory::Memory;
use crate::packet::Writer;
use crate::queue::Queue;
use crate::wire::{AtomicHeader, BaseHeader, Extended, Opcode, Position, RdmaHeader};
use crate::{Capacity, Completed, Completion, Connection, Mtu, Operation, Psn, SendRequest, Status, VerbError};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use hodo_machine::Instant;
use timing::Timing;
use window::Window;

pub(crate) use answers::{Answer, Completions};

/// The largest message (volume 1, 9.7.7): 2^31 bytes.
pub(crate) const MESSAGE_MAX: u32 = 1 << 31;
/// Ends of requests to read that are kept: a window that narrows from its widest to its narrowest passes fewer.
const ENDS_MAX: usize = 24;
/// An acknowledgement is asked for at least once in this many packets, so that the window moves on within a long message.
const ACK_EVERY: u32 = 64;

/// A request that has been posted to the send queue.
#[derive(Debug, Clone, Copy)]
struct Work {
    id: u64,
    operation: Operation,
    length: u32,
    first: Psn,
    packets: u32,
    entries: u32,
    is_signaled: bool,
    is_solicited: bool,
    has_fence: bool,
    is_inline: bool,
    /// Whether it counts among the reads and atomic operations in flight.
    is_started: bool,
}

/// The send queue, and what is known of the far end's progress.
#[derive(Debug)]
pub(crate) struct Requester {
    works: Queue<Work>,
    /// Room for the inline payloads of all requests.
    inline: Box<[u8]>,
    inline_max: usize,
    /// The request whose packets are sent next, and how many of its packets come before the next one.
    cursor: u64,
    cursor_packets: u32,
    /// The sequence number of the next request that is posted.
    next: Psn,
    /// The oldest packet that is not acknowledged.
    unacknowledged: Psn,
    /// The packet behind the last one that was ever sent.
    high: Psn,
    window: Window,
    mtu: Mtu,
    reads: u32,
    reads_max: u32,
    /// The far end's queue pair.
    to: u32,
    timing: Timing,
    /// Where the cursor went back to last because a packet was missing: further signs of the same loss are ignored.
    gone_back_to: Option<Psn>,
    /// Where requests ended that asked for parts of the oldest read again, the nearest last.
    ends: Vec<Psn>,
    /// A request that cannot be sent, and why; it fails when those before it are complete.
    broken: Option<(u64, Status)>,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
    pub(crate) naks: u64,
    pub(crate) not_ready: u64,
}

impl Requester {
    /// Returns the bytes that the send queue takes.
    pub(crate) const fn size(capacity: &Capacity) -> u64 {
        let inline = capacity.send_depth as u64 * capacity.inline_bytes as u64;
        Queue::<Work>::size(capacity.send_depth, capacity.send_entries).saturating_add(inline)
    }

    pub(crate) fn new(capacity: &Capacity) -> Self {
        let inline_max = capacity.inline_bytes as usize;
        let works = Queue::new(capacity.send_depth, capacity.send_entries);
        Requester {
            inline: vec![0; inline_max * works.depth() as usize].into_boxed_slice(),
            works,
            inline_max,
            cursor: 0,
            cursor_packets: 0,
            next: Psn::default(),
            unacknowledged: Psn::default(),
            high: Psn::default(),
            window: Window::new(1),
            mtu: Mtu::ALL[0],
            reads: 0,
            reads_max: 0,
            to: 0,
            timing: Timing::default(),
            gone_back_to: None,
            ends: Vec::new(),
            broken: None,
            retransmitted: 0,
            timeouts: 0,
            naks: 0,
            not_ready: 0,
        }
    }

    pub(crate) fn connect(&mut self, connection: &Connection, window_bytes: u32) {
        (self.next, self.unacknowledged, self.high) = (connection.send_psn, connection.send_psn, connection.send_psn);
        self.mtu = connection.mtu;
        self.window = Window::new((window_bytes / connection.mtu.bytes()).clamp(1, 1 << 22));
        self.reads_max = u32::from(connection.reads);
        self.to = connection.queue_pair;
        self.timing = Timing::new(connection);
    }

    /// Adds a request. The queue pair is ready to send.
    pub(crate) fn post(&mut self, request: &SendRequest<'_>, memory: &Memory) -> Result<(), VerbError> {
        let length = self.check(request)?;
        if request.is_inline {
            let start = self.works.slot(self.works.tail()) * self.inline_max;
            let mut room = &mut self.inline[start..start + length as usize];
            let gathered = memory.gather(request.entries, 0, length as usize, |bytes| {
                let (front, rest) = core::mem::take(&mut room).split_at_mut(bytes.len());
                front.copy_from_slice(bytes);
                room = rest;
            });
            gathered.map_err(|_| VerbError::Malformed("an inline payload is outside of every region"))?;
        }
        let packets = match request.operation {
            Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => 1,
            _ => self.mtu.packets(length),
        };
        let work = Work {
            id: request.id,
            operation: request.operation,
            length,
            first: self.next,
            packets,
            entries: request.entries.len() as u32,
            is_signaled: request.is_signaled,
            is_solicited: request.is_solicited,
            has_fence: request.has_fence,
            is_inline: request.is_inline,
            is_started: false,
        };
        self.works.push(work, request.entries);
        self.next = self.next.after(packets);
        Ok(())
    }

    /// Checks a request, and returns the length of its payload.
    fn check(&self, request: &SendRequest<'_>) -> Result<u32, VerbError> {
        if self.works.is_full() {
            return Err(VerbError::QueueFull(self.works.depth()));
        }
        let (given, most) = (request.entries.len(), self.works.width());
        if given > most {
            return Err(VerbError::TooManyEntries { given, most: most as u32 });
        }
        let length: u64 = request.entries.iter().map(|entry| u64::from(entry.length)).sum();
        let limit = if request.is_inline { self.inline_max as u32 } else { MESSAGE_MAX };
        if length > u64::from(limit) {
            return Err(VerbError::TooLong { given: length, most: limit });
        }
        match request.operation {
            Operation::Read(_) | Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => {
                if self.reads_max == 0 {
                    return Err(VerbError::Malformed(
                        "the queue pair was connected for no reads and atomic operations",
                    ));
                }
                if request.is_inline {
                    return Err(VerbError::Malformed("only sends and writes can be inline"));
                }
            }
            _ => {}
        }
        if is_atomic(request.operation) && length != 8 {
            return Err(VerbError::Malformed("an atomic operation needs eight bytes for its result"));
        }
        Ok(length as u32)
    }

    /// Returns whether there may be something to do at this time: a packet to send, or a failure to report.
    #[inline]
    pub(crate) fn has_work(&self, now: Instant) -> bool {
        self.has_packets(now) || self.failure().is_some()
    }

    /// Returns whether there may be a packet to send at this time. Nothing is sent from a request on that cannot be sent.
    #[inline]
    fn has_packets(&self, now: Instant) -> bool {
        let end = match self.broken {
            Some((number, _)) => number,
            None => self.works.tail(),
        };
        self.cursor < end && !self.timing.is_held(now)
    }

    /// Returns whether no request is outstanding.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.works.is_empty()
    }

    /// Writes the next packet, if one may be sent now. Returns its length.
    #[inline]
    pub(crate) fn write_next(&mut self, now: Instant, memory: &Memory, writer: &mut Writer<'_>) -> Option<usize> {
        if !self.has_packets(now) {
            return None;
        }
        let (number, index) = (self.cursor, self.cursor_packets);
        let work = *self.works.get(number)?;
        let psn = work.first.after(index);
        let in_flight = psn.since(self.unacknowledged).max(0) as u32;
        let sent_before = self.high.since(psn);
        let window = self.window.packets();
        if in_flight >= window || !self.may_start(&work, index, sent_before > 0) {
            return None;
        }
        let room = match work.operation {
            Operation::Read(_) if sent_before > 0 => {
                self.room_again(psn, (work.packets - index).min(sent_before as u32), window)
            }
            _ => window - in_flight,
        };
        let Segment { opcode, extended, taken, payload: (offset, count) } = work.segment(index, self.mtu, room);
        let is_last = index + taken == work.packets;
        let mut base = BaseHeader::new(opcode, self.to, psn);
        base.asks_ack = is_last || (psn.value() + 1).is_multiple_of(ACK_EVERY) || in_flight + taken >= window;
        base.is_solicited = is_last && work.is_solicited;
        let length = if work.is_inline {
            let start = self.works.slot(number) * self.inline_max + offset;
            writer.write(&base, &extended, count, |take| take(&self.inline[start..start + count]))
        } else {
            let entries = &self.works.entries(number)[..work.entries as usize];
            if memory.gather(entries, offset, count, |_| {}).is_err() {
                self.broken = Some((number, Status::LocalProtection));
                return None;
            }
            writer.write(&base, &extended, count, |take| {
                let _ = memory.gather(entries, offset, count, take);
            })
        };
        self.note_sent(now, &work, psn, taken);
        Some(length)
    }

    /// Returns how many packets of a read are asked for again from `psn` on, of those that were asked for.
    ///
    /// A responder takes a request for neither new nor old if it begins before the end of what has arrived there and ends behind
    /// it. That end is where some request ended, so no request may end behind the nearest one.
    fn room_again(&mut self, psn: Psn, asked: u32, window: u32) -> u32 {
        while self.ends.last().is_some_and(|end| end.since(psn) <= 0) {
            self.ends.pop();
        }
        let nearest = self.ends.last().map_or(asked, |end| end.since(psn) as u32);
        if window >= nearest || self.ends.len() >= ENDS_MAX {
            return nearest;
        }
        self.ends.push(psn.after(window));
        window
    }

    /// Moves on behind packets that were sent.
    #[inline]
    fn note_sent(&mut self, now: Instant, work: &Work, psn: Psn, taken: u32) {
        let is_again = psn.since(self.high) < 0;
        self.retransmitted += u64::from(is_again);
        self.timing.note_sent(now, psn, is_again);
        let behind = psn.after(taken);
        if behind.since(self.high) > 0 {
            self.high = behind;
        }
        self.timing.start(now);
        let number = self.cursor;
        self.cursor_packets += taken;
        if self.cursor_packets == work.packets {
            (self.cursor, self.cursor_packets) = (number + 1, 0);
        }
        if is_answered(work.operation)
            && !work.is_started
            && let Some(work) = self.works.at(number)
        {
            work.is_started = true;
            self.reads += 1;
        }
    }

    /// Returns whether reads and atomic operations in flight let this packet go. Those in flight when a packet is sent again
    /// may be behind it.
    #[inline]
    fn may_start(&self, work: &Work, index: u32, is_again: bool) -> bool {
        if work.has_fence && self.reads > 0 && !work.is_started && !is_again {
            return false;
        }
        if !is_answered(work.operation) {
            return true;
        }
        // One request to read is in flight for a long read: the next part is asked for when this one is there.
        let is_next_part = index == 0 || work.first.after(index) == self.unacknowledged;
        is_next_part && (work.is_started || self.reads < self.reads_max)
    }

    /// Takes the cursor back to a packet that is not acknowledged.
    fn go_back(&mut self, psn: Psn) {
        let mut number = self.works.head();
        while let Some(work) = self.works.get(number) {
            let index = psn.since(work.first);
            if index < work.packets as i32 {
                (self.cursor, self.cursor_packets) = (number, index.max(0) as u32);
                return;
            }
            number += 1;
        }
        (self.cursor, self.cursor_packets) = (number, 0);
    }

    /// Returns whether packets are in flight.
    #[inline]
    fn is_waiting(&self) -> bool {
        self.unacknowledged != self.high
    }

    /// Returns when something has to be done, if nothing arrives.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timing.deadline(self.is_waiting())
    }

    /// Completes the oldest request.
    #[inline]
    fn complete(&mut self, completions: &mut Completions<'_>) {
        let Some(work) = self.works.get(self.works.head()).copied() else { return };
        self.works.pop();
        self.reads -= u32::from(work.is_started);
        if self.cursor < self.works.head() {
            (self.cursor, self.cursor_packets) = (self.works.head(), 0);
        }
        if work.is_signaled {
            (completions.tell)(work.completion(completions.queue_pair, Status::Success));
        }
    }

    /// Fails the oldest request with this status, and flushes those behind it.
    pub(crate) fn fail(&mut self, mut status: Status, completions: &mut Completions<'_>) {
        while let Some(work) = self.works.get(self.works.head()) {
            (completions.tell)(work.completion(completions.queue_pair, status));
            status = Status::Flushed;
            self.works.pop();
        }
        (self.cursor, self.cursor_packets) = (self.works.tail(), 0);
        self.high = self.unacknowledged;
        self.reads = 0;
        self.broken = None;
        self.timing.stop();
    }

    /// Returns why the oldest request fails, if it cannot be sent and none is before it.
    pub(crate) fn failure(&self) -> Option<Status> {
        self.broken.filter(|(number, _)| *number == self.works.head()).map(|(_, status)| status)
    }
}

/// A packet of a request: its opcode and headers, how many sequence numbers it takes, and the place of its payload.
struct Segment {
    opcode: Opcode,
    extended: Extended,
    taken: u32,
    /// Offset and length within the request's payload.
    payload: (usize, usize),
}

impl Work {
    const fn completion(&self, queue_pair: u32, status: Status) -> Completion {
        let kind = match self.operation {
            Operation::Send | Operation::SendWithImmediate(_) | Operation::SendWithInvalidate(_) => Completed::Send,
            Operation::Write(_) | Operation::WriteWithImmediate(..) => Completed::Write,
            Operation::Read(_) => Completed::Read,
            Operation::CompareSwap { .. } => Completed::CompareSwap,
            Operation::FetchAdd { .. } => Completed::FetchAdd,
        };
        let length = if is_answered(self.operation) { self.length } else { 0 };
        Completion {
            id: self.id,
            queue_pair,
            status,
            kind,
            length,
            immediate: None,
            invalidated: None,
            is_solicited: false,
        }
    }

    /// Returns packet `index`. A request to read takes at most `room` sequence numbers.
    #[inline]
    fn segment(&self, index: u32, mtu: Mtu, room: u32) -> Segment {
        let offset = u64::from(index) * u64::from(mtu.bytes());
        let rest = u64::from(self.length).saturating_sub(offset);
        let one = |opcode, extended, payload| Segment { opcode, extended, taken: 1, payload };
        match self.operation {
            Operation::Read(remote) => {
                let taken = (self.packets - index).min(room);
                let length = rest.min(u64::from(taken) * u64::from(mtu.bytes())) as u32;
                let header = RdmaHeader { address: remote.address.wrapping_add(offset), key: remote.key, length };
                Segment { opcode: Opcode::ReadRequest, extended: Extended::Rdma(header), taken, payload: (0, 0) }
            }
            Operation::CompareSwap { remote, compare, swap } => {
                let header = AtomicHeader { address: remote.address, key: remote.key, swap_or_add: swap, compare };
                one(Opcode::CompareSwap, Extended::Atomic(header), (0, 0))
            }
            Operation::FetchAdd { remote, add } => {
                let header = AtomicHeader { address: remote.address, key: remote.key, swap_or_add: add, compare: 0 };
                one(Opcode::FetchAdd, Extended::Atomic(header), (0, 0))
            }
            operation => {
                let (opcode, extended) = outgoing(operation, Position::of(index, self.packets), self.length);
                one(opcode, extended, (offset as usize, rest.min(u64::from(mtu.bytes())) as usize))
            }
        }
    }

    /// Returns the number of the packet behind the last one.
    #[inline]
    const fn end(&self) -> Psn {
        self.first.after(self.packets)
    }
}

const fn is_atomic(operation: Operation) -> bool {
    matches!(operation, Operation::CompareSwap { .. } | Operation::FetchAdd { .. })
}

/// Returns whether the far end answers an operation with data.
#[inline]
const fn is_answered(operation: Operation) -> bool {
    matches!(operation, Operation::Read(_) | Operation::CompareSwap { .. } | Operation::FetchAdd { .. })
}

/// Returns the opcode and the extended headers of a packet of a send or a write.
#[inline]
fn outgoing(operation: Operation, position: Position, length: u32) -> (Opcode, Extended) {
    use Position::{First, Last, Middle, Only};
    let rdma = |remote: crate::Remote| RdmaHeader { address: remote.address, key: remote.key, length };
    match (operation, position) {
        (Operation::Write(remote) | Operation::WriteWithImmediate(remote, _), First) => {
            (Opcode::WriteFirst, Extended::Rdma(rdma(remote)))
        }
        (Operation::Write(_) | Operation::WriteWithImmediate(..), Middle) => (Opcode::WriteMiddle, Extended::None),
        (Operation::Write(_), Last) => (Opcode::WriteLast, Extended::None),
        (Operation::Write(remote), Only) => (Opcode::WriteOnly, Extended::Rdma(rdma(remote))),
        (Operation::WriteWithImmediate(_, immediate), Last) => {
            (Opcode::WriteLastImmediate, Extended::Immediate(immediate))
        }
        (Operation::WriteWithImmediate(remote, immediate), Only) => {
            (Opcode::WriteOnlyImmediate, Extended::RdmaImmediate(rdma(remote), immediate))
        }
        (Operation::SendWithImmediate(immediate), Last) => (Opcode::SendLastImmediate, Extended::Immediate(immediate)),
        (Operation::SendWithImmediate(immediate), Only) => (Opcode::SendOnlyImmediate, Extended::Immediate(immediate)),
        (Operation::SendWithInvalidate(key), Last) => (Opcode::SendLastInvalidate, Extended::Invalidate(key)),
        (Operation::SendWithInvalidate(key), Only) => (Opcode::SendOnlyInvalidate, Extended::Invalidate(key)),
        (_, First) => (Opcode::SendFirst, Extended::None),
        (_, Middle) => (Opcode::SendMiddle, Extended::None),
        (_, Last) => (Opcode::SendLast, Extended::None),
        (_, Only) => (Opcode::SendOnly, Extended::None),
    }
}
