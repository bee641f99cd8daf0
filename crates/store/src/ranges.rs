//! A set of event numbers, kept as ranges: consecutive numbers cost nothing, scattered ones at most a bit each.

use std::collections::BTreeMap;
use std::ops::Range;

/// The numbers of a chunk, as a power of two.
const CHUNK_BITS: u32 = 16;
const CHUNK: u32 = 1 << CHUNK_BITS;
/// More runs than this cost more than a bit a number.
const RUNS_MAX: usize = CHUNK as usize / 8 / size_of::<Run>();
const WORDS: usize = CHUNK as usize / 64;

/// First and last number in a chunk.
type Run = (u16, u16);

/// A set of numbers below `u64::MAX`, read as merged half-open ranges.
#[derive(Debug, Clone, Default)]
pub struct Ranges {
    /// Chunks that are wholly in the set.
    full: hodo_machine::Ranges,
    /// Chunks of which some numbers are in the set.
    parts: BTreeMap<u64, Chunk>,
    len: u64,
}

#[derive(Debug, Clone)]
enum Chunk {
    /// Ascending, with a gap between any two.
    Runs(Vec<Run>),
    Bits(Box<[u64; WORDS]>),
}

impl Ranges {
    /// Returns the empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of numbers in the set.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether this number is in the set.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        let (chunk, low) = split(number);
        self.is_full(chunk) || self.parts.get(&chunk).is_some_and(|part| part.contains(low))
    }

    /// Adds a number; returns `false` if it was in the set already.
    ///
    /// # Panics
    /// For `u64::MAX`, which no half-open range can hold.
    pub fn insert(&mut self, number: u64) -> bool {
        assert!(number < u64::MAX, "u64::MAX stands for no event");
        self.insert_range(number..number + 1) == 1
    }

    /// Adds all numbers of a range; returns how many were not in the set before.
    pub fn insert_range(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let before = self.len;
        let ((first, low), (last, high)) = (split(range.start), split(range.end - 1));
        if first == last {
            self.insert_part(first, low, high);
            return self.len - before;
        }
        self.insert_part(first, low, u16::MAX);
        if first + 1 < last {
            self.insert_chunks(first + 1, last - 1);
        }
        self.insert_part(last, 0, high);
        self.len - before
    }

    /// Adds all numbers of another set.
    pub fn extend(&mut self, other: &Ranges) {
        for range in other.iter() {
            self.insert_range(range);
        }
    }

    /// Returns the ranges, ascending, with a gap between any two.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let full = self.full.as_slice().iter().map(|chunks| (chunks.start, None, chunks.end - 1));
        let mut all: Vec<(u64, Option<&Chunk>, u64)> = full.collect();
        all.extend(self.parts.iter().map(|(chunk, part)| (*chunk, Some(part), *chunk)));
        all.sort_unstable_by_key(|(first, _, _)| *first);
        let pieces = all.into_iter().flat_map(|(first, part, last)| -> Box<dyn Iterator<Item = Range<u64>> + '_> {
            let Some(part) = part else {
                let end = (last << CHUNK_BITS).saturating_add(u64::from(CHUNK));
                return Box::new(std::iter::once(first << CHUNK_BITS..end));
            };
            let base = first << CHUNK_BITS;
            Box::new(part.runs().map(move |(low, high)| base + u64::from(low)..base + u64::from(high) + 1))
        });
        Merged { pieces, next: None }
    }

    fn is_full(&self, chunk: u64) -> bool {
        self.full.contains(chunk)
    }

    fn insert_part(&mut self, chunk: u64, low: u16, high: u16) {
        if self.is_full(chunk) {
            return;
        }
        if (low, high) == (0, u16::MAX) {
            return self.insert_chunks(chunk, chunk);
        }
        let part = self.parts.entry(chunk).or_insert_with(|| Chunk::Runs(Vec::new()));
        self.len += u64::from(part.insert(low, high));
        if part.is_full() {
            self.len -= u64::from(CHUNK);
            self.parts.remove(&chunk);
            self.insert_chunks(chunk, chunk);
        }
    }

    /// Adds whole chunks, `first` to `last`.
    fn insert_chunks(&mut self, first: u64, last: u64) {
        let inside: Vec<u64> = self.parts.range(first..=last).map(|(chunk, _)| *chunk).collect();
        for chunk in inside {
            self.len -= self.parts.remove(&chunk).map_or(0, |part| u64::from(part.len()));
        }
        let before = self.full.count();
        self.full.insert_range(first..last + 1);
        self.len += (self.full.count() - before) * u64::from(CHUNK);
    }
}

impl PartialEq for Ranges {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for Ranges {}

impl FromIterator<Range<u64>> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut all = Self::new();
        for range in ranges {
            all.insert_range(range);
        }
        all
    }
}

fn split(number: u64) -> (u64, u16) {
    (number >> CHUNK_BITS, (number & u64::from(u16::MAX)) as u16)
}

impl Chunk {
    fn contains(&self, low: u16) -> bool {
        match self {
            Chunk::Runs(runs) => {
                let after = runs.partition_point(|run| run.0 <= low);
                after > 0 && low <= runs[after - 1].1
            }
            Chunk::Bits(words) => words[usize::from(low >> 6)] >> (low & 63) & 1 == 1,
        }
    }

    /// Adds `low` to `high`; returns how many were new.
    fn insert(&mut self, low: u16, high: u16) -> u32 {
        let runs = match self {
            Chunk::Bits(words) => return set(words, low, high),
            Chunk::Runs(runs) => runs,
        };
        if let Some(last) = runs.last_mut().filter(|last| u32::from(last.1) + 1 == u32::from(low)) {
            last.1 = high;
            return u32::from(high - low) + 1;
        }
        let from = runs.partition_point(|run| u32::from(run.1) + 1 < u32::from(low));
        let to = runs.partition_point(|run| u32::from(run.0) <= u32::from(high) + 1);
        let touched: u32 = runs[from..to].iter().map(length).sum();
        let joined = runs[from..to].iter().fold((low, high), |all, run| (all.0.min(run.0), all.1.max(run.1)));
        runs.splice(from..to, [joined]);
        let new = length(&joined) - touched;
        if runs.len() > RUNS_MAX {
            let mut words = Box::new([0; WORDS]);
            for (low, high) in runs.iter() {
                set(&mut words, *low, *high);
            }
            *self = Chunk::Bits(words);
        }
        new
    }

    fn len(&self) -> u32 {
        match self {
            Chunk::Runs(runs) => runs.iter().map(length).sum(),
            Chunk::Bits(words) => words.iter().map(|word| word.count_ones()).sum(),
        }
    }

    fn is_full(&self) -> bool {
        match self {
            Chunk::Runs(runs) => runs[..] == [(0, u16::MAX)],
            Chunk::Bits(words) => words.iter().all(|word| *word == u64::MAX),
        }
    }

    fn runs(&self) -> Box<dyn Iterator<Item = Run> + '_> {
        match self {
            Chunk::Runs(runs) => Box::new(runs.iter().copied()),
            Chunk::Bits(words) => Box::new(BitRuns { words, at: 0 }),
        }
    }
}

fn length(run: &Run) -> u32 {
    u32::from(run.1 - run.0) + 1
}

fn set(words: &mut [u64; WORDS], low: u16, high: u16) -> u32 {
    let mut new = 0;
    let (first, last) = (usize::from(low >> 6), usize::from(high >> 6));
    for (index, word) in (first..).zip(&mut words[first..=last]) {
        let start = if index == first { low & 63 } else { 0 };
        let end = if index == last { high & 63 } else { 63 };
        let mask = (u64::MAX >> (63 - (end - start))) << start;
        new += (mask & !*word).count_ones();
        *word |= mask;
    }
    new
}

struct BitRuns<'a> {
    words: &'a [u64; WORDS],
    at: u32,
}

impl BitRuns<'_> {
    /// Finds the first place from `at` where the bit is `value`.
    fn from(&self, mut at: u32, value: bool) -> Option<u32> {
        while at < CHUNK {
            let word = self.words[at as usize >> 6];
            let word = (if value { word } else { !word }) >> (at & 63);
            if word != 0 {
                return Some(at + word.trailing_zeros());
            }
            at = (at | 63) + 1;
        }
        None
    }
}

impl Iterator for BitRuns<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let start = self.from(self.at, true)?;
        self.at = self.from(start, false).unwrap_or(CHUNK);
        Some((start as u16, (self.at - 1) as u16))
    }
}

/// An iterator that joins pieces that touch.
struct Merged<I> {
    pieces: I,
    next: Option<Range<u64>>,
}

impl<I: Iterator<Item = Range<u64>>> Iterator for Merged<I> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let mut range = self.next.take().or_else(|| self.pieces.next())?;
        for piece in self.pieces.by_ref() {
            if piece.start != range.end {
                self.next = Some(piece);
                break;
            }
            range.end = piece.end;
        }
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;
    use std::collections::BTreeSet;

    #[test]
    fn neighbours_are_one_range() {
        let set: Ranges = [5..7, 9..10, 7..9, 0..1].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0..1, 5..10]);
        assert_eq!(set.len(), 6);
    }

    #[test]
    fn the_largest_range_costs_nothing() {
        let mut set = Ranges::new();
        assert_eq!(set.insert_range(0..u64::MAX - 70_000), u64::MAX - 70_000);
        assert_eq!(set.insert_range(1..u64::MAX), 70_000);
        assert!(!set.insert(12));
        assert!(set.iter().eq(std::iter::once(0..u64::MAX)));
    }

    /// Against a set of numbers, over shapes from scattered to dense, around the ends of chunks.
    #[test]
    fn it_is_a_set() {
        let mut state = 7_u64;
        let mut draw = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..8 {
            let (span, longest) = [(200_000, 3), (70_000, 2), (300_000, 70_000), (9_000, 2)][round % 4];
            let (mut set, mut model) = (Ranges::new(), BTreeSet::new());
            for _ in 0..12_000 / longest.min(100) {
                let start = draw(span);
                let end = start + 1 + draw(longest);
                let new = (start..end).filter(|number| model.insert(*number)).count() as u64;
                assert_eq!(set.insert_range(start..end), new);
            }
            assert_eq!(set.len(), model.len() as u64);
            let listed: Vec<u64> = set.iter().flatten().collect();
            assert!(listed.iter().eq(model.iter()));
            assert!((0..span).all(|number| set.contains(number) == model.contains(&number)));
            let mut copy = Ranges::new();
            copy.extend(&set);
            assert_eq!(copy, set);
        }
    }

    #[test]
    fn order_does_not_matter() {
        let even: Ranges = (0..70_000).step_by(2).map(|number| number..number + 1).collect();
        let mut all = even.clone();
        for number in 0..35_000 {
            assert!(all.insert(69_999 - 2 * number));
        }
        assert_eq!(even.iter().count(), 35_000);
        assert!(all.iter().eq(std::iter::once(0..70_000)));
    }
}
