//! `hodo compare`: has it become faster or slower?

use crate::output_file::write_json;
use crate::{Error, Outcome, args, documents, terminal};
use hodo_report::{compare, comparison_table};

/// Pairs the measurements of two documents, and checks their ratios where that is asked for.
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
    let below = comparison.below(threshold);
    for pair in &below {
        let bound = pair.lower_bound().map_or_else(|| "not known".to_owned(), |bound| format!("{bound:.3}"));
        eprintln!("hodo: {}: the ratio's lower bound is {bound}, under {threshold}", pair.plan);
    }
    Ok(if below.is_empty() { Outcome::Done } else { Outcome::Failed })
}
