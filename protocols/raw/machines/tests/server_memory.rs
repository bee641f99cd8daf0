//! Whatever a peer makes a server retain is charged to it, and whoever has most is closed where it is too much.

use core::time::Duration;
use hodo_machine::{Address, Allowance, Ends, Input, Instant, Machine, Outbox, Output, Peer, Pool, Share};
use hodo_raw::wire::{FLAG_STAGES, GREETING, Header, Kind, encode_greeting};
use hodo_raw::{Error, Server, ServerConfig, ServerEvent, Transport};
use std::net::SocketAddr;

/// A server whose peers are told to hold back as soon as they are open.
struct Scene {
    server: Server,
    allowed: u64,
    closed: Vec<Peer>,
    events: Vec<ServerEvent>,
    sent: usize,
}

fn peer(number: u32) -> Peer {
    Peer::accepted(number)
}

fn from(host: u8, number: u32) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], number as u16))
}

fn hello() -> Vec<u8> {
    let mut message = Header::new(Kind::Hello, GREETING as u32, 0).encode().to_vec();
    message.extend(encode_greeting(1 << 20));
    message
}

fn receive(count: u16, sequence: u64) -> [u8; 16] {
    Header { count, ..Header::new(Kind::Receive, 16, sequence) }.encode()
}

fn report(flags: u8) -> [u8; 16] {
    Header { flags, ..Header::new(Kind::Report, 0, 1) }.encode()
}

impl Scene {
    fn new(transport: Transport, allowed: u64) -> Scene {
        let server = Server::new(ServerConfig {
            transport,
            size_max: 1 << 20,
            pending_max: 1 << 20,
            greeting_timeout: Duration::from_secs(5),
            silence_timeout: Duration::from_secs(60),
            lease: Duration::from_secs(1),
            secret: [1, 2],
        });
        let server = server.within(Allowance::of_bytes(allowed), Pool::default());
        Scene { server, allowed, closed: Vec::new(), events: Vec::new(), sent: 0 }
    }

    /// Connects a peer that greets.
    fn open(&mut self, number: u32, host: u8) {
        let remote = Address::Tcp(from(host, number));
        self.server.handle(Instant::ZERO, Input::Opened(peer(number), &Ends::new(Address::Node(0), remote)));
        self.say(number, &hello());
    }

    /// Sends bytes of a peer; returns whether it is still connected.
    fn say(&mut self, number: u32, bytes: &[u8]) -> bool {
        if !self.closed.contains(&peer(number)) {
            self.server.handle(Instant::ZERO, Input::Received(peer(number), bytes));
        }
        self.settle();
        !self.closed.contains(&peer(number))
    }

    fn settle(&mut self) {
        let mut out = Outbox::new();
        loop {
            out.clear();
            match self.server.poll(Instant::ZERO, &mut out) {
                Output::Event(event) => self.events.push(event),
                Output::Send(_) => self.sent += out.len(),
                Output::Close(peer) => self.closed.push(peer),
                Output::Open(..) => panic!("a server opens nothing"),
                Output::Idle(_) => break,
            }
        }
        assert!(self.retained() <= self.allowed, "{} bytes are retained", self.retained());
    }

    fn block(&mut self, number: u32, is_blocked: bool) {
        let input = if is_blocked { Input::Blocked(peer(number)) } else { Input::Drained(peer(number)) };
        self.server.handle(Instant::ZERO, input);
        self.settle();
    }

    fn retained(&self) -> u64 {
        self.server.charges().expect("it charges").bytes()
    }

    fn of(&self, number: u32) -> u64 {
        self.server.charges().expect("it charges").of(peer(number))
    }
}

#[test]
fn requests_whose_answers_are_not_read_take_no_more_than_is_allowed() {
    let mut scene = Scene::new(Transport::Stream, 1 << 20);
    (0..3).for_each(|number| scene.open(number, number as u8));
    (0..2).for_each(|number| scene.block(number, true));
    for number in 0..1000 {
        assert!(scene.say(1, &receive(1, number)));
    }
    let took = (0..1 << 20).find(|number| !scene.say(0, &receive(1, *number))).expect("it is closed");
    assert!((8_000..32_000).contains(&took), "{took} requests");
    assert_eq!(scene.closed, [peer(0)], "and no other");
    let Some(ServerEvent::Misbehaved(ended, address, Error::TooMuchMemory(over))) = scene.events.pop() else {
        panic!("another end")
    };
    assert_eq!((ended, address, over.share, over.max), (peer(0), Some(from(0, 0)), Share::Peer, 1 << 20));
    let before = scene.sent;
    assert!(scene.say(2, &receive(10, 0)) && scene.sent == before + 160);
}

#[test]
fn what_was_sent_is_charged_no_more() {
    let mut scene = Scene::new(Transport::Stream, 1 << 20);
    scene.open(0, 0);
    let idle = scene.of(0);
    scene.block(0, true);
    for number in 0..10_000 {
        scene.say(0, &receive(1, number));
    }
    assert!(scene.of(0) > idle + 400_000);
    scene.block(0, false);
    assert!(scene.of(0) <= idle);
}

#[test]
fn times_of_stages_are_charged_while_they_are_asked_for() {
    let mut scene = Scene::new(Transport::Stream, 1 << 20);
    scene.open(0, 0);
    let before = scene.of(0);
    scene.say(0, &report(FLAG_STAGES));
    assert!(scene.of(0) > before + 1000, "{} bytes", scene.of(0));
    scene.say(0, &report(0));
    assert_eq!(scene.of(0), before);
}

#[test]
fn of_too_many_connections_one_of_the_host_with_most_is_closed() {
    for (transport, least) in [(Transport::Stream, 500), (Transport::Datagram, 3000)] {
        let mut scene = Scene::new(transport, 1 << 18);
        scene.open(0, 9);
        assert!(scene.of(0) > least, "{} bytes", scene.of(0));
        let many = (1 << 18) / scene.of(0) as u32 + 20;
        for number in 1..many {
            scene.open(number, 1);
        }
        assert!((20..25).contains(&scene.closed.len()), "{} are closed", scene.closed.len());
        assert!(!scene.closed.contains(&peer(0)), "the only one of its host");
        assert!(scene.events.iter().all(|event| matches!(
            event,
            ServerEvent::Misbehaved(_, Some(_), Error::TooMuchMemory(over)) if over.peer != peer(0)
        )));
    }
}
