//! A farm as a link: its nodes' shares, its options, and the bounds that belong to it.

use crate::plans;
use hodo_catalog::{Error, Line, Opened, Settings, limit};
use hodo_measure::limits::RoundTrip;
use hodo_measure::{Binding, Limit, Measurement, Mode, Plan, Test, Until, Unwatched, run};
use plans::served::{Served, serve_settings};
use plans::{open_with, opened, plan, uri};
use std::time::Duration;

/// The published study's event.
const EVENT: u32 = 32_000;

fn measured(link: &str, opened: &mut Opened, plan: &Plan) -> Measurement {
    let run = run(&mut opened.links, plan, &Unwatched);
    assert_eq!(run.error, None, "{link}");
    run.into_measurement("farm", link, plan)
}

/// Returns a measurement over the simulated network.
fn simulated(query: &str, plan: &Plan) -> (Measurement, Limit) {
    let link = format!("sim+farm://?{query}");
    let mut opened = opened(&uri(&link), plan);
    let found = measured(&link, &mut opened, plan);
    let uri = uri(&link);
    let wire = uri.protocol.on_the_wire(&uri, plan).expect("a plan of a farm");
    let limit = limit(&wire, &opened, Line { rate: None, mtu: 1500 }, None, None, &found).expect("a model has a limit");
    (found, limit)
}

/// Returns the limit of events over a line to nodes with these options.
fn over_line(query: &str, line: (f64, u32), plan: &Plan, round_trip_ns: Option<f64>) -> Limit {
    let served = Served::at(&uri(&format!("farm://127.0.0.1:0?{query}")), &serve_settings());
    let link = uri(&format!("{}?{query}", served.uri));
    let mut opened = opened(&link, plan);
    let found = measured("farm", &mut opened, plan);
    let wire = link.protocol.on_the_wire(&link, plan).expect("a plan of a farm");
    let round_trip = round_trip_ns.map(|ns| RoundTrip { ns, source: "made up".into() });
    limit(&wire, &opened, Line { rate: Some(line.0), mtu: line.1 }, None, round_trip, &found)
        .expect("a line has a limit")
}

#[track_caller]
fn assert_near(found: f64, truth: f64, share: f64) {
    assert!((found / truth - 1.0).abs() <= share, "{found} is not within {} % of {truth}", share * 100.0);
}

fn events(channels: u32, window: u32, count: u64) -> Plan {
    Plan { channels, window, until: Until::Count(count), ..plan(Test::Channels, Mode::Send, EVENT) }
}

#[test]
#[ignore = "timing"]
fn a_line_of_a_gigabit_carries_the_events_of_the_study() {
    for (mtu, events_per_s, stream_bits_per_s) in [(1500, 3676.0, 941.5e6), (9000, 3866.0, 990.0e6)] {
        let found = over_line("", (1e9, mtu), &events(3, 2, 100), None);
        let per_s = found.operations_per_s.expect("a rate");
        assert!((per_s - events_per_s).abs() < 0.5, "{per_s} at MTU {mtu}");
        assert_near(per_s * f64::from(EVENT + 12) * 8.0, stream_bits_per_s, 1e-4);
        assert_near(found.payload_bits_per_s.expect("a rate"), per_s * f64::from(EVENT) * 8.0, 1e-9);
        assert_eq!(found.binds, Binding::Line);
    }
}

#[test]
fn what_tokens_carry_binds_only_where_it_is_more() {
    let plan = events(2, 2, 100);
    let bare = over_line("", (1e9, 1500), &plan, None);
    let study = over_line("accept=every:200&output=64K", (1e9, 1500), &plan, None);
    assert_eq!(study.operations_per_s, bare.operations_per_s);
    let heavy = over_line("accept=1&output=64K", (1e9, 1500), &plan, None);
    assert_near(heavy.operations_per_s.expect("a rate"), 1e9 / 8.0 / ((65_536.0 + 28.0) * 1538.0 / 1448.0), 1e-6);
}

#[test]
fn credits_and_decisions_are_bounds_beside_the_line() {
    let credits = over_line("", (1e9, 1500), &events(4, 2, 100), Some(10e6));
    assert_eq!((credits.binds, credits.operations_per_s), (Binding::Window, Some(800.0)));
    let decisions = over_line("time=2ms", (1e9, 1500), &events(4, 2, 100), None);
    assert_eq!(decisions.operations_per_s, Some(2000.0));
    assert!(decisions.formula.starts_with("far_end: "), "{}", decisions.formula);
    assert!(decisions.formula.contains("4 nodes / 2000.000 us a decision"), "{}", decisions.formula);
}

#[test]
fn every_node_has_its_share_and_the_verdict_tells_how_even_they_are() {
    for policy in ["token-fifo", "round-robin", "least-outstanding", "weighted"] {
        let served = Served::at(&uri("farm://127.0.0.1:0"), &serve_settings());
        let link = uri(&format!("{}?policy={policy}", served.uri));
        let plan = events(5, 2, 5000);
        let found = measured(policy, &mut opened(&link, &plan), &plan);
        assert_eq!(found.nodes.iter().map(|node| node.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4], "{policy}");
        let events: u64 = found.nodes.iter().map(|node| node.events).sum();
        assert!((4900..=5100).contains(&events), "{policy}: {events}");
        let fairness = found.fairness.expect("nodes have done something");
        assert!(fairness.min_over_max > 0.5 && fairness.jain > 0.9, "{policy}: {fairness:?}");
        assert!(found.verdict.text.contains(&fairness.text()), "{policy}: {}", found.verdict.text);
    }
}

/// Checks the parts of the time: out and back, four messages on processors, and the decision between them.
#[test]
fn the_time_of_an_event_is_two_delays_and_its_decision() {
    let one = |query: &str| simulated(query, &Plan { ..plan(Test::Latency, Mode::Send, 64) });
    let (bare, limit) = one("delay=50us&cost=1ns");
    let p50 = |found: &Measurement| found.latency_ns.as_ref().expect("events").p50 as f64;
    assert_near(p50(&bare), limit.latency_ns.expect("a time"), 1e-3);
    let (deciding, limit) = one("delay=50us&cost=1ns&time=300us");
    assert_near(p50(&deciding) - p50(&bare), 300e3, 0.01);
    assert_near(p50(&deciding), limit.latency_ns.expect("a time"), 1e-3);
}

#[test]
fn the_rate_of_a_farm_is_what_its_bounds_say() {
    let lasting = |channels, window| Plan {
        until: Until::Elapsed(Duration::from_millis(400)),
        warmup: Duration::from_millis(50),
        ..events(channels, window, 1)
    };
    let line = "delay=5us&rate=1G&mtu=1500&overhead=38";
    for (query, plan, binds, per_s) in [
        ("delay=100us&cost=1ns".to_owned(), lasting(5, 2), Binding::Window, 10.0 / 200.004e-6),
        (format!("{line}&time=5ms"), lasting(4, 2), Binding::FarEnd, 800.0),
    ] {
        let (found, limit) = simulated(&query, &plan);
        assert_eq!(limit.binds, binds, "{query}: {}", limit.formula);
        assert_near(limit.operations_per_s.expect("a rate"), per_s, 0.001);
        assert_near(found.rate.operations_per_s.median, per_s, 0.02);
    }
    let (found, limit) = simulated(&format!("{line}&accept=1&output=64K"), &lasting(4, 4));
    assert_eq!(limit.binds, Binding::Line, "{}", limit.formula);
    assert_near(limit.operations_per_s.expect("a rate"), 941.482e6 / 8.0 / 65_564.0, 1e-3);
    assert_near(found.rate.operations_per_s.median, 1795.0, 0.02);
    let (found, limit) = simulated(line, &lasting(4, 4));
    assert_eq!(limit.binds, Binding::Line, "{}", limit.formula);
    assert_near(found.rate.operations_per_s.median, 3676.0, 0.02);
}

#[test]
fn what_nodes_do_not_take_is_named() {
    let served = Served::at(&uri("farm://127.0.0.1:0"), &serve_settings());
    let wide = plan(Test::Rate, Mode::Send, 64);
    let refused = |settings: Settings| open_with(&served.uri, &settings).err().expect("it is too much").to_string();
    let window = refused(Settings { window: 65_537, ..Settings::of(&wide) });
    assert!(window.contains("65536 events at a time") && window.contains("--window"), "{window}");
    let unknown = open_with(&uri(&format!("{}?nodes=3", served.uri)), &Settings::of(&wide)).err();
    assert!(matches!(unknown, Some(Error::Usage(_))));
}

#[test]
fn nodes_of_several_hosts_share_the_channels() {
    let [one, other] = [(); 2].map(|()| Served::at(&uri("farm://127.0.0.1:0"), &serve_settings()));
    let link = uri(&format!("farm://{},{}", one.uri.authority, other.uri.authority));
    assert_eq!(link.protocol.far_ends(&link), 2);
    let plan = events(4, 2, 2000);
    let found = measured("farm", &mut opened(&link, &plan), &plan);
    assert!(found.nodes.iter().all(|node| node.events > 100), "{:?}", found.nodes);
    drop(other);
    let error = open_with(&link, &Settings::of(&plan)).err().expect("one host is not there").to_string();
    assert!(error.contains("refused"), "{error}");
}
