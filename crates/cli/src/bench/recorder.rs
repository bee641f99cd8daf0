//! Follows a run: tells people, and writes the files.

use super::Progress;
use super::stream::{EVERY, Stream};
use crate::{Error, Outcome, terminal};
use hodo_measure::{Document, Measurement, Plan, Snapshot, SnapshotSettings, State};
use hodo_tester::{Observer, Outputs, Uri};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Writes the files after each measurement, so that an interrupt or a failure loses nothing.
pub struct Recorder<'a> {
    progress: &'a Progress,
    outputs: Outputs,
    /// Whether the run was interrupted.
    stop: &'a AtomicBool,
    /// The length of an interval of the live line.
    every: Duration,
    stream: Option<&'a Stream>,
    /// Whether people know that the files cannot be written: they are told at once, and then at the end.
    told: AtomicBool,
}

impl<'a> Recorder<'a> {
    /// Creates one for these files, of a run that `stop` interrupts.
    pub fn new(progress: &'a Progress, outputs: Outputs, stop: &'a AtomicBool) -> Self {
        Recorder { progress, outputs, stop, every: EVERY, stream: None, told: AtomicBool::new(false) }
    }

    /// Sets the length of an interval, and the stream that has a line for each.
    pub fn followed(self, every: Duration, stream: Option<&'a Stream>) -> Self {
        Recorder { every, stream, ..self }
    }

    /// Writes everything for the last time. The outcome is a failure where a measurement failed, or the run was interrupted, be it
    /// between two measurements.
    ///
    /// # Errors
    /// [`Error::Failed`] if a file or standard output cannot be written.
    pub fn finish(&self, document: &Document) -> Result<Outcome, Error> {
        let files = self.outputs.write_files(document);
        terminal::print_bytes(&self.outputs.standard_output(document)?)?;
        files?;
        let good = |measurement: &Measurement| !matches!(measurement.verdict.state, State::Failed | State::Interrupted);
        let all = document.measurements.iter().all(good);
        let stopped = self.stop.load(Ordering::Relaxed);
        if all && stopped {
            terminal::remark("interrupted between two measurements; what had been measured is kept");
        }
        Ok(if all && !stopped { Outcome::Done } else { Outcome::Failed })
    }
}

impl Observer for Recorder<'_> {
    fn say(&self, text: &str) {
        self.progress.say(text);
    }

    fn begin(&self, link: &Uri, plan: &Plan) {
        self.progress.begin(link.scheme, plan);
        if let Some(stream) = self.stream {
            stream.begin(link, plan);
        }
    }

    fn tick(&self, progress: &hodo_measure::Progress) {
        self.progress.tick(progress);
    }

    fn snapshots(&self) -> Option<SnapshotSettings> {
        let of_line = || self.progress.is_live().then_some(SnapshotSettings { every: self.every, with_times: false });
        self.stream.map(Stream::settings).or_else(of_line)
    }

    fn snapshot(&self, snapshot: Snapshot) {
        self.progress.snapshot(&snapshot);
        if let Some(stream) = self.stream {
            stream.snapshot(snapshot);
        }
    }

    fn end(&self, measurement: &Measurement) {
        self.progress.end(measurement);
        if let Some(stream) = self.stream {
            stream.end(measurement);
        }
    }

    fn added(&self, document: &Document) {
        if let Err(why) = self.outputs.write_files(document)
            && !self.told.swap(true, Ordering::Relaxed)
        {
            terminal::remark(&format!("{why}; the measurement continues"));
        }
    }
}
