//! Streams and datagrams, opened and accepted, from several addresses, at one endpoint.

use crate::echo;
use crate::stopping;

use echo::{Echo, TIMEOUT, anywhere, drive, udp};
use hodo_io::{Clock, Endpoint, Listener, Port, PortOptions, ServeOptions, Server, SocketSettings, Sockets};
use hodo_machine::{Address, Driver, Ends, Peer, Wait};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stopping::Stopping;

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
    let of_ours = |ends| Ends { user: Some(hodo_io::process::user()), ..ends };
    assert_eq!(opened[0], (Peer(0), of_ours(Ends::new(unnamed.clone(), named.clone()))));
    assert_eq!(opened[1].1, of_ours(Ends::new(named, unnamed)));
}

/// A relay does so: one send for all replies to a client costs less than one for each.
#[test]
fn what_waits_on_both_sides_is_answered_by_one_turn() {
    const ROUNDS: usize = 1000;
    let (far_tcp, far_udp) = (TcpListener::bind(anywhere()).unwrap(), udp());
    let opens = [
        (Peer(0), Address::Tcp(far_tcp.local_addr().unwrap())),
        (Peer(1), Address::Udp(far_udp.local_addr().unwrap())),
    ];
    let machine = Echo { to_open: opens.into(), is_silent: true, ..Echo::default() };
    let mut endpoint = Endpoint::new(machine, Sockets::new(SocketSettings::default()).unwrap(), Clock::start());
    drive(&mut endpoint, |machine| machine.opened.len() == 2);
    let mut accepted = far_tcp.accept().unwrap().0;
    let local = endpoint.machine().opened.iter().find(|(peer, _)| *peer == Peer(1)).unwrap().1.local.ip().unwrap();
    let mut turns = 0;
    for round in 1..=ROUNDS {
        accepted.write_all(b"s").unwrap();
        far_udp.send_to(b"d", local).unwrap();
        while endpoint.machine().received.len() < 2 * round {
            let now = endpoint.last_turn();
            endpoint.step(Wait::Never, now, &mut |()| {}).unwrap();
            turns += 1;
        }
    }
    assert!(turns < ROUNDS * 5 / 4, "{turns} turns for {ROUNDS} rounds");
}
