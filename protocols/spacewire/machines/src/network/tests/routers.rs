//! Routers: addresses, arbitration, latency, watchdogs, time-codes, the configuration port and circles.
use super::*;
use crate::end::Fault;

const PRESET: Latency = Latency::SPW_10X;

/// Builds a router with one node at each port.
pub(super) fn star(settings: RouterSettings) -> (Network, RouterId, Vec<NodeId>) {
    let mut builder = Builder::new();
    let ports = settings.ports;
    let router = builder.router("router", settings).unwrap();
    let mut nodes = Vec::new();
    for port in 1..=ports {
        let node = builder.node(&alloc::format!("node {port}"), NodeSettings::default()).unwrap();
        builder.link(node, (router, port), &LinkSettings::default()).unwrap();
        nodes.push(node);
    }
    let mut network = builder.build().unwrap();
    network.run_until(micros(100));
    (network, router, nodes)
}

pub(super) fn four() -> RouterSettings {
    RouterSettings { ports: 4, ..RouterSettings::default() }
}

fn addressed(path: &[u8], number: usize, length: usize) -> Vec<u8> {
    let mut bytes = path.to_vec();
    bytes.extend(packet(number, length));
    bytes
}

#[test]
fn a_path_address_is_deleted_and_leads_to_its_port() {
    let (mut network, _, nodes) = star(four());
    for port in 1..=4 {
        network.send(nodes[0], &addressed(&[port], port.into(), 50), EndOfPacket::Eop).unwrap();
    }
    network.run_until(micros(200));
    for port in 1..=4 {
        let received = receive_all(&mut network, nodes[port - 1]);
        assert_eq!(received.len(), 1, "port {port}");
        assert_eq!((&received[0].bytes, received[0].header.end), (&packet(port, 50), EndOfPacket::Eop));
    }
}

#[test]
fn a_logical_address_takes_the_table_and_keeps_its_byte_unless_told() {
    let (mut network, router, nodes) = star(four());
    let registers = network.registers(router).unwrap();
    registers.set_route(32, Some(Route::to(2))).unwrap();
    registers.set_route(254, Some(Route { delete_header: true, ..Route::to(3) })).unwrap();
    network.send(nodes[0], &[32, 1, 2], EndOfPacket::Eop).unwrap();
    network.send(nodes[0], &[254, 3, 4], EndOfPacket::Eop).unwrap();
    for address in [5, 33, 255] {
        network.send(nodes[0], &[address, 9], EndOfPacket::Eop).unwrap();
    }
    network.send(nodes[0], &[], EndOfPacket::Eop).unwrap();
    network.send(nodes[0], &[32, 7], EndOfPacket::Eep).unwrap();
    network.run_until(micros(200));
    let at_two = receive_all(&mut network, nodes[1]);
    assert_eq!(at_two.iter().map(|packet| &packet.bytes[..]).collect::<Vec<_>>(), [&[32, 1, 2][..], &[32, 7]]);
    assert_eq!(at_two[1].header.end, EndOfPacket::Eep);
    assert_eq!(network.receive(nodes[2]).unwrap().bytes, [3, 4]);
    let faults = network.faults((router, 1)).unwrap();
    assert_eq!((faults.invalid_address, faults.empty), (3, 1));
}

#[test]
fn latency_is_that_of_the_preset() {
    for hops in 1..=3usize {
        let mut builder = Builder::new();
        let one = builder.node("one", NodeSettings::default()).unwrap();
        let other = builder.node("other", NodeSettings::default()).unwrap();
        let mut before: Place = one.into();
        for hop in 0..hops {
            let router = builder.router(&alloc::format!("router {hop}"), four()).unwrap();
            builder.link(before, (router, 1), &LinkSettings::default()).unwrap();
            before = (router, 2).into();
        }
        builder.link(before, other, &LinkSettings::default()).unwrap();
        let mut network = builder.build().unwrap();
        network.run_until(micros(100));
        network.send(one, &addressed(&[2, 2, 2][..hops], 0, 60), EndOfPacket::Eop).unwrap();
        network.run_until(micros(200));
        let received = network.receive(other).unwrap();
        assert_eq!(received.bytes, packet(0, 60));
        let nanos = (received.header.ended - micros(100)).as_nanos();
        let formula = (10 * (60 + hops as u64) + 4) * 5 + hops as u64 * (133 + 547);
        // A NULL of 40 ns may be in progress at each of the transmitters, and one more before the bytes follow.
        let late = nanos as i64 - formula as i64;
        assert!((-2..=80 * (hops as i64 + 1)).contains(&late), "{hops} hops: {nanos} ns, not {formula}");
    }
}

#[test]
fn the_preset_gives_the_manuals_figures_at_200_mbit_s() {
    let first_to_first = |clocks| PRESET.after_last_bit(clocks, 5_000, 5_000) + 50_000;
    assert_eq!(first_to_first(PRESET.data) / 100, 5_466);
    assert!(first_to_first(PRESET.time_code).abs_diff(409_300) < 1_000);
}

#[test]
fn a_group_takes_any_free_port() {
    let (mut network, router, nodes) = star(four());
    let group = Route { outputs: 0b1_1000, delete_header: true, priority: false };
    network.registers(router).unwrap().set_route(40, Some(group)).unwrap();
    network.send(nodes[0], &addressed(&[40], 1, 2000), EndOfPacket::Eop).unwrap();
    network.send(nodes[1], &addressed(&[40], 2, 2000), EndOfPacket::Eop).unwrap();
    network.run_until(micros(205));
    assert_eq!([2, 3].map(|at| receive_all(&mut network, nodes[at]).len()), [1, 1]);
}

#[test]
fn several_inputs_share_an_output_in_turn_and_priority_goes_first() {
    let (mut network, router, nodes) = star(four());
    let route = |priority| Some(Route { delete_header: true, priority, ..Route::to(4) });
    let registers = network.registers(router).unwrap();
    registers.set_route(50, route(false)).unwrap();
    registers.set_route(60, route(true)).unwrap();
    for number in 0..30 {
        for (at, address) in [50, 50, 60].into_iter().enumerate() {
            network.send(nodes[at], &addressed(&[address, at as u8], number, 100), EndOfPacket::Eop).unwrap();
        }
    }
    network.run_until(micros(1_000));
    let order: Vec<u8> = receive_all(&mut network, nodes[3]).iter().map(|packet| packet.bytes[0]).collect();
    assert_eq!(order.len(), 90);
    // The one with priority is through when the others still share what it leaves.
    let place = |input| order.iter().rposition(|first| *first == input).unwrap();
    assert!(place(2) < 65 && place(0) > 85 && place(1) > 85, "{order:?}");
    let tail: Vec<u8> = order[place(2) + 2..].to_vec();
    assert!(tail.windows(2).all(|pair| pair[0] != pair[1]), "{tail:?}");
}

#[test]
fn a_link_that_is_down_spills_or_makes_wait() {
    for when_down in [WhenDown::Spill, WhenDown::Wait] {
        let (mut network, router, nodes) = star(RouterSettings { when_down, ..four() });
        network.configure(nodes[1], |settings| settings.disabled = true).unwrap();
        network.run_until(micros(200));
        network.send(nodes[0], &addressed(&[2], 1, 500), EndOfPacket::Eop).unwrap();
        network.run_until(micros(300));
        network.configure(nodes[1], |settings| settings.disabled = false).unwrap();
        network.run_until(micros(500));
        let (received, spilled) =
            (receive_all(&mut network, nodes[1]).len(), network.faults((router, 1)).unwrap().down);
        let expected = if when_down == WhenDown::Spill { (0, 1) } else { (1, 0) };
        assert_eq!((received, spilled), expected);
    }
}

#[test]
fn a_link_starts_when_a_packet_asks_for_it() {
    let mut builder = Builder::new();
    let settings = RouterSettings { start_on_request: true, ..four() };
    let router = builder.router("router", settings).unwrap();
    let mut nodes = Vec::new();
    for port in 1..=2 {
        nodes.push(builder.node(&alloc::format!("{port}"), NodeSettings::default()).unwrap());
        let mut link = LinkSettings::default();
        if port == 2 {
            link.ends.iter_mut().for_each(|end| end.link_start = false);
        }
        builder.link(nodes[port - 1], (router, port as u8), &link).unwrap();
    }
    let mut network = builder.build().unwrap();
    network.run_until(micros(100));
    assert_eq!(network.end(nodes[1]).unwrap().state(), State::Ready);
    network.send(nodes[0], &addressed(&[2], 1, 50), EndOfPacket::Eop).unwrap();
    network.run_until(micros(200));
    assert_eq!(network.receive(nodes[1]).unwrap().bytes, packet(1, 50));
}

#[test]
fn a_link_that_fails_under_a_packet_ends_it_on_both_sides() {
    let (mut network, router, nodes) = star(four());
    network.send(nodes[0], &addressed(&[2], 1, 4000), EndOfPacket::Eop).unwrap();
    network.send(nodes[0], &addressed(&[2], 2, 40), EndOfPacket::Eop).unwrap();
    network.send(nodes[2], &addressed(&[4], 1, 4000), EndOfPacket::Eop).unwrap();
    network.send(nodes[2], &addressed(&[4], 2, 40), EndOfPacket::Eop).unwrap();
    // Behind the router, and before it.
    network.inject_at((router, 2), Fault::Parity, micros(150)).unwrap();
    network.inject_at(nodes[2], Fault::Disconnect, micros(150)).unwrap();
    network.run_until(micros(400));
    let behind = receive_all(&mut network, nodes[1]);
    assert_eq!(behind[0].header.end, EndOfPacket::Eep);
    // The second came while the link was down.
    assert_eq!((behind.len() as u64) + network.faults((router, 1)).unwrap().down, 2);
    assert_eq!(network.faults((router, 2)).unwrap().cut + network.faults((router, 1)).unwrap().cut, 1);
    let before = receive_all(&mut network, nodes[3]);
    assert_eq!(before.iter().map(|packet| packet.header.end).collect::<Vec<_>>(), [EndOfPacket::Eep, EndOfPacket::Eop]);
    assert_eq!(before[1].bytes, packet(2, 40));
}

#[test]
fn the_watchdog_cuts_a_packet_that_stands() {
    let mut builder = Builder::new();
    let settings = RouterSettings { watchdog: Some(micros(200)), ..four() };
    let router = builder.router("router", settings).unwrap();
    let mut nodes = Vec::new();
    for port in 1..=3u8 {
        let sink = if port == 3 { Sink::Asked } else { Sink::AtOnce };
        nodes.push(builder.node(&alloc::format!("{port}"), NodeSettings { sink, ..NodeSettings::default() }).unwrap());
        builder.link(nodes[usize::from(port) - 1], (router, port), &LinkSettings::default()).unwrap();
    }
    let mut network = builder.build().unwrap();
    network.run_until(micros(100));
    network.send(nodes[0], &addressed(&[3], 1, 4000), EndOfPacket::Eop).unwrap();
    network.send(nodes[0], &addressed(&[2], 2, 40), EndOfPacket::Eop).unwrap();
    network.run_until(micros(250));
    assert!(network.receive(nodes[1]).is_none());
    assert!(network.deadlock().is_none());
    network.run_until(micros(600));
    assert_eq!(network.faults((router, 1)).unwrap().watchdog, 1);
    assert_eq!(network.receive(nodes[1]).unwrap().bytes, packet(2, 40));
    // The host takes at last: what was sent, and the EEP behind it.
    for step in 0..10 {
        network.take(nodes[2], 100);
        network.run_until(micros(610 + step));
    }
    let cut = network.receive(nodes[2]).unwrap();
    assert_eq!((cut.header.end, &cut.bytes[..]), (EndOfPacket::Eep, &packet(1, 4000)[..cut.bytes.len()]));
}

#[test]
fn time_codes_pass_packets_and_only_the_next_one_is_forwarded() {
    let (mut network, router, nodes) = star(four());
    network.send(nodes[2], &addressed(&[2], 1, 4000), EndOfPacket::Eop).unwrap();
    network.run_until(micros(150));
    network.time_code(nodes[0], 1).unwrap();
    network.run_until(micros(152));
    let (at, code) = network.receive_time_code(nodes[1]).unwrap();
    // 14 bits in, 360 ns through, 14 bits out, and a character in progress at each transmitter.
    assert_eq!(code, 1);
    assert!(((at - micros(150)).as_nanos() as i64 - 500).abs() <= 90, "{at:?}");
    assert_eq!(network.receive_time_code(nodes[3]).unwrap().1, 1);
    assert_eq!(network.receive_time_code(nodes[0]), None);
    for code in [1, 3, 4] {
        network.time_code(nodes[0], code).unwrap();
        network.run_until(network.now() + micros(5));
    }
    assert_eq!(network.receive_time_code(nodes[3]).unwrap().1, 4);
    assert_eq!(network.receive_time_code(nodes[3]), None);
    assert_eq!(network.faults((router, 1)).unwrap().time_codes, 2);
}

/// Sends back what it is sent, and adds a route to port 4.
struct Echo;

impl Configuration for Echo {
    fn answer(&mut self, port: u8, packet: &[u8], end: EndOfPacket, router: &mut RouterView<'_>) -> Vec<u8> {
        assert_eq!(end, EndOfPacket::Eop);
        router.registers.set_route(100, Some(Route::to(4))).unwrap();
        [&[port], packet].concat()
    }
}

#[test]
fn packets_for_port_0_are_answered_through_the_port_they_came_from() {
    let (mut network, router, nodes) = star(four());
    network.set_configuration(router, Echo).unwrap();
    for (at, node) in nodes.iter().enumerate() {
        network.send(*node, &[&[0, 0xAA, at as u8], &[0; 14][..]].concat(), EndOfPacket::Eop).unwrap();
        // Too short for a command: nothing comes back.
        network.send(*node, &[0, 0xAB, at as u8], EndOfPacket::Eop).unwrap();
    }
    network.send(nodes[0], &[100, 1], EndOfPacket::Eop).unwrap();
    network.run_until(micros(200));
    let mut received: Vec<Vec<Packet>> = nodes.iter().map(|node| receive_all(&mut network, *node)).collect();
    received[3].sort_by_key(|packet| packet.bytes[0]);
    for (at, packets) in received.iter().enumerate() {
        assert_eq!(packets.len(), 1 + usize::from(at == 3));
        assert_eq!(packets[0].bytes, [&[at as u8 + 1, 0xAA, at as u8], &[0; 14][..]].concat());
    }
    assert_eq!(received[3][1].bytes, [100, 1]);
}

/// Builds three routers in a ring; each node sends two links on, so that each packet waits for the next one.
fn ring(watchdog: Option<Picos>) -> (Network, Vec<NodeId>) {
    let mut builder = Builder::new();
    let settings = || RouterSettings { watchdog, ..four() };
    let routers: Vec<RouterId> =
        (0..3).map(|at| builder.router(&alloc::format!("router {at}"), settings()).unwrap()).collect();
    let mut nodes = Vec::new();
    for at in 0..3 {
        nodes.push(builder.node(&alloc::format!("node {at}"), NodeSettings::default()).unwrap());
        builder.link(nodes[at], (routers[at], 1), &LinkSettings::default()).unwrap();
        builder.link((routers[at], 2), (routers[(at + 1) % 3], 3), &LinkSettings::default()).unwrap();
    }
    let mut network = builder.build().unwrap();
    network.run_until(micros(100));
    for (at, node) in nodes.iter().enumerate() {
        network.send(*node, &addressed(&[2, 2, 1], at, 4000), EndOfPacket::Eop).unwrap();
    }
    (network, nodes)
}

#[test]
fn a_circle_of_wormholes_is_reported() {
    let (mut network, nodes) = ring(None);
    network.run_until(micros(2_000));
    let deadlock = network.deadlock().expect("each packet holds what the next one needs");
    assert_eq!(deadlock.blocked.len(), 6, "{deadlock:?}");
    let waiting = deadlock.blocked.iter().filter(|blocked| blocked.waits_for == WaitsFor::Outputs(1 << 2));
    assert_eq!(waiting.count(), 3);
    assert!(nodes.iter().all(|node| network.peek(*node).is_none()));
}

#[test]
fn a_watchdog_ends_a_circle() {
    let (mut network, nodes) = ring(Some(micros(500)));
    network.run_until(micros(3_000));
    assert_eq!(network.deadlock(), None);
    for node in &nodes {
        network.send(*node, &addressed(&[1], 7, 10), EndOfPacket::Eop).unwrap();
    }
    network.run_until(micros(5_000));
    for node in nodes {
        assert_eq!(receive_all(&mut network, node).last().unwrap().bytes, packet(7, 10));
    }
}
