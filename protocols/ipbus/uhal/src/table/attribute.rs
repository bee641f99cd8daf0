//! Values of a node's attributes.

use crate::finding::{Remark, ValueProblem};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Every attribute of a node.
pub(super) const ATTRIBUTES: &[&str] = &[
    "id",
    "address",
    "mask",
    "mode",
    "size",
    "permission",
    "module",
    "class",
    "parameters",
    "tags",
    "description",
    "fwinfo",
];

const PERMISSIONS: &[&str] = &["r", "w", "rw", "wr", "read", "write", "readwrite", "writeread"];
const MODES: &[&str] = &["single", "block", "port", "incremental", "non-incremental", "inc", "non-inc"];

/// Names and their values, in the order of the file.
pub(super) type Pairs = Vec<(Box<str>, Box<str>)>;

/// The permission of a node; both ways if the file says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Permission {
    /// It may be read.
    Read,
    /// It may be written.
    Write,
    /// It may be read and written.
    #[default]
    ReadWrite,
}

impl Permission {
    /// Tells whether the node may be read.
    #[must_use]
    pub fn reads(self) -> bool {
        self != Permission::Write
    }

    /// Tells whether the node may be written.
    #[must_use]
    pub fn writes(self) -> bool {
        self != Permission::Read
    }

    pub(super) fn parse(value: &str) -> Result<Self, ValueProblem> {
        match value {
            "r" | "read" => Ok(Permission::Read),
            "w" | "write" => Ok(Permission::Write),
            "rw" | "wr" | "readwrite" | "writeread" => Ok(Permission::ReadWrite),
            _ => Err(ValueProblem::NotAWord { name: "permission", value: value.to_owned(), known: PERMISSIONS }),
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Permission::Read => "r",
            Permission::Write => "w",
            Permission::ReadWrite => "rw",
        })
    }
}

/// The kind of register at a node's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing but nodes below it.
    Hierarchical,
    /// One register, or some bits of one.
    Single,
    /// A block of words at consecutive addresses.
    Incremental,
    /// A port, such as a FIFO's: every word at the same address.
    NonIncremental,
}

impl Mode {
    pub(super) fn parse(value: &str) -> Result<Self, ValueProblem> {
        match value {
            "single" => Ok(Mode::Single),
            "block" | "incremental" | "inc" => Ok(Mode::Incremental),
            "port" | "non-incremental" | "non-inc" => Ok(Mode::NonIncremental),
            _ => Err(ValueProblem::NotAWord { name: "mode", value: value.to_owned(), known: MODES }),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Hierarchical => "hierarchical",
            Mode::Single => "single",
            Mode::Incremental => "incremental",
            Mode::NonIncremental => "non-incremental",
        })
    }
}

/// Reads a number of 32 bits: decimal, or hexadecimal behind `0x` or `x`.
pub(crate) fn number(name: &'static str, value: &str) -> Result<u32, ValueProblem> {
    let lower = value.as_bytes().first_chunk().map(|first: &[u8; 2]| first.map(|letter| letter.to_ascii_lowercase()));
    let (digits, radix) = match lower {
        Some([b'0', b'x']) => (&value[2..], 16),
        Some([b'x', _]) => (&value[1..], 16),
        _ => (value, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(ValueProblem::NotANumber { name, value: value.to_owned() });
    }
    // uHAL counts the digits first, leading zeros too.
    let fits = if digits.len() <= 10 { u32::from_str_radix(digits, radix).ok() } else { None };
    fits.ok_or_else(|| ValueProblem::TooWide { name, value: value.to_owned() })
}

/// Reads an id: part of a path, so without dots, and without spaces at its ends.
pub(super) fn id(value: &str) -> Result<Box<str>, ValueProblem> {
    if value.is_empty() || value.contains('.') || value.starts_with(' ') || value.ends_with(' ') {
        return Err(ValueProblem::BadId { id: value.to_owned() });
    }
    Ok(value.into())
}

/// Reads `name=value;name;…`, or with `&`: the pairs up to the first letter that is none of them, as uHAL takes them.
pub(super) fn parameters(value: &str) -> (Pairs, Option<Remark>) {
    let mut pairs = Pairs::new();
    let mut rest = value.trim_start();
    let word =
        |text: &str| text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    let mut next = rest;
    loop {
        let length = if next.starts_with(|first: char| first.is_ascii_digit()) { 0 } else { word(next) };
        if length == 0 {
            break;
        }
        let (name, after) = next.split_at(length);
        let text = after.strip_prefix('=').map_or("", |text| &text[..word(text)]);
        rest = if text.is_empty() { after } else { &after[1 + text.len()..] };
        pairs.push((name.into(), text.into()));
        let Some(after) = rest.strip_prefix([';', '&']) else { break };
        next = after;
    }
    let done = rest.chars().all(|letter| letter.is_ascii_whitespace() || letter == ';');
    keep_first(&mut pairs);
    (pairs, (!done).then(|| Remark::ParametersEnd { rest: rest.to_owned() }))
}

/// Reads `type;name=value;…`, spaces aside; the type is the value of `type`.
pub(super) fn firmware_info(value: &str) -> Result<(Pairs, Option<Remark>), ValueProblem> {
    let mut pairs = Pairs::new();
    if value.is_empty() {
        return Ok((pairs, None));
    }
    let text: String = value.split_ascii_whitespace().collect();
    let (kind, mut rest) = text.split_once(';').unwrap_or((&text, ""));
    pairs.push(("type".into(), kind.into()));
    if kind.is_empty() {
        return Ok((pairs, Some(Remark::NoFirmwareType)));
    }
    while !rest.is_empty() {
        let (name, after) =
            rest.split_once('=').ok_or_else(|| ValueProblem::BadFirmwareInfo { value: value.to_owned() })?;
        if name.is_empty() {
            break;
        }
        let (text, after) = after.split_once(';').unwrap_or((after, ""));
        pairs.push((name.into(), text.into()));
        rest = after;
    }
    keep_first(&mut pairs);
    Ok((pairs, None))
}

/// Leaves the first pair of each name.
pub(super) fn keep_first(pairs: &mut Pairs) {
    let mut seen = BTreeSet::new();
    pairs.retain(|(name, _)| seen.insert(name.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        for (value, number) in [
            ("16", 16),
            ("010", 10),
            ("0x10", 16),
            ("0X10", 16),
            ("x10", 16),
            ("Xf", 15),
            ("0xabcDEF", 0x00AB_CDEF),
            ("4294967295", u32::MAX),
            ("0x00FFFFFFFF", u32::MAX),
        ] {
            assert_eq!(super::number("address", value), Ok(number), "{value}");
        }
        for value in
            ["", " ", "x", "0x", "10x", " 0x10", "0x10 ", "+5", "-1", "1x10", "ff", "0x+5", "0x0x1", "3.14", "\u{e9}1"]
        {
            let why = number("size", value).unwrap_err().to_string();
            let expected =
                alloc::format!("size=\"{value}\" is not a number; write decimal digits, or 0x and hexadecimal digits");
            assert_eq!(why, expected);
        }
        for value in ["4294967296", "0x100000000", "0x00000000010", "99999999999999999999"] {
            let why = number("mask", value).unwrap_err().to_string();
            let expected =
                alloc::format!("mask=\"{value}\" is over 32 bits; write at most 0xFFFFFFFF, in at most 10 digits");
            assert_eq!(why, expected);
        }
    }

    fn told(pairs: &Pairs) -> String {
        let told: Vec<String> = pairs.iter().map(|(name, value)| alloc::format!("{name}:{value}")).collect();
        told.join(" ")
    }

    #[test]
    fn parameters_are_taken_up_to_what_is_none() {
        for (value, taken, rest) in [
            ("a=1;b=2", "a:1 b:2", None),
            (" a=1&b=0x10;", "a:1 b:0x10", None),
            ("a;b", "a: b:", None),
            ("A_1=_x", "A_1:_x", None),
            ("a=1;a=2", "a:1", None),
            ("", "", None),
            ("a=1; b=2", "a:1", Some("; b=2")),
            ("a=1 ;b=2", "a:1", Some(" ;b=2")),
            ("a=1;;b=2", "a:1", Some(";;b=2")),
            ("a=1.5;b=2", "a:1", Some(".5;b=2")),
            ("a=;b=2", "a:", Some("=;b=2")),
            ("a =1", "a:", Some(" =1")),
            ("1a=2", "", Some("1a=2")),
            ("\u{e9}=1", "", Some("\u{e9}=1")),
        ] {
            let (pairs, remark) = parameters(value);
            assert_eq!(told(&pairs), taken, "{value}");
            assert_eq!(remark, rest.map(|rest| Remark::ParametersEnd { rest: rest.to_owned() }), "{value}");
        }
    }

    #[test]
    fn firmware_information_begins_with_its_type() {
        for (value, taken) in [
            ("endpoint", "type:endpoint"),
            ("endpoint;width=4", "type:endpoint width:4"),
            (" endpoint ; width = 4;\n a=1;", "type:endpoint width:4 a:1"),
            ("endpoint;", "type:endpoint"),
            ("endpoint;width=", "type:endpoint width:"),
            ("endpoint;a=b=c;a=2", "type:endpoint a:b=c"),
            ("endpoint;a=1;=2;b=3", "type:endpoint a:1"),
            ("", ""),
        ] {
            let (pairs, remark) = firmware_info(value).unwrap();
            assert_eq!((told(&pairs).as_str(), remark), (taken, None), "{value}");
        }
        for value in [" ", ";a=1"] {
            let (pairs, remark) = firmware_info(value).unwrap();
            assert_eq!((told(&pairs).as_str(), remark), ("type:", Some(Remark::NoFirmwareType)), "{value}");
        }
        let why = firmware_info("endpoint;width").unwrap_err().to_string();
        assert_eq!(why, "fwinfo=\"endpoint;width\" cannot be read; write it as `endpoint;width=4`");
    }
}
