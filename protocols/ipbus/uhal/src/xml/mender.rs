//! Makes XML of what uHAL reads as such, and remarks on it.

use super::{ATTRIBUTES_MAX, COLON};
use crate::finding::Remark;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// The start tag before the file, on a line of its own, and the end tag behind it.
const BEFORE: &str = "<\u{A789}>\n";
pub(super) const AFTER: &str = "</\u{A789}>";

/// Code points that no text may use stand for what XML does not have in values: a control character's number is added.
const BASE: u32 = 0xFDD0;
/// Stands for an `&` that begins no reference, in the place of the tabulator.
const AMPERSAND: char = '\u{FDD9}';
/// Stands for a `<` in a value, in the place of the line feed.
const LESS: char = '\u{FDDA}';

/// Returns what a character of a mended name or value stands for.
pub(super) fn original(letter: char) -> char {
    match letter {
        AMPERSAND => '&',
        LESS => '<',
        '\u{A789}' => ':',
        '\u{FDD0}'..='\u{FDEF}' => char::from_u32(u32::from(letter) - BASE).unwrap_or(letter),
        other => other,
    }
}

/// Returns what stands for a character in a value.
fn stand_in(letter: char) -> char {
    match letter {
        '\t' | '\n' | '\r' => letter,
        '\0'..' ' => char::from_u32(BASE + u32::from(letter)).unwrap_or(letter),
        '\u{FFFE}' | '\u{FFFF}' => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

/// Writes the mended text; each step takes something off the front of the rest.
pub(super) struct Mender {
    pub(super) out: String,
    /// Where an element has too many attributes.
    pub(super) crowd: Option<usize>,
    /// Remarks for the file's author, each with its byte in the mended text.
    pub(super) remarks: Vec<(Remark, usize)>,
    /// How many elements are open.
    depth: usize,
    is_text_remarked: bool,
}

/// Mends the text of a file.
pub(super) fn mend(text: &str) -> Mender {
    let out = String::with_capacity(text.len() + 64);
    let mut mender = Mender { out, crowd: None, remarks: Vec::new(), depth: 0, is_text_remarked: false };
    mender.out.push_str(BEFORE);
    let (mut rest, beyond) = text.split_once('\0').map_or((text, None), |(text, beyond)| (text, Some(beyond)));
    while let Some(at) = rest.find('<') {
        mender.text(&rest[..at]);
        rest = &rest[at..];
        rest = if rest.starts_with("<!--") {
            mender.blank(rest, "-->")
        } else if rest.starts_with("<?") {
            mender.blank(rest, "?>")
        } else if rest.starts_with("<![CDATA[") {
            mender.blank(rest, "]]>")
        } else if rest.starts_with("<!DOCTYPE") && mender.depth == 0 {
            mender.document_type(rest)
        } else {
            mender.tag(rest)
        };
    }
    mender.text(rest);
    if let Some(beyond) = beyond {
        mender.remarks.push((Remark::Nul { characters: beyond.chars().count() }, mender.out.len()));
    }
    mender.out.push_str(AFTER);
    mender
}

impl Mender {
    /// Copies what lies between the tags as spaces: a table's and a connection's content is all in their attributes.
    fn text(&mut self, text: &str) {
        let blank = text.len() - text.trim_start().len();
        if self.depth == 0 && blank < text.len() && !self.is_text_remarked {
            self.is_text_remarked = true;
            let found = text.trim().chars().take(20).collect();
            self.remarks.push((Remark::TextOutside { found }, self.out.len() + blank));
        }
        self.spaces(text);
    }

    fn spaces(&mut self, text: &str) {
        self.out.extend(text.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
    }

    /// Copies something up to its end as spaces; as it is if it has no end, so that the parser says so.
    fn blank<'t>(&mut self, rest: &'t str, end: &str) -> &'t str {
        let Some(at) = rest.find(end) else {
            self.out.push_str(rest);
            return "";
        };
        let (blank, after) = rest.split_at(at + end.len());
        self.spaces(blank);
        after
    }

    /// Copies a document type as spaces.
    fn document_type<'t>(&mut self, mut rest: &'t str) -> &'t str {
        let mut depth = 0;
        while let Some(at) = rest.find(['<', '>', '"', '\'']) {
            self.spaces(&rest[..at]);
            rest = &rest[at..];
            let end = if rest.starts_with("<!--") {
                rest.find("-->").map(|at| at + 3)
            } else if rest.starts_with("<?") {
                rest.find("?>").map(|at| at + 2)
            } else if let Some(quote) = rest.chars().next().filter(|letter| ['"', '\''].contains(letter)) {
                rest[1..].find(quote).map(|at| at + 2)
            } else {
                depth = if rest.starts_with('<') { depth + 1 } else { depth - 1 };
                Some(1)
            };
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.spaces(part);
            rest = after;
            if depth == 0 {
                return rest;
            }
        }
        // It has no end: the parser is to say so.
        self.out.push_str("<!DOCTYPE");
        ""
    }

    /// Copies a tag.
    fn tag<'t>(&mut self, rest: &'t str) -> &'t str {
        let start = self.out.len();
        let is_end = rest.starts_with("</");
        let mut names: Vec<&str> = Vec::new();
        self.out.push('<');
        let mut rest = &rest[1..];
        while let Some(at) = rest.find(['<', '>', '"', '\'']) {
            let (before, after) = rest.split_at(at);
            rest = after;
            let Some(quote) = rest.chars().next().filter(|letter| ['"', '\''].contains(letter)) else {
                self.names(before);
                if rest.starts_with('>') {
                    self.out.push('>');
                    rest = &rest[1..];
                    self.depth = match (is_end, before.ends_with('/')) {
                        (true, _) => self.depth.saturating_sub(1),
                        (false, true) => self.depth,
                        (false, false) => self.depth + 1,
                    };
                }
                return rest;
            };
            let Some(length) = rest[1..].find(quote) else {
                self.names(before);
                break;
            };
            let name = name_of(before);
            if name.is_some_and(|name| names.contains(&name)) {
                self.second(before, &rest[..length + 2]);
            } else {
                self.names(before);
                self.out.push(quote);
                self.value(&rest[1..=length]);
                self.out.push(quote);
            }
            names.extend(name);
            if names.len() > ATTRIBUTES_MAX && self.crowd.is_none() {
                self.crowd = Some(start);
            }
            rest = if self.crowd.is_some() { "" } else { &rest[length + 2..] };
        }
        self.names(rest);
        ""
    }

    /// Copies the part of a tag that holds names.
    fn names(&mut self, text: &str) {
        for (index, part) in text.split(':').enumerate() {
            self.out.push_str(if index > 0 { COLON } else { "" });
            self.out.push_str(part);
        }
    }

    /// Copies an attribute that the element has already as spaces: the first one counts.
    fn second(&mut self, before: &str, value: &str) {
        let name = name_of(before).unwrap_or_default();
        let (others, attribute) = before.split_at(before.rfind(name).unwrap_or(0));
        self.names(others);
        self.remarks.push((Remark::SameAttribute { name: name.to_owned() }, self.out.len()));
        self.spaces(attribute);
        self.spaces(value);
    }

    /// Copies the text between quotes.
    fn value(&mut self, value: &str) {
        // A quote that was forgotten makes a value of the next lines' markup: the parser is to find it where it begins.
        let forgotten = value.contains('\n') && value.contains('<');
        for (at, letter) in value.char_indices() {
            self.out.push(match letter {
                '&' if !is_reference(&value[at..]) => AMPERSAND,
                '<' if !forgotten => LESS,
                other => stand_in(other),
            });
        }
    }
}

/// Returns the name of the attribute that a quote follows.
fn name_of(before: &str) -> Option<&str> {
    let name = before.trim_end().strip_suffix('=')?.trim_end();
    name.rsplit(char::is_whitespace).next()
}

/// Tells whether a text begins with a reference to a character of XML that needs no document type.
fn is_reference(text: &str) -> bool {
    // The longest one is `&#1114111;`, but for leading zeros.
    let end = text.bytes().take(32).position(|letter| letter == b';');
    let Some(name) = end.map(|end| &text[1..end]) else { return false };
    let Some(number) = name.strip_prefix('#') else { return ["amp", "lt", "gt", "quot", "apos"].contains(&name) };
    let code = match number.strip_prefix('x') {
        Some(number) if number.bytes().all(|digit| digit.is_ascii_hexdigit()) => u32::from_str_radix(number, 16),
        None if number.bytes().all(|digit| digit.is_ascii_digit()) => number.parse(),
        _ => return false,
    };
    code.ok().and_then(char::from_u32).is_some_and(|letter| stand_in(letter) == letter)
}
