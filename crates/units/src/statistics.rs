//! Averages, spread, and how evenly something is shared out.

/// Returns the arithmetic mean; 0 without values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Returns the standard deviation of the population that the values were drawn from; 0 for fewer than two.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Returns how evenly something is shared out, after Jain: 1 where all have the same, 1/n where one has all; 1 without
/// values.
#[must_use]
pub fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
    if squares == 0.0 { 1.0 } else { sum * sum / (values.len() as f64 * squares) }
}

/// Returns the least of these over the most; 1 without values.
#[must_use]
pub fn least_over_most(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(0.0, f64::max);
    if most == 0.0 { 1.0 } else { values.iter().copied().fold(f64::INFINITY, f64::min) / most }
}

/// Returns the standard deviation as a share of the mean; 0 where the mean is 0.
#[must_use]
pub fn coefficient_of_variation(values: &[f64]) -> f64 {
    let mean = mean(values);
    if mean == 0.0 { 0.0 } else { standard_deviation(values) / mean.abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_out_evenly_is_known() {
        assert_eq!((jain(&[]), least_over_most(&[])), (1.0, 1.0));
        assert_eq!((jain(&[3.0; 4]), least_over_most(&[3.0; 4])), (1.0, 1.0));
        assert_eq!((jain(&[8.0, 0.0, 0.0, 0.0]), least_over_most(&[8.0, 0.0])), (0.25, 0.0));
        assert!((jain(&[1.0, 3.0]) - 0.8).abs() < 1e-12 && least_over_most(&[1.0, 4.0]) == 0.25);
    }

    #[test]
    fn variation_is_relative() {
        assert!((coefficient_of_variation(&[9.0, 10.0, 11.0]) - 0.1).abs() < 1e-12);
        assert_eq!(coefficient_of_variation(&[0.0, 0.0]), 0.0);
    }
}
