//! Where results go: a table for people, TSV and JSON for programs.

use crate::Error;
use crate::output::Target;
use clap::Args;
use hodo_tester::ONE_FOR_STDOUT;
use serde_json::Value;
use std::path::PathBuf;

/// The files of the results, found to be writable before anything is done.
#[derive(Debug)]
pub struct Forms {
    tsv: Option<Target>,
    json: Option<Target>,
}

impl Forms {
    /// Finds out whether everything can be written.
    pub fn prepare(forms: &FormOptions) -> Result<Self, Error> {
        let to = |option, file: &Option<_>| file.as_deref().map(|file| Target::prepare(option, file)).transpose();
        let forms = Forms { tsv: to("--tsv", &forms.tsv)?, json: to("--json", &forms.json)? };
        let both = [&forms.tsv, &forms.json].into_iter().all(|to| to.as_ref().is_some_and(Target::is_stdout));
        if both { Err(one_for_stdout()) } else { Ok(forms) }
    }

    /// Returns whether standard output is for a program, so that people read standard error.
    pub fn take_stdout(&self) -> bool {
        [&self.tsv, &self.json].into_iter().flatten().any(Target::is_stdout)
    }

    /// Writes the requested forms.
    pub fn write(&self, tsv: impl FnOnce() -> String, json: impl FnOnce() -> Value) -> Result<(), Error> {
        if let Some(to) = &self.tsv {
            to.write(tsv().as_bytes())?;
        }
        if let Some(to) = &self.json {
            to.write_json(&json())?;
        }
        Ok(())
    }
}

/// Returns the error of a second form for standard output.
pub fn one_for_stdout() -> Error {
    Error::Usage(ONE_FOR_STDOUT.to_owned())
}

/// The forms that programs read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub struct FormOptions {
    /// Write one line each, tab-separated; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub tsv: Option<PathBuf>,
    /// Write one document; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
