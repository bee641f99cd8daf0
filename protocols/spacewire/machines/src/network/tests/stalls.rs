//! Hosts that stop in the middle of a packet, and what others have of it.
use super::*;

/// Connects three nodes to a router: the first two send to the third.
fn crossing(watchdog: Option<Picos>) -> (Network, [NodeId; 3]) {
    let mut builder = Builder::new();
    let settings = RouterSettings { ports: 3, watchdog, ..RouterSettings::default() };
    let router = builder.router("router", settings).unwrap();
    let nodes = [1, 2, 3].map(|port| {
        let node = builder.node(&alloc::format!("node {port}"), NodeSettings::default()).unwrap();
        builder.link(node, (router, port), &LinkSettings::default()).unwrap();
        node
    });
    let mut network = builder.build().unwrap();
    network.run_until(micros(100));
    (network, nodes)
}

fn once(first: u64, lasts: u64) -> StallTimes {
    StallTimes { first: micros(first), lasts: Some(micros(lasts)), every: None }
}

fn send(network: &mut Network, from: NodeId, number: usize) {
    let bytes = [&[3], &packet(number, 400)[..]].concat();
    network.send(from, &bytes, EndOfPacket::Eop).unwrap();
}

#[test]
fn a_host_that_stops_giving_holds_the_packets_of_others_until_it_goes_on() {
    let (mut network, [one, two, three]) = crossing(None);
    network.stall(one, Stall::Giving { after: 50 }, once(200, 300)).unwrap();
    network.run_until(micros(210));
    send(&mut network, one, 1);
    network.run_until(micros(220));
    send(&mut network, two, 2);
    network.run_until(micros(499));
    assert_eq!(network.statistics(one).unwrap().sent.data, 50);
    assert_eq!(network.statistics(three).unwrap().received.data, 49, "without the path");
    assert!(network.receive(three).is_none());
    network.run_until(micros(600));
    let arrived = receive_all(&mut network, three);
    assert_eq!(arrived.iter().map(|packet| &packet.bytes).collect::<Vec<_>>(), [&packet(1, 400), &packet(2, 400)]);
    assert_eq!(network.faults(one).unwrap().stalls, 1);
}

#[test]
fn a_packet_that_is_no_longer_than_a_host_gives_goes_whole() {
    let (mut network, [one, _, three]) = crossing(None);
    network.stall(one, Stall::Giving { after: 401 }, once(200, 300)).unwrap();
    network.run_until(micros(210));
    send(&mut network, one, 1);
    network.run_until(micros(300));
    assert_eq!(network.receive(three).unwrap().bytes, packet(1, 400));
}

#[test]
fn a_watchdog_cuts_the_packet_of_a_host_that_stops_giving() {
    let (mut network, [one, two, three]) = crossing(Some(micros(50)));
    network.stall(one, Stall::Giving { after: 50 }, once(200, 300)).unwrap();
    network.run_until(micros(210));
    send(&mut network, one, 1);
    send(&mut network, two, 2);
    network.run_until(micros(400));
    let arrived = receive_all(&mut network, three);
    let ends: Vec<_> = arrived.iter().map(|packet| (packet.bytes.len(), packet.header.end)).collect();
    assert_eq!(ends, [(49, EndOfPacket::Eep), (400, EndOfPacket::Eop)]);
    // What is left of it goes nowhere.
    network.run_until(micros(700));
    assert!(network.receive(three).is_none() && network.queued(one) == (0, 0));
}

#[test]
fn a_host_that_stops_taking_stops_who_sends_in_the_middle_of_a_packet() {
    for engine in [Engine::Fast, Engine::Reference] {
        let nodes = [NodeSettings::default(), NodeSettings::default()];
        let (mut network, one, other) = pair_with(&LinkSettings::default(), nodes, engine, ());
        network.stall(other, Stall::Taking, once(50, 100)).unwrap();
        network.run_until(micros(60));
        network.send(one, &packet(1, 400), EndOfPacket::Eop).unwrap();
        network.run_until(micros(149));
        assert_eq!((network.end(other).unwrap().filled(), network.take(other, 5)), (CREDIT_MAX, 0));
        assert_eq!(network.statistics(one).unwrap().sent.data, 56);
        network.run_until(micros(200));
        assert_eq!(network.receive(other).unwrap().bytes, packet(1, 400));
    }
}

#[test]
fn stalls_come_again_and_have_bounds() {
    let (mut network, one, other) = pair(&LinkSettings::default());
    let times = StallTimes { first: micros(50), lasts: Some(micros(10)), every: Some(micros(20)) };
    network.stall(one, Stall::Giving { after: 1 }, times).unwrap();
    network.run_until(micros(155));
    assert_eq!(network.faults(one).unwrap().stalls, 6);
    let refused = |network: &mut Network, times| network.stall(other, Stall::Taking, times).unwrap_err();
    let endless = UseError::EndlessStall { place: other.into() };
    assert_eq!(refused(&mut network, StallTimes { lasts: None, ..times }), endless);
    assert_eq!(refused(&mut network, StallTimes { every: times.lasts, ..times }), endless);
    for _ in 0..64 {
        network.stall(other, Stall::Taking, StallTimes { lasts: None, every: None, ..times }).unwrap();
    }
    assert_eq!(refused(&mut network, times), UseError::TooManyFaults { place: other.into() });
}

/// A host that is faster than the shortest N-chars takes at once, so that the other links go on in runs.
#[test]
fn a_host_that_takes_faster_than_its_line_brings_takes_at_once() {
    let sink = |rate| {
        let nodes = [NodeSettings::default(), NodeSettings { sink: Sink::Rate(rate), ..NodeSettings::default() }];
        let (network, _, other) = pair_with(&LinkSettings::default(), nodes, Engine::Fast, ());
        network.nodes[other.0].settings.sink
    };
    assert_eq!((sink(50_000_000), sink(49_000_000)), (Sink::AtOnce, Sink::Rate(49_000_000)));
}
