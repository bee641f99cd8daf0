use super::*;
use crate::limits::{Carrier, Ip, Line, ModelledWay, Transport};
use crate::{
    Beside, Cpu, Latency, Loss, Mode, Observed, Plan, ProcessCpu, Repeats, Run, Size, Stall, State, TcpTimes, Until,
    Unwatched, Verdict, Whose,
};
use std::time::Duration;

fn plan(test: Test, window: u32) -> Plan {
    Plan {
        test,
        mode: Mode::Both,
        size: Size::Fixed(1000),
        window,
        unbounded: false,
        channels: 1,
        batch: 1,
        rounds: false,
        rate: None,
        pace: None,
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
fn a_window_binds_where_nine_tenths_of_it_are_reached_or_most_of_it_and_nothing_else_was_observed() {
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    assert_eq!(binds(&row(Test::Rate, 10, 95_000.0), &conditions).0, Binding::Window);
    assert_eq!(binds(&row(Test::Rate, 10, 80_000.0), &conditions).0, Binding::Window);
    let (binding, saw) = binds(&row(Test::Rate, 10, 70_000.0), &conditions);
    assert_eq!((binding, saw.as_str()), (Binding::Unknown, "70 % of the limit set by `window`"));
    let mut found = row(Test::Rate, 10, 80_000.0);
    found.tcp = Some(TcpTimes { connections: 1, receive_window_limited_s: 0.8, ..TcpTimes::default() });
    assert_eq!(binds(&found, &conditions).0, Binding::FarEnd);
}

/// Returns a row at half of its window, and what its two sides used in percent of a processor, in seconds of a second.
fn at_half(busiest: f64, local: f64, remote: f64) -> Measurement {
    let mut found = row(Test::Rate, 10, 50_000.0);
    let process = |percent: f64| ProcessCpu { percent, user_s: percent / 100.0, ..ProcessCpu::default() };
    found.cpu = Cpu {
        busiest_percent: Some(busiest),
        local: Some(process(local)),
        remote: Some(process(remote)),
        ..Cpu::default()
    };
    found
}

#[test]
fn a_processor_binds_only_where_one_is_full_of_work() {
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    assert_eq!(binds(&at_half(34.0, 30.0, 4.0), &conditions).0, Binding::Unknown);
    // Both sides on one processor: each has to wait for the other, or it is full by chance.
    let mut shared = at_half(96.0, 60.0, 36.0);
    assert_eq!(binds(&shared, &conditions).0, Binding::Unknown);
    shared.observed = Some(Observed { waited_for_processor_s: Some(0.3), ..Observed::default() });
    assert_eq!(binds(&shared, &conditions).0, Binding::Cpu);
    // The CPU time of two flows is that of the process, so it says nothing of one of them.
    let other = Beside::of(&shared);
    let mut pair = Measurement { beside: Some(other), ..shared };
    assert_eq!(binds(&pair, &conditions).0, Binding::Unknown);
    pair.observed = Some(Observed { others_s: Some(0.5), waited_for_processor_s: Some(0.5), ..Observed::default() });
    assert_eq!(binds(&pair, &conditions).0, Binding::Unknown);
    // A far end on another host: its own processor is full.
    assert_eq!(binds(&at_half(20.0, 20.0, 97.0), &conditions).0, Binding::Cpu);
    let mut found = at_half(100.0, 100.0, 0.0);
    found.wait = "spin".into();
    let (binding, saw) = binds(&found, &conditions);
    assert_eq!(binding, Binding::Unknown);
    assert!(saw.ends_with("the busiest processor 100 % busy, polling of both sides 100 %"), "{saw}");
    let polled = |side: &mut Option<ProcessCpu>, polling_s| side.as_mut().expect("a side").polling_s = Some(polling_s);
    polled(&mut found.cpu.local, 0.05);
    assert_eq!(binds(&found, &conditions).0, Binding::Cpu);
    let mut lone = at_half(100.0, 50.0, 50.0);
    (lone.test, lone.window) = (Test::Latency, Some(1));
    assert_ne!(binds(&lone, &Conditions { line: gigabit(), ..Conditions::default() }).0, Binding::Cpu);
}

#[test]
fn others_bind_where_a_side_waited_for_its_processor_and_they_had_it() {
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    let observed = |observed| {
        let mut found = at_half(98.0, 40.0, 30.0);
        found.observed = Some(observed);
        binds(&found, &conditions)
    };
    let waited = Observed { waited_for_processor_s: Some(0.4), others_s: Some(0.5), ..Observed::default() };
    let (binding, saw) = observed(waited);
    assert_eq!(binding, Binding::Others, "{saw}");
    assert!(saw.contains("waited for its processor for 40.0 % of the time, while others used 50.0 % of one"), "{saw}");
    // Both sides on one processor wait for each other.
    assert_eq!(observed(Observed { others_s: Some(0.02), ..waited }).0, Binding::Cpu);
    assert_eq!(observed(Observed { steal_s: Some(0.3), ..Observed::default() }).0, Binding::Others);
    let throttled = Observed { throttled_s: Some(0.5), ..waited };
    let (binding, saw) = observed(throttled);
    assert_eq!(binding, Binding::Quota, "{saw}");
}

#[test]
fn losses_and_small_buffers_bind() {
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    let of_tcp = |tcp| {
        let mut found = row(Test::Rate, 10, 50_000.0);
        found.tcp = Some(TcpTimes { connections: 1, ..tcp });
        binds(&found, &conditions)
    };
    let of_segments = |retransmitted| of_tcp(TcpTimes { segments: 10_000, retransmitted, ..TcpTimes::default() });
    assert_eq!(of_segments(10).0, Binding::Unknown);
    let (binding, saw) = of_segments(100);
    assert_eq!(binding, Binding::Loss, "{saw}");
    assert!(saw.contains("1.0 % of the segments were sent again, 0 timeouts"), "{saw}");
    // Two operations in a run, and timeouts between them.
    let blocked = TcpTimes { segments: 28, retransmitted: 9, timeouts: 5, ..TcpTimes::default() };
    assert_eq!(of_tcp(blocked).0, Binding::Loss);
    assert_eq!(of_tcp(TcpTimes { retransmitted: 1, ..blocked }).0, Binding::Unknown);
    // Late is not lost: the far end had most of them already.
    let late = TcpTimes { segments: 10_000, retransmitted: 800, spurious: 790, ..TcpTimes::default() };
    assert_eq!(of_tcp(late).0, Binding::Unknown);
    // A full line loses what its queue has no space for.
    let queued = TcpTimes { min_rtt_ns: Some(4_000_000), rtt_ns: Some(18_000_000), ..TcpTimes::default() };
    assert_ne!(of_tcp(TcpTimes { segments: 10_000, retransmitted: 40, ..queued }).0, Binding::Loss);
    // 400 Mbit/s over 1 ms are 50,000 bytes, of a buffer that the kernel made twice of 64 KiB.
    let send_buffer_bytes = 128 << 10;
    let small = TcpTimes { send_buffer_bytes, min_rtt_ns: Some(1_000_000), ..TcpTimes::default() };
    let (binding, saw) = of_tcp(small);
    assert_eq!(binding, Binding::Buffer, "{saw}");
    assert!(saw.contains("this side's send buffer: 50000 B were on their way"), "{saw}");
    assert_eq!(of_tcp(TcpTimes { min_rtt_ns: Some(100_000), ..small }).0, Binding::Unknown);
}

#[test]
fn an_end_that_stood_still_binds() {
    let conditions = Conditions { round_trip: alone(100e3), ..Conditions::default() };
    for (whose, expected) in
        [(Whose::FarEnd, Binding::FarEnd), (Whose::Link, Binding::Loss), (Whose::Host, Binding::Others)]
    {
        let mut found = row(Test::Rate, 10, 50_000.0);
        let stall =
            Stall { at_s: 0.2, lasted_s: 0.5, operations_late: 10, whose: Some(whose), saw: Default::default() };
        found.stalls = vec![stall];
        assert_eq!(binds(&found, &conditions).0, expected);
    }
}

#[test]
fn a_rate_like_that_of_a_line_of_ethernet_says_so() {
    let lines: Vec<Path> = gigabit().into_iter().collect();
    let conditions = Conditions { lines, ..Conditions::default() };
    let full = Bound::line(&conditions.lines[0], &echo().cost(&conditions.lines[0], Packing::Stream)).operations_per_s;
    let found = |share: f64, cpu_percent: f64| {
        let found = Measurement { cpu: at_half(0.0, cpu_percent, 0.0).cpu, ..row(Test::Rate, 10, full * share) };
        limit(&found, &echo(), &conditions, Some(&bare(1e6))).expect("a plain loop")
    };
    // A buffer that fills the line has a queue before it; without one the rate is like a line's by chance.
    let through_buffer = |rtt_ns| {
        let mut found = row(Test::Rate, 10, full * 0.99);
        let (min_rtt_ns, rtt_ns) = (Some(1_000_000), Some(rtt_ns));
        found.tcp =
            Some(TcpTimes { connections: 1, send_buffer_bytes: 128 << 10, min_rtt_ns, rtt_ns, ..TcpTimes::default() });
        let limit = limit(&found, &echo(), &conditions, Some(&bare(1e6))).expect("a plain loop");
        (limit.binds, limit.saw.expect("it says what it saw").contains("looks like"))
    };
    assert_eq!(through_buffer(1_100_000), (Binding::Buffer, false));
    assert_eq!(through_buffer(2_000_000), (Binding::Line, true));
    // Requests that were sent again: the line was empty while they waited. Datagrams that only went missing fell out of its queue.
    let with_loss = |lost, retransmitted| {
        let udp = OnTheWire { carrier: Carrier::Udp, ..echo() };
        let full = Bound::line(&conditions.lines[0], &udp.cost(&conditions.lines[0], Packing::Stream)).operations_per_s;
        let mut found = row(Test::Rate, 10, full * 0.99);
        found.operations = 1000;
        found.loss = Loss { lost, retransmitted, ..Loss::default() };
        limit(&found, &udp, &conditions, Some(&bare(1e6))).expect("a plain loop").binds
    };
    assert_eq!([with_loss(0, 20), with_loss(20, 0)], [Binding::Loss, Binding::Line]);
    let near = found(0.99, 20.0);
    assert_eq!(near.binds, Binding::Line);
    let saw = near.saw.expect("it says what it saw");
    assert!(saw.contains("looks like 1 Gbit/s Ethernet; say --line-rate 1G"), "{saw}");
    assert_eq!(found(0.9, 20.0).binds, Binding::Unknown);
    // A processor is full, too: either may have been first.
    assert_eq!(found(0.99, 98.0).binds, Binding::Unknown);
    assert_eq!(found(0.9, 98.0).binds, Binding::Cpu);
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
        assert_eq!(flag.is_some_and(|text| text.contains("limit set by `window`")), flagged, "{operations_per_s}");
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
fn a_window_of_which_little_was_used_hides_no_other_bound() {
    let service = Service { ns_per_operation: 4e6, servers: 4, name: "4 nodes / 4 ms a decision".into() };
    let deciding = OnTheWire { service: Some(service), ..echo() };
    // 2 in flight over 2.1 ms are 952 a second, and the nodes decide on 1,000.
    let conditions = Conditions { round_trip: alone(2.1e6), ..Conditions::default() };
    let limit_of = |wire: &OnTheWire| limit(&row(Test::Rate, 2, 400.0), wire, &conditions, Some(&bare(50_000.0)));
    let limit = limit_of(&deciding).expect("the nodes' time");
    assert_eq!((limit.kind, limit.operations_per_s), (LimitKind::Line, Some(1000.0)));
    assert_eq!(limit_of(&echo()).expect("a plain loop").kind, LimitKind::PlainLoop);
}

#[test]
fn a_pace_bounds_the_payload_of_a_closed_loop() {
    let mut found = row(Test::Channels, 100, 990.0);
    found.pace_asked = Some(8.0 * 1000.0 * echo().payload_bytes);
    let limit = limit(&found, &echo(), &Conditions::default(), None).expect("a bound");
    assert_eq!((limit.binds, limit.operations_per_s), (Binding::Schedule, Some(1000.0)));
    found.test = Test::Latency;
    assert_eq!(super::limit(&found, &echo(), &Conditions::default(), None), None);
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
    assert_eq!((line.kind, line.binds), (LimitKind::Line, Binding::RoundTrip), "{:?}", line.saw);
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
