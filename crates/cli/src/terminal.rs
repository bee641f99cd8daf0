//! Where text for people and for programs goes.

use crate::Error;
use hodo_report::Style;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Columns where there is no terminal to ask.
const WIDTH: usize = 160;

/// Writes text to standard output, as [`printable`]. A reader that has gone away, as `head` does, is no error.
pub fn print(text: &str) -> Result<(), Error> {
    print_bytes(printable(text).as_bytes())
}

/// Writes text as [`print()`] does. Returns `false` if its reader has gone away: a command that would go on without an end stops then.
#[cfg(feature = "spacewire")]
pub fn print_to_reader(text: &str) -> Result<bool, Error> {
    let result = write_all(io::stdout().lock(), printable(text).as_bytes());
    let has_reader = !matches!(&result, Err(why) if why.kind() == io::ErrorKind::BrokenPipe);
    written("standard output", result).map(|()| has_reader)
}

/// Returns text that does nothing to a terminal but show, in colours at most: parts of it come from far ends and from files.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(is_plain) {
        return text.into();
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let length = match colour(rest) {
            Some(length) => length,
            None => c.len_utf8(),
        };
        let is_shown = length > c.len_utf8() || is_plain(c);
        shown.push_str(if is_shown { &rest[..length] } else { "\u{FFFD}" });
        rest = &rest[length..];
    }
    shown.into()
}

/// Returns the length of the sequence in front of the text that chooses a colour, if there is one.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(end + 3)
}

/// Writes bytes to standard output.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Error> {
    written("standard output", write_all(io::stdout().lock(), bytes))
}

/// Writes text for people: to standard error where standard output is a program's.
pub fn tell(text: &str, stdout_is_taken: bool) -> Result<(), Error> {
    if stdout_is_taken {
        written("standard error", write_all(io::stderr().lock(), printable(text).as_bytes()))
    } else {
        print(text)
    }
}

/// Writes a remark on standard error. It is lost if that cannot be written: the results do not depend on it.
pub fn remark(text: &str) {
    let _ = write_all(io::stderr().lock(), format!("hodo: {}\n", printable(text)).as_bytes());
}

/// Returns the style of a table on the stream to which [`tell`] writes.
pub fn style(stdout_is_taken: bool) -> Style {
    let is_terminal = if stdout_is_taken { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    // https://no-color.org: set and not empty.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style { width: columns(stdout_is_taken).unwrap_or(WIDTH), color: is_terminal && !no_color }
}

/// Returns the columns of the terminal to which [`tell`] writes, if it is one.
pub fn columns(stdout_is_taken: bool) -> Option<usize> {
    let size = if stdout_is_taken {
        terminal_size::terminal_size_of(io::stderr())
    } else {
        terminal_size::terminal_size_of(io::stdout())
    };
    size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}

/// Returns sentences for [`tell`], each from a new line on, broken at spaces where a terminal would break them within words.
pub fn sentences<'a>(all: impl IntoIterator<Item = &'a str>, stdout_is_taken: bool) -> String {
    let width = columns(stdout_is_taken).unwrap_or(usize::MAX);
    all.into_iter().map(|sentence| paragraph("", sentence, width)).collect()
}

/// Returns text behind a beginning, broken at spaces, with the following lines indented as far.
pub fn paragraph(begin: &str, text: &str, width: usize) -> String {
    let indent = begin.trim_start_matches('\n').chars().count();
    let lines = hodo_report::wrap(text, width.saturating_sub(indent));
    format!("{begin}{}\n", lines.join(&format!("\n{:indent$}", "")))
}

fn write_all(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

fn written(to: &str, result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Failed(format!("{to} cannot be written: {why}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_colours_reaches_the_terminal() {
        for text in ["", "a\tb\n", "déjà vu", "\x1b[1mbold\x1b[0m \x1b[38;5;9mred\x1b[m"] {
            assert_eq!(printable(text), text);
        }
        for (text, shown) in [
            ("\x1b]0;title\x07", "\u{FFFD}]0;title\u{FFFD}"),
            ("\x1b[2J\x1b[H", "\u{FFFD}[2J\u{FFFD}[H"),
            ("a\rb\u{9b}31mc\x7f", "a\u{FFFD}b\u{FFFD}31mc\u{FFFD}"),
            ("\x1b[31", "\u{FFFD}[31"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
