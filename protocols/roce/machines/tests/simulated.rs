//! Adapters over the simulated network: whatever it does, every byte arrives where it belongs and nothing is done twice.

#[path = "../../../../crates/measure/tests/counting/mod.rs"]
mod counting;
mod simulation;

use hodo_sim::conformance;
use hodo_sim::cost::measure_by;
use simulation::{Observed, Scene};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds of one round; `HODO_CHAOS_SEEDS` asks for more.
const SEEDS: u64 = 3_000;

fn over_seeds(run: impl Fn(u64) -> Observed) -> Observed {
    measure_by(counting::bytes_here);
    let count = std::env::var("HODO_CHAOS_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(SEEDS);
    let mut all = Observed::default();
    for seed in conformance::seeds(count) {
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok(observed) => all.add(&observed),
            Err(cause) => {
                let text = cause.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("");
                panic!("seed {seed}: {text}");
            }
        }
    }
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
