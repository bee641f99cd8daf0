//! One value a register: how `read`, `write` and `dump` show them.

use super::board;
use super::forms::{FormOptions, Forms};
use super::grid::{Grid, plain};
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_ipbus_host::SessionError;
use hodo_ipbus_host::registers::{Board, Label};
use hodo_ipbus_host::table::Mask;
use serde_json::{Value, json};

/// A register, and its value or why there is none.
pub struct Row {
    pub label: Label,
    pub value: Result<u32, SessionError>,
}

/// Shows values in the requested forms, and failures on standard error.
pub fn show(board: &Board, rows: &[Row], show: &ShowOptions, forms: &Forms, note: &str) -> Result<Outcome, Error> {
    let grid = grid(board, rows, show.decimal);
    forms.write(|| grid.tsv(), || document(board, rows))?;
    if show.values {
        let lines = rows.iter().map(|row| format!("{}\n", row.text(show.decimal, "-")));
        terminal::tell(&lines.collect::<String>(), forms.take_stdout())?;
    } else if rows.iter().any(|row| row.value.is_ok()) {
        terminal::tell(&format!("{}{note}", grid.without("device").table()), forms.take_stdout())?;
    }
    tell_failures(rows.iter().filter_map(|row| row.value.as_ref().err()));
    Ok(if rows.iter().all(|row| row.value.is_ok()) { Outcome::Done } else { Outcome::Failed })
}

impl Row {
    fn text(&self, decimal: bool, unknown: &str) -> String {
        self.value.as_ref().map_or_else(|_| unknown.to_owned(), |value| number(*value, self.label.mask, decimal))
    }
}

/// Returns a value as text; the value of a whole register has all its digits.
pub fn number(value: u32, mask: Mask, decimal: bool) -> String {
    match (decimal, mask) {
        (true, _) => value.to_string(),
        (false, Mask::ALL) => format!("0x{value:08X}"),
        (false, _) => format!("0x{value:X}"),
    }
}

fn grid(board: &Board, rows: &[Row], decimal: bool) -> Grid {
    let mut grid = Grid::new(&["device", "node", "address", "mask", "value"]);
    for row in rows {
        let Label { node, address, .. } = &row.label;
        let address = format!("0x{address:08X}");
        let cells = [board.called().to_owned(), node.clone(), address, row.label.mask_text(), row.text(decimal, "")];
        grid.row(cells);
    }
    grid
}

fn document(board: &Board, rows: &[Row]) -> Value {
    let values: Vec<Value> = rows
        .iter()
        .map(|Row { label, value }| {
            json!({
                "node": label.node_or_null(),
                "address": label.address,
                "mask": label.mask.0,
                "value": value.as_ref().ok(),
                "error": value.as_ref().err().map(ToString::to_string),
            })
        })
        .collect();
    json!({ "schema": "hodo.ipbus/1", "device": board::document(board), "values": values })
}

/// Says what failed, and why; what failed for one reason, as with a device that is not there, in one line.
fn tell_failures<'a>(failures: impl IntoIterator<Item = &'a SessionError>) {
    let mut told: Vec<(&SessionError, usize)> = Vec::new();
    for error in failures {
        match told.iter_mut().find(|(first, _)| is_same_reason(first, error)) {
            Some((_, more)) => *more += 1,
            None => told.push((error, 0)),
        }
    }
    for (error, more) in told {
        let more = if more > 0 { format!(" (and {more} more for this reason)") } else { String::new() };
        terminal::remark(&format!("{}{more}", plain(&error.to_string())));
    }
}

fn is_same_reason(one: &SessionError, other: &SessionError) -> bool {
    match (one, other) {
        (SessionError::Failed(one), SessionError::Failed(other)) => one.error == other.error,
        _ => one == other,
    }
}

/// How values are shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct ShowOptions {
    /// Show values as decimal numbers.
    #[arg(long)]
    pub decimal: bool,
    /// Show only the values, one per line.
    #[arg(long)]
    pub values: bool,
    /// The forms that programs read.
    #[command(flatten)]
    pub forms: FormOptions,
}
