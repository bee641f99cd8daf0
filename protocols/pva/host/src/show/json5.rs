//! Values as JSON5, as the programs of pvAccessCPP print them.

use super::cell::{Cell, characters, each};
use hodo_pva::{BitSet, Item, Type, Value};
use std::fmt::Write;

/// Writes the fields of a value that are in `shown`.
pub(super) fn write(value: &Value, shown: &BitSet, into: &mut String) {
    write_field(value, 0, Some(shown), into);
}

fn write_field(value: &Value, number: usize, shown: Option<&BitSet>, into: &mut String) {
    let plan = value.plan();
    let (Some(of), Some(item)) = (plan.field(number), value.at(number)) else { return into.push_str("null") };
    match item {
        Item::Structure(..) => {
            into.push('{');
            let children = plan.children(number).filter(|child| shown.is_none_or(|shown| shown.has(*child)));
            for (at, child) in children.enumerate() {
                into.push_str(if at > 0 { "," } else { "" });
                write_key(plan.name(child), into);
                into.push(':');
                write_field(value, child, shown, into);
            }
            into.push('}');
        }
        Item::Array(array) => {
            into.push('[');
            let mut is_first = true;
            each(array, 0, array.len(), &mut |cell| {
                into.push_str(if std::mem::take(&mut is_first) { "" } else { "," });
                write_cell(cell, into);
            });
            into.push(']');
        }
        Item::Elements(elements) => {
            into.push('[');
            for (at, element) in elements.iter().enumerate() {
                into.push_str(if at > 0 { "," } else { "" });
                write_inner(element.as_deref(), into);
            }
            into.push(']');
        }
        Item::Union(held) => write_inner(held.map(|(_, held)| held), into),
        Item::Any(held) => write_inner(held, into),
        item => write_scalar(of, item, into),
    }
}

fn write_inner(value: Option<&Value>, into: &mut String) {
    match value {
        Some(value) => write_field(value, 0, None, into),
        None => into.push_str("null"),
    }
}

fn write_scalar(of: &Type, item: Item<'_>, into: &mut String) {
    match Cell::of(of, item) {
        Some(cell) => write_cell(cell, into),
        None => into.push_str("null"),
    }
}

/// Writes a name, in quotes unless it is an identifier.
fn write_key(name: &str, into: &mut String) {
    let is_identifier = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty();
    if is_identifier { into.push_str(name) } else { write_cell(Cell::Text(name.as_bytes()), into) }
}

fn write_cell(cell: Cell<'_>, into: &mut String) {
    match cell {
        Cell::Single(value) => write_float(value.into(), into),
        Cell::Double(value) => write_float(value, into),
        // pvAccessCPP converts to 64 bits with a sign.
        Cell::Uint(value) => _ = write!(into, "{}", value as i64),
        Cell::Text(text) => {
            into.push('"');
            for c in characters(text) {
                match c {
                    '\n' => into.push_str("\\n"),
                    '\r' => into.push_str("\\r"),
                    '\t' => into.push_str("\\t"),
                    '\u{8}' => into.push_str("\\b"),
                    '\u{c}' => into.push_str("\\f"),
                    '"' | '\\' => into.extend(['\\', c]),
                    c if c.is_control() => _ = write!(into, "\\x{:02X}", u32::from(c)),
                    c => into.push(c),
                }
            }
            into.push('"');
        }
        other => other.write_quoted(into),
    }
}

/// Writes a number with 17 significant digits and always a fraction, as `%.17g` does.
fn write_float(value: f64, into: &mut String) {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "+" };
        into.push_str(if value.is_nan() { "NaN" } else { sign });
        into.push_str(if value.is_nan() { "" } else { "Infinity" });
        return;
    }
    let from = into.len();
    super::printed::digits(value, 17, into);
    if !into[from..].contains(['.', 'e']) {
        into.push_str(".0");
    }
}
