//! The starts of operations: as their slots are free, at a pace, or as they fall due.

use super::{Drive, Phase};
use crate::Operation;
use crate::run::slots::Ended;
use hodo_machine::Instant;

impl Drive<'_> {
    /// Fills every channel's window, one operation of each channel after the other.
    pub(super) fn fill(&mut self, now: Instant) {
        for _ in 0..self.shared.plan.window {
            for channel in 0..self.channels {
                if let Some(slot) = self.slots.take(channel) {
                    match &mut self.gate {
                        Some(gate) => gate.add(slot),
                        None => _ = self.begin(slot, now),
                    }
                }
            }
        }
        self.release(now);
    }

    /// Starts the operations that the gate lets through now.
    #[inline]
    pub(super) fn release(&mut self, now: Instant) {
        let Some(gate) = &mut self.gate else { return };
        gate.tick(now, &self.slots);
        while let Some(gate) = &mut self.gate
            && let Some(slot) = gate.next(self.slots.in_flight(), now)
        {
            let size = self.begin(slot, now);
            if let Some(gate) = &mut self.gate {
                gate.started(slot, size, now);
            }
        }
    }

    /// Samples how many operations are in flight where answers open the window.
    pub(super) fn sample(&mut self) {
        if let Some(gate) = &mut self.gate {
            gate.sample(self.slots.in_flight());
        }
    }

    /// Starts the successor of an operation that has ended, if the plan has one now.
    #[inline]
    pub(super) fn replace(&mut self, ended: Ended, now: Instant) {
        let is_open = self.is_open();
        match &mut self.schedule {
            _ if !is_open => self.slots.release(ended),
            // A single operation's time begins when it is handed over, not before its predecessor was accounted for.
            None if self.single => self.held = Some(ended.slot),
            None if self.in_rounds => self.slots.release(ended),
            None => match &mut self.gate {
                Some(gate) => {
                    gate.add(ended.slot);
                    self.release(now);
                }
                None => _ = self.begin(ended.slot, now),
            },
            Some(schedule) if schedule.waiting(ended.channel, now) => {
                let due = schedule.start(ended.channel);
                self.begin(ended.slot, due);
            }
            Some(_) => self.slots.release(ended),
        }
    }

    /// Starts the next round once all of the last one has ended.
    pub(super) fn next_round(&mut self) {
        if self.in_rounds && self.slots.in_flight() == 0 && self.is_open() {
            self.fill(self.link.now());
        }
    }

    /// Starts the next operation in a slot, and returns its size.
    #[inline]
    pub(super) fn begin(&mut self, slot: u32, at: Instant) -> u32 {
        let begun = self.slots.begin(slot, at);
        if let Some(stages) = &mut self.stages {
            stages.started(begun.tag, at);
        }
        self.link.start(Operation { tag: begun.tag, channel: begun.channel, size: begun.size, mode: self.mode });
        begun.size
    }

    /// Starts what has become due, as far as there is room.
    pub(super) fn arrivals(&mut self, now: Instant) {
        let Some(mut schedule) = self.schedule.take_if(|_| self.phase != Phase::Over) else { return };
        // With no room at all there is nothing to be found; what waits is started when something ends.
        while !self.slots.all_busy() && schedule.next_due() <= now {
            let Some(channel) = schedule.arrive() else { continue };
            if let Some(slot) = self.slots.take(channel) {
                let due = schedule.start(channel);
                self.begin(slot, due);
            }
        }
        self.schedule = Some(schedule);
    }
}
