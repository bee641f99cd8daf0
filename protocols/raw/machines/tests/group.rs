//! A sender and the receivers of a multicast group: each greets, is counted and reports by itself.

use core::time::Duration;
use hodo_machine::{Address, Bytes, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_raw::wire::{GREETING, Header, Kind, encode_greeting};
use hodo_raw::{
    Client, ClientConfig, Command, Counters, Direction, Error, Event, Server, ServerCommand, ServerConfig, ServerEvent,
    Transport,
};

const GROUP: Peer = Peer(0);
const SENDER: Peer = Peer::accepted(0);
const SECOND: Duration = Duration::from_secs(1);

/// A sender, and servers that are known to it once they have answered.
struct Network {
    client: Client,
    servers: Vec<Server>,
    /// Whether a server has taken the sender for a peer, and the sender the server.
    known: Vec<[bool; 2]>,
    /// Tells whether a server misses what goes to all, by its number and that of the operation.
    misses: fn(usize, u64) -> bool,
    now: Instant,
    events: Vec<Event>,
}

fn ends(of: usize) -> Ends {
    Ends::new(Address::Node(99), Address::Node(of as u32))
}

impl Network {
    fn new(servers: usize, wanted: u32, misses: fn(usize, u64) -> bool) -> Network {
        let client = Client::new(ClientConfig {
            transport: Transport::Datagram,
            address: Address::Node(50),
            is_group: true,
            channels: wanted,
            size_max: 1000,
            acknowledge_every: 4,
            unbounded: true,
            greeting_timeout: SECOND,
            timeout: SECOND,
            reconnect: false,
            check: false,
            payload: Bytes::new(),
        });
        let server = |number: usize| {
            Server::new(ServerConfig {
                transport: Transport::Datagram,
                size_max: 1000,
                pending_max: 1000,
                greeting_timeout: SECOND,
                silence_timeout: 60 * SECOND,
                lease: SECOND,
                secret: [number as u64, 7],
            })
        };
        let (known, events) = (vec![[false; 2]; servers], Vec::new());
        Network { client, servers: (0..servers).map(server).collect(), known, misses, now: Instant::ZERO, events }
    }

    fn command(&mut self, command: Command) {
        self.client.handle(self.now, Input::Command(command));
        self.settle();
    }

    fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        self.client.handle(self.now, Input::Elapsed);
        self.settle();
    }

    fn settle(&mut self) {
        let mut out = Outbox::new();
        loop {
            match self.client.poll(self.now, &mut out) {
                Output::Open(peer, _) => self.client.handle(self.now, Input::Opened(peer, &ends(50))),
                Output::Send(peer) => {
                    let message = bytes(&mut out);
                    let sequence = Header::decode(message.first_chunk().unwrap()).unwrap().sequence;
                    for number in 0..self.servers.len() {
                        let to_all = peer == GROUP && !(self.misses)(number, sequence);
                        if to_all || peer == Peer::accepted(number as u32) {
                            self.deliver(number, &message);
                        }
                    }
                }
                Output::Event(event) => self.events.push(event),
                Output::Close(_) => {}
                Output::Idle(_) => return,
            }
        }
    }

    /// Brings a message to a server, and what that answers to the sender.
    fn deliver(&mut self, number: usize, message: &[u8]) {
        let (server, mut out) = (&mut self.servers[number], Outbox::new());
        if !self.known[number][0] {
            self.known[number][0] = server.admits(self.now, &ends(99), message, &mut out);
            if !self.known[number][0] {
                let reply = bytes(&mut out);
                if !reply.is_empty() {
                    self.answer(number, &reply);
                }
                return;
            }
            server.handle(self.now, Input::Opened(SENDER, &ends(99)));
        }
        server.handle(self.now, Input::Received(SENDER, message));
        loop {
            let server = &mut self.servers[number];
            match server.poll(self.now, &mut out) {
                Output::Send(_) => {
                    let reply = bytes(&mut out);
                    self.answer(number, &reply);
                }
                Output::Event(ServerEvent::ReportAsked(peer)) => {
                    let command = ServerCommand::Report { peer, process: Counters::default() };
                    server.handle(self.now, Input::Command(command));
                }
                Output::Idle(_) => return,
                other => panic!("{other:?}"),
            }
        }
    }

    fn answer(&mut self, number: usize, reply: &[u8]) {
        let peer = Peer::accepted(number as u32);
        if !self.known[number][1] {
            if !self.client.admits(self.now, &ends(number), reply, &mut Outbox::new()) {
                return;
            }
            self.known[number][1] = true;
            self.client.handle(self.now, Input::Opened(peer, &ends(number)));
        }
        self.client.handle(self.now, Input::Received(peer, reply));
    }

    fn count(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| is_it(event)).count()
    }
}

fn bytes(out: &mut Outbox) -> Vec<u8> {
    out.seal();
    let bytes = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
    out.clear();
    bytes
}

#[test]
fn what_every_receiver_has_is_what_has_arrived_and_each_is_counted() {
    let mut network = Network::new(3, 3, |number, sequence| number == 2 && sequence % 5 == 4);
    network.settle();
    assert_eq!(network.count(|event| matches!(event, Event::Ready { .. })), 3, "{:?}", network.events);
    for tag in 0..100 {
        network.command(Command::Operation { tag, channel: 0, size: 64, direction: Direction::Send });
    }
    assert_eq!(network.count(|event| matches!(event, Event::Sent(_))), 100);
    network.command(Command::Report);
    let mut received: Vec<(u32, u64)> = Vec::new();
    let mut arrived = 0;
    for event in &network.events {
        match event {
            Event::Report { channel, counters, .. } => received.push((*channel, counters.received)),
            Event::Arrived { channel: 0, count } => arrived += count,
            _ => {}
        }
    }
    received.sort_unstable();
    assert_eq!(received, [(0, 100), (1, 100), (2, 80)]);
    assert_eq!(arrived, 80, "what one has missed has not arrived");
    let receivers: Vec<String> = network.client.receivers().map(ToString::to_string).collect();
    assert_eq!(receivers, [0, 1, 2].map(|node| Address::Node(node).to_string()));
}

#[test]
fn a_receiver_that_missed_the_greeting_is_greeted_again_and_one_too_many_is_left_alone() {
    let mut network = Network::new(3, 2, |number, _| number == 0);
    network.misses = |number, _| number != 1;
    network.settle();
    assert_eq!(network.count(|event| matches!(event, Event::Ready { .. })), 1);
    network.misses = |_, _| false;
    network.wait(SECOND / 8);
    assert_eq!(network.count(|event| matches!(event, Event::Ready { .. })), 2);
    assert_eq!(network.client.receivers().count(), 2);
    network.wait(2 * SECOND);
    assert_eq!(network.count(|event| matches!(event, Event::Failed { .. })), 0, "{:?}", network.events);
}

#[test]
fn missing_receivers_are_told_with_their_number() {
    let mut network = Network::new(2, 3, |_, _| false);
    network.settle();
    (0..9).for_each(|_| network.wait(SECOND / 8));
    let error = Error::Receivers { found: 2, wanted: 3 };
    assert!(network.events.contains(&Event::Failed { channel: 0, error }), "{:?}", network.events);
    assert!(error.to_string().starts_with("2 of 3 receivers"));
}

#[test]
fn strangers_do_not_become_receivers() {
    let mut client = Network::new(0, 1, |_, _| false).client;
    let welcome =
        |greeting: [u8; GREETING]| [&Header::new(Kind::Welcome, GREETING as u32, 0).encode()[..], &greeting].concat();
    let datagrams = [
        vec![],
        vec![0; 40],
        Header::new(Kind::Ack, 0, 3).encode().to_vec(),
        b"HTTP/1.1 400 Bad".to_vec(),
        welcome([0; GREETING]),
    ];
    for datagram in datagrams {
        assert!(!client.admits(Instant::ZERO, &ends(4), &datagram, &mut Outbox::new()), "{datagram:?}");
    }
    assert!(client.admits(Instant::ZERO, &ends(4), &welcome(encode_greeting(1000)), &mut Outbox::new()));
}
