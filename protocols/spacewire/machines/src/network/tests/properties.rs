//! Properties over many seeds. `HODO_SPACEWIRE_SEEDS` says how many; a fourth of them where a seed is four networks.
extern crate std;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use hodo_machine::Random;

use super::*;
use crate::character::Code;
use crate::end::{Edition, Fault};

fn seeds(usual: u64) -> core::ops::Range<u64> {
    let asked = std::env::var("HODO_SPACEWIRE_SEEDS").ok().and_then(|text| text.parse().ok());
    0..asked.unwrap_or(usual)
}

/// Everything that happened, code by code: for each place what left, and what else there was.
#[derive(Debug, Default, PartialEq)]
struct Diary {
    left: BTreeMap<Place, Vec<(u64, Code)>>,
    events: BTreeMap<Place, Vec<(u64, String)>>,
}

impl Observer for Diary {
    fn record(&mut self, at: Picos, place: Place, record: Record<'_>) {
        let left = self.left.entry(place).or_default();
        match record {
            Record::Nulls { count, bit } => left.extend((0..count).map(|n| (at.0 + n * 8 * bit.0, Code::Null))),
            Record::Data { bytes, bit } => {
                left.extend((0..).zip(bytes).map(|(n, byte)| (at.0 + n * 10 * bit.0, Code::Data(*byte))));
            }
            Record::Code(code) => left.push((at.0, code)),
            // A network that stands still is reported after the last choice, and a batch needs fewer of them.
            Record::Deadlock(_) => {}
            other => self.events.entry(place).or_default().push((at.0, format!("{other:?}"))),
        }
    }
}

const RATES: [u64; 6] = [200_000_000, 100_000_000, 66_000_000, 10_000_000, 400_000_000, 50_000_000];
const FAULTS: [Fault; 5] = [Fault::Parity, Fault::Escape, Fault::Fct, Fault::WithoutCredit, Fault::Disconnect];

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize]
}

fn random_link(random: &mut Random) -> LinkSettings {
    let mut settings = LinkSettings {
        rates: [pick(random, &RATES), pick(random, &RATES)],
        cable: Picos(pick(random, &[0, 0, 5_000, 12_345, 100_000, 3_000_000])),
        ..LinkSettings::default()
    };
    if random.chance(0.5) {
        settings.rates[1] = settings.rates[0];
    }
    for end in &mut settings.ends {
        end.edition = pick(random, &[Edition::Of2008, Edition::Rev1]);
        end.buffer = pick(random, &[56, 56, 56, 8, 13, 24, 64, 100]);
    }
    settings
}

fn random_length(random: &mut Random) -> usize {
    let most = pick(random, &[2, 20, 70, 600]);
    random.below(most) as usize
}

/// All that happened, the packets that arrived, and what was counted.
type Played<O> = (O, Vec<Packet>, String);

/// Returns bit errors, for some of the seeds. An observer would be told of every byte then, and there would be no runs.
fn random_errors<O: Observer>(random: &mut Random) -> [Option<BitErrors>; 2] {
    [(); 2].map(|()| {
        let rate = pick(random, &[0.0, 0.0, 1e-5, 1e-4, 1e-3]);
        (!O::ACTIVE).then(|| BitErrors { rate, seed: random.bits() })
    })
}

/// Plays one scenario.
fn play<O: Observer + Default>(seed: u64, engine: Engine) -> Played<O> {
    let random = &mut Random::new(seed);
    let bit_errors = random_errors::<O>(random);
    let link = LinkSettings { bit_errors, ..random_link(random) };
    let node = |random: &mut Random| NodeSettings {
        packets: pick(random, &[10_000, 10_000, 60, 3]),
        bytes: pick(random, &[1 << 20, 1 << 20, 5_000, 700]),
        sink: if random.chance(0.9) { Sink::AtOnce } else { Sink::Rate(3_000_000) },
    };
    let nodes = [node(random), node(random)];
    let (mut network, one, other) = pair_with(&link, nodes, engine, O::default());
    let (busy, faulty) = (random.unit(), random.chance(0.3));
    let mut packets = Vec::new();
    for number in 0..60 {
        for node in [one, other] {
            while random.chance(busy) {
                let end = if random.chance(0.05) { EndOfPacket::Eep } else { EndOfPacket::Eop };
                _ = network.send(node, &packet(number, random_length(random)), end);
            }
            if random.chance(0.05) {
                network.time_code(node, number as u8).unwrap();
            }
            if faulty && random.chance(0.03) {
                let at = network.now() + Picos(random.below(30_000_000));
                network.inject_at(node, pick(random, &FAULTS), at).unwrap();
            }
            if faulty && random.chance(0.02) {
                network.inject_after(node, pick(random, &FAULTS), random.below(100)).unwrap();
            }
        }
        let most = pick(random, &[10_000, 1_000_000, 20_000_000]);
        network.run_until(network.now() + Picos(random.below(most)));
        if random.chance(0.5) {
            packets.extend(receive_all(&mut network, one));
            packets.extend(receive_all(&mut network, other));
        }
    }
    let counts = [one, other].map(|node| (network.statistics(node).unwrap(), network.end(node).unwrap().credit()));
    // Idle NULLs have not been recorded yet.
    for node in [one, other] {
        network.wake_for_test(node);
    }
    (core::mem::take(network.observer()), packets, format!("{counts:?}"))
}

#[test]
fn both_engines_do_the_same_at_the_same_times() {
    for seed in seeds(80) {
        assert_same(seed, &play(seed, Engine::Fast), &play(seed, Engine::Reference));
        assert_same_packets(seed, &play(seed, Engine::Fast), &play(seed, Engine::Reference));
    }
}

fn assert_same(seed: u64, played: &Played<Diary>, expected: &Played<Diary>) {
    let ((diary, packets, counts), (expected, expected_packets, expected_counts)) = (played, expected);
    // The earliest difference is the cause of the others.
    let differences = expected.left.iter().filter_map(|(place, expected)| {
        let left = &diary.left[place];
        let at = (0..expected.len().max(left.len())).find(|at| left.get(*at) != expected.get(*at))?;
        let time = left.get(at).into_iter().chain(expected.get(at)).map(|(time, _)| *time).min();
        let show = |codes: &[(u64, Code)]| format!("{:?}", codes.get(at.saturating_sub(4)..(at + 2).min(codes.len())));
        Some((time, place, show(left), show(expected)))
    });
    assert_eq!(differences.min(), None, "seed {seed}: left, and expected");
    for (place, expected) in &expected.events {
        let events = diary.events.get(place).map_or(&[][..], |events| events);
        let wrong = (0..expected.len().max(events.len())).find(|at| events.get(*at) != expected.get(*at));
        assert_eq!(wrong.map(|at| (at, events.get(at), expected.get(at))), None, "seed {seed}, {place:?}");
    }
    assert_same_packets(
        seed,
        &((), packets.clone(), counts.clone()),
        &((), expected_packets.clone(), expected_counts.clone()),
    );
}

fn assert_same_packets(seed: u64, ((), packets, counts): &Played<()>, ((), expected, expected_counts): &Played<()>) {
    let wrong = packets.iter().zip(expected).position(|(packet, expected)| packet != expected);
    assert_eq!(wrong.map(|at| (at, &packets[at], &expected[at])), None, "seed {seed}");
    assert_eq!(packets.len(), expected.len(), "seed {seed}");
    let wrong = counts.lines().zip(expected_counts.lines()).find(|(counts, expected)| counts != expected);
    assert_eq!(wrong, None, "seed {seed}");
}

/// Builds a random network of routers: a tree or a ring, three nodes at each router.
fn routed<O: Observer + Default>(random: &mut Random, engine: Engine) -> (Network<O>, Vec<NodeId>) {
    let mut builder = Builder::new();
    builder.engine(engine);
    let routers = 1 + random.below(3) as usize;
    let (is_ring, is_uniform) = (routers > 2 && random.chance(0.3), random.chance(0.5));
    let odd = random.chance(0.3);
    let link = |random: &mut Random| {
        let link = random_link(random);
        let rates = if is_uniform { [200_000_000; 2] } else { link.rates };
        let ends = if odd { link.ends } else { Default::default() };
        LinkSettings { rates, ends, bit_errors: random_errors::<O>(random), ..link }
    };
    let (mut nodes, mut ids): (_, Vec<RouterId>) = (Vec::new(), Vec::new());
    for at in 0..routers {
        let settings = RouterSettings {
            ports: 6,
            when_down: pick(random, &[WhenDown::Spill, WhenDown::Wait]),
            watchdog: random.chance(0.3).then(|| Picos(100_000_000 + random.below(200_000_000))),
            latency: pick(random, &[Latency::SPW_10X, Latency::SPW_10X, Latency::NONE]),
            start_on_request: random.chance(0.05),
        };
        ids.push(builder.router(&format!("router {at}"), settings).unwrap());
        for port in 1..=3u8 {
            let node = NodeSettings {
                packets: pick(random, &[10_000, 10_000, 300, 60]),
                bytes: pick(random, &[1 << 20, 1 << 20, 5_000, 700]),
                sink: if random.chance(0.98) { Sink::AtOnce } else { Sink::Rate(3_000_000) },
            };
            nodes.push(builder.node(&format!("node {at} {port}"), node).unwrap());
            let mut link = link(random);
            // A port that nothing starts.
            link.ends[0].disabled = random.chance(0.05);
            builder.link(nodes[nodes.len() - 1], (ids[at], port), &link).unwrap();
        }
        if at > 0 {
            builder.link((ids[at - 1], 4), (ids[at], 5), &link(random)).unwrap();
        }
        if random.chance(0.2) {
            builder.watchdog(ids[at], 1, Some(Picos(1_000_000 + random.below(50_000_000)))).unwrap();
        }
        let group = Route { outputs: 0b1110, delete_header: random.chance(0.5), priority: random.chance(0.5) };
        builder.route(ids[at], 40, group).unwrap();
        builder.route(ids[at], 41, Route { outputs: 0b11_0000, ..group }).unwrap();
    }
    if is_ring {
        builder.link((ids[routers - 1], 4), (ids[0], 5), &link(random)).unwrap();
    }
    let mut network = builder.build_with(O::default()).unwrap();
    for id in ids {
        network.set_configuration(id, ConfigurationPort::new(CONFIGURATION_KEY)).unwrap();
    }
    (network, nodes)
}

/// Sends a packet through a routed network: mostly to a node, sometimes to a configuration port or nowhere.
fn send_through<O: Observer>(network: &mut Network<O>, nodes: &[NodeId], number: usize, random: &mut Random) {
    let hops = pick(random, &[0, 0, 0, 1, 1, 2, 3]);
    let mut bytes: Vec<u8> = (0..hops).map(|_| 4 + random.below(2) as u8).collect();
    match random.below(60) {
        0 => bytes.push(random.bits() as u8),
        1 => {
            // A command that is read, and one that is too short.
            bytes.extend([0, 0xFE, 1, 0x4C, CONFIGURATION_KEY, 0x67, 0, 1, 0, 0, 0, 4, 8, 0, 0, 4]);
            bytes.push(crate::rmap::Crc::Standard.of(&bytes[hops + 1..]));
            if random.chance(0.3) {
                bytes.truncate(hops + 1 + random.below(17) as usize);
            }
        }
        2..10 => bytes.extend([40, 40]),
        _ => bytes.push(1 + random.below(3) as u8),
    }
    bytes.extend(packet(number, random_length(random)));
    let end = if random.chance(0.05) { EndOfPacket::Eep } else { EndOfPacket::Eop };
    _ = network.send(pick(random, nodes), &bytes, end);
}

/// Runs a network up to a time, and looks at each stop whether it is one for an arrival, and in time.
fn run_with_stops<O: Observer>(network: &mut Network<O>, nodes: &[NodeId], until: Picos, early: Picos) {
    // The fastest link that runs may be the slowest one of all.
    let bit_max = network.ports.iter().map(|port| port.bit_run).max().unwrap_or(0);
    let waiting = |network: &Network<O>| -> Vec<usize> {
        nodes.iter().step_by(2).map(|node| network.nodes[node.0].incoming.packets()).collect()
    };
    while network.now() < until {
        let (before, began) = (waiting(network), network.now());
        network.run_until_arrival(until, began + early);
        let arrivals: Vec<Picos> = (nodes.iter().step_by(2).zip(before))
            .filter_map(|(node, before)| network.nodes[node.0].incoming.nth(before).map(|header| header.ended))
            .collect();
        let earliest = arrivals.iter().min().map(|first| (*first).max(began + early));
        let is_in_time = earliest.is_none_or(|earliest| network.now() <= earliest + Picos(160 * bit_max));
        assert!(is_in_time, "{earliest:?} {:?}", network.now());
        assert!(network.now() == until || earliest.is_some_and(|earliest| network.now() >= earliest));
    }
}

fn play_routed<O: Observer + Default>(seed: u64, engine: Engine) -> Played<O> {
    let random = &mut Random::new(seed);
    let (mut network, nodes) = routed(random, engine);
    let (busy, faulty, coded) = (random.unit() * 0.97, random.chance(0.2), random.chance(0.3));
    let stops = random.chance(0.5);
    nodes.iter().step_by(2).for_each(|node| network.watch(*node));
    let mut packets = Vec::new();
    for number in 0..30 {
        while random.chance(busy) {
            send_through(&mut network, &nodes, number, random);
        }
        if coded && random.chance(0.3) {
            network.time_code(pick(random, &nodes), number as u8).unwrap();
        }
        if faulty && random.chance(0.1) {
            let at = network.now() + Picos(random.below(30_000_000));
            network.inject_at(pick(random, &nodes), pick(random, &FAULTS), at).unwrap();
        }
        let most = pick(random, &[100_000, 3_000_000, 20_000_000, 100_000_000]);
        let until = network.now() + Picos(random.below(most));
        let early = Picos(pick(random, &[0, 1_000_000, 10_000_000]));
        // What stops for arrivals does the same as what does not.
        match engine {
            Engine::Fast if stops => run_with_stops(&mut network, &nodes, until, early),
            _ => network.run_until(until),
        }
        if random.chance(0.5) {
            for node in &nodes {
                packets.extend(receive_all(&mut network, *node));
            }
        }
    }
    let mut counts = String::new();
    for port in 0..network.ports.len() {
        let place = network.place(port);
        let end = network.end(place).unwrap();
        let (credit, promised, filled) = (end.credit(), end.promised(), end.filled());
        counts += &format!(
            "{place:?} {:?} {credit} {promised} {filled} {:?}\n",
            network.statistics(place),
            network.faults(place)
        );
        network.wake(port, network.now);
    }
    (core::mem::take(network.observer()), packets, counts)
}

#[test]
fn both_engines_do_the_same_in_networks() {
    for seed in seeds(320).step_by(4) {
        assert_same(seed, &play_routed(seed, Engine::Fast), &play_routed(seed, Engine::Reference));
        assert_same_packets(seed, &play_routed(seed, Engine::Fast), &play_routed(seed, Engine::Reference));
    }
}

/// A random network: routers in a tree or a ring, three ports each for nodes, links with bit errors and faults.
struct Jungle {
    network: Network,
    nodes: Vec<NodeId>,
    routers: usize,
    watchdog: bool,
}

fn jungle(random: &mut Random) -> Jungle {
    let mut builder = Builder::new();
    let (routers, watchdog) = (1 + random.below(4) as usize, random.chance(0.7));
    let is_ring = routers > 2 && random.chance(0.5);
    let bit_errors = |random: &mut Random| {
        let rate = pick(random, &[0.0, 0.0, 1e-6, 1e-5, 1e-4]);
        Some(BitErrors { rate, seed: random.bits() })
    };
    let link = |random: &mut Random| LinkSettings {
        bit_errors: [bit_errors(random), bit_errors(random)],
        ..random_link(random)
    };
    let mut nodes = Vec::new();
    let mut ids: Vec<RouterId> = Vec::new();
    for at in 0..routers {
        let settings = RouterSettings {
            ports: 5,
            when_down: pick(random, &[WhenDown::Spill, WhenDown::Wait]),
            watchdog: watchdog.then_some(Picos(100_000_000 + random.below(200_000_000))),
            ..RouterSettings::default()
        };
        ids.push(builder.router(&format!("router {at}"), settings).unwrap());
        for port in 1..=3u8 {
            let node = NodeSettings { packets: 200, bytes: 20_000, ..NodeSettings::default() };
            nodes.push(builder.node(&format!("node {at} {port}"), node).unwrap());
            builder.link(nodes[nodes.len() - 1], (ids[at], port), &link(random)).unwrap();
        }
        if at > 0 {
            builder.link((ids[at - 1], 4), (ids[at], 5), &link(random)).unwrap();
        }
    }
    if is_ring {
        builder.link((ids[routers - 1], 4), (ids[0], 5), &link(random)).unwrap();
    }
    Jungle { network: builder.build().unwrap(), nodes, routers, watchdog }
}

/// Sends a packet on a path of one to six hops. All bytes of its cargo are the same, and say how many there are.
fn send_randomly(jungle: &mut Jungle, random: &mut Random) -> bool {
    let hops = random.below(5);
    let mut bytes: Vec<u8> = (0..hops).map(|_| 4 + random.below(2) as u8).collect();
    bytes.push(1 + random.below(3) as u8);
    if random.chance(0.02) {
        bytes.insert(0, random.bits() as u8);
    }
    let from = pick(random, &jungle.nodes);
    let length = random_length(random).clamp(1, 127) as u8;
    bytes.extend((0..=length).map(|_| length | 0x80));
    jungle.network.send(from, &bytes, EndOfPacket::Eop).is_ok()
}

fn check(jungle: &mut Jungle, seed: u64) -> (u64, u64) {
    let (mut whole, mut wrong) = (0, 0);
    for node in jungle.nodes.clone() {
        for packet in receive_all(&mut jungle.network, node) {
            let first = packet.bytes[0];
            let is_right =
                packet.bytes.len() == usize::from(first & 0x7F) + 1 && packet.bytes.iter().all(|byte| *byte == first);
            whole += u64::from(packet.header.end == EndOfPacket::Eop);
            wrong += u64::from(packet.header.end == EndOfPacket::Eop && !is_right && first & 0x80 != 0);
        }
        let end = jungle.network.end(node).unwrap();
        assert!(end.credit() <= CREDIT_MAX && end.promised() <= CREDIT_MAX, "seed {seed}");
    }
    (whole, wrong)
}

fn unnoticed(network: &Network) -> u64 {
    network.ports.iter().map(|port| port.unnoticed).sum()
}

fn bounded(network: &Network) -> bool {
    let ports = network.ports.iter().all(|port| port.inbound.len() <= 2_000 && port.planned.len() <= 64);
    let inputs = network.routers.iter().flat_map(|router| &router.inputs);
    ports && inputs.into_iter().all(|input| input.stored.len() <= 3 * 100)
}

#[test]
fn packets_arrive_whole_or_say_why_not_and_links_come_back() {
    let (mut packets, mut circles) = (0, 0);
    for seed in seeds(80) {
        let random = &mut Random::new(seed);
        let mut jungle = jungle(random);
        let (mut whole, mut wrong) = (0, 0);
        for _ in 0..10 {
            for _ in 0..random.below(20) {
                send_randomly(&mut jungle, random);
            }
            if random.chance(0.3) {
                let place = pick(random, &jungle.nodes);
                jungle.network.inject(place, pick(random, &FAULTS)).unwrap();
            }
            let step = random.below(60_000_000);
            jungle.network.run_until(jungle.network.now() + Picos(step));
            let (more, worse) = check(&mut jungle, seed);
            (whole, wrong) = (whole + more, wrong + worse);
            assert!(bounded(&jungle.network), "seed {seed}");
        }
        // No more errors: all links run again if they have room for an FCT, and packets go on or say that they never will.
        for port in &mut jungle.network.ports {
            port.flips = None;
        }
        for _ in 0..60 {
            let now = jungle.network.now();
            jungle.network.run_until(now + micros(500));
            let (more, worse) = check(&mut jungle, seed);
            (whole, wrong) = (whole + more, wrong + worse);
            if jungle.network.next_event().is_none() {
                break;
            }
        }
        for pair in jungle.network.ports.chunks(2) {
            let is_full = |port: &port::Port| port.end.filled() + 8 > port.end.settings().buffer;
            assert!(pair.iter().all(port::Port::runs) || pair.iter().any(is_full), "seed {seed}");
        }
        let stands =
            jungle.network.routers.iter().any(|router| router.inputs.iter().any(|input| !input.stored.is_empty()))
                || jungle.nodes.iter().any(|node| jungle.network.queued(*node).0 > 0);
        let says = jungle.network.deadlock().is_some();
        assert_eq!(stands, says, "seed {seed}: {:?} {}", jungle.network.deadlock(), unnoticed(&jungle.network));
        assert!(!(says && jungle.watchdog), "seed {seed}: {} routers", jungle.routers);
        assert!(wrong == 0 || unnoticed(&jungle.network) > 0, "seed {seed}: {wrong} packets altered");
        (packets, circles) = (packets + whole, circles + u64::from(says));
    }
    assert!(packets > 0 && circles > 0, "{packets} packets, {circles} circles");
}
