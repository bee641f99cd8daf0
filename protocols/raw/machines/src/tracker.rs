use crate::wire::RANGES_MAX;
use alloc::collections::VecDeque;

/// Sequence numbers this far behind the highest can still be told from duplicates.
const SPAN: u64 = 4096;

/// An arrival, classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    First,
    Again,
    /// So far behind the highest that it may be either.
    LongAgo,
}

/// Which sequence numbers of one direction have arrived, each counted once.
#[derive(Debug)]
pub(crate) struct Tracker {
    /// One above the highest that arrived.
    pub(crate) next: u64,
    pub(crate) received: u64,
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
    pub(crate) long_ago: u64,
    seen: [u64; (SPAN / 64) as usize],
    recent: VecDeque<(u64, u64)>,
}

impl Default for Tracker {
    fn default() -> Self {
        Tracker {
            next: 0,
            received: 0,
            duplicated: 0,
            reordered: 0,
            long_ago: 0,
            seen: [0; (SPAN / 64) as usize],
            recent: VecDeque::with_capacity(RANGES_MAX),
        }
    }
}

impl Tracker {
    /// Notes an arrival.
    #[inline]
    pub(crate) fn arrived(&mut self, sequence: u64) -> Arrival {
        // Also what came before: the acknowledgement that told of it may have been lost.
        self.remember(sequence);
        if sequence >= self.next {
            self.advance(sequence);
        } else if self.next - sequence > SPAN {
            self.long_ago += 1;
            return Arrival::LongAgo;
        } else if self.bit(sequence) {
            self.duplicated += 1;
            return Arrival::Again;
        } else {
            self.reordered += 1;
        }
        self.seen[word(sequence)] |= mask(sequence);
        self.received += 1;
        Arrival::First
    }

    /// Iterates over the latest arrivals as ranges `(first, count)`, the oldest first.
    pub(crate) fn recent(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.recent.iter().copied()
    }

    fn advance(&mut self, sequence: u64) {
        if sequence - self.next >= SPAN {
            self.seen = [0; (SPAN / 64) as usize];
        } else {
            for skipped in self.next..=sequence {
                self.seen[word(skipped)] &= !mask(skipped);
            }
        }
        self.next = sequence.saturating_add(1);
    }

    fn bit(&self, sequence: u64) -> bool {
        self.seen[word(sequence)] & mask(sequence) != 0
    }

    #[inline]
    fn remember(&mut self, sequence: u64) {
        if let Some((first, count)) = self.recent.back_mut()
            && first.wrapping_add(*count) == sequence
        {
            *count += 1;
            return;
        }
        if self.recent.len() == RANGES_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((sequence, 1));
    }
}

const fn word(sequence: u64) -> usize {
    (sequence % SPAN / 64) as usize
}

const fn mask(sequence: u64) -> u64 {
    1 << (sequence % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn counts_each_number_once() {
        let mut tracker = Tracker::default();
        for sequence in [0, 1, 3, 2, 3, 2, 4, 10_000, 9_999, 4] {
            tracker.arrived(sequence);
        }
        assert_eq!((tracker.received, tracker.duplicated, tracker.reordered, tracker.long_ago), (7, 2, 2, 1));
        assert_eq!(tracker.next, 10_001);
    }

    #[test]
    fn what_is_too_far_behind_is_neither_new_nor_a_duplicate() {
        let mut tracker = Tracker::default();
        tracker.arrived(SPAN - 1);
        assert_eq!(
            [0, 0, 1, 1].map(|sequence| tracker.arrived(sequence)),
            [Arrival::First, Arrival::Again, Arrival::First, Arrival::Again]
        );
        tracker.arrived(SPAN + 1);
        assert_eq!(
            [0, 1, 2].map(|sequence| tracker.arrived(sequence)),
            [Arrival::LongAgo, Arrival::LongAgo, Arrival::First]
        );
        assert_eq!((tracker.received, tracker.duplicated, tracker.long_ago), (5, 2, 2));
    }

    #[test]
    fn remembers_the_latest_ranges() {
        let mut tracker = Tracker::default();
        for sequence in [0, 1, 2, 4, 5, 3] {
            tracker.arrived(sequence);
        }
        assert_eq!(tracker.recent().collect::<Vec<_>>(), [(0, 3), (4, 2), (3, 1)]);
        for sequence in 0..200 {
            tracker.arrived(1000 + sequence * 2);
        }
        assert_eq!(tracker.recent().len(), RANGES_MAX);
        assert_eq!(tracker.recent().last(), Some((1398, 1)));
    }

    #[test]
    fn takes_the_largest_number() {
        let mut tracker = Tracker::default();
        assert_eq!(tracker.arrived(u64::MAX - 1), Arrival::First);
        tracker.arrived(u64::MAX);
        tracker.arrived(0);
    }
}
