//! In steady state neither end of a link allocates per operation: ten times the operations need no more memory.
#[path = "../../measure/tests/counting/mod.rs"]
mod counting;
mod plans;

use counting::allocations_so_far;
use hodo_catalog::{Protocol, protocols};
use hodo_machine::{Sampling, Wait};
use hodo_measure::{Link, Mode, Operation, Outcome, Plan, Test};
use plans::served::{Served, serve_settings};
use plans::{opened, plan};
use std::time::Duration;

/// Operations of the shorter run; the longer one has ten times as many.
const OPERATIONS: u64 = 100;
/// The allocations that are allowed: a queue that has not reached its greatest length grows now and then.
const HANDFUL: u64 = 16;

/// Keeps the window full until `operations` operations have ended. Returns the allocations of both ends meanwhile.
fn allocations(link: &mut dyn Link, again: Operation, operations: u64) -> u64 {
    let before = allocations_so_far();
    let end = link.now() + Duration::from_secs(60);
    let (mut done, mut stamps) = (Vec::with_capacity(4096), Vec::with_capacity(4096));
    let mut ended = 0;
    while ended < operations {
        link.poll(Wait::Block, end, &mut done).expect("the far end is there");
        link.stamps(&mut stamps);
        stamps.clear();
        assert!(link.now() < end, "{operations} operations take a minute");
        for completion in done.drain(..) {
            if completion.outcome != Outcome::Recovered {
                ended += 1;
                link.start(Operation { tag: completion.tag, ..again });
            }
        }
    }
    allocations_so_far() - before
}

/// Checks everything in one test, because the counter counts every allocation of this process.
#[test]
fn more_operations_need_no_more_allocations() {
    for protocol in protocols() {
        let served = Served::start(protocol, &serve_settings());
        for (mode, window, size, stages) in cases(protocol) {
            let plan = Plan { window, stages, ..plan(Test::Rate, mode, size) };
            let mut opened = opened(&served.uri, &plan);
            let link = opened.links[0].as_mut();
            if stages {
                stamp_both_ends(link, protocol);
            }
            let operation = Operation { tag: 0, channel: 0, size, mode };
            for tag in 0..u64::from(window) {
                link.start(Operation { tag, ..operation });
            }
            let warm_up = allocations(link, operation, 4 * OPERATIONS);
            let few = allocations(link, operation, OPERATIONS);
            let mut many = allocations(link, operation, 10 * OPERATIONS);
            if many > few + HANDFUL {
                // A machine that stalled has made queues longer, once. An operation that allocates does so again.
                many = allocations(link, operation, 10 * OPERATIONS);
            }
            let what = format!("{} {mode} window {window} size {size} stages {stages}", protocol.name());
            assert!(many <= few + HANDFUL, "{what}: {warm_up} to warm up, {few}, and {many} for ten times as many");
            assert!(few <= HANDFUL, "{what}: {few}");
        }
    }
}

/// Stamps the stages of every operation, at both ends.
fn stamp_both_ends(link: &mut dyn Link, protocol: &dyn Protocol) {
    assert!(link.sample_stages(Sampling::ALL), "every protocol stamps its stages");
    if !protocol.description().own {
        return;
    }
    let until = link.now() + Duration::from_secs(5);
    let far_end = link.far_end(until, &mut Vec::new()).expect("the far end is there").expect("it answers");
    assert!(!far_end.stages.is_empty());
}

/// Returns cases in which a window, a size and stages meet each other in pairs.
fn cases(protocol: &'static dyn Protocol) -> impl Iterator<Item = (Mode, u32, u32, bool)> {
    let cases = [(1, 64, true), (64, 64, false), (1, 32 << 10, false), (64, 32 << 10, true)];
    let modes = protocol.description().modes.iter();
    modes.flat_map(move |&mode| cases.map(|(window, size, stages)| (mode, window, size, stages)))
}
