use super::carrier::Move;
use crate::Error;
use crate::window::{Answer, WindowCounters};
use crate::wire::packet::HEADER;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::{Instant, Outbox};

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
    counters: WindowCounters,
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
            counters: WindowCounters::default(),
        }
    }

    /// Returns it with a time after which harmless packets are sent again.
    pub(super) fn repeating(mut self, late: Duration) -> Self {
        self.late = late;
        self
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
