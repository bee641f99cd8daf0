//! Where text for people and for programs goes.

use crate::Error;
use hodo_machine::harmless_lines;
use hodo_report::Style;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Columns where there is no terminal to ask.
const WIDTH: usize = 160;

/// Writes text to standard output, as [`printable`]. A reader that has gone away, as `head` does, is no error.
pub fn print(text: &str) -> Result<(), Error> {
    print_bytes(printable(text).as_bytes())
}

/// Writes text as [`print()`] does, with its colours, as [`coloured`].
pub fn print_coloured(text: &str) -> Result<(), Error> {
    print_bytes(coloured(text).as_bytes())
}

/// Writes text as [`print()`] does. Returns `false` if its reader has gone away: a command that would go on without an end stops then.
pub fn print_to_reader(text: &str) -> Result<bool, Error> {
    let result = write_all(io::stdout().lock(), printable(text).as_bytes());
    let has_reader = !matches!(&result, Err(why) if why.kind() == io::ErrorKind::BrokenPipe);
    written("standard output", result).map(|()| has_reader)
}

/// Returns text that does nothing to a terminal but show: parts of it come from far ends and from files.
pub fn printable(text: &str) -> Cow<'_, str> {
    harmless_lines(text)
}

/// Returns text of this program likewise, with the colours that it has chosen: what comes from others in it is [`printable`] already.
pub fn coloured(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return printable(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\x1b') {
        let (before, sequence) = rest.split_at(at);
        let length = colour(sequence);
        shown.push_str(&printable(before));
        shown.push_str(&length.map_or_else(|| printable("\x1b"), |length| sequence[..length].into()));
        rest = &sequence[length.unwrap_or(1)..];
    }
    shown.push_str(&printable(rest));
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
    tell_bytes(printable(text).as_bytes(), stdout_is_taken)
}

/// Writes text for people as [`tell`] does, with its colours, as [`coloured`].
pub fn tell_coloured(text: &str, stdout_is_taken: bool) -> Result<(), Error> {
    tell_bytes(coloured(text).as_bytes(), stdout_is_taken)
}

fn tell_bytes(bytes: &[u8], stdout_is_taken: bool) -> Result<(), Error> {
    if stdout_is_taken { written("standard error", write_all(io::stderr().lock(), bytes)) } else { print_bytes(bytes) }
}

/// Writes a remark on standard error. It is lost if that cannot be written: the results do not depend on it.
pub fn remark(text: &str) {
    let _ = write_all(io::stderr().lock(), format!("hodo: {}\n", printable(text)).as_bytes());
}

/// Writes text on standard error as it is: the words of another program, which scripts may read.
#[cfg(feature = "pva")]
pub fn complain(text: &str) {
    let _ = write_all(io::stderr().lock(), format!("{}\n", printable(text)).as_bytes());
}

/// Returns the style of a table on the stream to which [`tell`] writes.
pub fn style(stdout_is_taken: bool) -> Style {
    let (is_terminal, size) = if stdout_is_taken {
        (io::stderr().is_terminal(), terminal_size::terminal_size_of(io::stderr()))
    } else {
        (io::stdout().is_terminal(), terminal_size::terminal_size_of(io::stdout()))
    };
    // https://no-color.org: set and not empty.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style { width: size.map_or(WIDTH, |(width, _)| usize::from(width.0)), color: is_terminal && !no_color }
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
    fn only_what_shows_reaches_the_terminal_and_colours_are_this_programs_own() {
        for text in ["", "a\tb\n", "déjà vu"] {
            assert_eq!((printable(text), coloured(text)), (text.into(), text.into()));
        }
        let own = "\x1b[1mbold\x1b[0m \x1b[38;5;9mred\x1b[m";
        assert_eq!(coloured(own), own);
        assert_eq!(printable("\x1b[31mred"), r"\u{1b}[31mred");
        for (text, shown) in [
            ("\x1b]0;title\x07", r"\u{1b}]0;title\u{7}"),
            ("\x1b[2J\x1b[H", r"\u{1b}[2J\u{1b}[H"),
            ("a\rb\u{9b}31mc\x7f", r"a\rb\u{9b}31mc\u{7f}"),
            ("\x1b[31", r"\u{1b}[31"),
            ("\u{202e}txt", r"\u{202e}txt"),
        ] {
            assert_eq!((printable(text), coloured(text)), (shown.into(), shown.into()));
        }
    }
}
