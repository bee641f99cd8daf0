//! XML as uHAL reads it.
//!
//! uHAL's parser is more lenient than XML: a bare `&` and `<` in a value stand for themselves, entities of a document type
//! are left alone, comments may hold `--`, and the declaration may come late. Tables in use rely on it. So the text is
//! mended before it is parsed, character by character, so that every position stays what it was.

use crate::finding::FileProblem;
use alloc::borrow::{Cow, ToOwned};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use roxmltree::{Document, ParsingOptions};

/// Stands for an `&` that begins no reference; a code point that no text may use.
const AMPERSAND: char = '\u{FDD0}';
/// Stands for a `<` in a value.
const LESS: char = '\u{FDD1}';
/// The most elements, texts and comments in one file.
const NODES_MAX: u32 = 4_000_000;

/// The text of a file, mended, and what finds a place in it: a file may be one long line.
#[derive(Debug)]
pub(crate) struct Text {
    mended: String,
    /// Where the lines begin.
    lines: Vec<usize>,
    /// How many characters begin before each stretch of bytes.
    marks: Vec<usize>,
    /// Where an element has too many attributes.
    crowd: Option<usize>,
}

/// The most attributes of an element: the parser compares each with all before it.
const ATTRIBUTES_MAX: usize = 1000;
/// Bytes from one mark to the next.
const STRETCH: usize = 256;

/// A problem, its line and its column.
pub(crate) type At = (FileProblem, u32, u32);

impl Text {
    /// Reads the bytes of a file.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, At> {
        let Mender { out: mended, crowd } = mend(&characters(bytes)?);
        let mut lines = Vec::from([0]);
        lines.extend(mended.match_indices('\n').map(|(at, _)| at + 1));
        let mut marks = Vec::from([0]);
        for stretch in mended.as_bytes().chunks(STRETCH) {
            marks.push(marks[marks.len() - 1] + characters_in(stretch));
        }
        Ok(Text { mended, lines, marks, crowd })
    }

    /// Parses the elements.
    pub(crate) fn parse(&self) -> Result<Document<'_>, At> {
        if let Some(at) = self.crowd {
            let (line, column) = self.position(at);
            let why = alloc::format!("an element has more than {ATTRIBUTES_MAX} attributes");
            return Err((FileProblem::NotXml { why }, line, column));
        }
        let options = ParsingOptions { allow_dtd: true, nodes_limit: NODES_MAX, ..ParsingOptions::default() };
        Document::parse_with_options(&self.mended, options).map_err(|error| {
            if error == roxmltree::Error::UnclosedRootNode {
                // The parser names no place; the end is the nearest to where something is missing.
                let (line, column) = self.position(self.mended.len());
                let why = "an element is still open at the end of the file; close it, as with `</node>`".to_owned();
                return (FileProblem::NotXml { why }, line, column);
            }
            let position = error.pos();
            let text = error.to_string().replace(&alloc::format!(" at {position}"), "");
            (FileProblem::NotXml { why: plain(&text).into_owned() }, position.row, position.col)
        })
    }

    /// Returns the line and the column of a byte.
    pub(crate) fn position(&self, at: usize) -> (u32, u32) {
        let line = self.lines.partition_point(|start| *start <= at);
        let column = self.characters_before(at) - self.characters_before(self.lines[line - 1]);
        (count(line), count(column + 1))
    }

    fn characters_before(&self, at: usize) -> usize {
        let mark = at / STRETCH;
        self.marks[mark] + characters_in(&self.mended.as_bytes()[mark * STRETCH..at])
    }
}

/// Returns how many characters begin in some bytes of a text.
fn characters_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// Returns a value as it stands in the file.
pub(crate) fn plain(value: &str) -> Cow<'_, str> {
    if value.contains([AMPERSAND, LESS]) {
        Cow::Owned(value.replace(AMPERSAND, "&").replace(LESS, "<"))
    } else {
        Cow::Borrowed(value)
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn characters(bytes: &[u8]) -> Result<Cow<'_, str>, At> {
    if let [0xFF, 0xFE, rest @ ..] = bytes {
        return Ok(Cow::Owned(wide(rest, u16::from_le_bytes)));
    }
    if let [0xFE, 0xFF, rest @ ..] = bytes {
        return Ok(Cow::Owned(wide(rest, u16::from_be_bytes)));
    }
    if is_latin(bytes) {
        return Ok(Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()));
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    core::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let last = before.rsplit('\n').next().unwrap_or_default();
        (FileProblem::Encoding, count(before.matches('\n').count() + 1), count(last.chars().count() + 1))
    })
}

fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
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

fn mend(text: &str) -> Mender {
    let mut mender = Mender { out: String::with_capacity(text.len() + 64), crowd: None };
    let declaration = text.trim_start();
    mender.out.push_str(&text[..text.len() - declaration.len()]);
    let mut rest = if declaration.starts_with("<?xml") { mender.blank(declaration, "?>") } else { declaration };
    while let Some(at) = rest.find(['<', '&']) {
        mender.out.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = if rest.starts_with('&') {
            mender.reference(rest)
        } else if rest.starts_with("<!--") {
            mender.blank(rest, "-->")
        } else if rest.starts_with("<?") {
            mender.copy(rest, "?>")
        } else if rest.starts_with("<![CDATA[") {
            mender.copy(rest, "]]>")
        } else {
            mender.tag(rest)
        };
    }
    mender.out.push_str(rest);
    mender
}

/// Writes the mended text; each step takes something off the front of the rest.
struct Mender {
    out: String,
    crowd: Option<usize>,
}

impl Mender {
    /// Copies an `&`: of a reference, or bare.
    fn reference<'t>(&mut self, rest: &'t str) -> &'t str {
        self.out.push(if is_reference(rest) { '&' } else { AMPERSAND });
        &rest[1..]
    }

    /// Copies something up to its end.
    fn copy<'t>(&mut self, rest: &'t str, end: &str) -> &'t str {
        let length = rest.find(end).map_or(rest.len(), |at| at + end.len());
        self.out.push_str(&rest[..length]);
        &rest[length..]
    }

    /// Copies something up to its end as spaces; as it is if it has no end, so that the parser says so.
    fn blank<'t>(&mut self, rest: &'t str, end: &str) -> &'t str {
        let Some(at) = rest.find(end) else { return self.copy(rest, end) };
        let (comment, after) = rest.split_at(at + end.len());
        self.out.extend(comment.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        after
    }

    /// Copies a `<` and the rest of the tag.
    fn tag<'t>(&mut self, rest: &'t str) -> &'t str {
        let start = self.out.len();
        let mut attributes = 0;
        self.out.push('<');
        let mut rest = &rest[1..];
        while let Some(at) = rest.find(['<', '>', '"', '\'']) {
            self.out.push_str(&rest[..at]);
            rest = &rest[at..];
            let quote = if rest.starts_with('"') { '"' } else { '\'' };
            if !rest.starts_with(quote) {
                return rest;
            }
            self.out.push(quote);
            rest = &rest[1..];
            let Some(length) = rest.find(quote) else { break };
            self.value(&rest[..length]);
            attributes += 1;
            if attributes > ATTRIBUTES_MAX && self.crowd.is_none() {
                self.crowd = Some(start);
            }
            self.out.push(quote);
            rest = &rest[length + 1..];
        }
        self.out.push_str(rest);
        ""
    }

    /// Copies the text between quotes.
    fn value(&mut self, value: &str) {
        // A quote that was forgotten makes a value of the next lines' markup: the parser is to find it where it begins.
        let forgotten = value.contains('\n') && value.contains('<');
        let mut rest = value;
        while let Some(at) = rest.find(['<', '&']) {
            self.out.push_str(&rest[..at]);
            rest = &rest[at..];
            rest = if rest.starts_with('&') {
                self.reference(rest)
            } else {
                self.out.push(if forgotten { '<' } else { LESS });
                &rest[1..]
            };
        }
        self.out.push_str(rest);
    }
}

/// Tells whether a text begins with a reference that needs no document type.
fn is_reference(text: &str) -> bool {
    // The longest one is `&#1114111;`, but for leading zeros.
    let end = text.bytes().take(32).position(|letter| letter == b';');
    let Some(name) = end.map(|end| &text[1..end]) else { return false };
    match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix('x') {
            Some(number) => !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_hexdigit()),
            None => !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()),
        },
        None => ["amp", "lt", "gt", "quot", "apos"].contains(&name),
    }
}

#[cfg(test)]
mod tests;
