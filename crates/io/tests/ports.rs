//! Ports for datagrams: the address and interface where one came in, groups, broadcasts, and the port that one is sent from.

use crate::echo;
use crate::stopping;

use echo::{Echo, TIMEOUT, anywhere, drive, udp};
use hodo_io::{Clock, Endpoint, Multicast, Port, PortOptions, ServeOptions, Server, SocketSettings, Sockets};
use hodo_machine::{Address, Apart, Driver, Ends, Peer};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use stopping::Stopping;

/// Returns an endpoint with one port, and the number of the port.
fn at_port(address: &str, options: &PortOptions, machine: Echo) -> (Endpoint<Echo, Sockets>, u16) {
    let port = Port::bind(&Address::Udp(address.parse().unwrap()), options).unwrap();
    let number = port.address().ip().unwrap().port();
    let mut sockets = Sockets::new(SocketSettings::default()).unwrap();
    sockets.bind(port).unwrap();
    (Endpoint::new(machine, sockets, Clock::start()), number)
}

#[test]
fn a_broadcast_and_a_groups_datagram_tell_where_they_came_to() {
    let loopback: u32 = std::fs::read_to_string("/sys/class/net/lo/ifindex").unwrap().trim().parse().unwrap();
    let group = Ipv4Addr::new(239, 255, 43, 21);
    let options = PortOptions {
        tells_arrival: true,
        broadcast: true,
        groups: vec![(group.into(), loopback)],
        ..PortOptions::default()
    };
    let (mut endpoint, number) = at_port("0.0.0.0:0", &options, Echo::default());
    // The source's interface is the one that a group is sent to from.
    let near = udp();
    near.set_broadcast(true).unwrap();
    let (alone, all) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 255, 255, 255));
    for (count, to) in (1..).zip([alone, all, group, all]) {
        near.send_to(to.to_string().as_bytes(), (to, number)).unwrap();
        drive(&mut endpoint, |machine| machine.received.len() == count);
        let (_, from) = near.recv_from(&mut [0; 32]).unwrap();
        assert_eq!(from, (alone, number).into(), "no answer comes from a group or a broadcast address");
    }
    let remote = Address::Udp(near.local_addr().unwrap());
    let local = |ip: Ipv4Addr| Address::Udp((ip, number).into());
    let told = |ip| Ends { interface: Some(loopback), ..Ends::new(local(ip), remote.clone()) };
    let opened: Vec<Ends> = endpoint.machine().opened.iter().map(|(_, ends)| ends.clone()).collect();
    assert_eq!(opened, [told(alone), told(all), told(group)], "each address is a peer of its own");
}

#[test]
fn a_server_runs_a_machine_for_each_of_many_ports_on_one_thread() {
    const PORTS: usize = 20;
    let options = ServeOptions::default();
    let and = |server: Server, _| server.and(&Address::Udp(anywhere())).unwrap();
    let server = (0..PORTS).fold(Server::new(options), and);
    let (addresses, stop) = (server.addresses().to_vec(), AtomicBool::new(false));
    let machine = |number: u8| Echo { signature: vec![number], ..Echo::default() };
    let make = || Apart::new(addresses.iter().cloned().zip((0..).map(machine)));
    std::thread::scope(|scope| {
        let stopping = Stopping(&stop);
        let serving = scope.spawn(|| server.run(make, |_| None, &stop));
        for (number, address) in (0..).zip(&addresses) {
            let near = udp();
            near.send_to(b"hello", address.ip().unwrap()).unwrap();
            let mut text = [0; 16];
            let (count, from) = near.recv_from(&mut text).unwrap();
            assert_eq!((&text[..count], from), (&[&b"hello"[..], &[number]].concat()[..], address.ip().unwrap()));
        }
        drop(stopping);
        serving.join().expect("no panic").expect("it ends in order");
    });
}

#[test]
fn a_broadcast_leaves_from_a_chosen_port_and_who_answers_is_a_peer_of_its_own() {
    let options = PortOptions { broadcast: true, ..PortOptions::default() };
    let far = UdpSocket::bind("0.0.0.0:0").unwrap();
    far.set_read_timeout(Some(TIMEOUT)).unwrap();
    let to = SocketAddr::from((Ipv4Addr::new(127, 255, 255, 255), far.local_addr().unwrap().port()));
    let (mut endpoint, number) = at_port("0.0.0.0:0", &options, Echo { is_silent: true, ..Echo::default() });
    endpoint.machine_mut().to_open.push_back((Peer(3), Address::UdpFrom(number, to)));
    endpoint.machine_mut().to_send.push_back((Peer(3), b"who is there".to_vec()));
    drive(&mut endpoint, |machine| machine.opened.len() == 1);
    let mut text = [0; 32];
    let (count, from) = far.recv_from(&mut text).unwrap();
    assert_eq!((&text[..count], from.port()), (&b"who is there"[..], number));
    far.send_to(b"here", from).unwrap();
    drive(&mut endpoint, |machine| machine.received.len() == 1);
    let machine = endpoint.machine();
    assert!(machine.received[0].0.is_accepted() && machine.received[0].1 == b"here");
    let answered = SocketAddr::new(from.ip(), to.port());
    assert_eq!(machine.opened[1].1.remote, Address::Udp(answered));
}

#[test]
fn a_peer_reached_from_a_chosen_port_answers_to_it() {
    let far = udp();
    let port = Port::bind(&Address::Udp(anywhere()), &PortOptions::default()).unwrap();
    let here = port.address().ip().unwrap();
    let mut sockets = Sockets::new(SocketSettings::default()).unwrap();
    sockets.bind(port).unwrap();
    let to = Address::UdpFrom(here.port(), far.local_addr().unwrap());
    let machine = Echo {
        to_open: [(Peer(7), to)].into(),
        to_send: [(Peer(7), b"hello".to_vec())].into(),
        is_silent: true,
        ..Echo::default()
    };
    let mut endpoint = Endpoint::new(machine, sockets, Clock::start());
    drive(&mut endpoint, |machine| !machine.opened.is_empty());
    let mut text = [0; 16];
    let (count, from) = far.recv_from(&mut text).unwrap();
    assert_eq!((&text[..count], from), (&b"hello"[..], here));
    far.send_to(b"answer", here).unwrap();
    udp().send_to(b"stranger", here).unwrap();
    drive(&mut endpoint, |machine| machine.received.len() == 2);
    let machine = endpoint.machine();
    assert_eq!(machine.received[0], (Peer(7), b"answer".to_vec()));
    assert!(machine.received[1].0.is_accepted());
}

#[test]
fn a_port_of_all_addresses_tells_where_a_datagram_came_to_and_answers_from_there() {
    let options = PortOptions { tells_arrival: true, broadcast: true, ..PortOptions::default() };
    for any in ["0.0.0.0:0", "[::]:0"] {
        let (mut endpoint, number) = at_port(any, &options, Echo::default());
        let hosts: &[&str] = if any.starts_with('[') { &["[::1]"] } else { &["127.0.0.1", "127.0.0.2"] };
        let near = UdpSocket::bind(any).unwrap();
        near.set_read_timeout(Some(TIMEOUT)).unwrap();
        for (before, host) in hosts.iter().enumerate() {
            let at: SocketAddr = format!("{host}:{number}").parse().unwrap();
            near.send_to(b"where", at).unwrap();
            drive(&mut endpoint, |machine| machine.received.len() == before + 1);
            let (_, from) = near.recv_from(&mut [0; 16]).unwrap();
            assert_eq!(from, at, "it answers from where it was asked");
        }
        let machine = endpoint.machine();
        let local = |(_, ends): &(Peer, Ends)| ends.local.ip().expect("it has one").ip().to_string();
        let expected = hosts.iter().map(|host| host.trim_matches(['[', ']']).to_owned());
        assert_eq!(machine.opened.iter().map(local).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert!(machine.opened.iter().all(|(_, ends)| ends.interface == machine.opened[0].1.interface));
        assert!(machine.opened[0].1.interface.is_some(), "the loopback's");
    }
}

#[test]
fn two_servers_of_several_threads_do_not_share_a_port_without_a_word() {
    let options = ServeOptions { threads: 2, ..ServeOptions::default() };
    let first = Server::bind(&Address::Udp(([127, 0, 0, 1], 0).into()), options.clone()).expect("a free port");
    let second = Server::bind(first.address(), options).err().expect("it is taken");
    assert_eq!(second.kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn programs_share_a_port_and_pass_on_to_a_group_on_the_loopback_what_only_one_receives() {
    let loopback = hodo_io::nic::interfaces().into_iter().find(|one| one.is_loopback).expect("it is there").index;
    let group = Ipv4Addr::new(224, 0, 0, 128);
    let options = PortOptions {
        common: true,
        broadcast: true,
        tells_arrival: true,
        groups: vec![(group.into(), loopback)],
        ..PortOptions::default()
    };
    let (mut first, number) = at_port("0.0.0.0:0", &options, Echo { is_silent: true, ..Echo::default() });
    let shared = format!("0.0.0.0:{number}");
    let (mut second, _) = at_port(&shared, &options, Echo { is_silent: true, ..Echo::default() });
    // One of IPv6 stands beside them, and takes nothing of theirs; neither does one that has joined no group.
    let beside = PortOptions { only_ipv6: true, ..options.clone() };
    let beside = PortOptions { groups: Vec::new(), ..beside };
    let (mut sixth, _) = at_port(&format!("[::]:{number}"), &beside, Echo { is_silent: true, ..Echo::default() });
    let out = PortOptions { multicast: Some(Multicast { interface: loopback, hops: 1 }), ..PortOptions::default() };
    let (mut passing, from) = at_port("127.0.0.1:0", &out, Echo::default());
    passing.machine_mut().to_open.push_back((Peer(0), Address::UdpFrom(from, (group, number).into())));
    passing.machine_mut().to_send.push_back((Peer(0), b"to the group".to_vec()));
    drive(&mut passing, |machine| machine.opened.len() == 1);
    for endpoint in [&mut first, &mut second] {
        drive(endpoint, |machine| machine.received.len() == 1);
        let ends = &endpoint.machine().opened[0].1;
        assert_eq!(ends.local, Address::Udp((group, number).into()));
        assert_eq!(ends.remote, Address::Udp((Ipv4Addr::LOCALHOST, from).into()));
        assert_eq!(ends.interface, Some(loopback));
    }
    UdpSocket::bind("[::1]:0").unwrap().send_to(b"six", ("::1", number)).unwrap();
    drive(&mut sixth, |machine| machine.received.len() == 1);
    assert_eq!(sixth.machine().received[0].1, b"six");
}
