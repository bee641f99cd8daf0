//! The queues between an end and its host.
use crate::character::Code;
use alloc::collections::VecDeque;

/// N-chars that the host has pushed and that have not left yet.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    queue: VecDeque<Code>,
    capacity: usize,
    /// The rest of a packet that was cut is still to come from the host.
    discarding: bool,
    pub(super) babble: Option<u8>,
    pub(super) discarded: u64,
}

impl Outgoing {
    pub(super) fn new(capacity: usize) -> Self {
        Outgoing { queue: VecDeque::new(), capacity, discarding: false, babble: None, discarded: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn room(&self) -> usize {
        if self.discarding { self.capacity } else { self.capacity.saturating_sub(self.queue.len()) }
    }

    /// Takes an N-char; `false` if there is no room, or it is none.
    pub(super) fn push(&mut self, nchar: Code) -> bool {
        if !nchar.is_nchar() || self.room() == 0 {
            return false;
        }
        if self.discarding {
            self.discarding = matches!(nchar, Code::Data(_));
            self.discarded += 1;
        } else {
            self.queue.push_back(nchar);
        }
        true
    }

    pub(super) fn front(&self) -> Option<Code> {
        self.queue.front().copied().or(self.babble.map(Code::Data))
    }

    pub(super) fn pop(&mut self) -> Option<Code> {
        self.queue.pop_front().or(self.babble.map(Code::Data))
    }

    /// Discards the packet in progress up to its end, even if that has not come from the host yet.
    pub(super) fn cut(&mut self) {
        self.discarding = true;
        while let Some(nchar) = self.queue.pop_front() {
            self.discarded += 1;
            if !matches!(nchar, Code::Data(_)) {
                self.discarding = false;
                return;
            }
        }
    }
}

/// N-chars that have arrived and that the host has not popped yet: no more than the far end had credit for, and an EEP for each
/// packet that was cut.
#[derive(Debug, Clone, Default)]
pub(super) struct Incoming {
    /// Each with whether it took credit.
    queue: VecDeque<(Code, bool)>,
    pub(super) eeps: u64,
}

impl Incoming {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn push(&mut self, nchar: Code) {
        self.queue.push_back((nchar, true));
    }

    /// Ends the packet in progress.
    pub(super) fn cut(&mut self) {
        self.queue.push_back((Code::Eep, false));
        self.eeps += 1;
    }

    /// Returns the next N-char, and whether it took credit.
    pub(super) fn pop(&mut self) -> Option<(Code, bool)> {
        self.queue.pop_front()
    }
}

/// Keeps the latest `bound` items of a queue with one more.
pub(super) fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, bound: usize) {
    if queue.len() >= bound {
        queue.pop_front();
    }
    queue.push_back(item);
}
