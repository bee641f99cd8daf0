//! Where text for people and for programs goes.

use crate::Error;
use hodo_report::Style;
use std::io::{self, IsTerminal, Write};

/// Columns where there is no terminal to ask.
const WIDTH: usize = 160;

/// Writes text to standard output. A reader that has gone away, as `head` does, is no error.
pub fn print(text: &str) -> Result<(), Error> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Error> {
    written("standard output", write_all(io::stdout().lock(), bytes))
}

/// Writes text for people: to standard error where standard output is a program's.
pub fn tell(text: &str, stdout_is_taken: bool) -> Result<(), Error> {
    if stdout_is_taken {
        written("standard error", write_all(io::stderr().lock(), text.as_bytes()))
    } else {
        print(text)
    }
}

/// Writes a remark on standard error. It is lost if that cannot be written: the results do not depend on it.
pub fn remark(text: &str) {
    let _ = write_all(io::stderr().lock(), format!("hodo: {text}\n").as_bytes());
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
