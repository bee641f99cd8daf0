//! Monitors that are written to Parquet: `hodo pva record`.
//!
//! A [`Recorder`] takes the updates of a client and makes rows of them; a thread of its own writes those. While the disk does not keep up, updates
//! wait in the queues of their monitors, and then become one, with overrun bits that say so.

mod file;
mod row;
mod shape;
mod types;

use crate::client::{Channel, Client, ClientError, Notice, Operation, Trouble};
use crate::machines::{BitSet, Request};
use file::Writer;
use hodo_io::{Clock, unix_time_ns};
use hodo_machine::{Bytes, Instant};
use hodo_store::table::Batch;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

pub use file::{Output, Written};
use row::Event;
pub(crate) use row::{COLUMNS, Row, SUMMARY, Summary};
pub(crate) use shape::Shape;

/// Bytes of rows that are written together.
const BATCH_BYTES: usize = 8 << 20;
/// The share of a flush interval by which each batch of a file lengthens it, so that footers do not outgrow the rows.
const FLUSH_GROWTH: f64 = 0.01;

/// The options of a recording.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The files.
    pub output: Output,
    /// How long rows wait in memory at most; longer as a file has more batches.
    pub flush: Duration,
}

/// Totals of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Updates that became rows.
    pub updates: u64,
    /// Updates that had overwritten others, because a server or this recorder did not keep up.
    pub overruns: u64,
    /// Connections that were lost.
    pub disconnects: u64,
    /// PVs from which no update has come.
    pub silent: Vec<String>,
    /// The names of PVs with overruns or lost connections, and how many.
    pub flawed: Vec<(String, u64, u64)>,
    /// Totals of what the disk has.
    pub written: Written,
    /// Rows and updates that the disk has not taken.
    pub unwritten: u64,
}

/// A monitor that is recorded.
struct Recording {
    name: Bytes,
    channel: Channel,
    shape: Option<Shape>,
    /// The sets of fields of the last update, as text, since they are mostly those of the next.
    changed: Paths,
    overrun: Paths,
    is_connected: bool,
    is_over: bool,
    updates: u64,
    overruns: u64,
    disconnects: u64,
}

/// A set of fields, and its text.
#[derive(Default)]
struct Paths {
    set: BitSet,
    text: Bytes,
}

/// Monitors, and the thread that writes their updates.
pub struct Recorder {
    client: Client,
    monitors: HashMap<Operation, Recording>,
    by_channel: HashMap<Channel, Operation>,
    waiting: VecDeque<Operation>,
    batch: Batch,
    batch_since: Option<Instant>,
    writer: Writer,
    clock: Clock,
    flush: Duration,
    unwritten: u64,
}

impl Recorder {
    /// Creates the first file, or the folder, and starts the thread that writes.
    ///
    /// # Errors
    /// A sentence with the file and the reason.
    pub fn start(client: Client, options: &RecordOptions) -> Result<Self, String> {
        Ok(Recorder {
            client,
            monitors: HashMap::new(),
            by_channel: HashMap::new(),
            waiting: VecDeque::new(),
            batch: Batch::new(COLUMNS),
            batch_since: None,
            writer: Writer::start(&options.output)?,
            clock: Clock::start(),
            flush: options.flush,
            unwritten: 0,
        })
    }

    /// Begins to record a PV.
    ///
    /// # Errors
    /// A [`ClientError`] if the name is none.
    pub fn add(&mut self, name: &str, request: &Request) -> Result<(), ClientError> {
        let monitor = self.client.monitor(name, request)?;
        let channel = self.client.channel_of(monitor);
        if self.by_channel.contains_key(&channel) {
            self.client.finish(monitor);
            return Ok(());
        }
        self.by_channel.insert(channel, monitor);
        let recording = Recording {
            name: Bytes::from(name.to_owned()),
            channel,
            shape: None,
            changed: Paths::default(),
            overrun: Paths::default(),
            is_connected: false,
            is_over: false,
            updates: 0,
            overruns: 0,
            disconnects: 0,
        };
        self.monitors.insert(monitor, recording);
        Ok(())
    }

    /// Takes what has come, and waits for more at most this long.
    ///
    /// # Errors
    /// A [`ClientError`] if the operating system refuses what is needed.
    pub fn turn(&mut self, within: Duration) -> Result<(), ClientError> {
        self.hand_over();
        let can_take = !self.is_full();
        let within = if can_take && !self.waiting.is_empty() { Duration::ZERO } else { within };
        let mut notice = self.client.next_notice(within)?;
        while let Some(one) = notice {
            self.note(&one);
            notice = self.client.next_notice(Duration::ZERO)?;
        }
        for _ in 0..self.waiting.len() {
            let Some(monitor) = self.waiting.pop_front() else { break };
            if !self.take(monitor) {
                self.waiting.push_back(monitor);
            }
        }
        // What was taken is acknowledged at once, before a wait.
        self.client.poll()
    }

    /// Returns why the disk takes nothing at present; `None` if it does.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.writer.trouble()
    }

    /// Tells whether no more can come: all monitors were ended, or the writer has given up.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.writer.has_ended() || self.monitors.values().all(|recording| recording.is_over)
    }

    /// Returns why PVs have sent nothing yet.
    pub fn silent(&mut self) -> Vec<(String, Option<Trouble>)> {
        let silent = self.monitors.values().filter(|recording| recording.updates == 0);
        let client = &mut self.client;
        let mut silent: Vec<_> = silent.map(|one| (text_of(&one.name), client.trouble(one.channel))).collect();
        silent.sort_by(|one, other| one.0.cmp(&other.0));
        silent
    }

    /// Ends the monitors, writes the rest, and returns the totals.
    ///
    /// # Errors
    /// A sentence if the thread has failed for another reason than the disk.
    pub fn finish(mut self) -> Result<Recorded, String> {
        let monitors: Vec<Operation> = self.monitors.keys().copied().collect();
        for monitor in monitors {
            while !self.take(monitor) && self.trouble().is_none() && !self.writer.has_ended() {
                self.hand_over_waiting();
            }
            while self.client.take_update(monitor).is_some() {
                self.unwritten += 1;
            }
            self.client.finish(monitor);
        }
        // The servers are told; one that is gone needs not be.
        let _ = self.client.poll();
        let Recorder { monitors, batch, writer, mut unwritten, .. } = self;
        let (written, lost) = writer.finish(batch)?;
        unwritten += lost;
        let mut recorded = Recorded { written, unwritten, ..Recorded::default() };
        for recording in monitors.into_values() {
            recorded.updates += recording.updates;
            recorded.overruns += recording.overruns;
            recorded.disconnects += recording.disconnects;
            let name = text_of(&recording.name);
            if recording.updates == 0 {
                recorded.silent.push(name);
            } else if recording.overruns + recording.disconnects > 0 {
                recorded.flawed.push((name, recording.overruns, recording.disconnects));
            }
        }
        recorded.silent.sort();
        recorded.flawed.sort();
        Ok(recorded)
    }

    fn is_full(&self) -> bool {
        self.batch.bytes() >= BATCH_BYTES
    }

    /// Hands the rows on if they are many, or have waited long.
    fn hand_over(&mut self) {
        let flush = self.flush.mul_f64(1.0 + FLUSH_GROWTH * self.writer.groups() as f64);
        let is_due = self.batch_since.is_some_and(|since| self.clock.now() >= since + flush);
        if (self.is_full() || is_due) && self.writer.offer(&mut self.batch) {
            self.batch_since = None;
        }
    }

    /// Hands the rows on at the end, when there is time to wait.
    fn hand_over_waiting(&mut self) {
        self.hand_over();
        if self.is_full() {
            hodo_io::sleep(Duration::from_millis(1));
        }
    }

    fn note(&mut self, notice: &Notice) {
        match notice {
            Notice::Monitor(monitor) => self.waiting.push_back(*monitor),
            Notice::Channel(channel) => {
                if let Some(monitor) = self.by_channel.get(channel).copied() {
                    self.note_channel(monitor, *channel);
                }
            }
            _ => {}
        }
    }

    /// Makes rows of connections that were made or lost. What came before is taken first, as far as there is room.
    fn note_channel(&mut self, monitor: Operation, channel: Channel) {
        self.take(monitor);
        let is_open = self.client.is_open(channel);
        let why = self.client.trouble(channel).map(|why| why.to_string());
        let server = self.client.server(channel).map(|server| server.to_string()).unwrap_or_default();
        let Some(recording) = self.monitors.get_mut(&monitor) else { return };
        let was_open = std::mem::replace(&mut recording.is_connected, is_open);
        let name = recording.name.clone();
        recording.disconnects += u64::from(was_open);
        if was_open {
            self.event(Event::Lost, &name, why.unwrap_or_else(|| "the connection was lost".to_owned()));
        }
        if is_open {
            self.event(Event::Connected, &name, server);
        }
    }

    fn event(&mut self, event: Event, name: &Bytes, text: String) {
        let row = row::of_event(unix_time_ns(), name, event, Bytes::from(text));
        self.push(&row);
    }

    fn push(&mut self, row: &[hodo_store::table::Cell<'_>]) {
        self.batch.push(row);
        self.batch_since.get_or_insert(self.clock.now());
    }

    /// Makes rows of the updates of a monitor that wait. Returns `false` if there was no room for all.
    fn take(&mut self, monitor: Operation) -> bool {
        let Some(recording) = self.monitors.get_mut(&monitor) else { return true };
        loop {
            if self.batch.bytes() >= BATCH_BYTES && !self.writer.offer(&mut self.batch) {
                return false;
            }
            let Some(update) = self.client.take_update(monitor) else { break };
            let plan = update.value.plan();
            let shape = match &mut recording.shape {
                Some(shape) if shape.is_of(plan) => shape,
                other => {
                    (recording.changed, recording.overrun) = (Paths::default(), Paths::default());
                    other.insert(Shape::new(plan))
                }
            };
            recording.updates += 1;
            recording.overruns += u64::from(!update.overrun.is_empty());
            let changed = recording.changed.text(update.value.changed(), plan);
            let overrun = recording.overrun.text(update.overrun, plan);
            let row = row::of_update(unix_time_ns(), &recording.name, shape, update.value, changed, overrun);
            self.batch.push(&row);
            self.batch_since.get_or_insert(self.clock.now());
        }
        let ended = self.client.outcome(monitor).filter(|_| !std::mem::replace(&mut recording.is_over, true));
        if let Some(outcome) = ended {
            let name = recording.name.clone();
            let why =
                outcome.err().map_or_else(|| "the server has ended the monitor".to_owned(), |why| why.to_string());
            self.event(Event::Ended, &name, why);
        }
        true
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (monitors, rows) = (self.monitors.len(), self.batch.len());
        f.debug_struct("Recorder").field("monitors", &monitors).field("rows", &rows).finish_non_exhaustive()
    }
}

impl Paths {
    /// Returns the paths of a set of fields, separated by commas; `*` is the whole.
    fn text(&mut self, set: &BitSet, plan: &crate::machines::Plan) -> Bytes {
        if self.set != *set {
            self.set.assign(set);
            let path = |number: usize| if number == 0 { "*".to_owned() } else { plan.path(number) };
            let mut at = 0;
            let numbers = std::iter::from_fn(|| {
                let number = set.next(at)?;
                at = plan.end(number);
                Some(number)
            });
            self.text = Bytes::from(numbers.map(path).collect::<Vec<_>>().join(","));
        }
        self.text.clone()
    }
}

fn text_of(name: &Bytes) -> String {
    String::from_utf8_lossy(name).into_owned()
}
