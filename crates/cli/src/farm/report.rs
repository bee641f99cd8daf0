//! `hodo farm report`: a run of a farm as a document of results, in every form that those have.

use super::operate::PAGES;
use crate::output::Target;
use crate::{Error, Outcome, input, terminal, version};
use clap::Args;
use hodo_farm_host::controller::Status;
use hodo_farm_host::operator;
use hodo_farm_link::line_limit;
use hodo_farm_link::report::{measurement, tables};
use hodo_measure::{Document, SCHEMA, Tool, units};
use hodo_report::html_with;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Reads the status of a controller, or a saved one, and writes the requested outputs; a table if none is requested.
pub fn run(options: &ReportOptions) -> Result<Outcome, Error> {
    let prepare =
        |option, file: &Option<PathBuf>| file.as_deref().map(|file| Target::prepare(option, file)).transpose();
    let (html, json) = (prepare("--html", &options.html)?, prepare("--json", &options.json)?);
    let status = match units::pages(&options.of) {
        Ok(pages) => operator::read(pages)?,
        Err(_) => read_file(Path::new(&options.of))?,
    };
    let document = document(options, &status);
    if let Some(html) = &html {
        html.write(html_with(&document, &tables(&status)).as_bytes())?;
    }
    if let Some(json) = &json {
        json.write(hodo_report::json::to_string(&document).as_bytes())?;
    }
    if html.is_none() && json.is_none() {
        terminal::print(&hodo_report::table(&document.measurements, terminal::style(false)))?;
    }
    Ok(Outcome::Done)
}

fn read_file(file: &Path) -> Result<Status, Error> {
    let wrong = |why: String| Error::Usage(format!("{}: {why}", file.display()));
    let text = input::read_text(file).map_err(|why| {
        wrong(format!("this is neither an address such as {PAGES} nor a file that can be read: {why}"))
    })?;
    Status::parse(&text).map_err(|why| wrong(why.to_string()))
}

fn document(options: &ReportOptions, status: &Status) -> Document {
    let tool = Tool {
        name: "hodo".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: version::COMMIT.map(str::to_owned),
    };
    // Of a controller elsewhere nothing is known of the host, and of a file neither.
    let is_here = units::pages(&options.of).is_ok_and(|pages: SocketAddr| pages.ip().is_loopback());
    let arguments = std::env::args().collect();
    let environment = if is_here {
        hodo_tester::environment::of_host(arguments)
    } else {
        hodo_measure::Environment { arguments, ..hodo_measure::Environment::default() }
    };
    let mut found = measurement(&options.of, status);
    if let (Some(rate), Some(size)) = (options.line_rate, found.size_bytes.filter(|size| *size > 0)) {
        found.set_limit(line_limit((rate, options.mtu), size, status.token_data()), None);
    }
    Document { schema: SCHEMA.to_owned(), tool, environment, measurements: vec![found], diagnosis: None, slo: None }
}

/// The outputs of a run.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Address of a controller's pages, or a file with the content of its page /farm.
    #[arg(value_name = "ADDR|FILE", default_value = PAGES)]
    pub of: String,
    /// Write one self-contained page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the whole document (schema hodo.result/3).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Bit rate of the controller's line to its nodes, for the limit: 1G, 2.5G.
    #[arg(long, value_name = "RATE", value_parser = units::line_rate)]
    pub line_rate: Option<f64>,
    /// Bytes of the largest IP packet on that line.
    #[arg(long, value_name = "N", default_value_t = 1500, requires = "line_rate", value_parser = clap::value_parser!(u32).range(68..=65_535))]
    pub mtu: u32,
}
