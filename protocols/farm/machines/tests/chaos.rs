//! A farm in virtual time to which everything happens that can: nodes, sources and the controller are killed, stopped
//! and cut off at random moments, and start again. Whatever happens, every event has exactly one verdict in the log.

mod programs;
mod scene;

use scene::Scene;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds of one round; `HODO_CHAOS_SEEDS` asks for more.
const SEEDS: u64 = 300;

#[test]
fn every_event_has_one_verdict_whatever_dies() {
    let count = std::env::var("HODO_CHAOS_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(SEEDS);
    for seed in hodo_sim::conformance::seeds(count) {
        let outcome = catch_unwind(AssertUnwindSafe(|| Scene::new(seed).run()));
        if let Err(cause) = outcome {
            let text = cause.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("");
            panic!("seed {seed}: {text}");
        }
    }
}
