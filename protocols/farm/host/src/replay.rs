//! Recorded events as a source's supply.

use crate::Error;
use hodo_farm::emulation::Pace;
use hodo_farm::{EventData, Next, Supply};
use hodo_machine::Instant;
use hodo_store::{Finding, Item, Reader};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Settings of a replay: which recorded events are given again, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplaySettings {
    /// The store's folder, or one of its segments.
    pub store: PathBuf,
    /// The number of the first event.
    pub first: u64,
    /// The step from one event's number to the next.
    pub step: u64,
    /// How many events are given at most.
    pub count: Option<u64>,
    /// Whether events are numbered from 0 on, without the gaps of what was not stored.
    pub renumber: bool,
    /// Events per second; `None`: as fast as they are taken.
    pub rate: Option<f64>,
    /// Whether the times between events are exponentially spread.
    pub poisson: bool,
    /// The seed of these times.
    pub seed: u64,
    /// The run in place of the recorded one.
    pub run: Option<u32>,
}

/// Gives recorded events again.
pub struct Replay {
    reader: Reader,
    settings: ReplaySettings,
    pace: Option<Pace>,
    /// The next event, which is not due yet.
    next: Option<(u32, EventData)>,
    /// The run of the event that was given last.
    run: Option<u32>,
    /// Events that were read, and those that were chosen.
    read: u64,
    chosen: u64,
    /// Whether the log has told that events are left out because others have their numbers.
    told_of_conflicts: bool,
    /// Something was left out because it cannot be read.
    damaged: Arc<AtomicBool>,
}

impl Replay {
    /// Opens the store, or one of its segments. `damaged` is set if anything in it has to be left out.
    ///
    /// # Errors
    /// [`Error::Replay`] if there is no store.
    pub fn open(settings: &ReplaySettings, damaged: Arc<AtomicBool>) -> Result<Self, Error> {
        let reader = Reader::open(&settings.store).map_err(|error| Error::Replay(error.to_string()))?;
        Ok(Replay {
            reader,
            pace: settings.rate.map(|rate| Pace::new(rate, settings.poisson, settings.seed)),
            settings: settings.clone(),
            next: None,
            run: None,
            read: 0,
            chosen: 0,
            told_of_conflicts: false,
            damaged,
        })
    }

    /// Reads the next chosen event; `None` at the end, or if the files cannot be read any further.
    fn read(&mut self) -> Option<(u32, EventData)> {
        loop {
            if self.settings.count.is_some_and(|count| self.chosen >= count) {
                return None;
            }
            let finding = match self.reader.next() {
                Ok(Some(Item::Event(record))) if record.conflict && !self.settings.renumber => {
                    // Under their own numbers they would be in conflict again.
                    if !std::mem::replace(&mut self.told_of_conflicts, true) {
                        tracing::warn!(
                            "event {} of run {} from source {} is left out, and all others that are in quarantine because \
                             others have their numbers; --renumber gives them, too",
                            record.event,
                            record.run,
                            record.node
                        );
                    }
                    continue;
                }
                Ok(Some(Item::Event(record))) => {
                    let number = if self.settings.renumber { self.read } else { record.event };
                    self.read += 1;
                    let behind = number.checked_sub(self.settings.first);
                    if behind.is_some_and(|behind| behind.is_multiple_of(self.settings.step)) {
                        self.chosen += 1;
                        let payload = record.data.to_vec().into();
                        return Some((record.run, EventData { number, payload, partial: record.partial }));
                    }
                    continue;
                }
                Ok(Some(Item::Verdicts(..))) => continue,
                Ok(Some(Item::Damaged(damage))) => Finding::Damaged(damage),
                Ok(Some(Item::Torn(damage))) => Finding::Unfinished(damage),
                Ok(None) => return None,
                Err(error) => {
                    self.damaged.store(true, Ordering::Relaxed);
                    tracing::error!("--replay: {error}");
                    return None;
                }
            };
            if finding.is_failure() {
                self.damaged.store(true, Ordering::Relaxed);
            }
            tracing::warn!("skipped: {finding}");
        }
    }
}

impl Supply for Replay {
    fn next(&mut self, now: Instant) -> Next {
        if self.next.is_none() {
            self.next = self.read();
        }
        if self.next.is_some()
            && let Some(Err(due)) = self.pace.as_mut().map(|pace| pace.take(now))
        {
            return Next::Later(due);
        }
        let Some((run, event)) = self.next.take() else { return Next::Ended };
        self.run = Some(self.settings.run.unwrap_or(run));
        Next::Event(event)
    }

    fn run(&self) -> Option<u32> {
        self.run
    }

    fn is_paced(&self) -> bool {
        self.pace.is_some()
    }
}
