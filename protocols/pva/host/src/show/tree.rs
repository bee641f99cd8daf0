//! Values as pvxget prints them: as a tree, or one line a field.

use super::Show;
use super::cell::{Cell, escaped, write_run};
use hodo_pva::data::Members;
use hodo_pva::{Array, Item, Scalar, Type, Value};
use std::fmt::Write;

/// Writes a value within braces.
pub(super) fn write(value: &Value, show: &Show, into: &mut String) {
    write_node(value, 0, "", 0, show, into);
}

fn write_node(value: &Value, number: usize, name: &str, level: usize, show: &Show, into: &mut String) {
    let plan = value.plan();
    let (Some(of), Some(item)) = (plan.field(number), value.at(number)) else { return };
    write_type(of, into);
    if !matches!(of, Type::Structure(_)) && !name.is_empty() {
        into.push(' ');
        escaped(name.as_bytes(), None, into);
    }
    match item {
        Item::Structure(..) => {
            into.push_str(" {\n");
            for child in plan.children(number) {
                indent(level + 1, into);
                write_node(value, child, plan.name(child), level + 1, show, into);
            }
            indent(level, into);
            into.push('}');
            if !name.is_empty() {
                into.push(' ');
                escaped(name.as_bytes(), None, into);
            }
            into.push('\n');
        }
        Item::Union(Some((member, held))) => {
            into.push('.');
            escaped(member.as_bytes(), None, into);
            into.push(' ');
            write_node(held, 0, "", level, show, into);
        }
        Item::Any(Some(held)) => {
            into.push(' ');
            write_node(held, 0, "", level, show, into);
        }
        Item::Union(None) | Item::Any(None) => into.push_str(" null\n"),
        Item::Elements(elements) => {
            let _ = writeln!(into, " = {{{}}}[", elements.len());
            let shown = if show.elements == 0 { usize::MAX } else { show.elements };
            for element in elements.iter().take(shown) {
                indent(level + 1, into);
                match element {
                    Some(element) => write_node(element, 0, "", level + 1, show, into),
                    None => into.push_str("null\n"),
                }
            }
            if elements.len() > shown {
                indent(level + 1, into);
                into.push_str("...\n");
            }
            indent(level, into);
            into.push_str("]\n");
        }
        item => {
            write_content(of, item, show, into);
            into.push('\n');
        }
    }
}

/// Writes the changed fields of a value, one a line.
pub(super) fn write_delta(value: &Value, show: &Show, into: &mut String) {
    write_changes(value, "", show, into);
}

fn write_changes(value: &Value, prefix: &str, show: &Show, into: &mut String) {
    let plan = value.plan();
    for number in 0..plan.len() {
        let is_structure = matches!(plan.field(number), Some(Type::Structure(_)));
        let is_marked = value.changed().iter().any(|marked| (marked..plan.end(marked)).contains(&number));
        if !(is_marked || !is_structure && value.has_changed(number))
            && (show.only_changed || is_structure && number > 0)
        {
            continue;
        }
        let path = plan.path(number);
        let dot = if prefix.is_empty() || path.is_empty() { "" } else { "." };
        write_line(value, number, &format!("{prefix}{dot}{path}"), show, into);
    }
}

fn write_line(value: &Value, number: usize, path: &str, show: &Show, into: &mut String) {
    let (Some(of), Some(item)) = (value.plan().field(number), value.at(number)) else { return };
    escaped(path.as_bytes(), None, into);
    if !path.is_empty() {
        into.push(' ');
    }
    write_type(of, into);
    let inner = Show { only_changed: false, ..*show };
    match item {
        Item::Structure(..) => into.push('\n'),
        Item::Union(Some((member, held))) => {
            into.push('\n');
            write_changes(held, &format!("{path}->{member}"), &inner, into);
        }
        Item::Any(Some(held)) => {
            into.push('\n');
            write_changes(held, &format!("{path}->"), &inner, into);
        }
        Item::Union(None) | Item::Any(None) => _ = write!(into, "\n{path}-> null\n"),
        Item::Elements(elements) => {
            into.push('\n');
            let shown = if show.elements == 0 { usize::MAX } else { show.elements };
            for (at, element) in elements.iter().enumerate().take(shown) {
                match element {
                    Some(element) => write_changes(element, &format!("{path}[{at}]"), &inner, into),
                    None => _ = writeln!(into, "{path}[{at}] null"),
                }
            }
        }
        item => {
            write_content(of, item, show, into);
            into.push('\n');
        }
    }
}

fn write_content(of: &Type, item: Item<'_>, show: &Show, into: &mut String) {
    into.push_str(" = ");
    match item {
        Item::Array(array) => write_array(array, show, into),
        item => {
            if let Some(cell) = Cell::of(of, item) {
                cell.write_quoted(into);
            }
        }
    }
}

fn write_array(array: &Array, show: &Show, into: &mut String) {
    let shown = if show.elements == 0 { array.len() } else { show.elements.min(array.len()) };
    let _ = write!(into, "{{{}}}[", array.len());
    write_run(array, 0, shown, ", ", into);
    into.push_str(if shown < array.len() { ", ...]" } else { "]" });
}

/// Writes the name of a type in the words of pvxs, and its identifier.
fn write_type(of: &Type, into: &mut String) {
    let (name, array) = match of {
        Type::Scalar(scalar) => (scalar_name(*scalar), ""),
        Type::BoundedText(_) => ("string", ""),
        Type::Array(scalar, _) => (scalar_name(*scalar), "[]"),
        Type::Structure(_) => ("struct", ""),
        Type::Union(_) => ("union", ""),
        Type::Any => ("any", ""),
        Type::StructureArray(_) => ("struct", "[]"),
        Type::UnionArray(_) => ("union", "[]"),
        Type::AnyArray => ("any", "[]"),
    };
    into.push_str(name);
    into.push_str(array);
    if let Some(id) = of.members().map(|members| Members::id(members)).filter(|id| !id.is_empty() && array.is_empty()) {
        into.push(' ');
        escaped(id.as_bytes(), Some('"'), into);
    }
}

const fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::I8 => "int8_t",
        Scalar::I16 => "int16_t",
        Scalar::I32 => "int32_t",
        Scalar::I64 => "int64_t",
        Scalar::U8 => "uint8_t",
        Scalar::U16 => "uint16_t",
        Scalar::U32 => "uint32_t",
        Scalar::U64 => "uint64_t",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        Scalar::Text => "string",
    }
}

fn indent(level: usize, into: &mut String) {
    let _ = write!(into, "{:1$}", "", 4 * level);
}
