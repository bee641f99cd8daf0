//! `hodo report`: any output, rebuilt from results.

use crate::bench::OutputOptions;
use crate::{Error, Outcome, documents, terminal};
use clap::Args;
use hodo_tester::{OutputPaths, Outputs};
use std::path::PathBuf;

/// Reads the documents, and writes the requested outputs; a table if none is requested.
pub fn run(options: &ReportOptions) -> Result<Outcome, Error> {
    if options.schema {
        terminal::print(&hodo_report::json::schema())?;
        return Ok(Outcome::Done);
    }
    let paths = OutputPaths { markdown: options.markdown.clone(), ..options.output.paths() };
    let outputs = Outputs::prepare(&paths)?;
    let (document, elsewhere) =
        documents::read_all(options.files.iter().map(PathBuf::as_path))?.expect("clap asks for one file at least");
    if elsewhere {
        terminal::remark(
            "the files come from different hosts, kernels or interfaces; the environment of the first is shown",
        );
    }
    if outputs.are_none() {
        terminal::print(&hodo_report::table(&document.measurements, terminal::style(false)))?;
    }
    outputs.write_files(&document)?;
    terminal::print_bytes(&outputs.standard_output(&document)?)?;
    Ok(Outcome::Done)
}

/// Results from which outputs are rebuilt.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Documents written by `hodo bench --json`; several are merged into one.
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub files: Vec<PathBuf>,
    /// Where the results go.
    #[command(flatten)]
    pub output: OutputOptions,
    /// Write a table for a README; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Print the JSON Schema of what `hodo bench --json` writes, and nothing else.
    #[arg(long, exclusive = true)]
    pub schema: bool,
}
