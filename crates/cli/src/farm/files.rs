//! `hodo farm export`, `verify` and `repair`: stored events as Parquet, the check of a store, and a copy without mistakes.

use crate::{Error, Outcome, terminal};
use clap::{Args, ValueEnum};
use hodo_store::{Finding, Selection, Verdict};
use std::path::PathBuf;

/// Writes the file, and tells what is in it.
pub fn export(options: &ExportOptions) -> Result<Outcome, Error> {
    let verdict = options.verdict.map(|kept| match kept {
        FarmKept::Accepted => Verdict::Accepted,
        FarmKept::Quarantined => Verdict::Quarantined,
    });
    let exported = hodo_store::export(&options.store, &options.output, Selection { run: options.run, verdict })?;
    let mut text = format!("{}: {} events, {} bytes\n", options.output.display(), exported.events, exported.data_bytes);
    for damage in &exported.damaged {
        text += &format!("skipped: {}\n", Finding::Damaged(damage.clone()));
    }
    terminal::print(&text)?;
    Ok(if exported.damaged.is_empty() { Outcome::Done } else { Outcome::Failed })
}

/// Prints what a store holds, and everything that is wrong with it.
pub fn verify(options: &VerifyOptions) -> Result<Outcome, Error> {
    let verified = hodo_store::verify(&options.store)?;
    let mut text = format!(
        "{} segments, {} bytes, {} events with {} bytes of data\n",
        verified.segments, verified.bytes, verified.events, verified.data_bytes
    );
    for (run, counts) in &verified.runs {
        let count = |verdict: &Verdict| counts.get(verdict).copied().unwrap_or(0);
        let total: u64 = counts.values().sum();
        let parts = Verdict::ALL.map(|verdict| format!("{} {}", count(&verdict), verdict.name())).join(" + ");
        let partial = match verified.partial.get(run) {
            None => String::new(),
            Some(partial) => format!("; {partial} of those with data are partial"),
        };
        text += &format!("run {run}: {total} events = {parts}{partial}\n");
        if let Some(conflicts) = verified.conflicts.get(run) {
            text += &format!("run {run}: {conflicts} more in quarantine, which came under numbers with other data\n");
        }
    }
    for finding in &verified.findings {
        text += &format!("{}{finding}\n", if finding.is_failure() { "WRONG: " } else { "note: " });
    }
    terminal::print(&text)?;
    Ok(if verified.is_good() { Outcome::Done } else { Outcome::Failed })
}

/// Copies a store without some of its verdicts.
pub fn repair(options: &RepairOptions) -> Result<Outcome, Error> {
    if options.without_run.is_empty() && options.again.is_empty() {
        return Err(Error::Usage("nothing to leave out: add --without-run or --again".to_owned()));
    }
    let [without, again] = [&options.without_run, &options.again].map(|runs| runs.iter().copied().collect());
    let done = hodo_store::repair(&options.store, &options.new, &hodo_store::Repair { without, again })?;
    let hodo_store::Repaired { copied, left_out, conflicts } = done;
    let conflicts = if conflicts > 0 { format!(", and {conflicts} conflicts") } else { String::new() };
    terminal::print(&format!("{}: {copied} verdicts copied, {left_out} left out{conflicts}\n", options.new.display()))?;
    Ok(Outcome::Done)
}

/// Events to export with their data, one row each.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportOptions {
    /// Folder of the store, or one of its segments.
    #[arg(value_name = "DIR")]
    pub store: PathBuf,
    /// File to write.
    #[arg(value_name = "OUT.parquet")]
    pub output: PathBuf,
    /// Export this run only.
    #[arg(long, value_name = "N")]
    pub run: Option<u32>,
    /// Export events with this verdict only.
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub verdict: Option<FarmKept>,
}

const EXAMPLES: &str = "\
Examples:
  hodo farm export /data/run7 run7.parquet --run 7 --verdict accepted

Exit status: 0 success; 1 something is damaged or failed, and the message names the file and the place; 2 usage error.";

/// Verdicts with which an event's data are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FarmKept {
    /// A node accepted it.
    Accepted,
    /// No node could decide on it, or other data have its number.
    Quarantined,
}

/// Store to copy, and what to leave out.
#[derive(Debug, Args)]
#[command(after_help = REPAIRS)]
pub struct RepairOptions {
    /// Folder of the store; it stays as it is.
    #[arg(value_name = "DIR")]
    pub store: PathBuf,
    /// New folder, for the store without it.
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Leave out these runs.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub without_run: Vec<u32>,
    /// Leave out the verdict `incomplete` in these runs, so that their events can be given again.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub again: Vec<u32>,
}

const REPAIRS: &str = "\
Examples:
  hodo farm repair /data/run7 /data/run7-repaired --again 7          events that a source skipped by mistake
  hodo farm repair /data/run7 /data/run7-repaired --without-run 100,101

Exit status: 0 success; 1 the store is damaged, or is being written to; 2 usage error.";

/// Store to check.
#[derive(Debug, Args)]
pub struct VerifyOptions {
    /// Folder of the store.
    #[arg(value_name = "DIR")]
    pub store: PathBuf,
}
