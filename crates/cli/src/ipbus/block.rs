//! `hodo ipbus block` and `hodo ipbus fifo`: many words, at consecutive addresses or all at one.

use super::board::{Board, Label, at, counted, failed};
use super::forms::{Forms, To, one_for_stdout};
use super::grid::plain;
use super::{values, words};
use crate::args::{self, Place, ReadBlock, Spot, Transfer, WriteBlock};
use crate::{Error, Outcome, terminal};
use hodo_catalog::ipbus::Access;
use hodo_catalog::ipbus::table::{Mask, Mode};
use serde_json::json;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Which of the two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Consecutive addresses, where a node says nothing else.
    Block,
    /// One address.
    Fifo,
}

/// Reads or writes the words.
pub fn run(asked: &Transfer, kind: Kind) -> Result<Outcome, Error> {
    match asked {
        Transfer::Read(asked) => read(asked, kind),
        Transfer::Write(asked) => write(asked, kind),
    }
}

fn read(asked: &ReadBlock, kind: Kind) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&asked.show.forms)?;
    let output = asked.output.as_deref().map(|file| To::prepare("--output", file)).transpose()?;
    if forms.take_stdout() && output.as_ref().is_some_and(To::is_stdout) {
        return Err(one_for_stdout());
    }
    let mut board = Board::open(&asked.device)?;
    let span = Span::of(&board, &asked.spot, &asked.place, kind)?;
    let count = asked
        .words
        .or(span.size)
        .ok_or_else(|| Error::Usage(format!("how many words of {}? say --words N", span.label.text())))?;
    let found = board.session.call(span.read(&asked.spot, count)).map_err(failed)?;
    forms.write(|| span.tsv(&board, &found, asked.show.decimal), || span.document(&board, &found))?;
    let stdout_is_taken = forms.take_stdout() || output.as_ref().is_some_and(To::is_stdout);
    let people = match &output {
        Some(output) => {
            output.write(&words::encode(&found, asked.form))?;
            format!("{} of {} to {output}\n", words_of(found.len()), span.label.text())
        }
        None if asked.show.values => {
            found.iter().map(|word| format!("{}\n", number(*word, asked.show.decimal))).collect()
        }
        None => words::lines(&found, asked.show.decimal, |index| span.place(index)),
    };
    terminal::tell(&people, stdout_is_taken)?;
    Ok(Outcome::Done)
}

fn write(asked: &WriteBlock, kind: Kind) -> Result<Outcome, Error> {
    let data = match &asked.input {
        Some(file) => input(file, asked.form)?,
        None => asked.values.clone(),
    };
    let mut board = Board::open(&asked.device)?;
    let span = Span::of(&board, &asked.spot, &asked.place, kind)?;
    let count = data.len();
    board.session.call(span.write(&asked.spot, data)).map_err(failed)?;
    terminal::print(&format!("{} to {} of {}\n", words_of(count), span.label.text(), board.called()))?;
    Ok(Outcome::Done)
}

/// Where the words are.
struct Span {
    label: Label,
    offset: Option<u32>,
    lies: Lies,
    /// How many there are, where the table says so.
    size: Option<u32>,
}

/// How they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lies {
    Apart,
    Together,
    Configured,
}

impl Span {
    fn of(board: &Board, spot: &Spot, place: &Place, kind: Kind) -> Result<Self, Error> {
        let wrong = |why: &str| Err(Error::Usage(why.to_owned()));
        let label = board.label(spot)?;
        let lies = if kind == Kind::Fifo { Lies::Together } else { Lies::Apart };
        let span = Span { label, offset: place.offset, lies, size: None };
        match spot {
            Spot::Bits(..) => wrong("a mask has no effect on many words; write the address alone"),
            Spot::Node(_) if place.configuration => {
                wrong("the configuration space has no nodes; write an address, as 0x0")
            }
            Spot::Node(path) => {
                let node = board.node(path)?;
                match (node.mode(), kind) {
                    (Mode::Incremental, Kind::Fifo) => {
                        wrong(&format!("node `{path}` is a block; use `hodo ipbus block`"))
                    }
                    (Mode::Incremental, Kind::Block) => match node.size().saturating_sub(place.offset.unwrap_or(0)) {
                        0 => wrong(&format!("node `{path}` has {} words; let --offset be below that", node.size())),
                        size => Ok(Span { size: Some(size.min(args::WORDS_MAX)), ..span }),
                    },
                    (mode, _) => Ok(Span { lies: Lies::Together, size: (mode == Mode::Single).then_some(1), ..span }),
                }
            }
            Spot::Address(_) if kind == Kind::Fifo && (place.configuration || place.offset.is_some()) => {
                wrong("a FIFO has one address: --offset and --configuration are of `hodo ipbus block`")
            }
            Spot::Address(_) if place.configuration => Ok(Span { lies: Lies::Configured, ..span }),
            Spot::Address(_) => Ok(span),
        }
    }

    fn read<'a>(&self, spot: &'a Spot, words: u32) -> Access<'a, Vec<u32>> {
        match (self.lies, self.offset) {
            (_, Some(offset)) => Access::read_block_at(at(spot), offset, words),
            (Lies::Configured, None) => Access::read_configuration(self.label.address, words),
            (Lies::Together, None) => Access::read_fifo(at(spot), words),
            (Lies::Apart, None) => Access::read_block(at(spot), words),
        }
    }

    fn write<'a>(&self, spot: &'a Spot, data: Vec<u32>) -> Access<'a, ()> {
        match (self.lies, self.offset) {
            (_, Some(offset)) => Access::write_block_at(at(spot), offset, data),
            (Lies::Configured, None) => Access::write_configuration(self.label.address, data),
            (Lies::Together, None) => Access::write_fifo(at(spot), data),
            (Lies::Apart, None) => Access::write_block(at(spot), data),
        }
    }

    /// The address of a word.
    fn address(&self, index: usize) -> u32 {
        let first = self.label.address.wrapping_add(self.offset.unwrap_or(0));
        if self.lies == Lies::Together { first } else { first.wrapping_add(index as u32) }
    }

    /// What stands before a line: the address, or of what has one only the number.
    fn place(&self, index: usize) -> String {
        if self.lies == Lies::Together { format!("{index:>10}") } else { format!("0x{:08X}", self.address(index)) }
    }

    fn tsv(&self, board: &Board, found: &[u32], decimal: bool) -> String {
        let mut text = String::from("device\tnode\tindex\taddress\tvalue\n");
        let named = [board.called(), &self.label.node].map(plain).join("\t");
        for (index, word) in found.iter().enumerate() {
            let value = number(*word, decimal);
            let _ = writeln!(text, "{named}\t{index}\t0x{:08X}\t{value}", self.address(index));
        }
        text
    }

    fn document(&self, board: &Board, found: &[u32]) -> serde_json::Value {
        json!({
            "schema": "hodo.ipbus-block/1",
            "device": board.document(),
            "node": self.label.node_or_null(),
            "address": self.address(0),
            "mode": match self.lies {
                Lies::Apart => "incremental",
                Lies::Together => "non-incremental",
                Lies::Configured => "configuration",
            },
            "values": found,
        })
    }
}

fn words_of(count: usize) -> String {
    counted(count, "word", "words")
}

fn number(word: u32, decimal: bool) -> String {
    values::number(word, Mask::ALL, decimal)
}

fn input(file: &Path, form: args::Form) -> Result<Vec<u32>, Error> {
    let wrong = |why: &dyn std::fmt::Display| Error::Usage(format!("--input {}: {why}", file.display()));
    let mut bytes = Vec::new();
    let read = if file.as_os_str() == "-" {
        io::stdin().take(words::FILE_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|open| open.take(words::FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    read.map_err(|why| wrong(&why))?;
    if bytes.len() as u64 > words::FILE_BYTES_MAX {
        return Err(wrong(&format!("it is over {} bytes", words::FILE_BYTES_MAX)));
    }
    words::decode(&bytes, form).map_err(|why| wrong(&why))
}
