//! A server answers searches that come as datagrams: to where it may, no longer than it may, and no more than it may.

use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output};
use hodo_pva::discovery::{LOCAL_GROUP, Subnet};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Command, DiscoveryConfig, Server, ServerConfig};
use hodo_pva::wire::discovery::{
    Beacon, REPLY_REQUIRED, SearchFront, SearchResponse, UNICAST, decode_origin_tag, encode_origin_tag,
};
use hodo_pva::wire::{self, HEADER, Header, Side};
use hodo_pva::{Limits, Order, Reader, Scalar, TypeCache, Value, Writer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const GUID: [u8; 12] = *b"abcdefghijkl";
const PORT: u16 = 5076;
/// Where searches are passed on from.
const PASSING: u16 = 40_000;
const LIMITS: Limits = Limits::DEFAULT;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn socket(text: &str) -> SocketAddr {
    text.parse().expect("an address and port")
}

fn config() -> DiscoveryConfig {
    DiscoveryConfig {
        port: 5099,
        from: PORT,
        near: vec![Subnet::new(ip("10.0.0.1"), 24)],
        group: Some(Address::UdpFrom(PASSING, (LOCAL_GROUP, PORT).into())),
        ..DiscoveryConfig::default()
    }
}

struct Scene {
    server: Server,
    now: Instant,
}

/// The datagrams that a server sends after one input: straight back to the sender, and to other addresses.
#[derive(Debug, Default)]
struct Sent {
    back: Vec<u8>,
    others: Vec<(Address, Vec<u8>)>,
}

impl Sent {
    fn is_nothing(&self) -> bool {
        self.back.is_empty() && self.others.is_empty()
    }
}

fn bytes(out: &Outbox) -> Vec<u8> {
    out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect()
}

impl Scene {
    fn new(config: DiscoveryConfig) -> Self {
        let mut server = Server::new(ServerConfig {
            guid: GUID,
            own_channel: "server".into(),
            discovery: config,
            ..ServerConfig::default()
        });
        for name in ["first:long", "second:long", "x", "server"] {
            let value = Box::new(Value::of(Normative::scalar(Scalar::F64).build()));
            let serve = Command::Serve { name: name.into(), value, access: Access::ReadOnly };
            server.handle(Instant::ZERO, Input::Command(serve));
        }
        Scene { server, now: Instant::from_nanos(60_000_000_000) }
    }

    fn datagram(&mut self, ends: &Ends, datagram: &[u8]) -> Sent {
        let mut out = Outbox::new();
        assert!(!self.server.admits(self.now, ends, datagram, &mut out), "nothing is kept of a sender");
        Sent { back: bytes(&out), others: self.others() }
    }

    fn others(&mut self) -> Vec<(Address, Vec<u8>)> {
        let (mut out, mut others, mut open) = (Outbox::new(), Vec::new(), None);
        loop {
            out.clear();
            match self.server.poll(self.now, &mut out) {
                Output::Open(_, address) => open = Some(address),
                Output::Send(_) => others.push((open.clone().expect("it is open"), bytes(&out))),
                Output::Close(_) => open = None,
                Output::Event(event) => panic!("{event:?}"),
                Output::Idle(_) => break,
            }
        }
        assert_eq!(open, None, "no address stays a peer");
        others
    }

    fn ask(&mut self, from: &str, search: &[u8]) -> Sent {
        self.datagram(&ends(from, "10.0.0.1"), search)
    }
}

fn ends(from: &str, to: &str) -> Ends {
    Ends::new(Address::Udp((ip(to), PORT).into()), Address::Udp(socket(from)))
}

/// Writes a search with the number 0x01020304, for channels that are numbered from 10.
fn search(order: Order, flags: u8, reply: (&str, u16), names: &[&str]) -> Vec<u8> {
    let mut writer = Writer::new(Side::Client, order);
    let (address, port) = (ip(reply.0), reply.1);
    let front = SearchFront { sequence: 0x0102_0304, flags, address, port, protocols: &["tcp"] };
    front.encode(
        (10..).zip(names).map(|(cid, name)| (cid, name.as_bytes())).collect::<Vec<_>>().into_iter(),
        &mut writer,
    );
    writer.to_vec()
}

fn plain(names: &[&str]) -> Vec<u8> {
    search(Order::Little, 0, ("0.0.0.0", 7000), names)
}

/// Reads an answer: the sequence, the port, whether it was found, and the numbers.
fn answer(bytes: &[u8]) -> (u32, u16, bool, Vec<u32>) {
    let (address, answer) = addressed(bytes);
    assert!(address.is_unspecified());
    answer
}

/// Reads an answer that may state an address.
fn addressed(bytes: &[u8]) -> (IpAddr, (u32, u16, bool, Vec<u32>)) {
    let header = Header::decode(bytes.first_chunk::<HEADER>().expect("a header")).expect("a header");
    assert_eq!((header.from, header.command), (Side::Server, wire::Command::SearchResponse.code()));
    assert_eq!(header.size as usize, bytes.len() - HEADER, "one message a datagram");
    let mut reader = Reader::new(&bytes[HEADER..], header.order, &LIMITS);
    let response = SearchResponse::decode(&mut reader).expect("it is one");
    assert_eq!((response.guid, response.protocol), (GUID, &b"tcp"[..]));
    (response.address, (response.sequence, response.port, response.found, response.channels().collect()))
}

#[test]
fn the_names_that_are_served_are_answered_in_either_byte_order_and_the_others_are_not() {
    let mut scene = Scene::new(config());
    for order in [Order::Little, Order::Big] {
        let asked = search(order, 0, ("0.0.0.0", 7000), &["absent", "second:long", "first:long"]);
        let sent = scene.ask("10.0.0.9:7000", &asked);
        assert_eq!(answer(&sent.back), (0x0102_0304, 5099, true, vec![11, 12]));
        assert!(sent.others.is_empty());
    }
    assert!(scene.ask("10.0.0.9:7000", &plain(&["absent"])).is_nothing());
    // Every server has one of this name.
    assert!(scene.ask("10.0.0.9:7000", &plain(&["server"])).is_nothing());
    assert!(scene.ask("10.0.0.9:7000", &plain(&[])).is_nothing());
    let required = search(Order::Big, REPLY_REQUIRED, ("0.0.0.0", 7000), &["absent:as:can:be"]);
    assert_eq!(answer(&scene.ask("10.0.0.9:7000", &required).back), (0x0102_0304, 5099, false, vec![]));
    assert_eq!((scene.server.discovery().searches, scene.server.discovery().answers), (6, 3));
}

/// Written by hand from the sources of pvxs: big-endian on any host, IPv4 addresses mapped, the answer's address left open.
#[test]
fn a_search_of_pvxs_is_answered_as_pvxs_answers_it() {
    let mut asked = vec![0xCA, 2, 0x80, 3, 0, 0, 0, 0x30, 0x66, 0x6F, 0x6F, 0x78, 0, 0, 0, 0];
    asked.extend([0; 16]);
    asked.extend([0x1B, 0x58, 1, 3, b't', b'c', b'p', 0, 1, 0x12, 0x34, 0x56, 0x78, 10]);
    asked.extend(b"first:long");
    let sent = Scene::new(config()).ask("10.0.0.9:7000", &asked);
    let mut expected = vec![0xCA, 2, 0xC0, 4, 0, 0, 0, 0x2D];
    expected.extend(GUID);
    expected.extend([0x66, 0x6F, 0x6F, 0x78, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0]);
    expected.extend([0x13, 0xEB, 3, b't', b'c', b'p', 1, 0, 1, 0x12, 0x34, 0x56, 0x78]);
    assert_eq!(sent.back, expected);
}

#[test]
fn an_answer_goes_to_the_named_address_if_that_is_near_and_else_to_the_sender() {
    let mut scene = Scene::new(config());
    let mut to = |from: &str, reply: (&str, u16)| {
        let sent = scene.ask(from, &search(Order::Big, 0, reply, &["first:long"]));
        match sent.others.first() {
            None => (!sent.back.is_empty()).then(|| socket(from)),
            Some((Address::UdpFrom(PORT, to), _)) => Some(*to),
            other => panic!("{other:?}"),
        }
    };
    // Its own port, or another one on the same host.
    assert_eq!(to("10.0.0.9:7000", ("0.0.0.0", 7000)), Some(socket("10.0.0.9:7000")));
    assert_eq!(to("10.0.0.9:5076", ("0.0.0.0", 7000)), Some(socket("10.0.0.9:7000")));
    assert_eq!(to("10.0.0.9:5076", ("10.0.0.9", 7000)), Some(socket("10.0.0.9:7000")));
    // Another host of the subnet, or this one.
    assert_eq!(to("10.0.0.9:5076", ("10.0.0.77", 7000)), Some(socket("10.0.0.77:7000")));
    assert_eq!(to("127.0.0.1:5076", ("127.0.0.1", 7000)), Some(socket("127.0.0.1:7000")));
    // A stranger names a victim, or is behind an address translator that changes its address and port.
    assert_eq!(to("192.0.2.1:999", ("198.51.100.7", 7000)), Some(socket("192.0.2.1:999")));
    assert_eq!(to("192.0.2.1:999", ("0.0.0.0", 7000)), Some(socket("192.0.2.1:999")));
    assert_eq!(to("10.0.0.9:7000", ("0.0.0.0", 0)), Some(socket("10.0.0.9:7000")));
    assert_eq!(to("10.0.0.9:7000", ("224.0.0.128", 5076)), None);
}

#[test]
fn a_search_of_a_group_is_answered_with_an_address_at_which_the_server_listens() {
    let listens = ["127.0.0.1", "fd00:2::1", "fd00:1::1", "10.0.0.1"].map(ip).to_vec();
    let near = [("10.0.0.1", 24), ("fd00:1::1", 64), ("fd00:2::1", 64)].map(|(at, prefix)| Subnet::new(ip(at), prefix));
    let config = DiscoveryConfig { listens, near: near.to_vec(), interfaces: Vec::new(), ..config() };
    let mut scene = Scene::new(config);
    let mut stated = |from: &str, to: &str| addressed(&scene.datagram(&ends(from, to), &plain(&["first:long"])).back).0;
    // The answer leaves from an address of the link, where nobody listens.
    assert_eq!(stated("[fe80::9]:7000", "ff02::4321"), ip("fd00:2::1"));
    assert_eq!(stated("[fd00:1::9]:7000", "ff02::4321"), ip("fd00:1::1"));
    assert_eq!(stated("10.0.0.9:7000", "239.255.43.21"), ip("10.0.0.1"));
    // One that was asked for by its address answers from there, also behind a translator; and one that listens everywhere does so.
    assert_eq!(stated("[fd00:1::9]:7000", "fd00:1::1"), ip("0.0.0.0"));
    assert!(
        addressed(
            &Scene::new(self::config()).datagram(&ends("10.0.0.9:7000", "10.0.0.1"), &plain(&["first:long"])).back
        )
        .0
        .is_unspecified()
    );
}

#[test]
fn an_answer_is_longer_than_the_request_only_for_a_near_address_and_then_by_12_bytes() {
    let mut scene = Scene::new(config());
    let discovery = search(Order::Big, REPLY_REQUIRED, ("0.0.0.0", 7000), &[]);
    assert_eq!(discovery.len(), 41);
    let sent = scene.ask("10.0.0.9:7000", &discovery);
    assert_eq!((sent.others[0].0.ip(), sent.others[0].1.len()), (Some(socket("10.0.0.9:7000")), 49));
    assert!(scene.ask("192.0.2.1:7000", &discovery).is_nothing());
    assert_eq!(scene.ask("10.0.0.9:7000", &plain(&["x"])).others[0].1.len(), 53);
    assert!(scene.ask("192.0.2.1:7000", &plain(&["x"])).is_nothing());
    assert_eq!(scene.ask("192.0.2.1:7000", &plain(&["first:long"])).back.len(), 53);
    assert_eq!(scene.server.discovery().too_long, 2);
    // What pvlist of pvAccessCPP sends, which names no protocol.
    let mut pvlist = b"\xCA\x02\x00\x03\x1D\0\0\0\0\0\0\0\x81\0\0\0\0\0\0\0\0\0\0\0\0\0\xFF\xFF\0\0\0\0".to_vec();
    pvlist.extend(7000u16.to_le_bytes());
    pvlist.extend([0; 3]);
    let sent = scene.ask("10.0.0.9:7000", &pvlist);
    let [_passed_on, (to, reply)] = &sent.others[..] else { panic!("{sent:?}") };
    assert_eq!((to.ip(), pvlist.len(), reply.len()), (Some(socket("10.0.0.9:7000")), 37, 49));
    assert!(!answer(reply).2);
    assert_eq!(scene.ask("192.0.2.1:7000", &pvlist).others.len(), 1, "it is passed on, and not answered");
    assert_eq!(scene.server.discovery().too_long, 3);
}

#[test]
fn there_are_only_so_many_answers_a_second() {
    let mut scene = Scene::new(DiscoveryConfig { answers_per_second: 10, ..config() });
    let asked = plain(&["first:long"]);
    let answers = |scene: &mut Scene| (0..100).filter(|_| !scene.ask("10.0.0.9:7000", &asked).is_nothing()).count();
    assert_eq!(answers(&mut scene), 10);
    scene.now = scene.now + Duration::from_millis(500);
    assert_eq!(answers(&mut scene), 5);
    assert_eq!(scene.server.discovery().over_budget, 185);
}

#[test]
fn several_searches_of_a_datagram_are_answered_one_by_one() {
    let mut scene = Scene::new(config());
    let sent = scene.ask("10.0.0.9:7000", &[plain(&["first:long"]), plain(&["second:long"])].concat());
    assert_eq!(answer(&sent.back).3, [10]);
    assert_eq!(answer(&sent.others[0].1).3, [10]);
    // Neither another protocol's clients nor another server's answers are taken.
    let mut writer = Writer::new(Side::Client, Order::Big);
    let front = SearchFront { sequence: 1, flags: 0, address: ip("::"), port: 7000, protocols: &["tls"] };
    front.encode([(1, &b"first:long"[..])].into_iter(), &mut writer);
    assert!(scene.ask("10.0.0.9:7000", &writer.to_vec()).is_nothing());
    assert!(scene.ask("10.0.0.9:7000", &sent.back).is_nothing());
}

#[test]
fn a_search_to_this_host_alone_is_answered_and_passed_on_once() {
    let mut scene = Scene::new(config());
    let asked = search(Order::Little, UNICAST, ("0.0.0.0", 7000), &["first:long", "elsewhere"]);
    let sent = scene.ask("192.0.2.1:7000", &asked);
    assert_eq!(answer(&sent.back).3, [10]);
    let [(Address::UdpFrom(PASSING, to), passed)] = &sent.others[..] else { panic!("{sent:?}") };
    assert_eq!(*to, (LOCAL_GROUP, PORT).into());
    // A tag with the address that it was sent to, big-endian, and the search with the address for the answer.
    let mut tag = Reader::new(&passed[HEADER..], Order::Big, &LIMITS);
    assert_eq!(passed[..HEADER], [0xCA, 2, 0x80, 22, 0, 0, 0, 16]);
    assert_eq!(decode_origin_tag(&mut tag), Ok(ip("10.0.0.1")));
    assert_eq!(passed[24..], search(Order::Little, 0, ("192.0.2.1", 7000), &["first:long", "elsewhere"]));

    // What comes back from the group is not answered twice; another server answers it, and does not pass it on.
    let group = LOCAL_GROUP.to_string();
    assert!(scene.datagram(&ends(&format!("127.0.0.1:{PASSING}"), &group), passed).is_nothing());
    let mut other = Scene::new(config());
    let sent = other.datagram(&ends("127.0.0.1:5076", &group), passed);
    assert!(sent.back.is_empty());
    assert_eq!(sent.others[0].0, Address::UdpFrom(PORT, socket("192.0.2.1:7000")));
    assert_eq!((answer(&sent.others[0].1).3, sent.others.len()), (vec![10], 1));
}

#[test]
fn a_tag_is_taken_only_from_the_group_once_and_for_an_address_of_the_server() {
    let group = LOCAL_GROUP.to_string();
    let tag = |to: &str| {
        let mut writer = Writer::new(Side::Client, Order::Big);
        encode_origin_tag(ip(to), &mut writer);
        writer.to_vec()
    };
    let named = search(Order::Big, 0, ("10.0.0.9", 7000), &["first:long"]);
    let unnamed = plain(&["first:long"]);
    let mut scene = Scene::new(DiscoveryConfig { interfaces: vec![ip("10.0.0.1")], ..config() });
    let local = ends("127.0.0.1:5076", &group);
    for (ends, datagram, is_answered) in [
        (&local, [tag("10.0.0.1"), named.clone()].concat(), true),
        // As older servers pass it on.
        (&local, named.clone(), true),
        (&local, [tag("10.0.0.1"), tag("10.0.0.1"), named.clone()].concat(), false),
        (&local, [tag("10.0.7.1"), named.clone()].concat(), false),
        (&local, [tag("10.0.0.1"), unnamed].concat(), false),
        (&ends("10.0.0.9:7000", "10.0.0.1"), [tag("10.0.0.1"), named.clone()].concat(), false),
        (&ends("10.0.0.9:7000", "255.255.255.255"), named.clone(), false),
        (&ends("10.0.0.9:7000", "10.0.0.1"), named, true),
    ] {
        assert_eq!(!scene.datagram(ends, &datagram).is_nothing(), is_answered, "{ends:?} {datagram:02x?}");
    }
}

#[test]
fn ignored_senders_and_foreign_traffic_get_nothing() {
    let ignored = vec![socket("10.0.0.66:0"), socket("10.0.0.67:9")];
    let mut scene = Scene::new(DiscoveryConfig { ignored, ..config() });
    let asked = plain(&["first:long"]);
    for (from, is_answered) in [("10.0.0.66:7000", false), ("10.0.0.67:9", false), ("10.0.0.67:7000", true)] {
        assert_eq!(!scene.ask(from, &asked).is_nothing(), is_answered, "{from}");
    }
    for length in 0..asked.len() {
        assert!(scene.ask("10.0.0.9:7000", &asked[..length]).is_nothing());
    }
    let counters = scene.server.discovery();
    assert_eq!((counters.foreign, counters.answers), (2 + asked.len() as u64, 1));
}

#[test]
fn a_beacon_to_a_group_of_ipv6_states_an_address_at_which_the_server_listens() {
    let groups = ["[ff02::4321]:5076", "10.0.0.255:5076", "[fd00:1::9]:5076"];
    let beacons = groups.map(|to| Address::UdpFrom(PORT, socket(to))).to_vec();
    let stated = |listens: &[&str], address: &str| {
        let listens = listens.iter().map(|own| ip(own)).collect();
        let mut scene =
            Scene::new(DiscoveryConfig { beacons: beacons.clone(), listens, address: ip(address), ..config() });
        scene.server.handle(scene.now, Input::Elapsed);
        let address = |(_, beacon): &(Address, Vec<u8>)| {
            let mut reader = Reader::new(&beacon[HEADER..], Order::Big, &LIMITS);
            Beacon::decode(&mut reader, &mut TypeCache::new()).expect("it is one").address.to_string()
        };
        scene.others().iter().map(address).collect::<Vec<_>>()
    };
    // It leaves from an address of the link, where nobody listens; others leave from the server's address.
    let listed = ["::1", "10.0.0.1", "fd00:1::1"];
    assert_eq!(stated(&listed, "0.0.0.0"), ["fd00:1::1", "0.0.0.0", "0.0.0.0"]);
    assert_eq!(stated(&[], "0.0.0.0"), ["0.0.0.0"; 3], "it listens everywhere");
    assert_eq!(stated(&listed, "192.0.2.5"), ["192.0.2.5"; 3], "as it is told");
}

#[test]
fn beacons_come_every_15_s_ten_times_and_then_every_3_minutes() {
    let targets = ["10.0.0.255:5076", "192.0.2.9:5077"].map(|to| Address::UdpFrom(PORT, socket(to)));
    let config = DiscoveryConfig { beacons: targets.to_vec(), seed: 7, ..config() };
    let mut scene = Scene::new(config.clone());
    scene.now = Instant::ZERO;
    let mut sent: Vec<(Instant, u8, u16)> = Vec::new();
    while sent.len() < 13 {
        let mut out = Outbox::new();
        let Output::Idle(Some(next)) = scene.server.poll(scene.now, &mut out) else { panic!("a beacon is due") };
        scene.now = next;
        scene.server.handle(next, Input::Elapsed);
        let both = scene.others();
        assert_eq!(both.iter().map(|(to, _)| to.clone()).collect::<Vec<_>>(), targets);
        assert_eq!(both[0].1, both[1].1);
        let mut reader = Reader::new(&both[0].1[HEADER..], Order::Big, &LIMITS);
        let beacon = Beacon::decode(&mut reader, &mut TypeCache::new()).expect("it is one");
        assert_eq!((beacon.guid, beacon.port, beacon.address), (GUID, 5099, IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
        sent.push((next, beacon.sequence, beacon.changes));
        if sent.len() == 5 {
            scene.server.handle(next, Input::Command(Command::Remove { name: "x".into() }));
        }
    }
    assert_eq!(sent[0].0, Instant::ZERO, "the first comes at once");
    for (number, pair) in sent.windows(2).enumerate() {
        let (period, apart) = (if number < 10 { 15_000 } else { 180_000 }, (pair[1].0 - pair[0].0).as_millis());
        assert!((period - 1000..=period).contains(&apart), "{number}: {apart}");
        assert_eq!(pair[1].1, pair[0].1 + 1);
    }
    assert_eq!((sent[4].2, sent[5].2), (4, 5));
    // Two servers that start together do not stay together.
    let mut other = Scene::new(DiscoveryConfig { seed: 8, ..config });
    other.server.handle(Instant::ZERO, Input::Elapsed);
    other.others();
    let Output::Idle(Some(next)) = other.server.poll(Instant::ZERO, &mut Outbox::new()) else { panic!("idle") };
    assert_ne!(next, sent[1].0);
}
