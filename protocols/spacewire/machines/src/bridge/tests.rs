use super::*;
use crate::EndOfPacket::Eop;
use crate::network::{Builder, LinkSettings, NodeSettings, RouterSettings};
use crate::rmap::{Ram, TargetSettings};
use crate::ssdtp2::{Decoder, DecoderSettings, Message};
use hodo_machine::Address;

const PORTS: [u16; 2] = [10_030, 10_031];

/// Returns two gates with SSDTP2 over one link.
fn pair(pace: Pace) -> Bridge {
    let mut builder = Builder::default();
    let nodes = ["one", "other"].map(|name| builder.node(name, NodeSettings::default()).unwrap());
    builder.link(nodes[0], nodes[1], &LinkSettings::default()).unwrap();
    let gates = (0..2).map(|at| gate(nodes[at], PORTS[at])).collect();
    Bridge::new(builder.build().unwrap(), pace, gates, Vec::new())
}

fn gate(node: NodeId, port: u16) -> Gate {
    let protocol = GateProtocol::Ssdtp2 { port, fragment: None };
    Gate { node, protocol, packet_max: 100_000, queue_max: (65_536, 16 << 20) }
}

fn connect<O: Observer>(bridge: &mut Bridge<O>, peer: Peer, port: u16) {
    let [local, remote] = [port, 40_000].map(|port| Address::Tcp(([127, 0, 0, 1], port).into()));
    bridge.handle(Instant::ZERO, Input::Opened(peer, &Ends::new(local, remote)));
}

fn send<O: Observer>(bridge: &mut Bridge<O>, peer: Peer, packet: &[u8]) {
    let mut stream = Vec::new();
    Message::Packet { data: packet, end: Eop }.encode(&mut stream);
    bridge.handle(Instant::ZERO, Input::Received(peer, &stream));
}

/// Polls the bridge up to an instant; returns what it sent to each peer, and its events.
fn run<O: Observer>(bridge: &mut Bridge<O>, from_us: u64, to_us: u64) -> (Vec<(Peer, Vec<u8>)>, Vec<BridgeEvent>) {
    let (mut sent, mut events, mut out) = (Vec::new(), Vec::new(), Outbox::new());
    for micros in (from_us..=to_us).step_by(10) {
        let now = Instant::from_nanos(micros * 1_000);
        loop {
            match bridge.poll(now, &mut out) {
                Output::Send(peer) => {
                    out.seal();
                    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
                    out.clear();
                    sent.push((peer, bytes));
                }
                Output::Event(event) => events.push(event),
                Output::Close(peer) => sent.push((peer, Vec::new())),
                Output::Open(..) => unreachable!("a bridge opens nothing"),
                Output::Idle(_) => break,
            }
        }
    }
    (sent, events)
}

fn packets(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut decoder, mut rest, mut found) = (Decoder::new(DecoderSettings::default()), stream, Vec::new());
    while let Some(message) = decoder.next(&mut rest).unwrap() {
        if let Message::Packet { data, .. } = message {
            found.push(data.to_vec());
        }
    }
    found
}

const HOSTS: [Peer; 2] = [Peer::accepted(0), Peer::accepted(1)];

#[test]
fn packets_go_from_gate_to_gate_at_either_pace() {
    for pace in [Pace::RealTime, Pace::Free] {
        let mut bridge = pair(pace);
        for (host, port) in HOSTS.into_iter().zip(PORTS) {
            connect(&mut bridge, host, port);
        }
        run(&mut bridge, 0, 100);
        for number in 0..100 {
            send(&mut bridge, HOSTS[0], &[number; 60]);
        }
        let (sent, _) = run(&mut bridge, 100, 1_000);
        let all: Vec<u8> =
            sent.iter().inspect(|(peer, _)| assert_eq!(*peer, HOSTS[1])).flat_map(|(_, bytes)| bytes.clone()).collect();
        let expected: Vec<Vec<u8>> = (0..100).map(|number| alloc::vec![number; 60]).collect();
        assert_eq!(packets(&all), expected, "{pace:?}");
        assert_eq!(
            bridge.counters().map(|gate| (gate.packets_in, gate.packets_out)).collect::<Vec<_>>(),
            [(100, 0), (0, 100)]
        );
    }
}

#[test]
fn real_time_takes_the_time_of_the_link() {
    let mut bridge = pair(Pace::RealTime);
    for (host, port) in HOSTS.into_iter().zip(PORTS) {
        connect(&mut bridge, host, port);
    }
    run(&mut bridge, 0, 100);
    // 100 packets of 1000 bytes take 5.0 ms at 200 Mbit/s.
    for _ in 0..100 {
        send(&mut bridge, HOSTS[0], &[1; 1_000]);
    }
    let count = |sent: Vec<(Peer, Vec<u8>)>| sent.iter().map(|(_, bytes)| packets(bytes).len()).sum::<usize>();
    let half = count(run(&mut bridge, 100, 2_600).0);
    assert!((48..=50).contains(&half), "{half}");
    assert_eq!(half + count(run(&mut bridge, 2_610, 5_200).0), 100);
}

#[test]
fn a_newer_host_takes_the_place_of_an_older_one() {
    let mut bridge = pair(Pace::Free);
    connect(&mut bridge, HOSTS[0], PORTS[0]);
    connect(&mut bridge, HOSTS[1], PORTS[0]);
    let (sent, events) = run(&mut bridge, 0, 10);
    assert_eq!(sent, [(HOSTS[0], Vec::new())]);
    assert!(events.contains(&BridgeEvent::Disconnected(0, Closed::OverBound)));
    connect(&mut bridge, Peer::accepted(2), 9);
    let (sent, events) = run(&mut bridge, 10, 20);
    assert_eq!(sent, [(Peer::accepted(2), Vec::new())]);
    assert!(matches!(events[..], [BridgeEvent::NoGate(_)]));
}

#[test]
fn a_stream_out_of_step_ends_the_connection() {
    let mut bridge = pair(Pace::Free);
    connect(&mut bridge, HOSTS[0], PORTS[0]);
    bridge.handle(Instant::ZERO, Input::Received(HOSTS[0], &[0x77; 12]));
    let (sent, events) = run(&mut bridge, 0, 10);
    assert_eq!(sent, [(HOSTS[0], Vec::new())]);
    assert!(matches!(events[..], [BridgeEvent::Connected(..), BridgeEvent::Malformed(0, MalformedStream::Ssdtp2(_))]));
}

#[test]
fn a_memory_answers_rmap() {
    let mut builder = Builder::default();
    let nodes = ["host", "memory"].map(|name| builder.node(name, NodeSettings::default()).unwrap());
    builder.link(nodes[0], nodes[1], &LinkSettings::default()).unwrap();
    let memory = Device::Memory(TargetSettings::default(), Ram::new(0xa000_0000, (0..64).collect()));
    let gates = alloc::vec![gate(nodes[0], PORTS[0])];
    let mut bridge = Bridge::new(builder.build().unwrap(), Pace::RealTime, gates, alloc::vec![(nodes[1], memory)]);
    connect(&mut bridge, HOSTS[0], PORTS[0]);
    run(&mut bridge, 0, 100);
    // The standard's read of 16 bytes at 0xa0000000.
    send(&mut bridge, HOSTS[0], &[0xfe, 0x01, 0x4c, 0x00, 0x67, 0x00, 0x01, 0x00, 0xa0, 0, 0, 0, 0, 0, 0x10, 0xc9]);
    let (sent, _) = run(&mut bridge, 100, 200);
    let reply = &packets(&sent[0].1)[0];
    assert_eq!((reply[3], &reply[12..28]), (0, &(0..16).collect::<Vec<u8>>()[..]));
}

#[test]
fn a_host_that_sends_too_fast_is_not_read_from() {
    let mut bridge = pair(Pace::RealTime);
    bridge.gates[0].gate.queue_max = (100, 1 << 20);
    connect(&mut bridge, HOSTS[0], PORTS[0]);
    run(&mut bridge, 0, 100);
    let mut sent = 0;
    while bridge.has_room(HOSTS[0]) {
        send(&mut bridge, HOSTS[0], &[1; 1_000]);
        sent += 1;
    }
    assert!((50..60).contains(&sent), "{sent}");
    // Nobody is at the other gate: packets are discarded, and there is room again.
    run(&mut bridge, 100, 5_000);
    assert!(bridge.has_room(HOSTS[0]));
    assert_eq!(bridge.gates[1].counters.unclaimed, sent);
}

#[test]
fn a_bridge_that_is_often_late_reads_further_ahead() {
    let mut bridge = pair(Pace::RealTime);
    connect(&mut bridge, HOSTS[0], PORTS[0]);
    run(&mut bridge, 0, 100);
    let fill = |bridge: &mut Bridge, bytes: usize| {
        while bridge.network.queued(bridge.gates[0].gate.node).1 < bytes {
            send(bridge, HOSTS[0], &[1; 1_000]);
        }
        bridge.sate();
        bridge.has_room(HOSTS[0])
    };
    assert!(!fill(&mut bridge, 2 * SATED.end));
    let mut millis = 1;
    while bridge.pressure <= PRESSURE.start {
        fill(&mut bridge, 3 * SATED.end);
        millis += 1;
        run(&mut bridge, millis * 1_000, millis * 1_000);
    }
    assert!(fill(&mut bridge, 2 * SATED.end) && !fill(&mut bridge, 1 + SATED_LATE * SATED.end));
    // That is over after some time without late turns.
    for millis in millis..millis + 200 {
        fill(&mut bridge, 12_000);
        run(&mut bridge, millis * 1_000, millis * 1_000 + 990);
    }
    assert!(bridge.pressure < PRESSURE.start && !fill(&mut bridge, 2 * SATED.end));
}

#[test]
fn devices_answer_soon_within_one_long_turn() {
    let mut builder = Builder::default();
    let router = builder.router("router", RouterSettings::default()).unwrap();
    let nodes = ["host", "echo"].map(|name| builder.node(name, NodeSettings::default()).unwrap());
    for (node, port) in nodes.into_iter().zip(1..) {
        builder.link(node, (router, port), &LinkSettings::default()).unwrap();
    }
    let echo = Device::Echo(alloc::vec![1]);
    let gates = alloc::vec![gate(nodes[0], PORTS[0])];
    let mut bridge = Bridge::new(builder.build().unwrap(), Pace::RealTime, gates, alloc::vec![(nodes[1], echo)]);
    connect(&mut bridge, HOSTS[0], PORTS[0]);
    run(&mut bridge, 0, 100);
    for _ in 0..3 {
        send(&mut bridge, HOSTS[0], &[2, 7]);
    }
    // There and back take 3 us; an answer waits for 20 us at the most.
    run(&mut bridge, 130, 130);
    assert_eq!(bridge.gates[0].counters.packets_out + bridge.gates[0].counters.unclaimed, 3);
}

#[test]
fn what_comes_after_a_pause_leaves_at_once_and_a_late_network_says_so() {
    let mut bridge = pair(Pace::RealTime);
    for (host, port) in HOSTS.into_iter().zip(PORTS) {
        connect(&mut bridge, host, port);
    }
    run(&mut bridge, 0, 100);
    // The bridge is idle for an hour; the packet takes 3 us from there.
    let hour = Instant::from_nanos(3_600_000_000_000);
    let mut stream = Vec::new();
    Message::Packet { data: &[5; 60], end: Eop }.encode(&mut stream);
    bridge.handle(hour, Input::Received(HOSTS[0], &stream));
    let (sent, _) = run(&mut bridge, 3_600_000_000, 3_600_000_010);
    assert_eq!(packets(&sent[0].1), [[5; 60]]);
    assert_eq!(bridge.shortfall(), Duration::ZERO);
    let before = bridge.lateness();
    assert!(before.turns > 0 && before.over == [0; 3] && before.max <= LATE[0], "{before:?}");
    // The processor is taken away for a second while packets are on their way.
    let later = hour + Duration::from_millis(1);
    let many: Vec<u8> = (0..2_000).flat_map(|_| stream.clone()).collect();
    bridge.handle(later, Input::Received(HOSTS[0], &many));
    let (sent, _) = run(&mut bridge, 3_601_001_000, 3_601_009_000);
    assert!((970..=990).contains(&(bridge.shortfall().as_millis() as u32)), "{:?}", bridge.shortfall());
    let late = bridge.lateness();
    assert!(late.over.iter().all(|over| *over > 0) && late.turns > before.turns, "{late:?}");
    assert!((990..=1010).contains(&(late.max.as_millis() as u32)), "{late:?}");
    let all: Vec<u8> = sent.into_iter().flat_map(|(_, bytes)| bytes).collect();
    assert_eq!(packets(&all).len(), 2_000);
}
