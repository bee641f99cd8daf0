//! A folder with one writer.

use crate::block::{self, FileKind, Header, Kind, encode_file_header};
use crate::catalogue::Catalogue;
use crate::directory::{self, Lock};
use crate::error::Error;
use crate::files::{Files, OpenFile, System};
use crate::given::{self, Checksum};
use crate::index::{self, Entry};
use crate::ledger::Ledger;
use crate::ranges::Ranges;
use crate::record::{Record, Verdict};
use crate::recovery::{Active, Recovered, recover};
use crate::settle::{Mark, Sync, Synced, rescue};
use crate::tail::Tail;
use crate::verdicts::{self, Verdicts};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The most bytes of one event.
pub const DATA_MAX: usize = 1 << 30;
/// The number of events with data at which a segment is closed, whatever their size, so that its index stays small.
const ENTRIES_MAX: usize = 1 << 18;
/// Closed segments that may wait for the disk; with one more, the writer waits itself.
const CLOSED_MAX: usize = 8;
/// The number of waiting ranges, or checksums, at which a commit is written.
const RANGES_MAX: usize = 1 << 18;
/// The number of checksums of events at which a segment is closed.
const GIVEN_MAX: usize = 1 << 20;

/// The moment at which a commit counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When the kernel has it: survives the end of every process. The disk has it a little later, by [`Store::next_sync`].
    #[default]
    Process,
    /// When the disk has it (fdatasync): survives a loss of power.
    Disk,
}

/// The settings of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The folder; created if it does not exist.
    pub directory: PathBuf,
    /// A segment is closed after the commit with which it reaches this size.
    pub segment_bytes: u64,
    /// The moment at which a commit counts as durable.
    pub durability: Durability,
    /// The most bytes that wait for a commit; [`Store::put`] writes when they would be more.
    pub waiting_bytes: usize,
}

impl Options {
    /// Returns the defaults: segments of 256 MiB, durable when the kernel has them, at most 8 MiB waiting.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Options {
            directory: directory.into(),
            segment_bytes: 256 << 20,
            durability: Durability::Process,
            waiting_bytes: 8 << 20,
        }
    }
}

/// The outcome of [`Store::put`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The record was taken, and is durable after the next commit.
    Taken,
    /// The event has a verdict already, durable or waiting for a commit, which stays; this record is only counted.
    AlreadyDecided,
}

/// The state after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Records taken since the store was opened; all of them are durable.
    pub taken: u64,
    /// Bytes in the open segment.
    pub segment_bytes: u64,
    /// The open segment's number; 0 for none.
    pub segment: u64,
}

/// Writes events and verdicts to a folder.
#[derive(Debug)]
pub struct Store {
    options: Options,
    files: Arc<dyn Files>,
    active: Option<Active>,
    closing: Option<Closing>,
    /// Closed segments that the disk may not have, the oldest first.
    closed: VecDeque<Closed>,
    /// A sync has failed: what was acknowledged has to be written again before anything else is.
    in_doubt: bool,
    next: u64,
    ledger: Ledger,
    /// Every event with a verdict, by run.
    decided: BTreeMap<u32, Ranges>,
    /// Verdicts of events without data since the last commit block.
    waiting: BTreeMap<(u32, Verdict), Vec<Range<u64>>>,
    waiting_ranges: usize,
    /// Checksums of those events.
    waiting_given: Vec<Checksum>,
    catalogue: Catalogue,
    unsealed: bool,
    buffer: Vec<u8>,
    taken: u64,
    already_decided: u64,
    _lock: Lock,
}

/// A segment whose index is being written, and then its part of the ledger.
#[derive(Debug)]
struct Closing {
    tail: Tail,
    number: u64,
    synced: Mark,
    verdicts: Verdicts,
}

/// A closed segment on its way to the disk, and from there to the ledger.
#[derive(Debug)]
struct Closed {
    number: u64,
    synced: Mark,
    end: u64,
    verdicts: Verdicts,
    /// Open, so that the system remembers an error until the next sync.
    _file: Option<Box<dyn OpenFile>>,
}

impl Store {
    /// Opens a folder, and returns what was recovered from it. An unfinished commit at its end is cut off.
    ///
    /// # Errors
    /// [`Error::Locked`] if another writer has the folder, [`Error::LedgerLost`] if past verdicts cannot be known.
    pub fn open(options: Options) -> Result<(Self, Recovered), Error> {
        Store::open_on(Arc::new(System), options)
    }

    /// Opens a folder of another file system.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(files: Arc<dyn Files>, options: Options) -> Result<(Self, Recovered), Error> {
        let folder = &options.directory;
        files.create_folder(folder).map_err(Error::io("create", folder))?;
        let lock = Lock::take(&*files, folder)?;
        let state = recover(&*files, &options)?;
        let mut decided: BTreeMap<u32, Ranges> = BTreeMap::new();
        for (run, ledger) in &state.recovered.runs {
            let all = decided.entry(*run).or_default();
            Verdict::ALL.into_iter().for_each(|verdict| all.extend(ledger.of(verdict)));
        }
        let store = Store {
            options,
            files,
            active: state.active,
            closing: None,
            closed: VecDeque::new(),
            in_doubt: false,
            next: state.next,
            ledger: state.ledger,
            decided,
            waiting: BTreeMap::new(),
            waiting_ranges: 0,
            waiting_given: Vec::new(),
            catalogue: state.catalogue,
            unsealed: false,
            buffer: Vec::new(),
            taken: 0,
            already_decided: 0,
            _lock: lock,
        };
        Ok((store, state.recovered))
    }

    /// Takes a record. It is durable after the next commit, and may be so before.
    ///
    /// # Errors
    /// [`Error::Io`] if [`Options::waiting_bytes`] wait and cannot be written: the record was not taken, put it again later.
    /// [`Error::TooLong`] and [`Error::EventNumber`] for events that cannot be stored.
    pub fn put(&mut self, record: &Record<'_>) -> Result<Put, Error> {
        if record.event == u64::MAX {
            return Err(Error::EventNumber);
        }
        if record.verdict.keeps_data() {
            return self.put_data(record);
        }
        if self.waiting_ranges >= RANGES_MAX || self.waiting_given.len() >= RANGES_MAX {
            self.write()?;
        }
        if !self.decide(record) {
            return Ok(Put::AlreadyDecided);
        }
        self.waiting_given.extend(given(record));
        let ranges = self.waiting.entry((record.run, record.verdict)).or_default();
        match ranges.last_mut().filter(|last| last.end == record.event) {
            Some(last) => last.end += 1,
            None => {
                ranges.push(record.event..record.event + 1);
                self.waiting_ranges += 1;
            }
        }
        Ok(Put::Taken)
    }

    /// Makes everything that was put durable. After an error it can be called again: nothing is lost, nothing is written
    /// twice, and more may be put meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`] if the disk is full ([`Error::is_full`]) or cannot be written to.
    pub fn commit(&mut self) -> Result<Committed, Error> {
        self.write()?;
        let (segment, segment_bytes) = self.active.as_ref().map_or((0, 0), |it| (it.number, it.tail.offset()));
        Ok(Committed { taken: self.taken, segment_bytes, segment })
    }

    /// Commits, closes the open segment, and waits until the disk has it, so that it can be uploaded or taken away.
    ///
    /// # Errors
    /// [`Error::Io`], as [`Store::commit`].
    pub fn close_segment(&mut self) -> Result<(), Error> {
        self.write()?;
        self.begin_closing();
        self.finish_closing()?;
        self.finish()
    }

    /// Returns the next file that the disk may not have, to be synced while this store goes on: a closed segment, and with
    /// `open_too` also the open one. `None` if there is none, as always with [`Durability::Disk`].
    #[must_use]
    pub fn next_sync(&self, open_too: bool) -> Option<Sync> {
        if self.in_doubt {
            return None;
        }
        let open = self.active.as_ref().filter(|active| open_too && active.written.end > active.synced.end);
        let (segment, mark) = match (self.closed.front(), open) {
            (Some(closed), _) => (closed.number, Mark { end: closed.end, ..closed.synced }),
            (None, Some(active)) => (active.number, active.written),
            (None, None) => return None,
        };
        let (files, folder) = (Arc::clone(&self.files), self.options.directory.clone());
        Some(Sync { files, folder, segment, mark })
    }

    /// Returns the bytes that were committed and that the disk may not have; those in closed segments are not counted.
    #[must_use]
    pub fn unsynced_bytes(&self) -> u64 {
        self.active.as_ref().map_or(0, |active| active.written.end - active.synced.end)
    }

    /// Takes the outcome of [`Store::next_sync`]. After an error nothing more is committed before all that is in doubt could
    /// be written again.
    ///
    /// # Errors
    /// The error of the sync; [`Store::commit`] then tries to mend it.
    pub fn synced(&mut self, done: Synced) -> Result<(), Error> {
        let Synced { segment, mark, result } = done;
        if let Err(error) = result {
            self.in_doubt = true;
            return Err(error);
        }
        if let Some(active) = self.active.as_mut().filter(|active| active.number == segment) {
            active.synced = mark;
        }
        // It may have been the open one when the sync began.
        if let Some(closed) = self.closed.iter_mut().find(|closed| closed.number == segment) {
            closed.synced = mark;
        }
        self.enter_closed()
    }

    /// Commits, and waits until the disk has everything: the last call.
    ///
    /// # Errors
    /// [`Error::Io`], as [`Store::commit`], and [`Error::Lost`] if the disk has lost what was acknowledged.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.write()?;
        while let Some(sync) = self.next_sync(true) {
            self.synced(sync.run())?;
        }
        Ok(())
    }

    /// Returns the number of records that were put for events with a verdict.
    #[must_use]
    pub fn already_decided(&self) -> u64 {
        self.already_decided
    }

    /// Returns whether this event has a verdict, durable or not.
    #[must_use]
    pub fn is_decided(&self, run: u32, event: u64) -> bool {
        self.decided.get(&run).is_some_and(|decided| decided.contains(event))
    }

    /// Returns the checksum of an event that was committed, as it was given: it may have to be read from the files. `None` where
    /// it is not known, as of an event whose segment was taken away.
    ///
    /// # Errors
    /// [`Error::Io`] if a segment cannot be read.
    pub fn given(&mut self, run: u32, event: u64) -> Result<Option<u32>, Error> {
        if !self.is_decided(run, event) {
            return Ok(None);
        }
        if let Some(active) = &self.active
            && let Some(sum) = self.catalogue.of_open(active.number, &active.given, run, event)
        {
            return Ok(Some(sum));
        }
        self.catalogue.of_closed(&*self.files, &self.options.directory, run, event)
    }

    /// Notes the verdict; returns `false`, and counts it, if the event has one.
    fn decide(&mut self, record: &Record<'_>) -> bool {
        let new = record.conflict || self.decided.entry(record.run).or_default().insert(record.event);
        if new {
            self.taken += 1;
            self.unsealed = true;
        } else {
            self.already_decided += 1;
        }
        new
    }

    fn put_data(&mut self, record: &Record<'_>) -> Result<Put, Error> {
        if record.data.len() > DATA_MAX {
            return Err(Error::TooLong { bytes: record.data.len() });
        }
        let waiting = self.active.as_ref().map_or(0, |active| active.tail.waiting());
        if waiting > 0 && waiting + block::HEADER + record.data.len() > self.options.waiting_bytes {
            self.write()?;
        }
        if !self.decide(record) {
            return Ok(Put::AlreadyDecided);
        }
        let header = Header::of_record(record);
        let active = self.active();
        let offset = active.tail.offset();
        active.append(&header, record.data);
        active.entries.push(Entry::of(&header, offset));
        if !record.conflict {
            active.verdicts.entry((record.run, record.verdict)).or_default().insert(record.event);
            active.given.extend(given(record));
        }
        Ok(Put::Taken)
    }

    /// Returns the open segment; a new one begins in memory.
    fn active(&mut self) -> &mut Active {
        let (next, folder, buffer) = (&mut self.next, &self.options.directory, &mut self.buffer);
        self.active.get_or_insert_with(|| {
            let number = *next;
            *next += 1;
            let mut tail = Tail::create(directory::segment(folder, number)).with_buffer(std::mem::take(buffer));
            tail.bytes().extend_from_slice(&encode_file_header(FileKind::Segment, number));
            let (entries, verdicts, nothing) = (Vec::new(), Verdicts::new(), Mark::default());
            let given = Vec::new();
            Active { number, tail, entries, verdicts, given, commits: 0, written: nothing, synced: nothing }
        })
    }

    /// Writes all waiting bytes, and begins to close a segment that is large enough.
    fn write(&mut self) -> Result<(), Error> {
        self.seal();
        self.mend()?;
        self.finish_closing()?;
        let Some(active) = &mut self.active else { return Ok(()) };
        active.tail.flush(&*self.files, self.options.durability)?;
        active.written = Mark { commit: active.commits, end: active.tail.offset() };
        if self.options.durability == Durability::Disk {
            active.synced = active.written;
        }
        let is_large = active.entries.len() >= ENTRIES_MAX || active.given.len() >= GIVEN_MAX;
        if is_large || active.tail.offset() >= self.options.segment_bytes {
            self.begin_closing();
            // What was put is durable. Where the index cannot be written now, the next call tries again.
            let _ = self.finish_closing();
        }
        Ok(())
    }

    /// Ends the waiting records with a commit block.
    fn seal(&mut self) {
        if !std::mem::take(&mut self.unsealed) {
            return;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        self.waiting_ranges = 0;
        waiting.values_mut().for_each(|ranges| ranges.sort_unstable_by_key(|range| range.start));
        let mut data = Vec::new();
        let groups = waiting.iter().map(|((run, verdict), ranges)| (*run, *verdict, merged(ranges)));
        verdicts::encode(groups, &mut data);
        let mut sums = std::mem::take(&mut self.waiting_given);
        given::encode(&mut sums, &mut data);
        let durability = self.options.durability;
        let active = self.active();
        active.given.append(&mut sums);
        if durability == Durability::Disk {
            // The retry of a write that fails then touches no page of the commit before.
            block::fill_page(&mut data, active.tail.offset());
        }
        for (key, ranges) in waiting {
            let all = active.verdicts.entry(key).or_default();
            ranges.into_iter().for_each(|range| {
                all.insert_range(range);
            });
        }
        active.commits += 1;
        // A number too large for the field says that nothing is known.
        let synced = u32::try_from(active.synced.commit).unwrap_or(0);
        let header =
            Header { run: synced, ..Header::new(Kind::Commit, active.commits, active.entries.len() as u64, &data) };
        active.append(&header, &data);
    }

    fn begin_closing(&mut self) {
        let Some(mut active) = self.active.take() else { return };
        let place = active.tail.offset();
        let index = index::encode(&mut active.entries);
        active.append(&Header::new(Kind::Index, active.entries.len() as u64, 0, &index), &index);
        let mut data = Vec::new();
        verdicts::encode_all(&active.verdicts, &mut data);
        given::encode(&mut active.given, &mut data);
        self.catalogue.add_with(active.number, given::spans(&active.given));
        let ledger = Header::new(Kind::Ledger, active.number, active.number, &data);
        active.append(&ledger, &data);
        // Found from the end without all that is in the index. One that is too long for the field is not found.
        let length = u32::try_from(ledger.block_length()).unwrap_or(0);
        let run = if active.given.is_empty() { 0 } else { length };
        let end = Header { run, ..Header::new(Kind::End, place, active.entries.len() as u64, &[]) };
        active.append(&end, &[]);
        let Active { number, tail, verdicts, synced, .. } = active;
        self.closing = Some(Closing { tail, number, synced, verdicts });
    }

    /// Writes the end of a segment. The next one is begun on disk only after this, so that at most the last has no end.
    fn finish_closing(&mut self) -> Result<(), Error> {
        if let Some(closing) = &mut self.closing {
            closing.tail.flush(&*self.files, self.options.durability)?;
        }
        if let Some(Closing { tail, number, mut synced, verdicts }) = self.closing.take() {
            let end = tail.offset();
            if self.options.durability == Durability::Disk {
                synced.end = end;
            }
            let (file, buffer) = tail.into_parts();
            self.buffer = buffer;
            self.closed.push_back(Closed { number, synced, end, verdicts, _file: file });
        }
        self.enter_closed()?;
        while self.closed.len() > CLOSED_MAX
            && let Some(sync) = self.next_sync(false)
        {
            self.synced(sync.run())?;
        }
        Ok(())
    }

    /// Enters the closed segments that the disk has into the ledger.
    fn enter_closed(&mut self) -> Result<(), Error> {
        while self.closed.front().is_some_and(|closed| closed.synced.end == closed.end)
            && let Some(closed) = self.closed.pop_front()
        {
            self.ledger.append(closed.number, &closed.verdicts, self.options.durability);
        }
        self.ledger.flush(&*self.files, self.options.durability)
    }

    /// Writes again what a failed sync has left in doubt.
    fn mend(&mut self) -> Result<(), Error> {
        if !self.in_doubt {
            return Ok(());
        }
        let (files, folder) = (&*self.files, &self.options.directory);
        for closed in &mut self.closed {
            let path = directory::segment(folder, closed.number);
            rescue(files, &path, closed.number, closed.synced.end..closed.end)?;
            closed.synced.end = closed.end;
        }
        if let Some(active) = self.active.as_mut().filter(|active| active.written.end > active.synced.end) {
            let path = directory::segment(folder, active.number);
            active.tail.replace(rescue(files, &path, active.number, active.synced.end..active.written.end)?);
            active.synced = active.written;
        }
        self.ledger.rescue(files, &directory::ledger(folder))?;
        files.sync_folder(folder).map_err(Error::io("sync", folder))?;
        self.in_doubt = false;
        Ok(())
    }
}

impl Active {
    fn append(&mut self, header: &Header, data: &[u8]) {
        let offset = self.tail.offset();
        block::append(self.tail.bytes(), header, data, self.number, offset);
    }
}

/// Returns the checksum of an event as it was given, where there is one.
fn given(record: &Record<'_>) -> Option<Checksum> {
    let Record { run, verdict, event, given: sum, .. } = *record;
    (sum > 0).then_some(Checksum { run, verdict, event, sum })
}

/// Joins sorted ranges that touch.
fn merged(ranges: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> + '_ {
    let mut rest = ranges.iter().peekable();
    std::iter::from_fn(move || {
        let mut range = rest.next()?.clone();
        while let Some(next) = rest.next_if(|next| next.start == range.end) {
            range.end = next.end;
        }
        Some(range)
    })
}
