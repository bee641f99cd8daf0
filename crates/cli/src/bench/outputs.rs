use crate::Error;
use clap::{Args, ValueEnum};
use hodo_tester::{OutputPaths, Outputs};
use std::path::PathBuf;

/// Where the results go.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub struct OutputOptions {
    /// Write one line per measurement, for a spreadsheet; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub tsv: Option<PathBuf>,
    /// Write the whole document (schema hodo.result/3); `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write one self-contained page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Draw rate and latency against size into FILE.svg or FILE.png.
    #[arg(long, value_name = "FILE", value_parser = plot_file)]
    pub plot: Option<PathBuf>,
    /// Write results, tables and plots into this folder; it is created, and gets all of these forms.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace results that are in that folder already.
    #[arg(long, requires = "out")]
    pub force: bool,
}

impl OutputOptions {
    /// Finds out whether everything can be written.
    ///
    /// # Errors
    /// [`Error::Usage`] if it cannot.
    pub fn prepare(&self) -> Result<Outputs, Error> {
        Ok(Outputs::prepare(&self.paths())?)
    }

    /// Returns where each form goes.
    pub fn paths(&self) -> OutputPaths {
        OutputPaths {
            tsv: self.tsv.clone(),
            json: self.json.clone(),
            html: self.html.clone(),
            plot: self.plot.clone(),
            markdown: None,
            dir: self.out.clone(),
            force: self.force,
        }
    }
}

/// How to show progress on the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Follow {
    /// A live line on a terminal, otherwise plain lines.
    #[default]
    Auto,
    /// Plain lines.
    Plain,
}

fn plot_file(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    match file.extension().and_then(|form| form.to_str()) {
        Some("svg" | "png") => Ok(file),
        _ => Err("name a plot FILE.svg or FILE.png".to_owned()),
    }
}
