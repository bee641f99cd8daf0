use super::lines::Lines;
use crate::Error;
use crate::args::FarmSource;
use hodo_catalog::farm::emulation::Pace;
use hodo_catalog::farm::{Event, Next, Supply};
use hodo_machine::Instant;
use hodo_store::{Finding, Item, Reader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which of the recorded events are given, and how.
struct Choice {
    first: u64,
    step: u64,
    count: Option<u64>,
    renumber: bool,
}

/// Gives recorded events again.
pub struct Replay {
    reader: Reader,
    choice: Choice,
    pace: Option<Pace>,
    /// The run in place of that which was recorded.
    run_instead: Option<u32>,
    /// The next event, which is not due yet.
    next: Option<(u32, Event)>,
    /// The run of the event that was given last.
    run: Option<u32>,
    /// Events that were read, and those that were chosen.
    read: u64,
    chosen: u64,
    lines: Lines,
    /// Something was left out because it cannot be read.
    damaged: Arc<AtomicBool>,
}

impl Replay {
    /// Opens the store, or one of its segments. `damaged` is set where something in it has to be left out.
    pub fn open(path: &Path, asked: &FarmSource, damaged: Arc<AtomicBool>) -> Result<Self, Error> {
        let made = &asked.made;
        Ok(Replay {
            reader: Reader::open(path).map_err(|error| Error::Failed(format!("--replay: {error}")))?,
            choice: Choice {
                first: asked.first,
                step: asked.step,
                count: made.events,
                renumber: asked.recorded.renumber,
            },
            pace: made.rate.map(|rate| Pace::new(rate, made.poisson, made.seed)),
            run_instead: asked.run,
            next: None,
            run: None,
            read: 0,
            chosen: 0,
            lines: Lines::of("source"),
            damaged,
        })
    }

    /// The next event that was chosen; nothing at the end, or where the files cannot be read any further.
    fn read(&mut self) -> Option<(u32, Event)> {
        loop {
            if self.choice.count.is_some_and(|count| self.chosen >= count) {
                return None;
            }
            let finding = match self.reader.next() {
                Ok(Some(Item::Event(record))) => {
                    let number = if self.choice.renumber { self.read } else { record.event };
                    self.read += 1;
                    let behind = number.checked_sub(self.choice.first);
                    if behind.is_some_and(|behind| behind.is_multiple_of(self.choice.step)) {
                        self.chosen += 1;
                        let payload = record.data.to_vec().into();
                        return Some((record.run, Event { number, payload, partial: record.partial }));
                    }
                    continue;
                }
                Ok(Some(Item::Verdicts(_))) => continue,
                Ok(Some(Item::Damaged(damage))) => Finding::Damaged(damage),
                Ok(Some(Item::Torn(damage))) => Finding::Unfinished(damage),
                Ok(None) => return None,
                Err(error) => {
                    self.damaged.store(true, Ordering::Relaxed);
                    self.lines.say(&format!("--replay: {error}"));
                    return None;
                }
            };
            if finding.is_failure() {
                self.damaged.store(true, Ordering::Relaxed);
            }
            self.lines.say(&format!("left out: {finding}"));
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
        self.run = Some(self.run_instead.unwrap_or(run));
        Next::Event(event)
    }

    fn run(&self) -> Option<u32> {
        self.run
    }

    fn is_paced(&self) -> bool {
        self.pace.is_some()
    }
}
