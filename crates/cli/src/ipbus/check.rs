//! `hodo ipbus check`: what is wrong with address tables and connection files?

use super::board::counted;
use super::forms::{FormOptions, Forms};
use super::grid::{Grid, plain};
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_ipbus_host::finding::Place;
use hodo_ipbus_host::registers::{self, Checked, Entries, Remark, RemarkKind};
use hodo_ipbus_host::table::{Occupant, Overlap};
use serde_json::{Value, json};

/// Reports everything that is wrong, with its place.
pub fn run(options: &CheckOptions) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&options.forms)?;
    let checked =
        registers::check(&options.tables, &options.connections).map_err(|problem| Error::Usage(problem.to_string()))?;
    forms.write(|| grid(&checked).tsv(), || document(&checked))?;
    terminal::tell(&checked.iter().map(text).collect::<String>(), forms.take_stdout())?;
    let fails = |remark: &Remark| match remark.kind {
        RemarkKind::Error => true,
        RemarkKind::Overlap => !options.allow_overlaps,
        RemarkKind::Warning => options.strict,
    };
    Ok(if checked.iter().flat_map(|checked| &checked.remarks).any(fails) { Outcome::Failed } else { Outcome::Done })
}

/// Returns the findings, a line each, and their number.
fn text(checked: &Checked) -> String {
    let mut text = String::new();
    for Remark { place, kind, text: what, .. } in &checked.remarks {
        text.push_str(&plain(&format!("{place}: {}: {what}", kind.word())));
        text.push('\n');
    }
    let (entry, kinds) = match checked.entries {
        Entries::Nodes => ("node", &RemarkKind::ALL[..]),
        Entries::Devices => ("device", &RemarkKind::ALL[..2]),
    };
    let mut parts = vec![number(checked.count, entry)];
    parts.extend(kinds.iter().map(|kind| number(checked.count_of(*kind), kind.word())));
    text.push_str(&plain(&format!("{}: {}", checked.name, parts.join(", "))));
    text.push('\n');
    text
}

fn document(checked: &[Checked]) -> Value {
    json!({ "schema": "hodo.ipbus-check/1", "checked": checked.iter().map(file_document).collect::<Vec<_>>() })
}

fn file_document(checked: &Checked) -> Value {
    let entries = match checked.entries {
        Entries::Nodes => "nodes",
        Entries::Devices => "devices",
    };
    json!({
        "file": checked.name,
        "holds": entries,
        "count": checked.count,
        "errors": checked.count_of(RemarkKind::Error),
        "warnings": checked.count_of(RemarkKind::Warning),
        "overlaps": checked.count_of(RemarkKind::Overlap),
        "findings": checked.remarks.iter().map(remark_document).collect::<Vec<_>>(),
    })
}

fn remark_document(remark: &Remark) -> Value {
    let Place { file, line, column } = &remark.place;
    let mut value =
        json!({ "severity": remark.kind.word(), "file": file, "line": line, "column": column, "text": remark.text });
    if let Some(Overlap { first, second }) = &remark.overlap {
        value["nodes"] = json!([occupant(first), occupant(second)]);
    }
    value
}

fn occupant(occupant: &Occupant) -> Value {
    let Occupant { path, place, address, last_address, mask } = occupant;
    json!({
        "node": path, "address": address, "last_address": last_address, "mask": mask.0,
        "file": place.file, "line": place.line, "column": place.column,
    })
}

fn grid(checked: &[Checked]) -> Grid {
    let mut grid = Grid::new(&["file", "line", "column", "severity", "text"]);
    for Remark { place, kind, text, .. } in checked.iter().flat_map(|checked| &checked.remarks) {
        let Place { file, line, column } = place;
        grid.row([file.clone(), line.to_string(), column.to_string(), kind.word().to_owned(), text.clone()]);
    }
    grid
}

fn number(count: usize, what: &str) -> String {
    if count == 0 { format!("no {what}s") } else { counted(count, what, &format!("{what}s")) }
}

/// Files to check.
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// Address tables, as paths or expressions of uHAL's: 'file://$BOARDS/*.xml'.
    #[arg(value_name = "TABLE", required_unless_present = "connections")]
    pub tables: Vec<String>,
    /// Also check this connection file, and the tables that it names.
    #[arg(short, long, value_name = "FILE")]
    pub connections: Vec<String>,
    /// Accept nodes that share addresses.
    #[arg(long)]
    pub allow_overlaps: bool,
    /// Fail on warnings too.
    #[arg(long)]
    pub strict: bool,
    /// Where the findings go.
    #[command(flatten)]
    pub forms: FormOptions,
}
