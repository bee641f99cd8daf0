//! One lasting change of a series: where it is, how large, and how sure.

use crate::statistics::mean;
use crate::trend::widening;

/// The least part of a series on each side of the change.
const EDGE_SHARE: usize = 10;

/// The one change of level that explains most of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The number of values before it.
    pub at: usize,
    /// The mean before it.
    pub before: f64,
    /// The mean after it.
    pub after: f64,
    /// The difference of the two means in its standard deviations; infinite where nothing else varies.
    pub z: f64,
}

/// Finds the change that leaves the least variance on its two sides, each a tenth of the series or more; `None` if there are fewer
/// than 6 values or no change.
///
/// The standard deviation is that of what is left on both sides, widened for autocorrelation as that of a [trend](crate::trend::trend).
#[must_use]
pub fn step(values: &[f64]) -> Option<Step> {
    let n = values.len();
    let edge = n.div_ceil(EDGE_SHARE).max(2);
    if n < 6 {
        return None;
    }
    let total: f64 = values.iter().sum();
    let mut sum: f64 = values[..edge - 1].iter().sum();
    let split = |at: usize| {
        sum += values[at - 1];
        let (early, late) = (at as f64, (n - at) as f64);
        (at, early * late * ((total - sum) / late - sum / early).powi(2))
    };
    let (at, _) = (edge..=n - edge).map(split).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (before, after) = (mean(&values[..at]), mean(&values[at..]));
    let rest: Vec<f64> = (0..n).map(|i| values[i] - if i < at { before } else { after }).collect();
    let variance = rest.iter().map(|value| value.powi(2)).sum::<f64>() / (n - 2) as f64;
    let of_means = variance * (1.0 / at as f64 + 1.0 / (n - at) as f64) * widening(&rest, values);
    let change = after - before;
    (change != 0.0).then(|| Step { at, before, after, z: change / of_means.sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_step_is_where_it_is() {
        let found = step(&[4.0, 4.0, 4.0, 4.0, 4.0, 1.0, 1.0, 1.0]).expect("there is one");
        assert_eq!((found.at, found.before, found.after, found.z), (5, 4.0, 1.0, f64::NEG_INFINITY));
    }

    #[test]
    fn its_size_is_told_in_standard_deviations() {
        // 9, 11 and 19, 21: a variance of 20 / 8 left, and means of 5 values each.
        let found = step(&[9.0, 11.0, 9.0, 11.0, 10.0, 19.0, 21.0, 19.0, 21.0, 20.0]).expect("there is one");
        assert_eq!((found.at, found.before, found.after), (5, 10.0, 20.0));
        assert!((found.z - 10.0 / (8.0f64 / 8.0 * 0.4).sqrt()).abs() < 1e-9, "{}", found.z);
    }

    #[test]
    fn constants_and_short_series_have_none() {
        assert_eq!((step(&[3.0; 20]), step(&[1.0, 2.0, 9.0])), (None, None));
    }
}
