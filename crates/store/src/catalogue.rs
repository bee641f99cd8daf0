//! Where the checksums of events are: in memory those of the open segment, in the files those of closed ones.

use crate::directory;
use crate::error::Error;
use crate::files::Files;
use crate::given::{Checksum, Checksums};
use crate::ranges::Ranges;
use crate::recovery::given_of;
use crate::scan::Scan;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::path::Path;

/// Segments whose checksums are kept once they were read.
const READ_MAX: usize = 2;

/// Numbers of events, by run.
type Numbers = BTreeMap<u32, Ranges>;
/// Run, event and checksum, ascending.
type Sums = Vec<(u32, u64, u32)>;

/// Finds the checksum of an event as it was given. Nothing is read, or entered, before the first is looked for.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The closed segments, and the events whose checksums each may have; `None` where that is not known.
    closed: BTreeMap<u64, Option<Numbers>>,
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
        let numbers = spans.into_iter().map(|(run, span)| (run, [span].into_iter().collect())).collect();
        self.closed.insert(number, Some(numbers));
    }

    /// Returns the checksum of an event of the open segment, which has all of these.
    pub fn of_open(&mut self, number: u64, given: &[Checksum], run: u32, event: u64) -> Option<u32> {
        if self.open.0 != number {
            self.open = (number, Vec::new());
        }
        let sums = &mut self.open.1;
        if sums.len() < given.len() {
            sums.extend(given[sums.len()..].iter().map(|given| (given.run, given.event, given.sum)));
            // Stable, as that is fast where all but the last are in order.
            sums.sort();
        }
        find(sums, run, event)
    }

    /// Returns the checksum of an event of a closed segment, and reads the segments that may have it, the newest first.
    pub fn of_closed(&mut self, files: &dyn Files, folder: &Path, run: u32, event: u64) -> Result<Option<u32>, Error> {
        let may_have = |numbers: &Option<Numbers>| {
            numbers.as_ref().is_none_or(|numbers| numbers.get(&run).is_some_and(|those| those.contains(event)))
        };
        let mut below = u64::MAX;
        while let Some(number) =
            self.closed.range(..below).rev().find(|(_, numbers)| may_have(numbers)).map(|(number, _)| *number)
        {
            below = number;
            let sums = self.sums_of(files, folder, number)?;
            if let Some(sum) = find(sums, run, event) {
                return Ok(Some(sum));
            }
        }
        Ok(None)
    }

    /// Returns the checksums of a closed segment; none of one that was taken away.
    fn sums_of(&mut self, files: &dyn Files, folder: &Path, number: u64) -> Result<&Sums, Error> {
        let known = self.read.iter().position(|(of, _)| *of == number);
        let entry = match known.and_then(|place| self.read.remove(place)) {
            Some(known) => known,
            None => {
                let path = directory::segment(folder, number);
                let found = match files.read(&path).and_then(|file| Scan::new(file, number)) {
                    Ok(mut scan) => given_of(&mut scan).map_err(Error::io("read", &path))?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                    Err(error) => return Err(Error::io("open", &path)(error)),
                };
                self.closed.insert(number, Some(numbers(&found)));
                (number, sorted(&found))
            }
        };
        self.read.truncate(READ_MAX - 1);
        self.read.push_front(entry);
        Ok(&self.read[0].1)
    }
}

fn numbers(found: &[Checksums]) -> Numbers {
    let mut numbers = Numbers::new();
    for range in found {
        let end = range.first + range.sums.len() as u64;
        numbers.entry(range.run).or_default().insert_range(range.first..end);
    }
    numbers
}

fn sorted(found: &[Checksums]) -> Sums {
    let each = found.iter().flat_map(|range| range.iter().map(|(event, sum)| (range.run, event, sum)));
    let mut sums: Sums = each.collect();
    sums.sort();
    sums
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

    #[test]
    fn a_segment_of_which_nothing_is_known_is_read_once() {
        let folder = std::env::temp_dir().join(format!("hodo-catalogue-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let (mut store, _) = Store::open(Options::new(&folder)).expect("the folder can be made");
        let mut catalogue = Catalogue::default();
        for number in 1_u64..=4 {
            // Those with even numbers have none.
            for event in [number, 1000 - number] {
                let given = if number.is_multiple_of(2) { 0 } else { 50 + event as u32 };
                store.put(&Record { given, ..Record::new(7, event, Verdict::Rejected, b"") }).expect("there is room");
            }
            store.close_segment().expect("there is room");
            catalogue.add(number);
        }
        let mut find = |run, event| catalogue.of_closed(&System, &folder, run, event).expect("it can be read");
        assert_eq!([find(7, 3), find(7, 1), find(7, 999), find(7, 2)], [Some(53), Some(51), Some(1049), None]);
        assert_eq!([find(7, 500), find(8, 1)], [None; 2]);
        std::fs::remove_dir_all(&folder).expect("it is there");
        assert_eq!([find(7, 500), find(7, 1)], [None, Some(51)], "nothing is read again");
        assert!(catalogue.closed.values().all(Option::is_some) && catalogue.read.len() <= READ_MAX);
    }
}
