//! Rows of the result, and the columns that perftest prints.

use std::fmt::Write;
use std::time::Duration;

/// A megabyte of perftest.
const MEGABYTE: f64 = (1 << 20) as f64;
/// Iterations up to which the peak is looked for: every run of them is compared.
pub(super) const PEAK_MAX: u64 = 5000;

/// The result of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row {
    /// From a test of latency.
    Latency(Latency),
    /// From a test of bandwidth.
    Bandwidth(Bandwidth),
}

/// Latencies of one size, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Bytes.
    pub size: u32,
    /// Iterations.
    pub iterations: u64,
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// The median, perftest's "typical".
    pub typical: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// 99 of 100 are not longer.
    pub p99: f64,
    /// 999 of 1000 are not longer.
    pub p999: f64,
}

/// The bandwidth of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    /// Bytes.
    pub size: u32,
    /// Iterations.
    pub iterations: u64,
    /// The fastest run of iterations, in 2^20 bytes/s; 0 where there were too many to look.
    pub peak: f64,
    /// The average, in 2^20 bytes/s.
    pub average: f64,
    /// Messages per second, in millions.
    pub rate: f64,
}

impl Latency {
    /// Sorts the samples, in nanoseconds, and draws the row from them; `parts` is 2 where one is a round trip.
    pub(super) fn of(size: u32, samples: &mut [u64], parts: u32) -> Self {
        samples.sort_unstable();
        let count = samples.len().max(1) as f64;
        let us = |nanos: f64| nanos / 1000.0 / f64::from(parts);
        let at = |share: f64| {
            let index = ((count * share).ceil() as usize).clamp(1, samples.len().max(1)) - 1;
            us(samples.get(index).copied().unwrap_or(0) as f64)
        };
        let mean = samples.iter().sum::<u64>() as f64 / count;
        let variance = samples.iter().map(|sample| (*sample as f64 - mean).powi(2)).sum::<f64>() / count;
        Latency {
            size,
            iterations: samples.len() as u64,
            min: at(0.0),
            max: at(1.0),
            typical: at(0.5),
            mean: us(mean),
            deviation: us(variance.sqrt()),
            p99: at(0.99),
            p999: at(0.999),
        }
    }
}

impl Bandwidth {
    /// Draws the row from the times at which requests were posted and completed.
    pub(super) fn of(size: u32, iterations: u64, span: Duration, posted: &[u64], completed: &[u64]) -> Self {
        let mut fastest = f64::INFINITY;
        for (first, begun) in posted.iter().enumerate() {
            for (last, ended) in completed.iter().enumerate().skip(first) {
                fastest = fastest.min(ended.saturating_sub(*begun) as f64 / (last - first + 1) as f64);
            }
        }
        let rate = iterations as f64 / span.as_secs_f64();
        let peak = if fastest.is_finite() { f64::from(size) * 1e9 / fastest.max(1.0) / MEGABYTE } else { 0.0 };
        let average = f64::from(size) * rate / MEGABYTE;
        Bandwidth {
            size,
            iterations,
            peak: peak.max(if peak > 0.0 { average } else { 0.0 }),
            average,
            rate: rate / 1e6,
        }
    }
}

impl Row {
    /// Writes the line above the rows of such a test.
    #[must_use]
    pub fn header(is_latency: bool) -> &'static str {
        if is_latency {
            " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"
        } else {
            " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
        }
    }

    /// Writes the row.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = String::new();
        // Writing to a string does not fail.
        let _ = match self {
            Row::Latency(row) => writeln!(
                line,
                " {:<7} {:<11}    {:<11.2}    {:<11.2}  {:<15.2}    {:<11.2}    {:<13.2}   {:<20.2}   {:.2}",
                row.size, row.iterations, row.min, row.max, row.typical, row.mean, row.deviation, row.p99, row.p999
            ),
            Row::Bandwidth(row) => writeln!(
                line,
                " {:<7}    {:<10}     {:<7.2}            {:<7.2}             {:.6}",
                row.size, row.iterations, row.peak, row.average, row.rate
            ),
        };
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_ranked() {
        let mut samples: Vec<u64> = (1..=1000).rev().map(|index| index * 2000).collect();
        let row = Latency::of(64, &mut samples, 2);
        assert_eq!((row.min, row.typical, row.p99, row.p999, row.max), (1.0, 500.0, 990.0, 999.0, 1000.0));
        assert!((row.mean - 500.5).abs() < 1e-9 && (row.deviation - 288.675).abs() < 1e-3, "{row:?}");
    }

    #[test]
    fn the_peak_is_the_fastest_run() {
        // Four messages of 1 MB: 1 ms each, but for the third, which came 0.5 ms after the second.
        let (posted, completed) = ([0; 4], [1_000_000, 2_000_000, 2_500_000, 4_000_000]);
        let row = Bandwidth::of(1 << 20, 4, Duration::from_millis(4), &posted, &completed);
        assert!((row.peak - 1200.0).abs() < 1e-6 && (row.average - 1000.0).abs() < 1e-6, "{row:?}");
        let row = Bandwidth::of(1 << 20, 4, Duration::from_millis(4), &[], &[]);
        assert_eq!(row.peak, 0.0);
    }

    /// Compares with the columns of perftest 4.5.
    #[test]
    fn columns_stand_where_perftest_has_them() {
        let row =
            Row::Bandwidth(Bandwidth { size: 65536, iterations: 5000, peak: 11.5, average: 10.25, rate: 0.000164 });
        assert_eq!(row.line(), " 65536      5000           11.50              10.25               0.000164\n");
        assert_eq!(Row::header(false).split_whitespace().count(), 7);
    }
}
