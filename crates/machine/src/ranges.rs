use alloc::collections::BTreeMap;
use core::ops::Range;

/// A set of numbers, kept as ranges that do not touch: numbers that come nearly in order cost least. `u64::MAX` is never in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The end of each range, by its start.
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds a number, and returns whether it is new.
    #[inline]
    pub fn insert(&mut self, number: u64) -> bool {
        if let Some(mut last) = self.ranges.last_entry()
            && *last.get() == number
            && number < u64::MAX
        {
            *last.get_mut() += 1;
            return true;
        }
        number < u64::MAX && self.insert_range(number..number + 1) == 1
    }

    /// Adds a whole range, and returns how many of its numbers are new.
    pub fn insert_range(&mut self, added: Range<u64>) -> u64 {
        if added.is_empty() {
            return 0;
        }
        let (mut whole, mut known) = (added, 0);
        while let Some((&start, &end)) = self.ranges.range(..=whole.end).next_back()
            && end >= whole.start
        {
            if start <= whole.start && end >= whole.end {
                return 0;
            }
            known += end - start;
            whole = whole.start.min(start)..whole.end.max(end);
            self.ranges.remove(&start);
        }
        self.ranges.insert(whole.start, whole.end);
        whole.end - whole.start - known
    }

    /// Returns whether the numbers of a range overlap with others of the set, or stand right beside them.
    #[must_use]
    pub fn touches(&self, range: Range<u64>) -> bool {
        self.ranges.range(..=range.end).next_back().is_some_and(|(_, end)| *end >= range.start)
    }

    /// Returns whether any number of a range is in the set.
    #[must_use]
    pub fn meets(&self, range: Range<u64>) -> bool {
        self.ranges.range(..range.end).next_back().is_some_and(|(_, end)| *end > range.start)
    }

    /// Tells whether a number is in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.ranges.range(..=number).next_back().is_some_and(|(_, end)| *end > number)
    }

    /// Returns how many numbers are in the set.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns how many ranges there are.
    #[must_use]
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(start, end)| *start..*end)
    }

    /// Returns what of the set lies in a range, in order.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let before = self.ranges.range(..range.start).next_back().filter(|(_, end)| **end > range.start);
        let others = self.ranges.range(range.start..range.end.max(range.start));
        before.into_iter().chain(others).map(move |(start, end)| (*start).max(range.start)..(*end).min(range.end))
    }

    /// Returns the first number from `from` on that is not in the set.
    #[must_use]
    pub fn first_missing(&self, from: u64) -> u64 {
        self.ranges.range(..=from).next_back().map_or(from, |(_, end)| from.max(*end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    #[test]
    fn is_the_set_that_it_stands_for() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for _ in 0..300 {
                if random.chance(0.1) {
                    let start = random.below(100);
                    let end = start + random.below(10);
                    let new = (start..end).filter(|number| set.insert(*number)).count();
                    let touches = start < end && (start.saturating_sub(1)..=end).any(|number| ranges.contains(number));
                    assert_eq!(ranges.touches(start..end) && start < end, touches, "seed {seed}, {start}..{end}");
                    assert_eq!(ranges.insert_range(start..end), new as u64);
                } else {
                    let number = random.below(100);
                    assert_eq!(ranges.insert(number), set.insert(number), "seed {seed}, number {number}");
                }
            }
            let all: Vec<_> = ranges.iter().collect();
            assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start), "seed {seed}");
            assert_eq!(ranges.ranges(), all.len());
            assert_eq!(ranges.count(), set.len() as u64);
            for number in 0..120 {
                assert_eq!(ranges.contains(number), set.contains(&number), "seed {seed}, number {number}");
                assert_eq!(ranges.meets(number..number + 5), (number..number + 5).any(|number| set.contains(&number)));
                let within: Vec<_> = ranges.within(number..number + 5).flatten().collect();
                let expected: Vec<_> = (number..number + 5).filter(|number| set.contains(number)).collect();
                assert_eq!(within, expected, "seed {seed}, from {number}");
                let missing = (number..).find(|number| !set.contains(number));
                assert_eq!(Some(ranges.first_missing(number)), missing);
            }
        }
    }
}
