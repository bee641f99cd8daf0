//! The size of receives: no more than the machine and its application work through in a while, so that their replies leave meanwhile and
//! the peer does not wait for the end of a long batch.

use crate::Clock;
use hodo_machine::Instant;
use std::time::Duration;

/// The time that one receive should give work for, at most.
const WORK: Duration = Duration::from_micros(200);
/// The bytes that a receive brings at most, however long they give work for.
const LEAST: usize = 16 << 10;

/// The bytes of the next receive.
#[derive(Debug)]
pub(super) struct Portion {
    most: usize,
    bytes: usize,
    /// When the work of the last receive began, and whether that brought as much as it could.
    last: Option<(Instant, bool)>,
    /// Whether the last work took long. Once may be a processor that was lost meanwhile, which smaller receives do not bring back.
    was_long: bool,
}

impl Portion {
    pub(super) const fn new(most: usize) -> Self {
        Portion { most, bytes: most, last: None, was_long: false }
    }

    /// Returns the bytes of the next receive.
    #[inline]
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Measures the work of the last receive, which is done: at the next receive, or at the wait for it, which is no work.
    #[inline]
    pub(super) fn adapt(&mut self, clock: &Clock) {
        if let Some((began, is_full)) = self.last.take() {
            self.worked(clock.now() - began, is_full);
        }
    }

    /// Records what a receive brought.
    #[inline]
    pub(super) const fn came(&mut self, bytes: usize, is_full: bool, now: Instant) {
        if is_full || bytes > LEAST {
            self.last = Some((now, is_full));
        }
    }

    fn worked(&mut self, time: Duration, is_full: bool) {
        let is_long = time > WORK;
        if is_long && self.was_long {
            self.bytes = (self.bytes / 2).max(LEAST.min(self.most));
        } else if is_full && time < WORK / 4 {
            self.bytes = (2 * self.bytes).min(self.most);
        }
        self.was_long = is_long;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_work_makes_portions_smaller_and_short_work_larger() {
        let mut portion = Portion::new(260 << 10);
        let mut after = |micros| {
            portion.worked(Duration::from_micros(micros), true);
            portion.bytes() >> 10
        };
        assert_eq!([1000, 500, 300, 150, 201, 300, 300, 300].map(&mut after), [260, 130, 65, 65, 65, 32, 16, 16]);
        assert_eq!([100, 49, 10, 10, 10, 10].map(&mut after), [16, 32, 64, 128, 256, 260]);
        portion.worked(Duration::from_secs(1), false);
        portion.worked(Duration::from_secs(1), false);
        portion.worked(Duration::from_micros(1), false);
        assert_eq!(portion.bytes() >> 10, 130, "little work with little says nothing");
    }

    #[test]
    fn a_processor_that_is_lost_now_and_then_makes_no_portion_smaller() {
        let mut portion = Portion::new(260 << 10);
        for _ in 0..100 {
            portion.worked(Duration::from_millis(10), true);
            portion.worked(Duration::from_micros(100), true);
        }
        assert_eq!(portion.bytes() >> 10, 260);
    }

    #[test]
    fn a_small_buffer_is_no_larger_for_it() {
        let mut portion = Portion::new(1000);
        portion.worked(Duration::from_secs(1), true);
        portion.worked(Duration::from_secs(1), true);
        assert_eq!(portion.bytes(), 1000);
    }
}
