use super::schedule::Share;
use crate::Plan;
use hodo_machine::Instant;
use std::collections::VecDeque;

/// The delay that is made up for: a longer one is of the link, or of a busy host, and the pace begins anew.
const MADE_UP_NS: f64 = 100e6;
/// The pace at which it is made up for, over that of the plan: a burst is what a pace avoids.
const HASTE: f64 = 2.0;
/// The time whose operations start at once, because clocks wake a program no more exactly.
const AT_ONCE_NS: f64 = 200e3;

/// Starts the operations of a closed loop at a pace.
#[derive(Debug)]
pub(super) struct Gate {
    /// The time that the pace allows for a byte.
    ns_per_byte: f64,
    /// When the next operation is due by the pace ...
    due_ns: f64,
    /// ... and the earliest time at which it may start after a delay.
    earliest_ns: f64,
    /// Slots whose next operation has not started, in turn.
    waiting: VecDeque<u32>,
}

impl Gate {
    /// Creates the gate of a link's share of a plan; `None` if the plan has no pace.
    pub fn new(plan: &Plan, share: Share, now: Instant) -> Option<Gate> {
        let pace = plan.pace.filter(|_| plan.test.is_closed_loop())?;
        let of_link = pace * f64::from(share.channels()) / f64::from(plan.channels);
        let now_ns = now.as_nanos() as f64;
        Some(Gate { ns_per_byte: 8e9 / of_link, due_ns: now_ns, earliest_ns: now_ns, waiting: VecDeque::new() })
    }

    /// Adds a slot whose next operation is to start when it is due.
    #[inline]
    pub fn add(&mut self, slot: u32) {
        self.waiting.push_back(slot);
    }

    /// Returns the next slot whose operation may start now.
    #[inline]
    pub fn next(&mut self, now: Instant) -> Option<u32> {
        if self.starts_ns() <= now.as_nanos() as f64 { self.waiting.pop_front() } else { None }
    }

    /// Moves the time of the next operation after one of this size has started.
    #[inline]
    pub fn started(&mut self, size: u32, now: Instant) {
        let (now_ns, spacing_ns) = (now.as_nanos() as f64, f64::from(size) * self.ns_per_byte);
        self.due_ns = self.due_ns.max(now_ns - MADE_UP_NS) + spacing_ns;
        self.earliest_ns = self.earliest_ns.max(now_ns - AT_ONCE_NS) + spacing_ns / HASTE;
    }

    /// Returns when the next operation may start; never if none waits.
    #[inline]
    pub fn next_due(&self) -> Instant {
        if self.waiting.is_empty() { Instant::MAX } else { Instant::from_nanos(self.starts_ns().ceil() as u64) }
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
}
