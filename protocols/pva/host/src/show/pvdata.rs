//! Values and types as the programs of pvAccessCPP print them, byte for byte: pvget, pvput, pvmonitor, pvcall, pvinfo.

use super::cell::{Cell, each};
use super::json::is_choice;
use super::printed::{Escapes, escaped, maybe_quoted, write_pvdata};
use super::type_name;
use chrono::{Local, TimeZone};
use hodo_machine::harmless_lines;
use hodo_pva::{Array, BitSet, Item, Type, Value};
use std::fmt::Write;

/// The form of pvAccessCPP in which a value is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PvDataForm {
    /// By its normative type where there is one.
    #[default]
    Nt,
    /// Field by field.
    Raw,
    /// As JSON5 in one line.
    Json,
}

/// Returns a value as the programs of pvAccessCPP print it, with its end of line. Without a field to show there is nothing.
///
/// `shown` are the fields to print, all without it; `bold` are those that a terminal highlights.
#[must_use]
pub fn pvdata_text(value: &Value, form: PvDataForm, shown: Option<&BitSet>, bold: Option<&BitSet>) -> String {
    let mut text = String::new();
    match form {
        PvDataForm::Nt if write_normative(value, &mut text) => text = harmless_lines(&text).into_owned(),
        PvDataForm::Json => {
            super::json5::write(value, &fields(value, shown, true), &mut text);
            text = harmless_lines(&text).into_owned() + "\n";
        }
        _ => {
            let none = BitSet::default();
            let bold = fields(value, Some(bold.unwrap_or(&none)), false);
            Raw { value, shown: fields(value, shown, true), bold }.write(0, 0, &mut text);
        }
    }
    text
}

/// Returns fields with all below them, and with `parents` all above them.
fn fields(value: &Value, marked: Option<&BitSet>, parents: bool) -> BitSet {
    let plan = value.plan();
    let Some(marked) = marked.filter(|marked| !marked.has(0)) else { return (0..plan.len()).collect() };
    let below = marked.iter().flat_map(|number| number..plan.end(number));
    let mut all: BitSet = below.collect();
    if parents {
        let is_above = |number: &usize| marked.next(*number).is_some_and(|at| at < plan.end(*number));
        (0..plan.len()).filter(is_above).for_each(|number| all.insert(number));
    }
    all
}

/// Writes a value by its normative type. Returns `false` for what has none.
fn write_normative(value: &Value, into: &mut String) -> bool {
    let plan = value.plan();
    let id = plan.of().id();
    if id.split('.').next() == Some("epics:nt/NTTable:1") {
        return write_table(value, into);
    }
    let Some(number) = plan.child(0, "value") else { return false };
    let (Some(of), Some(item)) = (plan.field(number), value.at(number)) else { return false };
    match item {
        Item::Array(array) => {
            write_time_of(value, into);
            write_alarm_of(value, into);
            write_array(array, into);
        }
        Item::Structure(..) if is_choice(of) => {
            write_time_of(value, into);
            write_alarm_of(value, into);
            write_choice(value, number, into);
        }
        item => {
            let Some(cell) = Cell::of(of, item) else { return false };
            write_time_of(value, into);
            write_pvdata(cell, into);
            into.push(' ');
            write_alarm_of(value, into);
        }
    }
    into.push('\n');
    true
}

fn write_array(array: &Array, into: &mut String) {
    into.push('[');
    let mut is_first = true;
    each(array, 0, array.len(), &mut |cell| {
        if !std::mem::take(&mut is_first) {
            into.push_str(if matches!(cell, Cell::Text(_)) { ", " } else { "," });
        }
        write_pvdata(cell, into);
    });
    into.push(']');
}

fn write_choice(value: &Value, number: usize, into: &mut String) {
    let plan = value.plan();
    let field = |name| plan.child(number, name).and_then(|child| value.at(child));
    let Some(index) = field("index").and_then(Item::as_i64) else { return };
    let _ = write!(into, "({})", index as u32);
    let choices = field("choices").and_then(Item::as_array).and_then(Array::iter_texts);
    match usize::try_from(index).ok().and_then(|index| choices?.nth(index)) {
        Some(text) => {
            into.push(' ');
            maybe_quoted(text, into);
        }
        None => into.push_str(" <undefined>"),
    }
}

fn write_time_of(value: &Value, into: &mut String) {
    if let Some(number) = value.plan().child(0, "timeStamp").filter(|number| is_structure(value, *number)) {
        write_time(value, number, into);
    }
}

fn write_alarm_of(value: &Value, into: &mut String) {
    if let Some(number) = value.plan().child(0, "alarm").filter(|number| is_structure(value, *number)) {
        write_alarm(value, number, into);
    }
}

fn is_structure(value: &Value, number: usize) -> bool {
    matches!(value.plan().field(number), Some(Type::Structure(_)))
}

/// Returns a number below a structure, or 0.
fn number_of(value: &Value, structure: usize, name: &str) -> i64 {
    value.plan().child(structure, name).and_then(|child| value.at(child)?.as_i64()).unwrap_or(0)
}

/// The beginning of 1990, in seconds since that of 1970.
const EPICS_EPOCH: i64 = 631_152_000;

/// Writes a time stamp in local time with rounded milliseconds, in 24 columns and a space, and the user's tag if there is one.
fn write_time(value: &Value, structure: usize, into: &mut String) {
    let seconds = number_of(value, structure, "secondsPastEpoch").max(EPICS_EPOCH);
    let nanoseconds = number_of(value, structure, "nanoseconds");
    // The last millisecond of a second is not rounded into the next.
    let milliseconds = ((nanoseconds + 500_000) / 1_000_000).clamp(0, 999);
    let is_known = seconds > EPICS_EPOCH || nanoseconds != 0;
    let at = Local.timestamp_opt(seconds, 0).single().filter(|_| is_known);
    let text = at
        .map_or_else(|| "<undefined>".to_owned(), |at| format!("{}.{milliseconds:03}", at.format("%Y-%m-%d %H:%M:%S")));
    let _ = write!(into, "{text:24} ");
    match number_of(value, structure, "userTag") {
        0 => {}
        tag => _ = write!(into, "{tag} "),
    }
}

/// Writes an alarm in words, each with a space behind it. None is nothing.
fn write_alarm(value: &Value, structure: usize, into: &mut String) {
    const SEVERITIES: [&str; 5] = ["", "MINOR", "MAJOR", "INVALID", "UNDEFINED"];
    const STATUSES: [&str; 8] = ["", "DEVICE", "DRIVER", "RECORD", "DB", "CONF", "UNDEFINED", "CLIENT"];
    if number_of(value, structure, "severity") == 0 {
        return;
    }
    for (name, words) in [("severity", &SEVERITIES[..]), ("status", &STATUSES)] {
        let code = number_of(value, structure, name);
        match usize::try_from(code).ok().and_then(|at| words.get(at)) {
            Some(&"") => {}
            Some(word) => into.extend([word, " "]),
            None => _ = write!(into, "{code} "),
        }
    }
    let message = value.plan().child(structure, "message").and_then(|child| value.at(child)?.as_text());
    if let Some(message) = message.filter(|text| **text != "") {
        into.push_str(&super::plain(message.as_bytes()));
        into.push(' ');
    }
}

/// Writes a table. Returns `false` if a column is no array of scalars.
fn write_table(value: &Value, into: &mut String) -> bool {
    let plan = value.plan();
    let Some(table) = plan.child(0, "value").filter(|number| is_structure(value, *number)) else { return false };
    let labels = value.get("labels").and_then(Item::as_array).and_then(Array::iter_texts);
    let mut labels = labels.into_iter().flatten();
    let column = |child| {
        let Some(Item::Array(cells)) = value.at(child) else { return None };
        let mut texts = vec![labels.next().map_or_else(|| plan.name(child).to_owned(), csv)];
        each(cells, 0, cells.len(), &mut |cell| {
            texts.push(match cell {
                Cell::Text(text) => csv(text),
                other => {
                    let mut text = String::new();
                    write_pvdata(other, &mut text);
                    text
                }
            });
        });
        Some(texts)
    };
    let columns: Option<Vec<Vec<String>>> = plan.children(table).map(column).collect();
    let Some(columns) = columns.filter(|columns| !columns.is_empty()) else { return false };
    if plan.child(0, "timeStamp").is_some() {
        write_time_of(value, into);
        into.push(' ');
    }
    if plan.child(0, "alarm").is_some() {
        write_alarm_of(value, into);
        into.push(' ');
    }
    into.push('\n');
    let widths: Vec<usize> = columns.iter().map(|column| column.iter().map(String::len).max().unwrap_or(0)).collect();
    for row in 0..columns.iter().map(Vec::len).min().unwrap_or(0) {
        for (at, (column, width)) in columns.iter().zip(&widths).enumerate() {
            let _ = write!(into, "{}{:>width$}", if at > 0 { " " } else { "" }, column[row]);
        }
        into.push('\n');
    }
    true
}

/// Returns the text of a cell, in quotes if it has a space, a comma, a quote or a backslash.
fn csv(text: &[u8]) -> String {
    let mut into = String::new();
    escaped(text, Escapes::Table, &mut into);
    let is_quoted = text.iter().any(|byte| matches!(byte, b'"' | b' ' | b',' | b'\\'));
    if is_quoted { format!("\"{into}\"") } else { into }
}

/// A value that is written field by field.
struct Raw<'a> {
    value: &'a Value,
    shown: BitSet,
    bold: BitSet,
}

impl Raw<'_> {
    fn write(&self, number: usize, level: usize, into: &mut String) {
        let plan = self.value.plan();
        let (Some(of), Some(item)) = (plan.field(number), self.value.at(number)) else { return };
        if !self.shown.has(number) {
            return;
        }
        let name = if number == 0 { "" } else { plan.name(number) };
        let is_bold = self.bold.has(number);
        let mut text = String::new();
        let highlighted = |text: &str| {
            let text = harmless_lines(text);
            if is_bold { format!("\x1b[1m{text}\x1b[0m") } else { text.into_owned() }
        };
        let Item::Structure(..) = item else {
            write_field(of, item, name, level, &mut text);
            return into.push_str(&highlighted(&text));
        };
        write_head(of, name, level, &mut text);
        match of.id() {
            "alarm_t" => {
                text.push(' ');
                write_alarm(self.value, number, &mut text);
            }
            "time_t" => {
                text.push(' ');
                write_time(self.value, number, &mut text);
            }
            "enum_t" => {
                text.push(' ');
                write_choice(self.value, number, &mut text);
            }
            _ => {}
        }
        text.push('\n');
        into.push_str(&highlighted(&text));
        plan.children(number).for_each(|child| self.write(child, level + 1, into));
    }
}

/// Writes what is no structure of the value itself: one line, or what it holds below it.
fn write_field(of: &Type, item: Item<'_>, name: &str, level: usize, into: &mut String) {
    write_head(of, name, level, into);
    match item {
        Item::Array(array) => {
            into.push(' ');
            write_array(array, into);
            into.push('\n');
        }
        Item::Elements(elements) => {
            into.push('\n');
            elements.iter().for_each(|element| write_inner(element.as_deref(), level + 1, into));
        }
        Item::Union(held) => {
            into.push('\n');
            write_inner(held.map(|(_, held)| held), level + 1, into);
        }
        Item::Any(held) => {
            into.push('\n');
            write_inner(held, level + 1, into);
        }
        Item::Structure(value, number) => {
            into.push('\n');
            let plan = value.plan();
            for child in plan.children(number) {
                if let (Some(of), Some(item)) = (plan.field(child), value.at(child)) {
                    write_field(of, item, plan.name(child), level + 1, into);
                }
            }
        }
        item => {
            into.push(' ');
            if let Some(cell) = Cell::of(of, item) {
                write_pvdata(cell, into);
            }
            into.push('\n');
        }
    }
}

/// Writes a value within another, which has no name.
fn write_inner(value: Option<&Value>, level: usize, into: &mut String) {
    match value.and_then(|value| Some((value, value.at(0)?))) {
        Some((value, item)) => write_field(value.plan().of(), item, "", level, into),
        None => {
            indent(level, into);
            into.push_str("(none)\n");
        }
    }
}

fn write_head(of: &Type, name: &str, level: usize, into: &mut String) {
    indent(level, into);
    into.extend([&type_name(of), " ", &super::plain(name.as_bytes())]);
}

/// Returns a type as pvinfo prints it: one line a field, and the type of an array's elements below it.
#[must_use]
pub fn pvdata_type(of: &Type, level: usize) -> String {
    let mut text = String::new();
    write_type(of, "", level, &mut text);
    text
}

fn write_type(of: &Type, name: &str, level: usize, into: &mut String) {
    indent(level, into);
    into.push_str(&type_name(of));
    if !name.is_empty() {
        into.extend([" ", &super::plain(name.as_bytes())]);
    }
    into.push('\n');
    match of {
        Type::StructureArray(_) | Type::UnionArray(_) | Type::AnyArray => {
            if let Some(element) = of.element() {
                write_type(&element, "", level + 1, into);
            }
        }
        _ => {
            for field in of.members().map_or(&[][..], |members| members.fields()) {
                write_type(&field.of, &field.name, level + 1, into);
            }
        }
    }
}

fn indent(level: usize, into: &mut String) {
    let _ = write!(into, "{:1$}", "", 4 * level);
}
