//! `hodo compare`: has it become faster or slower?

use crate::output::Target;
use crate::{Error, Outcome, documents, terminal};
use clap::Args;
use hodo_measure::units;
use hodo_report::{Comparison, compare, comparison_table};
use std::path::PathBuf;

/// Pairs the measurements of two documents, and checks their ratios if that is requested.
pub fn run(options: &CompareOptions) -> Result<Outcome, Error> {
    let (a, b) = (documents::read(&options.before)?, documents::read(&options.after)?);
    let comparison = compare(&a, &b, options.same / 100.0);
    let json = options.json.as_deref().map(|file| Target::prepare("--json", file)).transpose()?;
    let to_stdout = json.as_ref().is_some_and(Target::is_stdout);
    if let Some(json) = json {
        let value = serde_json::to_value(&comparison).map_err(|why| Error::Failed(why.to_string()))?;
        json.write_json(&value)?;
    }
    terminal::tell(&comparison_table(&comparison, terminal::style(to_stdout)), to_stdout)?;
    let outcome = options.fail_below.map_or(Outcome::Done, |threshold| check(&comparison, threshold));
    terminal::tell(&format!("  {}\n", comparison.sentence()), to_stdout)?;
    Ok(outcome)
}

/// Checks every ratio against a threshold, and prints each row that does not pass with the reason.
fn check(comparison: &Comparison, threshold: f64) -> Outcome {
    let check = comparison.check(threshold);
    let text = |value: Option<f64>| value.map_or_else(|| "not known".to_owned(), |value| format!("{value:.3}"));
    for row in &check.missing {
        terminal::remark(row);
    }
    for pair in &check.failed {
        terminal::remark(&format!("{}: slower, with a ratio of {} under {threshold}", pair.plan, text(pair.ratio)));
    }
    for pair in &check.open {
        terminal::remark(&format!("{}: cannot tell; the ratio's lower bound is {}", pair.plan, text(pair.low)));
    }
    match (check.failed.is_empty() && check.missing.is_empty(), check.open.is_empty()) {
        (false, _) => Outcome::Failed,
        (true, false) => Outcome::CannotTell,
        (true, true) if comparison.pairs.is_empty() => {
            terminal::remark("neither file has a row, so there is nothing to check");
            Outcome::CannotTell
        }
        (true, true) => Outcome::Done,
    }
}

/// Results to compare.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// The result to compare with.
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// The new result.
    #[arg(value_name = "B")]
    pub after: PathBuf,
    /// Answer `same` where the whole interval of a ratio lies within this much of 1.
    #[arg(long, value_name = "PERCENT", value_parser = units::percent, default_value = "3%")]
    pub same: f64,
    /// Check every ratio B/A: exit status 1 if one is certainly slower and below this, or a row is in one file only, and 3 if one cannot be told.
    #[arg(long, value_name = "RATIO", value_parser = units::positive)]
    pub fail_below: Option<f64>,
    /// Write the comparison as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
