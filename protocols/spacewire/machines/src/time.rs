//! Time of a simulated link, in picoseconds: a bit at 66 Mbit/s is no whole number of nanoseconds.
use core::ops::{Add, Sub};

/// A point in time, or a span, in picoseconds. It lasts for 213 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Picos(pub u64);

impl Picos {
    /// The origin.
    pub const ZERO: Picos = Picos(0);
    /// Later than every deadline.
    pub const MAX: Picos = Picos(u64::MAX);

    /// Creates a span or a point from nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Picos(nanos.saturating_mul(1_000))
    }

    /// Returns whole nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns this span `n` times.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Picos(self.0.saturating_mul(n))
    }
}

impl Add for Picos {
    type Output = Picos;
    fn add(self, span: Picos) -> Picos {
        Picos(self.0.saturating_add(span.0))
    }
}

impl Sub for Picos {
    type Output = Picos;
    fn sub(self, earlier: Picos) -> Picos {
        Picos(self.0.saturating_sub(earlier.0))
    }
}
