//! Where the checksums of events are: in memory those of the open segment, in the files those of closed ones.

use crate::directory;
use crate::error::Error;
use crate::files::Files;
use crate::given::{self, Checksum, Sums};
use crate::ranges::Ranges;
use crate::recovery::given_of;
use crate::scan::Scan;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::path::Path;

/// Segments whose checksums are kept once they were read.
const READ_MAX: usize = 2;

/// The events of a segment, by run.
type Events = BTreeMap<u32, There>;

/// Events that are in a segment.
#[derive(Debug)]
struct There {
    /// From the first one to behind the last.
    span: Range<u64>,
    /// Those within that; before it was read, all of them.
    events: Ranges,
}

/// Finds the checksum of an event as it was given. Nothing is read, or entered, before the first is looked for.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The closed segments, and the events whose checksums each may have; `None` where that is not known.
    closed: BTreeMap<u64, Option<Events>>,
    /// The segments that were read last, the newest first.
    read: VecDeque<(u64, Sums)>,
    /// The open segment, as far as it was entered.
    open: (u64, Sums),
}

impl Catalogue {
    /// Adds a closed segment.
    pub fn add(&mut self, number: u64) {
        self.closed.insert(number, None);
    }

    /// Adds a closed segment with these ranges of events.
    pub fn add_with(&mut self, number: u64, events: impl Iterator<Item = (u32, Range<u64>)>) {
        let mut spans: BTreeMap<u32, Range<u64>> = BTreeMap::new();
        for (run, range) in events {
            let span = spans.entry(run).or_insert_with(|| range.clone());
            *span = span.start.min(range.start)..span.end.max(range.end);
        }
        // Where its events are within that is learned when it is read: most never are.
        let there = |span: Range<u64>| There { events: [span.clone()].into_iter().collect(), span };
        self.closed.insert(number, Some(spans.into_iter().map(|(run, span)| (run, there(span))).collect()));
    }

    /// Returns the checksum of an event of the open segment, which has all of these.
    pub fn of_open(&mut self, number: u64, given: &[Checksum], run: u32, event: u64) -> Option<u32> {
        if self.open.0 != number {
            self.open = (number, Vec::new());
        }
        let sums = &mut self.open.1;
        if sums.len() < given.len() {
            given::merge(given[sums.len()..].iter().copied(), sums);
        }
        find(sums, run, event)
    }

    /// Returns the checksum of an event of a closed segment, and reads the segments that may have it.
    pub fn of_closed(&mut self, files: &dyn Files, folder: &Path, run: u32, event: u64) -> Result<Option<u32>, Error> {
        let (mut unread, mut failed) = (Vec::new(), None);
        // Each that is read has it, or is no candidate any more.
        while let Some(number) = self.candidate(run, event, &unread) {
            match self.sums_of(files, folder, number) {
                Ok(sums) => {
                    if let Some(sum) = find(sums, run, event) {
                        return Ok(Some(sum));
                    }
                }
                // Another may have it; this one is tried again for the next event.
                Err(error) => {
                    unread.push(number);
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(None), Err)
    }

    /// Returns a segment that may have an event. Where that is not known of any, the numbers are taken to ascend, so that few
    /// are read in vain.
    fn candidate(&self, run: u32, event: u64, unread: &[u64]) -> Option<u64> {
        let closed = self.closed.iter().filter(|(number, _)| !unread.contains(number));
        let known = closed.clone().filter_map(|(number, there)| Some((*number, there.as_ref()?.get(&run)?)));
        if let Some((number, _)) = known.clone().rev().find(|(_, there)| there.events.contains(event)) {
            return Some(number);
        }
        let after = known.clone().filter(|(_, there)| there.span.end <= event).map(|(number, _)| number).max();
        let before = known.filter(|(_, there)| there.span.start > event).map(|(number, _)| number).min();
        let unknown = closed.filter(|(_, there)| there.is_none()).map(|(number, _)| *number);
        let is_between =
            |number: &u64| after.is_none_or(|after| *number > after) && before.is_none_or(|before| *number < before);
        let between: Vec<u64> = unknown.clone().filter(is_between).collect();
        between.get(between.len() / 2).copied().or_else(|| unknown.max())
    }

    /// Returns the checksums of a closed segment; none of one that was taken away.
    fn sums_of(&mut self, files: &dyn Files, folder: &Path, number: u64) -> Result<&Sums, Error> {
        let known = self.read.iter().position(|(of, _)| *of == number);
        let entry = match known.and_then(|place| self.read.remove(place)) {
            Some(known) => known,
            None => {
                let path = directory::segment(folder, number);
                let sums = match files.read(&path).and_then(|file| Scan::new(file, number)) {
                    Ok(mut scan) => given_of(&mut scan).map_err(Error::io("read", &path))?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                    Err(error) => return Err(Error::io("open", &path)(error)),
                };
                self.closed.insert(number, Some(events(&sums)));
                (number, sums)
            }
        };
        self.read.truncate(READ_MAX - 1);
        self.read.push_front(entry);
        Ok(&self.read[0].1)
    }
}

fn events(sums: &Sums) -> Events {
    let range = |range: &[(u32, u64, u32)]| range[0].1..range[0].1 + range.len() as u64;
    let of_run = |sums: &[(u32, u64, u32)]| {
        let events: Ranges = given::ranges(sums).map(range).collect();
        let span = sums[0].1..sums[sums.len() - 1].1 + 1;
        (sums[0].0, There { span, events })
    };
    sums.chunk_by(|one, next| one.0 == next.0).map(of_run).collect()
}

fn find(sums: &Sums, run: u32, event: u64) -> Option<u32> {
    let place = sums.binary_search_by_key(&(run, event), |(run, event, _)| (*run, *event)).ok()?;
    Some(sums[place].2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::System;
    use crate::{Options, Record, Store, Verdict};
    use std::path::PathBuf;

    /// Makes a store with a closed segment for each of these sets of events, and a catalogue that knows nothing of them.
    fn closed(name: &str, segments: &[Vec<(u64, u32)>]) -> (PathBuf, Catalogue) {
        let folder = std::env::temp_dir().join(format!("hodo-catalogue-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let (mut store, _) = Store::open(Options::new(&folder)).expect("the folder can be made");
        let mut catalogue = Catalogue::default();
        for (number, events) in (1..).zip(segments) {
            for (event, given) in events {
                let record = Record { given: *given, ..Record::new(7, *event, Verdict::Rejected, b"") };
                store.put(&record).expect("there is room");
            }
            store.close_segment().expect("there is room");
            catalogue.add(number);
        }
        (folder, catalogue)
    }

    #[test]
    fn a_segment_of_which_nothing_is_known_is_read_once() {
        // Those with even numbers have no checksums.
        let given = |number: u64, event: u64| if number.is_multiple_of(2) { 0 } else { 50 + event as u32 };
        let segment = |number: u64| [number, 1000 - number].map(|event| (event, given(number, event))).to_vec();
        let (folder, mut catalogue) = closed("once", &[1, 2, 3, 4].map(segment));
        let mut find = |run, event| catalogue.of_closed(&System, &folder, run, event).expect("it can be read");
        assert_eq!([find(7, 3), find(7, 1), find(7, 999), find(7, 2)], [Some(53), Some(51), Some(1049), None]);
        assert_eq!([find(7, 500), find(8, 1)], [None; 2]);
        std::fs::remove_dir_all(&folder).expect("it is there");
        assert_eq!([find(7, 500), find(7, 2)], [None; 2], "nothing is read again");
        assert!(catalogue.closed.values().all(Option::is_some) && catalogue.read.len() <= READ_MAX);
    }

    #[test]
    fn where_numbers_ascend_few_segments_are_read() {
        let segments: Vec<_> =
            (0..64).map(|number| (number * 10..number * 10 + 10).map(|event| (event, 9)).collect()).collect();
        let (folder, mut catalogue) = closed("few", &segments);
        for (event, most) in [(5, 7), (5, 7), (639, 13), (636, 13)] {
            assert_eq!(catalogue.of_closed(&System, &folder, 7, event).expect("it can be read"), Some(9));
            let read = catalogue.closed.values().flatten().count();
            assert!(read <= most, "{read} were read for {event}");
        }
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
