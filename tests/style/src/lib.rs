//! The house rules that a machine can keep. The rules are pure functions of text; the tests apply them to this tree.

mod licence;
mod rules;
mod source;
mod words;
mod workspace;

pub use licence::satisfiable;
pub use rules::{
    clock, crate_docs, file_length, function_length, is_machines, names, no_std_attribute, operations_in_a_time,
    printing, protocol_names, reading, unfinished, unsafe_code,
};
pub use source::{Language, Source, has_test, sources};
pub use words::{sentences, type_names};
pub use workspace::{Package, cargo, host, metadata, packages, protocol_crates, root};

/// One breach of a rule: where, what, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The file, from the root of the repository.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The breach and its remedy.
    pub text: String,
}

/// Fails with one line for each complaint.
///
/// # Panics
/// Where there is a complaint.
pub fn expect_none(complaints: &[Complaint]) {
    let lines: Vec<String> =
        complaints.iter().map(|Complaint { path, line, text }| format!("{path}:{line}: {text}")).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}
