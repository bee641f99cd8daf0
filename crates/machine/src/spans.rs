use alloc::boxed::Box;
use alloc::vec;

/// Times are told apart to a sixteenth of their size.
const PER_OCTAVE_BITS: u32 = 4;
const PER_OCTAVE: u64 = 1 << PER_OCTAVE_BITS;
/// All times below 2^6 = 64 ns are one.
const FIRST_OCTAVE: u32 = 6;
/// All times from 2^34 ns = 17 s on count as the longest below it.
const OCTAVES: u32 = 28;

/// How long something took, many times over: counts of times that are alike, and their exact sum.
///
/// It has a fixed size, and needs no more than integers: for machines that tell a far end of the stages they stamped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spans {
    counts: Box<[u32]>,
    sum_ns: u64,
}

impl Spans {
    /// Times that are told apart.
    pub const BUCKETS: usize = 1 + OCTAVES as usize * PER_OCTAVE as usize;

    /// Creates a count of nothing.
    #[must_use]
    pub fn new() -> Self {
        Spans { counts: vec![0; Self::BUCKETS].into_boxed_slice(), sum_ns: 0 }
    }

    /// Counts one that took so long.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        let count = &mut self.counts[bucket(nanos)];
        *count = count.saturating_add(1);
        self.sum_ns = self.sum_ns.saturating_add(nanos);
    }

    /// Returns how many times were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Returns the exact sum of all times.
    #[must_use]
    pub const fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the time that this share of them (0 to 1) did not exceed, to a thirty-second of it; 0 if nothing was
    /// counted.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let all = self.count();
        let rank = share * all as f64;
        let mut below = 0;
        let found = self.buckets().find(|(_, count)| {
            below += u64::from(*count);
            below as f64 >= rank
        });
        match found {
            // All are alike, and their mean is nearer than the middle.
            Some((_, count)) if u64::from(count) == all => self.sum_ns / all,
            Some((bucket, _)) => middle_ns(bucket),
            None => 0,
        }
    }

    /// Iterates over the buckets that hold anything, with their counts, from the shortest times to the longest.
    pub fn buckets(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        (0..).zip(self.counts.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// Iterates over the times, to a thirty-second of each, and how many took each, rising.
    pub fn times(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.buckets().map(|(bucket, count)| (middle_ns(bucket), count))
    }

    /// Adds what [`Spans::buckets`] and [`Spans::sum_ns`] told of another. Answers whether there is such a bucket.
    pub fn add_bucket(&mut self, bucket: u16, count: u32) -> bool {
        let Some(sum) = self.counts.get_mut(usize::from(bucket)) else { return false };
        *sum = sum.saturating_add(count);
        true
    }

    /// Adds to the sum of all times, which the buckets tell only roughly.
    pub fn add_sum_ns(&mut self, sum_ns: u64) {
        self.sum_ns = self.sum_ns.saturating_add(sum_ns);
    }

    /// Adds all of another.
    pub fn add(&mut self, other: &Spans) {
        other.buckets().for_each(|(bucket, count)| {
            self.add_bucket(bucket, count);
        });
        self.add_sum_ns(other.sum_ns);
    }

    /// Returns the times that were counted since these were `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Spans) -> Spans {
        let counts = self.counts.iter().zip(&earlier.counts).map(|(now, then)| now.saturating_sub(*then)).collect();
        Spans { counts, sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns) }
    }
}

impl Default for Spans {
    fn default() -> Self {
        Spans::new()
    }
}

#[inline]
fn bucket(nanos: u64) -> usize {
    let Some(octave) = nanos.checked_ilog2().and_then(|octave| octave.checked_sub(FIRST_OCTAVE)) else { return 0 };
    let within = (nanos >> (octave + FIRST_OCTAVE - PER_OCTAVE_BITS)) % PER_OCTAVE;
    (1 + u64::from(octave) * PER_OCTAVE + within).min(Spans::BUCKETS as u64 - 1) as usize
}

/// Returns the middle of the times that a bucket holds.
fn middle_ns(bucket: u16) -> u64 {
    let Some(place) = u64::from(bucket).checked_sub(1) else { return 1 << (FIRST_OCTAVE - 1) };
    let width = 1 << (place / PER_OCTAVE + u64::from(FIRST_OCTAVE - PER_OCTAVE_BITS));
    (PER_OCTAVE + place % PER_OCTAVE) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_to_a_thirty_second_of_them() {
        for nanos in (0..34).flat_map(|bits| [1_u64 << bits, (1 << bits) + 1, (1 << bits) * 3 / 2]) {
            let mut spans = Spans::new();
            spans.record(nanos);
            assert_eq!((spans.quantile_ns(0.5), spans.count(), spans.sum_ns()), (nanos, 1, nanos));
            spans.record(1 << 40);
            let told = spans.quantile_ns(0.5);
            let bound = if nanos < 64 { 64 } else { nanos / 32 };
            assert!(told.abs_diff(nanos) <= bound, "{told} for {nanos}");
        }
    }

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        let mut last = 0;
        for nanos in (0..1 << 20).chain((20..64).map(|bits| 1 << bits)).chain([u64::MAX]) {
            let found = bucket(nanos);
            assert!(found >= last && (found <= last + 1 || nanos >= 1 << 20), "{nanos}");
            last = found;
        }
        assert_eq!(last, Spans::BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_ranks() {
        let mut spans = Spans::new();
        assert_eq!(spans.quantile_ns(0.5), 0);
        (1..=1000).for_each(|n| spans.record(n * 1000));
        for share in [0.01, 0.5, 0.99, 1.0] {
            let truth = share * 1e6;
            assert!((spans.quantile_ns(share) as f64 / truth - 1.0).abs() <= 1.0 / 16.0, "{share}");
        }
    }

    #[test]
    fn sums_and_differences_are_exact() {
        let (mut earlier, mut rest) = (Spans::new(), Spans::new());
        (0..100).for_each(|n| earlier.record(n * 37));
        (0..100).for_each(|n| rest.record(n * 1009));
        let mut all = earlier.clone();
        all.add(&rest);
        assert_eq!(all.since(&earlier), rest);
        assert!(!all.add_bucket(Spans::BUCKETS as u16, 1));
    }
}
