//! Recordings that are served again, with their timing: `hodo pva replay`.

use crate::machines::Value;
use crate::record::{COLUMNS, Row, SUMMARY, Shape, Summary};
use crate::server::{PostError, Pv, Pvs, now};
use hodo_io::{Clock, Stop};
use hodo_machine::Instant;
use hodo_store::Error;
use hodo_store::table::TableReader;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest sleep, after which it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long an update waits for room among those of its PV; then it is merged into the last one.
const PATIENCE: Duration = Duration::from_secs(1);

/// How a recording is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayOptions {
    /// How much faster than it was recorded.
    pub speed: f64,
    /// Whether it begins again at its end.
    pub repeats: bool,
    /// Whether time stamps are those of the recording; otherwise they say when an update is played.
    pub keeps_stamps: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions { speed: 1.0, repeats: false, keeps_stamps: false }
    }
}

/// Totals of what was played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Updates.
    pub updates: u64,
    /// Updates that were merged into others, because the server did not keep up.
    pub merged: u64,
}

/// A PV that is played.
struct Played {
    pv: Pv,
    type_text: Vec<u8>,
    shape: Shape,
    value: Value,
}

/// A recording, whose PVs are served.
pub struct Player {
    files: Vec<PathBuf>,
    pvs: Pvs,
    played: HashMap<String, Played>,
    began_ns: i64,
    ended_ns: i64,
    updates: u64,
}

impl Player {
    /// Reads which PVs a file, or a folder of files, has, and serves each with its first value.
    ///
    /// # Errors
    /// A sentence with the file and the reason.
    pub fn open(path: &Path, pvs: &Pvs) -> Result<Self, String> {
        let mut player = Player {
            files: files(path)?,
            pvs: pvs.clone(),
            played: HashMap::new(),
            began_ns: i64::MAX,
            ended_ns: i64::MIN,
            updates: 0,
        };
        for file in player.files.clone() {
            player.look_into(&file)?;
        }
        if player.played.is_empty() {
            return Err(format!("{} has no updates", path.display()));
        }
        Ok(player)
    }

    /// Returns the number of PVs.
    #[must_use]
    pub fn pvs(&self) -> usize {
        self.played.len()
    }

    /// Returns the number of updates.
    #[must_use]
    pub const fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns the time from the first to the last update.
    #[must_use]
    pub fn span(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.ended_ns.saturating_sub(self.began_ns)).unwrap_or(0))
    }

    /// Serves the PVs that a file is the first to have.
    fn look_into(&mut self, file: &Path) -> Result<(), String> {
        let failed = |why: Error| why.to_string();
        let mut summaries = TableReader::open(file, SUMMARY).map_err(failed)?;
        let mut all = TableReader::open(file, COLUMNS).map_err(failed)?;
        while let Some(batch) = summaries.next_batch().map_err(failed)? {
            let mut has_new = false;
            for row in batch.rows() {
                let row = Summary::of(&row);
                let row = row.ok_or_else(|| format!("{}: a row has no PV or no time", file.display()))?;
                if row.is_update {
                    self.began_ns = self.began_ns.min(row.arrived_ns);
                    self.ended_ns = self.ended_ns.max(row.arrived_ns);
                    self.updates += 1;
                    has_new |= std::str::from_utf8(&row.pv).is_ok_and(|name| !self.played.contains_key(name));
                }
            }
            if !has_new {
                all.skip();
                continue;
            }
            let batch = all.next_batch().map_err(failed)?;
            for row in batch.iter().flat_map(hodo_store::table::Batch::rows).map(Row).filter(Row::is_update) {
                if !self.played.contains_key(row.pv()) {
                    self.serve(&row).map_err(|why| format!("{}: {}: {why}", file.display(), row.pv()))?;
                }
            }
        }
        Ok(())
    }

    /// Serves a PV with the value of a row, in place of one of another type.
    fn serve(&mut self, row: &Row<'_>) -> Result<(), String> {
        let shape = Shape::parse(row.type_text()).ok_or_else(|| format!("{:?} is no type", row.type_text()))?;
        let mut value = Value::new(shape.plan());
        row.fill(&shape, &mut value)?;
        let pv = self.pvs.pv(row.pv(), value.clone()).serve();
        let type_text = row.type_text().as_bytes().to_vec();
        self.played.insert(row.pv().to_owned(), Played { pv, type_text, shape, value });
        Ok(())
    }

    /// Posts all updates when they are due, until the end or until `stop` is set.
    ///
    /// # Errors
    /// A sentence with the file and the reason.
    pub fn run(&mut self, options: &ReplayOptions, stop: &Stop) -> Result<Replayed, String> {
        let clock = Clock::start();
        let mut replayed = Replayed::default();
        loop {
            let start = clock.now();
            for file in self.files.clone() {
                self.play(&file, &clock, start, options, stop, &mut replayed)?;
            }
            if !options.repeats || stop.load(Ordering::Relaxed) {
                return Ok(replayed);
            }
        }
    }

    fn play(
        &mut self,
        file: &Path,
        clock: &Clock,
        start: Instant,
        options: &ReplayOptions,
        stop: &Stop,
        replayed: &mut Replayed,
    ) -> Result<(), String> {
        let failed = |why: Error| why.to_string();
        let mut reader = TableReader::open(file, COLUMNS).map_err(failed)?;
        while let Some(batch) = reader.next_batch().map_err(failed)? {
            for row in batch.rows().map(Row).filter(Row::is_update) {
                let after = u64::try_from(row.arrived_ns().saturating_sub(self.began_ns)).unwrap_or(0);
                let after = Duration::try_from_secs_f64(after as f64 * 1e-9 / options.speed).unwrap_or(Duration::MAX);
                if !wait(clock, start + after, stop) {
                    return Ok(());
                }
                let is_merged =
                    self.post(&row, options).map_err(|why| format!("{}: {}: {why}", file.display(), row.pv()))?;
                replayed.updates += 1;
                replayed.merged += u64::from(is_merged);
            }
        }
        Ok(())
    }

    /// Posts an update; returns whether it was merged into another.
    fn post(&mut self, row: &Row<'_>, options: &ReplayOptions) -> Result<bool, String> {
        let is_same = |played: &Played| played.type_text == row.type_text().as_bytes();
        if !self.played.get(row.pv()).is_some_and(is_same) {
            self.serve(row)?;
        }
        let Some(Played { pv, shape, value, .. }) = self.played.get_mut(row.pv()) else { return Ok(false) };
        row.fill(shape, value)?;
        if let Some(stamp) = value.time_stamp().filter(|_| !options.keeps_stamps) {
            let stamp = crate::machines::normative::TimeStamp { user_tag: stamp.user_tag, ..now() };
            value.set_time_stamp(stamp).map_err(|why| why.to_string())?;
        }
        match pv.post_within(value, PATIENCE) {
            Ok(()) => Ok(false),
            Err(PostError::Full) => pv.post(value).map(|_| true).map_err(|why| why.to_string()),
            Err(why) => Err(why.to_string()),
        }
    }
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Player { files, played, updates, .. } = self;
        write!(f, "Player({} files, {} PVs, {updates} updates)", files.len(), played.len())
    }
}

/// Sleeps until a time; returns `false` if it is to stop.
fn wait(clock: &Clock, until: Instant, stop: &Stop) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= until {
            return true;
        }
        hodo_io::sleep((until - now).min(LOOK));
    }
    false
}

/// Returns the files of a recording, in the order of their names, which is that of their times.
fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let cannot = |why: std::io::Error| format!("{} cannot be read: {why}", path.display());
    let entries = std::fs::read_dir(path).map_err(cannot)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    let mut files: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect();
    files.sort();
    if files.is_empty() { Err(format!("{} has no files *.parquet", path.display())) } else { Ok(files) }
}
