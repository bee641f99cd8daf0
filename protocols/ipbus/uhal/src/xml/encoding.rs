//! Which characters do the bytes of a file stand for?

use super::Remarked;
use crate::finding::Remark;
use alloc::borrow::Cow;
use alloc::string::String;

/// Returns the text of a file and, where its encoding is a guess, what was guessed and at which line and column.
///
/// The encoding is that of a byte order mark, else of the way in which the first `<` is written, else that of the
/// declaration, else UTF-8, as in pugixml. Any other byte is taken for a character of ISO-8859-1.
pub(super) fn characters(bytes: &[u8]) -> (Cow<'_, str>, Option<Remarked>) {
    let text = match bytes {
        [0, 0, 0xFE, 0xFF, rest @ ..] => wide(rest, u32::from_be_bytes),
        [0, 0, 0, b'<', ..] => wide(bytes, u32::from_be_bytes),
        [0xFF, 0xFE, 0, 0, rest @ ..] => wide(rest, u32::from_le_bytes),
        [b'<', 0, 0, 0, ..] => wide(bytes, u32::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => pairs(rest, u16::from_be_bytes),
        [0, b'<', ..] => pairs(bytes, u16::from_be_bytes),
        [0xFF, 0xFE, rest @ ..] => pairs(rest, u16::from_le_bytes),
        [b'<', 0, ..] => pairs(bytes, u16::from_le_bytes),
        _ if is_latin(bytes) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        _ => return narrow(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)),
    };
    (Cow::Owned(text), None)
}

fn narrow(bytes: &[u8]) -> (Cow<'_, str>, Option<Remarked>) {
    let Err(error) = core::str::from_utf8(bytes) else { return (String::from_utf8_lossy(bytes), None) };
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| char::from(*byte)));
    }
    let before = &text[..error.valid_up_to()];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let remark = Remark::Encoding { byte: bytes[error.valid_up_to()] };
    (Cow::Owned(text), Some((remark, (super::count(line), super::count(column)))))
}

fn wide(bytes: &[u8], unit: fn([u8; 4]) -> u32) -> String {
    let units = bytes.chunks_exact(4).map(|four| unit([four[0], four[1], four[2], four[3]]));
    units.map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn pairs(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Tells whether the declaration says that every byte is a character. Many tables do, and hold ASCII only.
fn is_latin(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    let end = start.windows(2).take(200).position(|pair| pair == b"?>").unwrap_or(0);
    let declaration = start[..end].to_ascii_lowercase();
    let says = |name: &[u8]| declaration.windows(name.len()).any(|part| part == name);
    declaration.starts_with(b"<?xml") && (says(b"iso-8859-1") || says(b"latin1"))
}
