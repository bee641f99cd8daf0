//! Values from a file of JSON lines, one value a line, as `hodo pva monitor -M json` prints them.

use super::file::PvTable;
use crate::machines::data::SetError;
use crate::machines::{BitSet, Item, Value};
use crate::parse;
use crate::replay::PAUSE;
use crate::server::now;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Values that a file may have.
const LINES_MAX: usize = 1_000_000;
/// The least time between two values, so that a file without time stamps is not played at once.
const LEAST: Duration = Duration::from_millis(1);

/// The values of a file, and how far they have been played.
#[derive(Clone)]
pub struct Replay {
    values: Arc<[(Value, Duration)]>,
    at: usize,
    repeats: bool,
    keeps_stamps: bool,
}

impl Replay {
    /// Reads the file of a table.
    ///
    /// # Errors
    /// A sentence with the file, the line and the mistake.
    pub fn of(table: &PvTable, first: &Value, folder: &Path) -> Result<Self, String> {
        let file = table.file.as_ref().ok_or("file: a replay has one; write file = \"values.jsonl\"")?;
        let file = folder.join(file);
        let name = file.display();
        if table.recorded.is_some() {
            return Err(format!("recorded: {name} is no recording, whose name would end in .parquet; leave it out"));
        }
        let text = hodo_io::files::read_text(&file).map_err(|why| format!("file: {name} cannot be read: {why}"))?;
        let mut read: Vec<(Value, Option<f64>)> = Vec::new();
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            if read.len() == LINES_MAX {
                return Err(format!("file: {name} has more than {LINES_MAX} values; divide it"));
            }
            let mut value = Value::new(first.plan());
            parse::json(&mut value, "", text).map_err(|why| format!("file: {name}:{line}: {why}"))?;
            let at = stamped_at(&value);
            read.push((value, at));
        }
        if read.is_empty() {
            return Err(format!("file: {name} has no values; write one in JSON on each line"));
        }
        let gap = |at: usize| {
            let (this, next) = (read[at].1?, read.get(at + 1)?.1?);
            Some(Duration::try_from_secs_f64(next - this).unwrap_or_default().max(LEAST))
        };
        let gaps: Vec<Duration> = (0..read.len()).map(|at| table.every.or_else(|| gap(at)).unwrap_or(PAUSE)).collect();
        let values = read.into_iter().map(|(value, _)| value).zip(gaps).collect();
        Ok(Replay { values, at: 0, repeats: table.repeat.unwrap_or(true), keeps_stamps: table.stamps.keeps() })
    }

    /// Tells whether another one plays the same values at the same times.
    #[must_use]
    pub fn is_same(&self, other: &Replay) -> bool {
        self.repeats == other.repeats && self.keeps_stamps == other.keeps_stamps && self.values == other.values
    }

    /// Sets the next value; returns after which time the next but one is due, or `None` if this was the last. It is stamped with the
    /// time at which it is played, unless stamps are kept.
    ///
    /// # Errors
    /// A [`SetError`] if the value cannot hold it, which reading the file has ruled out.
    pub fn next(&mut self, value: &mut Value) -> Result<Option<Duration>, SetError> {
        let Some((next, gap)) = self.values.get(self.at) else { return Ok(None) };
        value.merge(next, next.changed(), &mut BitSet::new());
        if value.time_stamp().is_some() && !self.keeps_stamps {
            value.set_time_stamp(now())?;
        }
        self.at += 1;
        if self.at == self.values.len() && self.repeats {
            self.at = 0;
        }
        Ok((self.at < self.values.len()).then_some(*gap))
    }
}

/// Returns when a value was taken, in seconds, if it says so.
fn stamped_at(value: &Value) -> Option<f64> {
    value.plan().number("timeStamp").filter(|number| value.has_changed(*number))?;
    let [seconds, nanoseconds] =
        ["timeStamp.secondsPastEpoch", "timeStamp.nanoseconds"].map(|path| value.get(path).and_then(Item::as_f64));
    Some(seconds? + nanoseconds? * 1e-9)
}
