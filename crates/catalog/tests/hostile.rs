//! Peers that break the rules: a server goes on for the others, a client says what is wrong within its timeout.
use crate::plans;

use hodo_catalog::{Protocol, Settings, protocols};
use hodo_io::Clock;
use hodo_machine::{Closed, Random, Wait};
use hodo_measure::{LinkError, Mode, Operation, Plan, Test, Until, Unwatched, run};
use plans::served::{Place, Served, free, serve_settings};
use plans::{open_with, opened, own, plan};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// A plain connection to a server.
enum Plain {
    Stream(Box<dyn Duplex>),
    Datagrams(UdpSocket),
}

trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

impl Plain {
    fn to(served: &Served) -> Plain {
        let uri = &served.uri;
        match uri.scheme {
            "unix" => Plain::Stream(Box::new(UnixStream::connect(&uri.path).expect("it listens"))),
            "tcp" | "farm" => Plain::Stream(Box::new(TcpStream::connect(&uri.authority).expect("it listens"))),
            _ => {
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
                socket.connect(&uri.authority).expect("it is an address");
                Plain::Datagrams(socket)
            }
        }
    }

    /// Sends bytes, in datagrams of up to 1400; the far end may close the connection before all are sent.
    fn send(&mut self, bytes: &[u8]) {
        match self {
            Plain::Stream(stream) => drop(stream.write_all(bytes)),
            Plain::Datagrams(socket) => bytes.chunks(1400).for_each(|datagram| drop(socket.send(datagram))),
        }
    }
}

fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    (0..count as u64 / 8).flat_map(|place| Random::at(seed, place).to_le_bytes()).collect()
}

/// Asserts that a client that keeps the rules is served.
#[track_caller]
fn assert_serves(served: &Served, protocol: &dyn Protocol) {
    for &mode in protocol.description().modes {
        let plan = Plan { channels: 2, window: 4, until: Until::Count(100), ..plan(Test::Channels, mode, 2000) };
        let found = run(&mut opened(&served.uri, &plan).links, &plan, &Unwatched);
        assert_eq!((found.error, found.operations), (None, 100), "{}", protocol.name());
    }
}

/// Returns the HELLO that a client sends.
fn hello(protocol: &dyn Protocol) -> &'static [u8] {
    match protocol.name() {
        "farm" => FARM_HELLO,
        _ => b"\xA0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0hodo raw\x01\0\0\0\0\0\x10\0",
    }
}

/// The HELLO of a controller, which takes no events, but replies of up to a megabyte.
const FARM_HELLO: &[u8] = b"\x24\0\0\x10hodofarm\x01\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
                            \0\0\x10\0\x01\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn a_server_survives_garbage() {
    for protocol in own() {
        let served = Served::start(protocol, &serve_settings());
        for seed in 0..4 {
            Plain::to(&served).send(&random_bytes(seed, 1 << 20));
            // Behind a greeting more of it is looked at.
            let mut greeted = Plain::to(&served);
            greeted.send(hello(protocol));
            greeted.send(&random_bytes(seed, 1 << 20));
            assert_serves(&served, protocol);
        }
    }
}

#[test]
fn a_server_survives_every_kind_of_message_out_of_place() {
    for protocol in own() {
        let served = Served::start(protocol, &serve_settings());
        for kind in 0xA0..=0xAB_u8 {
            for length in [0, 16, u32::MAX] {
                let mut plain = Plain::to(&served);
                plain.send(hello(protocol));
                let mut header = [0xFF; 16];
                header[0] = kind;
                header[4..8].copy_from_slice(&length.to_le_bytes());
                plain.send(&header);
                plain.send(&header);
            }
        }
        assert_serves(&served, protocol);
    }
}

#[test]
fn half_open_and_vanished_clients_leave_the_others_alone() {
    for protocol in own() {
        let served = Served::start(protocol, &serve_settings());
        let mut half_open: Vec<Plain> = (0..20).map(|_| Plain::to(&served)).collect();
        for (index, plain) in half_open.iter_mut().enumerate() {
            plain.send(&hello(protocol)[..index]);
        }
        for _ in 0..20 {
            let mut vanishes = Plain::to(&served);
            vanishes.send(hello(protocol));
            // A megabyte is asked for a hundred times, and nobody is there to take it.
            vanishes.send(b"\xA6\0\x64\0\0\0\x10\0\0\0\0\0\0\0\0\0");
        }
        // And one that stays and does not read.
        let mut deaf = Plain::to(&served);
        deaf.send(hello(protocol));
        deaf.send(b"\xA6\0\x64\0\0\0\x10\0\0\0\0\0\0\0\0\0");
        assert_serves(&served, protocol);
        drop(half_open);
        assert_serves(&served, protocol);
    }
}

/// The behaviour towards a client of a far end that is not ours.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stranger {
    Closes,
    Says(&'static [u8]),
    NeverAnswers,
}

/// A far end that is not ours, for as long as the value lives.
struct Strange {
    uri: hodo_catalog::Uri,
    _place: Option<Place>,
}

impl Strange {
    fn start(protocol: &dyn Protocol, stranger: Stranger) -> Strange {
        let (mut uri, place) = free(protocol);
        match protocol.name() {
            "udp" => {
                let socket = UdpSocket::bind(&uri.authority).expect("a free port");
                uri.authority = socket.local_addr().expect("it is bound").to_string();
                std::thread::spawn(move || answer_datagrams(&socket, stranger));
            }
            "tcp" | "farm" => {
                let listener = TcpListener::bind(&uri.authority).expect("a free port");
                uri.authority = listener.local_addr().expect("it is bound").to_string();
                std::thread::spawn(move || answer(listener.incoming(), stranger));
            }
            _ => {
                let listener = UnixListener::bind(&uri.path).expect("a free path");
                std::thread::spawn(move || answer(listener.incoming(), stranger));
            }
        }
        Strange { uri, _place: place }
    }
}

fn answer<S: Write + Read>(clients: impl Iterator<Item = std::io::Result<S>>, stranger: Stranger) {
    let mut kept = Vec::new();
    for mut client in clients.flatten() {
        match stranger {
            Stranger::Closes => continue,
            // The client may be gone before it has heard all.
            Stranger::Says(bytes) => drop(client.write_all(bytes)),
            Stranger::NeverAnswers => {}
        }
        kept.push(client);
    }
}

fn answer_datagrams(socket: &UdpSocket, stranger: Stranger) {
    let mut buffer = [0; 2048];
    while let Ok((_, from)) = socket.recv_from(&mut buffer) {
        match stranger {
            Stranger::Closes => return,
            Stranger::Says(bytes) => drop(socket.send_to(bytes, from)),
            Stranger::NeverAnswers => {}
        }
    }
}

fn welcome_of_another_version(protocol: &dyn Protocol) -> &'static [u8] {
    match protocol.name() {
        "farm" => {
            b"\x24\0\0\x10hodofarm\x63\0\x04\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\
                    \0\0\x10\0\x01\0\0\0\0\0\0\0\0\0\0\0"
        }
        _ => b"\xA1\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0hodo raw\x63\0\0\0\0\0\x10\0",
    }
}

#[test]
fn a_client_says_what_is_wrong_with_its_far_end_within_its_timeout() {
    let clock = Clock::start();
    for protocol in own() {
        for (stranger, says) in [
            (Stranger::Closes, ""),
            (Stranger::Says(b"HTTP/1.1 400 Bad Request\r\nServer: other\r\n\r\n"), "HTTP"),
            (Stranger::Says(b"SSH-2.0-OpenSSH_9.6\r\n"), "SSH-"),
            (Stranger::Says(welcome_of_another_version(protocol)), "version 99"),
            (Stranger::Says(&[0xA3; 64]), ""),
            (Stranger::NeverAnswers, ""),
        ] {
            let strange = Strange::start(protocol, stranger);
            for channels in [1, 3] {
                let timeout = Duration::from_millis(300);
                let plan = Plan { channels, ..plan(Test::Rate, Mode::Both, 64) };
                let began = clock.now();
                let error = open_with(&strange.uri, &Settings { timeout, ..Settings::of(&plan) }).err();
                let error = error.unwrap_or_else(|| panic!("{} took {stranger:?} for its own", protocol.name()));
                let took = clock.now() - began;
                // As the machine may be busy: far less than the timeout that it has unless told otherwise.
                assert!(took < timeout + Duration::from_secs(2), "{} {stranger:?}: {took:?}", protocol.name());
                assert!(error.to_string().contains(says), "{} {stranger:?}: {error}", protocol.name());
            }
        }
    }
}

#[test]
fn an_address_where_nobody_listens_is_refused_at_once() {
    let clock = Clock::start();
    for protocol in protocols() {
        let gone = Served::start(protocol, &serve_settings()).uri.clone();
        let began = clock.now();
        let error = open_with(&gone, &Settings::of(&plan(Test::Rate, Mode::Both, 64))).err().expect("nobody is there");
        assert!(error.to_string().contains("refused"), "{}: {error}", protocol.name());
        assert!(clock.now() - began < Duration::from_secs(2), "{}", protocol.name());
    }
}

/// Relies on the kernel, which learns from the first datagram that nobody is there, and refuses the second.
#[test]
fn a_datagram_that_the_kernel_does_not_take_is_refused() {
    let udp = protocols().find(|protocol| protocol.name() == "udp").expect("it is in the catalog");
    let mut served = Served::start(udp, &serve_settings());
    let plan = plan(Test::Rate, Mode::Both, 64);
    let mut opened = opened(&served.uri, &plan);
    let link = &mut opened.links[0];
    assert_eq!(link.losses().refused, 0);
    served.end().expect("it ends in order");
    // Two sizes, because equal ones go out in one call.
    for (tag, size) in [(0, 64), (1, 128)] {
        link.start(Operation { tag, channel: 0, size, mode: Mode::Both });
    }
    let (until, mut done) = (link.now() + Duration::from_secs(5), Vec::new());
    let error = loop {
        match link.poll(Wait::Block, until, &mut done) {
            Ok(()) => assert!(link.now() < until, "nobody is there"),
            Err(error) => break error,
        }
    };
    assert_eq!(error, LinkError::Closed { channel: 0, why: Closed::Refused });
    assert_eq!(link.losses().refused, 1);
}

/// Stops the far end while operations are in flight.
#[test]
fn a_far_end_that_dies_ends_the_run_and_keeps_what_was_measured() {
    for protocol in own() {
        let mut served = Served::start(protocol, &serve_settings());
        let plan = Plan {
            window: 8,
            until: Until::Elapsed(Duration::from_secs(20)),
            stall: Duration::from_millis(500),
            ..plan(Test::Rate, Mode::Both, 64)
        };
        let mut opened = opened(&served.uri, &plan);
        let found = std::thread::scope(|scope| {
            let run = scope.spawn(|| run(&mut opened.links, &plan, &Unwatched));
            served.end().expect("it ends in order");
            run.join().expect("no panic")
        });
        assert!(found.error.is_some(), "{}: {:?}", protocol.name(), found.verdict);
    }
}

/// Reads and writes a memory behind a bridge that says nothing: the second plan is told so, too, although the first has left its
/// transactions behind.
#[test]
fn a_bridge_that_says_nothing_is_told_of_in_each_plan() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = silent.local_addr().expect("it is bound");
    let link = plans::uri(&format!("ssdtp2://{at}?far=rmap&path=4&back-path=1"));
    for mode in [Mode::Send, Mode::Receive] {
        let plan = Plan { window: 16, stall: Duration::from_millis(50), ..plan(Test::Rate, mode, 64) };
        let patient = Settings { timeout: Duration::from_secs(600), ..Settings::of(&plan) };
        let mut opened = open_with(&link, &patient).expect("it accepts connections");
        for _ in 0..2 {
            let found = run(&mut opened.links, &plan, &Unwatched);
            assert_eq!(found.error, Some(LinkError::Stalled { millis: 50 }), "{mode}");
            assert_eq!((found.operations, found.loss.lost), (0, 16), "{mode}");
        }
    }
}
