//! A client finds servers: over a network that loses and doubles datagrams, within its budget, and whatever strangers say.

use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer, Random};
use hodo_pva::discovery::{Finder, FinderConfig, Found, LOCAL_GROUP, Searcher, SearcherCommand as Ask, Subnet, Target};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, DiscoveryConfig, Server, ServerConfig};
use hodo_pva::wire::discovery::{Beacon, ResponseFront, Search, SearchFront, UNICAST};
use hodo_pva::wire::{HEADER, Header, Side};
use hodo_pva::{Limits, Order, Reader, Scalar, Value, Writer};
use hodo_sim::{BROADCAST, Death, Network, Site, Transport, World};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const LIMITS: Limits = Limits::DEFAULT;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn server(number: u8, names: impl Iterator<Item = String>) -> Server {
    let discovery = DiscoveryConfig { beacons: vec![Address::Node(BROADCAST)], ..DiscoveryConfig::default() };
    let mut server = Server::new(ServerConfig { guid: [number; 12], discovery, ..ServerConfig::default() });
    for name in names {
        server.serve(name, Value::of(Normative::scalar(Scalar::F64).build()), Access::ReadOnly);
    }
    server
}

fn everyone() -> FinderConfig {
    FinderConfig {
        targets: vec![Target { address: Address::Node(BROADCAST), is_unicast: false }],
        ..FinderConfig::default()
    }
}

fn search(world: &mut World, client: Site<Searcher>, number: u32, name: &str, all: bool) {
    world.command(client, Ask::Search { number, name: name.into(), all });
}

/// Runs the world for a time, and returns what the client was told but beacons.
fn told(world: &mut World, client: Site<Searcher>, span: Duration) -> Vec<Found> {
    let (end, mut all) = (world.now() + span, Vec::new());
    while world.turn(end).is_some() {
        while let Some(found) = world.take_event(client) {
            all.extend((!matches!(found, Found::Beacon { .. })).then_some(found));
        }
    }
    all
}

#[test]
fn every_name_is_found_where_datagrams_are_lost_and_doubled() {
    for seed in 0..20 {
        let lossy = Network { loss: 0.3, duplicate: 0.2, jitter: Duration::from_millis(2), seed, ..Network::default() };
        let mut world = World::new(&lossy);
        let names = |number: u32| (0..1000).filter(move |n| n % 3 == number).map(|n| format!("device:{n}:value"));
        let servers = [0, 1].map(|number| world.add(server(number as u8, names(number))).node);
        let client = world.add(Searcher::new(FinderConfig { seed, ..everyone() }));
        (0..1000).for_each(|number| search(&mut world, client, number, &format!("device:{number}:value"), false));
        let mut found: BTreeMap<u32, Address> = BTreeMap::new();
        for event in told(&mut world, client, seconds(300)) {
            let Found::Name { number, server, .. } = event else { panic!("seed {seed}: {event:?}") };
            assert_eq!(found.insert(number, server), None, "seed {seed}: {number} was found twice");
        }
        for number in 0..1000 {
            let expected = servers.get(number as usize % 3).map(|node| Address::Node(*node));
            assert_eq!(found.get(&number), expected.as_ref(), "seed {seed}: {number}");
        }
        assert_eq!(world.machine(client).expect("it runs").finder().searching(), 333);
    }
}

#[test]
fn a_hundred_thousand_absent_names_cost_no_more_than_the_budget_and_each_has_its_turn() {
    const NAMES: u32 = 100_000;
    for bytes_per_second in [1_000_000, 200_000] {
        let config = FinderConfig { bytes_per_second, ..everyone() };
        let mut searcher = Searcher::new(config);
        let mut now = Instant::from_nanos(7_000_000_000);
        for number in 0..NAMES {
            let name = format!("absent:device:{number}");
            searcher.handle(now, Input::Command(Ask::Search { number, name, all: false }));
        }
        let (start, mut asked, mut out) = (now, vec![0_u32; NAMES as usize], Outbox::new());
        let mut outputs = 0_u64;
        while now < start + seconds(120) {
            out.clear();
            match searcher.poll(now, &mut out) {
                Output::Send(_) => {
                    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
                    assert!(bytes.len() <= 1400);
                    let order = Header::decode(bytes.first_chunk().expect("a header")).expect("a header").order;
                    let search = Search::decode(&mut Reader::new(&bytes[HEADER..], order, &LIMITS)).expect("a search");
                    search.channels().for_each(|(cid, _)| asked[(cid % (1 << 22)) as usize] += 1);
                }
                Output::Idle(Some(next)) => {
                    assert!(next > now, "it waits");
                    now = next;
                    searcher.handle(now, Input::Elapsed);
                }
                Output::Idle(None) => panic!("it gave up"),
                _ => outputs += 1,
            }
        }
        let counters = searcher.finder().counters();
        assert!(counters.bytes <= bytes_per_second * 121, "{counters:?}");
        let (least, most) = (asked.iter().min().copied(), asked.iter().max().copied());
        // 4 MB a round: with less than that in 30 s the names take turns.
        assert!(
            least >= Some(4) && most.zip(least).is_some_and(|(most, least)| most - least <= 3),
            "{least:?} {most:?}"
        );
        assert!(outputs < 3 * counters.datagrams);
    }
}

#[test]
fn a_server_that_starts_is_found_within_a_second_by_its_beacon_however_long_the_names_had_been_absent() {
    let mut world = World::new(&Network { delay: Duration::from_millis(1), ..Network::default() });
    let late = world.add_site::<Server>();
    let client = world.add(Searcher::new(everyone()));
    for number in 0..2000 {
        search(&mut world, client, number, &format!("late:{number}"), false);
    }
    assert!(told(&mut world, client, seconds(600)).is_empty());
    for life in 0..3 {
        world.start(late, server(life, (0..2000).map(|number| format!("late:{number}"))));
        assert_eq!(told(&mut world, client, seconds(1)).len(), 2000, "life {life}");
        world.kill(late.node, Death::Reset);
        for number in 0..2000 {
            search(&mut world, client, number, &format!("late:{number}"), false);
        }
        assert!(told(&mut world, client, seconds(100)).is_empty());
    }
}

#[test]
fn beacons_of_many_new_servers_cause_no_storm() {
    let config = FinderConfig { beacons_max: 100, ..everyone() };
    let mut searcher = Searcher::new(config);
    let start = Instant::from_nanos(9_000_000_000);
    let search = Ask::Search { number: 1, name: "absent".into(), all: false };
    searcher.handle(start, Input::Command(search));
    let mut now = start;
    let mut random = Random::new(3);
    for number in 0..50_000_u32 {
        // Fifty seconds of forged beacons, each of another server.
        now = start + Duration::from_millis(number.into());
        let mut writer = Writer::new(Side::Server, Order::Big);
        let mut guid = [0; 12];
        guid.fill_with(|| random.bits() as u8);
        let (address, port) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 5075);
        let beacon = Beacon { guid, flags: 0, sequence: 0, changes: 0, address, port, protocol: b"tcp", state: None };
        beacon.encode(&mut writer);
        searcher.admits(now, &Ends::nodes(0, number), &writer.to_vec(), &mut Outbox::new());
        drain(&mut searcher, now);
    }
    let finder = searcher.finder();
    assert_eq!((finder.servers(), finder.counters().beacons), (100, 50_000));
    // Eight times by the schedule, and twice because of the new servers.
    assert!(finder.counters().datagrams <= 12, "{:?}", finder.counters());
    let mut gone = 0;
    while now < start + seconds(800) {
        now = now + seconds(1);
        gone += drain(&mut searcher, now).iter().filter(|found| matches!(found, Found::Gone { .. })).count();
    }
    assert_eq!((gone, searcher.finder().servers()), (100, 0));
}

#[test]
fn a_beacon_is_of_the_address_that_it_names_or_that_it_came_from() {
    for (stated, sender, server) in [
        ("0.0.0.0", "10.0.0.9:40000", "10.0.0.9:5075"),
        ("10.0.0.7", "10.0.0.9:40000", "10.0.0.7:5075"),
        ("::", "[2001:db8::9]:40000", "[2001:db8::9]:5075"),
        ("::", "10.0.0.9:40000", "10.0.0.9:5075"),
        // What is local to a link is reached through the interface that the beacon came by.
        ("::", "[fe80::9%3]:40000", "[fe80::9%3]:5075"),
        ("fe80::7", "[fe80::9%3]:40000", "[fe80::7%3]:5075"),
        ("2001:db8::7", "[fe80::9%3]:40000", "[2001:db8::7]:5075"),
    ] {
        let mut finder = Finder::new(everyone(), Peer(7));
        let mut writer = Writer::new(Side::Server, Order::Little);
        let (address, port) = (stated.parse().expect("an address"), 5075);
        let (guid, protocol) = ([7; 12], &b"tcp"[..]);
        Beacon { guid, flags: 0, sequence: 0, changes: 0, address, port, protocol, state: None }.encode(&mut writer);
        finder.datagram(Instant::from_nanos(1), &from(sender), &writer.to_vec());
        let Some(Found::Beacon { server: found, .. }) = finder.event() else { panic!("{stated} from {sender}") };
        assert_eq!(found, Address::Tcp(socket(server)), "{stated} from {sender}");
    }
}

/// Carries out what the machine wants now, and returns what it reports.
fn drain(searcher: &mut Searcher, now: Instant) -> Vec<Found> {
    let (mut out, mut events) = (Outbox::new(), Vec::new());
    loop {
        out.clear();
        match searcher.poll(now, &mut out) {
            Output::Event(event) => events.push(event),
            Output::Idle(Some(next)) if next <= now => searcher.handle(now, Input::Elapsed),
            Output::Idle(_) => return events,
            _ => {}
        }
    }
}

#[test]
fn a_name_of_two_servers_is_found_once_and_warned_of_once_and_a_search_for_all_tells_both() {
    let mut world = World::new(&Network { duplicate: 0.5, ..Network::default() });
    let nodes = [1, 2].map(|number| world.add(server(number, ["shared".to_owned()].into_iter())).node);
    nodes.iter().for_each(|node| world.set_opening(*node, Transport::Datagram));
    let client = world.add(Searcher::new(everyone()));
    search(&mut world, client, 5, "shared", false);
    let found = told(&mut world, client, seconds(60));
    let addresses = nodes.map(Address::Node);
    match &found[..] {
        [Found::Name { number: 5, server: first, .. }, Found::Twice { number: 5, server: second }] => {
            assert!(addresses.contains(first) && addresses.contains(second) && first != second);
        }
        other => panic!("{other:?}"),
    }
    search(&mut world, client, 5, "shared", true);
    let found = told(&mut world, client, Duration::from_millis(100));
    for address in &addresses {
        let is_it = |one: &Found| matches!(one, Found::Name { number: 5, server, .. } if server == address);
        assert!(found.iter().any(is_it), "{found:?}");
    }
    world.command(client, Ask::Cancel { number: 5 });
    told(&mut world, client, Duration::from_millis(100));
    world.command(client, Ask::List);
    let found = told(&mut world, client, seconds(40));
    for address in &addresses {
        let is_it = |one: &Found| matches!(one, Found::Server { server, .. } if server == address);
        assert!(found.iter().any(is_it), "{found:?}");
    }
    assert!(found.iter().all(|one| matches!(one, Found::Server { .. })), "the search has ended: {found:?}");
}

fn socket(text: &str) -> SocketAddr {
    text.parse().expect("an address and port")
}

fn from(text: &str) -> Ends {
    Ends::new(Address::Udp(socket("10.0.0.1:40000")), Address::Udp(socket(text)))
}

/// Returns the datagrams that a finder sends after so long, with where to.
fn sent(finder: &mut Finder, now: Instant) -> Vec<(Address, Vec<u8>)> {
    finder.elapsed(now);
    let (mut out, mut all, mut open) = (Outbox::new(), Vec::new(), None);
    while let Some(output) = finder.poll::<()>(&mut out) {
        match output {
            Output::Open(Peer(7), address) => open = Some(address),
            Output::Send(Peer(7)) => {
                let bytes = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
                all.push((open.clone().expect("it is open"), bytes));
                out.clear();
            }
            Output::Close(Peer(7)) => open = None,
            other => panic!("{other:?}"),
        }
    }
    all
}

/// Returns the sequence, flags, port and channels of a search.
fn read(bytes: &[u8]) -> (u32, u8, u16, Vec<(u32, String)>) {
    let header = Header::decode(bytes.first_chunk().expect("a header")).expect("a header");
    let search = Search::decode(&mut Reader::new(&bytes[HEADER..], header.order, &LIMITS)).expect("a search");
    let text = |(cid, name): (u32, &[u8])| (cid, String::from_utf8_lossy(name).into_owned());
    (search.sequence, search.flags, search.port, search.channels().map(text).collect())
}

fn response(sequence: u32, address: &str, port: u16, cids: &[u32]) -> Vec<u8> {
    let mut writer = Writer::new(Side::Server, Order::Little);
    let address = address.parse().expect("an address");
    let front = ResponseFront { guid: [9; 12], sequence, address, port, protocol: "tcp", found: true };
    front.encode(cids.iter().copied(), &mut writer);
    writer.to_vec()
}

#[test]
fn only_what_was_asked_for_is_found_and_a_late_answer_finds_no_other_name() {
    let group = Address::UdpFrom(40_001, (LOCAL_GROUP, 5076).into());
    let targets = [("10.0.0.255:5076", false), ("192.0.2.9:5076", true)]
        .map(|(to, is_unicast)| Target { address: Address::UdpFrom(40_000, socket(to)), is_unicast });
    let near = vec![Subnet::new("10.0.0.1".parse().unwrap(), 24)];
    let config =
        FinderConfig { targets: targets.to_vec(), from: 40_000, group: Some(group.clone()), near, ..everyone() };
    let mut finder = Finder::new(config, Peer(7));
    let mut now = Instant::from_nanos(1_000_000_000);
    finder.search(now, 3, "first", false);
    assert_eq!(finder.deadline(), Some(now + Duration::from_millis(10)));
    now = now + Duration::from_millis(10);
    let datagrams = sent(&mut finder, now);
    assert_eq!(
        datagrams.iter().map(|(to, _)| to).collect::<Vec<_>>(),
        targets.iter().map(|to| &to.address).collect::<Vec<_>>()
    );
    let (sequence, flags, port, channels) = read(&datagrams[0].1);
    assert_eq!((flags, read(&datagrams[1].1).1, port), (0, UNICAST, 40_000));
    let [(cid, name)] = &channels[..] else { panic!("{channels:?}") };
    assert_eq!(name, "first");

    // Forged: another number of the search, or of the name; not from a server of TCP; from nowhere.
    for wrong in [
        response(sequence ^ 2, "0.0.0.0", 5075, &[*cid]),
        response(sequence, "0.0.0.0", 5075, &[cid ^ 1, cid ^ (1 << 25)]),
        response(sequence, "0.0.0.0", 0, &[*cid]),
        response(sequence, "224.1.1.1", 5075, &[*cid]),
    ] {
        finder.datagram(now, &from("10.0.0.9:5076"), &wrong);
        assert_eq!(finder.event(), None, "{wrong:02x?}");
    }
    // Its number is another name's when the answer comes.
    finder.cancel(3);
    finder.search(now, 3, "second", false);
    finder.datagram(now, &from("10.0.0.9:5076"), &response(sequence, "0.0.0.0", 5075, &[*cid]));
    assert_eq!(finder.event(), None);
    now = now + Duration::from_millis(10);
    let datagrams = sent(&mut finder, now);
    let channels = read(&datagrams[0].1).3;
    assert_eq!((channels.len(), &*channels[0].1), (1, "second"));
    // The server states the address at which it is reached through its translator.
    finder.datagram(now, &from("10.0.0.9:5076"), &response(sequence, "203.0.113.5", 6000, &[channels[0].0]));
    let server = Address::Tcp(socket("203.0.113.5:6000"));
    assert_eq!(finder.event(), Some(Found::Name { number: 3, server, guid: [9; 12] }));
    assert_eq!((finder.searching(), finder.counters().unasked), (0, 4));

    // A search that the kernel gave to this client is passed on to the servers of the host.
    let mut writer = Writer::new(Side::Client, Order::Big);
    let address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let front = SearchFront { sequence: 1, flags: UNICAST, address, port: 9000, protocols: &["tcp"] };
    front.encode([(1, &b"any"[..])].into_iter(), &mut writer);
    finder.datagram(now, &from("10.0.0.9:9000"), &writer.to_vec());
    let datagrams = sent(&mut finder, now);
    assert_eq!((datagrams.len(), &datagrams[0].0, datagrams[0].1[3]), (1, &group, 22));
    assert_eq!(finder.counters().passed_on, 1);
}

#[test]
fn a_name_server_is_asked_for_all_names_when_it_is_connected_and_then_as_often_as_the_others() {
    let mut finder = Finder::new(FinderConfig::default(), Peer(7));
    let mut now = Instant::from_nanos(1_000_000_000);
    for number in 0..2500 {
        finder.search(now, number, &format!("name:{number}"), false);
    }
    finder.set_name_server(1, true);
    let asked = |finder: &mut Finder| {
        let mut writer = Writer::new(Side::Client, Order::Little);
        let mut all = Vec::new();
        while finder.write_searches(1, &mut writer) {
            let mut bytes = Vec::new();
            writer.move_to(&mut bytes);
            all.extend(read(&bytes).3);
        }
        all
    };
    assert_eq!(asked(&mut finder).len(), 2500);
    now = now + Duration::from_millis(10);
    assert!(sent(&mut finder, now).is_empty());
    let channels = asked(&mut finder);
    assert_eq!(channels.len(), 2500);
    let header = Header::decode(&response(0, "0.0.0.0", 0, &[])[..8].try_into().unwrap()).unwrap();
    let mut writer = Writer::new(Side::Client, Order::Little);
    finder.write_searches(1, &mut writer);
    // An answer without a port is that of the connection.
    let sequence = {
        finder.set_name_server(1, true);
        finder.write_searches(1, &mut writer);
        read(&writer.to_vec()).0
    };
    let answer = response(sequence, "0.0.0.0", 0, &[channels[7].0]);
    let decoded =
        hodo_pva::wire::discovery::SearchResponse::decode(&mut Reader::new(&answer[8..], header.order, &LIMITS));
    finder.response(&decoded.expect("an answer"), &Address::Tcp(socket("10.0.0.3:5075")));
    let server = Address::Tcp(socket("10.0.0.3:5075"));
    assert_eq!(finder.event(), Some(Found::Name { number: 7, server, guid: [9; 12] }));
    finder.set_name_server(1, false);
    assert!(!finder.write_searches(1, &mut writer));
}
