//! The trend of a series: its slope and its significance.

use crate::statistics::median;

/// The slope of a series of evenly spaced values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Theil and Sen's slope per step: the median of the slopes between all pairs.
    pub slope: f64,
    /// Mann and Kendall's statistic in standard deviations, corrected for autocorrelation.
    pub z: f64,
    /// Kendall's tau: of all pairs, how many more rise than fall; -1 where each falls.
    pub tau: f64,
}

/// Finds the trend of a series.
///
/// The significance is that of the ranks alone, so that outliers do not count for more than their place. Noise that is
/// like its neighbour makes slopes by itself; the variance is therefore widened by `(1 + r) / (1 - r)`, r being the
/// lag-one autocorrelation of what is left without the trend (after Yue and Wang, 2004), where it is significant.
#[must_use]
pub fn trend(values: &[f64]) -> Trend {
    let n = values.len();
    if n < 3 {
        return Trend { slope: 0.0, z: 0.0, tau: 0.0 };
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut balance = 0i64;
    for (i, early) in values.iter().enumerate() {
        for (j, late) in values.iter().enumerate().skip(i + 1) {
            slopes.push((late - early) / (j - i) as f64);
            balance += i64::from(late > early) - i64::from(late < early);
        }
    }
    let slope = median(&slopes);
    let variance = rank_variance(values) * widening(&without_curve(values), values);
    let z = if variance > 0.0 { (balance - balance.signum()) as f64 / variance.sqrt() } else { 0.0 };
    Trend { slope, z, tau: balance as f64 * 2.0 / (n * (n - 1)) as f64 }
}

/// Returns the variance of Mann and Kendall's balance without a trend, less what ties take from it.
fn rank_variance(values: &[f64]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tied| term(tied.len() as f64)).sum();
    (term(values.len() as f64) - ties) / 18.0
}

/// Returns the residuals of the parabola of least squares: a line would leave the bend of a decay, which looks like
/// noise that is like its neighbour.
fn without_curve(values: &[f64]) -> Vec<f64> {
    let n = values.len() as f64;
    let middle = (n - 1.0) / 2.0;
    // The first three orthogonal polynomials on an even grid; each is taken away by itself.
    let bend = (n * n - 1.0) / 12.0;
    let bases: [fn(f64, f64) -> f64; 3] = [|_, _| 1.0, |x, _| x, |x, bend| x * x - bend];
    let mut rest = values.to_vec();
    for basis in bases {
        let at = |i: usize| basis(i as f64 - middle, bend);
        let (product, square) = rest
            .iter()
            .enumerate()
            .fold((0.0, 0.0), |(product, square), (i, value)| (product + value * at(i), square + at(i).powi(2)));
        rest.iter_mut().enumerate().for_each(|(i, value)| *value -= product / square * at(i));
    }
    rest
}

/// Returns the factor by which noise that is like its neighbour widens the variance of a mean: `(1 + r) / (1 - r)`, r being the
/// lag-one autocorrelation of what is `rest` of the `whole` series; 1 where r is not significant.
pub(crate) fn widening(rest: &[f64], whole: &[f64]) -> f64 {
    let r = autocorrelation(rest, whole);
    let r = if r > 1.645 / (rest.len() as f64).sqrt() { r.min(0.9) } else { 0.0 };
    (1.0 + r) / (1.0 - r)
}

/// Returns the lag-one autocorrelation of values around 0, corrected for its bias towards less; 0 where there is only
/// rounding.
fn autocorrelation(rest: &[f64], whole: &[f64]) -> f64 {
    let n = rest.len() as f64;
    let power = |values: &[f64]| values.iter().map(|value| value.powi(2)).sum::<f64>();
    let square = power(rest);
    if square <= power(whole) * 1e-18 {
        return 0.0;
    }
    let product: f64 = rest.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let r = product / square;
    if r > 0.0 { (r * n + 1.0) / (n - 4.0).max(1.0) } else { r }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope_and_every_pair_on_its_side() {
        let line: Vec<f64> = (0..10).map(|i| 5.0 - 0.5 * f64::from(i)).collect();
        let found = trend(&line);
        assert!((found.slope + 0.5).abs() < 1e-12);
        // S = -45, variance 10 * 9 * 25 / 18 = 125.
        assert!((found.z + 44.0 / 125f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn constants_and_short_series_have_none() {
        assert_eq!(trend(&[4.0; 12]), Trend { slope: 0.0, z: 0.0, tau: 0.0 });
        assert_eq!(trend(&[1.0, 2.0]), Trend { slope: 0.0, z: 0.0, tau: 0.0 });
    }

    #[test]
    fn ties_take_from_the_variance() {
        // Kendall's worked form: n = 4 with one pair tied: (4*3*13 - 2*1*9) / 18.
        assert!((rank_variance(&[1.0, 2.0, 2.0, 3.0]) - (156.0 - 18.0) / 18.0).abs() < 1e-12);
    }

    #[test]
    fn one_outlier_makes_no_slope() {
        let mut values = vec![10.0; 20];
        values[19] = 1000.0;
        assert_eq!(trend(&values).slope, 0.0);
    }
}
