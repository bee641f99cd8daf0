//! The verdict on a run: whether its figures can be trusted, judged from its rates over time.

mod series;
mod stalls;

pub use stalls::{stalled, stalls_between};

use crate::statistics::{mean, median};
use crate::step::{Step, step};
use crate::trend::trend;
use crate::{Interval, State, Verdict};
use series::{PIECES_FINE, PIECES_MAX, Series};

/// Fewer pieces than this say nothing.
const PIECES_MIN: usize = 8;
/// A slope is a drift when chance makes it less than once in a hundred times ...
const DRIFT_Z: f64 = 2.576;
/// ... or when nearly all pairs of pieces go one way: the bend of a steep decay looks like noise that is like its
/// neighbour ...
const DRIFT_TAU: f64 = 0.85;
/// ... and when it changes the rate by this share over the run.
const DRIFT_MIN: f64 = 0.10;
/// A step is a drift when it is as many standard deviations as this. It is looked for at every place, which is why this is more than
/// for a slope ...
const STEP_Z: f64 = 3.5;
/// ... and when it changes the rate by this share of the higher of the two.
const STEP_MIN: f64 = 0.13;
/// A run too uneven for either is a drift still when one of its ends has this share of the other's rate ...
const ENDS_SHARE: f64 = 0.5;
/// ... and one of its outer thirds this share of the other's.
const THIRDS_SHARE: f64 = 0.8;
/// Two clusters are two levels when Ashman's D of them passes this. Halves of one normal distribution have 2.7, of a
/// uniform one 3.5.
const LEVELS_D: f64 = 4.5;
/// ... when they differ by this share of the mean ...
const LEVELS_APART: f64 = 0.15;
/// ... and when each holds this share of the pieces, and no fewer than three.
const LEVEL_SHARE: f64 = 0.10;
/// A standard deviation over this share of the mean is too much to quote the mean ...
const NOISE_MAX: f64 = 0.15;
/// ... and of fewer pieces than these, less is: it goes as the root of their number, so that a step that matters would be seen.
const NOISE_PIECES: f64 = 30.0;

/// Judges a run from its rates over time: drifting, bimodal, noisy or stable.
///
/// Drift is a significant slope (Mann and Kendall, corrected for autocorrelation) of at least a tenth over the run
/// (Theil and Sen), or one significant step of 13 %; bimodal, two clusters well apart (Ashman's D); noisy, a coefficient of variation
/// over 15 %, or fewer than eight pieces of four operations to judge by.
///
/// Operations that end in lumps, as those that are acknowledged together do, make short pieces uneven and long ones not. A run is
/// therefore steady if it is steady in 50 pieces, in 25 or in 16, where the last two have to be as much steadier as chance makes
/// longer pieces.
#[must_use]
pub fn verdict(intervals: &[Interval]) -> Verdict {
    let series = Series::new(intervals, PIECES_MAX);
    let (state, text) = if series.rates.len() < PIECES_MIN || mean(&series.rates) <= 0.0 {
        // Nothing speaks against it, but nothing for it either.
        (State::Noisy, too_short(intervals))
    } else if let Some(text) = slope(&series) {
        (State::Drifting, text)
    } else {
        let coarser: Vec<Series> = series.coarser(intervals).collect();
        judged(intervals, &std::iter::once(series).chain(coarser).collect::<Vec<_>>())
    };
    let word = state.word();
    Verdict { state, text: format!("{word}: {text}") }
}

/// Judges a run without a slope from its series of longer and longer pieces.
fn judged(intervals: &[Interval], all: &[Series]) -> (State, String) {
    let steady = all.iter().find(|series| series.is_steady());
    // Where one is steady its steps are sure; the others hide them, or are full of them.
    let stepped = steady.map_or_else(|| all.iter().find_map(stepped), stepped);
    let drifts = stepped.or_else(|| steady.is_none().then(|| ends(&all[0])).flatten());
    if let Some(text) = drifts {
        return (State::Drifting, text);
    }
    if let Some(text) = levels(&Series::new(intervals, PIECES_FINE)) {
        return (State::Bimodal, text);
    }
    let told = steady.unwrap_or(&all[0]);
    let (percent, pieces) = (100.0 * told.variation(), told.rates.len());
    let measure = format!("the rate varies by {percent:.1} % (standard deviation over {pieces} pieces of the run)");
    match steady {
        Some(_) => (State::Stable, measure),
        None if told.is_by_chance() => (State::Noisy, too_short(intervals)),
        None => (State::Noisy, format!("{measure}; more repeats or a quieter machine would help")),
    }
}

fn too_short(intervals: &[Interval]) -> String {
    let total: u64 = intervals.iter().map(|interval| interval.operations).sum();
    format!("too short to judge, with {total} operations; a longer run would tell")
}

/// The share of an open loop's schedule that has to be held.
pub const SCHEDULE_HELD: f64 = 0.99;

/// Judges whether a schedule was held over a run; `None` where it was, to the [`SCHEDULE_HELD`] share.
#[must_use]
pub fn missed(operations_per_s: f64, asked_per_s: f64, intervals: &[Interval]) -> Option<Verdict> {
    let held = operations_per_s / asked_per_s;
    (held < SCHEDULE_HELD).then(|| Verdict {
        state: State::Missed,
        text: format!(
            "missed: {:.1} % of the schedule was held ({operations_per_s:.0}/s of {asked_per_s:.0}/s), and it fell behind {}",
            held * 100.0,
            behind_from(asked_per_s, intervals)
        ),
    })
}

/// Returns when a run fell behind its schedule for good: after the last moment at which no more was missing than may be.
fn behind_from(asked_per_s: f64, intervals: &[Interval]) -> String {
    let end_s = intervals.last().map_or(0.0, |interval| interval.t_s);
    let may_miss = (1.0 - SCHEDULE_HELD) * asked_per_s * end_s;
    let mut done = 0.0;
    let in_time = intervals.iter().filter(|interval| {
        done += interval.operations as f64;
        asked_per_s * interval.t_s - done <= may_miss
    });
    match in_time.last() {
        Some(interval) if interval.t_s > 0.05 * end_s => format!("{:.1} s after its start", interval.t_s),
        _ => "from its start".to_owned(),
    }
}

fn slope(series: &Series) -> Option<String> {
    let rates = &series.rates;
    let found = trend(rates);
    let change = found.slope * (rates.len() - 1) as f64 / median(rates).max(f64::MIN_POSITIVE);
    let is_chance = found.z.abs() < DRIFT_Z && found.tau.abs() < DRIFT_TAU;
    if is_chance || change.abs() < DRIFT_MIN {
        return None;
    }
    // The ends as they were, because a decay is seldom straight.
    let (first, last) = series.ends();
    Some(drift(series, first, last, "over the run", change < 0.0))
}

fn stepped(series: &Series) -> Option<String> {
    let Step { at, before, after, z } = step(&series.rates)?;
    if z.abs() < STEP_Z || (after - before).abs() < STEP_MIN * before.max(after) {
        return None;
    }
    let place = 100 * at / series.rates.len();
    Some(drift(series, before, after, &format!("at {place} % of the run"), after < before))
}

/// Returns the drift of a run of which nothing else can be said than that it ends far from where it began.
fn ends(series: &Series) -> Option<String> {
    let share = |a: f64, b: f64| a.min(b) / a.max(b).max(f64::MIN_POSITIVE);
    let (first, last) = series.ends();
    let third = series.rates.len() / 3;
    let (early, late) = (mean(&series.rates[..third]), mean(&series.rates[series.rates.len() - third..]));
    let is_one_way = (first < last) == (early < late);
    (is_one_way && share(first, last) < ENDS_SHARE && share(early, late) < THIRDS_SHARE)
        .then(|| drift(series, first, last, "over the run", last < first))
}

/// Returns the sentence of a drift from one rate to another.
fn drift(series: &Series, first: f64, last: f64, place: &str, falls: bool) -> String {
    let (from, to, unit) = series.pair(first, last);
    let percent = (last / first.max(f64::MIN_POSITIVE) - 1.0).abs() * 100.0;
    // More than tenfold says no more than the two rates.
    let by = if percent < 1000.0 { format!(" {percent:.0} %") } else { String::new() };
    if falls {
        format!("the rate falls{by} {place} ({from} -> {to} {unit}); a longer run would find less")
    } else {
        format!("the rate rises{by} {place} ({from} -> {to} {unit}); a longer warm-up would find more")
    }
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

#[cfg(test)]
mod tests;
