//! Adapters over the simulated network: whatever it does, every byte arrives where it belongs and nothing is done twice.

#[path = "../../../../crates/measure/tests/counting/mod.rs"]
mod counting;
mod simulation;

use hodo_sim::conformance::each_seed;
use hodo_sim::cost::measure_by;
use simulation::{Observed, Scene};

/// Seeds of one round; `HODO_CHAOS_SEEDS` asks for more.
const SEEDS: u64 = 600;

fn over_seeds(run: impl Fn(u64) -> Observed) -> Observed {
    measure_by(counting::bytes_here);
    let mut all = Observed::default();
    each_seed(SEEDS, |seed| all.add(&run(seed)));
    all
}

#[test]
fn everything_is_done_once_and_in_order() {
    let all = over_seeds(|seed| Scene::new(seed, true).run());
    assert!(all.requests == all.succeeded && all.failures == 0, "{all:?}");
}

#[test]
fn what_fails_is_flushed_and_what_succeeds_is_done() {
    over_seeds(|seed| Scene::new(seed, false).run_with_stops());
}

#[test]
fn an_adapter_that_begins_anew_takes_nothing_of_the_last_one() {
    over_seeds(|seed| Scene::new(seed, true).run_with_restarts());
}
