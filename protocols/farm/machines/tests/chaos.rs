//! A farm in virtual time to which everything happens that can: nodes, sources and the controller are killed, stopped
//! and cut off at random moments, and start again. Whatever happens, every event has exactly one verdict in the log.

pub mod programs;
mod scene;

use scene::Scene;

/// Seeds of one round; `HODO_CHAOS_SEEDS` asks for more.
const SEEDS: u64 = 60;

#[test]
fn every_event_has_one_verdict_whatever_dies() {
    hodo_sim::conformance::each_seed(SEEDS, |seed| Scene::new(seed).run());
}
