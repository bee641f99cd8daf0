use crate::exposition::Exposition;
use crate::log;
use hodo_io::usage::Usage;
use std::sync::{Mutex, PoisonError};

/// The metrics of a process. Whoever counts lends a function that writes its counts; it runs when somebody asks for the
/// text, on the thread that asks.
#[derive(Default)]
pub struct Registry {
    sources: Mutex<Vec<Box<Source>>>,
}

type Source = dyn Fn(&mut Exposition) + Send + Sync;

impl Registry {
    /// Creates the metrics that every process has: CPU time, memory, lines of the log.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::default();
        registry.source(|exposition| {
            let usage = Usage::of_process();
            exposition.counter("process_cpu_seconds_total", "CPU time, user and system.", &[], usage.cpu_s());
            let (name, help) = ("process_max_resident_memory_bytes", "The largest resident set so far.");
            exposition.gauge(name, help, &[], usage.max_rss_bytes);
        });
        registry.source(log::tell);
        registry
    }

    /// Adds metrics.
    pub fn source(&self, source: impl Fn(&mut Exposition) + Send + Sync + 'static) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(source));
    }

    /// Returns all of them in Prometheus's text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut exposition = Exposition::default();
        for source in &*self.sources.lock().unwrap_or_else(PoisonError::into_inner) {
            source(&mut exposition);
        }
        exposition.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_name_stand_together() {
        let registry = Registry::default();
        registry.source(|exposition| exposition.counter("a_total", "A.", &[("of", "x")], 5_u64));
        registry.source(|exposition| exposition.gauge("b", "B.", &[], -0.5));
        registry.source(|exposition| exposition.counter("a_total", "A.", &[("of", "y")], 9_u64));
        let expected = "# HELP a_total A.\n# TYPE a_total counter\na_total{of=\"x\"} 5\na_total{of=\"y\"} 9\n\
            # HELP b B.\n# TYPE b gauge\nb -0.5\n";
        assert_eq!(registry.text(), expected);
    }

    #[test]
    fn a_process_is_known() {
        assert!(Registry::new().text().contains("process_cpu_seconds_total "));
    }
}
