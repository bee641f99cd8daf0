//! The verdict on a run: whether its figures can be trusted, judged from its rates over time.

use crate::statistics::{coefficient_of_variation, mean, median};
use crate::trend::trend;
use crate::{Interval, State, Verdict};

/// The most pieces in which slope and spread are judged: long enough to even out single hiccups.
const PIECES_MAX: usize = 50;
/// Two levels are looked for in as many pieces as there are, because a piece that holds both hides them.
const PIECES_FINE: usize = 200;
/// Fewer pieces than this say nothing.
const PIECES_MIN: usize = 8;
/// Fewer operations in a piece than this are no rate.
const OPERATIONS_MIN: u64 = 4;
/// A slope is a drift when chance makes it less than once in a hundred times ...
const DRIFT_Z: f64 = 2.576;
/// ... or when nearly all pairs of pieces go one way: the bend of a steep decay looks like noise that is like its
/// neighbour ...
const DRIFT_TAU: f64 = 0.85;
/// ... and when it changes the rate by this share over the run.
const DRIFT_MIN: f64 = 0.10;
/// Two clusters are two levels when Ashman's D of them passes this. Halves of one normal distribution have 2.7, of a
/// uniform one 3.5.
const LEVELS_D: f64 = 4.5;
/// ... when they differ by this share of the mean ...
const LEVELS_APART: f64 = 0.15;
/// ... and when each holds this share of the pieces, and no fewer than three.
const LEVEL_SHARE: f64 = 0.10;
/// A standard deviation over this share of the mean is too much to quote the mean.
const NOISE_MAX: f64 = 0.15;

/// Judges a run from its rates over time: drifting, bimodal, noisy or stable.
///
/// Drift is a significant slope (Mann and Kendall, corrected for autocorrelation) of at least a tenth over the run
/// (Theil and Sen); bimodal, two clusters well apart (Ashman's D); noisy, a coefficient of variation over 15 % beyond
/// what the number of operations in each piece explains, or fewer than eight pieces of four operations to judge by.
#[must_use]
pub fn verdict(intervals: &[Interval]) -> Verdict {
    let series = Series::new(intervals, PIECES_MAX);
    let (state, text) = if series.rates.len() < PIECES_MIN || mean(&series.rates) <= 0.0 {
        let total: u64 = intervals.iter().map(|interval| interval.operations).sum();
        // Nothing speaks against it, but nothing for it either.
        (State::Noisy, format!("too short to judge: {total} operations; a longer run would tell"))
    } else if let Some(text) = drift(&series) {
        (State::Drifting, text)
    } else if let Some(text) = levels(&Series::new(intervals, PIECES_FINE)) {
        (State::Bimodal, text)
    } else {
        spread(&series)
    };
    let word = state.word();
    Verdict { state, text: format!("{word}: {text}") }
}

/// The share of an open loop's schedule that has to be held.
pub const SCHEDULE_HELD: f64 = 0.99;

/// Judges whether a schedule was held; `None` where it was, to the [`SCHEDULE_HELD`] share.
#[must_use]
pub fn missed(operations_per_s: f64, asked_per_s: f64) -> Option<Verdict> {
    let held = operations_per_s / asked_per_s;
    (held < SCHEDULE_HELD).then(|| Verdict {
        state: State::Missed,
        text: format!(
            "missed: {:.1} % of the schedule was held ({operations_per_s:.0}/s of {asked_per_s:.0}/s)",
            held * 100.0
        ),
    })
}

/// Operations per second, piece by piece, all pieces about equally long.
struct Series {
    rates: Vec<f64>,
    operations_per_piece: f64,
    bits_per_operation: f64,
}

impl Series {
    fn new(intervals: &[Interval], pieces_max: usize) -> Self {
        let operations: u64 = intervals.iter().map(|interval| interval.operations).sum();
        let bytes: u64 = intervals.iter().map(|interval| interval.payload_bytes).sum();
        let pieces = pieces_max.min(usize::try_from(operations / OPERATIONS_MIN).unwrap_or(pieces_max));
        let together = intervals.len().div_ceil(pieces.max(1)).max(1);
        let mut from_s = 0.0;
        let mut rates = Vec::with_capacity(pieces_max);
        // The remainder at the end is too short to compare.
        for group in intervals.chunks_exact(together) {
            let to_s = group[together - 1].t_s;
            let done: u64 = group.iter().map(|interval| interval.operations).sum();
            if to_s > from_s {
                rates.push(done as f64 / (to_s - from_s));
            }
            from_s = to_s;
        }
        Series {
            operations_per_piece: operations as f64 / rates.len().max(1) as f64,
            bits_per_operation: if operations == 0 { 0.0 } else { bytes as f64 * 8.0 / operations as f64 },
            rates,
        }
    }

    /// Returns two rates in one unit: of payload where there is any.
    fn pair(&self, first: f64, second: f64) -> (String, String, &'static str) {
        let per = if self.bits_per_operation > 0.0 { self.bits_per_operation } else { 1.0 };
        let (first, second) = (first * per, second * per);
        let scales = [(1e9, "Gbit/s", "G/s"), (1e6, "Mbit/s", "M/s"), (1e3, "kbit/s", "k/s"), (1.0, "bit/s", "/s")];
        let larger = first.max(second);
        // A thousand of a unit still reads well; ten thousand does not.
        let fit = scales.into_iter().find(|(scale, ..)| larger >= 2.0 * scale).unwrap_or(scales[3]);
        let digits = |value: f64| {
            let scaled = value / fit.0;
            if scaled >= 100.0 { format!("{scaled:.0}") } else { format!("{scaled:.1}") }
        };
        let unit = if self.bits_per_operation > 0.0 { fit.1 } else { fit.2 };
        (digits(first), digits(second), unit)
    }
}

fn drift(series: &Series) -> Option<String> {
    let rates = &series.rates;
    let found = trend(rates);
    let change = found.slope * (rates.len() - 1) as f64 / median(rates).max(f64::MIN_POSITIVE);
    let is_chance = found.z.abs() < DRIFT_Z && found.tau.abs() < DRIFT_TAU;
    if is_chance || change.abs() < DRIFT_MIN {
        return None;
    }
    // The ends as they were, because a decay is seldom straight.
    let edge = (rates.len() / 10).max(3);
    let (first, last) = (median(&rates[..edge]), median(&rates[rates.len() - edge..]));
    let (from, to, unit) = series.pair(first, last);
    let percent = (last / first.max(f64::MIN_POSITIVE) - 1.0).abs() * 100.0;
    // More than tenfold says no more than the two rates.
    let by = if percent < 1000.0 { format!(" {percent:.0} %") } else { String::new() };
    Some(if change < 0.0 {
        format!("the rate falls{by} over the run ({from} -> {to} {unit}); a longer run would find less")
    } else {
        format!("the rate rises{by} over the run ({from} -> {to} {unit}); a longer warm-up would find more")
    })
}

fn levels(series: &Series) -> Option<String> {
    let mut sorted = series.rates.clone();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = sorted.split_at(best_split(&sorted)?);
    let (low_mean, high_mean) = (mean(low), mean(high));
    let apart = high_mean - low_mean;
    let spread = robust_deviation(low).hypot(robust_deviation(high));
    let chance = 4.0 / series.operations_per_piece.sqrt();
    let share_low = low.len() as f64 / sorted.len() as f64;
    let distinct = std::f64::consts::SQRT_2 * apart > LEVELS_D * spread;
    let far = apart > LEVELS_APART.max(chance) * mean(&sorted);
    let both = share_low.min(1.0 - share_low) >= LEVEL_SHARE && low.len().min(high.len()) >= 3;
    if !distinct || !far || !both {
        return None;
    }
    let (slow, fast, unit) = series.pair(low_mean, high_mean);
    let percent = share_low * 100.0;
    Some(format!(
        "the rate jumps between two levels, {slow} {unit} for {percent:.0} % of the run and {fast} {unit} for the rest; \
         the average describes neither"
    ))
}

/// Returns the standard deviation of a normal distribution with this median absolute deviation: the few pieces in which
/// the level changed do not count.
fn robust_deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    1.4826 * median(&values.iter().map(|value| (value - middle).abs()).collect::<Vec<_>>())
}

/// Returns where two clusters of a sorted series part: the split with the most variance between them.
fn best_split(sorted: &[f64]) -> Option<usize> {
    let (n, total) = (sorted.len() as f64, sorted.iter().sum::<f64>());
    let mut below = 0.0;
    let between = |(i, value): (usize, &f64)| {
        below += value;
        let (low, high) = ((i + 1) as f64, n - (i + 1) as f64);
        (i + 1, low * high * ((total - below) / high - below / low).powi(2))
    };
    let splits = sorted.iter().enumerate().take(sorted.len().saturating_sub(1)).map(between);
    splits.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(split, _)| split)
}

fn spread(series: &Series) -> (State, String) {
    let varies = coefficient_of_variation(&series.rates);
    let pieces = series.rates.len();
    // Arrivals at random vary by the square root of their number; three standard deviations of that are allowed.
    let by_chance = (1.0 + 3.0 * (2.0 / pieces as f64).sqrt()) / series.operations_per_piece;
    let percent = varies * 100.0;
    let measure = format!("the rate varies by {percent:.1} % (standard deviation over {pieces} pieces of the run)");
    if varies.powi(2) - by_chance > NOISE_MAX.powi(2) {
        (State::Noisy, format!("{measure}; more repeats or a quieter machine would help"))
    } else {
        (State::Stable, measure)
    }
}

#[cfg(test)]
mod tests;
