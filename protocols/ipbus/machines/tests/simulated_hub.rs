//! Clients, the hub and boards on the simulated network: nothing is done twice, whatever happens.
use crate::scene;

use hodo_sim::conformance::seeds;
use scene::{Cast, Observed, scene};

/// Seeds of a run.
const SEEDS: u64 = 2_000;

#[test]
fn everything_is_done_once_or_said_to_have_failed() {
    let mut all = Observed::default();
    for seed in seeds(SEEDS) {
        let seen = scene(seed, true, Cast::default()).run(seed);
        all.writes += seen.writes;
        all.done += seen.done;
        all.refused += seen.refused;
        all.unknown += seen.unknown;
        all.reads += seen.reads;
        all.restarts += seen.restarts;
        all.lost += seen.lost;
    }
    assert!(all.done > all.writes / 2 && all.reads > all.done / 4, "{all:?}");
    assert!(all.refused > SEEDS && all.unknown > SEEDS / 4 && all.restarts > SEEDS / 8 && all.lost > SEEDS, "{all:?}");
}

#[test]
fn nothing_fails_where_packets_are_lost_and_boards_are_well() {
    let mut done = 0;
    for seed in seeds(SEEDS / 2) {
        let seen = scene(seed, false, Cast::default()).run(seed);
        assert_eq!((seen.refused, seen.restarts), (0, 0), "seed {seed}");
        done += seen.done;
    }
    // A client may happen to do nothing but reads.
    assert!(done > SEEDS, "{done}");
}
