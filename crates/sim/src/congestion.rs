//! How many bytes a stream may have in flight, as TCP finds out.

use hodo_machine::Instant;
use std::fmt;
use std::time::Duration;

/// A stream begins with this many segments in flight (RFC 6928).
const INITIAL_SEGMENTS: f64 = 10.0;
/// CUBIC: the window shrinks to this share at a loss (RFC 9438, 4.6).
const BETA: f64 = 0.7;
/// CUBIC: how fast the window grows, in segments/s^3 (RFC 9438, 5.1).
const C: f64 = 0.4;
/// CUBIC: what Reno's window would grow by for each window acknowledged, so that both reach the same (RFC 9438, 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The congestion control of a simulated stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Congestion {
    /// CUBIC (RFC 9438), as Linux has it.
    #[default]
    Cubic,
    /// Reno (RFC 5681).
    Reno,
    /// None: a stream sends what the buffer and the queue take, and a loss only comes late.
    None,
}

impl Congestion {
    /// Every one, by its name.
    pub const ALL: [(&'static str, Congestion); 3] =
        [("cubic", Congestion::Cubic), ("reno", Congestion::Reno), ("none", Congestion::None)];
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Congestion::ALL.into_iter().find(|(_, congestion)| congestion == self).unwrap_or_default();
        f.write_str(name)
    }
}

/// A congestion window, in segments.
#[derive(Debug)]
pub(crate) struct Window {
    congestion: Congestion,
    /// How many segments may be in flight.
    pub(crate) segments: f64,
    /// Below this, the window grows by a segment for each that is acknowledged.
    threshold: f64,
    /// CUBIC: the window before the last loss.
    before: f64,
    /// CUBIC: since the last loss, where it has been left.
    epoch: Option<Epoch>,
}

/// CUBIC: the time since the window began to grow again.
#[derive(Debug)]
struct Epoch {
    start: Instant,
    /// Where the curve is flat.
    origin: f64,
    /// Seconds until it is there.
    reached_s: f64,
    /// The window that Reno would have.
    reno: f64,
}

impl Window {
    pub(crate) const fn new(congestion: Congestion) -> Self {
        Window { congestion, segments: INITIAL_SEGMENTS, threshold: f64::INFINITY, before: 0.0, epoch: None }
    }

    /// Grows by what was acknowledged, in segments, while the window was all used.
    pub(crate) fn acknowledged(&mut self, segments: f64, now: Instant, round_trip: Duration) {
        if self.segments < self.threshold {
            self.segments += segments;
            return;
        }
        match self.congestion {
            Congestion::Cubic => self.grow_cubic(segments, now, round_trip.as_secs_f64()),
            Congestion::Reno | Congestion::None => self.segments += segments / self.segments,
        }
    }

    fn grow_cubic(&mut self, segments: f64, now: Instant, round_trip_s: f64) {
        let (window, before) = (self.segments, self.before);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            origin: window.max(before),
            reached_s: ((before - window).max(0.0) / C).cbrt(),
            reno: window,
        });
        let cubic = |at_s: f64| C * (at_s - epoch.reached_s).powi(3) + epoch.origin;
        let at_s = Duration::from_nanos(now.nanos_since(epoch.start)).as_secs_f64();
        let (cubic_now, target) = (cubic(at_s), cubic(at_s + round_trip_s).clamp(window, 1.5 * window));
        // Once it is where it was before the loss, Reno grows by a whole segment.
        epoch.reno += if epoch.reno < before { ALPHA } else { 1.0 } * segments / window;
        self.segments = if cubic_now < epoch.reno {
            epoch.reno.max(window)
        } else {
            window + (target - window) / window * segments
        };
    }

    /// Shrinks because a segment was lost while this many were in flight.
    pub(crate) fn lost(&mut self, in_flight: f64) {
        let share = match self.congestion {
            Congestion::Cubic => {
                // Who had less than last time makes room for others (fast convergence, RFC 9438, 4.7).
                self.before = self.segments * if self.segments < self.before { (1.0 + BETA) / 2.0 } else { 1.0 };
                BETA
            }
            Congestion::Reno | Congestion::None => 0.5,
        };
        self.threshold = (in_flight * share).max(2.0);
        self.segments = self.threshold;
        self.epoch = None;
    }

    /// Starts anew with one segment because nothing was acknowledged for a whole timeout.
    pub(crate) fn timed_out(&mut self, in_flight: f64) {
        self.lost(in_flight);
        self.segments = 1.0;
    }

    /// Starts anew after a pause, because what was known is old (RFC 5681, 4.1).
    pub(crate) fn idle(&mut self) {
        self.segments = self.segments.min(INITIAL_SEGMENTS);
        self.epoch = None;
    }
}

/// The time after which a segment without an answer counts as lost (RFC 6298), with the least of Linux.
#[derive(Debug)]
pub(crate) struct Timeout {
    smoothed: Option<Duration>,
    variation: Duration,
    /// How often it has passed without an answer since.
    pub(crate) passed: u32,
}

const TIMEOUT_FIRST: Duration = Duration::from_secs(1);
const TIMEOUT_MIN: Duration = Duration::from_millis(200);
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

impl Timeout {
    pub(crate) const fn new() -> Self {
        Timeout { smoothed: None, variation: Duration::ZERO, passed: 0 }
    }

    /// Takes in a round-trip of a segment that was sent once.
    pub(crate) fn measured(&mut self, round_trip: Duration) {
        match &mut self.smoothed {
            None => (self.smoothed, self.variation) = (Some(round_trip), round_trip / 2),
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(round_trip)) / 4;
                *smoothed = (*smoothed * 7 + round_trip) / 8;
            }
        }
    }

    /// Returns the smoothed round-trip; zero before the first.
    pub(crate) fn round_trip(&self) -> Duration {
        self.smoothed.unwrap_or_default()
    }

    /// Returns how long to wait for an answer.
    pub(crate) fn span(&self) -> Duration {
        let span = self.smoothed.map_or(TIMEOUT_FIRST, |smoothed| (smoothed + self.variation * 4).max(TIMEOUT_MIN));
        span.saturating_mul(1 << self.passed.min(20)).min(TIMEOUT_MAX.max(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn reno_doubles_each_round_then_adds_a_segment_each_and_halves_at_a_loss() {
        let mut window = Window::new(Congestion::Reno);
        let round = Duration::from_millis(20);
        window.acknowledged(10.0, at_ms(20), round);
        assert_eq!(window.segments, 20.0);
        window.lost(20.0);
        assert_eq!(window.segments, 10.0);
        for _ in 0..10 {
            window.acknowledged(1.0, at_ms(40), round);
        }
        assert!((10.9..=11.0).contains(&window.segments), "{}", window.segments);
        window.timed_out(11.0);
        assert_eq!(window.segments, 1.0);
        window.acknowledged(1.0, at_ms(60), round);
        assert_eq!(window.segments, 2.0);
    }

    /// Checks the curve of RFC 9438: K seconds after a loss the window is where it was.
    #[test]
    fn cubic_is_back_where_it_was_after_k() {
        let mut window = Window::new(Congestion::Cubic);
        window.segments = 1000.0;
        window.lost(1000.0);
        assert_eq!(window.segments, 700.0);
        let k_s = (300.0_f64 / C).cbrt();
        let (round, rounds) = (Duration::from_millis(100), (k_s * 10.0) as u64);
        for number in 0..=rounds {
            let each = window.segments / 10.0;
            (0..10).for_each(|_| window.acknowledged(each, at_ms(number * 100), round));
        }
        assert!((960.0..1010.0).contains(&window.segments), "{}", window.segments);
    }

    #[test]
    fn the_timeout_follows_the_round_trip_and_doubles() {
        let mut timeout = Timeout::new();
        assert_eq!(timeout.span(), Duration::from_secs(1));
        timeout.measured(Duration::from_millis(100));
        assert_eq!(timeout.span(), Duration::from_millis(300));
        (0..100).for_each(|_| timeout.measured(Duration::from_millis(20)));
        assert_eq!(timeout.span(), TIMEOUT_MIN);
        timeout.passed = 3;
        assert_eq!(timeout.span(), TIMEOUT_MIN * 8);
    }
}
