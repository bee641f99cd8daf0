//! `hodo farm export`: stored events as Parquet.

use crate::args::{FarmExport, FarmKept};
use crate::{Error, Outcome, terminal};
use hodo_store::{Finding, Selection, Verdict, export};

/// Writes the file, and tells what is in it.
pub fn run(asked: &FarmExport) -> Result<Outcome, Error> {
    let verdict = asked.verdict.map(|kept| match kept {
        FarmKept::Accepted => Verdict::Accepted,
        FarmKept::Quarantined => Verdict::Quarantined,
    });
    let exported = export(&asked.store, &asked.output, Selection { run: asked.run, verdict })?;
    let mut text = format!("{}: {} events, {} bytes\n", asked.output.display(), exported.events, exported.data_bytes);
    for damage in &exported.damaged {
        text += &format!("left out: {}\n", Finding::Damaged(damage.clone()));
    }
    terminal::print(&text)?;
    Ok(if exported.damaged.is_empty() { Outcome::Done } else { Outcome::Failed })
}
