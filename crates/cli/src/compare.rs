//! `hodo compare`: has it become faster or slower?

use crate::output::Target;
use crate::{Error, Outcome, documents, terminal};
use clap::Args;
use hodo_measure::units;
use hodo_report::{compare, comparison_table};
use std::path::PathBuf;

/// Pairs the measurements of two documents, and checks their ratios if that is requested.
pub fn run(options: &CompareOptions) -> Result<Outcome, Error> {
    let comparison = compare(&documents::read(&options.before)?, &documents::read(&options.after)?);
    let json = options.json.as_deref().map(|file| Target::prepare("--json", file)).transpose()?;
    let to_stdout = json.as_ref().is_some_and(Target::is_stdout);
    if let Some(json) = json {
        let value = serde_json::to_value(&comparison).map_err(|why| Error::Failed(why.to_string()))?;
        json.write_json(&value)?;
    }
    terminal::tell(&comparison_table(&comparison, terminal::style(to_stdout)), to_stdout)?;
    let Some(threshold) = options.fail_below else { return Ok(Outcome::Done) };
    if comparison.pairs.is_empty() {
        terminal::remark("the two files have no plan in common, so there is nothing to check");
        return Ok(Outcome::Failed);
    }
    let check = comparison.check(threshold);
    let text = |value: Option<f64>| value.map_or_else(|| "not known".to_owned(), |value| format!("{value:.3}"));
    for pair in &check.failed {
        terminal::remark(&format!("{}: slower, with a ratio of {} under {threshold}", pair.plan, text(pair.ratio)));
    }
    for pair in &check.open {
        terminal::remark(&format!("{}: cannot tell; the ratio's lower bound is {}", pair.plan, text(pair.low)));
    }
    Ok(match (check.failed.is_empty(), check.open.is_empty()) {
        (false, _) => Outcome::Failed,
        (true, false) => Outcome::CannotTell,
        (true, true) => Outcome::Done,
    })
}

/// Results to compare.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// The document to compare with.
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// The document that is compared.
    #[arg(value_name = "B")]
    pub after: PathBuf,
    /// Check every ratio B/A: exit status 1 if one is certainly slower and below this, 3 if one cannot be told.
    #[arg(long, value_name = "RATIO", value_parser = units::positive)]
    pub fail_below: Option<f64>,
    /// Write the comparison as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
