use core::time::Duration;
use hodo_machine::Instant;

/// A budget of so many units a second, of which what was not used is kept for a second.
#[derive(Debug, Clone)]
pub struct Budget {
    per_second: u64,
    /// The instant up to which the budget is spent; it lies at most a second back.
    spent: Instant,
}

impl Budget {
    /// Creates a budget of which nothing is spent.
    #[must_use]
    pub const fn new(per_second: u64) -> Self {
        Budget { per_second, spent: Instant::ZERO }
    }

    /// Takes units out of the budget; returns whether there are as many. Up to a second's worth is there at once.
    pub fn take(&mut self, now: Instant, units: u64) -> bool {
        let next = self.after(now, units);
        let is_there = next <= now;
        if is_there {
            self.spent = next;
        }
        is_there
    }

    /// Returns when as many units will be there; never for a budget of 0.
    #[must_use]
    pub fn ready(&self, now: Instant, units: u64) -> Instant {
        self.after(now, units)
    }

    fn after(&self, now: Instant, units: u64) -> Instant {
        let Some(nanos) = units.saturating_mul(1_000_000_000).checked_div(self.per_second) else { return Instant::MAX };
        let oldest = Instant::from_nanos(now.as_nanos().saturating_sub(1_000_000_000));
        self.spent.max(oldest) + Duration::from_nanos(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_second_is_kept_and_no_more() {
        let mut budget = Budget::new(10);
        let took = |budget: &mut Budget, at| (0..100).filter(|_| budget.take(at, 1)).count();
        assert_eq!(took(&mut budget, at(60_000)), 10);
        assert_eq!(budget.ready(at(60_000), 1), at(60_100));
        assert_eq!(took(&mut budget, at(60_250)), 2);
        assert_eq!(took(&mut budget, at(99_000)), 10);
    }

    #[test]
    fn nothing_is_there_of_a_budget_of_none() {
        let mut budget = Budget::new(0);
        assert!(!budget.take(at(5_000), 1) && budget.ready(at(5_000), 1) == Instant::MAX);
    }
}
