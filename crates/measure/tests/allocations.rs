//! The measuring loop allocates nothing per operation, and is quick enough not to be what is measured.
mod counting;

use counting::allocations_so_far;
use hodo_machine::{Instant, Sampling, Stamp, Wait};
use hodo_measure::{Completion, FarEnd, Link, LinkError, Mode, Operation, Outcome, Plan, Repeats, Size};
use hodo_measure::{Test, Until, Unwatched, run};
use std::time::Duration;

/// Everything that was started is done by the next look, a microsecond later.
struct Instantly {
    now: u64,
    started: Vec<u64>,
    sampling: Sampling,
    stamps: Vec<Stamp>,
}

impl Link for Instantly {
    fn start(&mut self, operation: Operation) {
        self.started.push(operation.tag);
    }

    fn poll(&mut self, _: Wait, _: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        self.now += 1_000;
        let at = Instant::from_nanos(self.now);
        let sampled = self.started.iter().filter(|tag| self.sampling.takes(**tag));
        self.stamps.extend(sampled.map(|tag| Stamp { stage: "wire", tag: *tag, at }));
        done.extend(self.started.drain(..).map(|tag| Completion { tag, outcome: Outcome::Done }));
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn far_end(&mut self, _: Instant, _: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        Ok(None)
    }

    fn sample_stages(&mut self, taken: Sampling) -> bool {
        self.sampling = taken;
        true
    }

    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        stamps.append(&mut self.stamps);
    }
}

fn allocations(plan: &Plan, operations: u64) -> u64 {
    let plan = Plan { until: Until::Count(operations), ..plan.clone() };
    let link = Instantly {
        now: 0,
        started: Vec::with_capacity(4096),
        sampling: Sampling::NONE,
        stamps: Vec::with_capacity(4096),
    };
    let mut links: [Box<dyn Link + Send>; 1] = [Box::new(link)];
    let before = allocations_so_far();
    let found = run(&mut links, &plan, &Unwatched);
    assert_eq!(found.operations, 4 * operations);
    allocations_so_far() - before
}

#[test]
fn more_operations_need_no_more_allocations() {
    let plan = Plan {
        test: Test::Rate,
        mode: Mode::Both,
        size: Size::Uniform { min: 1, max: 1000 },
        window: 100,
        unbounded: false,
        channels: 10,
        batch: 1,
        rounds: false,
        rate: None,
        pace: None,
        until: Until::Count(1),
        warmup: Duration::from_micros(10),
        repeats: Repeats::Fixed(4),
        wait: Wait::Spin,
        seed: 1,
        stages: false,
        stall: Duration::from_secs(1),
    };
    let open = Plan { test: Test::Open, rate: Some(1e8), ..plan.clone() };
    let stamped = Plan { stages: true, ..plan.clone() };
    for plan in [plan, open, stamped] {
        // The second is longer than a timeline keeps points, too.
        let (few, many) = (allocations(&plan, 500_000), allocations(&plan, 1_000_000));
        assert!(many <= few + 20, "{}, stages {}: {few} allocations, then {many}", plan.test, plan.stages);
    }
}
