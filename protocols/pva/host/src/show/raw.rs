//! Values and types field by field, as pvget and pvinfo print them.

use super::Show;
use super::cell::{Cell, ends, escaped, write_array};
use super::normative::{write_alarm, write_choice, write_time};
use hodo_pva::data::{Length, Members};
use hodo_pva::{Item, Scalar, Type, Value};
use std::fmt::Write;

/// Writes a value.
pub(super) fn write(value: &Value, show: &Show, into: &mut String) {
    write_field(value, 0, "", 0, show, show.only_changed, into);
}

fn write_field(
    value: &Value,
    number: usize,
    name: &str,
    level: usize,
    show: &Show,
    only_changed: bool,
    into: &mut String,
) {
    let plan = value.plan();
    let (Some(of), Some(item)) = (plan.field(number), value.at(number)) else { return };
    indent(level, into);
    let is_named = level == 0 || !name.is_empty();
    into.push_str(&type_name(of));
    if is_named && !name.is_empty() {
        into.push(' ');
        escaped(name.as_bytes(), None, into);
    }
    let inner = |held: &Value, name: &str, into: &mut String| write_field(held, 0, name, level + 1, show, false, into);
    match item {
        Item::Structure(..) => {
            write_meaning(value, number, of, into);
            into.push('\n');
            for child in plan.children(number).filter(|child| !only_changed || value.has_changed(*child)) {
                write_field(value, child, plan.name(child), level + 1, show, only_changed, into);
            }
            return;
        }
        Item::Array(array) => {
            into.push(' ');
            write_array(array, show.elements, ",", into);
        }
        Item::Elements(elements) => {
            let (head, tail) = ends(elements.len(), show.elements);
            into.push('\n');
            for (at, element) in elements.iter().enumerate() {
                match element {
                    _ if at >= head && at < elements.len() - tail => {
                        if at == head {
                            indent(level + 1, into);
                            into.push_str("...\n");
                        }
                    }
                    Some(element) => inner(element, "", into),
                    None => {
                        indent(level + 1, into);
                        into.push_str("null\n");
                    }
                }
            }
            return;
        }
        Item::Union(Some((member, held))) => {
            into.push('\n');
            return inner(held, member, into);
        }
        Item::Any(Some(held)) => {
            into.push('\n');
            return inner(held, "", into);
        }
        item => match Cell::of(of, item) {
            Some(cell) => {
                into.push(' ');
                cell.write_plain(into);
                into.truncate(into.trim_end_matches(' ').len());
            }
            None => into.push_str(" null"),
        },
    }
    into.push('\n');
}

/// Writes what an alarm, a time stamp or a choice means behind the name of the structure.
fn write_meaning(value: &Value, number: usize, of: &Type, into: &mut String) {
    let path = value.plan().path(number);
    into.push(' ');
    match of.id() {
        "alarm_t" => write_alarm(value, &path, into),
        "time_t" => write_time(value, &path, into),
        "enum_t" => write_choice(value, number, false, into),
        _ => {}
    }
    into.truncate(into.trim_end_matches(' ').len());
}

/// Returns a type as text: one line a field.
pub(super) fn type_text(of: &Type) -> String {
    let mut text = String::new();
    write_type(of, "", 0, &mut text);
    text.truncate(text.trim_end().len());
    text
}

fn write_type(of: &Type, name: &str, level: usize, into: &mut String) {
    indent(level, into);
    into.push_str(&type_name(of));
    if !name.is_empty() {
        into.push(' ');
        escaped(name.as_bytes(), None, into);
    }
    into.push('\n');
    for field in of.members().map_or(&[][..], |members| members.fields()) {
        write_type(&field.of, &field.name, level + 1, into);
    }
}

/// Returns the name of a type in the words of pvData.
pub(crate) fn type_name(of: &Type) -> String {
    match of {
        Type::Scalar(scalar) => scalar.name().into(),
        Type::BoundedText(max) => format!("{}({max})", Scalar::Text.name()),
        Type::Array(scalar, Length::Variable) => format!("{}[]", scalar.name()),
        Type::Array(scalar, Length::Bounded(max)) => format!("{}<{max}>", scalar.name()),
        Type::Array(scalar, Length::Fixed(count)) => format!("{}[{count}]", scalar.name()),
        Type::Structure(members) => named(members, "structure"),
        Type::Union(members) => named(members, "union"),
        Type::Any => "any".into(),
        Type::StructureArray(members) => named(members, "structure") + "[]",
        Type::UnionArray(members) => named(members, "union") + "[]",
        Type::AnyArray => "any[]".into(),
    }
}

fn named(members: &Members, unnamed: &str) -> String {
    if members.id().is_empty() { unnamed.into() } else { super::plain(members.id().as_bytes()) }
}

fn indent(level: usize, into: &mut String) {
    let _ = write!(into, "{:1$}", "", 4 * level);
}
