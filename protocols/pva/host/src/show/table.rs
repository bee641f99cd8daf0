//! Tables as tables: NTTable, NTNameValue, NTMultiChannel.

use super::Show;
use super::cell::{Cell, each, ends};
use super::json::is_choice;
use hodo_pva::{Array, Item, Type, Value};
use std::fmt::Write;

/// Writes a value whose type is a table. Returns `false` for any other one, and for a table with a column that is no array of scalars.
pub(super) fn write(value: &Value, show: &Show, into: &mut String) -> bool {
    let id = value.plan().of().id();
    let columns = if id.starts_with("epics:nt/NTTable:1.") {
        columns(value)
    } else if id.starts_with("epics:nt/NTNameValue:1.") {
        named(value, &["name", "value"])
    } else if id.starts_with("epics:nt/NTScalarMultiChannel:1.") {
        named(value, &["channelName", "value"])
    } else {
        None
    };
    let Some(columns) = columns else { return false };
    write_columns(&columns, show, into);
    true
}

/// A column: its heading and its cells.
type Column<'a> = (String, &'a Array);

fn named<'a>(value: &'a Value, names: &[&str]) -> Option<Vec<Column<'a>>> {
    names.iter().map(|name| Some(((*name).to_owned(), value.get(name)?.as_array()?))).collect()
}

fn columns(value: &Value) -> Option<Vec<Column<'_>>> {
    let plan = value.plan();
    let table = plan.child(0, "value")?;
    if is_choice(plan.field(table)?) || !matches!(plan.field(table)?, Type::Structure(_)) {
        return None;
    }
    let labels = value.get("labels").and_then(Item::as_array).and_then(Array::iter_texts);
    let mut labels = labels.into_iter().flatten();
    let column = |child| {
        let label = labels.next().unwrap_or(plan.name(child).as_bytes());
        Some((super::plain(label), value.at(child)?.as_array()?))
    };
    Some(plan.children(table).map(column).collect::<Option<Vec<_>>>()?).filter(|columns| !columns.is_empty())
}

/// Writes columns to the right, as wide as their widest cell. The shortest column sets the number of rows.
fn write_columns(columns: &[Column<'_>], show: &Show, into: &mut String) {
    let rows = columns.iter().map(|(_, cells)| cells.len()).min().unwrap_or(0);
    let (head, tail) = ends(rows, show.elements);
    let texts: Vec<Vec<String>> = columns
        .iter()
        .map(|(label, cells)| {
            let mut texts = vec![quoted(label.clone())];
            let mut told = |cell: Cell<'_>| {
                let mut text = String::new();
                cell.write_plain(&mut text);
                texts.push(quoted(text));
            };
            each(cells, 0, head, &mut told);
            if head < rows {
                told(Cell::Text(b"..."));
                each(cells, rows - tail, rows, &mut told);
            }
            texts
        })
        .collect();
    let widths: Vec<usize> =
        texts.iter().map(|texts| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0)).collect();
    for row in 0..texts.first().map_or(0, Vec::len) {
        for (at, (texts, width)) in texts.iter().zip(&widths).enumerate() {
            let _ = write!(into, "{}{:>width$}", if at > 0 { " " } else { "" }, texts[row]);
        }
        into.push('\n');
    }
}

/// Puts a cell with a space or a comma in quotes, as pvget does.
fn quoted(text: String) -> String {
    if text.is_empty() || text.contains([' ', ',']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
