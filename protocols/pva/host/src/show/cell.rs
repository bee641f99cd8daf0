//! One scalar as text.

use hodo_pva::{Array, Item, Scalar, Type};
use std::fmt::Write;

/// A number, a bool or a text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Single(f32),
    Double(f64),
    Text(&'a [u8]),
}

impl<'a> Cell<'a> {
    /// Returns the scalar that a field of a type holds.
    pub(crate) fn of(of: &Type, item: Item<'a>) -> Option<Cell<'a>> {
        Some(match (item, of) {
            (Item::Bool(value), _) => Cell::Bool(value),
            (Item::Int(value), _) => Cell::Int(value),
            (Item::Uint(value), _) => Cell::Uint(value),
            (Item::Float(value), Type::Scalar(Scalar::F32)) => Cell::Single(value as f32),
            (Item::Float(value), _) => Cell::Double(value),
            (Item::Text(text), _) => Cell::Text(text.as_bytes()),
            _ => return None,
        })
    }

    /// Writes it for people: a text as it is.
    pub(crate) fn write_plain(self, into: &mut String) {
        match self {
            Cell::Text(text) => escaped(text, None, into),
            other => other.write_quoted(into),
        }
    }

    /// Writes it with quotes around a text.
    pub(crate) fn write_quoted(self, into: &mut String) {
        // Writing to a string does not fail.
        let _ = match self {
            Cell::Bool(value) => write!(into, "{value}"),
            Cell::Int(value) => write!(into, "{value}"),
            Cell::Uint(value) => write!(into, "{value}"),
            Cell::Single(value) => write_float(format_args!("{value:?}"), value.is_finite(), into),
            Cell::Double(value) => write_float(format_args!("{value:?}"), value.is_finite(), into),
            Cell::Text(text) => {
                escaped(text, Some('"'), into);
                Ok(())
            }
        };
    }
}

/// Writes a float with the fewest digits that tell it from all others, and without a fraction of zero.
fn write_float(shortest: std::fmt::Arguments<'_>, is_finite: bool, into: &mut String) -> std::fmt::Result {
    let from = into.len();
    into.write_fmt(shortest)?;
    if !is_finite {
        into[from..].make_ascii_lowercase();
    } else if into.ends_with(".0") {
        into.truncate(into.len() - 2);
    }
    Ok(())
}

/// Hands on the elements of an array from `from` to `to`.
pub(crate) fn each<'a>(array: &'a Array, from: usize, to: usize, told: &mut dyn FnMut(Cell<'a>)) {
    let (count, to) = (to.saturating_sub(from), to.min(array.len()));
    macro_rules! numbers {
        ($($Scalar:ident $Rust:ty => $Cell:ident),+) => {
            match array.scalar() {
                Scalar::Bool => array.iter_bools().into_iter().flatten().skip(from).take(count).for_each(|is| told(Cell::Bool(is))),
                Scalar::Text => array.iter_texts().into_iter().flatten().skip(from).take(count).for_each(|text| told(Cell::Text(text))),
                $(Scalar::$Scalar => {
                    let bytes = array.bytes().slice(from.min(to) * size_of::<$Rust>()..to * size_of::<$Rust>());
                    let part = Array::from_bytes(Scalar::$Scalar, array.order(), bytes);
                    let elements = part.iter().filter_map(Array::iter::<$Rust>).flatten();
                    elements.for_each(|element| told(Cell::$Cell(element.into())));
                })+
            }
        };
    }
    numbers!(I8 i8 => Int, I16 i16 => Int, I32 i32 => Int, I64 i64 => Int, U8 u8 => Uint, U16 u16 => Uint, U32 u32 => Uint,
        U64 u64 => Uint, F32 f32 => Single, F64 f64 => Double);
}

/// Writes the elements of an array in brackets. Of a long one the first and the last are shown, as NumPy does.
pub(crate) fn write_array(array: &Array, elements: usize, between: &str, into: &mut String) {
    into.push('[');
    let (head, tail) = ends(array.len(), elements);
    write_run(array, 0, head, between, into);
    if head < array.len() {
        into.push_str(between);
        into.push_str("...");
        if tail > 0 {
            into.push_str(between);
        }
        write_run(array, array.len() - tail, array.len(), between, into);
    }
    into.push(']');
}

/// Elements at each end of an array that is too long to be shown, unless fewer are asked for.
const EDGE: usize = 3;

/// Returns how many of `length` elements are shown from the front and from the back.
pub(crate) fn ends(length: usize, elements: usize) -> (usize, usize) {
    if elements == 0 || length <= elements {
        return (length, 0);
    }
    let edge = if elements >= super::ELEMENTS { EDGE } else { elements.div_ceil(2) };
    (edge, edge.min(elements - elements.div_ceil(2)))
}

/// Writes elements with something between them.
pub(crate) fn write_run(array: &Array, from: usize, to: usize, between: &str, into: &mut String) {
    let mut is_first = true;
    each(array, from, to, &mut |cell| {
        if !std::mem::take(&mut is_first) {
            into.push_str(between);
        }
        cell.write_quoted(into);
    });
}

/// Returns the characters of a text; a byte that is not UTF-8 is taken for Latin-1.
pub(crate) fn characters(text: &[u8]) -> impl Iterator<Item = char> + '_ {
    text.utf8_chunks()
        .flat_map(|chunk| chunk.valid().chars().chain(chunk.invalid().iter().map(|byte| char::from(*byte))))
}

/// Writes a text in which nothing controls a terminal: in quotes, or as it is.
pub(crate) fn escaped(text: &[u8], quote: Option<char>, into: &mut String) {
    into.extend(quote);
    for c in characters(text) {
        match c {
            '\n' => into.push_str("\\n"),
            '\t' => into.push_str("\\t"),
            '\r' => into.push_str("\\r"),
            '\\' if quote.is_some() => into.push_str("\\\\"),
            c if Some(c) == quote => into.extend(['\\', c]),
            c if c.is_control() => _ = write!(into, "\\x{:02x}", u32::from(c)),
            c => into.push(c),
        }
    }
    into.extend(quote);
}

/// Returns a text in which nothing controls a terminal.
pub(crate) fn plain(text: &[u8]) -> String {
    let mut into = String::new();
    escaped(text, None, &mut into);
    into
}
