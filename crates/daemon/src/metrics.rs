use crate::exposition::{Distribution, Exposition, Labels};
use hodo_io::usage::ProcessUsage;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The quantiles that are told of a histogram.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];
/// Bits of a value that a histogram tells apart below its highest: 3 % at the most.
const PRECISION: u32 = 5;
const BUCKETS: usize = ((64 - PRECISION as usize) << PRECISION) + (1 << PRECISION);

/// The metrics of a process. Those who count hold a handle and take no lock; the text is made when somebody asks.
#[derive(Default)]
pub struct Registry {
    metrics: Mutex<Vec<Metric>>,
    sources: Mutex<Vec<Box<Source>>>,
}

type Source = dyn Fn(&mut Exposition) + Send + Sync;

struct Metric {
    name: &'static str,
    help: &'static str,
    labels: Vec<(&'static str, String)>,
    handle: Handle,
}

enum Handle {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram, f64),
}

/// A count that only grows.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

/// A value that goes up and down.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<AtomicU64>);

/// How whole numbers are distributed, to 3 %.
#[derive(Debug, Clone)]
pub struct Histogram(Arc<Buckets>);

#[derive(Debug)]
struct Buckets {
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Registry {
    /// With what is known of every process: CPU time and memory.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::default();
        registry.source(|exposition| {
            let usage = ProcessUsage::of_process();
            exposition.counter("process_cpu_seconds_total", "CPU time, user and system.", &[], usage.cpu_s());
            let (name, help) = ("process_max_resident_memory_bytes", "The largest resident set so far.");
            exposition.gauge(name, help, &[], usage.max_rss_bytes);
        });
        registry
    }

    /// The counter of this name and these labels: a new one, or the one that is there.
    ///
    /// # Panics
    /// Where it is there as something else: our own mistake. The same for the others.
    pub fn counter(&self, name: &'static str, help: &'static str, labels: Labels<'_>) -> Counter {
        let handle = self.handle(name, help, labels, || Handle::Counter(Counter::default()));
        let Handle::Counter(counter) = handle else { panic!("`{name}` is no counter") };
        counter
    }

    /// The gauge of this name and these labels.
    pub fn gauge(&self, name: &'static str, help: &'static str, labels: Labels<'_>) -> Gauge {
        let handle = self.handle(name, help, labels, || Handle::Gauge(Gauge::default()));
        let Handle::Gauge(gauge) = handle else { panic!("`{name}` is no gauge") };
        gauge
    }

    /// The histogram of this name and these labels. What is noted is told times `unit`: 1e-9 where nanoseconds are noted
    /// and the name ends in `_seconds`.
    pub fn histogram(&self, name: &'static str, help: &'static str, labels: Labels<'_>, unit: f64) -> Histogram {
        let handle = self.handle(name, help, labels, || Handle::Histogram(Histogram::default(), unit));
        let Handle::Histogram(histogram, _) = handle else { panic!("`{name}` is no histogram") };
        histogram
    }

    /// Tells no more of what carries this label: of a client that has left.
    pub fn forget(&self, label: &'static str, value: &str) {
        let mut metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        metrics.retain(|metric| !metric.labels.iter().any(|(name, of)| *name == label && of == value));
    }

    /// Metrics that are known only when they are asked for. Called on the thread that asks.
    pub fn source(&self, source: impl Fn(&mut Exposition) + Send + Sync + 'static) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(source));
    }

    /// All of them, in Prometheus's text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut exposition = Exposition::default();
        for Metric { name, help, labels, handle } in &*self.metrics.lock().unwrap_or_else(PoisonError::into_inner) {
            let labels: Vec<_> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
            match handle {
                Handle::Counter(counter) => exposition.counter(name, help, &labels, counter.value()),
                Handle::Gauge(gauge) => exposition.gauge(name, help, &labels, gauge.value()),
                Handle::Histogram(histogram, unit) => histogram.tell(&mut exposition, name, help, &labels, *unit),
            }
        }
        for source in &*self.sources.lock().unwrap_or_else(PoisonError::into_inner) {
            source(&mut exposition);
        }
        exposition.text()
    }

    fn handle(
        &self,
        name: &'static str,
        help: &'static str,
        labels: Labels<'_>,
        new: impl FnOnce() -> Handle,
    ) -> Handle {
        let mut metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |metric: &&Metric| {
            metric.name == name
                && metric.labels.iter().map(|(name, value)| (*name, value.as_str())).eq(labels.iter().copied())
        };
        if let Some(metric) = metrics.iter().find(same) {
            return metric.handle.clone();
        }
        let handle = new();
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        metrics.push(Metric { name, help, labels, handle: handle.clone() });
        handle
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        match self {
            Handle::Counter(counter) => Handle::Counter(counter.clone()),
            Handle::Gauge(gauge) => Handle::Gauge(gauge.clone()),
            Handle::Histogram(histogram, unit) => Handle::Histogram(histogram.clone(), *unit),
        }
    }
}

impl Counter {
    /// Counts so many more.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    /// Takes over what somebody else has counted.
    #[inline]
    pub fn set(&self, count: u64) {
        self.0.store(count, Relaxed);
    }

    /// The count.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Gauge {
    /// From now on it is this.
    #[inline]
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        let counts = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Histogram(Arc::new(Buckets { counts, sum: AtomicU64::new(0) }))
    }
}

impl Histogram {
    /// Notes one value.
    #[inline]
    pub fn note(&self, value: u64) {
        self.0.counts[bucket(value)].fetch_add(1, Relaxed);
        self.0.sum.fetch_add(value, Relaxed);
    }

    fn tell(&self, exposition: &mut Exposition, name: &'static str, help: &'static str, labels: Labels<'_>, unit: f64) {
        let counts: Vec<u64> = self.0.counts.iter().map(|count| count.load(Relaxed)).collect();
        let count = counts.iter().sum();
        let quantiles =
            QUANTILES.map(|share| (share, quantile(&counts, count, share).map_or(f64::NAN, |at| at * unit)));
        let sum = self.0.sum.load(Relaxed) as f64 * unit;
        exposition.summary(name, help, labels, Distribution { count, sum, quantiles: &quantiles });
    }
}

/// Values below `2 << PRECISION` have a bucket each; above, each power of two has `1 << PRECISION` buckets.
#[inline]
fn bucket(value: u64) -> usize {
    let shift = (63 - (value | 1).leading_zeros()).saturating_sub(PRECISION);
    ((shift as usize) << PRECISION) + (value >> shift) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> f64 {
    let shift = (bucket >> PRECISION).saturating_sub(1);
    let low = (bucket - (shift << PRECISION)) as f64;
    let width = (1_u64 << shift) as f64;
    low * width + (width - 1.0) / 2.0
}

/// The value that this share of the values do not exceed; nothing where there are none.
fn quantile(counts: &[u64], count: u64, share: f64) -> Option<f64> {
    let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
    let mut seen = 0;
    let at = counts.iter().position(|count| {
        seen += count;
        seen >= rank
    })?;
    Some(middle(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_one_name_are_one() {
        let registry = Registry::default();
        let first = registry.counter("a_total", "A.", &[("of", "x")]);
        first.add(2);
        registry.counter("a_total", "A.", &[("of", "x")]).add(3);
        registry.counter("a_total", "A.", &[("of", "y")]).set(9);
        registry.gauge("b", "B.", &[]).set(-0.5);
        registry.source(|exposition| exposition.gauge("b", "B.", &[("from", "elsewhere")], 1.0));
        let expected = "# HELP a_total A.\n# TYPE a_total counter\na_total{of=\"x\"} 5\na_total{of=\"y\"} 9\n\
            # HELP b B.\n# TYPE b gauge\nb -0.5\nb{from=\"elsewhere\"} 1\n";
        assert_eq!(registry.text(), expected);
        registry.forget("of", "x");
        assert!(!registry.text().contains('x'));
        assert_eq!(first.value(), 5, "a handle outlives what is told");
    }

    #[test]
    fn every_value_is_told_to_three_percent() {
        for value in (0..64).flat_map(|shift| [1_u64 << shift, (1 << shift) + (1 << shift) / 3, u64::MAX >> shift]) {
            let told = middle(bucket(value));
            let error = (told - value as f64).abs() / value as f64;
            assert!(error <= 1.0 / 32.0, "{value} is told as {told}");
        }
        assert_eq!((bucket(0), bucket(63), bucket(64)), (0, 63, 64));
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_of_what_was_noted() {
        let registry = Registry::default();
        let histogram = registry.histogram("t_seconds", "T.", &[], 0.5);
        assert!(registry.text().contains("t_seconds{quantile=\"0.5\"} NaN\n"));
        (1..=50).for_each(|value| histogram.note(value));
        let text = registry.text();
        for line in ["{quantile=\"0.5\"} 12.5\n", "{quantile=\"1\"} 25\n", "_sum 637.5\n", "_count 50\n"] {
            assert!(text.contains(&format!("t_seconds{line}")), "{line} in {text}");
        }
    }

    #[test]
    fn a_process_is_known() {
        assert!(Registry::new().text().contains("process_cpu_seconds_total "));
    }
}
