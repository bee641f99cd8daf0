//! `hodo compare`: has it become faster or slower?

use crate::output_file::write_json;
use crate::{Error, Outcome, args, documents, terminal};
use hodo_report::{compare, comparison_table};

/// Pairs the measurements of two documents, and checks their ratios if that is requested.
pub fn run(asked: &args::Compare) -> Result<Outcome, Error> {
    let comparison = compare(&documents::read(&asked.before)?, &documents::read(&asked.after)?);
    let to_stdout = asked.json.as_deref().is_some_and(|file| file.as_os_str() == "-");
    if let Some(file) = &asked.json {
        let value = serde_json::to_value(&comparison).map_err(|why| Error::Failed(why.to_string()))?;
        write_json("--json", file, &value)?;
    }
    terminal::tell(&comparison_table(&comparison, terminal::style(to_stdout)), to_stdout)?;
    let Some(threshold) = asked.fail_below else { return Ok(Outcome::Done) };
    if comparison.pairs.is_empty() {
        eprintln!("hodo: the two files have no plan in common, so there is nothing to check");
        return Ok(Outcome::Failed);
    }
    let check = comparison.check(threshold);
    let text = |value: Option<f64>| value.map_or_else(|| "not known".to_owned(), |value| format!("{value:.3}"));
    for pair in &check.failed {
        eprintln!("hodo: {}: slower, with a ratio of {} under {threshold}", pair.plan, text(pair.ratio));
    }
    for pair in &check.open {
        eprintln!("hodo: {}: cannot tell; the ratio's lower bound is {}", pair.plan, text(pair.low));
    }
    Ok(match (check.failed.is_empty(), check.open.is_empty()) {
        (false, _) => Outcome::Failed,
        (true, false) => Outcome::CannotTell,
        (true, true) => Outcome::Done,
    })
}
