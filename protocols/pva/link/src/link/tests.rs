//! Links with their far end, in virtual time and on sockets.

use crate::PVA;
use hodo_io::{ServeOptions, SocketSettings};
use hodo_machine::{Address, Sampling, Wait};
use hodo_measure::{Link, Mode, Operation, Plan, Run, Side, Size, Test, Until, Unwatched, run};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Command, Server, ServerConfig};
use hodo_pva::{Scalar, Value};
use hodo_tester::{Catalog, Opened, Protocol, ServeSettings, Settings, open};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CATALOG: Catalog = Catalog::new(&[&PVA]);

fn opened(uri: &str, plan: &Plan) -> Opened {
    let uri = CATALOG.uri(uri).expect("a link of this protocol");
    open(&uri, &Settings::of(plan), &AtomicBool::new(false)).expect("its far end is there")
}

fn measured(uri: &str, plan: &Plan) -> Run {
    let found = run(&mut opened(uri, plan).links, plan, &Unwatched);
    assert_eq!(found.error, None, "{uri}");
    found
}

/// Runs with a server on sockets.
fn served(measure: impl FnOnce(&str)) {
    let settings = ServeSettings {
        threads: 2,
        cpus: Vec::new(),
        wait: Wait::Block,
        congestion: None,
        path: hodo_io::PathOptions::default(),
        payload: None,
        socket_buffer: None,
        size_max: 1 << 20,
        peers_max: 100,
    };
    let server = PVA.serve(&CATALOG.uri("pva://127.0.0.1:0").expect("a link"), &settings).expect("a port is free");
    let (uri, stop) = (server.uri().to_string(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| server.run(&stop));
        measure(&uri);
        stop.store(true, Ordering::Relaxed);
        thread.join().expect("it does not panic").expect("it ends in order");
    });
}

#[test]
fn the_far_end_reports_its_usage_and_its_stages_over_the_link() {
    served(|uri| {
        for (mode, channels) in [(Mode::Receive, 1), (Mode::Send, 5), (Mode::Both, 5)] {
            let until = Until::Count(500);
            let plan = Plan { test: Test::Channels, channels, stages: true, until, ..Plan::one(mode, 64) };
            let found = measured(uri, &plan);
            assert!(found.cpu.remote.is_some(), "{mode}");
            let remote: Vec<_> = found.stages.iter().filter(|stage| stage.side == Side::Remote).collect();
            let count = |name: &str| remote.iter().find(|stage| stage.name == name).map_or(0, |stage| stage.count);
            // Each request that was under way at either end of the counted time may be in or out.
            for name in ["decode", "source", "encode", "send"] {
                assert!(count(name).abs_diff(500) <= u64::from(channels), "{mode}: {remote:?}");
            }
            let off = measured(uri, &Plan { stages: false, ..plan });
            assert!(off.stages.is_empty() && off.cpu.remote.is_some(), "{mode}");
        }
    });
}

#[test]
fn nothing_is_followed_unless_stages_are_asked_for() {
    served(|uri| {
        let plan = Plan { until: Until::Count(100), ..Plan::one(Mode::Receive, 8) };
        let mut opened = opened(uri, &plan);
        let link = opened.links[0].as_mut();
        for (sampling, followed) in [(Sampling::NONE, 0), (Sampling::ALL, 100), (Sampling::NONE, 0)] {
            link.sample_stages(sampling);
            let ask = |link: &mut dyn Link| {
                let until = link.now() + Duration::from_secs(5);
                link.far_end(until, &mut Vec::new()).expect("the link is there").expect("it answers")
            };
            ask(link);
            let operations = (0..100).map(|tag| Operation { tag, channel: 0, size: 8, mode: Mode::Receive });
            for operation in operations {
                let mut done = Vec::new();
                link.start(operation);
                while done.is_empty() {
                    let until = link.now() + Duration::from_secs(5);
                    link.poll(Wait::Block, until, &mut done).expect("the link is there");
                }
            }
            let counts: Vec<u64> = ask(link).stages.iter().map(|(_, spans)| spans.count()).collect();
            assert_eq!(counts, [followed; 4]);
            // Each mark costs readings of the clock: there are none on this side either.
            let mut stamps = Vec::new();
            link.stamps(&mut stamps);
            assert_eq!(stamps.len() as u64, 5 * followed);
        }
    });
}

#[test]
fn updates_are_counted_with_their_age_over_a_simulated_network() {
    let until = Until::Elapsed(Duration::from_millis(200));
    let plan = Plan { test: Test::Updates, channels: 3, window: 16, until, ..Plan::one(Mode::Receive, 64) };
    let found = measured("sim+pva://?delay=2ms", &Plan { rate: Some(3000.0), ..plan.clone() });
    assert!((560..=640).contains(&found.operations), "{found:?}");
    assert_eq!(found.loss.overrun, 0);
    let age = found.latency.expect("updates came");
    assert!((1_900_000..2_200_000).contains(&age.p50), "{age:?}");
    // One in two has no room: 64 bytes and their front at 1 Mbit/s are some 1,200 in a second.
    let slow = measured("sim+pva://?delay=2ms&rate=1M", &Plan { rate: Some(3000.0), ..plan });
    assert!(slow.loss.overrun > 100, "{slow:?}");
}

/// Runs with a server of these PVs alone.
fn served_alone(pvs: &[(&str, Value)], measure: impl FnOnce(&str)) {
    let settings = SocketSettings::default();
    let options = ServeOptions { settings, ..ServeOptions::default() };
    let address = Address::Tcp("127.0.0.1:0".parse().expect("an address"));
    let server = hodo_io::Server::bind(&address, options).expect("a port is free");
    let (uri, stop) = (format!("pva://{}", server.address()), AtomicBool::new(false));
    let make = || {
        let mut machine = Server::new(ServerConfig::default());
        for (name, value) in pvs {
            machine.serve((*name).to_owned(), value.clone(), Access::Mailbox);
        }
        machine
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| server.run(make, |_| None::<Command>, &stop));
        measure(&uri);
        stop.store(true, Ordering::Relaxed);
        thread.join().expect("it does not panic").expect("it ends in order");
    });
}

#[test]
fn a_server_that_makes_no_reports_is_measured_without() {
    let value = Value::of(Normative::scalar(Scalar::F64).build());
    served_alone(&[("hodo:double:0", value)], |uri| {
        let plan = Plan { until: Until::Count(100), stages: true, ..Plan::one(Mode::Receive, 8) };
        let found = measured(uri, &plan);
        assert_eq!((found.operations, found.cpu.remote.is_some()), (100, false));
    });
}

#[test]
fn any_number_of_sizes_is_read_from_one_array() {
    let mut doubles = Value::of(Normative::scalar_array(Scalar::F64).build());
    doubles.set("value", vec![1.5; 512]).expect("it fits");
    let mut bytes = Value::of(Normative::scalar_array(Scalar::U8).build());
    bytes.set("value", vec![1_u8; 4096]).expect("it fits");
    served_alone(&[("hodo:double:512:0", doubles), ("hodo:ubyte:4096:0", bytes)], |uri| {
        let size = Size::Uniform { min: 1, max: 4096 };
        let plan = Plan { test: Test::Random, size, until: Until::Count(500), ..Plan::one(Mode::Receive, 4096) };
        let found = measured(uri, &plan);
        assert_eq!((found.operations, found.loss.lost, found.loss.refused), (500, 0, 0));
    });
}

#[test]
fn any_number_of_sizes_is_put_to_one_pv() {
    let mut bytes = Value::of(Normative::scalar_array(Scalar::U8).build());
    bytes.set("value", vec![1_u8; 1]).expect("it fits");
    let mut doubles = Value::of(Normative::scalar_array(Scalar::F64).build());
    doubles.set("value", vec![1.5; 512]).expect("it fits");
    served_alone(&[("hodo:double:512:0", doubles), ("hodo:bytes:0", bytes)], |uri| {
        let size = Size::Uniform { min: 1, max: 4096 };
        for mode in [Mode::Send, Mode::Both] {
            let plan = Plan { test: Test::Random, size, until: Until::Count(500), ..Plan::one(mode, 4096) };
            let found = measured(uri, &plan);
            assert_eq!((found.operations, found.loss.lost, found.loss.refused), (500, 0, 0), "{mode}");
        }
    });
}

#[test]
fn calls_carry_their_payload_in_every_direction_with_their_stages() {
    served(|uri| {
        let uri = format!("{uri}?operation=call");
        for mode in [Mode::Receive, Mode::Send, Mode::Both] {
            let until = Until::Count(500);
            let size = Size::Uniform { min: 1, max: 70_000 };
            let plan = Plan { test: Test::Channels, channels: 5, window: 2, stages: true, until, ..Plan::one(mode, 1) };
            let found = measured(&uri, &Plan { size, ..plan });
            assert_eq!((found.operations, found.loss.refused), (500, 0), "{mode}");
            assert!(found.stages.iter().any(|stage| stage.side == Side::Remote), "{mode}: {:?}", found.stages);
        }
    });
}

#[test]
fn channels_are_opened_and_closed_again_and_again() {
    served(|uri| {
        let uri = format!("{uri}?operation=connect");
        let plan =
            Plan { test: Test::Channels, channels: 1000, until: Until::Count(5000), ..Plan::one(Mode::Receive, 0) };
        let found = measured(&uri, &plan);
        assert_eq!((found.operations, found.payload_bytes, found.loss.refused), (5000, 0, 0));
        // As many at once on one channel, whose server has one PV for all.
        let found = measured(&uri, &Plan { channels: 1, window: 50, until: Until::Count(500), ..plan });
        assert_eq!((found.operations, found.loss.refused), (500, 0));
    });
    let value = Value::of(Normative::scalar(Scalar::F64).build());
    served_alone(&[("ours:0", value.clone()), ("ours:1", value)], |uri| {
        let plan = Plan { test: Test::Channels, channels: 2, until: Until::Count(100), ..Plan::one(Mode::Receive, 0) };
        assert_eq!(measured(&format!("{uri}/ours:{{}}?operation=connect"), &plan).operations, 100);
    });
}

#[test]
fn over_a_simulated_network_each_takes_a_round_trip() {
    for operation in ["call", "connect"] {
        let size = if operation == "call" { 64 } else { 0 };
        let plan = Plan { until: Until::Count(100), ..Plan::one(Mode::Receive, size) };
        let found = measured(&format!("sim+pva://?delay=2ms&operation={operation}"), &plan);
        let took = found.latency.expect("they are done");
        assert!((4_000_000..4_100_000).contains(&took.p50), "{operation}: {took:?}");
    }
}

#[test]
fn what_an_operation_cannot_do_is_refused_before_anything_is_opened() {
    let refused = |uri: &str, test, size| {
        let plan = Plan { test, size, ..Plan::one(Mode::Receive, 8) };
        let error = PVA.check(&CATALOG.uri(uri).expect("a link"), &plan).expect_err(uri);
        error.to_string()
    };
    let drawn = Size::Uniform { min: 1, max: 8 };
    assert!(refused("pva://a/PV", Test::Random, drawn).contains("--test random"));
    assert!(refused("pva://a/PV?operation=call", Test::Latency, Size::Fixed(8)).contains("leave the PV out"));
    assert!(refused("pva://a?operation=connect", Test::Latency, Size::Fixed(8)).contains("--sizes 8"));
    assert!(refused("pva://a?operation=call", Test::Updates, Size::Fixed(8)).contains("--test updates"));
    assert!(refused("pva://a", Test::Latency, Size::Fixed(0)).contains("--sizes 0"));
    assert!(refused("pva://a?operation=search", Test::Latency, drawn).contains("value, call or connect"));
}

#[test]
fn a_put_to_what_is_only_called_is_refused_and_not_left_open() {
    served(|uri| {
        let options =
            hodo_pva_host::ClientOptions { timeout: Duration::from_secs(5), ..hodo_pva_host::ClientOptions::default() };
        let mut client = hodo_pva_host::Client::open(&options).expect("sockets are there");
        for name in ["hodo:call:0", "hodo:report"] {
            let put = client.put(&format!("{uri}/{name}"), |value| {
                value.mark(0);
                Ok::<(), hodo_pva::Error>(())
            });
            let why = put.expect_err(name).to_string();
            assert!(why.contains("only called"), "{why}");
        }
    });
}
