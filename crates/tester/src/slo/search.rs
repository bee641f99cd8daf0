//! The rates that a search tries, one after the other: a function of what held so far.

/// The first rate, as a part of the closed loop's.
const FIRST: f64 = 1.0 / 16.0;
/// The factor by which the rate falls as long as none has held.
const DOWN: f64 = 8.0;
/// The factor between two rates that are close enough.
const CLOSE: f64 = 1.02;
/// The most doublings above the closed loop's rate: its window may be small.
const DOUBLINGS_ABOVE: i32 = 8;

/// The state of a search: the highest rate that held, and the lowest that did not.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Search {
    closed_loop: f64,
    least: f64,
    low: Option<f64>,
    high: Option<f64>,
}

impl Search {
    /// Begins with the rate of a closed loop. Nothing under `least` is tried.
    pub(super) fn new(closed_loop: f64, least: f64) -> Search {
        Search { closed_loop, least, low: None, high: None }
    }

    /// Returns the next rate; `None` once the search has ended.
    pub(super) fn next(&self) -> Option<f64> {
        match (self.low, self.high) {
            (None, None) => Some((self.closed_loop * FIRST).max(self.least.min(self.closed_loop))),
            (None, Some(high)) => Some((high / DOWN).max(self.least)).filter(|next| *next < high),
            (Some(low), None) => {
                Some(2.0 * low).filter(|next| *next <= self.closed_loop * 2.0_f64.powi(DOUBLINGS_ABOVE))
            }
            (Some(low), Some(high)) => (high / low > CLOSE).then(|| (low * high).sqrt()),
        }
    }

    /// Adds whether a rate held.
    pub(super) fn add(&mut self, rate: f64, held: bool) {
        if held {
            self.low = Some(self.low.map_or(rate, |low| low.max(rate)));
        } else {
            self.high = Some(self.high.map_or(rate, |high| high.min(rate)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a link that holds every rate up to `capacity`. Returns what was found and the number of rates tried.
    fn search(capacity: f64, closed_loop: f64) -> (Search, u32) {
        let mut search = Search::new(closed_loop, 10.0);
        let mut tried = 0;
        while let Some(rate) = search.next() {
            search.add(rate, rate <= capacity);
            tried += 1;
            assert!(tried < 40);
        }
        (search, tried)
    }

    #[test]
    fn the_capacity_is_between_two_rates_that_are_close() {
        for (capacity, closed_loop) in [(25e3, 25.1e3), (24e3, 10e3), (900.0, 25e3), (40.0, 1e6), (1e6, 1e6)] {
            let (found, tried) = search(capacity, closed_loop);
            let (low, high) = (found.low.expect("some rate holds"), found.high.expect("some rate does not"));
            assert!(low <= capacity && capacity < high && high / low <= CLOSE, "{capacity}: {found:?}");
            assert!(tried <= 18, "{capacity}: {tried}");
        }
    }

    #[test]
    fn a_condition_that_never_holds_ends_at_the_least_rate() {
        let (found, tried) = search(0.0, 25e3);
        assert_eq!((found.low, found.high), (None, Some(10.0)));
        assert!(tried <= 6, "{tried}");
    }

    #[test]
    fn a_link_that_always_holds_ends_the_search_too() {
        let (found, tried) = search(f64::INFINITY, 1e3);
        assert_eq!((found.low, found.high), (Some(256e3), None));
        assert!(tried <= 13, "{tried}");
    }

    #[test]
    fn a_slow_link_is_tried_at_the_least_rate_first() {
        assert_eq!(Search::new(50.0, 40.0).next(), Some(40.0));
        assert_eq!(Search::new(1.0, 2.0).next(), Some(1.0));
    }
}
