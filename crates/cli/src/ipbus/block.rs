//! `hodo ipbus block` and `hodo ipbus fifo`: many words, at consecutive addresses or all at one.

use super::board::{counted, failed, open};
use super::forms::{Forms, To, one_for_stdout};
use super::grid::plain;
use super::values;
use crate::args::{Place, ReadBlock, Transfer, WriteBlock};
use crate::{Error, Outcome, terminal};
use hodo_ipbus_host::registers::{self as words, Block, Board, Form, Kind};
use hodo_ipbus_host::table::Mask;
use serde_json::json;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

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
    let mut board = open(&asked.device)?;
    let span = Block::of(&board, &asked.spot, place(&asked.place), kind)?;
    let count = asked
        .words
        .or(span.size)
        .ok_or_else(|| Error::Usage(format!("how many words of {}? say --words N", span.label.text())))?;
    let found = board.session.call(span.read(&asked.spot, count)).map_err(failed)?;
    forms.write(|| tsv(&span, &board, &found, asked.show.decimal), || document(&span, &board, &found))?;
    let stdout_is_taken = forms.take_stdout() || output.as_ref().is_some_and(To::is_stdout);
    let people = match &output {
        Some(output) => {
            output.write(&words::encode(&found, asked.form.into()))?;
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
        Some(file) => input(file, asked.form.into())?,
        None => asked.values.clone(),
    };
    let mut board = open(&asked.device)?;
    let span = Block::of(&board, &asked.spot, place(&asked.place), kind)?;
    let count = data.len();
    board.session.call(span.write(&asked.spot, data)).map_err(failed)?;
    terminal::print(&format!("{} to {} of {}\n", words_of(count), span.label.text(), board.called()))?;
    Ok(Outcome::Done)
}

fn tsv(span: &Block, board: &Board, found: &[u32], decimal: bool) -> String {
    let mut text = String::from("device\tnode\tindex\taddress\tvalue\n");
    let named = [board.called(), &span.label.node].map(plain).join("\t");
    for (index, word) in found.iter().enumerate() {
        let value = number(*word, decimal);
        let _ = writeln!(text, "{named}\t{index}\t0x{:08X}\t{value}", span.address(index));
    }
    text
}

fn document(span: &Block, board: &Board, found: &[u32]) -> serde_json::Value {
    json!({
        "schema": "hodo.ipbus-block/1",
        "device": super::board::document(board),
        "node": span.label.node_or_null(),
        "address": span.address(0),
        "mode": span.mode(),
        "values": found,
    })
}

fn place(place: &Place) -> (Option<u32>, bool) {
    (place.offset, place.configuration)
}

fn words_of(count: usize) -> String {
    counted(count, "word", "words")
}

fn number(word: u32, decimal: bool) -> String {
    values::number(word, Mask::ALL, decimal)
}

fn input(file: &Path, form: Form) -> Result<Vec<u32>, Error> {
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
