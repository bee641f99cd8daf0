use core::ops::{Add, Sub};
use core::time::Duration;

/// The grid of a host's clocks: each begins at a multiple of this on the kernel's clock, so that any two of them differ by a
/// multiple. That shows where two ends are on one host, and then how far apart their clocks are to the nanosecond.
pub const CLOCK_GRID: Duration = Duration::from_nanos(1 << 24);

/// A point in time in nanoseconds since an origin that the driver chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Instant = Instant(0);
    /// The end of time: later than every deadline.
    pub const MAX: Instant = Instant(u64::MAX);

    /// Creates an instant from nanoseconds since the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to here, or 0 where `earlier` is later.
    #[must_use]
    pub const fn nanos_since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}
