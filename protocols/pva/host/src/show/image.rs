//! Images in one line.

use hodo_pva::{Item, Value};
use std::fmt::Write;

/// Writes what an NTNDArray is: element type, dimensions, codec, bytes. Returns `false` for a value of any other type.
pub(super) fn write(value: &Value, into: &mut String) -> bool {
    if !value.plan().of().id().starts_with("epics:nt/NTNDArray:1.") {
        return false;
    }
    let number = |path: &str| value.get(path).and_then(Item::as_i64).unwrap_or(0);
    match value.get("value") {
        Some(Item::Union(Some((member, held)))) => {
            let name = member.strip_suffix("Value").unwrap_or(member);
            super::escaped(name.as_bytes(), None, into);
            into.push('[');
            write_dimensions(value, into);
            let bytes = held.at(0).and_then(Item::as_array).map_or(0, |array| array.bytes().len());
            let _ = write!(into, "] {bytes} bytes");
        }
        _ => into.push_str("no image"),
    }
    if let Some(codec) = value.get("codec.name").and_then(Item::as_text).filter(|codec| **codec != "") {
        into.push_str(", codec ");
        super::escaped(codec.as_bytes(), None, into);
        let _ = write!(into, " ({} bytes uncompressed)", number("uncompressedSize"));
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
