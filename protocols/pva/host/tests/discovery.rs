//! Servers are found over real sockets, several of them on one host.

use hodo_io::nic::interfaces;
use hodo_io::{Clock, Endpoint, Port, SocketSettings, Sockets};
use hodo_machine::{Address, Driver, Wait};
use hodo_pva::discovery::{Found, Searcher, SearcherCommand};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Server, ServerConfig};
use hodo_pva::wire::discovery::{Beacon, SearchFront, SearchResponse, UNICAST};
use hodo_pva::wire::{HEADER, Header, Side};
use hodo_pva::{Limits, Order, Reader, Scalar, TypeCache, Value, Writer};
use hodo_pva_host::environment::{AddressEntry, Environment, ServerNetwork};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Lets all machines take a turn.
fn turn(servers: &mut [Endpoint<Server, Sockets>]) {
    for endpoint in servers {
        let now = endpoint.now();
        endpoint.turn(Wait::Block, now + Duration::from_millis(1), &mut |_| {}).expect("it goes on");
    }
}

/// Starts a server with one name, without TCP; returns it with the UDP port where it is found.
fn server(number: u8, network: &ServerNetwork) -> (Endpoint<Server, Sockets>, u16) {
    let mut sockets = Sockets::new(SocketSettings::default()).expect("sockets");
    let mut bind = |address: &_, options: &_| {
        let port = Port::bind(address, options)?;
        let bound = port.address().clone();
        sockets.bind(port)?;
        Ok(bound)
    };
    let discovery = network.bind(&interfaces(), 5000 + u16::from(number), &mut bind).expect("free ports");
    let from = discovery.from;
    let mut server = Server::new(ServerConfig { guid: [number; 12], discovery, ..ServerConfig::default() });
    let value = Value::of(Normative::scalar(Scalar::F64).build());
    server.serve(format!("name:{number}"), value, Access::ReadOnly);
    (Endpoint::new(server, sockets, Clock::start()), from)
}

#[test]
fn two_servers_that_share_a_port_both_answer_what_was_sent_to_one_address_and_send_beacons() {
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    near.set_nonblocking(true).expect("it can be");
    let here = near.local_addr().expect("it has one");
    let mut network = Environment::default().server.or_loopback();
    network.beacons = vec![AddressEntry { address: here, hops: None, interface: None }];
    (network.broadcast_port, network.auto_beacons) = (0, false);
    let (first, number) = server(1, &network);
    network.broadcast_port = number;
    let (second, _) = server(2, &network);
    let mut both = [first, second];

    let mut writer = Writer::new(Side::Client, Order::Big);
    let front = SearchFront {
        sequence: 77,
        flags: UNICAST,
        address: Ipv4Addr::UNSPECIFIED.into(),
        port: here.port(),
        protocols: &["tcp"],
    };
    front.encode([(1, &b"name:1"[..]), (2, &b"name:2"[..])].into_iter(), &mut writer);
    near.send_to(&writer.to_vec(), (Ipv4Addr::LOCALHOST, number)).expect("it is sent");

    let (mut answers, mut beacons) = (Vec::new(), Vec::new());
    let (limits, end) = (Limits::DEFAULT, both[0].now() + Duration::from_secs(20));
    while answers.len() + beacons.len() < 4 {
        assert!(both[0].now() < end, "{answers:?} {beacons:?}");
        turn(&mut both);
        let mut bytes = [0; 1500];
        while let Ok((count, from)) = near.recv_from(&mut bytes) {
            let header = Header::decode(bytes.first_chunk().expect("a header")).expect("a header");
            let mut reader = Reader::new(&bytes[HEADER..count], header.order, &limits);
            assert_eq!(from, SocketAddr::from((Ipv4Addr::LOCALHOST, number)));
            if header.command == 0 {
                let beacon = Beacon::decode(&mut reader, &mut TypeCache::new()).expect("a beacon");
                beacons.push((beacon.guid[0], beacon.port));
            } else {
                let found = SearchResponse::decode(&mut reader).expect("an answer");
                answers.push((found.guid[0], found.port, found.channels().collect::<Vec<_>>()));
            }
        }
    }
    answers.sort();
    beacons.sort_unstable();
    assert_eq!(answers, [(1, 5001, vec![1]), (2, 5002, vec![2])]);
    assert_eq!(beacons, [(1, 5001), (2, 5002)]);
}

#[test]
fn a_client_finds_the_servers_of_this_host_and_hears_their_beacons() {
    let mut servers_network = Environment::default().server.or_loopback();
    servers_network.broadcast_port = 0;
    let (first, number) = server(1, &servers_network);
    let mut client_network = Environment::default().client;
    client_network.broadcast_port = number;

    let mut sockets = Sockets::new(SocketSettings::default()).expect("sockets");
    let mut bind = |address: &_, options: &_| {
        let port = Port::bind(address, options)?;
        let bound = port.address().clone();
        sockets.bind(port)?;
        Ok(bound)
    };
    let config = client_network.bind(&interfaces(), true, &mut bind).expect("free ports");
    let mut client = Endpoint::new(Searcher::new(config), sockets, Clock::start());
    // It starts after the client, which hears its first beacon.
    servers_network.broadcast_port = number;
    let (second, _) = server(2, &servers_network);
    let mut both = [first, second];
    for number in [1, 2] {
        client.command(SearcherCommand::Search { number, name: format!("name:{number}"), all: false });
    }
    client.command(SearcherCommand::List);
    let (mut names, mut listed, mut beacons) = (Vec::new(), Vec::new(), Vec::new());
    let end = client.now() + Duration::from_secs(20);
    while names.len() < 2 || listed.len() < 2 || beacons.len() < 2 {
        assert!(client.now() < end, "{names:?} {listed:?} {beacons:?}");
        turn(&mut both);
        let soon = client.now() + Duration::from_millis(1);
        let mut found = Vec::new();
        client.turn(Wait::Block, soon, &mut |event| found.push(event)).expect("it goes on");
        for event in found {
            match event {
                Found::Name { number, server, .. } => names.push((number, server)),
                Found::Server { server, .. } if !listed.contains(&server) => listed.push(server),
                Found::Beacon { server, is_new: true, .. } => beacons.push(server),
                _ => {}
            }
        }
    }
    let port = |number: u16| Address::Tcp((Ipv4Addr::LOCALHOST, 5000 + number).into());
    names.sort_unstable_by_key(|name| name.0);
    assert_eq!(names, [(1, port(1)), (2, port(2))]);
    for seen in [listed, beacons] {
        assert!(seen.contains(&port(1)) && seen.contains(&port(2)), "{seen:?}");
    }
}
