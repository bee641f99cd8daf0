//! The updates of a channel: messages that the far end sends by itself, at a rate or as fast as it can.

use hodo_machine::Instant;
use hodo_measure::Subscription;
use std::time::Duration;

/// Nanoseconds of a rate's period at least.
const PERIOD_NS_MIN: f64 = 1.0;
/// A period at most: an update a year is none.
const PERIOD_NS_MAX: f64 = 1e16;

/// A subscription at the far end. The immediate data of each update is the lower half of the time at which it was due, in
/// nanoseconds; a message without immediate data is the end.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Bytes of an update.
    pub(crate) size: u32,
    /// The time between two updates; `None` for as fast as the client takes them.
    period: Option<Duration>,
    /// When the next one is due.
    due: Instant,
    /// Updates that may wait.
    queue: u32,
    /// Updates that were skipped, because too many waited.
    pub(crate) skipped: u64,
    /// Whether only the end is left to be sent.
    pub(crate) is_over: bool,
}

impl Feed {
    pub(crate) fn new(subscription: &Subscription, now: Instant) -> Feed {
        let period_ns = |rate: f64| (1e9 / rate).clamp(PERIOD_NS_MIN, PERIOD_NS_MAX) as u64;
        Feed {
            size: subscription.size,
            period: subscription.rate.map(|rate| Duration::from_nanos(period_ns(rate))),
            due: now + subscription.first_after,
            queue: subscription.queue.max(1),
            skipped: 0,
            is_over: false,
        }
    }

    /// Returns when the next update was due, if it is to be sent now.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Instant> {
        let Some(period) = self.period else { return Some(now) };
        let due = self.due;
        (due <= now).then(|| {
            self.due = due + period;
            due
        })
    }

    /// Skips the oldest of the updates that wait, if they are more than may.
    pub(crate) fn skip(&mut self, now: Instant) {
        let Some(period) = self.period.filter(|_| self.due <= now) else { return };
        let waiting = now.nanos_since(self.due) / (period.as_nanos() as u64).max(1) + 1;
        let excess = waiting.saturating_sub(u64::from(self.queue));
        self.due = self.due + Duration::from_nanos(excess * period.as_nanos() as u64);
        self.skipped += excess;
    }

    /// Returns when the next update is due, if there is a schedule.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.period.map(|_| self.due)
    }
}

/// Returns the immediate data of an update that was due then.
pub(crate) fn stamp(due: Instant) -> u32 {
    due.as_nanos() as u32
}

/// Returns when an update was due, on the far end's clock, if that was less than four seconds ago.
pub(crate) fn due_ns(stamp: u32, now_ns: u64) -> u64 {
    now_ns.wrapping_sub(u64::from((now_ns as u32).wrapping_sub(stamp)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn feed(rate: Option<f64>) -> Feed {
        let first_after = Duration::from_millis(2);
        Feed::new(&Subscription { channel: 0, size: 64, rate, first_after, queue: 3 }, at(10))
    }

    #[test]
    fn updates_are_due_at_their_rate() {
        let mut feed = feed(Some(1000.0));
        assert_eq!((feed.take(at(11)), feed.due()), (None, Some(at(12))));
        assert_eq!((feed.take(at(13)), feed.take(at(13)), feed.take(at(13))), (Some(at(12)), Some(at(13)), None));
    }

    #[test]
    fn of_those_that_wait_the_oldest_are_skipped() {
        let mut feed = feed(Some(1000.0));
        feed.skip(at(14));
        assert_eq!((feed.skipped, feed.due()), (0, Some(at(12))));
        feed.skip(at(21));
        assert_eq!((feed.skipped, feed.take(at(21))), (7, Some(at(19))));
    }

    #[test]
    fn without_a_rate_one_is_always_due() {
        let mut feed = feed(None);
        feed.skip(at(90));
        assert_eq!(
            (feed.take(at(10)), feed.take(at(10)), feed.skipped, feed.due()),
            (Some(at(10)), Some(at(10)), 0, None)
        );
    }

    #[test]
    fn a_stamp_is_enough_for_recent_times() {
        for (due, now) in
            [(5, 5), (1, 4_000_000_000), (u64::from(u32::MAX), u64::from(u32::MAX) + 7), (1 << 40, (1 << 40) + 90)]
        {
            assert_eq!(due_ns(stamp(Instant::from_nanos(due)), now), due);
        }
    }
}
