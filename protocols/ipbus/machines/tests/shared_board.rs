//! Several hubs, and clients that need none, number packets of one board on the simulated network: nothing is done twice,
//! none is said to be done that was not, and hardly any fails for the others.
use crate::scene;

use hodo_sim::conformance::seeds;
use scene::{Cast, Observed, scene};

/// Seeds of a run.
const SEEDS: u64 = 200;

/// Runs each seed with the cast for it, and returns what was seen in all of them.
fn all(faults: bool, cast: impl Fn(u64) -> Cast) -> Observed {
    let mut all = Observed::default();
    for seed in seeds(SEEDS) {
        let seen = scene(seed, faults, cast(seed)).run(seed);
        all.writes += seen.writes;
        all.done += seen.done;
        all.refused += seen.refused;
        all.restarts += seen.restarts;
        all.lost += seen.lost;
    }
    all
}

/// Has up to three hubs and two direct clients begin at once over networks that lose up to a tenth each way. Where a client
/// sends several packets at a time, and another host has taken the number of one of them before it was noticed, its order
/// can be kept in no other way than by giving that one up.
#[test]
fn several_hubs_and_direct_clients_share_a_board() {
    let hosts = |seed: u64| ((1 + seed % 2) as u32, (seed / 2 % 3) as u32);
    for (one_by_one, refused_max) in [(true, 0.012), (false, 0.06)] {
        let seen = all(false, |seed| {
            let (more_hubs, direct) = hosts(seed);
            Cast { boards: 1, more_hubs, direct, one_by_one }
        });
        let refused = seen.refused as f64 / seen.writes as f64;
        assert!(refused < refused_max && seen.done > 20 * SEEDS && seen.lost > SEEDS, "{refused}: {seen:?}");
    }
}

#[test]
fn a_board_that_comes_and_goes_does_nothing_twice_for_several_hubs() {
    let seen = all(true, |seed| Cast { boards: 1, more_hubs: 1, direct: (seed % 2) as u32, one_by_one: seed % 3 == 0 });
    assert!(seen.done > seen.writes / 2 && seen.restarts > SEEDS / 8, "{seen:?}");
}
