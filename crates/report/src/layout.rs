//! Lays out columns of text: those that fit, their widths and colours.

use crate::units::UNKNOWN;

/// The side that a column's cells touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The meaning of a piece of text, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Title,
    Quiet,
    Good,
    Doubtful,
    Bad,
}

impl Tone {
    /// Returns the text with this tone's colour around it.
    pub(crate) fn paint(self, text: &str, color: bool) -> String {
        let code = match self {
            Tone::Plain => return text.into(),
            _ if !color => return text.into(),
            Tone::Title => "1",
            Tone::Quiet => "2",
            Tone::Good => "32",
            Tone::Doubtful => "33",
            Tone::Bad => "31",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub text: String,
    pub tone: Tone,
    /// The number that the page sorts by; cells without one are sorted by their text.
    pub sort: Option<f64>,
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, tone: Tone::Plain, sort: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        text.to_owned().into()
    }
}

/// One column with its two lines of heading.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub head: [&'static str; 2],
    pub align: Align,
    /// The rank among columns that do not all fit: the one with the lowest goes first.
    pub keep: u8,
    pub cells: Vec<Cell>,
}

impl Column {
    fn is_known(&self) -> bool {
        self.cells.iter().any(|cell| !matches!(cell.text.as_str(), "" | UNKNOWN))
    }

    fn width(&self) -> usize {
        let heads = self.head.iter().map(|head| head.chars().count());
        let cells = self.cells.iter().map(|cell| cell.text.chars().count());
        heads.chain(cells).max().unwrap_or(0)
    }
}

const INDENT: usize = 2;
const GAP: usize = 2;

/// Leaves out columns in which nothing is known.
pub(crate) fn known(mut columns: Vec<Column>) -> Vec<Column> {
    columns.retain(Column::is_known);
    columns
}

/// Leaves out columns in which nothing is known, then the least important ones until the rest fits into the width.
pub(crate) fn fit(columns: Vec<Column>, width: usize) -> Vec<Column> {
    fit_all(vec![columns], width).pop().unwrap_or_default()
}

/// Fits blocks, which have the same columns, to a width, so that they still have the same columns afterwards. A column stays where one
/// block knows something in it, and is as important as the block says to which it is most.
pub(crate) fn fit_all(mut blocks: Vec<Vec<Column>>, width: usize) -> Vec<Vec<Column>> {
    let count = blocks.iter().map(Vec::len).min().unwrap_or(0);
    let is_known = |place: &usize| blocks.iter().any(|block| block[*place].is_known());
    let mut places: Vec<usize> = (0..count).filter(is_known).collect();
    let keep = |place: usize| blocks.iter().map(|block| block[place].keep).max();
    let fits = |places: &[usize]| blocks.iter().all(|block| total(places.iter().map(|place| &block[*place])) <= width);
    while places.len() > 3 && !fits(&places) {
        let least = (0..places.len()).min_by_key(|at| keep(places[*at])).unwrap_or(0);
        places.remove(least);
    }
    for block in &mut blocks {
        let mut place = 0;
        block.retain(|_| {
            place += 1;
            places.contains(&(place - 1))
        });
    }
    blocks
}

/// Draws the columns with their headings, a line end after each row.
pub(crate) fn render(columns: &[Column], color: bool) -> String {
    render_with(columns, &[], color)
}

/// Draws the columns as [`render`] does, with these lines under the rows.
pub(crate) fn render_with(columns: &[Column], under: &[String], color: bool) -> String {
    let mut text = String::new();
    for line in 0..2 {
        if columns.iter().all(|column| column.head[line].is_empty()) {
            continue;
        }
        let head: Vec<Cell> = columns.iter().enumerate().map(|(at, _)| heading(columns, at, line).into()).collect();
        let cells: Vec<&Cell> = head.iter().collect();
        text.push_str(&Tone::Quiet.paint(&row(columns, &cells, false), color));
        text.push('\n');
    }
    for place in 0..columns.first().map_or(0, |column| column.cells.len()) {
        let cells: Vec<&Cell> = columns.iter().map(|column| &column.cells[place]).collect();
        text.push_str(&row(columns, &cells, color));
        text.push('\n');
        text.push_str(under.get(place).map_or("", String::as_str));
    }
    text
}

/// Breaks a sentence into lines at spaces; a word longer than the width stays whole.
#[must_use]
pub fn wrap(sentence: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.into());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Replaces characters of a name that could move the cursor or break the line.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

/// Returns a heading; one that neighbours share is written over the first of them only.
fn heading(columns: &[Column], place: usize, line: usize) -> &'static str {
    let head = columns[place].head[line];
    let repeated = line == 0 && place > 0 && columns[place - 1].head[0] == head;
    if repeated { "" } else { head }
}

fn total<'a>(columns: impl Iterator<Item = &'a Column>) -> usize {
    INDENT + columns.map(|column| column.width() + GAP).sum::<usize>().saturating_sub(GAP)
}

fn row(columns: &[Column], cells: &[&Cell], color: bool) -> String {
    let mut text = " ".repeat(INDENT);
    for (place, (column, cell)) in columns.iter().zip(cells).enumerate() {
        let fill = " ".repeat(column.width().saturating_sub(cell.text.chars().count()));
        let painted = cell.tone.paint(&cell.text, color);
        let last = place + 1 == columns.len();
        text.push_str(&match column.align {
            Align::Right => format!("{fill}{painted}"),
            Align::Left if last => painted,
            Align::Left => format!("{painted}{fill}"),
        });
        if !last {
            text.push_str(&" ".repeat(GAP));
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(head: [&'static str; 2], keep: u8, cells: &[&str]) -> Column {
        Column { head, align: Align::Right, keep, cells: cells.iter().map(|cell| (*cell).into()).collect() }
    }

    #[test]
    fn leaves_out_the_least_important_first() {
        let columns = vec![
            column(["", "a"], 9, &["1"]),
            column(["", "wide column"], 1, &["2"]),
            column(["", "b"], 9, &["3"]),
            column(["", "c"], 9, &["4"]),
        ];
        assert_eq!(render(&fit(columns.clone(), 80), false), "  a  wide column  b  c\n  1            2  3  4\n");
        assert_eq!(render(&fit(columns, 20), false), "  a  b  c\n  1  3  4\n");
    }

    #[test]
    fn wraps_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible yes", 7), ["incomprehensible", "yes"]);
    }
}
