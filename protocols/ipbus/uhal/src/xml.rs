//! XML as uHAL reads it.
//!
//! uHAL's parser, pugixml, is more lenient than XML, and tables in use rely on it: a bare `&` and `<` in a value stand for
//! themselves, entities of a document type are left alone, comments may hold `--`, there may be text and more elements
//! around the outermost one, an attribute that is there twice has its first value, bytes may be of any encoding, and a NUL
//! ends the file. So the text is mended before it is parsed, character by character, so that every position stays what it
//! was, and an element around it all is added on a line of its own.

mod encoding;
mod mender;

use crate::finding::{FileProblem, Remark};
use alloc::borrow::{Cow, ToOwned};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use mender::Mender;
use roxmltree::{Document, Error, Node, ParsingOptions};

/// The most elements and texts in one file.
const NODES_MAX: u32 = 4_000_000;
/// The most attributes of an element: each is compared with all before it.
const ATTRIBUTES_MAX: usize = 1000;
/// Stands for a `:` in a name, so that no prefix has to be declared, and names the element around the file.
const COLON: &str = "\u{A789}";

/// The text of a file, mended, and what finds a place in it: a file may be one long line.
#[derive(Debug)]
pub(crate) struct Text {
    mended: String,
    /// Where the lines begin, first the one of the element around the file.
    lines: Vec<usize>,
    /// How many characters begin before each stretch of bytes.
    marks: Vec<usize>,
    /// Where an element has too many attributes.
    crowd: Option<usize>,
    /// Remarks for the file's author.
    remarks: Vec<Remarked>,
}

/// Bytes from one mark to the next.
const STRETCH: usize = 256;

/// A remark, and the line and column it is about.
pub(crate) type Remarked = (Remark, (u32, u32));

/// A problem, its line and its column.
pub(crate) type At = (FileProblem, u32, u32);

impl Text {
    /// Reads the bytes of a file.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let (text, guessed) = encoding::characters(bytes);
        let Mender { out: mended, crowd, remarks, .. } = mender::mend(&text);
        let mut lines = Vec::from([0]);
        lines.extend(mended.match_indices('\n').map(|(at, _)| at + 1));
        let mut marks = Vec::from([0]);
        for stretch in mended.as_bytes().chunks(STRETCH) {
            marks.push(marks[marks.len() - 1] + characters_in(stretch));
        }
        let mut text = Text { mended, lines, marks, crowd, remarks: Vec::new() };
        text.remarks.extend(guessed);
        for (remark, at) in remarks {
            text.remarks.push((remark, text.position(at)));
        }
        text
    }

    /// Returns what was mended that the author of the file should know, and where.
    pub(crate) fn remarks(&self) -> &[Remarked] {
        &self.remarks
    }

    /// Parses the elements: those of the file lie in the document's outermost one.
    pub(crate) fn parse(&self) -> Result<Document<'_>, At> {
        if let Some(at) = self.crowd {
            let (line, column) = self.position(at);
            let why = alloc::format!("an element has more than {ATTRIBUTES_MAX} attributes");
            return Err((FileProblem::NotXml { why }, line, column));
        }
        let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
        let document = Document::parse_with_options(&self.mended, options).map_err(|error| self.why(&error))?;
        if !document.root_element().has_children() || outermost(&document).next().is_none() {
            return Err((FileProblem::NotXml { why: "there is no element in the file".to_owned() }, 1, 1));
        }
        Ok(document)
    }

    fn why(&self, error: &Error) -> At {
        let position = error.pos();
        let why = match error {
            Error::UnexpectedCloseTag(_, found, _) if found == COLON => {
                // The end of the file is the nearest to where something is missing.
                "an element is still open at the end of the file; close it, as with `</node>`".to_owned()
            }
            Error::UnexpectedCloseTag(open, found, _) if open == COLON => {
                alloc::format!("`</{}>` closes no element; remove it", plain(found))
            }
            _ => {
                let text = error.to_string().replace(&alloc::format!(" at {position}"), "");
                plain(&text).into_owned()
            }
        };
        // The element around the file has a line of its own before it, and its end is not the file's.
        let last = self.position(self.mended.len() - mender::AFTER.len());
        let (line, column) = last.min((position.row.saturating_sub(1), position.col));
        (FileProblem::NotXml { why }, line, column)
    }

    /// Returns the line and the column of a byte.
    pub(crate) fn position(&self, at: usize) -> (u32, u32) {
        let line = self.lines.partition_point(|start| *start <= at);
        let column = self.characters_before(at) - self.characters_before(self.lines[line - 1]);
        (count(line - 1), count(column + 1))
    }

    fn characters_before(&self, at: usize) -> usize {
        let mark = at / STRETCH;
        self.marks[mark] + characters_in(&self.mended.as_bytes()[mark * STRETCH..at])
    }
}

/// Iterates over the outermost elements of a file: several, where its author did not stop at one.
pub(crate) fn outermost<'a>(document: &'a Document<'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    document.root_element().children().filter(Node::is_element)
}

/// Returns how many characters begin in some bytes of a text.
fn characters_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// Returns a name or a value as it stands in the file.
pub(crate) fn plain(value: &str) -> Cow<'_, str> {
    if value.is_ascii() {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.chars().map(mender::original).collect())
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
