//! Broadcast codes through routers: time-codes, distributed interrupts with their acknowledgements and timers, and codes with other flags.
use super::routers::{four, star};
use super::*;
use hodo_machine::Random;

const INTERRUPT: u8 = 0x80;
const ACKNOWLEDGEMENT: u8 = 0xA0;

fn rev_1(settings: InterruptSettings) -> RouterSettings {
    RouterSettings { broadcasting: Broadcasting::Interrupts(settings), ..four() }
}

/// Sends codes from the first node, far apart, and returns those that arrive at the second one.
fn through(broadcasting: Broadcasting, codes: &[u8]) -> (Vec<u8>, PortFaults) {
    let (mut network, router, nodes) = star(RouterSettings { broadcasting, ..four() });
    for code in codes {
        network.broadcast(nodes[0], *code).unwrap();
        network.run_until(network.now() + micros(20));
    }
    (codes_at(&mut network, nodes[1]), network.faults((router, 1)).unwrap())
}

fn codes_at<O: Observer>(network: &mut Network<O>, node: NodeId) -> Vec<u8> {
    core::iter::from_fn(|| network.receive_broadcast(node)).map(|(_, code)| code).collect()
}

/// A sequence of time-codes with an interrupt behind the second and the fourth one.
const MIXED: [u8; 8] = [0x01, 0x02, 0x83, 0x03, 0x04, 0x9F, 0x05, 0x06];

#[test]
fn codes_with_flags_neither_change_the_time_of_2008_nor_pass() {
    let (arrived, faults) = through(Broadcasting::TimeCodes, &MIXED);
    assert_eq!(arrived, [0x01, 0x02, 0x03, 0x04, 0x05, 0x06]);
    assert_eq!((faults.flags, faults.time_codes, faults.interrupts), (2, 0, 0));
}

#[test]
fn devices_without_types_take_every_code_for_a_time_code() {
    let (arrived, faults) = through(Broadcasting::AnyFlags, &MIXED);
    assert_eq!(arrived, [0x01, 0x02, 0x83, 0x04, 0x06]);
    assert_eq!((faults.flags, faults.time_codes), (0, 3));
}

#[test]
fn rev_1_passes_time_codes_and_interrupts_and_nothing_reserved() {
    let rev_1 = Broadcasting::Interrupts(InterruptSettings::default());
    assert_eq!(through(rev_1, &MIXED).0, MIXED);
    let (arrived, faults) = through(rev_1, &[0x01, 0x42, 0xC2, 0x02]);
    assert_eq!((arrived, faults.flags), ([0x01, 0x02].to_vec(), 2));
}

#[test]
fn an_interrupt_passes_once_until_it_is_acknowledged() {
    let (mut network, router, nodes) = star(rev_1(InterruptSettings::default()));
    let send = |network: &mut Network, node: usize, code: u8| {
        network.broadcast(nodes[node], code).unwrap();
        network.run_until(network.now() + micros(20));
    };
    // An acknowledgement of nothing.
    send(&mut network, 1, ACKNOWLEDGEMENT | 3);
    send(&mut network, 0, INTERRUPT | 3);
    assert_eq!(network.interrupts(router).unwrap(), Interrupts { pending: 1 << 3, timeouts: 0 });
    send(&mut network, 2, INTERRUPT | 3);
    send(&mut network, 0, INTERRUPT | 4);
    send(&mut network, 1, ACKNOWLEDGEMENT | 3);
    send(&mut network, 2, ACKNOWLEDGEMENT | 3);
    assert_eq!(network.interrupts(router).unwrap(), Interrupts { pending: 1 << 4, timeouts: 0 });
    send(&mut network, 2, INTERRUPT | 3);
    let (first, last) = (INTERRUPT | 3, ACKNOWLEDGEMENT | 3);
    assert_eq!(codes_at(&mut network, nodes[0]), [last, first]);
    assert_eq!(codes_at(&mut network, nodes[1]), [first, INTERRUPT | 4, first]);
    assert_eq!(codes_at(&mut network, nodes[3]), [first, INTERRUPT | 4, last, first]);
    let faults = [1, 2, 3].map(|port| network.faults((router, port)).unwrap().interrupts);
    assert_eq!(faults, [0, 1, 2]);
}

#[test]
fn an_interrupt_that_nobody_acknowledges_ends_by_its_timeout() {
    let settings = InterruptSettings { timeout: micros(100), change: micros(10), acknowledged: true };
    let (mut network, router, nodes) = star(rev_1(settings));
    let began = network.now();
    network.broadcast(nodes[0], INTERRUPT).unwrap();
    network.run_until(began + micros(99));
    assert_eq!(network.interrupts(router).unwrap().pending, 1);
    network.run_until(began + micros(101));
    assert_eq!(network.interrupts(router).unwrap(), Interrupts { pending: 0, timeouts: 1 });
    // Just after that it does not change, and later it does.
    network.broadcast(nodes[0], INTERRUPT).unwrap();
    network.run_until(began + micros(120));
    assert_eq!(codes_at(&mut network, nodes[1]), [INTERRUPT]);
    network.broadcast(nodes[0], INTERRUPT).unwrap();
    network.run_until(began + micros(140));
    assert_eq!(codes_at(&mut network, nodes[1]), [INTERRUPT]);
    assert_eq!(network.interrupts(router).unwrap(), Interrupts { pending: 1, timeouts: 1 });
}

#[test]
fn without_acknowledgements_there_are_64_interrupts() {
    let extended = InterruptSettings { acknowledged: false, timeout: micros(100), change: Picos::ZERO };
    let (mut network, router, nodes) = star(rev_1(extended));
    for number in 0..64 {
        network.broadcast(nodes[0], INTERRUPT | number).unwrap();
    }
    network.run_until(network.now() + micros(20));
    let mut arrived = codes_at(&mut network, nodes[1]);
    arrived.sort_unstable();
    assert_eq!(arrived, (0x80..=0xBF).collect::<Vec<u8>>());
    assert_eq!(network.interrupts(router).unwrap().pending, u64::MAX);
    network.run_until(network.now() + micros(200));
    assert_eq!(network.interrupts(router).unwrap(), Interrupts { pending: 0, timeouts: 64 });
}

#[test]
fn a_node_acknowledges_what_it_handles() {
    let mut builder = Builder::new();
    let router = builder.router("router", rev_1(InterruptSettings::default())).unwrap();
    let handler = NodeSettings { acknowledges: 1 << 3, ..NodeSettings::default() };
    let nodes = [NodeSettings::default(), handler].map(|settings| {
        let node = builder.node(["source", "handler"][usize::from(settings.acknowledges != 0)], settings).unwrap();
        builder.link(node, (router, node.0 as u8 + 1), &LinkSettings::default()).unwrap();
        node
    });
    let mut network = builder.build().unwrap();
    network.run_until(micros(100));
    network.broadcast(nodes[0], INTERRUPT | 3).unwrap();
    network.broadcast(nodes[0], INTERRUPT | 5).unwrap();
    network.run_until(micros(200));
    let (at, code) = network.receive_broadcast(nodes[0]).unwrap();
    assert_eq!(code, ACKNOWLEDGEMENT | 3);
    // There, 20 us, and back: 14 bits twice and 360 ns through each way, and characters in progress.
    assert!((at - micros(120)).as_nanos().abs_diff(1_000) < 200, "{at:?}");
    assert_eq!(network.receive_broadcast(nodes[0]), None);
    assert_eq!(network.interrupts(router).unwrap().pending, 1 << 5);
    assert_eq!(network.statistics(nodes[1]).unwrap().received.broadcasts.interrupts, 2);
}

#[test]
fn an_interrupt_has_to_last_for_longer_than_it_stays_as_it_is() {
    let settings = InterruptSettings { timeout: micros(10), ..InterruptSettings::default() };
    let refused = Builder::new().router("router", rev_1(settings));
    assert!(matches!(refused, Err(BuildError::InterruptTimeout { .. })));
}

/// Returns a network of routers, each with a node at port 1 and linked to the one before it, and with circles.
fn with_circles(random: &mut Random) -> (Network, Vec<RouterId>, Vec<NodeId>) {
    let mut builder = Builder::new();
    let (mut routers, mut nodes): (Vec<RouterId>, Vec<NodeId>) = (Vec::new(), Vec::new());
    let count = 2 + random.below(5) as usize;
    let settings = RouterSettings { ports: 31, ..rev_1(InterruptSettings::default()) };
    let mut ports = alloc::vec![1; count];
    let link = |random: &mut Random| {
        let rates = [(); 2].map(|()| [200_000_000, 100_000_000, 50_000_000][random.below(3) as usize]);
        LinkSettings { rates, cable: Picos::from_nanos(random.below(200)), ..LinkSettings::default() }
    };
    for at in 0..count {
        routers.push(builder.router(&alloc::format!("router {at}"), settings.clone()).unwrap());
        nodes.push(builder.node(&alloc::format!("node {at}"), NodeSettings::default()).unwrap());
        builder.link(nodes[at], (routers[at], 1), &link(random)).unwrap();
    }
    let mut connect = |one: usize, other: usize, random: &mut Random| {
        let ends = [one, other].map(|at| {
            ports[at] += 1;
            (routers[at], ports[at])
        });
        builder.link(ends[0], ends[1], &link(random)).unwrap();
    };
    (1..count).for_each(|at| connect(at, random.below(at as u64) as usize, random));
    for _ in 0..random.below(5) {
        let one = random.below(count as u64) as usize;
        let other = (one + 1 + random.below(count as u64 - 1) as usize) % count;
        connect(one, other, random);
    }
    let mut network = builder.build().unwrap();
    network.run_until(micros(100));
    (network, routers, nodes)
}

#[test]
fn every_node_gets_each_interrupt_and_acknowledgement_once_through_circles() {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let (mut network, routers, nodes) = with_circles(random);
        let mut time = 0;
        let mut expected = alloc::vec![Vec::new(); nodes.len()];
        for _ in 0..4 {
            // A number at one node each, all at once, among packets and a time-code.
            let first = random.below(32) as u8;
            let numbers: Vec<u8> = (0..1 + random.below(6) as u8).map(|step| (first + step) % 32).collect();
            for kind in [INTERRUPT, ACKNOWLEDGEMENT] {
                for number in &numbers {
                    let from = random.below(nodes.len() as u64) as usize;
                    network.broadcast(nodes[from], kind | number).unwrap();
                    (0..nodes.len()).filter(|at| *at != from).for_each(|at| expected[at].push(kind | number));
                    _ = network.send(nodes[from], &[1, 1, 1, 1, 1], EndOfPacket::Eop);
                }
                time = (time + 1) % 64;
                network.broadcast(nodes[0], time).unwrap();
                network.run_until(network.now() + micros(20));
            }
        }
        for (at, node) in nodes.iter().enumerate() {
            let mut codes = codes_at(&mut network, *node);
            codes.retain(|code| code >> 6 != 0);
            codes.sort_unstable();
            expected[at].sort_unstable();
            assert_eq!(codes, expected[at], "seed {seed}, node {at}");
        }
        for router in routers {
            assert_eq!(network.interrupts(router).unwrap(), Interrupts::default(), "seed {seed}");
        }
    }
}

/// Without the time in which an interrupt does not change, a network with circles could send one around for ever.
#[test]
fn a_storm_of_codes_comes_to_an_end() {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let (mut network, routers, nodes) = with_circles(random);
        for _ in 0..100 {
            let node = nodes[random.below(nodes.len() as u64) as usize];
            network.broadcast(node, random.bits() as u8).unwrap();
            network.run_until(network.now() + Picos(random.below(2_000_000)));
        }
        network.run_until(network.now() + micros(50));
        let sent = |network: &Network| -> u64 {
            let ends = routers.iter().flat_map(|router| (1..=31).map(move |port| (*router, port)));
            ends.filter_map(|end| network.statistics(end).ok()).map(|counts| counts.sent.broadcasts.all()).sum()
        };
        let before = sent(&network);
        network.run_until(network.now() + micros(2_000));
        assert_eq!(sent(&network), before, "seed {seed}: codes go around");
        for router in &routers {
            assert_eq!(network.interrupts(*router).unwrap().pending, 0, "seed {seed}");
        }
    }
}
