//! The measuring loop allocates nothing per operation, and is quick enough not to be what is measured.
#![allow(unsafe_code)]

use hodo_machine::{Instant, Wait};
use hodo_measure::{Completion, FarEnd, Link, LinkError, Mode, Operation, Outcome, Plan, Repeats, Size};
use hodo_measure::{Test, Until, Unwatched, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Everything that was started is done by the next look, a microsecond later.
struct Instantly {
    now: u64,
    started: Vec<u64>,
}

impl Link for Instantly {
    fn start(&mut self, operation: Operation) {
        self.started.push(operation.tag);
    }

    fn poll(&mut self, _: Wait, _: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        self.now += 1_000;
        done.extend(self.started.drain(..).map(|tag| Completion { tag, outcome: Outcome::Done }));
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn far_end(&mut self, _: Instant, _: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        Ok(None)
    }
}

fn allocations(plan: &Plan, operations: u64) -> u64 {
    let plan = Plan { until: Until::Count(operations), ..plan.clone() };
    let mut links: [Box<dyn Link + Send>; 1] = [Box::new(Instantly { now: 0, started: Vec::with_capacity(4096) })];
    let before = ALLOCATIONS.load(Relaxed);
    let found = run(&mut links, &plan, &Unwatched);
    assert_eq!(found.operations, 4 * operations);
    ALLOCATIONS.load(Relaxed) - before
}

#[test]
fn more_operations_need_no_more_allocations() {
    let plan = Plan {
        test: Test::Rate,
        mode: Mode::Both,
        size: Size::Uniform { min: 1, max: 1000 },
        window: 100,
        channels: 10,
        batch: 1,
        rate: None,
        until: Until::Count(1),
        warmup: Duration::from_micros(10),
        repeats: Repeats::Fixed(4),
        wait: Wait::Spin,
        seed: 1,
        stall: Duration::from_secs(1),
    };
    let open = Plan { test: Test::Open, rate: Some(1e8), ..plan.clone() };
    for plan in [plan, open] {
        // The second is longer than a timeline keeps points, too.
        let (few, many) = (allocations(&plan, 500_000), allocations(&plan, 1_000_000));
        assert!(many <= few + 20, "{}: {few} allocations, then {many}", plan.test);
    }
}
