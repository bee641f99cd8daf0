//! `hodo ipbus block` and `hodo ipbus fifo`: many words, at consecutive addresses or all at one.

use super::board::{DeviceOptions, counted, failed, open};
use super::forms::{Forms, one_for_stdout};
use super::grid::plain;
use super::values::{self, ShowOptions};
use crate::output::Target;
use crate::{Error, Outcome, input, terminal};
use clap::{Args, Command, Subcommand, ValueEnum};
use hodo_ipbus_host::SessionError;
use hodo_ipbus_host::registers::{self as words, Block, Board, Kind, Spot, WORDS_MAX};
use hodo_ipbus_host::table::Mask;
use hodo_measure::units;
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Reads or writes the words.
pub fn run(options: &Transfer, kind: Kind) -> Result<Outcome, Error> {
    match options {
        Transfer::Read(options) => read(options, kind),
        Transfer::Write(options) => write(options, kind),
    }
}

fn read(options: &ReadBlockOptions, kind: Kind) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&options.show.forms)?;
    let output = options.output.as_deref().map(|file| Target::prepare("--output", file)).transpose()?;
    if forms.take_stdout() && output.as_ref().is_some_and(Target::is_stdout) {
        return Err(one_for_stdout());
    }
    let mut board = open(&options.device)?;
    let span = Block::of(&board, &options.spot, place(&options.place), kind)?;
    let count = options.words.or(span.size).ok_or_else(|| {
        Error::Usage(format!("the number of words of {} is not known; add --words N", span.label.text()))
    })?;
    let (found, error) = match board.session.call(span.read(&options.spot, count)) {
        Ok(found) => (found, None),
        // What was taken out of a FIFO is nowhere else any more.
        Err(SessionError::Failed(failure)) if !failure.taken.is_empty() => {
            (failure.taken.clone(), Some(SessionError::Failed(failure)))
        }
        Err(error) => return Err(failed(error)),
    };
    forms.write(|| tsv(&span, &board, &found, options.show.decimal), || document(&span, &board, &found))?;
    let stdout_is_taken = forms.take_stdout() || output.as_ref().is_some_and(Target::is_stdout);
    let people = match &output {
        Some(output) => {
            output.write(&words::encode(&found, options.form.into()))?;
            format!("{} of {} to {output}\n", words_of(found.len()), span.label.text())
        }
        None if options.show.values => {
            found.iter().map(|word| format!("{}\n", number(*word, options.show.decimal))).collect()
        }
        None => words::lines(&found, options.show.decimal, |index| span.place(index)),
    };
    terminal::tell(&people, stdout_is_taken)?;
    error.map_or(Ok(Outcome::Done), |error| Err(failed(error)))
}

fn write(options: &WriteBlockOptions, kind: Kind) -> Result<Outcome, Error> {
    let data = match &options.input {
        Some(file) => words_in(file, options.form.into())?,
        None => options.values.clone(),
    };
    let mut board = open(&options.device)?;
    let span = Block::of(&board, &options.spot, place(&options.place), kind)?;
    let count = data.len();
    board.session.call(span.write(&options.spot, data)).map_err(failed)?;
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

fn place(place: &PlaceOptions) -> (Option<u32>, bool) {
    (place.offset, place.configuration)
}

fn words_of(count: usize) -> String {
    counted(count, "word", "words")
}

fn number(word: u32, decimal: bool) -> String {
    values::number(word, Mask::ALL, decimal)
}

fn words_in(file: &Path, form: words::Form) -> Result<Vec<u32>, Error> {
    let wrong = |why: &dyn std::fmt::Display| Error::Usage(format!("--input {}: {why}", file.display()));
    let bytes = input::read(file, words::FILE_BYTES_MAX).map_err(|why| wrong(&why))?;
    words::decode(&bytes, form).map_err(|why| wrong(&why))
}

/// A bulk transfer.
#[derive(Debug, Subcommand)]
pub enum Transfer {
    /// Read words.
    Read(ReadBlockOptions),
    /// Write words.
    Write(WriteBlockOptions),
}

/// Hides the options that only blocks have; a user who gives one all the same gets an error.
pub fn of_one_address(transfer: Command) -> Command {
    let hidden =
        ["offset", "configuration"].into_iter().fold(transfer, |all, name| all.mut_arg(name, |arg| arg.hide(true)));
    hidden.mut_args(|arg| if arg.get_id() == "words" { arg.help("Number of words") } else { arg })
}

/// Words that are read.
#[derive(Debug, Args)]
pub struct ReadBlockOptions {
    /// The device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// A node by its path, or an address as 0x1000.
    #[arg(value_name = "NODE")]
    pub spot: Spot,
    /// Number of words [default: the whole block of a node].
    #[arg(short = 'n', long, value_name = "N", value_parser = word_count)]
    pub words: Option<u32>,
    /// Where the words are.
    #[command(flatten)]
    pub place: PlaceOptions,
    /// Write the words to this file; `-` is standard output.
    #[arg(long, value_name = "FILE", help_heading = "Words")]
    pub output: Option<PathBuf>,
    /// Format of the words in the file.
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    pub form: Form,
    /// How the values are shown.
    #[command(flatten)]
    pub show: ShowOptions,
}

/// Words that are written.
#[derive(Debug, Args)]
pub struct WriteBlockOptions {
    /// The device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// A node by its path, or an address as 0x1000.
    #[arg(value_name = "NODE")]
    pub spot: Spot,
    /// The words.
    #[arg(value_name = "VALUE", value_parser = units::word, required_unless_present = "input", conflicts_with = "input")]
    pub values: Vec<u32>,
    /// Where the words go.
    #[command(flatten)]
    pub place: PlaceOptions,
    /// Take the words from this file; `-` is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Words")]
    pub input: Option<PathBuf>,
    /// Format of the words in the file.
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    pub form: Form,
}

/// Where in a device a block is.
#[derive(Debug, Args)]
pub struct PlaceOptions {
    /// Offset in words from the start of a block.
    #[arg(long, value_name = "N", value_parser = units::word)]
    pub offset: Option<u32>,
    /// Access the configuration space, which has addresses only.
    #[arg(long, conflicts_with = "offset")]
    pub configuration: bool,
}

/// How words stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Form {
    /// Numbers, decimal or with 0x; written one per line.
    #[default]
    Text,
    /// Four bytes each, least significant first.
    Little,
    /// Four bytes each, most significant first.
    Big,
}

impl From<Form> for words::Form {
    fn from(form: Form) -> Self {
        match form {
            Form::Text => words::Form::Text,
            Form::Little => words::Form::Little,
            Form::Big => words::Form::Big,
        }
    }
}

fn word_count(text: &str) -> Result<u32, String> {
    let words = units::word(text)?;
    if (1..=WORDS_MAX).contains(&words) { Ok(words) } else { Err(format!("{text} is not in 1..={WORDS_MAX}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_a_bound() {
        assert_eq!(word_count("0x10"), Ok(16));
        assert!(word_count("0").unwrap_err().contains("1..=4194304"));
        assert!(word_count("4194305").is_err());
    }
}
