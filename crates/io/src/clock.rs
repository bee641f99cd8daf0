use crate::sys;
use hodo_machine::{CLOCK_GRID, Instant};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock of real time. All clones share one origin, so that their readings can be compared; the origins of two clocks
/// of one host are a multiple of [`CLOCK_GRID`] apart.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// Creates a clock whose origin is now, or at most [`CLOCK_GRID`] ago.
    #[must_use]
    pub fn start() -> Self {
        let now_ns = sys::monotonic_ns();
        Clock { origin_ns: now_ns - now_ns % CLOCK_GRID.as_nanos() as u64 }
    }

    /// Returns the time since the origin.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(sys::monotonic_ns() - self.origin_ns)
    }
}

/// Returns the time of day in nanoseconds since 1970, for records that people read. It may jump: use [`Clock`] for
/// spans.
#[must_use]
pub fn unix_time_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// Suspends the calling thread for this long.
pub fn sleep(span: Duration) {
    std::thread::sleep(span);
}
