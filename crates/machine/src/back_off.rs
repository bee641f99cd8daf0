use crate::Random;
use core::time::Duration;

/// How long to wait before something is tried again: each time twice as long, up to a bound, less up to a quarter, so that
/// many who have lost the same far end do not all come at once.
#[derive(Debug, Clone)]
pub struct BackOff {
    first: Duration,
    max: Duration,
    next: Duration,
    random: Random,
}

impl BackOff {
    /// Creates one that begins with `first`. Who has another seed waits differently.
    #[must_use]
    pub fn new(first: Duration, max: Duration, seed: u64) -> Self {
        BackOff { first, max, next: first, random: Random::new(seed) }
    }

    /// Returns the time until the next try, after a failure.
    pub fn failed(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(self.max);
        wait - Duration::from_nanos(self.random.below(wait.as_nanos() as u64 / 4))
    }

    /// Begins with the first time again, after a success.
    pub const fn succeeded(&mut self) {
        self.next = self.first;
    }
}
