//! Tests that every plan on one host has a plain loop of bare sockets.
use crate::plans;

use hodo_catalog::{Settings, plain_loop};
use hodo_measure::PlainLoop;
use hodo_measure::{Mode, Plan, Test};
use plans::{MODES, plan, uri};

fn found(link: &str, settings: &Settings, plan: &Plan) -> PlainLoop {
    let uri = uri(link);
    let wire = uri.protocol.on_the_wire(&uri, plan).expect("a plan of this protocol");
    plain_loop(&wire, settings, plan, &[]).expect("loopback is there")
}

#[test]
fn a_connection_for_each_operation_has_a_plain_loop() {
    for (link, mode) in [("tcp", Mode::Both), ("tcp", Mode::Send), ("tcp", Mode::Receive), ("unix", Mode::Both)] {
        let plan = plan(Test::Latency, mode, 64);
        let found = found(link, &Settings { reconnect: true, ..Settings::of(&plan) }, &plan);
        assert!(found.latency_ns.is_some_and(|ns| ns > 0.0), "{link} {mode:?}: {found:?}");
    }
}

#[test]
fn one_operation_at_a_time_has_a_time_whichever_way_it_goes() {
    for (link, mode) in ["tcp", "udp", "unix"].into_iter().flat_map(|link| MODES.map(|mode| (link, mode))) {
        let plan = plan(Test::Latency, mode, 1024);
        let found = found(link, &Settings::of(&plan), &plan);
        assert!(found.latency_ns.is_some_and(|ns| ns > 0.0), "{link} {mode:?}: {found:?}");
    }
}

#[test]
fn every_plain_loop_knows_what_an_operation_costs_the_busier_side() {
    for (link, mode) in ["tcp", "udp", "unix"].into_iter().flat_map(|link| MODES.map(|mode| (link, mode))) {
        let plan = Plan { window: 64, ..plan(Test::Rate, mode, 1024) };
        let found = found(link, &Settings::of(&plan), &plan);
        // A side that is busy all the time does no more than one core can.
        let (cost_ns, period_ns) = (found.cost_ns.expect("threads know their time"), 1e9 / found.operations_per_s);
        assert!(cost_ns > 0.0 && cost_ns < 1.5 * period_ns, "{link} {mode:?}: {found:?}");
    }
}

#[test]
fn a_link_with_a_socket_for_each_channel_stands_beside_as_many() {
    for (link, mode) in ["tcp", "udp", "unix"].into_iter().zip(MODES) {
        let plan = Plan { channels: 20, window: 4, ..plan(Test::Channels, mode, 1024) };
        let found = found(link, &Settings::of(&plan), &plan);
        assert!(found.shape.starts_with("4 in flight on each of 20 sockets, "), "{link} {mode:?}: {found:?}");
        assert!(found.cost_ns.is_some_and(|cost_ns| cost_ns > 0.0), "{link} {mode:?}: {found:?}");
    }
    for link in
        ["ipbusudp-2.0://127.0.0.1:50001", "ipbustcp-2.0://127.0.0.1:50001", "chtcp-2.0://127.0.0.1?target=127.0.0.2"]
    {
        let plan = Plan { channels: 8, window: 1, ..plan(Test::Channels, Mode::Receive, 4) };
        let found = found(link, &Settings::of(&plan), &plan);
        assert!(found.shape.starts_with("1 in flight on each of 8 sockets, "), "{link}: {found:?}");
    }
    // All channels of pvAccess share one connection.
    let plan = Plan { channels: 20, window: 4, ..plan(Test::Channels, Mode::Receive, 8) };
    let found = found("pva", &Settings::of(&plan), &plan);
    assert!(found.shape.starts_with("80 in flight, "), "{found:?}");
}

/// Checks that the plain loop is not segmented bulk, which no window lets through.
#[test]
fn a_block_is_beside_packets_of_its_size_and_window() {
    for (link, mode, shape) in [
        ("ipbusudp-2.0://127.0.0.1:50001", Mode::Receive, "16 in flight, 16 B out and 1472 B back by UDP"),
        ("ipbustcp-2.0://127.0.0.1:50001", Mode::Receive, " B back by TCP"),
    ] {
        let plan = Plan { window: 1, ..plan(Test::Rate, mode, 1 << 20) };
        let found = found(link, &Settings::of(&plan), &plan);
        assert!(found.shape.contains(" in flight, ") && found.operations_per_s > 0.0, "{found:?}");
        assert!(found.shape.ends_with(shape.split(" back").last().unwrap_or(shape)), "{found:?}");
    }
}
