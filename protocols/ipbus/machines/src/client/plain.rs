use super::carrier::{Fits, Move};
use crate::Error;
use crate::window::{Answer, WindowCounters};
use crate::wire::PAYLOAD;
use crate::wire::packet::HEADER;
use crate::wire::status::{self, Status};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::{Instant, Outbox};

/// Without a status for this part of the patience, a device tells none.
pub(super) const NO_STATUS: u32 = 4;
/// The device is given up after this many packets in turn without any answer.
const SILENT_MAX: u32 = 2;

/// Packets over UDP without ids, as uHAL sends them: a reply is known by its transactions, and what is lost is lost, but
/// for packets that are said to be harmless.
#[derive(Debug)]
pub(super) struct Plain {
    in_flight: usize,
    timeout: Duration,
    /// After how long without an answer a harmless packet is sent again.
    late: Duration,
    slots: VecDeque<Slot>,
    /// Slots from this one on have not been sent.
    unsent: usize,
    spare: Vec<Vec<u8>>,
    silent: u32,
    buffer: Buffer,
    counters: WindowCounters,
}

/// The buffers of the device, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buffer {
    /// Nothing has needed to know them.
    Unknown,
    /// The status is to be asked for.
    Wanted,
    /// It was asked for, and is waited for until then.
    Asked(Instant),
    /// Each has this many bytes.
    Known(u32),
    /// The device tells no status.
    Untold,
}

#[derive(Debug)]
struct Slot {
    key: u64,
    packet: Vec<u8>,
    harmless: bool,
    /// When it was sent first.
    begun: Instant,
    /// When it was sent last.
    sent: Instant,
    /// Whether it was sent more than once.
    repeated: bool,
}

impl Plain {
    pub(super) fn new(in_flight: usize, timeout: Duration) -> Self {
        Plain {
            in_flight: in_flight.max(1),
            timeout,
            late: Duration::MAX,
            slots: VecDeque::new(),
            unsent: 0,
            spare: Vec::new(),
            silent: 0,
            buffer: Buffer::Unknown,
            counters: WindowCounters::default(),
        }
    }

    /// Returns it with a time after which harmless packets are sent again.
    pub(super) fn repeating(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }

    /// Tells whether the device has buffers for a packet and a reply of up to this many bytes; has it asked, if that is not known. As many as
    /// uHAL fills are always tried.
    pub(super) fn fits(&mut self, longest: usize) -> Fits {
        if longest <= PAYLOAD {
            return Fits::Yes;
        }
        match self.buffer {
            Buffer::Unknown => self.buffer = Buffer::Wanted,
            Buffer::Wanted | Buffer::Asked(_) => {}
            Buffer::Untold => return Fits::Yes,
            Buffer::Known(buffer) if longest <= buffer as usize => return Fits::Yes,
            Buffer::Known(buffer) => return Fits::No(Error::TooLong { bytes: longest, buffer }),
        }
        Fits::Unknown
    }

    /// Takes in the status of the device, or that it tells none.
    pub(super) fn note_status(&mut self, status: Option<&Status>) {
        // One without buffers is no status that makes sense.
        let buffer = status.map(|status| status.buffer_bytes).filter(|bytes| *bytes > 0);
        self.buffer = buffer.map_or(Buffer::Untold, Buffer::Known);
    }

    /// Takes in a datagram if it is the status that was asked for; returns whether it was.
    pub(super) fn takes_status(&mut self, bytes: &[u8]) -> bool {
        let Buffer::Asked(_) = self.buffer else { return false };
        let status = Status::decode(bytes);
        if let Ok(status) = &status {
            self.note_status(Some(status));
        }
        status.is_ok()
    }

    /// Returns how many packets it takes now: none while the reply to a repeated one is awaited. Its second reply then
    /// comes long before the ids of its transactions are used again.
    pub(super) fn room(&self) -> usize {
        let repeated = self.slots.iter().any(|slot| slot.repeated);
        if repeated { 0 } else { self.in_flight.saturating_sub(self.slots.len()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Tells whether one packet is waited for, and none is to be sent.
    pub(super) fn is_last(&self) -> bool {
        self.slots.len() == 1 && self.unsent == 1
    }

    /// Tells whether the last packet got no answer.
    pub(super) const fn is_silent(&self) -> bool {
        self.silent > 0
    }

    /// Gives up the first packet, and returns its key.
    pub(super) fn give_up_first(&mut self) -> Option<u64> {
        let key = self.slots.front()?.key;
        self.drop_slot(0);
        Some(key)
    }

    pub(super) const fn counters(&self) -> WindowCounters {
        self.counters
    }

    pub(super) fn push(&mut self, key: u64, packet: &mut Vec<u8>, harmless: bool) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        core::mem::swap(&mut buffer, packet);
        let never = Instant::ZERO;
        self.slots.push_back(Slot { key, packet: buffer, harmless, begun: never, sent: never, repeated: false });
    }

    pub(super) fn received(&mut self, bytes: &[u8], take: &mut dyn FnMut(Answer<'_>) -> bool) {
        if self.takes_status(bytes) {
            return;
        }
        for index in 0..self.unsent {
            if take(Answer { key: self.slots[index].key, header: [0; HEADER], first: None, packet: bytes }) {
                self.silent = 0;
                return self.drop_slot(index);
            }
        }
        self.counters.strays += 1;
    }

    pub(super) fn poll(&mut self, now: Instant, out: &mut Outbox) -> Move {
        if let Some(slot) = self.slots.get_mut(self.unsent) {
            (slot.begun, slot.sent) = (now, now);
            out.copy(&slot.packet);
            self.unsent += 1;
            self.counters.packets += 1;
            return Move::Send;
        }
        let told_by = match self.buffer {
            Buffer::Wanted => {
                self.buffer = Buffer::Asked(now + self.timeout / NO_STATUS);
                out.copy(&status::REQUEST);
                return Move::Send;
            }
            Buffer::Asked(until) if now < until => Some(until),
            Buffer::Asked(_) => {
                self.buffer = Buffer::Untold;
                return Move::Resumed;
            }
            _ => None,
        };
        match self.poll_slots(now, out) {
            Move::Idle(deadline) => Move::Idle(deadline.into_iter().chain(told_by).min()),
            step => step,
        }
    }

    fn poll_slots(&mut self, now: Instant, out: &mut Outbox) -> Move {
        let Some(&Slot { key, begun, .. }) = self.slots.front() else { return Move::Idle(None) };
        let end = begun + self.timeout;
        if now < end {
            return self.repeat(now, end, out);
        }
        self.counters.late += 1;
        self.silent += 1;
        if self.silent >= SILENT_MAX {
            return Move::Down(Error::NoAnswer);
        }
        self.drop_slot(0);
        Move::Failed { key, error: Error::NoAnswer }
    }

    /// Sends a harmless packet again that is late, or waits for the first to be late, or for the end of the first.
    fn repeat(&mut self, now: Instant, end: Instant, out: &mut Outbox) -> Move {
        let mut next = end;
        for slot in self.slots.iter_mut().filter(|slot| slot.harmless) {
            if now >= slot.sent + self.late {
                (slot.sent, slot.repeated) = (now, true);
                out.copy(&slot.packet);
                self.counters.late += 1;
                self.counters.requests_lost += 1;
                return Move::Send;
            }
            next = next.min(slot.sent + self.late);
        }
        Move::Idle(Some(next))
    }

    pub(super) fn reset(&mut self) {
        self.silent = 0;
        self.buffer = Buffer::Unknown;
        while !self.slots.is_empty() {
            self.drop_slot(0);
        }
    }

    fn drop_slot(&mut self, index: usize) {
        if let Some(slot) = self.slots.remove(index) {
            self.unsent -= usize::from(index < self.unsent);
            self.spare.push(slot.packet);
        }
    }
}
