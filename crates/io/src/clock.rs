use hodo_machine::Instant;
use std::time;

/// Real time. All clones share one origin, so that their readings can be compared.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: time::Instant,
}

impl Clock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Clock { origin: time::Instant::now() }
    }

    /// The time since the origin.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Instant {
        let elapsed = self.origin.elapsed();
        Instant::from_nanos(elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos()))
    }
}
