//! The history of a watched link: a file of so many rows, the oldest of which are dropped.

use crate::bench::row_line;
use crate::{Error, input};
use hodo_measure::Document;
use hodo_tester::OutputFile;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The file, in one of two forms.
pub struct History {
    file: OutputFile,
    is_tsv: bool,
    /// Whether it can be read and replaced; what is no plain file is only appended to.
    is_plain: bool,
    /// Rows that are kept at least; a quarter more before the oldest are dropped.
    keep: usize,
    rows: usize,
}

impl History {
    /// Opens a history, which continues one that is there: tab-separated if the name ends in `.tsv`, otherwise a line of JSON for each row.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file cannot be written, or is no such history.
    pub fn open(path: &Path, keep: usize) -> Result<History, Error> {
        let file = OutputFile::of_option("--history", path)?;
        let is_tsv = path.extension().is_some_and(|form| form == "tsv");
        let is_plain = !fs::metadata(path).is_ok_and(|found| !found.is_file());
        let mut history = History { file, is_tsv, is_plain, keep, rows: 0 };
        if !is_plain {
            return Ok(history);
        }
        let cannot = |why: &str| Error::Usage(format!("--history {}: {why}", path.display()));
        let text = match input::read_own(path) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => String::new(),
            Err(why) => return Err(cannot(&format!("this file cannot be read: {why}"))),
        };
        let mut rows: Vec<&str> = text.split_inclusive('\n').collect();
        if rows.last().is_some_and(|row| !row.ends_with('\n')) {
            // A program that was killed has left a part of a row.
            rows.pop();
        }
        if history.is_tsv && !rows.is_empty() && rows.remove(0).trim_end() != hodo_report::COLUMNS.join("\t") {
            return Err(cannot("this file has other columns; name another one"));
        }
        if !history.is_tsv && rows.first().is_some_and(|row| !row.starts_with('{')) {
            return Err(cannot("this file is no history of JSON lines; name another one, or FILE.tsv"));
        }
        history.write(&rows).map_err(|why| cannot(&format!("this file cannot be written: {why}")))?;
        Ok(history)
    }

    /// Appends the rows of a round.
    ///
    /// # Errors
    /// The system's error if they cannot be written.
    pub fn append(&mut self, round: &Document) -> io::Result<()> {
        let text = self.text(round);
        OpenOptions::new().append(true).open(self.file.path())?.write_all(text.as_bytes())?;
        self.rows += round.measurements.len();
        if self.is_plain && self.rows > self.keep + self.keep / 4 {
            let text = input::read_own(self.file.path())?;
            let rows: Vec<&str> = text.split_inclusive('\n').skip(usize::from(self.is_tsv)).collect();
            self.write(&rows)?;
        }
        Ok(())
    }

    /// Replaces the file by the latest of these rows.
    fn write(&mut self, rows: &[&str]) -> io::Result<()> {
        let rows = &rows[rows.len().saturating_sub(self.keep)..];
        let head = if self.is_tsv { format!("{}\n", hodo_report::COLUMNS.join("\t")) } else { String::new() };
        self.rows = rows.len();
        self.file.write(format!("{head}{}", rows.concat()).as_bytes())
    }

    fn text(&self, round: &Document) -> String {
        if self.is_tsv {
            let text = hodo_report::tsv(round);
            return text.split_once('\n').map_or_else(String::new, |(_, rows)| rows.to_owned());
        }
        let started = round.environment.started.as_deref();
        round.measurements.iter().map(|row| format!("{}\n", row_line(started, row))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_measure::{Mode, Plan, State, Verdict};
    use hodo_tester::PrivateDir;

    fn round(rows: u64) -> Document {
        let verdict = Verdict { state: State::Stable, text: "stable".into() };
        let mut document = hodo_tester::document(None, Vec::new());
        document.measurements = (0..rows)
            .map(|seed| {
                let mut row = Plan::one(Mode::Both, 64).unmeasured("tcp", "tcp://there", verdict.clone());
                row.seed = seed;
                row
            })
            .collect();
        document
    }

    fn lines(path: &Path) -> Vec<String> {
        fs::read_to_string(path).expect("a file").lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_oldest_rows_are_dropped() {
        let dir = PrivateDir::make().expect("a folder");
        for (name, heads) in [("a.tsv", 1), ("a.jsonl", 0)] {
            let path = dir.path().join(name);
            let mut history = History::open(&path, 8).expect("it can be written");
            (0..10).for_each(|_| history.append(&round(2)).expect("it is written"));
            let rows = lines(&path).len() - heads;
            assert!((8..=10).contains(&rows), "{name}: {rows}");
        }
    }

    #[test]
    fn a_history_is_continued_without_the_row_that_was_cut_short() {
        let dir = PrivateDir::make().expect("a folder");
        let path = dir.path().join("a.jsonl");
        History::open(&path, 100).expect("a history").append(&round(3)).expect("written");
        let whole = fs::read_to_string(&path).expect("a file");
        fs::write(&path, &whole[..whole.len() - 9]).expect("written");
        let mut history = History::open(&path, 100).expect("a history");
        history.append(&round(1)).expect("written");
        let lines = lines(&path);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    }

    #[test]
    fn a_file_of_something_else_is_left_alone() {
        let dir = PrivateDir::make().expect("a folder");
        for name in ["a.tsv", "a.jsonl"] {
            let path = dir.path().join(name);
            fs::write(&path, "dear diary\n").expect("written");
            assert!(matches!(History::open(&path, 8), Err(Error::Usage(_))), "{name}");
            assert_eq!(fs::read_to_string(&path).expect("a file"), "dear diary\n");
        }
    }
}
