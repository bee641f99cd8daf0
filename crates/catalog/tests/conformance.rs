//! One suite over every protocol of the catalog, on real sockets: each behaves in the same way.
use crate::plans;

use hodo_catalog::{Opened, Protocol, Settings, protocols};
use hodo_io::Clock;
use hodo_machine::Wait;
use hodo_measure::{Completion, Link, Mode, Operation, Outcome, Plan, Run, Side, Size, Test, Until, Unwatched, run};
use plans::served::{Served, serve_settings};
use plans::{TESTS, open_with, opened, own, plan};
use std::time::Duration;

fn is_stream(protocol: &dyn Protocol) -> bool {
    protocol.name() != "udp"
}

/// Runs a plan over a link, and asserts that it comes to its end with everything counted.
#[track_caller]
fn run_over(opened: &mut Opened, plan: &Plan, protocol: &dyn Protocol) -> Run {
    let found = run(&mut opened.links, plan, &Unwatched);
    let what = format!("{} {} {} {:?}", protocol.name(), plan.test, plan.mode, plan.size);
    assert_eq!(found.error, None, "{what}");
    let Until::Count(count) = plan.until else { panic!("{what}: these tests count operations") };
    assert!(found.operations + found.loss.lost >= count, "{what}: {} of {count}", found.operations);
    assert!(found.operations <= count, "{what}: more than was asked for");
    if is_stream(protocol) {
        assert_eq!((found.operations, found.loss.lost), (count, 0), "{what}");
    }
    assert_eq!(found.latency.as_ref().map(|latency| latency.count), Some(found.operations), "{what}");
    found
}

#[test]
fn every_test_and_mode_runs() {
    for protocol in protocols() {
        let served = Served::start(protocol, &serve_settings());
        for test in TESTS {
            for &mode in protocol.description().modes {
                let plan = Plan {
                    size: if test == Test::Random { Size::Uniform { min: 0, max: 2000 } } else { Size::Fixed(64) },
                    window: if test == Test::Latency { 1 } else { 16 },
                    channels: if test == Test::Channels { 5 } else { 1 },
                    rate: (test == Test::Open).then_some(20_000.0),
                    until: Until::Count(500),
                    ..plan(test, mode, 64)
                };
                let found = run_over(&mut opened(&served.uri, &plan), &plan, protocol);
                assert!(
                    found.cpu.remote.is_some() || !protocol.description().own,
                    "{}: the far end tells its CPU",
                    protocol.name()
                );
            }
        }
    }
}

#[test]
fn the_stages_of_operations_add_up_to_their_time() {
    for protocol in own() {
        let served = Served::start(protocol, &serve_settings());
        for (test, window, channels) in [(Test::Latency, 1, 1), (Test::Rate, 16, 1), (Test::Channels, 4, 5)] {
            for &mode in protocol.description().modes {
                let plan = Plan { window, channels, stages: true, until: Until::Count(500), ..plan(test, mode, 64) };
                let mut opened = opened(&served.uri, &plan);
                let found = run_over(&mut opened, &plan, protocol);
                let what = format!("{} {test} {mode}: {:?}", protocol.name(), found.stages);
                let latency = found.latency.expect("operations");
                let local = || found.stages.iter().filter(|stage| stage.side == Side::Local);
                let (mean_ns, whole) =
                    local().fold((0.0, 0.0), |sum, stage| (sum.0 + stage.mean_ns, sum.1 + stage.share));
                assert!(local().count() >= 3 && local().all(|stage| stage.count == latency.count), "{what}");
                assert!((mean_ns / latency.mean - 1.0).abs() < 2e-3, "{mean_ns} of {}, {what}", latency.mean);
                assert!((whole - 1.0).abs() < 1e-9, "{what}");
                // The far end has answered the operations in flight at the end, and their replies have not been
                // received.
                let most = 500 + u64::from(window * channels);
                let mut remote = found.stages.iter().filter(|stage| stage.side == Side::Remote).peekable();
                assert!(remote.peek().is_some() && remote.all(|stage| (1..=most).contains(&stage.count)), "{what}");
                // Without them, neither end tells any, also over the same link.
                let found = run_over(&mut opened, &Plan { stages: false, ..plan }, protocol);
                assert!(found.stages.is_empty(), "{}: {:?}", protocol.name(), found.stages);
            }
        }
    }
}

/// Includes the largest sizes, which land straight in their place, in pieces.
#[test]
fn every_size_arrives_whole() {
    for protocol in protocols() {
        let served = Served::start(protocol, &serve_settings());
        for size in [0, 1, 16, 17, 64, 4096, 65_507, 1 << 20, 3 << 20] {
            if size > protocol.description().size_max {
                continue;
            }
            for &mode in protocol.description().modes {
                let window = if is_stream(protocol) { 3 } else { 1 };
                let plan = Plan { window, until: Until::Count(10), ..plan(Test::Rate, mode, size) };
                let found = run_over(&mut opened(&served.uri, &plan), &plan, protocol);
                assert_eq!(found.payload_bytes, found.operations * u64::from(size));
                assert_eq!(found.operations, 10, "{} {mode} {size}: {found:?}", protocol.name());
            }
        }
    }
}

#[test]
fn what_is_too_large_is_refused_before_it_is_sent() {
    for protocol in own() {
        let small = hodo_catalog::ServeSettings { size_max: 1000, ..serve_settings() };
        let served = Served::start(protocol, &small);
        let wanted = Settings::of(&plan(Test::Rate, Mode::Both, 1001));
        let error = open_with(&served.uri, &wanted).err().expect("1001 is over 1000").to_string();
        assert!(error.contains("1000") && error.contains("1001"), "{error}");
    }
}

#[test]
fn channels_are_dealt_over_threads_on_both_sides() {
    for protocol in own() {
        let served = Served::start(protocol, &hodo_catalog::ServeSettings { threads: 3, ..serve_settings() });
        for &mode in protocol.description().modes {
            let plan = Plan { channels: 8, window: 4, until: Until::Count(4000), ..plan(Test::Channels, mode, 1000) };
            let mut opened = opened(&served.uri, &plan);
            assert!(!opened.links.is_empty() && opened.links.len() <= 8);
            run_over(&mut opened, &plan, protocol);
            // The link is idle again, and can be used for the next plan.
            run_over(&mut opened, &plan, protocol);
        }
    }
}

#[test]
fn every_wait_works() {
    for protocol in protocols() {
        for wait in [Wait::Adaptive, Wait::Block, Wait::Spin, Wait::SpinThenBlock(Duration::from_micros(50))] {
            let served = Served::start(protocol, &hodo_catalog::ServeSettings { wait, ..serve_settings() });
            let plan = Plan { wait, until: Until::Count(50), ..plan(Test::Latency, Mode::Both, 64) };
            run_over(&mut opened(&served.uri, &plan), &plan, protocol);
        }
    }
}

#[test]
fn each_operation_on_a_connection_of_its_own() {
    for protocol in own() {
        let served = Served::start(protocol, &serve_settings());
        for (size, window, channels) in [(64, 1, 1), (64, 4, 3), (1 << 20, 1, 1), (1 << 20, 2, 2)] {
            for &mode in protocol.description().modes {
                let plan = Plan {
                    window,
                    channels,
                    until: Until::Count(40),
                    stall: Duration::from_secs(2),
                    ..plan(Test::Rate, mode, size)
                };
                let settings = Settings { reconnect: true, ..Settings::of(&plan) };
                match open_with(&served.uri, &settings) {
                    Err(error) => {
                        assert!(["udp", "farm"].contains(&protocol.name()), "{error}");
                        assert!(matches!(error, hodo_catalog::Error::Usage(_)), "{error}");
                    }
                    Ok(mut opened) => {
                        let latency = run_over(&mut opened, &plan, protocol).latency.expect("they are counted");
                        // The server looks for new connections while it waits for the ones that it has. A mebibyte
                        // takes as long by itself on a busy machine.
                        assert!(size > 64 || latency.p50 < 9_000_000, "{} {mode} {size}: {latency:?}", protocol.name());
                    }
                }
            }
        }
    }
}

/// Drives a link until it has completed `count` operations, or ten seconds have passed.
fn complete(link: &mut dyn Link, count: usize) -> Vec<Completion> {
    let mut done = Vec::new();
    let end = link.now() + Duration::from_secs(10);
    while done.len() < count && link.now() < end {
        link.poll(Wait::Block, end, &mut done).expect("the far end is there");
    }
    done
}

#[test]
fn the_far_end_counts_what_it_received() {
    for protocol in own() {
        let served = Served::start(protocol, &serve_settings());
        let plan = Plan { channels: 2, window: 100, ..plan(Test::Rate, Mode::Send, 700) };
        let mut opened = opened(&served.uri, &plan);
        let mut sent = 0;
        for round in 1..=2 {
            for link in &mut opened.links {
                for tag in 0..150 {
                    link.start(Operation { tag, channel: 0, size: 700, mode: Mode::Send });
                }
                link.flush();
                let mut done = complete(link.as_mut(), 150);
                assert_eq!(done.len(), 150, "{}", protocol.name());
                sent += 150;
                let until = link.now() + Duration::from_secs(5);
                let far_end = link.far_end(until, &mut done).expect("the far end is there").expect("it answers");
                let lost = done.iter().filter(|done| done.outcome != Outcome::Done).count() as u64;
                assert_eq!(far_end.received + lost, 150 * round, "{}", protocol.name());
                assert!(far_end.usage.is_some_and(|usage| usage.max_rss_bytes > 0));
            }
        }
        assert!(sent >= 300);
    }
}

#[test]
fn more_peers_than_the_bound_are_refused_and_the_others_go_on() {
    for protocol in protocols() {
        let served = Served::start(protocol, &hodo_catalog::ServeSettings { peers_max: 2, ..serve_settings() });
        let two = Plan { channels: 2, until: Until::Count(20), ..plan(Test::Channels, Mode::Both, 64) };
        let mut there = opened(&served.uri, &two);
        run_over(&mut there, &two, protocol);
        let one =
            Settings { timeout: Duration::from_millis(200), ..Settings::of(&plan(Test::Latency, Mode::Both, 64)) };
        let error = open_with(&served.uri, &one).err();
        assert!(error.is_some(), "{}: a third peer was accepted", protocol.name());
        run_over(&mut there, &two, protocol);
    }
}

/// Covers UDP too, where the server does not see that a peer has left.
#[test]
fn peers_that_have_left_make_room_for_others() {
    for protocol in own() {
        let served = Served::start(protocol, &hodo_catalog::ServeSettings { peers_max: 20, ..serve_settings() });
        let plan = Plan { channels: 3, until: Until::Count(30), ..plan(Test::Channels, Mode::Both, 64) };
        for _ in 0..20 {
            run_over(&mut opened(&served.uri, &plan), &plan, protocol);
        }
    }
}

#[test]
#[ignore = "timing"]
fn a_server_that_is_told_to_stop_stops_within_a_tenth_of_a_second() {
    for protocol in protocols() {
        for wait in [Wait::Adaptive, Wait::Block, Wait::Spin] {
            for busy in [false, true] {
                // A loaded machine may keep any one of them waiting.
                let spans = (0..5).map(|_| stopping(protocol, wait, busy));
                let quickest = spans.min().expect("there are five");
                assert!(quickest < Duration::from_millis(100), "{} {wait}: {quickest:?}", protocol.name());
            }
        }
    }
}

fn stopping(protocol: &dyn Protocol, wait: Wait, busy: bool) -> Duration {
    let mut served = Served::start(protocol, &hodo_catalog::ServeSettings { wait, ..serve_settings() });
    let plan = Plan { until: Until::Count(10), ..plan(Test::Latency, Mode::Both, 64) };
    let link = busy.then(|| {
        let mut opened = opened(&served.uri, &plan);
        run_over(&mut opened, &plan, protocol);
        opened
    });
    let clock = Clock::start();
    let before = clock.now();
    served.end().expect("it ends in order");
    let span = clock.now() - before;
    drop(link);
    span
}
