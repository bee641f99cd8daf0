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

/// Packets over UDP without ids, as uHAL sends them: a reply is known by its first transaction, and what is lost is
/// lost. Nothing is sent again: with several in flight, a second sending could read what a later packet wrote.
#[derive(Debug)]
pub(super) struct Plain {
    in_flight: usize,
    timeout: Duration,
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
    sent: Instant,
}

impl Plain {
    pub(super) fn new(in_flight: usize, timeout: Duration) -> Self {
        Plain {
            in_flight: in_flight.max(1),
            timeout,
            slots: VecDeque::new(),
            unsent: 0,
            spare: Vec::new(),
            silent: 0,
            counters: WindowCounters::default(),
        }
    }

    pub(super) fn room(&self) -> usize {
        self.in_flight.saturating_sub(self.slots.len())
    }

    pub(super) const fn counters(&self) -> WindowCounters {
        self.counters
    }

    pub(super) fn push(&mut self, key: u64, packet: &mut Vec<u8>) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        core::mem::swap(&mut buffer, packet);
        self.slots.push_back(Slot { key, packet: buffer, sent: Instant::ZERO });
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
            slot.sent = now;
            out.copy(&slot.packet);
            self.unsent += 1;
            self.counters.packets += 1;
            return Move::Send;
        }
        let Some(&Slot { key, sent, .. }) = self.slots.front() else { return Move::Idle(None) };
        if now < sent + self.timeout {
            return Move::Idle(Some(sent + self.timeout));
        }
        self.counters.late += 1;
        self.silent += 1;
        if self.silent >= SILENT_MAX {
            return Move::Down(Error::NoAnswer);
        }
        self.drop_slot(0);
        Move::Failed { key, error: Error::NoAnswer }
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
