use crate::sys;
use hodo_machine::Instant;

/// Real time. All clones share one origin, so that their readings can be compared.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Clock { origin_ns: sys::monotonic_ns() }
    }

    /// The time since the origin.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(sys::monotonic_ns() - self.origin_ns)
    }
}
