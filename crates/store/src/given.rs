//! Checksums of events as they were given: what comes later under the same number is compared with them.
//!
//! ```text
//! behind the verdicts of a commit, and of a closed segment: the byte 1; the events by run and verdict, as verdicts are; then 4
//! bytes for each of them, in that order
//! ```

use crate::record::Verdict;
use crate::verdicts;
use std::ops::Range;

/// The byte before checksums; without any there are zeros.
const MARK: u8 = 1;

/// An event's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Checksum {
    pub run: u32,
    pub verdict: Verdict,
    pub event: u64,
    pub sum: u32,
}

/// Checksums of events whose numbers follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksums {
    /// The run of the events.
    pub run: u32,
    /// The number of the first event.
    pub first: u64,
    /// The checksum of each event, as in [`Record::given`](crate::Record::given).
    pub sums: Vec<u32>,
}

impl Checksums {
    /// Reads the checksums of events from this one on.
    pub(crate) fn read(run: u32, first: u64, bytes: &[[u8; 4]]) -> Self {
        Checksums { run, first, sums: bytes.iter().map(|sum| u32::from_le_bytes(*sum)).collect() }
    }

    /// Returns each event with its checksum.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        // In this order nothing is counted beyond the last event, whose number may be the highest.
        self.sums.iter().zip(self.first..).map(|(sum, event)| (event, *sum))
    }
}

/// Appends checksums, sorted, to verdicts.
pub fn encode(all: &mut [Checksum], into: &mut Vec<u8>) {
    if all.is_empty() {
        return;
    }
    all.sort_unstable();
    into.push(MARK);
    let groups: Vec<(u32, Verdict, Vec<Range<u64>>)> = all
        .chunk_by(|one, next| (one.run, one.verdict) == (next.run, next.verdict))
        .map(|group| {
            let follow = group.chunk_by(|one, next| one.event + 1 == next.event);
            let ranges = follow.filter_map(|range| Some(range.first()?.event..range.last()?.event + 1));
            (group[0].run, group[0].verdict, ranges.collect())
        })
        .collect();
    verdicts::encode(groups.into_iter().map(|(run, verdict, ranges)| (run, verdict, ranges.into_iter())), into);
    all.iter().for_each(|given| into.extend_from_slice(&given.sum.to_le_bytes()));
}

/// Takes checksums off the front of what is behind the verdicts; `None` if the bytes are malformed.
pub fn take(rest: &mut &[u8], mut each: impl FnMut(u32, Verdict, u64, &[[u8; 4]])) -> Option<()> {
    if rest.first() != Some(&MARK) {
        return Some(());
    }
    *rest = &rest[1..];
    let mut ranges = Vec::new();
    verdicts::take(rest, |run, verdict, range| ranges.push((run, verdict, range)))?;
    for (run, verdict, range) in ranges {
        let bytes = usize::try_from(range.end - range.start).ok()?.checked_mul(4)?;
        let (sums, behind) = rest.split_at_checked(bytes)?;
        *rest = behind;
        each(run, verdict, range.start, sums.as_chunks().0);
    }
    Some(())
}

/// Run, event and checksum, ascending.
pub type Sums = Vec<(u32, u64, u32)>;

/// Adds checksums.
pub fn merge(all: impl Iterator<Item = Checksum>, into: &mut Sums) {
    into.extend(all.map(|given| (given.run, given.event, given.sum)));
    // Stable, as that is fast where they are made of some that are in order.
    into.sort();
}

/// Returns these checksums, sorted.
pub fn sorted(all: impl Iterator<Item = Checksum>) -> Sums {
    let mut sums = Sums::new();
    merge(all, &mut sums);
    sums
}

/// Splits checksums into those whose numbers follow each other.
pub fn ranges(sums: &[(u32, u64, u32)]) -> impl Iterator<Item = &[(u32, u64, u32)]> {
    sums.chunk_by(|one, next| one.0 == next.0 && one.1 + 1 == next.1)
}

/// Joins checksums whose numbers follow each other.
pub fn joined(sums: &Sums) -> Vec<Checksums> {
    let range = |range: &[(u32, u64, u32)]| Checksums {
        run: range[0].0,
        first: range[0].1,
        sums: range.iter().map(|(_, _, sum)| *sum).collect(),
    };
    ranges(sums).map(range).collect()
}

/// Returns the ranges of events, by run, in which these checksums are: sorted by verdict, each begins a new one.
pub fn spans(all: &[Checksum]) -> impl Iterator<Item = (u32, Range<u64>)> {
    let groups = all.chunk_by(|one, next| one.run == next.run && one.event < next.event);
    groups.filter_map(|group| Some((group[0].run, group.first()?.event..group.last()?.event + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(run: u32, verdict: Verdict, event: u64) -> Checksum {
        Checksum { run, verdict, event, sum: 0x1000 + event as u32 }
    }

    #[test]
    fn checksums_are_these_bytes() {
        use Verdict::{Accepted, Rejected};
        let mut all = [given(7, Rejected, 9), given(7, Accepted, 3), given(7, Rejected, 4), given(7, Rejected, 5)];
        let mut bytes = Vec::new();
        encode(&mut all, &mut bytes);
        let expected = [1, 2, 7, 1, 1, 3, 0, 7, 2, 2, 4, 1, 3, 0];
        assert_eq!(bytes[..14], expected);
        assert_eq!(bytes[14..], [3, 16, 0, 0, 4, 16, 0, 0, 5, 16, 0, 0, 9, 16, 0, 0]);
        let (mut rest, mut found) = (&bytes[..], Vec::new());
        let read = |run, _, first, sums: &[[u8; 4]]| found.push(Checksums::read(run, first, sums));
        take(&mut rest, read).expect("they are as they were written");
        let range = |first, sums: &[u32]| Checksums { run: 7, first, sums: sums.to_vec() };
        assert_eq!(found, [range(3, &[0x1003]), range(4, &[0x1004, 0x1005]), range(9, &[0x1009])]);
        assert!(rest.is_empty());
        for cut in 1..bytes.len() {
            assert_eq!(take(&mut &bytes[..cut], |_, _, _, _| ()), None, "{cut}");
        }
        let mut zeros = &[0, 0][..];
        assert_eq!((take(&mut zeros, |_, _, _, _| ()), zeros.len()), (Some(()), 2), "there are none");
    }

    #[test]
    fn ranges_larger_than_their_bytes_are_refused() {
        let mut bytes = vec![MARK, 1, 7, 2, 1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
        bytes.extend([0; 16]);
        assert_eq!(take(&mut &bytes[..], |_, _, _, _| ()), None);
    }
}
