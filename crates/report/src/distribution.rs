//! The curve inside a stored histogram.

use hodo_measure::Histogram;

/// One point of a percentile curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Percentile {
    /// The share of operations that took no longer, below 1.
    pub share: f64,
    /// The longest time of those operations, in nanoseconds.
    pub time_ns: f64,
}

/// The most points that a curve needs to look smooth.
const POINTS_MAX: usize = 160;

/// Returns the percentile curve of a histogram in HdrHistogram's V2 compressed form, base64; empty if it is malformed.
///
/// Points lie evenly over log(1 / (1 - share)), and end where a single operation decides.
pub(crate) fn percentiles(histogram: &str) -> Vec<Percentile> {
    Histogram::decode(histogram).map_or_else(|_| Vec::new(), |histogram| curve(&histogram))
}

fn curve(histogram: &Histogram) -> Vec<Percentile> {
    if histogram.count() == 0 {
        return Vec::new();
    }
    let decades = (histogram.count() as f64).log10();
    let points = ((decades * 40.0).ceil() as usize).clamp(1, POINTS_MAX);
    let shares = (0..=points).map(|point| 1.0 - 10f64.powf(-decades * point as f64 / points as f64));
    let times = histogram.quantiles(shares.clone());
    shares.zip(times).map(|(share, time_ns)| Percentile { share, time_ns: time_ns as f64 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_curve_rises_from_the_shortest_to_the_longest() {
        let latency = sample::latency_around(6_000.0, 100_000);
        let curve = percentiles(&latency.histogram);
        assert!(curve.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns && pair[0].share < pair[1].share));
        assert!((curve[0].time_ns / latency.min as f64 - 1.0).abs() < 0.01, "{curve:?}");
        let p99 = curve.iter().find(|point| point.share >= 0.99).unwrap().time_ns;
        assert!((p99 / latency.p99 as f64 - 1.0).abs() < 0.02);
    }

    #[test]
    fn what_is_no_histogram_has_no_curve() {
        assert!(percentiles("").is_empty());
        assert!(percentiles("not base64!").is_empty());
        assert!(percentiles("AAAA").is_empty());
    }
}
