//! Where one result goes: a file, or standard output.

use crate::{Error, terminal};
use hodo_tester::OutputFile;
use serde_json::Value;
use std::fmt;
use std::path::Path;

/// A file, or standard output.
#[derive(Debug)]
pub enum Target {
    Stdout,
    File(OutputFile),
}

impl Target {
    /// Finds out whether it can be written; `-` is standard output.
    pub fn prepare(option: &str, file: &Path) -> Result<Self, Error> {
        if is_stdout(file) { Ok(Target::Stdout) } else { Ok(Target::File(OutputFile::of_option(option, file)?)) }
    }

    pub fn is_stdout(&self) -> bool {
        matches!(self, Target::Stdout)
    }

    /// Replaces the content.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Target::Stdout => terminal::print_bytes(bytes),
            Target::File(file) => {
                file.write(bytes).map_err(|why| Error::Failed(format!("{self} cannot be written: {why}")))
            }
        }
    }

    /// Replaces the content by a JSON value.
    pub fn write_json(&self, value: &Value) -> Result<(), Error> {
        self.write(format!("{value:#}\n").as_bytes())
    }
}

/// Returns whether a name stands for standard output.
pub fn is_stdout(file: &Path) -> bool {
    file.as_os_str() == "-"
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Stdout => f.write_str("standard output"),
            Target::File(file) => file.path().display().fmt(f),
        }
    }
}
