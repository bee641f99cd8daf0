//! Rows and columns, for people and for spreadsheets.

use std::fmt::Write;

/// Named columns.
#[derive(Debug, Default)]
pub struct Grid {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// Creates a grid without rows.
    pub fn new(head: &[&'static str]) -> Self {
        Grid { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| plain(&cell)).collect());
    }

    /// Returns the grid without one column.
    pub fn without(&self, name: &str) -> Self {
        let kept: Vec<usize> = (0..self.head.len()).filter(|column| self.head[*column] != name).collect();
        let rows = self.rows.iter().map(|row| kept.iter().map(|column| row[*column].clone()).collect());
        Grid { head: kept.iter().map(|column| self.head[*column]).collect(), rows: rows.collect() }
    }

    /// Returns the grid as tab-separated text, one line per row.
    pub fn tsv(&self) -> String {
        let mut text = self.head.join("\t");
        for row in &self.rows {
            text.push('\n');
            text.push_str(&row.join("\t"));
        }
        text.push('\n');
        text
    }

    /// Columns side by side, without those that are empty.
    pub fn table(&self) -> String {
        let widths: Vec<usize> = (0..self.head.len()).map(|column| self.width(column)).collect();
        let mut text = String::new();
        let head: Vec<String> = self.head.iter().map(ToString::to_string).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
                let _ = write!(line, "{cell:width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Returns the width of a column; 0 for an empty one.
    fn width(&self, column: usize) -> usize {
        let widest = self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        if widest == 0 && !self.rows.is_empty() { 0 } else { widest.max(self.head[column].len()) }
    }
}

/// Returns a text of a user's file without the characters that would break a line, or set the terminal's colours.
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(&["node", "mask", "value"]);
        grid.row(["é\u{1b}[1m".to_owned(), String::new(), "0x1".to_owned()]);
        grid.row(["daq.ctrl".to_owned(), String::new(), String::new()]);
        grid
    }

    #[test]
    fn an_empty_column_is_for_spreadsheets_only() {
        assert_eq!(grid().table(), "node      value\né [1m     0x1\ndaq.ctrl\n");
        assert_eq!(grid().tsv(), "node\tmask\tvalue\né [1m\t\t0x1\ndaq.ctrl\t\t\n");
        assert_eq!(grid().without("node").tsv(), "mask\tvalue\n\t0x1\n\t\n");
        assert_eq!(Grid::new(&["a", "bc"]).table(), "a  bc\n");
    }
}
