//! Recordings that are served again, with their timing: `hodo pva replay`, and PVs of `hodo pva serve`.

mod recording;
mod reel;

use crate::machines::Value;
use crate::machines::normative::TimeStamp;
use crate::record::{Row, Shape};
use crate::server::{PostError, Pv, Pvs, now};
use hodo_io::{Clock, Stop};
use hodo_machine::{Bytes, Instant};
use hodo_store::table::Batch;
use reel::{Reel, Step};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub use recording::{Recorded, Recording};

/// The longest sleep or wait, after which it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long an update waits for room among those of its PV; then it is merged into the last one.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time from the last update to the first one when a recording begins again.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// How a recording is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayOptions {
    /// How much faster than it was recorded.
    pub speed: f64,
    /// The time between two updates, instead of that which was recorded.
    pub every: Option<Duration>,
    /// Whether it begins again at its end.
    pub repeats: bool,
    /// Whether time stamps are those of the recording; otherwise they say when an update is played.
    pub keeps_stamps: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions { speed: 1.0, every: None, repeats: false, keeps_stamps: false }
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

/// A PV of a recording that is played.
struct Played {
    /// The PVs that are served with its values.
    pvs: Vec<Pv>,
    type_text: Bytes,
    shape: Arc<Shape>,
    value: Value,
    /// Whether its next update is the first one of the recording, which is whole: nothing stays of what was before.
    begins: bool,
}

/// A recording, whose PVs are served.
pub struct Player {
    recording: Arc<Recording>,
    played: HashMap<String, Played>,
    /// Where what is new in the files, or of another type, is served; without, files have to stay as they are.
    pvs: Option<Pvs>,
}

impl Player {
    /// Reads which PVs a file, or a folder of files, has, and serves each with its first value.
    ///
    /// # Errors
    /// A sentence with the file and the reason.
    pub fn open(path: &Path, pvs: &Pvs) -> Result<Self, String> {
        let recording = Arc::new(Recording::open(path)?);
        let serve = |(name, of): (&String, &Recorded)| (name.clone(), pvs.pv(name, of.first.clone()).serve());
        let served: Vec<_> = recording.pvs().iter().map(serve).collect();
        Ok(Player { pvs: Some(pvs.clone()), ..Player::of(recording, served) })
    }

    /// Creates a player for PVs that are served already, each with the name that it has in the recording.
    pub(crate) fn of(recording: Arc<Recording>, served: Vec<(String, Pv)>) -> Self {
        let mut played: HashMap<String, Played> = HashMap::new();
        for (name, pv) in served {
            if let Some(Recorded { type_text, shape, first, .. }) = recording.pvs().get(&name) {
                let (type_text, shape, value) = (type_text.clone(), Arc::clone(shape), Value::new(first.plan()));
                let new = || Played { pvs: Vec::new(), type_text, shape, value, begins: true };
                played.entry(name).or_insert_with(new).pvs.push(pv);
            }
        }
        Player { recording, played, pvs: None }
    }

    /// Returns the recording.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Posts all updates when they are due, until the end or until `stop` is set.
    ///
    /// # Errors
    /// A sentence with the file and the reason.
    pub fn run(&mut self, options: &ReplayOptions, stop: &Stop) -> Result<Replayed, String> {
        let clock = Clock::start();
        let mut replayed = Replayed::default();
        let reel = Reel::start(&self.recording, options.repeats, self.pvs.is_none())?;
        let (mut start, mut begins) = (None, clock.now());
        while let Some(step) = reel.next(stop)? {
            match step {
                Step::Rows(file, batch) => {
                    let start = *start.get_or_insert_with(|| clock.now().max(begins));
                    self.play(file, &batch, options, &mut replayed, |at| wait(&clock, start + at, stop))?;
                }
                Step::End if !options.repeats => return Ok(replayed),
                Step::End => {
                    self.played.values_mut().for_each(Played::rewind);
                    if options.every.is_none() {
                        (start, begins) = (None, clock.now() + PAUSE);
                    }
                }
            }
        }
        Ok(replayed)
    }

    /// Posts the updates of a batch; `wait` waits for a time since the start, and returns `false` if it is to stop.
    fn play(
        &mut self,
        file: usize,
        batch: &Batch,
        options: &ReplayOptions,
        replayed: &mut Replayed,
        wait: impl Fn(Duration) -> bool,
    ) -> Result<(), String> {
        for row in batch.rows().map(Row).filter(Row::is_update) {
            if self.pvs.is_none() && !self.played.contains_key(row.pv()) {
                continue;
            }
            let after = match options.every {
                Some(every) => every.as_secs_f64() * replayed.updates as f64,
                None => self.recording.since_begin(row.arrived_ns()).as_secs_f64() / options.speed,
            };
            if !wait(Duration::try_from_secs_f64(after).unwrap_or(Duration::MAX)) {
                break;
            }
            let posted = self.post(&row, options);
            let posted = posted.map_err(|why| format!("{}: {}: {why}", self.recording.file(file).display(), row.pv()));
            replayed.updates += 1;
            replayed.merged += posted?;
        }
        Ok(())
    }

    /// Posts an update; returns how many were merged into others.
    fn post(&mut self, row: &Row<'_>, options: &ReplayOptions) -> Result<u64, String> {
        let is_same = |played: &Played| played.type_text[..] == *row.type_text().as_bytes();
        if !self.played.get(row.pv()).is_some_and(is_same) {
            self.serve(row)?;
        }
        let Some(Played { pvs, shape, value, begins, .. }) = self.played.get_mut(row.pv()) else { return Ok(0) };
        row.fill(shape, value)?;
        if std::mem::take(begins) {
            value.mark(0);
        }
        if let Some(stamp) = value.time_stamp().filter(|_| !options.keeps_stamps) {
            let stamp = TimeStamp { user_tag: stamp.user_tag, ..now() };
            value.set_time_stamp(stamp).map_err(|why| why.to_string())?;
        }
        let mut merged = 0;
        for pv in pvs {
            match pv.post_within(value, PATIENCE) {
                Ok(()) => {}
                Err(PostError::Full) => {
                    pv.post(value).map_err(|why| why.to_string())?;
                    merged += 1;
                }
                Err(why) => return Err(why.to_string()),
            }
        }
        Ok(merged)
    }

    /// Serves a PV with the value of a row, in place of one of another type.
    fn serve(&mut self, row: &Row<'_>) -> Result<(), String> {
        let pvs = self.pvs.as_ref().ok_or("it changes its type")?;
        let Recorded { type_text, shape, first: value, .. } = Recorded::new(row)?;
        let pv = pvs.pv(row.pv(), value.clone()).serve();
        self.played.insert(row.pv().to_owned(), Played { pvs: vec![pv], type_text, shape, value, begins: false });
        Ok(())
    }
}

impl Played {
    /// Forgets what was played, so that the recording can begin again.
    fn rewind(&mut self) {
        self.value = Value::new(self.shape.plan());
        self.begins = true;
    }
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Player({:?}, {} are played)", self.recording, self.played.len())
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

#[cfg(test)]
mod tests;
