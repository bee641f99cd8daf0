//! A client finds the servers of its channels, by datagrams and by name servers, and finds them again.

use crate::rig;

use hodo_machine::{Address, Instant, Peer};
use hodo_pva::client::{Client, ClientConfig, Command, Event, Kind};
use hodo_pva::discovery::{FinderConfig, Found, Target};
use hodo_pva::server::{Access, Server, ServerConfig};
use hodo_pva::wire::discovery::{ResponseFront, Search};
use hodo_pva::wire::{Command as Code, Inbound, Incoming, Side};
use hodo_pva::{Limits, Order, Session, SessionConfig, Writer};
use hodo_sim::{BROADCAST, Death, Network, Site, Transport, World};
use rig::{Far, Rig, sample};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const CHANNELS: u32 = 500;

fn name(channel: u32) -> String {
    format!("section:{channel}:position")
}

/// Returns a server of every second channel, or of all.
fn server(life: u8, which: impl Fn(u32) -> bool) -> Server {
    let mut config = ServerConfig { guid: [life; 12], ..ServerConfig::default() };
    config.discovery.beacons = vec![Address::Node(BROADCAST)];
    let mut server = Server::new(config);
    for channel in (0..CHANNELS).filter(|channel| which(*channel)) {
        server.serve(name(channel), sample(channel.into()), Access::ReadOnly);
    }
    server
}

fn client() -> Client {
    let target = Target { address: Address::Node(BROADCAST), is_unicast: false };
    Client::new(ClientConfig {
        search: FinderConfig { targets: vec![target], ..FinderConfig::default() },
        ..ClientConfig::default()
    })
}

/// Lets time pass; returns the channels that were opened and lost, and how many operations were done.
fn pass(world: &mut World, client: Site<Client>, span: Duration) -> (Vec<u32>, Vec<u32>, usize) {
    let (end, mut opened, mut lost, mut done) = (world.now() + span, Vec::new(), Vec::new(), 0);
    while world.turn(end).is_some() {
        while let Some(event) = world.take_event(client) {
            match event {
                Event::Connected { channel } => opened.push(channel),
                Event::Disconnected { channel, .. } => lost.push(channel),
                Event::Done { .. } => done += 1,
                _ => {}
            }
        }
    }
    opened.sort_unstable();
    (opened, lost, done)
}

fn open_all(world: &mut World, client: Site<Client>) {
    for channel in 0..CHANNELS {
        world.command(client, Command::Open { channel, name: name(channel), server: None });
        let prepare = Command::Prepare { operation: channel, channel, kind: Kind::Get, request: Box::default() };
        world.command(client, prepare);
        world.command(client, Command::Execute { operation: channel });
    }
}

#[test]
fn channels_are_found_opened_and_read_where_datagrams_are_lost_and_doubled() {
    for seed in 0..5 {
        let network =
            Network { loss: 0.2, duplicate: 0.2, jitter: Duration::from_millis(2), seed, ..Network::default() };
        let mut world = World::new(&network);
        let servers = [world.add(server(1, |n| n % 2 == 0)), world.add(server(2, |n| n % 2 == 1))];
        let client = world.add(client());
        open_all(&mut world, client);
        let (opened, lost, done) = pass(&mut world, client, Duration::from_secs(60));
        assert_eq!((opened, lost.len(), done), ((0..CHANNELS).collect(), 0, CHANNELS as usize), "seed {seed}");
        let machine = world.machine(client).expect("it runs");
        for channel in 0..CHANNELS {
            let node = servers[channel as usize % 2].node;
            assert_eq!(machine.server(channel), Some(&Address::Node(node)));
            assert_eq!(machine.value(channel).and_then(|value| value.get("value")?.as_f64()), Some(channel.into()));
        }
        assert_eq!(world.streams().len(), 2, "one connection to each server");
    }
}

/// The server comes back, or another one has its channels.
#[test]
fn channels_are_found_again_within_a_second() {
    let mut world = World::new(&Network { delay: Duration::from_millis(1), ..Network::default() });
    let [first, second] = [world.add_site::<Server>(), world.add_site()];
    world.start(first, server(1, |_| true));
    let client = world.add(client());
    open_all(&mut world, client);
    assert_eq!(pass(&mut world, client, Duration::from_secs(1)).0.len(), CHANNELS as usize);
    for life in 2..6 {
        let (down, up) = if life % 2 == 0 { (first, second) } else { (second, first) };
        world.kill(down.node, Death::Reset);
        let (opened, lost, _) = pass(&mut world, client, Duration::from_secs(20 * u64::from(life)));
        assert_eq!((opened.len(), lost.len()), (0, CHANNELS as usize));
        world.start(up, server(life, |_| true));
        assert_eq!(pass(&mut world, client, Duration::from_secs(1)).0.len(), CHANNELS as usize, "life {life}");
    }
}

/// A server that answers searches, and to which nobody can connect.
#[test]
fn a_server_that_cannot_be_reached_is_tried_ever_more_seldom() {
    let mut world = World::new(&Network { delay: Duration::from_millis(1), ..Network::default() });
    let site = world.add(server(1, |_| true));
    let client = world.add(client());
    world.set_allowance(client.node, hodo_sim::cost::Allowance { memory: 8 << 20, ..Default::default() });
    let nowhere = Network { partitions: vec![Instant::ZERO..Instant::MAX], ..Network::default() };
    world.set_network_of(Transport::Stream, client.node, site.node, &nowhere);
    open_all(&mut world, client);
    pass(&mut world, client, Duration::from_secs(300));
    let counters = world.machine(client).expect("it runs").finder().counters();
    assert!((2 * u64::from(CHANNELS)..30 * u64::from(CHANNELS)).contains(&counters.asked), "{counters:?}");
}

/// A name server that says where to find each channel: at the port of its number.
struct NameServer {
    link: Option<(Peer, Session, Inbound)>,
    asked: u32,
}

impl Far for NameServer {
    fn opened(&mut self, now: Instant, peer: Peer) {
        self.link = Some((peer, Session::new(Side::Server, SessionConfig::default(), now), Inbound::new(Side::Client)));
    }
    fn received(&mut self, now: Instant, _: Peer, bytes: &[u8]) {
        let Some((_, session, inbound)) = &mut self.link else { return };
        let (mut rest, limits) = (bytes, Limits::DEFAULT);
        while let Some(incoming) = inbound.next(&mut rest, &limits).expect("a client's stream") {
            match (session.take(now, &incoming).expect("it is allowed"), &incoming) {
                (hodo_pva::session::Step::Claim(_), _) => session.decide(&hodo_pva::wire::Status::OK),
                (_, Incoming::Message(message)) if Code::from_code(message.command) == Code::Search => {
                    let search = Search::decode(&mut message.reader(&limits)).expect("it is one");
                    for (cid, name) in search.channels() {
                        self.asked += 1;
                        let port =
                            name.strip_prefix(b"at:").and_then(|port| std::str::from_utf8(port).ok()?.parse().ok());
                        answer(&mut session.writer, search.sequence, port, cid);
                    }
                }
                _ => {}
            }
        }
    }
    fn closed(&mut self, _: Instant, _: Peer) {
        self.link = None;
    }
    fn say(&mut self, _: Instant) -> Option<(Peer, Vec<u8>)> {
        let (peer, session, _) = self.link.as_mut()?;
        let bytes = session.writer.to_vec();
        session.writer.flush(&mut hodo_machine::Outbox::new());
        (!bytes.is_empty()).then_some((*peer, bytes))
    }
}

fn answer(writer: &mut Writer, sequence: u32, port: Option<u16>, cid: u32) {
    let (address, found) = (IpAddr::V4(Ipv4Addr::LOCALHOST), port.is_some());
    let front = ResponseFront { guid: [9; 12], sequence, address, port: port.unwrap_or(0), protocol: "tcp", found };
    front.encode([cid].into_iter(), writer);
}

/// Either of the two far ends.
enum End {
    Names(Box<NameServer>),
    Channels(Box<(Server, Vec<hodo_pva::server::Event>)>),
}

impl Far for End {
    fn opened(&mut self, now: Instant, peer: Peer) {
        match self {
            End::Names(far) => far.opened(now, peer),
            End::Channels(far) => far.opened(now, peer),
        }
    }
    fn received(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        match self {
            End::Names(far) => far.received(now, peer, bytes),
            End::Channels(far) => far.received(now, peer, bytes),
        }
    }
    fn closed(&mut self, now: Instant, peer: Peer) {
        match self {
            End::Names(far) => far.closed(now, peer),
            End::Channels(far) => far.closed(now, peer),
        }
    }
    fn say(&mut self, now: Instant) -> Option<(Peer, Vec<u8>)> {
        match self {
            End::Names(far) => far.say(now),
            End::Channels(far) => far.say(now),
        }
    }
}

fn at(port: u16) -> Address {
    Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
}

#[test]
fn a_name_server_is_kept_and_says_where_channels_are() {
    let mut channels = Server::new(ServerConfig {
        session: SessionConfig { order: Order::Big, ..Default::default() },
        ..ServerConfig::default()
    });
    for name in ["at:2", "later"] {
        channels.serve(name.into(), sample(1.5), Access::ReadOnly);
    }
    let config = ClientConfig { name_servers: vec![at(1), at(1)], ..ClientConfig::default() };
    let far = vec![
        End::Names(Box::new(NameServer { link: None, asked: 0 })),
        End::Channels(Box::new((channels, Vec::new()))),
    ];
    let mut rig = Rig::new(config, far);
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.open.len(), 1, "it is connected to without a channel");
    for (channel, name) in [(0, "at:2"), (1, "nowhere")] {
        rig.command(Command::Open { channel, name: name.into(), server: None });
    }
    rig.pass(Duration::from_millis(20));
    assert_eq!((rig.told(), rig.client.server(0)), (vec![Event::Connected { channel: 0 }], Some(&at(2))));
    // The name server is lost, and so is the server; both come back.
    rig.cut(1);
    rig.cut(2);
    rig.pass(Duration::from_secs(2));
    let told = rig.told();
    assert!(matches!(told[..], [Event::Disconnected { channel: 0, .. }, Event::Connected { channel: 0 }]), "{told:?}");
    rig.pass(Duration::from_secs(600));
    let End::Names(names) = &rig.far[0] else { panic!() };
    assert!((20..60).contains(&names.asked), "{}: absent names are asked for seldom", names.asked);
    rig.command(Command::Close { channel: 0 });
    rig.command(Command::Close { channel: 1 });
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.open.len(), 1, "the name server alone");
}

#[test]
fn beacons_are_told() {
    let mut world = World::new(&Network { delay: Duration::from_millis(1), ..Network::default() });
    let site = world.add(server(7, |_| true));
    let client = world.add(client());
    let mut beacons = 0;
    while world.turn(Instant::ZERO + Duration::from_secs(1)).is_some() {
        while let Some(event) = world.take_event(client) {
            let Event::Found(found) = event else { panic!("{event:?}") };
            let Found::Beacon { server, guid, is_new, .. } = *found else { panic!("{found:?}") };
            assert_eq!((server, guid, is_new), (Address::Node(site.node), [7; 12], true));
            beacons += 1;
        }
    }
    assert_eq!(beacons, 1);
}
