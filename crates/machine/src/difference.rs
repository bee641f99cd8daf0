use crate::{CLOCK_GRID, Instant};

/// Readings that are kept: clocks drift, so that the best one of long ago is worse than a newer one.
const KEPT: usize = 8;

/// How far the far end's clock is ahead of ours, from the exchanges in which it told its time.
///
/// A reading is right to half of its round-trip, so the one with the shortest counts. Two clocks of one host differ by a
/// multiple of [`CLOCK_GRID`]: where that is within the error, it is the difference.
#[derive(Debug, Clone, Copy, Default)]
pub struct Difference {
    readings: [Option<Reading>; KEPT],
    next: usize,
    best: Option<Reading>,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    round_trip_ns: u64,
    ahead_ns: i64,
}

impl Difference {
    /// Takes a reading: asked then on our clock, answered with `theirs_ns`, received now.
    pub fn read(&mut self, asked_ns: u64, theirs_ns: u64, now: Instant) {
        let Some(round_trip_ns) = now.as_nanos().checked_sub(asked_ns) else { return };
        let ahead_ns = theirs_ns.wrapping_sub(asked_ns + round_trip_ns / 2).cast_signed();
        self.readings[self.next % KEPT] = Some(Reading { round_trip_ns, ahead_ns });
        self.next = (self.next + 1) % KEPT;
        let best = self.readings.iter().flatten().min_by_key(|reading| reading.round_trip_ns);
        self.best = best.copied();
    }

    /// Returns how many nanoseconds the far end's clock is ahead, and how far that may be wrong: not at all on one host.
    #[must_use]
    pub fn known(&self) -> Option<(i64, u64)> {
        let best = self.best?;
        let ahead_ns = best.on_the_grid();
        let is_exact = ahead_ns.rem_euclid(CLOCK_GRID.as_nanos() as i64) == 0;
        Some((ahead_ns, if is_exact { 0 } else { best.round_trip_ns / 2 }))
    }

    /// Returns the nanoseconds from `theirs_ns` on the far end's clock to `now` on ours, or 0 where that is before it;
    /// `None` without a reading.
    #[must_use]
    #[inline]
    pub fn since(&self, theirs_ns: u64, now: Instant) -> Option<u64> {
        let ours_ns = theirs_ns.wrapping_sub(self.best?.on_the_grid().cast_unsigned());
        Some(u64::try_from(now.as_nanos().wrapping_sub(ours_ns).cast_signed()).unwrap_or(0))
    }
}

impl Reading {
    /// Returns the difference: the nearest multiple of the grid where it is within the error.
    fn on_the_grid(&self) -> i64 {
        let grid = CLOCK_GRID.as_nanos() as i64;
        let beside = (self.ahead_ns.wrapping_add(grid / 2)).rem_euclid(grid) - grid / 2;
        if beside.unsigned_abs() <= self.round_trip_ns / 2 { self.ahead_ns.wrapping_sub(beside) } else { self.ahead_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn the_shortest_of_the_latest_round_trips_counts() {
        let mut difference = Difference::default();
        assert_eq!(difference.since(0, at(0)), None);
        // Theirs is 5,000,000 ahead; the first answer took 40 us longer on its way back.
        difference.read(1_000, 5_000_000 + 11_000, at(61_000));
        assert_eq!(difference.since(5_100_000, at(100_000)), Some(0));
        difference.read(100_000, 5_000_000 + 110_000, at(120_000));
        assert_eq!(difference.since(5_200_000, at(207_000)), Some(7_000));
        assert_eq!(difference.since(5_200_000, at(190_000)), Some(0), "never before it was sent");
        assert_eq!(difference.known(), Some((5_000_000, 10_000)));
        // Eight later ones push it out.
        for n in 1..=8 {
            difference.read(n * 1_000_000, 5_000_000 + n * 1_000_000 + 40_000, at(n * 1_000_000 + 60_000));
        }
        assert_eq!(difference.since(5_200_000, at(207_000)), Some(17_000));
    }

    #[test]
    fn clocks_of_one_host_are_told_apart_exactly() {
        let grid = CLOCK_GRID.as_nanos() as u64;
        for ahead in [0, grid, 9 * grid] {
            let mut difference = Difference::default();
            // The way there takes 3 us and back 17 us: half of it would be wrong by 7 us.
            difference.read(20_000_000, ahead + 20_003_000, at(20_020_000));
            assert_eq!(difference.since(ahead + 30_000_000, at(30_004_000)), Some(4_000));
            assert_eq!(difference.known(), Some((ahead as i64, 0)));
        }
        let mut behind = Difference::default();
        behind.read(grid + 20_000, 23_000, at(grid + 40_000));
        assert_eq!(behind.since(50_000, at(grid + 54_000)), Some(4_000));
    }

    #[test]
    fn nonsense_is_no_panic() {
        let mut difference = Difference::default();
        for (asked, theirs, now) in
            [(5, u64::MAX, 4), (0, u64::MAX, u64::MAX), (u64::MAX, 0, u64::MAX), (0, 1 << 63, 9)]
        {
            difference.read(asked, theirs, at(now));
            let _ = difference.since(theirs, at(now));
        }
    }
}
