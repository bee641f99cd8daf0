//! In steady state neither end of a link allocates per operation: ten times the operations need no more memory.
#![allow(unsafe_code)]
mod plans;

use hodo_catalog::protocols;
use hodo_machine::Wait;
use hodo_measure::{Link, Mode, Operation, Outcome, Plan, Test};
use plans::served::{Served, serve_settings};
use plans::{MODES, opened, plan};
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

/// Operations of the shorter run; the longer one has ten times as many.
const OPERATIONS: u64 = 500;
/// A queue that has not met its longest yet grows now and then.
const HANDFUL: u64 = 16;

/// Keeps the window full until so many operations have ended; answers the allocations of both ends meanwhile.
fn allocations(link: &mut dyn Link, again: Operation, operations: u64) -> u64 {
    let before = ALLOCATIONS.load(Relaxed);
    let end = link.now() + Duration::from_secs(60);
    let mut done = Vec::with_capacity(4096);
    let mut ended = 0;
    while ended < operations {
        link.poll(Wait::Block, end, &mut done).expect("the far end is there");
        assert!(link.now() < end, "{operations} operations take a minute");
        for completion in done.drain(..) {
            if completion.outcome != Outcome::Recovered {
                ended += 1;
                link.start(Operation { tag: completion.tag, ..again });
            }
        }
    }
    ALLOCATIONS.load(Relaxed) - before
}

/// One test, because the counter counts everything in this process.
#[test]
fn more_operations_need_no_more_allocations() {
    for protocol in protocols() {
        let served = Served::start(protocol, &serve_settings());
        for (mode, window, size) in cases() {
            let plan = Plan { window, ..plan(Test::Rate, mode, size) };
            let mut opened = opened(&served.uri, &plan);
            let link = opened.links[0].as_mut();
            let operation = Operation { tag: 0, channel: 0, size, mode };
            for tag in 0..u64::from(window) {
                link.start(Operation { tag, ..operation });
            }
            let warm_up = allocations(link, operation, 4 * OPERATIONS);
            let few = allocations(link, operation, OPERATIONS);
            let many = allocations(link, operation, 10 * OPERATIONS);
            let what = format!("{} {mode} window {window} size {size}", protocol.name);
            assert!(many <= few + HANDFUL, "{what}: {warm_up} to warm up, {few}, and {many} for ten times as many");
            assert!(few <= HANDFUL, "{what}: {few}");
        }
    }
}

fn cases() -> impl Iterator<Item = (Mode, u32, u32)> {
    let sizes = [(1, 64), (64, 64), (1, 32 << 10), (64, 32 << 10)];
    MODES.into_iter().flat_map(move |mode| sizes.map(|(window, size)| (mode, window, size)))
}
