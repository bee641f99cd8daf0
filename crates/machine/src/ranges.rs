use alloc::vec::Vec;
use core::ops::Range;

/// A set of numbers that come nearly in order, kept as sorted ranges that do not touch. `u64::MAX` is never in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    ranges: Vec<Range<u64>>,
}

impl Ranges {
    /// Adds a number, and returns whether it is new.
    #[inline]
    pub fn insert(&mut self, number: u64) -> bool {
        if number == u64::MAX {
            return false;
        }
        if let Some(last) = self.ranges.last_mut()
            && last.end == number
        {
            last.end += 1;
            return true;
        }
        // The first range that ends behind the number, or right before it.
        let index = self.ranges.partition_point(|range| range.end < number);
        match self.ranges.get_mut(index) {
            Some(range) if range.contains(&number) => return false,
            Some(range) if range.end == number => {
                range.end += 1;
                self.join(index);
            }
            Some(range) if range.start == number + 1 => range.start = number,
            _ => self.ranges.insert(index, number..number + 1),
        }
        true
    }

    /// Adds a whole range, and returns how many of its numbers are new.
    pub fn insert_range(&mut self, added: Range<u64>) -> u64 {
        if added.is_empty() {
            return 0;
        }
        let first = self.ranges.partition_point(|range| range.end < added.start);
        let behind = self.ranges.partition_point(|range| range.start <= added.end);
        let (mut whole, mut known) = (added, 0);
        for range in &self.ranges[first..behind] {
            whole = whole.start.min(range.start)..whole.end.max(range.end);
            known += range.end - range.start;
        }
        let new = whole.end - whole.start - known;
        self.ranges.splice(first..behind, [whole]);
        new
    }

    /// Returns whether the numbers of a range overlap with others of the set, or stand right beside them.
    #[must_use]
    pub fn touches(&self, range: Range<u64>) -> bool {
        let index = self.ranges.partition_point(|known| known.end < range.start);
        self.ranges.get(index).is_some_and(|known| known.start <= range.end)
    }

    fn join(&mut self, index: usize) {
        if let Some(next) = self.ranges.get(index + 1)
            && next.start == self.ranges[index].end
        {
            self.ranges[index].end = next.end;
            self.ranges.remove(index + 1);
        }
    }

    /// Tells whether a number is in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        let index = self.ranges.partition_point(|range| range.end <= number);
        self.ranges.get(index).is_some_and(|range| range.start <= number)
    }

    /// Returns how many numbers are in the set.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns the ranges in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Returns the first number from `from` on that is not in the set.
    #[must_use]
    pub fn first_missing(&self, from: u64) -> u64 {
        let index = self.ranges.partition_point(|range| range.end <= from);
        match self.ranges.get(index) {
            Some(range) if range.start <= from => range.end,
            _ => from,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use alloc::collections::BTreeSet;

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
            assert!(ranges.as_slice().windows(2).all(|pair| pair[0].end < pair[1].start), "seed {seed}");
            assert_eq!(ranges.count(), set.len() as u64);
            for number in 0..120 {
                assert_eq!(ranges.contains(number), set.contains(&number), "seed {seed}, number {number}");
                let missing = (number..).find(|number| !set.contains(number));
                assert_eq!(Some(ranges.first_missing(number)), missing);
            }
        }
    }
}
