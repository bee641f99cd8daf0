//! Follows a run: tells people, and writes the files.

use super::Progress;
use crate::{Error, Outcome, terminal};
use hodo_measure::{Document, Measurement, Plan, State};
use hodo_tester::{Observer, Outputs, Uri};
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes the files after each measurement, so that an interrupt or a failure loses nothing.
pub struct Recorder<'a> {
    progress: &'a Progress,
    outputs: Outputs,
    /// Whether people know that the files cannot be written: they are told at once, and then at the end.
    told: AtomicBool,
}

impl<'a> Recorder<'a> {
    /// Creates one for these files.
    pub fn new(progress: &'a Progress, outputs: Outputs) -> Self {
        Recorder { progress, outputs, told: AtomicBool::new(false) }
    }

    /// Writes everything for the last time. The outcome is a failure where a measurement failed or was interrupted.
    ///
    /// # Errors
    /// [`Error::Failed`] if a file or standard output cannot be written.
    pub fn finish(&self, document: &Document) -> Result<Outcome, Error> {
        let files = self.outputs.write_files(document);
        terminal::print_bytes(&self.outputs.standard_output(document)?)?;
        files?;
        let good = |measurement: &Measurement| !matches!(measurement.verdict.state, State::Failed | State::Interrupted);
        Ok(if document.measurements.iter().all(good) { Outcome::Done } else { Outcome::Failed })
    }
}

impl Observer for Recorder<'_> {
    fn say(&self, text: &str) {
        self.progress.say(text);
    }

    fn begin(&self, link: &Uri, plan: &Plan) {
        self.progress.begin(link.scheme, plan);
    }

    fn tick(&self, progress: &hodo_measure::Progress) {
        self.progress.tick(progress);
    }

    fn end(&self, measurement: &Measurement) {
        self.progress.end(measurement);
    }

    fn added(&self, document: &Document) {
        if let Err(why) = self.outputs.write_files(document)
            && !self.told.swap(true, Ordering::Relaxed)
        {
            terminal::remark(&format!("{why}; the measurement continues"));
        }
    }
}
