//! Averages, spread, and the median with its confidence interval.

use crate::Estimate;
pub use hodo_units::statistics::{coefficient_of_variation, jain, least_over_most, mean, standard_deviation};

/// Fewer repeats than this say nothing of their spread.
pub const REPEATS_MIN: usize = 3;

/// Returns the middle value, or the mean of the two in the middle; 0 without values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

/// Returns the median of the repeats with a confidence interval of this level, in percent.
///
/// With enough repeats the ends are order statistics: from the d-th smallest to the d-th largest, d the largest for
/// which the binomial distribution promises the level. That assumes nothing of the distribution and takes 6 repeats
/// for 95 %. With fewer, down to 3, it is Student's interval of the mean, which assumes that repeats are normally
/// distributed, widened to hold the median. With fewer than 3, or a level outside 0 to 100, there is no interval.
#[must_use]
pub fn estimate(repeats: &[f64], percent: f64) -> Estimate {
    let mut sorted = repeats.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = median_of_sorted(&sorted);
    let best = sorted.last().copied().unwrap_or(0.0);
    let level = percent / 100.0;
    let ends = (sorted.len() >= REPEATS_MIN && level > 0.0 && level < 1.0).then(|| {
        let ends = by_order(&sorted, level).unwrap_or_else(|| by_student(&sorted, level));
        (ends.0.min(middle).max(0.0), ends.1.max(middle))
    });
    Estimate {
        median: middle,
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
        confidence: ends.map(|_| percent),
        best,
    }
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Returns the narrowest symmetric pair of order statistics that covers the median with this probability; `None` if no
/// pair does.
fn by_order(sorted: &[f64], level: f64) -> Option<(f64, f64)> {
    let n = sorted.len();
    // In logarithms, because 2^-n underflows for some thousand repeats.
    let mut ln_probability = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut outside = None;
    for below in 0..n / 2 {
        tail += ln_probability.exp();
        if 1.0 - 2.0 * tail < level {
            break;
        }
        outside = Some(below);
        ln_probability += ((n - below) as f64 / (below + 1) as f64).ln();
    }
    outside.map(|cut| (sorted[cut], sorted[n - 1 - cut]))
}

fn by_student(values: &[f64], level: f64) -> (f64, f64) {
    let n = values.len() as f64;
    let half = student_quantile(level, values.len() - 1) * standard_deviation(values) / n.sqrt();
    let mean = mean(values);
    (mean - half, mean + half)
}

/// Returns the t that has this probability between -t and t.
fn student_quantile(level: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let t = f64::midpoint(low, high);
        if student_within(t, freedom) < level { low = t } else { high = t }
    }
    f64::midpoint(low, high)
}

/// Returns Student's probability between -t and t, for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and
/// 26.7.4).
fn student_within(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = if odd { (cos, 0.0) } else { (1.0, 0.0) };
    let first = if odd { 1 } else { 0 };
    for power in (first..freedom.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cos * cos * (power + 1) as f64 / (power + 2) as f64;
    }
    if odd { std::f64::consts::FRAC_2_PI * (angle + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::random::normal;
    use hodo_machine::Random;

    #[test]
    fn student_agrees_with_the_tables() {
        for (freedom, level, t) in [
            (1, 0.95, 12.706),
            (2, 0.95, 4.303),
            (3, 0.95, 3.182),
            (4, 0.95, 2.776),
            (5, 0.99, 4.032),
            (9, 0.999, 4.781),
        ] {
            let found = student_quantile(level, freedom);
            assert!((found - t).abs() < 0.001, "{freedom} degrees, {level}: {found}, table {t}");
        }
    }

    #[test]
    fn order_statistics_agree_with_the_tables() {
        // Ranks of the 95 % interval of a median: 1 and 6 of 6, 2 and 9 of 10, 10 and 21 of 30.
        let ranks = |n: u32| by_order(&(1..=n).map(f64::from).collect::<Vec<_>>(), 0.95);
        assert_eq!(ranks(5), None);
        assert_eq!(ranks(6), Some((1.0, 6.0)));
        assert_eq!(ranks(10), Some((2.0, 9.0)));
        assert_eq!(ranks(30), Some((10.0, 21.0)));
        let (low, high) = ranks(5000).expect("enough");
        assert!((low - 2431.0).abs() <= 1.0 && (high - 2570.0).abs() <= 1.0, "{low} {high}");
    }

    #[test]
    fn too_few_repeats_have_no_interval() {
        let none = estimate(&[], 95.0);
        assert_eq!((none.median, none.best, none.low), (0.0, 0.0, None));
        let two = estimate(&[3.0, 1.0], 95.0);
        assert_eq!((two.median, two.best, two.low, two.high, two.confidence), (2.0, 3.0, None, None, None));
        assert_eq!(estimate(&[1.0; 9], 100.0).low, None);
    }

    #[test]
    fn identical_repeats_have_a_narrow_interval() {
        for n in [3, 6, 40] {
            let found = estimate(&vec![5.0; n], 95.0);
            assert_eq!(
                (found.median, found.low, found.high, found.confidence),
                (5.0, Some(5.0), Some(5.0), Some(95.0))
            );
        }
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        for n in [3, 4, 5, 6, 9, 20] {
            let held = (0..2000).filter(|seed| {
                let mut random = Random::new(seed * 977 + n);
                let repeats: Vec<f64> = (0..n).map(|_| 100.0 + 5.0 * normal(&mut random)).collect();
                let found = estimate(&repeats, 95.0);
                found.low.is_some_and(|low| low <= 100.0) && found.high.is_some_and(|high| high >= 100.0)
            });
            let share = held.count() as f64 / 2000.0;
            assert!(share > 0.935, "{n} repeats: held in {share}");
        }
    }
}
