use crate::sys;
use hodo_machine::{CLOCK_GRID, Instant, Outbox};
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

    /// Returns an outbox that lends this clock.
    pub(crate) fn outbox(self) -> Outbox {
        Outbox::with_clock(sys::monotonic_ns, self.origin_ns)
    }

    /// Returns the time since the origin.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Instant {
        #[cfg(test)]
        if let Some(now) = SCRIPTED.get() {
            return now;
        }
        Instant::from_nanos(sys::monotonic_ns() - self.origin_ns)
    }
}

#[cfg(test)]
thread_local! {
    /// The time on this thread, for tests that follow a script.
    static SCRIPTED: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// Sets the time on this thread, which passes only by further calls from now on.
#[cfg(test)]
pub(crate) fn script(now: Instant) {
    SCRIPTED.set(Some(now));
}

/// Returns the time that was set last on this thread.
#[cfg(test)]
pub(crate) fn scripted() -> Instant {
    SCRIPTED.get().expect("the time was set")
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
