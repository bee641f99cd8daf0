use core::time::Duration;

/// When an answer is late while nothing is known of the round-trip.
const LATE_FIRST: Duration = Duration::from_millis(20);

/// Lateness doubles up to this part of the longest wait: on a link that loses a third either way, many tries count for
/// more than long ones, and a status that is asked for too soon does no harm.
const DOUBLED: u32 = 4;

/// How long an answer usually takes, and when it is late: smoothed as TCP smooths its round-trip (RFC 6298).
#[derive(Debug, Clone)]
pub struct RoundTrip {
    smoothed_ns: u64,
    deviation_ns: u64,
    least_ns: u64,
    doublings: u32,
    late_min: Duration,
    late_max: Duration,
}

impl RoundTrip {
    /// Creates an estimate without any answer; no answer is late before `late_min`, and none is waited for longer than
    /// `late_max`.
    #[must_use]
    pub const fn new(late_min: Duration, late_max: Duration) -> Self {
        RoundTrip { smoothed_ns: 0, deviation_ns: 0, least_ns: u64::MAX, doublings: 0, late_min, late_max }
    }

    /// Returns the usual time of an answer; `None` before the first.
    #[must_use]
    pub const fn smoothed(&self) -> Option<Duration> {
        if self.smoothed_ns == 0 { None } else { Some(Duration::from_nanos(self.smoothed_ns)) }
    }

    /// Returns the shortest time of an answer; `None` before the first.
    #[must_use]
    pub const fn least(&self) -> Option<Duration> {
        if self.smoothed_ns == 0 { None } else { Some(Duration::from_nanos(self.least_ns)) }
    }

    /// Returns after how long an answer is late now.
    #[must_use]
    #[inline]
    pub fn late(&self) -> Duration {
        let usual = match self.smoothed_ns {
            0 => LATE_FIRST,
            smoothed => Duration::from_nanos(smoothed.saturating_add(4 * self.deviation_ns)).max(self.late_min),
        };
        let doubled = usual.saturating_mul(1 << self.doublings).min(self.late_max / DOUBLED);
        doubled.max(usual).min(self.late_max)
    }

    /// Takes the time of an answer of which there is no doubt which sending it answers.
    #[inline]
    pub fn answered_after(&mut self, ns: u64) {
        self.doublings = 0;
        // A driver's clock may stand still between a sending and its answer.
        let ns = ns.max(1);
        self.least_ns = self.least_ns.min(ns);
        if self.smoothed_ns == 0 {
            (self.smoothed_ns, self.deviation_ns) = (ns, ns / 2);
            return;
        }
        let deviation = self.smoothed_ns.abs_diff(ns);
        self.deviation_ns = self.deviation_ns - self.deviation_ns / 4 + deviation / 4;
        self.smoothed_ns = (self.smoothed_ns - self.smoothed_ns / 8 + ns / 8).max(1);
    }

    /// Ends the doubling of lateness if the usual time is known: an answer came, to whichever sending.
    #[inline]
    pub fn answered(&mut self) {
        if self.smoothed_ns > 0 {
            self.doublings = 0;
        }
    }

    /// Doubles the time that the next answer may take, until one comes.
    pub fn was_late(&mut self) {
        self.doublings = (self.doublings + 1).min(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE_MIN: Duration = Duration::from_micros(200);

    #[test]
    fn an_answer_is_late_after_the_usual_time_and_four_deviations() {
        let mut round_trip = RoundTrip::new(LATE_MIN, Duration::from_millis(100));
        assert_eq!((round_trip.smoothed(), round_trip.late()), (None, LATE_FIRST));
        round_trip.answered_after(1_000_000);
        assert_eq!(round_trip.late(), Duration::from_millis(3));
        for _ in 0..100 {
            round_trip.answered_after(1_000_000);
        }
        assert!(round_trip.late() < Duration::from_micros(1_001));
        for _ in 0..100 {
            round_trip.answered_after(5_000);
        }
        assert_eq!(round_trip.late(), LATE_MIN);
    }

    #[test]
    fn lateness_doubles_up_to_its_bound_until_an_answer_comes() {
        let mut round_trip = RoundTrip::new(LATE_MIN, Duration::from_millis(400));
        for expected_ms in [20, 40, 80, 100, 100] {
            assert_eq!(round_trip.late(), Duration::from_millis(expected_ms));
            round_trip.was_late();
        }
        round_trip.answered();
        assert_eq!(round_trip.late(), Duration::from_millis(100), "nobody knows how long it took");
        round_trip.answered_after(1_000_000);
        round_trip.was_late();
        assert_eq!(round_trip.late(), Duration::from_millis(6));
        round_trip.answered();
        assert_eq!(round_trip.late(), Duration::from_millis(3));
    }
}
