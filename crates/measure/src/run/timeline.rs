use super::recorder::Tally;
use crate::Interval;
use hodo_machine::Instant;

/// The most intervals in a result.
const INTERVALS_MAX: usize = 200;
/// The fewest intervals of a run in which enough completed: less would say nothing of how the rate went.
const INTERVALS_MIN: usize = 25;
/// The batches of completions that an interval holds on average, unless the run has too few: with fewer, an interval would say more of where
/// its ends fall than of the rate.
const BATCHES: usize = 8;
/// The batches of an interval where the run has few.
const BATCHES_OF_FEW: usize = 4;
/// The most bins; with one more, each two of them become one.
const BINS_MAX: usize = 4096;
/// A bin lasts 2 to the power of this many nanoseconds at first.
const SHIFT: u32 = 10;

/// The completions on one link in each bin of the counted time.
///
/// Bins are pieces of the clock's own time, each twice as long as before whenever there would be too many, so that those of several links
/// on one clock fall together. A completion is counted in the bin in which it came, and nowhere else: a silence is empty bins.
#[derive(Debug)]
pub(super) struct Timeline {
    start: Instant,
    shift: u32,
    /// The number of the first bin, counted from the clock's origin.
    first: u64,
    bins: Vec<Bin>,
    batches: usize,
    /// The totals so far.
    operations: u64,
    payload_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    operations: u64,
    payload_bytes: u64,
}

impl Timeline {
    pub fn new(start: Instant) -> Self {
        let first = start.as_nanos() >> SHIFT;
        let bins = Vec::with_capacity(BINS_MAX);
        Timeline { start, shift: SHIFT, first, bins, batches: 0, operations: 0, payload_bytes: 0 }
    }

    /// Returns the start of the counted time.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Notes that a batch of completions at `now` brought the totals to `operations` and `payload_bytes`.
    #[inline]
    pub fn note(&mut self, now: Instant, operations: u64, payload_bytes: u64) {
        self.note_part(now, operations, payload_bytes);
        self.batches += 1;
    }

    /// Notes completions as [`Timeline::note`] does, of a batch that goes on.
    #[inline]
    pub fn note_part(&mut self, now: Instant, operations: u64, payload_bytes: u64) {
        let mut place = self.place(now);
        if place >= self.bins.len() {
            while place >= BINS_MAX {
                self.coarsen();
                place = self.place(now);
            }
            self.bins.resize(place + 1, Bin::default());
        }
        let bin = &mut self.bins[place];
        bin.operations += operations - self.operations;
        bin.payload_bytes += payload_bytes - self.payload_bytes;
        (self.operations, self.payload_bytes) = (operations, payload_bytes);
    }

    #[inline]
    fn place(&self, now: Instant) -> usize {
        (now.as_nanos() >> self.shift).saturating_sub(self.first) as usize
    }

    /// Makes bins twice as long.
    #[cold]
    fn coarsen(&mut self) {
        let first = self.first >> 1;
        let mut to = 0;
        for from in 0..self.bins.len() {
            let bin = std::mem::take(&mut self.bins[from]);
            to = (((self.first + from as u64) >> 1) - first) as usize;
            self.bins[to].operations += bin.operations;
            self.bins[to].payload_bytes += bin.payload_bytes;
        }
        self.bins.truncate(if self.bins.is_empty() { 0 } else { to + 1 });
        (self.first, self.shift) = (first, self.shift + 1);
    }
}

/// One link's timeline and how long its part of the run took.
pub(super) struct Track<'a> {
    pub timeline: &'a Timeline,
    /// The totals of the run: a link that ran ahead of the others has counted more.
    pub total: Tally,
}

impl Track<'_> {
    /// Adds the counts to the cells of a run, each of which is so many bins of 2^`shift` ns, the first one at `first`.
    fn add_to(&self, cells: &mut [Interval], first: u64, shift: u32, bins_of_cell: u64) {
        let Track { timeline, total } = self;
        let (mut operations, mut payload_bytes) = (total.operations, total.payload_bytes);
        for (place, bin) in (timeline.first..).zip(&timeline.bins) {
            let cell = ((place >> (shift - timeline.shift)).saturating_sub(first) / bins_of_cell) as usize;
            if let Some(cell) = cells.get_mut(cell) {
                let (done, bytes) = (bin.operations.min(operations), bin.payload_bytes.min(payload_bytes));
                (operations, payload_bytes) = (operations - done, payload_bytes - bytes);
                (cell.operations, cell.payload_bytes) = (cell.operations + done, cell.payload_bytes + bytes);
            }
        }
    }
}

/// Returns what completed on all links together, in at most 200 pieces of equal length; the last one may be shorter.
pub(super) fn intervals(tracks: &[Track<'_>]) -> Vec<Interval> {
    let elapsed_s = tracks.iter().map(|track| track.total.elapsed_s).fold(0.0, f64::max);
    let timelines = || tracks.iter().map(|track| track.timeline);
    let batches = timelines().map(|timeline| timeline.batches).sum::<usize>();
    let start = timelines().map(|timeline| timeline.start).min();
    let (Some(start), true) = (start, batches > 0 && elapsed_s > 0.0) else { return Vec::new() };
    let shift = timelines().map(|timeline| timeline.shift).max().unwrap_or(SHIFT);
    let first = start.as_nanos() >> shift;
    let end = start.as_nanos() + (elapsed_s * 1e9).round() as u64;
    let bins = (end >> shift) - first + 1;
    let bins_of_cell = bins.div_ceil(cells(batches) as u64);
    let t_s = |cell: u64| {
        let bound = (first + (cell + 1) * bins_of_cell) << shift;
        whole_nanos((bound - start.as_nanos()) as f64 * 1e-9).min(elapsed_s)
    };
    let empty = |cell| Interval { t_s: t_s(cell), operations: 0, payload_bytes: 0 };
    let mut found: Vec<Interval> = (0..bins.div_ceil(bins_of_cell)).map(empty).collect();
    tracks.iter().for_each(|track| track.add_to(&mut found, first, shift, bins_of_cell));
    found
}

/// Returns the number of intervals for this many batches of completions.
fn cells(batches: usize) -> usize {
    let of_few = (batches / BATCHES_OF_FEW).clamp(1, INTERVALS_MIN);
    (batches / BATCHES).clamp(of_few, INTERVALS_MAX)
}

/// Returns seconds without digits beyond a nanosecond, which would say nothing.
pub(super) fn whole_nanos(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(start_ns: u64, step_ns: u64, steps: u64) -> Timeline {
        let mut timeline = Timeline::new(Instant::from_nanos(start_ns));
        (1..=steps).for_each(|i| timeline.note(Instant::from_nanos(start_ns + i * step_ns), i * 8, i * 80));
        timeline
    }

    fn track(timeline: &Timeline, elapsed_s: f64) -> Track<'_> {
        let Timeline { operations, payload_bytes, .. } = *timeline;
        Track { timeline, total: Tally { operations, payload_bytes, elapsed_s } }
    }

    fn sum(found: &[Interval]) -> (u64, u64) {
        found.iter().fold((0, 0), |sum, one| (sum.0 + one.operations, sum.1 + one.payload_bytes))
    }

    #[test]
    fn the_bins_of_any_run_are_bounded_and_hold_everything() {
        for (start_ns, step_ns, steps) in [(0, 1500, 100_000), (999, 3, 1_000_000), (1 << 40, 50_000_000, 5_000)] {
            let timeline = steady(start_ns, step_ns, steps);
            assert!(timeline.bins.len() <= BINS_MAX && timeline.bins.capacity() == BINS_MAX);
            let elapsed_s = (steps * step_ns) as f64 * 1e-9;
            let found = intervals(&[track(&timeline, elapsed_s)]);
            assert!(found.len() > INTERVALS_MAX / 2 && found.len() <= INTERVALS_MAX, "{}", found.len());
            assert_eq!(sum(&found), (8 * steps, 80 * steps));
            assert_eq!(found.last().map(|last| last.t_s), Some(elapsed_s));
            let length_s = found[1].t_s - found[0].t_s;
            let due = length_s / (step_ns as f64 * 1e-9) * 8.0;
            let inner = &found[1..found.len() - 1];
            assert!(
                inner.iter().all(|one| (one.operations as f64 - due).abs() <= 8.0 + 0.02 * due),
                "{due}: {found:?}"
            );
        }
    }

    /// Takes a thousand operations a second, none of them from 2 s to 4 s, which then come at once.
    #[test]
    fn a_silence_is_empty() {
        let mut timeline = Timeline::new(Instant::ZERO);
        for i in 1..=6000_u64 {
            let at = if (2001..4000).contains(&i) { 4000 } else { i };
            timeline.note(Instant::from_nanos(at * 1_000_000), i, i);
        }
        let found = intervals(&[track(&timeline, 6.0)]);
        let silent: Vec<f64> = found.iter().filter(|one| one.operations == 0).map(|one| one.t_s).collect();
        assert!(silent.iter().all(|t_s| (2.0..4.05).contains(t_s)), "{silent:?}");
        assert!(silent.len() as f64 >= 0.95 * found.len() as f64 / 3.0, "{} of {}", silent.len(), found.len());
        assert_eq!(sum(&found), (6000, 6000));
    }

    /// Takes lumps of 16 operations each 10 ms, reported in two parts.
    #[test]
    fn an_interval_is_long_enough_for_the_lumps_in_it() {
        let mut timeline = Timeline::new(Instant::ZERO);
        for lump in 1..=500 {
            timeline.note(Instant::from_nanos(lump * 10_000_000), lump * 16 - 5, 0);
            timeline.note(Instant::from_nanos(lump * 10_000_000 + 100_000), lump * 16, 0);
        }
        let found = intervals(&[track(&timeline, 5.0001)]);
        let even = 8000 / found.len() as u64;
        let uneven = found.iter().filter(|one| one.operations.abs_diff(even) > 17).count();
        assert!(found.len() > 100 && uneven <= 1, "{uneven} of {}: {found:?}", found.len());
    }

    #[test]
    fn few_completions_make_few_intervals() {
        assert_eq!([1, 7, 40, 100, 200, 400, 1600, 1 << 20].map(cells), [1, 1, 10, 25, 25, 50, 200, 200]);
    }

    #[test]
    fn links_add_up_and_an_early_end_counts() {
        let (long, short) = (steady(7, 1_000_000, 1000), steady(400_000, 1_000_000, 500));
        let tracks = [track(&long, 1.0), track(&short, 0.5)];
        let found = intervals(&tracks);
        assert_eq!(sum(&found).0, 8 * 1500);
        let rate = |cell: usize| found[cell].operations as f64 / (found[cell].t_s - found[cell - 1].t_s);
        assert!((rate(10) / 16_000.0 - 1.0).abs() < 0.2 && (rate(found.len() - 10) / 8_000.0 - 1.0).abs() < 0.2);
    }

    #[test]
    fn what_a_link_did_ahead_of_the_others_does_not_count() {
        let timeline = steady(0, 1_000_000, 1000);
        let total = Tally { operations: 4000, payload_bytes: 40_000, elapsed_s: 0.5 };
        assert_eq!(sum(&intervals(&[Track { timeline: &timeline, total }])), (4000, 40_000));
    }

    #[test]
    fn nothing_done_has_no_intervals() {
        assert!(intervals(&[]).is_empty());
        let idle = Timeline::new(Instant::ZERO);
        assert!(intervals(&[track(&idle, 1.0)]).is_empty());
    }
}
