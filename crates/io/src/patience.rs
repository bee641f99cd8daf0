//! The decision whether to poll before a sleep.

use hodo_machine::Instant;
use std::time::Duration;

/// The time for which a wait polls before it sleeps, at most. A wake-up costs about half of it, so that polling in vain costs no more
/// than twice what it could have spared.
pub const LINGER: Duration = Duration::from_micros(50);
const LINGER_NS: i64 = LINGER.as_nanos() as i64;

/// The begin of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// It sleeps at once.
    Sleep,
    /// It looks again and again for [`LINGER`], and keeps its processor.
    Spin,
    /// It looks again and again for [`LINGER`], and lets other threads run in between.
    Yield,
}

/// An account of what polling before a sleep has gained and cost, in time.
///
/// A look that finds input spares the wake-up of a sleeping thread. On two processors that are free it finds the reply of a thread on the
/// other one; on one processor, where the other thread runs only if this one yields. But where other programs need the processor, a thread
/// that yields comes back after their time slice, which costs as much as hundreds of wake-ups, and one that does not yield keeps its peer
/// waiting.
///
/// So each poll is entered at its measured worth: a find gains the time that waits which slept at once have usually taken, less its own and
/// half of its CPU time; a poll in vain costs the CPU time that it took. Either way to poll ends when it has cost more than it gained, and
/// is tried again after a multiple of the loss, which doubles with each trial that fails.
#[derive(Debug)]
pub struct Patience {
    /// The usual time of a wait that slept at once, in nanoseconds, and the number of waits that it is known from.
    slept_ns: i64,
    sleeps: u32,
    /// The way in which waits poll at present, and the gains less the costs since they do.
    polls: Option<usize>,
    balance_ns: i64,
    /// Polls until a wait sleeps at once, to keep `slept_ns` true.
    until_sample: u32,
    trials: [Trial; WAYS.len()],
}

/// The next trial of a way to poll.
#[derive(Debug, Clone, Copy)]
struct Trial {
    /// The losses of earlier trials that have not been gained back.
    debt_ns: i64,
    at: Instant,
}

/// The ways to poll, in the order of the first trials.
const WAYS: [Begin; 2] = [Begin::Spin, Begin::Yield];
/// Waits that have slept at once before the first trial.
const SLEEPS: u32 = 8;
/// Polls between two waits that sleep at once: each costs a wake-up, two thousandths of as many polls.
const SAMPLE_EVERY: u32 = 512;
/// The divisor by which one wait moves the usual time, and the multiple of that which it counts for at most.
const WEIGHT: i64 = 8;
const OUTLIER: i64 = 4;
/// The part of a find's CPU time that has to be spared at least, as a divisor. A processor that one thread keeps busy to spare little is taken
/// from others: the scheduler moves programs away from it, to where the peers are.
const PRICE: i64 = 2;
/// The loss at which polling ends: three polls in vain.
const LOSS: i64 = 3 * LINGER_NS;
/// The gain that is remembered at most: it covers one time slice that another program takes now and then, and hardly a second one.
const CREDIT: i64 = 5_000_000;
/// The multiple of the debt after which polling is tried again, and the debt at most: trials cost an eighth of the time at first, and
/// a thousandth where they always fail.
const REST: u64 = 8;
const DEBT_MOST: i64 = 250_000_000;

impl Patience {
    /// Creates an account without entries.
    #[must_use]
    pub const fn new() -> Self {
        Patience {
            slept_ns: 0,
            sleeps: 0,
            polls: None,
            balance_ns: 0,
            until_sample: SAMPLE_EVERY,
            trials: [Trial { debt_ns: 0, at: Instant::ZERO }; WAYS.len()],
        }
    }

    /// Creates an account of waits for which only yielding may pay.
    #[must_use]
    pub const fn of_yielding() -> Self {
        let mut patience = Patience::new();
        patience.trials[0].at = Instant::MAX;
        patience
    }

    /// Returns how the wait is to begin.
    #[inline]
    pub fn begin(&mut self, now: Instant) -> Begin {
        let Some(way) = self.polls.or_else(|| self.due(now)) else { return Begin::Sleep };
        self.polls = Some(way);
        self.until_sample -= 1;
        if self.until_sample == 0 {
            self.until_sample = SAMPLE_EVERY;
            return Begin::Sleep;
        }
        WAYS[way]
    }

    /// Returns the way to poll whose trial is due, and begins it.
    fn due(&mut self, now: Instant) -> Option<usize> {
        let way = (0..WAYS.len()).min_by_key(|way| self.trials[*way].at)?;
        if self.sleeps < SLEEPS || now < self.trials[way].at {
            return None;
        }
        (self.balance_ns, self.until_sample) = (0, SAMPLE_EVERY);
        Some(way)
    }

    /// Records the time of a wait that slept at once, from its begin to the input.
    #[inline]
    pub fn slept(&mut self, took_ns: u64) {
        let took_ns = took_ns as i64;
        if self.sleeps == 0 {
            self.slept_ns = took_ns;
        } else {
            self.slept_ns += (took_ns.min(OUTLIER * self.slept_ns + 1) - self.slept_ns) / WEIGHT;
        }
        self.sleeps = self.sleeps.saturating_add(1);
    }

    /// Records a poll that found input at `now`: its time from the begin of the wait, and the CPU time of that.
    #[inline]
    pub fn found(&mut self, took_ns: u64, polled_ns: u64, now: Instant) {
        let spared_ns = (self.slept_ns - took_ns as i64).min(LINGER_NS);
        self.enter(spared_ns - polled_ns as i64 / PRICE, now);
    }

    /// Records a poll that found nothing until `now`, and the CPU time that it took.
    #[inline]
    pub fn found_nothing(&mut self, polled_ns: u64, now: Instant) {
        self.enter(-(polled_ns as i64), now);
    }

    #[inline]
    fn enter(&mut self, gain_ns: i64, now: Instant) {
        let Some(way) = self.polls else { return };
        let Trial { debt_ns, at } = &mut self.trials[way];
        *debt_ns -= gain_ns.clamp(0, *debt_ns);
        self.balance_ns = (self.balance_ns + gain_ns).min(CREDIT);
        if self.balance_ns < -LOSS {
            self.polls = None;
            *debt_ns = (2 * *debt_ns - self.balance_ns).min(DEBT_MOST);
            *at = now + Duration::from_nanos(REST * *debt_ns as u64);
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience::new()
    }
}

/// The CPU time of a look after other threads could run is at most this: the rest is the work of those threads.
const YIELD_NS_MAX: u64 = 2_000;

/// The time of one poll: all of it, and the CPU time of its looks that found nothing.
#[derive(Debug)]
pub struct Poll {
    began: Instant,
    last: Instant,
    polled_ns: u64,
}

impl Poll {
    /// Begins a poll.
    #[must_use]
    #[inline]
    pub const fn begin(now: Instant) -> Self {
        Poll { began: now, last: now, polled_ns: 0 }
    }

    /// Records a look that found nothing, after other threads could run. Returns whether to look again.
    #[inline]
    pub fn looked(&mut self, now: Instant) -> bool {
        self.polled_ns += now.nanos_since(self.last).min(YIELD_NS_MAX);
        self.last = now;
        now - self.began < LINGER
    }

    /// Returns when the poll began.
    #[must_use]
    #[inline]
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// Returns the time from the begin to `now`.
    #[must_use]
    #[inline]
    pub const fn took_ns(&self, now: Instant) -> u64 {
        now.nanos_since(self.began)
    }

    /// Returns the CPU time of the looks that found nothing.
    #[must_use]
    #[inline]
    pub const fn polled_ns(&self) -> u64 {
        self.polled_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// The times of waits in nanoseconds: of the wait with this number, a poll (its time, or `None` for 50 us in vain) and a sleep.
    struct World<P, S> {
        poll: P,
        sleep: S,
        /// The only way to poll that finds anything, and the CPU time of a find.
        way: Begin,
        polled: fn(u64) -> u64,
    }

    const fn world<P, S>(poll: P, sleep: S) -> World<P, S> {
        World { poll, sleep, way: Begin::Yield, polled: |_| US }
    }

    /// The number of waits, of those that polled, and their time.
    #[derive(Debug, Default)]
    struct Outcome {
        waits: u64,
        polls: u64,
        spent_ns: u64,
    }

    impl<P: Fn(u64) -> Option<u64>, S: Fn(u64) -> u64> World<P, S> {
        /// Waits one after the other for this time.
        fn run(&self, patience: &mut Patience, from: u64, span_ns: u64) -> Outcome {
            let (mut now_ns, mut outcome) = (from, Outcome::default());
            while now_ns < from + span_ns {
                let at = |ns: u64| Instant::from_nanos(ns);
                let (poll, sleep) = ((self.poll)(outcome.waits), (self.sleep)(outcome.waits));
                let begin = patience.begin(at(now_ns));
                match poll.filter(|_| begin == self.way) {
                    _ if begin == Begin::Sleep => {
                        now_ns += sleep;
                        patience.slept(sleep);
                    }
                    Some(took) => {
                        now_ns += took;
                        patience.found(took, (self.polled)(took), at(now_ns));
                    }
                    None => {
                        // The peer runs meanwhile, if it can.
                        now_ns += if begin == self.way { 0 } else { 50 * US };
                        patience.found_nothing(50 * US, at(now_ns));
                        now_ns += sleep;
                    }
                }
                outcome.waits += 1;
                outcome.polls += u64::from(begin != Begin::Sleep);
            }
            outcome.spent_ns = now_ns - from;
            outcome
        }

        /// Returns the rate over the one of waits that take `best_ns` each.
        fn share(&self, best_ns: u64, span_ns: u64) -> f64 {
            let outcome = self.run(&mut Patience::new(), 0, span_ns);
            (outcome.waits * best_ns) as f64 / outcome.spent_ns as f64
        }
    }

    #[test]
    fn polls_where_that_is_faster() {
        let free = world(|_| Some(6 * US), |_| 30 * US);
        assert!(free.share(6 * US, 100 * MS) > 0.98);
        let closer = world(|_| Some(18 * US), |_| 20 * US);
        assert!(closer.share(18 * US, 100 * MS) > 0.99);
    }

    #[test]
    fn sleeps_where_polling_is_slower_even_by_little() {
        let slower = world(|_| Some(22 * US), |_| 20 * US);
        assert!(slower.share(20 * US, 500 * MS) > 0.98);
    }

    /// A neighbour has the processor for its time slice whenever this thread yields.
    #[test]
    fn one_late_return_ends_polling_and_trials_grow_rare() {
        for slice_ms in [1, 3, 4] {
            let busy = world(move |_| Some(slice_ms * MS), |_| 20 * US);
            assert!(busy.share(20 * US, 500 * MS) > 0.95, "{slice_ms}");
            assert!(busy.share(20 * US, 10_000 * MS) > 0.99, "{slice_ms}");
        }
        // It runs at every hundredth yield: polling gains 10 us each time, and loses 3 ms then.
        let seldom = world(|n| Some(if n % 100 == 0 { 3 * MS } else { 10 * US }), |_| 20 * US);
        assert!(seldom.share(20 * US, 5_000 * MS) > 0.97);
    }

    /// Interrupts, or another machine on the same processor: sleeping threads lose as much by them.
    #[test]
    fn a_rare_disturbance_does_not_end_what_pays() {
        let disturbed = world(|n| Some(if n % 10_000 == 9_999 { 2 * MS } else { 6 * US }), |_| 30 * US);
        assert!(disturbed.share(6 * US + 2 * MS / 10_000, 1_000 * MS) > 0.9);
    }

    #[test]
    fn replies_that_never_come_within_a_poll_are_slept_for() {
        let far = world(|_| None, |_| 200 * US);
        let outcome = far.run(&mut Patience::new(), 0, 10_000 * MS);
        assert!(outcome.polls * 50 * US < outcome.spent_ns / 100, "{outcome:?}");
        // Most of them do not.
        let mixed = world(|n| (n % 3 == 0).then_some(10 * US), |n| if n % 3 == 0 { 30 * US } else { 200 * US });
        let outcome = mixed.run(&mut Patience::new(), 0, 10_000 * MS);
        assert!(outcome.polls < outcome.waits / 20, "{outcome:?}");
    }

    #[test]
    fn a_processor_is_not_kept_busy_to_spare_little() {
        let alone =
            |took: u64| World { way: Begin::Spin, polled: |took| took, ..world(move |_| Some(took), |_| 50 * US) };
        let polls = |took| {
            let outcome = alone(took).run(&mut Patience::new(), 0, 5_000 * MS);
            outcome.polls as f64 / outcome.waits as f64
        };
        assert!(polls(20 * US) > 0.95 && polls(40 * US) < 0.05);
    }

    #[test]
    fn polls_again_soon_after_a_neighbour_has_gone() {
        let (busy, free) = (world(|_| Some(3 * MS), |_| 20 * US), world(|_| Some(6 * US), |_| 30 * US));
        let mut patience = Patience::new();
        let spent_ns = busy.run(&mut patience, 0, 20_000 * MS).spent_ns;
        let outcome = free.run(&mut patience, spent_ns, 5_000 * MS);
        assert!(outcome.polls * 6 * US > outcome.spent_ns / 2, "{outcome:?}");
    }
}
