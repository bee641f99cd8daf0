use crate::Latency;
use base64::{Engine, engine::general_purpose::STANDARD};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hodo_machine::Spans;
use std::fmt;
use thiserror::Error;

/// The longest time that is recorded: 100 s. Any longer time counts as this.
const LONGEST_NS: u64 = 100_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// How long operations took: every one of them, to three significant digits, from 1 ns to 100 s.
#[derive(Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// Why a text is not a histogram.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HistogramError {
    /// The text is not base64.
    #[error("the latency histogram is not base64: {0}")]
    NotBase64(String),
    /// The bytes are not an `HdrHistogram` in V2 compressed form.
    #[error("the latency histogram is not in HdrHistogram's V2 compressed form: {0}")]
    NotAHistogram(String),
}

impl From<&Spans> for Histogram {
    fn from(spans: &Spans) -> Self {
        let mut histogram = Histogram::new();
        for (nanos, count) in spans.times() {
            histogram.0.saturating_record_n(nanos, u64::from(count));
        }
        histogram
    }
}

impl Histogram {
    /// Creates an empty histogram. It never grows: about 220 KiB.
    #[must_use]
    pub fn new() -> Self {
        let inner = hdrhistogram::Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS);
        Histogram(inner.expect("1 ns, 100 s and 3 digits are bounds that the histogram allows"))
    }

    /// Counts one operation that took this long.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.0.saturating_record(nanos);
    }

    /// Adds all that another histogram has counted.
    pub fn merge(&mut self, other: &Histogram) {
        // Cannot fail between two of `new`; a decoded one with wider bounds is recorded value by value.
        if self.0.add(&other.0).is_err() {
            for (nanos, count) in other.counts() {
                self.0.saturating_record_n(nanos, count);
            }
        }
    }

    /// Returns the operations since an earlier copy of this histogram; `None` if it is no such copy.
    #[must_use]
    pub fn since(&self, earlier: &Histogram) -> Option<Histogram> {
        let mut since = self.0.clone();
        since.subtract(&earlier.0).ok()?;
        Some(Histogram(since))
    }

    /// Clears the histogram.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Returns how many times were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the time that this share of the operations (0 to 1) did not exceed, in nanoseconds.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// Returns the times of these shares, which rise, as [`Histogram::quantile`] does of one, in one pass over the histogram.
    pub fn quantiles(&self, shares: impl IntoIterator<Item = f64>) -> impl Iterator<Item = u64> {
        self.0.value_at_quantiles(shares)
    }

    /// Returns the distinct times in nanoseconds and how many took each, rising: what a plot of the distribution needs.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// Returns the summary of the result document; `None` if nothing was counted.
    #[must_use]
    pub fn latency(&self) -> Option<Latency> {
        (self.count() > 0).then(|| Latency {
            min: self.0.min(),
            mean: self.0.mean(),
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p99_9: self.quantile(0.999),
            max: self.0.max(),
            count: self.count(),
            histogram: self.encode(),
        })
    }

    /// Returns the V2 compressed form in base64, which the `HdrHistogram` tools of every language read.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("writing to memory does not fail");
        STANDARD.encode(bytes)
    }

    /// Reads back what [`Histogram::encode`], or any other `HdrHistogram` tool, wrote.
    ///
    /// # Errors
    /// [`HistogramError::NotBase64`] if the text is no base64, [`HistogramError::NotAHistogram`] if its bytes are no
    /// histogram.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|e| HistogramError::NotBase64(e.to_string()))?;
        Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map(Histogram)
            .map_err(|e| HistogramError::NotAHistogram(e.to_string()))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({} operations, p50 {} ns)", self.count(), self.quantile(0.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summarises_to_three_digits() {
        let mut histogram = Histogram::new();
        (1..=100_000).for_each(|n| histogram.record(n * 10));
        let latency = histogram.latency().expect("not empty");
        let near = |found: u64, truth: f64| (found as f64 / truth - 1.0).abs() < 0.001;
        assert_eq!((latency.min, latency.count), (10, 100_000));
        assert!(near(latency.p50, 500_000.0) && near(latency.p90, 900_000.0) && near(latency.p99, 990_000.0));
        assert!(
            near(latency.p99_9, 999_000.0) && near(latency.max, 1e6) && (latency.mean / 500_005.0 - 1.0).abs() < 1e-3
        );
    }

    #[test]
    fn several_quantiles_are_those_of_one_each() {
        let mut histogram = Histogram::new();
        (1..=1_000).for_each(|n| histogram.record(n * n));
        let shares = [0.0, 0.0005, 0.5, 0.5, 0.9, 0.999, 1.0];
        assert_eq!(histogram.quantiles(shares).collect::<Vec<_>>(), shares.map(|share| histogram.quantile(share)));
    }

    #[test]
    fn the_operations_since_an_earlier_copy_are_those_that_followed() {
        let mut histogram = Histogram::new();
        histogram.record(1_000_000);
        let earlier = histogram.clone();
        [7, 7, 900].into_iter().for_each(|n| histogram.record(n));
        let since = histogram.since(&earlier).expect("an earlier copy");
        assert_eq!(since.counts().collect::<Vec<_>>(), [(7, 2), (900, 1)]);
        assert_eq!(since.latency().map(|latency| (latency.p50, latency.max)), Some((7, 900)));
        assert_eq!(earlier.since(&histogram), None);
        assert_eq!(histogram.since(&histogram.clone()).map(|none| none.count()), Some(0));
    }

    #[test]
    fn nothing_recorded_is_no_latency() {
        assert_eq!(Histogram::new().latency(), None);
    }

    #[test]
    fn counts_what_is_longer_than_the_longest() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        histogram.record(0);
        assert_eq!(histogram.count(), 2);
        assert!(histogram.quantile(1.0) >= LONGEST_NS);
    }

    #[test]
    fn survives_encoding() {
        let mut histogram = Histogram::new();
        [3, 3, 700, 1_000_000, 99_000_000_000].into_iter().for_each(|n| histogram.record(n));
        let again = Histogram::decode(&histogram.encode()).expect("what was encoded");
        assert_eq!(again.counts().collect::<Vec<_>>(), histogram.counts().collect::<Vec<_>>());
        let mut merged = Histogram::new();
        merged.merge(&again);
        merged.merge(&histogram);
        assert_eq!(merged.count(), 10);
    }

    #[test]
    fn refuses_what_is_no_histogram() {
        assert!(matches!(Histogram::decode("§"), Err(HistogramError::NotBase64(_))));
        assert!(matches!(Histogram::decode("AAAA"), Err(HistogramError::NotAHistogram(_))));
        let mut text = Histogram::new().encode();
        text.truncate(text.len() / 8 * 4);
        assert!(matches!(Histogram::decode(&text), Err(HistogramError::NotAHistogram(_))));
    }
}
