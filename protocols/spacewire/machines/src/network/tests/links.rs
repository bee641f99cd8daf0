//! Links between two nodes: rates, start-up, credit and sinks.
use super::*;

/// Runs packets of one size for 20 ms and returns Mbit/s of data, from a full queue on to a full queue still.
fn data_rate(length: usize, both: bool, engine: Engine) -> f64 {
    let nodes = || NodeSettings { packets: usize::MAX, bytes: usize::MAX, ..NodeSettings::default() };
    let (mut network, one, other) = pair_with(&LinkSettings::default(), [nodes(), nodes()], engine, ());
    let bytes = packet(0, length);
    let enough = 500_000 / length + 50;
    for _ in 0..enough {
        network.send(one, &bytes, EndOfPacket::Eop).unwrap();
        if both {
            network.send(other, &bytes, EndOfPacket::Eop).unwrap();
        }
    }
    network.run_until(micros(1_000));
    let before = network.statistics(other).unwrap().received.data;
    network.run_until(micros(21_000));
    assert!(network.queued(one).0 > 0);
    let after = network.statistics(other).unwrap().received.data;
    (after - before) as f64 * 8.0 / 20_000.0
}

#[test]
fn one_way_at_200_mbit_s_is_what_the_bits_allow() {
    for engine in [Engine::Reference, Engine::Fast] {
        for (length, expected) in [(1, 114.286), (4, 145.455), (60, 158.940), (1024, 159.938)] {
            let rate = data_rate(length, false, engine);
            assert!((rate / expected - 1.0).abs() < 0.001, "{length} bytes: {rate:.3}, not {expected}");
        }
    }
}

#[test]
fn both_ways_at_200_mbit_s_lose_four_bits_for_eight_nchars() {
    for engine in [Engine::Reference, Engine::Fast] {
        for (length, expected, tolerance) in [(1, 106.667, 0.01), (60, 151.300, 0.001), (1024, 152.317, 0.001)] {
            let rate = data_rate(length, true, engine);
            assert!((rate / expected - 1.0).abs() < tolerance, "{length} bytes: {rate:.3}, not {expected}");
        }
    }
}

#[test]
fn a_link_starts_in_20_us_after_the_standards_waits() {
    let (mut network, one, other) = pair(&LinkSettings::default());
    network.run_until(Picos::from_nanos(19_200));
    assert_eq!(network.end(one).unwrap().state(), State::Started);
    network.run_until(Picos::from_nanos(21_600));
    for node in [one, other] {
        assert_eq!(network.end(node).unwrap().state(), State::Run);
    }
}

#[test]
fn idle_nulls_are_counted_but_not_run_one_by_one() {
    let (mut network, one, other) = pair(&LinkSettings::default());
    network.run_until(micros(100));
    assert_eq!(network.next_event(), None);
    let before = network.statistics(one).unwrap();
    network.run_until(micros(1_000_100));
    let after = network.statistics(one).unwrap();
    assert_eq!(after.sent.nulls - before.sent.nulls, 25_000_000);
    assert_eq!(network.statistics(other).unwrap().received.nulls - before.sent.nulls, 25_000_000);
}

#[test]
fn a_packet_takes_its_bits_and_the_cable() {
    let (mut network, one, other) = pair(&LinkSettings { cable: Picos::from_nanos(50), ..LinkSettings::default() });
    network.run_until(micros(100));
    network.send(one, &packet(1, 60), EndOfPacket::Eop).unwrap();
    network.run_until(micros(200));
    let received = network.receive(other).unwrap();
    assert_eq!((received.bytes, received.header.end), (packet(1, 60), EndOfPacket::Eop));
    let nanos = (received.header.ended - micros(100)).as_nanos();
    // 604 bits of 5 ns, the cable, and the NULL in progress at the most.
    assert!((3_070..=3_110).contains(&nanos), "{nanos}");
    assert_eq!(received.header.ended - received.header.began, Picos::from_nanos(594 * 5));
}

#[test]
fn rates_may_differ_between_the_directions() {
    let (mut network, one, other) = pair(&LinkSettings { rates: [200_000_000, 10_000_000], ..LinkSettings::default() });
    for number in 0..10 {
        network.send(one, &packet(number, 1000), EndOfPacket::Eop).unwrap();
    }
    network.run_until(micros(1_000));
    // FCTs of 4 bits at 10 Mbit/s every 8 N-chars are just as fast as N-chars at 200 Mbit/s.
    assert!(receive_all(&mut network, other).len() >= 8);
}

#[test]
fn credit_bounds_a_long_cable() {
    let cable = Picos::from_nanos(4_000);
    let (mut network, one, other) = pair(&LinkSettings { cable, ..LinkSettings::default() });
    for number in 0..100 {
        network.send(one, &packet(number, 1000), EndOfPacket::Eop).unwrap();
    }
    network.run_until(micros(1_000));
    let before = network.statistics(other).unwrap().received.nchars();
    network.run_until(micros(2_000));
    let nchars = network.statistics(other).unwrap().received.nchars() - before;
    // 48 to 56 N-chars for each round trip of 8 us and a little.
    assert!((5_800..=7_000).contains(&nchars), "{nchars}");
}

#[test]
fn a_host_that_does_not_take_stops_the_sender_at_its_buffer() {
    let asked = NodeSettings { sink: Sink::Asked, ..NodeSettings::default() };
    let nodes = [NodeSettings::default(), asked];
    let (mut network, one, other) = pair_with(&LinkSettings::default(), nodes, Engine::Fast, ());
    network.send(one, &packet(3, 200), EndOfPacket::Eop).unwrap();
    network.run_until(micros(100));
    assert_eq!(network.end(other).unwrap().filled(), CREDIT_MAX);
    assert_eq!(network.statistics(one).unwrap().sent.data, 56);
    let mut taken = 0;
    for step in 0..10 {
        taken += network.take(other, 30);
        network.run_until(micros(110 + 10 * step));
    }
    assert_eq!(taken, 201);
    assert_eq!(network.receive(other).unwrap().bytes, packet(3, 200));
}

#[test]
fn a_host_at_a_rate_sets_the_pace() {
    let slow = NodeSettings { sink: Sink::Rate(1_000_000), ..NodeSettings::default() };
    let nodes = [NodeSettings::default(), slow];
    let (mut network, one, other) = pair_with(&LinkSettings::default(), nodes, Engine::Fast, ());
    for number in 0..20 {
        network.send(one, &packet(number, 99), EndOfPacket::Eop).unwrap();
    }
    network.run_until(micros(1_025));
    let count = receive_all(&mut network, other).len();
    assert!((9..=10).contains(&count), "{count}");
}

#[test]
fn queues_have_bounds_that_name_themselves() {
    let small = || NodeSettings { packets: 2, bytes: 100, ..NodeSettings::default() };
    let (mut network, one, other) = pair_with(&LinkSettings::default(), [small(), small()], Engine::Fast, ());
    network.send(one, &packet(0, 60), EndOfPacket::Eop).unwrap();
    let refused = network.send(one, &packet(0, 60), EndOfPacket::Eop).unwrap_err();
    assert!(matches!(refused, SendError::TooManyBytes { length: 60, queued: 60, limit: 100, .. }), "{refused}");
    network.send(one, &packet(1, 10), EndOfPacket::Eop).unwrap();
    let refused = network.send(one, &packet(0, 1), EndOfPacket::Eop).unwrap_err();
    assert!(refused.to_string().starts_with("the transmit queue of node `one` has 2 packets"), "{refused}");
    network.run_until(micros(100));
    network.send(one, &packet(2, 80), EndOfPacket::Eop).unwrap();
    network.run_until(micros(200));
    // Two packets wait for the host, and the third for them.
    assert_eq!(network.end(other).unwrap().filled(), CREDIT_MAX);
    for number in 0..3 {
        assert_eq!(network.receive(other).unwrap().bytes, packet(number, [60, 10, 80][number]));
        network.run_until(micros(300 + 100 * number as u64));
    }
    assert_eq!(network.end(other).unwrap().filled(), 0);
}

#[test]
fn time_codes_go_between_the_bytes_of_a_packet() {
    let (mut network, one, other) = pair(&LinkSettings::default());
    network.run_until(micros(100));
    network.send(one, &packet(0, 1000), EndOfPacket::Eop).unwrap();
    network.run_until(micros(110));
    network.time_code(one, 1).unwrap();
    network.run_until(micros(300));
    let (at, code) = network.receive_time_code(other).unwrap();
    assert_eq!(code, 1);
    // Behind the byte in progress: at most 10 bits, then 14.
    assert!(at > micros(110) && at <= micros(110) + Picos::from_nanos(120), "{at:?}");
    assert_eq!(network.receive(other).unwrap().bytes, packet(0, 1000));
}

#[test]
fn credit_is_56_at_the_most() {
    let (mut network, one, other) = pair(&LinkSettings::default());
    for number in 0..100 {
        network.send(one, &packet(number, 77), EndOfPacket::Eop).unwrap();
        network.send(other, &packet(number, 5), EndOfPacket::Eop).unwrap();
    }
    for step in 0..4_000 {
        network.run_until(Picos::from_nanos(15_000 + 37 * step));
        for node in [one, other] {
            let end = network.end(node).unwrap();
            assert!(end.credit() <= CREDIT_MAX && end.promised() + end.filled() <= CREDIT_MAX);
        }
    }
}
