use crate::Interval;
use hodo_machine::Instant;

/// The most intervals in a result.
const INTERVALS_MAX: usize = 200;
/// The most points that are kept; then those that are closest together are dropped.
const POINTS_MAX: usize = 2 * INTERVALS_MAX;
/// The closest that points are kept, at first.
const SPACING_NS: u64 = 1000;

/// Points with less than this share of the silence that is usual at the ends of lumps are inside a lump.
const INSIDE: f64 = 0.25;

/// How far one link had come at some moments of the counted time.
///
/// Moments are those of completions, not of a clock: between two of them the rate is exact even when each is a whole
/// window's burst. Of all moments those are kept that a silence follows, because a lump of completions, which may take several
/// batches, has ended there.
#[derive(Debug)]
pub(super) struct Timeline {
    start: Instant,
    points: Vec<Point>,
    spacing_ns: u64,
    due: Instant,
    /// The latest moment, whose silence has not ended.
    latest: Point,
    /// The moment with the longest silence since the last point that was kept.
    best: Point,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Point {
    after_ns: u64,
    /// The time until the next moment.
    silence_ns: u64,
    operations: u64,
    payload_bytes: u64,
}

impl Point {
    fn after_s(&self) -> f64 {
        self.after_ns as f64 * 1e-9
    }
}

impl Timeline {
    pub fn new(start: Instant) -> Self {
        let points = Vec::with_capacity(POINTS_MAX + 1);
        let (latest, best) = (Point::default(), Point::default());
        Timeline { start, points, spacing_ns: SPACING_NS, due: start, latest, best }
    }

    /// Notes that completions at `now` brought the totals to `operations` and `payload_bytes`.
    #[inline]
    pub fn note(&mut self, now: Instant, operations: u64, payload_bytes: u64) {
        let after_ns = now.nanos_since(self.start);
        let silence_ns = after_ns - self.latest.after_ns;
        if silence_ns > self.best.silence_ns {
            self.best = Point { silence_ns, ..self.latest };
        }
        self.latest = Point { after_ns, silence_ns: 0, operations, payload_bytes };
        if now >= self.due {
            self.keep(now);
        }
    }

    fn keep(&mut self, now: Instant) {
        let best = std::mem::take(&mut self.best);
        // The start is no point.
        if best.operations == 0 {
            return;
        }
        if self.points.len() == POINTS_MAX {
            self.thin(self.latest.after_ns);
        }
        self.points.push(best);
        self.due = Instant::from_nanos(now.as_nanos().saturating_add(self.spacing_ns));
    }

    /// Drops about half of the points: of those that are close together all but the one with the longest silence. The choice goes by
    /// the time between them, not by their number, because otherwise the beginning would be thinned again and again.
    fn thin(&mut self, span_ns: u64) {
        self.spacing_ns = (2 * self.spacing_ns).max(2 * span_ns / POINTS_MAX as u64);
        let (spacing_ns, mut due) = (self.spacing_ns, 0);
        self.points.dedup_by(|point, kept| {
            if point.after_ns >= due {
                due = point.after_ns + spacing_ns;
                return false;
            }
            if point.silence_ns > kept.silence_ns {
                *kept = *point;
            }
            true
        });
    }

    /// Returns the points at which a lump had ended, of a time that lasted so long.
    fn ends(&self, elapsed_s: f64) -> Vec<Point> {
        let mut ends: Vec<Point> = self.points.iter().copied().filter(|point| point.after_s() <= elapsed_s).collect();
        let least_ns = INSIDE * usual_silence_ns(&ends, elapsed_s * 1e9);
        ends.retain(|point| point.silence_ns as f64 >= least_ns);
        ends
    }
}

/// Returns the silence for which half of the time has passed in silences as long or longer; 0 where silences are less than half of
/// the time, so that there are no lumps.
fn usual_silence_ns(points: &[Point], elapsed_ns: f64) -> f64 {
    let mut silences: Vec<u64> = points.iter().map(|point| point.silence_ns).collect();
    silences.sort_unstable_by(|a, b| b.cmp(a));
    let mut passed = 0.0;
    let usual = silences.into_iter().map(|silence| silence as f64).find(|silence| {
        passed += silence;
        passed >= elapsed_ns / 2.0
    });
    usual.unwrap_or(0.0)
}

/// One link's timeline and what it had done at its end.
pub(super) struct Track<'a> {
    pub timeline: &'a Timeline,
    pub elapsed_s: f64,
    pub operations: u64,
    pub payload_bytes: u64,
}

impl Track<'_> {
    /// Returns the operations and bytes done this long after the start, on the straight line between the points around
    /// it.
    fn done(&self, points: &[Point], after_s: f64) -> (f64, f64) {
        if after_s >= self.elapsed_s {
            return (self.operations as f64, self.payload_bytes as f64);
        }
        let next = points.partition_point(|point| point.after_s() < after_s);
        let before = next.checked_sub(1).map_or(Point::default(), |i| points[i]);
        let after = points.get(next).filter(|point| point.after_s() < self.elapsed_s);
        let (to_s, after) = after.map_or((self.elapsed_s, (self.operations, self.payload_bytes)), |point| {
            (point.after_s(), (point.operations, point.payload_bytes))
        });
        let span = to_s - before.after_s();
        let part = if span > 0.0 { (after_s - before.after_s()) / span } else { 1.0 };
        let between = |from: u64, to: u64| from as f64 + (to as f64 - from as f64) * part;
        (between(before.operations, after.0), between(before.payload_bytes, after.1))
    }
}

/// Cuts the time of all links together into at most 200 equal intervals; they add up to what was done.
pub(super) fn intervals(tracks: &[Track<'_>]) -> Vec<Interval> {
    let elapsed_s = tracks.iter().map(|track| track.elapsed_s).fold(0.0, f64::max);
    let ends: Vec<Vec<Point>> = tracks.iter().map(|track| track.timeline.ends(track.elapsed_s)).collect();
    // The last lump has no point of its own.
    let points = |(track, ends): (&Track<'_>, &Vec<Point>)| ends.len() + usize::from(track.operations > 0);
    let cells = tracks.iter().zip(&ends).map(points).max().unwrap_or(0).min(INTERVALS_MAX);
    let mut before = (0, 0);
    let mut cut = |cell: usize| {
        let t_s = whole_nanos(elapsed_s * (cell + 1) as f64 / cells as f64);
        let sum = tracks
            .iter()
            .zip(&ends)
            .map(|(track, ends)| track.done(ends, t_s))
            .fold((0.0, 0.0), |sum, done| (sum.0 + done.0, sum.1 + done.1));
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
    fn lumps_that_are_told_in_parts_make_even_intervals() {
        // 16 operations each 10 ms: 11 of them at once, the others 100 us later.
        let mut timeline = Timeline::new(Instant::ZERO);
        for lump in 1..=500 {
            timeline.note(Instant::from_nanos(lump * 10_000_000), lump * 16 - 5, 0);
            timeline.note(Instant::from_nanos(lump * 10_000_000 + 100_000), lump * 16, 0);
        }
        let found = intervals(&[Track { timeline: &timeline, elapsed_s: 5.0001, operations: 8000, payload_bytes: 0 }]);
        assert!(found.len() > INTERVALS_MAX / 2, "{} intervals", found.len());
        let even = 8000 / found.len() as u64;
        // The first one has begun with the lump, and the last ends with it.
        let uneven = found.iter().filter(|interval| interval.operations.abs_diff(even) > 1).count();
        assert!(uneven <= 2, "{uneven} of {}: {found:?}", found.len());
    }

    #[test]
    fn a_pause_is_not_taken_for_a_lump() {
        let mut timeline = Timeline::new(Instant::ZERO);
        // Each microsecond one, but for 30 ms in the middle.
        let at = |i: u64| Instant::from_nanos(i * 1000 + if i > 50_000 { 30_000_000 } else { 0 });
        (1..=100_000).for_each(|i| timeline.note(at(i), i, i));
        let found =
            intervals(&[Track { timeline: &timeline, elapsed_s: 0.13, operations: 100_000, payload_bytes: 100_000 }]);
        assert!(found.len() > INTERVALS_MAX / 2, "{} intervals", found.len());
        let empty = found.iter().filter(|interval| interval.operations == 0).count();
        assert!(empty > found.len() / 5, "{empty} of {}", found.len());
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
