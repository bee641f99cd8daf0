//! The whole screen of a terminal, for views that change: five escape sequences, and no more.

use crate::{Error, terminal};

/// Rows and columns of a terminal that does not say.
const SIZE: (usize, usize) = (24, 80);
/// The other screen without a cursor, and back; to the first place; the rest of a line, and of the screen, is empty.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const END_OF_LINE: &str = "\x1b[K\n";
const END_OF_SCREEN: &str = "\x1b[J";

/// The screen, which is as it was before once this is dropped.
#[derive(Debug)]
pub struct Screen {
    /// The picture that it shows.
    shown: String,
}

impl Screen {
    /// Takes the screen.
    pub fn enter() -> Result<Self, Error> {
        terminal::print_bytes(ENTER.as_bytes())?;
        Ok(Screen { shown: String::new() })
    }

    /// Shows a text in place of the last one, as far as there is room. Nothing is sent for the same one.
    pub fn show(&mut self, text: &str) -> Result<(), Error> {
        let (rows, columns) = size();
        let text = terminal::printable(text);
        let lines: String = text.lines().take(rows - 1).map(|line| cut(line, columns) + END_OF_LINE).collect();
        let picture = format!("{HOME}{lines}{END_OF_SCREEN}");
        if picture == self.shown {
            return Ok(());
        }
        self.shown = picture;
        terminal::print_bytes(self.shown.as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // One that is gone needs nothing.
        let _ = terminal::print_bytes(LEAVE.as_bytes());
    }
}

/// Returns the rows of the screen, and the columns that a line may have without wrapping.
pub fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    let (rows, columns) = size.map_or(SIZE, |(width, height)| (usize::from(height.0), usize::from(width.0)));
    (rows.max(1), columns.saturating_sub(1))
}

/// Returns a line of at most so many columns: a longer one would take two rows, and move the others. Colours take none.
fn cut(line: &str, columns: usize) -> String {
    let (mut left, mut is_colour) = (columns, false);
    let fits = |c: &char| {
        let is_part = is_colour || *c == '\x1b';
        is_colour = is_part && *c != 'm';
        if is_part {
            return true;
        }
        let has_room = left > 0;
        left = left.saturating_sub(1);
        has_room
    };
    line.chars().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn colours_take_no_room() {
        assert_eq!(cut("abc", 2), "ab");
        assert_eq!(cut("a\x1b[31mbc\x1b[0m", 2), "a\x1b[31mb\x1b[0m");
        assert_eq!(cut("", 0), "");
    }
}
