//! Values as JSON.

use super::cell::{Cell, characters, each};
use hodo_pva::{Item, Type, Value};
use std::fmt::Write;

/// Writes a value in one line.
pub(super) fn write(value: &Value, only_changed: bool, into: &mut String) {
    write_field(value, 0, only_changed, into);
}

fn write_field(value: &Value, number: usize, only_changed: bool, into: &mut String) {
    let plan = value.plan();
    let (Some(of), Some(item)) = (plan.field(number), value.at(number)) else { return into.push_str("null") };
    match item {
        Item::Structure(..) => {
            let shown = plan.children(number).filter(|child| !only_changed || value.has_changed(*child));
            list(into, ['{', '}'], shown, |child, into| {
                write_text(plan.name(child).as_bytes(), into);
                into.push(':');
                write_field(value, child, only_changed, into);
            });
        }
        Item::Array(array) => {
            into.push('[');
            let mut is_first = true;
            each(array, 0, array.len(), &mut |cell| {
                if !std::mem::take(&mut is_first) {
                    into.push(',');
                }
                write_cell(cell, into);
            });
            into.push(']');
        }
        Item::Elements(elements) => list(into, ['[', ']'], elements.iter(), |element, into| match element {
            Some(element) => write(element, false, into),
            None => into.push_str("null"),
        }),
        Item::Union(Some((name, held))) => list(into, ['{', '}'], [held].into_iter(), |held, into| {
            write_text(name.as_bytes(), into);
            into.push(':');
            write(held, false, into);
        }),
        Item::Any(Some(held)) => write(held, false, into),
        item => match Cell::of(of, item) {
            Some(cell) => write_cell(cell, into),
            None => into.push_str("null"),
        },
    }
}

fn list<T>(into: &mut String, [open, close]: [char; 2], items: impl Iterator<Item = T>, one: impl Fn(T, &mut String)) {
    into.push(open);
    for (at, item) in items.enumerate() {
        if at > 0 {
            into.push(',');
        }
        one(item, into);
    }
    into.push(close);
}

fn write_cell(cell: Cell<'_>, into: &mut String) {
    match cell {
        Cell::Text(text) => write_text(text, into),
        Cell::Double(value) if !value.is_finite() => into.push_str(unusual(value)),
        Cell::Single(value) if !value.is_finite() => into.push_str(unusual(value.into())),
        // A float stays one, so that who reads it without its type knows.
        Cell::Double(value) => _ = write!(into, "{value:?}"),
        Cell::Single(value) => _ = write!(into, "{value:?}"),
        cell => cell.write_quoted(into),
    }
}

fn unusual(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn write_text(text: &[u8], into: &mut String) {
    into.push('"');
    for c in characters(text) {
        match c {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            '\n' => into.push_str("\\n"),
            '\t' => into.push_str("\\t"),
            '\r' => into.push_str("\\r"),
            c if c.is_control() => _ = write!(into, "\\u{:04x}", u32::from(c)),
            c => into.push(c),
        }
    }
    into.push('"');
}

/// Tells whether a type is a choice: a number among named ones.
pub(crate) fn is_choice(of: &Type) -> bool {
    let Type::Structure(members) = of else { return false };
    members.field("index").is_some() && members.field("choices").is_some()
}
