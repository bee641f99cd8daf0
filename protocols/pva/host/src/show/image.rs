//! Images in one line.

use super::SentValue;
use crate::image::{self, Summary};
use hodo_pva::{Item, Scalar, Value};
use std::fmt::Write;

/// The bytes of pixels that are decompressed for a line of text.
const SHOWN_MAX: usize = 256 << 20;

/// Writes what an NTNDArray is: element type, dimensions, bytes, codec, and what its pixels are like; of elements that were sent without
/// dimensions how many they are. Returns `false` for a value of any other type.
pub(super) fn write(part: &SentValue<'_>, into: &mut String) -> bool {
    let value = part.value;
    if !value.plan().of().id().starts_with("epics:nt/NTNDArray:1.") {
        return false;
    }
    let number = |path: &str| value.get(path).and_then(Item::as_i64).unwrap_or(0);
    let Some(Item::Array(sent)) = value.get("value").map(Item::content) else {
        into.push_str("no image");
        write_id(part, into);
        return true;
    };
    let codec = image::codec(value);
    let scalar = if codec.is_empty() { Some(sent.scalar()) } else { image::element_type(value) };
    into.push_str(scalar.map_or("unknown", Scalar::name));
    into.push('[');
    write_dimensions(value, sent.len(), into);
    let sent = sent.bytes().len();
    let decoded = image::decode_image(value, SHOWN_MAX);
    if codec.is_empty() {
        let _ = write!(into, "] {sent} bytes");
    } else {
        let bytes = decoded.as_ref().map_or(number("uncompressedSize"), |image| image.elements.bytes().len() as i64);
        let _ = write!(into, "] {bytes} bytes, codec ");
        super::escaped(codec.as_bytes(), None, into);
        let _ = write!(into, " ({sent} bytes)");
    }
    match decoded.map(|image| image.summary()) {
        Ok(Some(Summary { least, greatest, mean })) => {
            let mean = format!("{mean:.6}");
            // Zeros behind the point say nothing.
            let mean = mean.trim_end_matches('0').trim_end_matches('.');
            let _ = write!(into, ", from {least} to {greatest}, mean {mean}");
        }
        Ok(None) => {}
        Err(why) => {
            into.push_str(", ");
            super::escaped(why.to_string().as_bytes(), None, into);
        }
    }
    write_id(part, into);
    true
}

fn write_id(part: &SentValue<'_>, into: &mut String) {
    if part.has_path("uniqueId") {
        let id = part.value.get("uniqueId").and_then(Item::as_i64).unwrap_or(0);
        let _ = write!(into, ", id {id}");
    }
}

/// Writes the dimensions; without any, how many elements there are.
fn write_dimensions(value: &Value, elements: usize, into: &mut String) {
    let dimensions = match value.get("dimension") {
        Some(Item::Elements(dimensions)) => dimensions,
        _ => &[],
    };
    if dimensions.is_empty() {
        let _ = write!(into, "{elements}");
    }
    for (at, dimension) in dimensions.iter().enumerate() {
        let size = dimension.as_ref().and_then(|dimension| dimension.get("size")?.as_i64()).unwrap_or(0);
        let _ = write!(into, "{}{size}", if at > 0 { " x " } else { "" });
    }
}
