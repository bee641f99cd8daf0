//! `hodo report`: any output, rebuilt from results.

use crate::bench::Outputs;
use crate::{Error, Outcome, args, documents, terminal};
use std::path::PathBuf;

/// Reads the documents, and writes the requested outputs; a table if none is requested.
pub fn run(report: &args::Report) -> Result<Outcome, Error> {
    let outputs = Outputs::prepare(&report.output, report.markdown.as_deref())?;
    let (document, elsewhere) =
        documents::read_all(report.files.iter().map(PathBuf::as_path))?.expect("clap asks for one file at least");
    if elsewhere {
        eprintln!(
            "hodo: the files come from different hosts, kernels or interfaces; the first one's environment is shown"
        );
    }
    if outputs.are_none() {
        terminal::print(&hodo_report::table(&document.measurements, terminal::style(false)))?;
    }
    outputs.write_files(&document)?;
    outputs.print(&document)?;
    Ok(Outcome::Done)
}
