//! Whatever a client makes a server retain is charged to it, and whoever has most is closed where it is too much.

use hodo_machine::{Address, Allowance, Ends, Input, Instant, Machine, Outbox, Output, Peer, Share};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Command as Ask, Ended, Event, Server, ServerConfig, Source};
use hodo_pva::session::CLAIMED;
use hodo_pva::wire::connection::{CreateChannel, Credentials};
use hodo_pva::wire::operation::{EndRequest, Operation, Subcommand};
use hodo_pva::wire::{Command, Side};
use hodo_pva::{Array, Error, Order, Scalar, Type, Value, Writer};
use std::net::SocketAddr;

/// The memory that the server may retain.
const ALLOWED: u64 = 4 << 20;
/// The argument of each call.
const ARGUMENT: usize = 10_000;

/// Makes arrays of a megabyte, which cost the server nothing until they are put to.
struct Arrays(Array);

impl Source for Arrays {
    fn has(&self, name: &str) -> bool {
        name.starts_with("made:")
    }

    fn make(&self, name: &str) -> Option<(Value, Access)> {
        let mut value = Value::of(Normative::scalar_array(Scalar::U8).build());
        value.set("value", self.0.clone()).expect("it fits");
        self.has(name).then_some((value, Access::Mailbox))
    }
}

/// A server that nobody who calls it is answered by, and clients that do not listen.
struct Scene {
    server: Server,
    closed: Vec<Peer>,
    ended: Vec<Ended>,
    calls: Vec<u64>,
    allowed: u64,
}

fn peer(number: u32) -> Peer {
    Peer::accepted(number)
}

fn bytes(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new(Side::Client, Order::Little);
    write(&mut writer);
    writer.to_vec()
}

fn claim(user: &str) -> Vec<u8> {
    let mut claim = Value::of(Type::structure("", [("user", Scalar::Text.into()), ("host", Scalar::Text.into())]));
    claim.set("user", user).expect("a text");
    let credentials = Credentials { buffer_bytes: 1, types: 1, priority: 0, way: CLAIMED.into(), claim: Some(claim) };
    bytes(|writer| credentials.encode(writer))
}

fn open(name: &str) -> Vec<u8> {
    bytes(|writer| CreateChannel { cid: 1, name: name.as_bytes() }.encode(writer))
}

fn set_up(command: Command, sid: u32, ioid: u32) -> Vec<u8> {
    bytes(|writer| {
        Operation { sid, ioid, subcommand: Subcommand::INIT }.begin(command, writer);
        Value::encode_any(None, writer);
        writer.end();
    })
}

/// Makes a value with an array of this many bytes.
fn array(bytes: usize) -> Value {
    let mut value = Value::of(Normative::scalar_array(Scalar::U8).build());
    value.unmark();
    value.set("value", Array::from(vec![7u8; bytes])).expect("it fits");
    value
}

fn call(ioid: u32) -> Vec<u8> {
    bytes(|writer| {
        Operation { sid: 0, ioid, subcommand: Subcommand::NONE }.begin(Command::Rpc, writer);
        Value::encode_any(Some(&array(ARGUMENT)), writer);
        writer.end();
    })
}

fn put(ioid: u32, length: usize) -> Vec<u8> {
    bytes(|writer| {
        Operation { sid: 0, ioid, subcommand: Subcommand::NONE }.begin(Command::Put, writer);
        array(length).encode_changed(writer);
        writer.end();
    })
}

impl Scene {
    /// Connects this many clients, which claim to be somebody.
    fn new(clients: u32) -> Self {
        let allowance = Allowance { peer_bytes: ALLOWED, host_bytes: ALLOWED, bytes: ALLOWED, ..Allowance::DEFAULT };
        let source = Arrays(vec![1u8; 1 << 20].into());
        let mut server = Server::new(ServerConfig { allowance, source: source.into(), ..ServerConfig::default() });
        server.serve("wave".into(), array(100), Access::Mailbox);
        server.serve("asked".into(), array(100), Access::Handled);
        let mut scene = Scene { server, closed: Vec::new(), ended: Vec::new(), calls: Vec::new(), allowed: ALLOWED };
        for number in 0..clients {
            scene.connect(number, number as u8);
        }
        scene
    }

    /// Connects a client of this host, which claims to be somebody.
    fn connect(&mut self, number: u32, host: u8) {
        let remote = Address::Tcp(SocketAddr::from(([192, 0, 2, host], 1)));
        self.server.handle(Instant::ZERO, Input::Opened(peer(number), &Ends::new(Address::Node(0), remote)));
        assert!(self.say(number, &claim("somebody")));
    }

    /// Sends bytes of a client; returns whether it is still connected.
    fn say(&mut self, number: u32, bytes: &[u8]) -> bool {
        if !self.closed.contains(&peer(number)) {
            self.server.handle(Instant::ZERO, Input::Received(peer(number), bytes));
        }
        let mut out = Outbox::new();
        loop {
            out.clear();
            match self.server.poll(Instant::ZERO, &mut out) {
                Output::Event(Event::Call { call, .. }) => self.calls.push(call),
                Output::Event(Event::Disconnected(.., why)) => self.ended.push(why),
                Output::Send(_) | Output::Event(_) => {}
                Output::Close(peer) => {
                    assert!(!self.closed.contains(&peer), "it is closed once");
                    self.closed.push(peer);
                }
                Output::Open(..) => panic!("a server opens nothing"),
                Output::Idle(_) => break,
            }
        }
        assert!(self.retained() <= self.allowed, "{} bytes are retained", self.retained());
        !self.closed.contains(&peer(number))
    }

    fn retained(&self) -> u64 {
        self.server.charges().expect("it charges").bytes()
    }

    /// Repeats what a client says until it is closed for the memory that it takes; returns how often it took.
    fn until_closed(&mut self, number: u32, say: impl Fn(u32) -> Vec<u8>) -> u32 {
        let times = (0..100_000).find(|round| !self.say(number, &say(*round))).expect("it is closed");
        assert!(matches!(self.ended.as_slice(), [Ended::Wrong(Error::TooMuchMemory(_))]), "{:?}", self.ended);
        times
    }
}

#[test]
fn a_message_before_a_channel_is_open_is_short() {
    let mut scene = Scene::new(2);
    let long = put(1, 1 << 17);
    assert!(!scene.say(0, &long[..8]), "its length is known from its header");
    assert!(matches!(scene.ended[0], Ended::Wrong(Error::OverLimit { what: "bytes of a message", max: 0x1_0000, .. })));
    assert!(scene.say(1, &open("wave")));
    assert!(scene.say(1, &long[..8]), "as long as a value may be");
}

#[test]
fn a_name_of_a_user_is_short() {
    let mut scene = Scene::new(0);
    let remote = Address::Tcp(SocketAddr::from(([192, 0, 2, 9], 1)));
    scene.server.handle(Instant::ZERO, Input::Opened(peer(9), &Ends::new(Address::Node(0), remote)));
    assert!(!scene.say(9, &claim(&"x".repeat(256))));
    let why = scene.ended.pop();
    assert_eq!(
        why,
        Some(Ended::Wrong(Error::OverLimit { what: "bytes of a user's or host's name", count: 256, max: 255 }))
    );
}

#[test]
fn messages_that_do_not_end_take_no_more_than_is_allowed() {
    let mut scene = Scene::new(3);
    let long = put(1, 64 << 20);
    for number in 0..2 {
        assert!(scene.say(number, &open("wave")));
        assert!(scene.say(number, &long[..64 << 10]));
    }
    let piece = 64 << 10;
    let took = scene.until_closed(0, |round| long[piece * (round as usize + 1)..][..piece].to_vec());
    assert!((10..64).contains(&took), "{took} pieces");
    assert_eq!(scene.closed, [peer(0)], "and no other");
    assert!(scene.say(2, &open("wave")));
}

#[test]
fn calls_that_nobody_answers_and_calls_that_are_cancelled_are_charged_until_they_are_answered() {
    for cancels in [false, true] {
        let mut scene = Scene::new(2);
        assert!(scene.say(0, &open("asked")));
        let ioid = |round: u32| if cancels { 1 } else { round + 1 };
        if cancels {
            assert!(scene.say(0, &set_up(Command::Rpc, 0, 1)));
        }
        let before = scene.retained();
        assert!(scene.say(0, &[set_up(Command::Rpc, 0, 99_999), call(99_999)].concat()));
        let (waiting, one) = (scene.retained(), scene.calls[0]);
        assert!(waiting > before + ARGUMENT as u64);
        scene.server.handle(Instant::ZERO, Input::Command(Ask::Answer { call: one, result: Ok(None) }));
        assert!(scene.say(1, &open("wave")) && scene.say(0, &open("wave")));
        assert!(scene.retained() < waiting - ARGUMENT as u64, "an answered one takes nothing");
        let took = scene.until_closed(0, |round| {
            let cancel = bytes(|writer| EndRequest { sid: 0, ioid: 1 }.encode(Command::CancelRequest, writer));
            let first = if cancels { cancel } else { set_up(Command::Rpc, 0, ioid(round)) };
            [first, call(ioid(round))].concat()
        });
        assert!((200..500).contains(&took), "{took} calls");
        let late = scene.calls.pop().expect("a call");
        scene.server.handle(Instant::ZERO, Input::Command(Ask::Answer { call: late, result: Ok(None) }));
        assert!(scene.say(1, &open("wave")), "the answer to a client that is gone changes nothing");
    }
}

#[test]
fn calls_of_a_channel_that_is_removed_before_the_application_knows_of_them_are_not_waited_for() {
    let mut scene = Scene::new(1);
    assert!(scene.say(0, &open("asked")));
    let before = scene.retained();
    let asks = [set_up(Command::Rpc, 0, 1), call(1)].concat();
    scene.server.handle(Instant::ZERO, Input::Received(peer(0), &asks));
    scene.server.handle(Instant::ZERO, Input::Command(Ask::Remove { name: "asked".into() }));
    assert!(scene.say(0, &open("wave")) && scene.calls.is_empty());
    assert!(scene.server.is_drained() && scene.retained() < before + ARGUMENT as u64 / 2);
}

#[test]
fn a_call_that_was_cancelled_does_not_hold_up_the_end() {
    let mut scene = Scene::new(1);
    assert!(scene.say(0, &[open("asked"), set_up(Command::Rpc, 0, 1), call(1)].concat()));
    assert!(!scene.server.is_drained());
    assert!(scene.say(0, &bytes(|writer| EndRequest { sid: 0, ioid: 1 }.encode(Command::CancelRequest, writer))));
    assert!(scene.server.is_drained());
}

#[test]
fn channels_and_operations_are_charged() {
    let mut scene = Scene::new(2);
    assert!(scene.say(0, &open("wave")));
    let took = scene.until_closed(0, |round| [open("wave"), set_up(Command::Get, 0, round + 1)].concat());
    assert!((500..10_000).contains(&took), "{took} of each");
    assert_eq!(scene.retained(), scene.server.charges().expect("it charges").of(peer(1)));
}

#[test]
fn a_client_has_a_thousand_subscriptions_to_a_channel_at_most() {
    let mut scene = Scene::new(1);
    assert!(scene.say(0, &open("wave")));
    let monitors: Vec<u8> = (0..1100).flat_map(|ioid| set_up(Command::Monitor, 0, ioid)).collect();
    assert!(scene.say(0, &monitors));
    assert_eq!(scene.server.client(peer(0)).map(|client| client.subscriptions), Some(1000));
    let end = bytes(|writer| EndRequest { sid: 0, ioid: 7 }.encode(Command::DestroyRequest, writer));
    assert!(scene.say(0, &[end, set_up(Command::Monitor, 0, 7000), set_up(Command::Monitor, 0, 7001)].concat()));
    assert_eq!(scene.server.client(peer(0)).map(|client| client.subscriptions), Some(1000));
}

#[test]
fn the_clients_of_a_host_have_ten_thousand_subscriptions_to_a_channel_at_most() {
    let allowance = Allowance::of_bytes(100 << 20);
    let mut server = Server::new(ServerConfig { allowance, ..ServerConfig::default() });
    server.serve("wave".into(), array(100), Access::Mailbox);
    let mut scene = Scene { server, closed: Vec::new(), ended: Vec::new(), calls: Vec::new(), allowed: 100 << 20 };
    let monitors: Vec<u8> = (0..1000).flat_map(|ioid| set_up(Command::Monitor, 0, ioid)).collect();
    let mut subscribed = |number: u32, host: u8| {
        scene.connect(number, host);
        assert!(scene.say(number, &open("wave")) && scene.say(number, &monitors));
        scene.server.client(peer(number)).map_or(0, |client| client.subscriptions)
    };
    let of_one: usize = (0..12).map(|number| subscribed(number, 1)).sum();
    assert_eq!((of_one, subscribed(12, 2)), (10_000, 1000));
    scene.server.handle(Instant::ZERO, Input::Closed(peer(3), hodo_machine::Closed::Finished));
    assert!(scene.say(11, &monitors));
    assert_eq!(scene.server.client(peer(11)).map(|client| client.subscriptions), Some(1000), "their places are free");
}

#[test]
fn types_are_charged_with_their_names() {
    let mut scene = Scene::new(1);
    assert!(scene.say(0, &open("wave")));
    let long = "n".repeat(30_000);
    let took = scene.until_closed(0, |round| {
        bytes(|writer| {
            Operation { sid: 0, ioid: round + 1, subcommand: Subcommand::INIT }.begin(Command::Get, writer);
            writer.u8(0xFD);
            writer.u16(round as u16);
            Type::structure("", [(long.as_str(), Scalar::Bool.into())]).encode(writer);
            writer.u8(0);
            writer.end();
        })
    });
    assert!((20..150).contains(&took), "{took} types");
}

#[test]
fn what_is_put_to_channels_that_are_made_is_shared_out_among_those_who_have_them_open() {
    let mut scene = Scene::new(3);
    // One client puts a little, and both have it open; the other puts ever more.
    assert!(scene.say(0, &[open("made:0"), set_up(Command::Put, 0, 1), put(1, 900_000)].concat()));
    assert!(scene.say(1, &open("made:0")));
    let took = scene.until_closed(1, |round| {
        let sid = round + 1;
        [open(&format!("made:{sid}")), set_up(Command::Put, sid, sid), put(sid, 500_000 + sid as usize)].concat()
    });
    assert!((5..7).contains(&took), "{took} arrays");
    assert_eq!(scene.closed, [peer(1)]);
    let Ended::Wrong(Error::TooMuchMemory(over)) = scene.ended.pop().expect("one") else { panic!("another end") };
    assert_eq!((over.peer, over.share, over.max), (peer(1), Share::All, ALLOWED));
    assert!(scene.say(2, &[open("made:9"), set_up(Command::Put, 0, 1), put(1, 900_000)].concat()));
}
