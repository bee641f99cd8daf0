use super::opening::Opening;
use super::schedule::Share;
use super::slots::{Ended, Slots};
use crate::{Histogram, Plan};
use hodo_machine::Instant;
use std::collections::VecDeque;

/// The delay that is made up for: a longer one is of the link, or of a busy host, and the pace begins anew.
const MADE_UP_NS: f64 = 100e6;
/// The pace at which it is made up for, over that of the plan: a burst is what a pace avoids, and a line may be little faster.
const HASTE: f64 = 9.0 / 8.0;
/// The time whose operations start at once, because clocks wake a program no more exactly.
const AT_ONCE_NS: f64 = 200e3;

/// Starts the operations of a closed loop at a pace, and no more than answers have opened the window for.
#[derive(Debug)]
pub(super) struct Gate {
    opening: Option<Opening>,
    /// The time that the pace of the plan allows for a byte; 0 without a pace.
    ns_per_byte: f64,
    /// When the next operation is due by the pace ...
    due_ns: f64,
    /// ... and the earliest time at which it may start after a delay.
    earliest_ns: f64,
    /// Slots whose next operation has not started, in turn.
    waiting: VecDeque<u32>,
    /// The operations in flight, as sampled.
    in_flight: Histogram,
}

impl Gate {
    /// Creates the gate of a link's share of a plan; `None` if the plan has no pace and answers do not open the window.
    pub fn new(plan: &Plan, share: Share, opens: bool, now: Instant) -> Option<Gate> {
        if !plan.test.is_closed_loop() {
            return None;
        }
        let most = share.channels().saturating_mul(plan.window);
        let opening = (opens && most > 1).then(|| Opening::new(most, now));
        let of_link = |pace: f64| pace * f64::from(share.channels()) / f64::from(plan.channels);
        let ns_per_byte = plan.pace.map(|pace| 8e9 / of_link(pace));
        let now_ns = now.as_nanos() as f64;
        (opening.is_some() || ns_per_byte.is_some()).then(|| Gate {
            opening,
            ns_per_byte: ns_per_byte.unwrap_or_default(),
            due_ns: now_ns,
            earliest_ns: now_ns,
            waiting: VecDeque::new(),
            in_flight: Histogram::new(),
        })
    }

    /// Adds a slot whose next operation is to start when it may.
    #[inline]
    pub fn add(&mut self, slot: u32) {
        self.waiting.push_back(slot);
    }

    /// Returns the next slot whose operation may start now.
    #[inline]
    pub fn next(&mut self, in_flight: usize, now: Instant) -> Option<u32> {
        let may_start = self.starts_ns() <= now.as_nanos() as f64 && self.has_capacity(in_flight);
        if may_start { self.waiting.pop_front() } else { None }
    }

    /// Notes that an operation of this size has started in a slot.
    #[inline]
    pub fn started(&mut self, slot: u32, size: u32, now: Instant) {
        let now_ns = now.as_nanos() as f64;
        let spacing_ns = f64::from(size) * self.ns_per_byte;
        self.due_ns = self.due_ns.max(now_ns - MADE_UP_NS) + spacing_ns;
        let mut least_ns = spacing_ns / HASTE;
        if let Some(opening) = &mut self.opening {
            opening.started(slot, now);
            least_ns = least_ns.max(opening.spacing_ns().unwrap_or_default());
        }
        self.earliest_ns = self.earliest_ns.max(now_ns - AT_ONCE_NS) + least_ns;
    }

    /// Returns when the next operation may start by its pace, or because no answer has arrived for too long.
    #[inline]
    pub fn next_due(&self, in_flight: usize) -> Instant {
        match &self.opening {
            _ if self.waiting.is_empty() => Instant::MAX,
            Some(opening) if !opening.has_capacity(in_flight) => opening.silent_at(),
            _ => Instant::from_nanos(self.starts_ns().ceil() as u64),
        }
    }

    /// Notes the answer to an operation.
    #[inline]
    pub fn answered(&mut self, ended: Ended, now: Instant) {
        if let Some(opening) = &mut self.opening {
            opening.answered(ended.slot, ended.started, now);
        }
    }

    /// Notes that an operation was given up or refused.
    pub fn lost(&mut self, ended: Ended, now: Instant, slots: &Slots) {
        if let Some(opening) = &mut self.opening {
            opening.lost(ended.slot, ended.started, now, slots.busy());
        }
    }

    /// Opens the window if no answer has arrived for too long.
    #[inline]
    pub fn tick(&mut self, now: Instant, slots: &Slots) {
        if let Some(opening) = &mut self.opening
            && !self.waiting.is_empty()
            && !opening.has_capacity(slots.in_flight())
            && opening.silent_at() <= now
        {
            opening.silent(now, slots.busy());
        }
    }

    /// Notes that an operation that was given up has arrived after all.
    pub fn recovered(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.recovered();
        }
    }

    /// Discards the samples of the warm-up.
    pub fn restart(&mut self) {
        self.in_flight.clear();
    }

    /// Samples how many operations are in flight.
    pub fn sample(&mut self, in_flight: usize) {
        self.in_flight.record(in_flight as u64);
    }

    /// Returns the median of the operations in flight, if answers open the window.
    pub fn in_flight_median(&self) -> Option<u64> {
        (self.opening.is_some() && self.in_flight.count() > 0).then(|| self.in_flight.quantile(0.5))
    }

    #[inline]
    fn has_capacity(&self, in_flight: usize) -> bool {
        self.opening.as_ref().is_none_or(|opening| opening.has_capacity(in_flight))
    }

    fn starts_ns(&self) -> f64 {
        self.due_ns.max(self.earliest_ns)
    }
}

#[cfg(test)]
mod tests {
    use crate::run::fake_link::FakeLink;
    use crate::{Link, Mode, Plan, Repeats, Run, Size, Test, Until, Unwatched, run};
    use std::time::Duration;

    /// Returns a plan of operations of 1,000 bytes at 80 Mbit/s: 10,000 a second.
    fn paced() -> Plan {
        Plan {
            test: Test::Rate,
            size: Size::Fixed(1000),
            window: 64,
            pace: Some(80e6),
            until: Until::Elapsed(Duration::from_millis(100)),
            warmup: Duration::from_millis(20),
            repeats: Repeats::Fixed(3),
            ..Plan::one(Mode::Send, 1000)
        }
    }

    fn over(links: Vec<FakeLink>, plan: &Plan) -> Run {
        let mut links: Vec<Box<dyn Link + Send>> = links.into_iter().map(|link| Box::new(link) as _).collect();
        run(&mut links, plan, &Unwatched)
    }

    #[track_caller]
    fn is_at_pace(found: &Run) {
        let rate = found.rate.operations_per_s.median;
        assert!((rate / 10_000.0 - 1.0).abs() < 2e-3 && found.error.is_none(), "{rate} {:?}", found.error);
    }

    #[test]
    fn operations_start_at_their_pace_and_no_faster() {
        for (window, channels) in [(1, 1), (64, 1), (4, 6)] {
            let plan = Plan { window, channels, ..paced() };
            is_at_pace(&over(vec![FakeLink::steady(10_000, 1_000)], &plan));
            is_at_pace(&over(vec![FakeLink::steady(10_000, 1_000)], &Plan { test: Test::Channels, ..plan }));
        }
        let times = over(vec![FakeLink::steady(10_000, 1_000)], &paced()).latency.expect("operations were done");
        assert!(times.max < 12_000, "none waited for another: {} ns", times.max);
    }

    #[test]
    fn links_share_a_pace_by_their_channels() {
        let links = (0..3).map(|_| FakeLink::steady(10_000, 1_000)).collect();
        is_at_pace(&over(links, &Plan { channels: 4, ..paced() }));
    }

    #[test]
    fn sizes_count_in_a_pace() {
        let plan = Plan { size: Size::Uniform { min: 1, max: 1999 }, ..paced() };
        let found = over(vec![FakeLink::steady(10_000, 1_000)], &plan);
        let bits_per_s = found.rate.payload_bits_per_s.median;
        assert!((bits_per_s / 80e6 - 1.0).abs() < 0.01, "{bits_per_s}");
    }

    #[test]
    fn a_slower_link_is_not_caught_up_with() {
        let found = over(vec![FakeLink::steady(10_000, 200_000)], &paced());
        let rate = found.rate.operations_per_s.median;
        assert!((rate / 5_000.0 - 1.0).abs() < 2e-3, "{rate}");
    }

    #[test]
    fn a_window_that_answers_open_is_all_open_where_nothing_is_lost() {
        let mut link = FakeLink::steady(1_000_000, 1_000);
        link.opens_window = true;
        let found = over(vec![link], &Plan { window: 500, pace: None, ..paced() });
        assert_eq!(found.in_flight_median, Some(500));
        assert!((found.rate.operations_per_s.median / (500.0 / 1.001e-3) - 1.0).abs() < 1e-3, "{:?}", found.rate);
        let found = over(vec![FakeLink::steady(1_000_000, 1_000)], &Plan { pace: None, ..paced() });
        assert_eq!(found.in_flight_median, None, "nothing opens it");
    }
}
