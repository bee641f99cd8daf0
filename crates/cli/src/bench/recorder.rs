//! What has been measured so far, and its files.

use super::Outputs;
use crate::{Error, Outcome};
use hodo_measure::{Document, Environment, Measurement, SCHEMA, State, Tool};

/// Takes measurements, and writes the files after each, so that an interrupt or a failure loses nothing.
pub struct Recorder {
    document: Document,
    outputs: Outputs,
    /// Whether the files could not be written once: people are told at once, and then at the end.
    told: bool,
}

impl Recorder {
    /// With nothing measured so far.
    pub fn new(environment: Environment, outputs: Outputs) -> Self {
        let tool = Tool {
            name: "hodo".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("HODO_COMMIT").map(str::to_owned),
        };
        let document = Document { schema: SCHEMA.to_owned(), tool, environment, measurements: Vec::new() };
        Recorder { document, outputs, told: false }
    }

    /// Takes a measurement.
    pub fn add(&mut self, measurement: Measurement) {
        self.document.measurements.push(measurement);
        if let Err(why) = self.outputs.write_files(&self.document)
            && !self.told
        {
            eprintln!("hodo: {why}; measuring goes on");
            self.told = true;
        }
    }

    /// The environment, for what is only known when a link is open.
    pub fn environment(&mut self) -> &mut Environment {
        &mut self.document.environment
    }

    /// What has been measured so far.
    pub fn measurements(&self) -> &[Measurement] {
        &self.document.measurements
    }

    /// The document as it is.
    #[cfg(test)]
    pub fn into_document(self) -> Document {
        self.document
    }

    /// Writes everything for the last time. The outcome is a failure where a measurement failed or was interrupted.
    pub fn finish(&self) -> Result<Outcome, Error> {
        let files = self.outputs.write_files(&self.document);
        self.outputs.print(&self.document)?;
        files?;
        let good = |measurement: &Measurement| !matches!(measurement.verdict.state, State::Failed | State::Interrupted);
        Ok(if self.document.measurements.iter().all(good) { Outcome::Done } else { Outcome::Failed })
    }
}
