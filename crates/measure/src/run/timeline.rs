use crate::Interval;
use hodo_machine::Instant;

/// The most intervals in a result.
const INTERVALS_MAX: usize = 200;
/// The most points that are kept; then those that are closest together are dropped.
const POINTS_MAX: usize = 2 * INTERVALS_MAX;
/// The closest that points are kept, at first.
const SPACING_NS: u64 = 1000;

/// How far one link had come at some moments of the counted time.
///
/// Moments are those of completions, not of a clock: between two of them the rate is exact even when each is a whole
/// window's burst.
#[derive(Debug)]
pub(super) struct Timeline {
    start: Instant,
    points: Vec<Point>,
    spacing_ns: u64,
    due: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    after_s: f64,
    operations: u64,
    payload_bytes: u64,
}

impl Timeline {
    pub fn new(start: Instant) -> Self {
        let points = Vec::with_capacity(POINTS_MAX + 1);
        Timeline { start, points, spacing_ns: SPACING_NS, due: start }
    }

    /// Notes that completions at `now` brought the totals to `operations` and `payload_bytes`.
    #[inline]
    pub fn note(&mut self, now: Instant, operations: u64, payload_bytes: u64) {
        if now >= self.due {
            self.keep(now, operations, payload_bytes);
        }
    }

    fn keep(&mut self, now: Instant, operations: u64, payload_bytes: u64) {
        let after = now - self.start;
        if self.points.len() == POINTS_MAX {
            self.thin(after.as_nanos() as u64);
        }
        self.points.push(Point { after_s: after.as_secs_f64(), operations, payload_bytes });
        self.due = Instant::from_nanos(now.as_nanos().saturating_add(self.spacing_ns));
    }

    /// Drops about half of the points. The choice goes by the time between them, not by their number, because otherwise
    /// the beginning would be thinned again and again.
    fn thin(&mut self, span_ns: u64) {
        self.spacing_ns = (2 * self.spacing_ns).max(2 * span_ns / POINTS_MAX as u64);
        let spacing_s = self.spacing_ns as f64 * 1e-9;
        let mut due = 0.0;
        self.points.retain(|point| {
            let keep = point.after_s >= due;
            if keep {
                due = point.after_s + spacing_s;
            }
            keep
        });
    }

    /// Returns the operations and bytes done this long after the start, on the straight line between the points around
    /// it; `end` is the last point.
    fn done(&self, after_s: f64, end: Point) -> (f64, f64) {
        if after_s >= end.after_s {
            return (end.operations as f64, end.payload_bytes as f64);
        }
        let next = self.points.partition_point(|point| point.after_s < after_s);
        let zero = Point { after_s: 0.0, operations: 0, payload_bytes: 0 };
        let before = next.checked_sub(1).map_or(zero, |i| self.points[i]);
        let after = self.points.get(next).copied().filter(|point| point.after_s < end.after_s).unwrap_or(end);
        let span = after.after_s - before.after_s;
        let part = if span > 0.0 { (after_s - before.after_s) / span } else { 1.0 };
        let between = |from: u64, to: u64| from as f64 + (to as f64 - from as f64) * part;
        (between(before.operations, after.operations), between(before.payload_bytes, after.payload_bytes))
    }
}

/// One link's timeline and what it had done at its end.
pub(super) struct Track<'a> {
    pub timeline: &'a Timeline,
    pub elapsed_s: f64,
    pub operations: u64,
    pub payload_bytes: u64,
}

/// Cuts the time of all links together into at most 200 equal intervals; they add up to what was done.
pub(super) fn intervals(tracks: &[Track<'_>]) -> Vec<Interval> {
    let elapsed_s = tracks.iter().map(|track| track.elapsed_s).fold(0.0, f64::max);
    // The last batch may have been counted without a point of its own.
    let points = |track: &Track<'_>| {
        let kept = track.timeline.points.iter().filter(|p| p.after_s <= track.elapsed_s).count();
        kept.max(usize::from(track.operations > 0))
    };
    let cells = tracks.iter().map(points).max().unwrap_or(0).min(INTERVALS_MAX);
    let mut before = (0, 0);
    let mut cut = |cell: usize| {
        let t_s = whole_nanos(elapsed_s * (cell + 1) as f64 / cells as f64);
        let at = |track: &Track<'_>| {
            let Track { elapsed_s, operations, payload_bytes, .. } = *track;
            track.timeline.done(t_s, Point { after_s: elapsed_s, operations, payload_bytes })
        };
        let sum = tracks.iter().map(at).fold((0.0, 0.0), |sum, done| (sum.0 + done.0, sum.1 + done.1));
        let sum = (sum.0.round() as u64, sum.1.round() as u64);
        let interval =
            Interval { t_s, operations: sum.0.saturating_sub(before.0), payload_bytes: sum.1.saturating_sub(before.1) };
        before = sum;
        interval
    };
    if elapsed_s > 0.0 { (0..cells).map(&mut cut).collect() } else { Vec::new() }
}

/// Returns seconds without digits beyond a nanosecond, which would say nothing.
pub(super) fn whole_nanos(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(step_ns: u64, steps: u64) -> Timeline {
        let mut timeline = Timeline::new(Instant::ZERO);
        (1..=steps).for_each(|i| timeline.note(Instant::from_nanos(i * step_ns), i * 8, i * 80));
        timeline
    }

    #[test]
    fn keeps_a_bounded_number_of_points_of_any_run() {
        let timeline = steady(1500, 100_000);
        assert!(timeline.points.len() > INTERVALS_MAX && timeline.points.len() <= POINTS_MAX);
        let track = Track { timeline: &timeline, elapsed_s: 0.15, operations: 800_000, payload_bytes: 8_000_000 };
        let found = intervals(&[track]);
        assert_eq!(found.len(), INTERVALS_MAX);
        assert!(found.iter().all(|interval| interval.operations.abs_diff(4000) <= 1));
        assert_eq!(found.iter().map(|interval| interval.payload_bytes).sum::<u64>(), 8_000_000);
    }

    #[test]
    fn slow_operations_keep_the_shape_of_the_beginning() {
        // A millisecond each, and for the first tenth half as many at a time.
        let mut timeline = Timeline::new(Instant::ZERO);
        let so_far = |i: u64| if i <= 500 { i } else { 2 * i - 500 };
        (1..=5000).for_each(|i| timeline.note(Instant::from_nanos(i * 1_000_000), so_far(i), so_far(i)));
        let found = intervals(&[Track { timeline: &timeline, elapsed_s: 5.0, operations: 9500, payload_bytes: 9500 }]);
        assert!(found.len() > INTERVALS_MAX / 2, "{} intervals", found.len());
        let rate = |cell: usize| found[cell].operations as f64 * found.len() as f64 / 5.0;
        assert!((rate(2) / 1000.0 - 1.0).abs() < 0.1, "{}", rate(2));
        assert!((rate(found.len() / 2) / 2000.0 - 1.0).abs() < 0.1, "{}", rate(found.len() / 2));
    }

    #[test]
    fn links_add_up_and_an_early_end_counts() {
        let (long, short) = (steady(1_000_000, 100), steady(1_000_000, 50));
        let found = intervals(&[
            Track { timeline: &long, elapsed_s: 0.1, operations: 800, payload_bytes: 8000 },
            Track { timeline: &short, elapsed_s: 0.05, operations: 400, payload_bytes: 4000 },
        ]);
        assert_eq!((found.len(), found[10].operations, found[90].operations), (100, 16, 8));
        assert_eq!(found.iter().map(|interval| interval.operations).sum::<u64>(), 1200);
    }

    #[test]
    fn nothing_done_has_no_intervals() {
        assert!(intervals(&[]).is_empty());
        let idle = Timeline::new(Instant::ZERO);
        assert!(intervals(&[Track { timeline: &idle, elapsed_s: 1.0, operations: 0, payload_bytes: 0 }]).is_empty());
    }
}
