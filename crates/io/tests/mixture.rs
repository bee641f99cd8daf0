//! Streams and datagrams, opened and accepted, from several addresses, at one endpoint.

mod stopping;

use hodo_io::{Clock, Endpoint, Listener, Port, PortOptions, ServeOptions, Server, SocketSettings, Sockets};
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stopping::Stopping;

const TIMEOUT: Duration = Duration::from_secs(20);

/// An echo of each message to its peer, which records it.
#[derive(Default)]
struct Echo {
    to_open: VecDeque<(Peer, Address)>,
    to_send: VecDeque<(Peer, Vec<u8>)>,
    opened: Vec<(Peer, Ends)>,
    received: Vec<(Peer, Vec<u8>)>,
    is_silent: bool,
}

impl Machine for Echo {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, ends) => self.opened.push((peer, ends.clone())),
            Input::Received(peer, bytes) => {
                self.received.push((peer, bytes.to_owned()));
                if !self.is_silent {
                    self.to_send.push_back((peer, bytes.to_owned()));
                }
            }
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if let Some((peer, address)) = self.to_open.pop_front() {
            return Output::Open(peer, address);
        }
        match self.to_send.pop_front() {
            Some((peer, bytes)) => {
                out.copy(&bytes);
                Output::Send(peer)
            }
            None => Output::Idle(None),
        }
    }
}

fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn udp() -> UdpSocket {
    let socket = UdpSocket::bind(anywhere()).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

fn ask_tcp(at: SocketAddr, text: &[u8]) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(text).unwrap();
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, text);
}

fn ask_udp(socket: &UdpSocket, at: SocketAddr, text: &[u8]) {
    socket.send_to(text, at).unwrap();
    let mut back = [0; 64];
    let (count, from) = socket.recv_from(&mut back).unwrap();
    assert_eq!((&back[..count], from), (text, at));
}

#[test]
fn a_server_at_several_addresses_of_both_kinds_answers_at_each() {
    for (threads, wait) in [(1, Wait::Block), (1, Wait::SpinThenBlock(Duration::from_micros(20))), (3, Wait::Block)] {
        let options = ServeOptions { threads, cpus: Vec::new(), wait, settings: SocketSettings::default() };
        let kinds = [Address::Tcp, Address::Udp, Address::Tcp, Address::Udp];
        let bind = |server: Server, kind: fn(SocketAddr) -> Address| server.and(&kind(anywhere())).unwrap();
        let server = kinds.into_iter().fold(Server::new(options), bind);
        let addresses = server.addresses().to_vec();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stopping = Stopping(&stop);
            let serving = scope.spawn(|| server.run(Echo::default, |()| None, &stop));
            let socket = udp();
            for round in 0..20_u8 {
                for address in &addresses {
                    match address {
                        Address::Tcp(at) => ask_tcp(*at, &[round; 3]),
                        Address::Udp(at) => ask_udp(&socket, *at, &[round; 5]),
                        other => panic!("{other}"),
                    }
                }
            }
            drop(stopping);
            serving.join().expect("no panic").expect("it ends in order");
        });
    }
}

/// Runs an endpoint until `has` is true of the machine.
fn drive(endpoint: &mut Endpoint<Echo, Sockets>, has: impl Fn(&Echo) -> bool) {
    let end = endpoint.last_turn() + TIMEOUT;
    while !has(endpoint.machine()) {
        assert!(endpoint.last_turn() < end, "{:?} {:?}", endpoint.machine().opened, endpoint.machine().received);
        endpoint.step(Wait::Block, end, &mut |()| {}).unwrap();
    }
}

#[test]
fn one_machine_opens_and_accepts_both_kinds() {
    let (far_tcp, far_udp) = (TcpListener::bind(anywhere()).unwrap(), udp());
    let listener = Listener::bind(&Address::Tcp(anywhere())).unwrap();
    let port = Port::bind(&Address::Udp(anywhere()), &PortOptions::default()).unwrap();
    let (here_tcp, here_udp) = (listener.address().ip().unwrap(), port.address().ip().unwrap());
    let mut sockets = Sockets::new(SocketSettings::default()).unwrap();
    sockets.listen(listener).unwrap();
    sockets.bind(port).unwrap();
    let opens = [
        (Peer(0), Address::Tcp(far_tcp.local_addr().unwrap())),
        (Peer(1), Address::Udp(far_udp.local_addr().unwrap())),
    ];
    let machine = Echo { to_open: opens.clone().into(), is_silent: true, ..Echo::default() };
    let mut endpoint = Endpoint::new(machine, sockets, Clock::start());
    drive(&mut endpoint, |machine| machine.opened.len() == 2);
    let (mut accepted, _) = far_tcp.accept().unwrap();
    let (mut near_tcp, near_udp) = (TcpStream::connect(here_tcp).unwrap(), udp());
    near_udp.send_to(b"datagram in", here_udp).unwrap();
    near_tcp.write_all(b"stream in").unwrap();
    accepted.write_all(b"stream out").unwrap();
    drive(&mut endpoint, |machine| machine.received.len() == 3);
    let machine = endpoint.machine();
    let of = |text: &[u8]| machine.received.iter().find(|(_, bytes)| bytes == text).expect("it came").0;
    assert_eq!(of(b"stream out"), Peer(0));
    let (stream, datagram) = (of(b"stream in"), of(b"datagram in"));
    assert!(stream.is_accepted() && datagram.is_accepted() && stream != datagram);
    let told = |peer| &machine.opened.iter().find(|(opened, _)| *opened == peer).expect("it was told").1;
    let tcp = |local, remote| Ends::new(Address::Tcp(local), Address::Tcp(remote));
    let udp = |local, remote| Ends::new(Address::Udp(local), Address::Udp(remote));
    assert_eq!(*told(stream), tcp(here_tcp, near_tcp.local_addr().unwrap()));
    assert_eq!(*told(datagram), udp(here_udp, near_udp.local_addr().unwrap()));
    assert_eq!(*told(Peer(0)), tcp(accepted.peer_addr().unwrap(), far_tcp.local_addr().unwrap()));
    let local = told(Peer(1)).local.ip().expect("it has one");
    assert_eq!(*told(Peer(1)), udp(local, far_udp.local_addr().unwrap()));
    far_udp.send_to(b"datagram back", local).unwrap();
    drive(&mut endpoint, |machine| machine.received.contains(&(Peer(1), b"datagram back".to_vec())));
}

#[test]
fn both_ends_of_a_unix_socket_are_told() {
    let path = std::env::temp_dir().join(format!("hodo-ends-{}", std::process::id())).display().to_string();
    let listener = Listener::bind(&Address::Path(path.clone())).unwrap();
    let mut sockets = Sockets::new(SocketSettings::default()).unwrap();
    sockets.listen(listener).unwrap();
    let machine = Echo { to_open: [(Peer(0), Address::Path(path.clone()))].into(), ..Echo::default() };
    let mut endpoint = Endpoint::new(machine, sockets, Clock::start());
    drive(&mut endpoint, |machine| machine.opened.len() == 2);
    let (unnamed, named) = (Address::Path(String::new()), Address::Path(path));
    let mut opened = endpoint.machine().opened.clone();
    opened.sort_by_key(|(peer, _)| *peer);
    assert_eq!(opened[0], (Peer(0), Ends::new(unnamed.clone(), named.clone())));
    assert_eq!(opened[1].1, Ends::new(named, unnamed));
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
        let port = Port::bind(&Address::Udp(any.parse().unwrap()), &options).unwrap();
        let number = port.address().ip().unwrap().port();
        let mut sockets = Sockets::new(SocketSettings::default()).unwrap();
        sockets.bind(port).unwrap();
        let mut endpoint = Endpoint::new(Echo::default(), sockets, Clock::start());
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
