//! Tests of the tester itself on the simulated network: known truth in, the same figures out.
use crate::plans;

use hodo_catalog::{Line, Settings, limit};
use hodo_measure::{
    Binding, Histogram, LinkError, Measurement, Mode, Plan, Repeats, Run, Side, Size, Stage, State, Test, Until,
    Unwatched, run,
};
use plans::{MODES, TESTS, open_with, opened, plan, uri};
use std::time::Duration;

/// A gigabit line with Ethernet's 38 bytes around each packet.
const GIGABIT: &str = "delay=5us&rate=1G&mtu=1500&overhead=38";
/// Payload of full packets on it: 1448 or 1472 of 1538 bytes.
const TCP_BITS_PER_S: f64 = 941.482e6;
const UDP_BITS_PER_S: f64 = 957.087e6;

fn run_over(link: &str, plan: &Plan) -> Run {
    run(&mut opened(&uri(link), plan).links, plan, &Unwatched)
}

/// Returns the measurement of a plan over a link, with its limit.
fn measure(link: &str, plan: &Plan) -> Measurement {
    let uri = uri(link);
    let mut opened = opened(&uri, plan);
    let run = run(&mut opened.links, plan, &Unwatched);
    assert_eq!(run.error, None, "{link} {plan:?}");
    let mut found = run.into_measurement(uri.scheme, link, plan);
    let wire = uri.protocol.on_the_wire(&uri, plan).expect("a plan of this protocol");
    found.limit = limit(&wire, &opened, Line { rate: None, mtu: 1500 }, None, None, &found);
    found
}

fn lasting(mut plan: Plan, millis: u64) -> Plan {
    plan.until = Until::Elapsed(Duration::from_millis(millis));
    plan
}

#[track_caller]
fn assert_near(found: f64, truth: f64, share: f64) {
    assert!((found / truth - 1.0).abs() <= share, "{found} is not within {} % of {truth}", share * 100.0);
}

/// Expects the delays out and back, and the processors' time to send and to receive at both ends.
#[test]
fn latency_is_two_delays_and_four_costs_exactly() {
    for (delay_ns, cost_ns) in [(500_u32, 100), (7_000, 300), (2_000_000, 1)] {
        let truth_ns = 2 * delay_ns + 4 * cost_ns;
        for mode in MODES {
            let found =
                measure(&format!("sim+udp://?delay={delay_ns}ns&cost={cost_ns}ns"), &plan(Test::Latency, mode, 64));
            assert_eq!(found.operations, 1000);
            assert_near(found.elapsed_s * 1e9, 1000.0 * f64::from(truth_ns), 1e-9);
            let latency = found.latency_ns.expect("a thousand operations");
            // A histogram of three digits is exact up to 2,047 ns, and within a thousandth above.
            let bound = if truth_ns < 2048 { 0.0 } else { 1e-3 };
            for time in [latency.min, latency.p50, latency.p99_9, latency.max] {
                assert_near(time as f64, f64::from(truth_ns), bound);
            }
            assert_eq!(found.limit.and_then(|limit| limit.latency_ns), Some(f64::from(truth_ns)));
            assert_eq!(found.verdict.state, State::Stable);
        }
    }
}

#[test]
fn a_pace_is_the_rate_and_binds() {
    for link in ["sim+udp", "sim+tcp"] {
        let plan = Plan { window: 16, pace: Some(80e6), ..lasting(plan(Test::Rate, Mode::Receive, 1000), 200) };
        let found = measure(&format!("{link}://?{GIGABIT}"), &plan);
        assert_near(found.rate.payload_bits_per_s.median, 80e6, 0.01);
        let limit = found.limit.expect("the pace bounds it");
        assert_eq!(limit.binds, Binding::Schedule, "{link}: {}", limit.formula);
    }
}

fn stage(found: &[Stage], name: &str, side: Side) -> Stage {
    let wanted = |stage: &&Stage| stage.name == name && stage.side == side;
    found.iter().find(wanted).unwrap_or_else(|| panic!("no {name}, {side:?} in {found:?}")).clone()
}

/// Expects two delays on the wire. The processors' time stands where it is spent: to send with the one who sends, to
/// receive before what is received.
#[test]
fn the_wire_stage_is_two_delays_exactly() {
    for (delay_ns, cost_ns) in [(5_000, 1), (5_000, 250), (700_000, 40)] {
        for mode in MODES {
            let link = format!("sim+udp://?delay={delay_ns}ns&cost={cost_ns}ns");
            let found = measure(&link, &Plan { stages: true, ..plan(Test::Latency, mode, 64) });
            let (delay, cost) = (f64::from(delay_ns), f64::from(cost_ns));
            let mean = |name, side| stage(&found.stages, name, side).mean_ns;
            let (ours, theirs) = (mean("send", Side::Local), mean("send", Side::Remote));
            assert_eq!((ours, theirs), (cost, cost));
            let received_twice = 2.0 * cost;
            assert_eq!(mean("wire and far end", Side::Local) - theirs - received_twice, 2.0 * delay, "{link} {mode}");
            for (name, side) in [("queue", Side::Local), ("queue", Side::Remote), ("completion", Side::Local)] {
                assert_eq!(mean(name, side), 0.0, "{name}, {side:?}");
            }
            assert!(found.stages.iter().all(|stage| stage.count == 1000), "{:?}", found.stages);
        }
    }
}

/// Checks where waiting counts. An operation that waits for the line was sent, and is in a queue of the network; one
/// that waits for room in the window is not started yet.
#[test]
fn a_full_line_is_seen_in_the_wire_stage() {
    let full = lasting(Plan { window: 64, stages: true, ..plan(Test::Rate, Mode::Send, 1472) }, 100);
    let found = measure(&format!("sim+udp://?{GIGABIT}"), &full);
    assert!(stage(&found.stages, "wire and far end", Side::Local).share > 0.99, "{:?}", found.stages);
    let open = Plan { test: Test::Open, rate: Some(2e5), ..full };
    let found = measure(&format!("sim+udp://?{GIGABIT}"), &open);
    assert!(stage(&found.stages, "queue", Side::Local).share > 0.9, "{:?}", found.stages);
}

/// Expects one round-trip to connect and one for the operation, with which the greeting goes along.
#[test]
fn an_operation_on_its_own_connection_takes_two_round_trips() {
    for (mode, size) in [(Mode::Both, 64), (Mode::Send, 64), (Mode::Receive, 64), (Mode::Receive, 1 << 20)] {
        let plan = plan(Test::Latency, mode, size);
        // Without congestion control, whose slow start would take 1 MiB more round-trips.
        let uri = uri("sim+tcp://?delay=50us&cost=1ns&congestion=none");
        let settings = Settings { reconnect: true, ..Settings::of(&plan) };
        let mut opened = open_with(&uri, &settings).expect("a simulated link");
        let found = run(&mut opened.links, &plan, &Unwatched);
        assert_eq!((found.error, found.operations), (None, 1000), "{mode}");
        assert_near(found.elapsed_s, 1000.0 * 200e-6, 0.01);
    }
}

#[test]
fn the_rate_is_the_window_over_the_round_trip() {
    for link in ["sim+udp://?delay=100us&cost=1ns", "sim+tcp://?delay=100us&cost=1ns"] {
        for window in [1, 2, 7, 64, 200] {
            for mode in MODES {
                // Acknowledgements of a stream come a quarter of the window late: with a window of one they do not.
                if mode == Mode::Send && link.contains("tcp") && window > 1 {
                    continue;
                }
                // So many operations that one mode has to be enough.
                if window > 64 && mode != Mode::Both {
                    continue;
                }
                let found = measure(link, &lasting(Plan { window, ..plan(Test::Rate, mode, 64) }, 200));
                assert_near(found.rate.operations_per_s.median, f64::from(window) / 200.004e-6, 0.01);
                assert_eq!(found.limit.map(|limit| limit.binds == hodo_measure::Binding::Window), Some(window > 1));
            }
        }
    }
}

/// Expects four acknowledgements a window: an operation waits for the rest of its quarter, but never for more.
#[test]
fn a_streams_quarter_windows_keep_the_law_from_above() {
    for window in [8, 64] {
        let plan = lasting(Plan { window, ..plan(Test::Rate, Mode::Send, 64) }, 200);
        let found = measure("sim+tcp://?delay=100us&cost=1ns", &plan);
        assert_near(found.rate.operations_per_s.median, f64::from(window) / 200.004e-6, 0.01);
    }
}

#[test]
fn a_gigabit_line_carries_941_of_tcp_and_957_of_udp() {
    for (scheme, size, window, truth) in [("udp", 1472, 64, UDP_BITS_PER_S), ("tcp", 32 << 10, 16, TCP_BITS_PER_S)] {
        for mode in MODES {
            let found = measure(
                &format!("sim+{scheme}://?{GIGABIT}"),
                &lasting(Plan { window, ..plan(Test::Rate, mode, size) }, 100),
            );
            assert_near(found.rate.payload_bits_per_s.median, truth, 0.005);
            let limit = found.limit.expect("a model");
            assert_near(limit.payload_bits_per_s.expect("a rate"), truth, 1e-4);
            assert_eq!((limit.binds, found.loss.lost), (hodo_measure::Binding::Line, 0), "{scheme} {mode}");
            assert_eq!(found.verdict.state, State::Stable);
        }
    }
}

/// Asserts that `lost` out of `count` is within five standard deviations of what the network does.
#[track_caller]
fn assert_share(lost: u64, count: u64, probability: f64) {
    let (count, mean) = (count as f64, count as f64 * probability);
    let bound = 5.0 * (mean * (1.0 - probability)).sqrt();
    assert!((lost as f64 - mean).abs() <= bound, "{lost} of {count} lost, {mean} +- {bound} is the truth");
}

#[test]
fn the_share_that_is_lost_is_the_networks() {
    const COUNT: u64 = 20_000;
    let both_ways = 1.0 - 0.99_f64 * 0.99;
    for (mode, options, truth) in [
        (Mode::Both, "loss=0.01", both_ways),
        (Mode::Send, "out.loss=0.01", 0.01),
        (Mode::Send, "loss=0.01", 0.01),
        (Mode::Receive, "loss=0.01", both_ways),
        (Mode::Receive, "back.loss=0.01", 0.01),
    ] {
        let alone = Plan { until: Until::Count(COUNT), ..plan(Test::Rate, mode, 64) };
        let found = measure(&format!("sim+udp://?{options}&seed=3"), &alone);
        assert_share(found.loss.lost, COUNT, truth);
        // An acknowledgement that is lost after the last operation leaves that one open; all others are told.
        let ended = found.operations + found.loss.lost;
        assert!(ended == COUNT || mode == Mode::Send && (COUNT - 1..=COUNT).contains(&ended), "{mode} {ended}");
        let many = Plan { window: 64, ..alone };
        let found = measure(&format!("sim+udp://?{options}&seed=3"), &many);
        assert!(found.operations <= COUNT, "{mode}: more than was sent");
        assert!(found.operations + found.loss.lost <= COUNT + 64, "{mode} {found:?}");
        if options != "loss=0.01" || mode != Mode::Receive {
            assert_share(found.loss.lost, COUNT, truth);
        }
    }
}

/// Relies on the link, which gives up a packet that was overtaken and not reported after some milliseconds, and frees
/// its place.
#[test]
fn a_wide_window_keeps_its_rate_through_loss_and_reordering() {
    for mode in MODES {
        let wide = Plan { window: 512, warmup: Duration::from_millis(10), ..plan(Test::Rate, mode, 1024) };
        let found = measure("sim+udp://?delay=5us&jitter=4us&loss=0.01&seed=3", &lasting(wide, 20));
        assert_eq!(found.verdict.state, State::Stable, "{mode}: {}", found.verdict.text);
        assert!(found.rate.operations_per_s.median > 1e6, "{mode}: {:?}", found.rate.operations_per_s);
    }
}

/// Checks that only losses within the counted time are reported, whatever the window.
#[test]
fn losses_of_the_warm_up_are_not_counted() {
    for window in [1, 16, 200] {
        for (mode, options, truth) in [
            (Mode::Send, "out.loss=0.02", 0.02),
            (Mode::Both, "out.loss=0.02", 0.02),
            (Mode::Receive, "back.loss=0.02", 0.02),
        ] {
            let counted = Plan {
                window,
                until: Until::Count(10_000),
                warmup: Duration::from_millis(60),
                ..plan(Test::Rate, mode, 64)
            };
            let found = measure(&format!("sim+udp://?delay=50us&{options}&seed=5"), &counted);
            assert_share(found.loss.lost, 10_000, truth);
        }
    }
}

/// Checks every protocol that runs over simulated streams: what they lose is sent again, and counted.
#[test]
fn retransmissions_of_simulated_streams_are_counted() {
    for (scheme, mode, size) in [
        ("tcp", Mode::Send, 64 << 10),
        ("ipbustcp-2.0", Mode::Send, 1388),
        ("pva", Mode::Send, 64 << 10),
        ("farm", Mode::Send, 64 << 10),
    ] {
        let counted = Plan { window: 8, until: Until::Count(500), ..plan(Test::Rate, mode, size) };
        let found = measure(&format!("sim+{scheme}://?delay=10ms&loss=0.005&seed=2"), &counted);
        assert!(found.loss.retransmitted > 0 && found.loss.lost == 0, "{scheme}: {:?}", found.loss);
        let calm = measure(&format!("sim+{scheme}://?delay=10ms&seed=2"), &counted);
        assert_eq!(calm.loss.retransmitted, 0, "{scheme}");
    }
}

#[test]
fn repeats_end_once_the_interval_is_narrow() {
    let repeats = Repeats::Confidence { percent: 95.0, width: 0.01, max: 50 };
    let steady = Plan { repeats, window: 8, ..lasting(plan(Test::Rate, Mode::Both, 64), 20) };
    let found = measure("sim+udp://?delay=50us&cost=1ns", &steady);
    assert!((2..20).contains(&found.repeats), "{} repeats of a rate that never varies", found.repeats);
    let rate = found.rate.operations_per_s;
    let (low, high) = rate.low.zip(rate.high).expect("enough repeats for an interval");
    assert!(low <= rate.median && rate.median <= high && (high - low) / rate.median <= 0.01, "{rate:?}");
}

#[test]
fn a_far_end_out_of_reach_is_told_within_the_timeout() {
    for scheme in ["udp", "tcp", "unix"] {
        let link = uri(&format!("sim+{scheme}://?partition=0ns..1000s"));
        let error =
            open_with(&link, &Settings::of(&plan(Test::Rate, Mode::Both, 64))).err().expect("nothing gets through");
        let why = error.to_string();
        assert!(why.contains("no answer in time") || why.contains("no reply to the greeting"), "{scheme}: {why}");
    }
}

#[test]
fn open_loop_at_half_the_capacity_keeps_to_the_schedule() {
    let capacity = UDP_BITS_PER_S / 8.0 / 1472.0;
    let asked = capacity / 2.0;
    let open = Plan { window: 64, rate: Some(asked), ..plan(Test::Open, Mode::Send, 1472) };
    let link = format!("sim+udp://?{GIGABIT}");
    let found = measure(&link, &lasting(open, 200));
    assert_near(found.rate.operations_per_s.median, asked, 0.001);
    let alone = measure(&link, &plan(Test::Latency, Mode::Send, 1472)).latency_ns.expect("a thousand operations");
    let latency = found.latency_ns.expect("thousands of operations");
    assert_near(latency.p50 as f64, alone.p50 as f64, 0.002);
    assert_near(latency.p99_9 as f64, alone.p50 as f64, 0.02);
    assert_eq!(found.loss.lost, 0);
}

/// Expects a queue that grows for as long as the run lasts, and the latency with it, which coordinated omission would
/// hide.
#[test]
fn open_loop_at_twice_the_capacity_tells_of_the_queue() {
    let capacity = UDP_BITS_PER_S / 8.0 / 1472.0;
    let open = Plan { window: 64, rate: Some(2.0 * capacity), ..plan(Test::Open, Mode::Send, 1472) };
    let found = measure(&format!("sim+udp://?{GIGABIT}"), &lasting(open, 200));
    assert_near(found.rate.operations_per_s.median, capacity, 0.005);
    let latency = found.latency_ns.expect("thousands of operations");
    // An operation that is done at the time t was due at t/2.
    assert_near(latency.p50 as f64, 50e6, 0.02);
    assert_near(latency.max as f64, 100e6, 0.02);
    assert_eq!(found.loss.lost, 0);
}

/// Expects a triangle, the sum of two uniform delays: quantile q is `width x sqrt(q / 2)` below the middle, and
/// mirrored above it.
#[test]
fn jitter_is_seen_as_it_is_distributed() {
    let mut plan = plan(Test::Latency, Mode::Both, 64);
    plan.until = Until::Count(50_000);
    let found = measure("sim+udp://?delay=5us&jitter=4us&cost=100ns&seed=7", &plan).latency_ns.expect("operations");
    let (base, width) = (10_400.0, 8_000.0);
    let quantile = |q: f64| base + width * if q < 0.5 { (q / 2.0).sqrt() } else { 1.0 - ((1.0 - q) / 2.0).sqrt() };
    assert_near(found.mean, base + width / 2.0, 0.005);
    let histogram = Histogram::decode(&found.histogram).expect("what was encoded");
    for q in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99] {
        assert_near(histogram.quantile(q) as f64, quantile(q), 0.01);
    }
    assert!(found.min as f64 >= base * 0.999 && found.max as f64 <= (base + width) * 1.001);
}

#[test]
fn a_partition_that_ends_is_seen_as_loss_and_as_a_gap() {
    let plan = lasting(Plan { window: 4, ..plan(Test::Rate, Mode::Both, 64) }, 1000);
    let found = measure("sim+udp://?delay=10us&partition=300ms..310ms", &plan);
    assert_eq!(found.loss.lost, 4);
    let longest = longest_gap(&found);
    // An operation over UDP is given up after a twentieth of the time that counts as a stall.
    assert!((0.24..0.27).contains(&longest), "{longest} s without an operation");
    let found = measure("sim+tcp://?delay=10us&partition=300ms..310ms", &plan);
    assert_eq!(found.loss.lost, 0);
    let longest = longest_gap(&found);
    // All that was in flight is lost, so that only the retransmission timeout finds it: 200 ms at the least.
    assert!((0.19..0.23).contains(&longest), "{longest} s without an operation");
}

/// Returns the longest time at less than half the usual rate, in whole intervals.
fn longest_gap(found: &Measurement) -> f64 {
    let mut usual: Vec<u64> = found.intervals.iter().map(|interval| interval.operations).collect();
    usual.sort_unstable();
    let half = usual[usual.len() * 3 / 4] / 2;
    let slow = found.intervals.split(|interval| interval.operations >= half).map(<[_]>::len).max();
    slow.unwrap_or(0) as f64 * found.intervals[0].t_s
}

#[test]
fn a_partition_without_end_is_a_stall_that_keeps_what_was_measured() {
    for scheme in ["udp", "tcp", "unix"] {
        let plan = lasting(Plan { window: 4, ..plan(Test::Rate, Mode::Both, 64) }, 1000);
        let link = format!("sim+{scheme}://?delay=10us&partition=300ms..1000s");
        let found = run_over(&link, &plan);
        if scheme == "udp" {
            // Each operation is given up in its time, and the run comes to its end; but the far end's counters are missing.
            let who = "the far end".to_owned();
            assert_eq!(found.error, Some(LinkError::Unreported { who, millis: 5000 }));
            assert!(found.loss.lost >= 4, "{}", found.loss.lost);
        } else {
            assert_eq!(found.error, Some(LinkError::Stalled { millis: 5000 }), "{scheme}");
            assert_eq!(found.loss.lost, 4);
        }
        assert_eq!(found.verdict.state, State::Interrupted);
        assert!(found.operations > 10_000, "{scheme}: {}", found.operations);
    }
}

/// Runs a second plan over a link on which the first one has left its operations behind: it is told of the same silence.
#[test]
fn a_plan_that_stalled_leaves_the_link_to_the_next_one() {
    for scheme in ["udp", "tcp", "unix", "ipbusudp-2.0", "ipbustcp-2.0", "ipbusudp-1.3", "pva", "farm"] {
        let link = uri(&format!("sim+{scheme}://?delay=10us&partition=5ms..1000s"));
        for &mode in link.protocol.description().modes {
            let plan = lasting(Plan { window: 16, ..plan(Test::Rate, mode, 64) }, 1000);
            let mut opened = opened(&link, &plan);
            let first = run(&mut opened.links, &plan, &Unwatched);
            let second = run(&mut opened.links, &plan, &Unwatched);
            let is_of_the_link = matches!(second.error, Some(LinkError::Unsupported(_)));
            assert!(first.operations > 0 && first.error.is_some(), "{link} {mode}: {first:?}");
            assert!(second.operations == 0 && !is_of_the_link, "{link} {mode}: {second:?}");
        }
    }
}

#[test]
fn two_runs_are_the_same_to_the_byte() {
    let network = "delay=5us&jitter=4us&loss=0.01&duplicate=0.01&reorder=0.01&seed=3";
    for (test, channels, schemes) in
        [(Test::Random, 1, ["udp", "tcp"]), (Test::Channels, 5, ["tcp", "unix"]), (Test::Open, 2, ["unix", "udp"])]
    {
        for scheme in schemes {
            let drawn = Plan {
                size: Size::Uniform { min: 0, max: 1400 },
                window: 16,
                channels,
                rate: (test == Test::Open).then_some(50_000.0),
                warmup: Duration::from_millis(5),
                stages: test != Test::Open,
                ..lasting(plan(test, Mode::Both, 0), 50)
            };
            let link = format!("sim+{scheme}://?{network}");
            let story =
                |plan: &Plan| serde_json::to_string(&measure(&link, plan)).expect("a measurement is a document");
            let first = story(&drawn);
            assert_eq!(first, story(&drawn), "{scheme} {test}");
            assert_ne!(first, story(&Plan { seed: 2, ..drawn }), "{scheme} {test}: another seed draws other sizes");
        }
    }
}

/// Returns the plan as the command makes it for this test.
fn typical(test: Test, mode: Mode) -> Plan {
    let drawn = Size::Uniform { min: 64, max: 1400 };
    Plan {
        size: if test == Test::Random { drawn } else { Size::Fixed(1024) },
        window: if test == Test::Latency { 1 } else { 32 },
        channels: if test == Test::Channels { 10 } else { 1 },
        rate: (test == Test::Open).then_some(20_000.0),
        ..lasting(plan(test, mode, 0), 10)
    }
}

/// Takes each test and mode over each network, and each scheme in its turn.
#[test]
fn nothing_passes_the_models_limit() {
    let networks = ["", GIGABIT, "delay=50us&jitter=10us&cost=2us", "delay=1ms&buffer=64K&rate=10G"];
    let tests = networks.into_iter().flat_map(|network| TESTS.map(|test| (network, test)));
    for (place, (network, test)) in tests.enumerate() {
        for (step, mode) in MODES.into_iter().enumerate() {
            let scheme = ["udp", "tcp", "unix"][(place + step) % 3];
            let found = measure(&format!("sim+{scheme}://?{network}"), &typical(test, mode));
            let limit = found.limit.as_ref().expect("a simulated link has a model");
            let share = match test {
                Test::Latency => {
                    limit.latency_ns.map(|bound| bound / found.latency_ns.as_ref().map_or(0.0, |l| l.p50 as f64))
                }
                Test::Open => limit.operations_per_s.map(|bound| found.rate.operations_per_s.median / bound),
                _ => limit.payload_bits_per_s.map(|bound| found.rate.payload_bits_per_s.median / bound),
            };
            let share = share.expect("a figure that the test is about");
            // The ends of the counted time are completions, so that it may hold part of an operation more; the
            // sizes drawn have their own mean.
            let bound = if test == Test::Random { 1.02 } else { 1.005 };
            assert!((0.01..=bound).contains(&share), "{share} of {limit:?}: {scheme} {network} {test} {mode}");
        }
    }
}
