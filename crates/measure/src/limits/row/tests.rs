use super::*;
use crate::limits::{Carrier, Ip, Line, ModelledWay, Transport};
use crate::{Cpu, Latency, Mode, Plan, ProcessCpu, Repeats, Run, Size, State, TcpTimes, Until, Unwatched, Verdict};
use std::time::Duration;

fn plan(test: Test, window: u32) -> Plan {
    Plan {
        test,
        mode: Mode::Both,
        size: Size::Fixed(1000),
        window,
        channels: 1,
        batch: 1,
        rate: None,
        until: Until::Count(1),
        warmup: Duration::ZERO,
        repeats: Repeats::Fixed(1),
        wait: hodo_machine::Wait::Block,
        seed: 1,
        stages: false,
        stall: Duration::from_secs(1),
    }
}

/// Returns a row of operations of 1,000 bytes at this rate over a second.
fn row(test: Test, window: u32, operations_per_s: f64) -> Measurement {
    // No link is there to run the plan over; all that counts is filled in.
    let run: Run = crate::run(&mut [], &plan(test, window), &Unwatched);
    let mut found = run.into_measurement("p", "p://", &plan(test, window));
    found.rate.operations_per_s.median = operations_per_s;
    found.rate.payload_bits_per_s.median = operations_per_s * 8000.0;
    found.elapsed_s = 1.0;
    found.verdict = Verdict { state: State::Stable, text: "stable".into() };
    found.latency_ns = Some(Latency { p50: (1e9 * f64::from(window) / operations_per_s) as u64, ..Latency::default() });
    found
}

fn echo() -> OnTheWire {
    OnTheWire::single(Carrier::Tcp, 1000, 1000, 1000)
}

fn gigabit() -> Option<Path> {
    Path::new(Line::new(1e9, 1500), Ip::V4, Transport::Tcp { timestamps: true }).ok()
}

fn bare(operations_per_s: f64) -> PlainLoop {
    PlainLoop {
        operations_per_s,
        payload_bits_per_s: 8000.0 * operations_per_s,
        latency_ns: None,
        cost_ns: Some(1000.0),
        looks: 5,
        spread: 0.1,
        shape: "16 in flight".into(),
    }
}

fn alone(ns: f64) -> Option<RoundTrip> {
    Some(RoundTrip { ns, source: "seen".into() })
}

fn binds(found: &Measurement, conditions: &Conditions<'_>) -> (Binding, String) {
    let limit = limit(found, &echo(), conditions, Some(&bare(1e6))).expect("it has a limit");
    (limit.binds, limit.saw.expect("it says what it saw"))
}

#[test]
fn a_window_binds_where_nine_tenths_of_it_are_reached() {
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    assert_eq!(binds(&row(Test::Rate, 10, 95_000.0), &conditions).0, Binding::Window);
    let (binding, saw) = binds(&row(Test::Rate, 10, 80_000.0), &conditions);
    assert_eq!((binding, saw.as_str()), (Binding::Unknown, "80 % of the bound of `window`"));
}

#[test]
fn a_processor_binds_only_where_one_is_full() {
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    let busy = |percent, wait: &str| {
        let mut found = row(Test::Rate, 10, 50_000.0);
        found.cpu = Cpu { busiest_percent: Some(percent), ..Cpu::default() };
        found.wait = wait.into();
        binds(&found, &conditions)
    };
    assert_eq!(busy(34.0, "block").0, Binding::Unknown);
    assert_eq!(busy(96.0, "block").0, Binding::Cpu);
    let (binding, saw) = busy(100.0, "spin");
    assert_eq!(binding, Binding::Unknown);
    assert!(saw.ends_with("the busiest processor 100 % busy, which says nothing where a side polls"), "{saw}");
}

#[test]
fn a_processor_that_others_fill_does_not_bind() {
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    let shared = |local, remote| {
        let mut found = row(Test::Rate, 10, 50_000.0);
        let process = |percent| Some(ProcessCpu { percent, ..ProcessCpu::default() });
        found.cpu =
            Cpu { busiest_percent: Some(98.0), local: process(local), remote: process(remote), ..Cpu::default() };
        binds(&found, &conditions)
    };
    assert_eq!(shared(40.0, 30.0).0, Binding::Cpu);
    let (binding, saw) = shared(20.0, 10.0);
    assert_eq!(binding, Binding::Unknown);
    assert!(saw.ends_with("the busiest processor 98 % busy, mostly for others"), "{saw}");
}

#[test]
fn a_far_end_that_does_not_read_is_seen_in_its_window() {
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    let mut found = row(Test::Rate, 10, 50_000.0);
    found.tcp = Some(TcpTimes { connections: 1, receive_window_limited_s: 0.8, ..TcpTimes::default() });
    let (binding, saw) = binds(&found, &conditions);
    assert_eq!(binding, Binding::FarEnd);
    assert!(saw.contains("held by the far end's window 80 %"), "{saw}");
}

#[test]
fn over_a_lines_limit_is_a_red_flag() {
    let conditions = Conditions { line: gigabit(), ..Conditions::default() };
    for (operations_per_s, flagged) in [(110_000.0, false), (130_000.0, true)] {
        let found = row(Test::Rate, 10, operations_per_s);
        let limit = limit(&found, &echo(), &conditions, None).expect("a line");
        let share = share(&found, &limit).expect("a share");
        assert_eq!(red_flag(&limit, share).is_some(), flagged, "{share}");
        assert_eq!(limit.binds, Binding::Line);
    }
}

#[test]
fn a_bound_that_was_passed_is_a_red_flag_and_a_plain_loop_that_was_passed_is_none() {
    let conditions = Conditions { round_trip: alone(500e3), ..Conditions::default() };
    // 10 in flight over 500 us are 20,000 a second.
    for (operations_per_s, flagged) in [(20_500.0, false), (22_000.0, true)] {
        let found = row(Test::Rate, 10, operations_per_s);
        let limit = limit(&found, &echo(), &conditions, None).expect("a window");
        let flag = red_flag(&limit, share(&found, &limit).expect("a share"));
        assert_eq!(flag.is_some_and(|text| text.contains("bound of `window`")), flagged, "{operations_per_s}");
    }
    let found = row(Test::Rate, 10, 40_000.0);
    let plain = limit(&found, &echo(), &Conditions::default(), Some(&bare(10_000.0))).expect("a plain loop");
    assert_eq!((plain.kind, red_flag(&plain, 4.0)), (LimitKind::PlainLoop, None));
}

#[test]
fn a_plain_loop_is_a_comparison_beside_a_bound_and_the_limit_only_where_there_is_none() {
    let mut found = row(Test::Rate, 10, 19_000.0);
    let plain_loop = bare(10_000.0);
    let conditions = Conditions { round_trip: alone(500e3), ..Conditions::default() };
    let bound = limit(&found, &echo(), &conditions, Some(&plain_loop));
    found.set_limit(bound, Some(plain_loop.clone()));
    assert_eq!((found.share_of_limit, found.times_plain_loop), (Some(0.95), Some(1.9)));
    let limit = found.limit.as_ref().expect("a window");
    assert_eq!((limit.kind, limit.binds, limit.operations_per_s), (LimitKind::Line, Binding::Window, Some(20_000.0)));

    let alone = limit_of(&found, &plain_loop);
    assert_eq!((alone.kind, alone.binds, alone.spread), (LimitKind::PlainLoop, Binding::Unknown, Some(0.1)));
    assert_eq!(alone.formula, "bare sockets, 16 in flight: 10000/s, 5 looks 10 % apart");
    found.set_limit(Some(alone), Some(plain_loop));
    assert_eq!((found.share_of_limit, found.times_plain_loop), (None, Some(1.9)));
    found.set_limit(None, None);
    assert_eq!((found.share_of_limit, found.times_plain_loop), (None, None));
}

fn limit_of(found: &Measurement, plain_loop: &PlainLoop) -> Limit {
    limit(found, &echo(), &Conditions::default(), Some(plain_loop)).expect("a plain loop")
}

#[test]
fn the_best_of_several_looks_counts_and_their_spread_is_reported() {
    let both = PlainLoop::of_looks(&[bare(900.0), bare(1000.0), bare(950.0)]).expect("three looks");
    assert_eq!((both.operations_per_s, (both.spread * 100.0).round(), both.looks), (1000.0, 10.0, 3));
    let timed = |ns| PlainLoop { latency_ns: Some(ns), ..bare(1.0) };
    let both = PlainLoop::of_looks(&[timed(100.0), timed(125.0)]).expect("two looks");
    assert_eq!((both.latency_ns, (both.spread * 100.0).round()), (Some(100.0), 20.0));
    assert_eq!(PlainLoop::of_looks(&[]), None);
}

#[test]
fn a_round_trip_that_the_row_has_passed_was_taken_at_a_bad_moment() {
    let mut found = row(Test::Rate, 10, 100_000.0);
    assert_eq!(RoundTrip::of_row(&found, &echo(), &[105e3, 99e3]).map(|trip| trip.ns), Some(99e3));
    assert_eq!(RoundTrip::of_row(&found, &echo(), &[340e3]), None);
    found.latency_ns = Some(Latency { min: 40_000, ..Latency::default() });
    assert_eq!(RoundTrip::of_row(&found, &echo(), &[340e3]).map(|trip| trip.ns), Some(40e3));
    found.tcp = Some(TcpTimes { min_rtt_ns: Some(60_000), ..TcpTimes::default() });
    assert_eq!(RoundTrip::of_row(&found, &echo(), &[340e3]).map(|trip| trip.ns), Some(60e3));
}

/// Takes 1 MiB of an IPbus block: 750 packets, of which 16 are in flight.
#[test]
fn packets_in_flight_bound_a_block() {
    let block = OnTheWire {
        messages: vec![Messages { count: 750, out_bytes: 20, back_bytes: 1400 }],
        in_flight_max: Some(16),
        ..OnTheWire::single(Carrier::Udp, 1 << 20, 0, 0)
    };
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    let mut found = row(Test::Rate, 2, 200.0);
    found.rate.payload_bits_per_s.median = 200.0 * 8.0 * f64::from(1 << 20);
    let limit = limit(&found, &block, &conditions, None).expect("a window");
    assert_eq!((limit.binds, limit.operations_per_s.map(f64::round)), (Binding::Window, Some(213.0)));
}

#[test]
fn a_schedule_and_a_far_ends_own_time_are_bounds() {
    let mut found = row(Test::Open, 100, 990.0);
    found.rate_asked = Some(1000.0);
    assert_eq!(binds(&found, &Conditions::default()).0, Binding::Schedule);
    let service = Service { ns_per_operation: 4e6, servers: 4, name: "4 nodes / 4 ms a decision".into() };
    let deciding = OnTheWire { service: Some(service), ..echo() };
    let limit = limit(&row(Test::Rate, 2, 950.0), &deciding, &Conditions::default(), None).expect("a bound");
    assert_eq!((limit.binds, limit.operations_per_s), (Binding::FarEnd, Some(1000.0)));
}

#[test]
fn a_model_bounds_what_it_carries() {
    let way = ModelledWay { transit_ns: 50e3, cost_ns: 100.0, processors: 1, ..ModelledWay::default() };
    let model = Model { out: way, back: way, far_ends: 1 };
    let conditions = Conditions { model: Some(&model), ..Conditions::default() };
    let limit_of = |found: &Measurement| limit(found, &echo(), &conditions, None).expect("a model");
    let lone = limit_of(&row(Test::Latency, 1, 9_950.0));
    assert_eq!((lone.latency_ns, lone.binds), (Some(100_400.0), Binding::RoundTrip));
    assert_eq!(limit_of(&row(Test::Rate, 10, 99_000.0)).binds, Binding::Window);
    assert_eq!(limit_of(&row(Test::Rate, 10, 50_000.0)).binds, Binding::Unknown);
}

#[test]
fn a_lone_operation_is_compared_with_its_bits_or_with_bare_sockets() {
    let found = row(Test::Latency, 1, 50_000.0);
    let line = limit(&found, &echo(), &Conditions { line: gigabit(), ..Conditions::default() }, None).expect("a line");
    assert_eq!((line.kind, line.binds), (LimitKind::Line, Binding::Unknown), "{:?}", line.saw);
    let limit = limit_of(&found, &PlainLoop { latency_ns: Some(19_000.0), ..bare(52_000.0) });
    assert_eq!((limit.kind, limit.latency_ns), (LimitKind::PlainLoop, Some(19_000.0)));
    assert_eq!(share(&found, &limit), Some(0.95));
}

#[test]
fn each_test_has_its_figure() {
    let limit = Limit { latency_ns: Some(1500.0), ..bare(1000.0).as_limit(Binding::Unknown) };
    let found = |test| {
        let mut found = row(test, 1, 500.0);
        (found.rate.payload_bits_per_s.median, found.latency_ns) =
            (7.2e6, Some(Latency { p50: 2000, ..Latency::default() }));
        found
    };
    for (test, expected) in [(Test::Rate, 0.9), (Test::Channels, 0.9), (Test::Open, 0.5), (Test::Latency, 0.75)] {
        assert_eq!(share(&found(test), &limit), Some(expected), "{test}");
    }
    let unknown = Limit { payload_bits_per_s: None, operations_per_s: None, latency_ns: None, ..limit.clone() };
    assert_eq!(share(&found(Test::Rate), &unknown), None);
    let zero = Limit { payload_bits_per_s: Some(0.0), operations_per_s: None, ..limit };
    assert_eq!(share(&found(Test::Rate), &zero), None);
}
