//! The rounds of a watch: each measures the plans anew, and nothing that the far end does ends them.

use super::figures::{Figures, RoundOutcome};
use super::history::History;
use crate::{Error, version};
use hodo_measure::{Document, Plan, Requirement, State};
use hodo_tester::{Benchmark, Unobserved};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The interval at which a wait for the next round checks whether there is to be one.
const LOOK_UP: Duration = Duration::from_millis(50);

/// A link that is measured again and again.
pub struct Watch {
    /// The benchmarks of a round, each with its plans.
    pub benchmarks: Vec<(Benchmark, Vec<Plan>)>,
    /// The conditions that rows are to meet.
    pub required: Vec<Requirement>,
    /// The time from the beginning of one round to that of the next.
    pub every: Duration,
    /// The rounds after which the watch ends.
    pub count: Option<u64>,
    /// The file of all rows.
    pub history: Option<History>,
    /// The latest figures.
    pub figures: Arc<Figures>,
    /// Whether the watch has to end.
    pub stop: Arc<AtomicBool>,
}

impl Watch {
    /// Measures until the count is reached or the watch has to end.
    ///
    /// # Errors
    /// [`Error::Usage`] if nothing can ever be measured so, which the first round finds.
    pub fn run(mut self) -> Result<(), Error> {
        let begun = Instant::now();
        for number in 1.. {
            self.round(number == 1)?;
            if self.stop.load(Ordering::Relaxed) || self.count.is_some_and(|count| number >= count) {
                return Ok(());
            }
            // On a grid of its own; a round that takes longer leaves out those that it has covered.
            let elapsed = begun.elapsed();
            let next = self.every.saturating_mul((elapsed.as_nanos() / self.every.as_nanos().max(1)) as u32 + 1);
            self.wait(begun + next);
        }
        Ok(())
    }

    fn wait(&self, until: Instant) {
        while !self.stop.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(LOOK_UP));
        }
    }

    /// Measures everything once, and keeps it.
    fn round(&mut self, is_first: bool) -> Result<(), Error> {
        let mut document = hodo_tester::document(version::COMMIT, std::env::args().collect());
        let mut failure = None;
        for (benchmark, plans) in &self.benchmarks {
            match benchmark.run(plans, &mut document, &Unobserved, &self.stop) {
                Err(why @ hodo_tester::Error::Usage(_)) if is_first => return Err(why.into()),
                Err(why) => failure = failure.or(Some(why.to_string())),
                Ok(()) => {}
            }
        }
        if self.stop.load(Ordering::Relaxed) {
            // It was cut short, which says nothing of the link.
            return Ok(());
        }
        let is_done = |state: State| !matches!(state, State::Failed | State::Interrupted);
        let is_whole = failure.is_none() && document.measurements.iter().all(|row| is_done(row.verdict.state));
        match failure {
            Some(why) => tracing::warn!("not measured: {why}"),
            None => {
                let lines = document.measurements.iter().map(|row| hodo_report::line(row, usize::MAX));
                lines.for_each(|line| tracing::info!("{line}"));
            }
        }
        let missed = crate::bench::missed(&self.required, &document.measurements);
        missed.iter().for_each(|sentence| tracing::warn!("{sentence}"));
        let is_written = self.write(&document);
        let outcome = RoundOutcome { is_whole, missed: missed.len() as u64, is_written };
        self.figures.add(&document.measurements, outcome, unix_s());
        Ok(())
    }

    fn write(&mut self, document: &Document) -> bool {
        let Some(history) = &mut self.history else { return true };
        let written = history.append(document);
        if let Err(why) = &written {
            tracing::error!("the history cannot be written: {why}; the measurements go on");
        }
        written.is_ok()
    }
}

/// Returns the seconds since 1970.
fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
