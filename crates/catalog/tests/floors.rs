//! What bare sockets do for a plan is known for every plan on one host.
mod plans;

use hodo_catalog::{Settings, floor};
use hodo_measure::{Mode, Plan, Test};
use plans::{MODES, plan, settings, uri};

#[test]
fn a_connection_for_each_operation_has_a_floor() {
    for (link, mode) in [("tcp", Mode::Both), ("tcp", Mode::Send), ("tcp", Mode::Receive), ("unix", Mode::Both)] {
        let plan = plan(Test::Latency, mode, 64);
        let reconnect = Settings { reconnect: true, ..settings(&plan) };
        let found = floor(&uri(link), &reconnect, &plan, &[]).expect("loopback is there").expect("a floor");
        assert!(found.latency_ns.is_some_and(|ns| ns > 0.0), "{link} {mode:?}: {found:?}");
    }
}

#[test]
fn one_operation_at_a_time_has_a_time_whichever_way_it_goes() {
    for (link, mode) in ["tcp", "udp", "unix"].into_iter().flat_map(|link| MODES.map(|mode| (link, mode))) {
        let plan = plan(Test::Latency, mode, 1024);
        let found = floor(&uri(link), &settings(&plan), &plan, &[]).expect("loopback is there").expect("a floor");
        assert!(found.latency_ns.is_some_and(|ns| ns > 0.0), "{link} {mode:?}: {found:?}");
    }
}

#[test]
fn every_floor_knows_what_an_operation_costs_the_busier_side() {
    for (link, mode) in ["tcp", "udp", "unix"].into_iter().flat_map(|link| MODES.map(|mode| (link, mode))) {
        let plan = Plan { window: 64, ..plan(Test::Rate, mode, 1024) };
        let found = floor(&uri(link), &settings(&plan), &plan, &[]).expect("loopback is there").expect("a floor");
        // A side that is busy all the time does no more than one core can.
        let (cost_ns, period_ns) = (found.cost_ns.expect("threads know their time"), 1e9 / found.operations_per_s);
        assert!(cost_ns > 0.0 && cost_ns < 1.5 * period_ns, "{link} {mode:?}: {found:?}");
    }
}
