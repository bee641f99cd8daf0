//! Recovers a folder's contents after a crash.

use crate::block::{FileKind, HEADER, Header, HeaderFault, Kind};
use crate::catalogue::Catalogue;
use crate::directory;
use crate::error::Error;
use crate::files::Files;
use crate::given::{self, Checksum, Checksums, Sums};
use crate::index::Entry;
use crate::ledger::{self, Contents, Ledger};
use crate::ranges::Ranges;
use crate::record::{Record, Verdict};
use crate::scan::{Scan, Source, Step};
use crate::settle::{Mark, settle, sync_file, tidy};
use crate::store::{Durability, Options};
use crate::tail::Tail;
use crate::verdicts::{self, Verdicts};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The verdicts that were found when a store was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The verdicts, by run.
    pub runs: BTreeMap<u32, RunLedger>,
    /// Bytes of an unfinished commit that were cut off the last segment. Nobody was told that they were durable.
    pub cut_bytes: u64,
    /// Damaged bytes of segments. The verdicts in them are not in `runs`.
    pub damaged: Vec<Damage>,
    /// Checksums of the newest events as they were given, the oldest first: of 16 million at least, where there are so many.
    pub given: Vec<Checksums>,
}

/// The number of events whose checksums are recovered, and of segments that are looked at for them.
const GIVEN_MAX: usize = 1 << 24;
const LOOKED_AT_MAX: usize = 4096;

/// The verdicts of a run's events: four sets without an event in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunLedger {
    /// Events that are kept, with their data.
    pub accepted: Ranges,
    /// Events that were not wanted.
    pub rejected: Ranges,
    /// Events that no node could decide on; kept, with their data.
    pub quarantined: Ranges,
    /// Events given up because fragments were missing.
    pub incomplete: Ranges,
}

impl RunLedger {
    /// Returns the events of a verdict.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> &Ranges {
        match verdict {
            Verdict::Accepted => &self.accepted,
            Verdict::Rejected => &self.rejected,
            Verdict::Quarantined => &self.quarantined,
            Verdict::Incomplete => &self.incomplete,
        }
    }

    /// Returns the events of a verdict, to be added to.
    pub fn of_mut(&mut self, verdict: Verdict) -> &mut Ranges {
        match verdict {
            Verdict::Accepted => &mut self.accepted,
            Verdict::Rejected => &mut self.rejected,
            Verdict::Quarantined => &mut self.quarantined,
            Verdict::Incomplete => &mut self.incomplete,
        }
    }

    /// Returns the verdict of this event; `None` if it was not decided.
    #[must_use]
    pub fn verdict(&self, event: u64) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| self.of(*verdict).contains(event))
    }
}

/// A range of bytes that are not as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The open segment.
#[derive(Debug)]
pub struct Active {
    pub number: u64,
    pub tail: Tail,
    pub entries: Vec<Entry>,
    pub verdicts: Verdicts,
    pub given: Vec<Checksum>,
    pub commits: u64,
    /// The last commit that is written, and the last that the disk is known to have.
    pub written: Mark,
    pub synced: Mark,
}

/// The state from which a store goes on.
#[derive(Debug)]
pub struct State {
    pub active: Option<Active>,
    /// The number of the next segment.
    pub next: u64,
    pub ledger: Ledger,
    pub catalogue: Catalogue,
    pub recovered: Recovered,
}

/// Reads the folder, cuts a torn tail, brings the ledger up to date, and makes all that was read durable: the disk may not
/// have what an earlier process has written, and whoever gives those events again hears that they are stored.
pub fn recover(files: &dyn Files, options: &Options) -> Result<State, Error> {
    let folder = &options.directory;
    let path = directory::ledger(folder);
    tidy(files, folder)?;
    let there = directory::segments(files, folder)?;
    let (contents, segments) = known(files, &path, &there)?;
    if options.durability == Durability::Disk {
        // Those in the ledger were synced, but perhaps not where they are now: in a copy they were not.
        let known = there.iter().filter(|(number, _)| *number <= contents.last);
        known.map(|(_, path)| path).try_for_each(|path| sync_file(files, path).map(drop))?;
    }
    let mut ledger = Ledger::resume(files, path, &contents)?;
    let Contents { verdicts: mut all, last, .. } = contents;
    let newest = segments.last().map_or(last, |(number, _)| *number);
    let (mut recovered, mut catalogue) = (Recovered::default(), Catalogue::default());
    let closed = there.iter().filter(|(number, _)| *number <= last);
    closed.clone().for_each(|(number, _)| catalogue.add(*number));
    recovered.given = newest_given(files, closed, &mut catalogue);
    let (mut active, mut next) = (None, newest + 1);
    for (number, path) in segments {
        let found = Found::read(files, &path, number)?;
        merge(&found.verdicts, &mut all);
        recovered.given.extend(given::joined(&given::sorted(found.given.iter().copied())));
        let grows = number == newest && !found.closed && found.damage.is_empty();
        if grows {
            recovered.cut_bytes = found.torn;
            active = found.into_active(files, path, number)?;
            next = if active.is_some() { number + 1 } else { number };
        } else {
            settle(files, &path, 0..found.length)?;
            catalogue.add_with(number, given::spans(&found.given));
            ledger.append(number, &found.verdicts, options.durability);
            recovered.damaged.extend(found.damage);
            let torn = (found.torn > 0).then_some(Damage { path, offset: found.end, bytes: found.torn });
            recovered.damaged.extend(torn);
        }
    }
    // The ledger must not know of a segment whose name the disk could still lose.
    files.sync_folder(folder).map_err(Error::io("sync", folder))?;
    ledger.flush(files, options.durability)?;
    for ((run, verdict), ranges) in &all {
        recovered.runs.entry(*run).or_default().of_mut(*verdict).extend(ranges);
    }
    Ok(State { active, next, ledger, catalogue, recovered })
}

/// Returns the checksums that closed segments have at their ends, of the newest ones; the catalogue learns where they are.
fn newest_given<'a>(
    files: &dyn Files,
    closed: impl DoubleEndedIterator<Item = &'a (u64, PathBuf)>,
    catalogue: &mut Catalogue,
) -> Vec<Checksums> {
    let (mut segments, mut count) = (Vec::new(), 0);
    for (number, path) in closed.rev() {
        // What cannot be read is not compared: the verdicts are in the ledger.
        let scan = files.read(path).and_then(|file| Scan::new(file, *number));
        let Ok(sums) = scan.and_then(|mut scan| given_of(&mut scan)) else { continue };
        let found = given::joined(&sums);
        let events = found.iter().map(|range| (range.run, range.first..range.first + range.sums.len() as u64));
        catalogue.add_with(*number, events);
        count += sums.len();
        segments.push(found);
        if count >= GIVEN_MAX || segments.len() >= LOOKED_AT_MAX {
            break;
        }
    }
    segments.into_iter().rev().flatten().collect()
}

/// Reads the checksums at the end of a segment; of one without an end, those of each block.
pub fn given_of<S: Source>(scan: &mut Scan<S>) -> io::Result<Sums> {
    let Some(end) = scan.length().checked_sub(HEADER as u64) else { return Ok(Vec::new()) };
    scan.seek(end);
    if let Some(Step::Block { header: Header { kind: Kind::End, run: length, .. }, .. }) = scan.next()? {
        let Some(place) = end.checked_sub(u64::from(length)).filter(|_| length > 0) else { return Ok(Vec::new()) };
        scan.seek(place);
        if let Some(Step::Block { header: Header { kind: Kind::Ledger, .. }, .. }) = scan.next()? {
            let mut found = Vec::new();
            add_all_given(scan.data(), &mut found);
            return Ok(given::sorted(found.into_iter()));
        }
    }
    scan.seek(crate::block::FILE_HEADER as u64);
    let mut all = Vec::new();
    while let Some(step) = scan.next()? {
        if let Step::Block { header, .. } = step {
            add_given(&header, scan.data(), &mut all);
        }
    }
    Ok(given::sorted(all.into_iter()))
}

type Segments = Vec<(u64, PathBuf)>;

/// Returns the ledger's contents, and the segments that are not in it.
fn known(files: &dyn Files, path: &Path, segments: &Segments) -> Result<(Contents, Segments), Error> {
    let contents = ledger::read(files, path)?.unwrap_or_else(|| Contents { whole: true, ..Contents::default() });
    let missing = |last: u64| {
        let after = segments.iter().map(|(number, _)| *number).filter(|number| *number > last);
        (last + 1..).zip(after).find(|(expected, there)| expected != there).map(|(expected, _)| expected)
    };
    if let Some(segment) = missing(contents.last) {
        return Err(Error::LedgerLost { path: path.to_owned(), segment });
    }
    // A damaged ledger may have known more: unless the segments go on from what is left, that is lost.
    let newest = segments.last().map_or(0, |(number, _)| *number);
    let known_before = contents.reached.max(contents.last + 1);
    if !contents.whole && contents.length > 0 && newest < known_before {
        return Err(Error::LedgerLost { path: path.to_owned(), segment: contents.last + 1 });
    }
    let last = contents.last;
    Ok((contents, segments.iter().filter(|(number, _)| *number > last).cloned().collect()))
}

/// Adds all verdicts of `from`.
pub fn merge(from: &Verdicts, into: &mut Verdicts) {
    for (key, ranges) in from {
        into.entry(*key).or_default().extend(ranges);
    }
}

/// The contents of a segment.
#[derive(Debug, Default)]
struct Found {
    entries: Vec<Entry>,
    verdicts: Verdicts,
    given: Vec<Checksum>,
    /// The commits, in their order.
    commits: Vec<Mark>,
    /// The number of the last commit that the disk had when the last one was written.
    synced: u64,
    length: u64,
    closed: bool,
    damage: Vec<Damage>,
    /// The end of the last good block of events.
    end: u64,
    /// Bytes behind that block.
    torn: u64,
}

impl Found {
    fn read(files: &dyn Files, path: &Path, number: u64) -> Result<Self, Error> {
        let file = files.read(path).map_err(Error::io("open", path))?;
        let mut scan = Scan::new(file, number).map_err(Error::io("read", path))?;
        let mut found = Found { length: scan.length(), ..Found::default() };
        match scan.file_header(FileKind::Segment).map_err(Error::io("read", path))? {
            None => {
                found.torn = scan.length();
                return Ok(found);
            }
            Some(header) => found.damage.extend(header_damage(path, number, header)?),
        }
        // The end may be on the disk where events before it are not: only what is found counts.
        found.closed = has_end(&mut scan).map_err(Error::io("read", path))?;
        scan.seek(crate::block::FILE_HEADER as u64);
        found.scan(path, &mut scan).map_err(Error::io("read", path))?;
        Ok(found)
    }

    /// Reads every block. An unfinished end of the segment counts as torn.
    fn scan<S: Source>(&mut self, path: &Path, scan: &mut Scan<S>) -> io::Result<()> {
        self.end = crate::block::FILE_HEADER as u64;
        while let Some(step) = scan.next()? {
            let Step::Block { header, offset } = step else {
                if let Step::Damage { offset, bytes } = step {
                    self.damage.push(Damage { path: path.to_owned(), offset, bytes });
                }
                continue;
            };
            match header.kind {
                Kind::Event => self.entries.push(Entry::of(&header, offset)),
                Kind::Commit => {
                    self.commits.push(Mark { commit: header.a, end: offset + header.block_length() });
                    self.synced = u64::from(header.run);
                }
                Kind::Index | Kind::Ledger | Kind::End => continue,
            }
            add(&header, scan.data(), &mut self.verdicts);
            add_given(&header, scan.data(), &mut self.given);
            self.end = offset + header.block_length();
        }
        self.torn = if self.closed { 0 } else { scan.length() - self.end };
        Ok(())
    }

    /// Cuts the torn end off, settles the rest, and returns the segment to go on with; `None` if it has not begun.
    fn into_active(self, files: &dyn Files, path: PathBuf, number: u64) -> Result<Option<Active>, Error> {
        if self.end == 0 {
            files.remove(&path).map_err(Error::io("remove", &path))?;
            return Ok(None);
        }
        let mut file = files.open(&path).map_err(Error::io("open", &path))?;
        if self.torn > 0 {
            file.cut(self.end).map_err(Error::io("cut", &path))?;
        }
        let known = self.commits.iter().find(|mark| mark.commit == self.synced);
        settle(files, &path, known.map_or(0, |mark| mark.end)..self.end)?;
        // It may be another file than before.
        let file = files.open(&path).map_err(Error::io("open", &path))?;
        let tail = Tail::resume(path, file, self.end);
        let Found { entries, verdicts, given, commits, end, .. } = self;
        let commits = commits.last().map_or(0, |mark| mark.commit);
        let mark = Mark { commit: commits, end };
        Ok(Some(Active { number, tail, entries, verdicts, given, commits, written: mark, synced: mark }))
    }
}

/// Compares a file's header with its name. A damaged header is only reported, as the name has the number too.
pub fn header_damage(path: &Path, number: u64, header: Result<u64, HeaderFault>) -> Result<Option<Damage>, Error> {
    let found = match header {
        Ok(there) if there == number => return Ok(None),
        Ok(there) => format!("it calls itself segment {there}"),
        Err(HeaderFault::Version(version)) => format!("version {version}"),
        Err(HeaderFault::Magic | HeaderFault::Sum) => {
            let bytes = crate::block::FILE_HEADER as u64;
            return Ok(Some(Damage { path: path.to_owned(), offset: 0, bytes }));
        }
    };
    Err(Error::Foreign { path: path.to_owned(), found })
}

/// Adds the checksums in the block of an event, or of a commit.
pub fn add_given(header: &Header, data: &[u8], into: &mut Vec<Checksum>) {
    match header.kind {
        Kind::Event if header.given > 0 && !header.is_conflict() => {
            if let Some(Record { run, verdict, event, given: sum, .. }) = header.record(data) {
                into.push(Checksum { run, verdict, event, sum });
            }
        }
        Kind::Commit => add_all_given(data, into),
        _ => {}
    }
}

/// Adds the checksums behind verdicts.
fn add_all_given(data: &[u8], into: &mut Vec<Checksum>) {
    let each_given = |run, verdict, first, sums: &[_]| {
        // In this order nothing is counted beyond the last event, whose number may be the highest.
        let each = sums.iter().zip(first..);
        into.extend(each.map(|(sum, event)| Checksum { run, verdict, event, sum: u32::from_le_bytes(*sum) }));
    };
    // Data whose checksum is right were written so by a store.
    let _ = verdicts::decode_all(data, |_, _, _| (), each_given);
}

/// Adds the verdicts of a block; returns `false` if it is malformed, or its event had this verdict.
pub fn add(header: &Header, data: &[u8], into: &mut Verdicts) -> bool {
    match header.kind {
        Kind::Event => {
            let Some(record) = header.record(data) else { return false };
            record.conflict || into.entry((record.run, record.verdict)).or_default().insert(record.event)
        }
        Kind::Commit | Kind::Ledger => verdicts::decode_into(data, into).is_some(),
        Kind::Index | Kind::End => true,
    }
}

/// Returns whether this segment has an end.
pub fn is_closed(path: &Path, number: u64) -> Result<bool, Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    Scan::new(file, number).and_then(|mut scan| has_end(&mut scan)).map_err(Error::io("read", path))
}

/// Returns whether a segment ends in its index, its verdicts, and its end.
fn has_end<S: Source>(scan: &mut Scan<S>) -> io::Result<bool> {
    let Some(end) = scan.length().checked_sub(HEADER as u64) else { return Ok(false) };
    scan.seek(end);
    let Some(Step::Block { header: Header { kind: Kind::End, a: index, .. }, .. }) = scan.next()? else {
        return Ok(false);
    };
    scan.seek(index);
    let Some(Step::Block { header: Header { kind: Kind::Index, .. }, .. }) = scan.next()? else { return Ok(false) };
    Ok(matches!(scan.next()?, Some(Step::Block { header: Header { kind: Kind::Ledger, .. }, .. })))
}
