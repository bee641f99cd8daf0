//! Where results go: a table for people, TSV and JSON for programs.

use crate::output_file::OutputFile;
use crate::{Error, args, terminal};
use serde_json::Value;
use std::fmt;
use std::path::Path;

/// The files of the results, found to be writable before anything is done.
#[derive(Debug)]
pub struct Forms {
    tsv: Option<To>,
    json: Option<To>,
}

/// A file, or standard output.
#[derive(Debug)]
pub enum To {
    Stdout,
    File(OutputFile),
}

impl Forms {
    /// Finds out whether everything can be written.
    pub fn prepare(forms: &args::Forms) -> Result<Self, Error> {
        let to = |option, file: &Option<_>| file.as_deref().map(|file| To::prepare(option, file)).transpose();
        let forms = Forms { tsv: to("--tsv", &forms.tsv)?, json: to("--json", &forms.json)? };
        let both = [&forms.tsv, &forms.json].into_iter().all(|to| to.as_ref().is_some_and(To::is_stdout));
        if both { Err(one_for_stdout()) } else { Ok(forms) }
    }

    /// Returns whether standard output is for a program, so that people read standard error.
    pub fn take_stdout(&self) -> bool {
        [&self.tsv, &self.json].into_iter().flatten().any(To::is_stdout)
    }

    /// Writes the requested forms.
    pub fn write(&self, tsv: impl FnOnce() -> String, json: impl FnOnce() -> Value) -> Result<(), Error> {
        if let Some(to) = &self.tsv {
            to.write(tsv().as_bytes())?;
        }
        if let Some(to) = &self.json {
            to.write(format!("{:#}\n", json()).as_bytes())?;
        }
        Ok(())
    }
}

/// Returns the error of a second form for standard output.
pub fn one_for_stdout() -> Error {
    Error::Usage("only one form can go to standard output; give the others a file".to_owned())
}

impl To {
    /// Finds out whether it can be written; `-` is standard output.
    pub fn prepare(option: &str, file: &Path) -> Result<Self, Error> {
        if file.as_os_str() == "-" { Ok(To::Stdout) } else { OutputFile::of_option(option, file).map(To::File) }
    }

    pub fn is_stdout(&self) -> bool {
        matches!(self, To::Stdout)
    }

    /// Replaces what is there.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            To::Stdout => terminal::print_bytes(bytes),
            To::File(file) => {
                file.write(bytes).map_err(|why| Error::Failed(format!("{self} cannot be written: {why}")))
            }
        }
    }
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            To::Stdout => f.write_str("standard output"),
            To::File(file) => file.path().display().fmt(f),
        }
    }
}
