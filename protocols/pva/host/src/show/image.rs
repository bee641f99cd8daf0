//! Images in one line.

use super::cell::escaped;
use crate::image::{self, Summary};
use hodo_pva::{Item, Scalar, Value};
use std::fmt::Write;

/// The bytes of pixels that are decompressed for a line of text.
const SHOWN_MAX: usize = 256 << 20;

/// Writes what an NTNDArray is: element type, dimensions, bytes, codec, and what its pixels are like. Returns `false` for a value of any other
/// type.
pub(super) fn write(value: &Value, into: &mut String) -> bool {
    if !value.plan().of().id().starts_with("epics:nt/NTNDArray:1.") {
        return false;
    }
    let number = |path: &str| value.get(path).and_then(Item::as_i64).unwrap_or(0);
    let Some(Item::Array(sent)) = value.get("value").map(Item::content) else {
        let _ = write!(into, "no image, id {}", number("uniqueId"));
        return true;
    };
    let codec = image::codec(value);
    let scalar = if codec.is_empty() { Some(sent.scalar()) } else { image::element_type(value) };
    into.push_str(scalar.map_or("unknown", Scalar::name));
    into.push('[');
    write_dimensions(value, into);
    let sent = sent.bytes().len();
    let decoded = image::decode_image(value, SHOWN_MAX);
    if codec.is_empty() {
        let _ = write!(into, "] {sent} bytes");
    } else {
        let bytes = decoded.as_ref().map_or(number("uncompressedSize"), |image| image.elements.bytes().len() as i64);
        let _ = write!(into, "] {bytes} bytes, codec ");
        escaped(codec.as_bytes(), None, into);
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
            escaped(why.to_string().as_bytes(), None, into);
        }
    }
    let _ = write!(into, ", id {}", number("uniqueId"));
    true
}

fn write_dimensions(value: &Value, into: &mut String) {
    let Some(Item::Elements(dimensions)) = value.get("dimension") else { return };
    for (at, dimension) in dimensions.iter().enumerate() {
        let size = dimension.as_ref().and_then(|dimension| dimension.get("size")?.as_i64()).unwrap_or(0);
        let _ = write!(into, "{}{size}", if at > 0 { " x " } else { "" });
    }
}
