//! `hodo farm verify`: is every byte of a store as it was written?

use crate::{Error, Outcome, args, terminal};
use hodo_store::{Verdict, verify};

/// Tells what there is, and everything that is wrong with it.
pub fn run(asked: &args::FarmVerify) -> Result<Outcome, Error> {
    let verified = verify(&asked.store)?;
    let mut text = format!(
        "{} segments, {} bytes, {} events with {} bytes of data\n",
        verified.segments, verified.bytes, verified.events, verified.data_bytes
    );
    for (run, counts) in &verified.runs {
        let count = |verdict: &Verdict| counts.get(verdict).copied().unwrap_or(0);
        let total: u64 = counts.values().sum();
        let parts = Verdict::ALL.map(|verdict| format!("{} {}", count(&verdict), verdict.name())).join(" + ");
        text += &format!("run {run}: {total} events = {parts}\n");
    }
    for finding in &verified.findings {
        text += &format!("{}{finding}\n", if finding.is_failure() { "WRONG: " } else { "note: " });
    }
    terminal::print(&text)?;
    Ok(if verified.is_good() { Outcome::Done } else { Outcome::Failed })
}
