//! Errors and remarks on a user's files: where, what, and what to do about it.

mod file;
mod node;
mod remark;
mod value;

pub use file::FileProblem;
pub use node::NodeProblem;
pub use remark::Remark;
pub use value::ValueProblem;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// One thing that was found in a file; displayed as `file:line:column: error: what; remedy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// The problem.
    pub problem: Problem,
}

/// Why some files cannot be used: everything that was found, errors and warnings. Displayed as the first error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// By file and line.
    pub findings: Vec<Finding>,
}

/// A place in a file; displayed as `file:line:column`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's path, as it was read.
    pub file: String,
    /// The line, from 1; 0 where the whole file is meant.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
}

/// Whether a file can be used nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot be used.
    Error,
    /// It can; uHAL takes it too.
    Warning,
}

/// A problem, or a remark.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// With a file as a whole.
    File(FileProblem),
    /// With an attribute of an element.
    Value(ValueProblem),
    /// With an element.
    Node(NodeProblem),
    /// Nothing that keeps the file from being used.
    Remark(Remark),
}

impl Finding {
    /// Tells whether it keeps the file from being used.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.problem.severity() == Severity::Error
    }
}

impl Problem {
    /// Returns whether the file can be used nevertheless.
    #[must_use]
    pub fn severity(&self) -> Severity {
        if matches!(self, Problem::Remark(_)) { Severity::Warning } else { Severity::Error }
    }
}

impl From<FileProblem> for Problem {
    fn from(problem: FileProblem) -> Self {
        Problem::File(problem)
    }
}

impl From<ValueProblem> for Problem {
    fn from(problem: ValueProblem) -> Self {
        Problem::Value(problem)
    }
}

impl From<NodeProblem> for Problem {
    fn from(problem: NodeProblem) -> Self {
        Problem::Node(problem)
    }
}

impl From<Remark> for Problem {
    fn from(remark: Remark) -> Self {
        Problem::Remark(remark)
    }
}

impl core::error::Error for FileError {}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut errors = self.findings.iter().filter(|finding| finding.is_error());
        if let Some(first) = errors.next() {
            first.fmt(f)?;
        }
        match errors.count() {
            0 => Ok(()),
            more => write!(f, " (and {more} more)"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.problem.severity(), self.problem)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 { write!(f, ":{}:{}", self.line, self.column) } else { Ok(()) }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::File(problem) => problem.fmt(f),
            Problem::Value(problem) => problem.fmt(f),
            Problem::Node(problem) => problem.fmt(f),
            Problem::Remark(remark) => remark.fmt(f),
        }
    }
}
