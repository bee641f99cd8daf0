//! A server answers every operation, tells its subscribers what they missed, and owes a client that does not read no more than it asked for.

use hodo_machine::{Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Command as Ask, Ended, Event, Server, ServerConfig, Source};
use hodo_pva::session::{Session, SessionConfig};
use hodo_pva::wire::connection::{ChannelCreated, CreateChannel, DestroyChannel};
use hodo_pva::wire::discovery::{SearchFront, SearchResponse};
use hodo_pva::wire::operation::{EndRequest, FieldReply, GetField, Operation, Reply, Subcommand};
use hodo_pva::wire::{Command, Inbound, Incoming, Message, Side, Status};
use hodo_pva::{
    Array, BitSet, Datum, Item, Limits, Order, Plan, Reader, Request, Scalar, Type, TypeCache, Value, Writer,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const LIMITS: Limits = Limits::DEFAULT;

fn peer(number: u32) -> Peer {
    Peer::accepted(number)
}

/// A server, and clients that remember the types of their operations.
struct Scene {
    server: Server,
    clients: Vec<Client>,
    events: Vec<Event>,
    closed: Vec<Peer>,
    now: Instant,
}

struct Client {
    session: Session,
    inbound: Inbound,
    types: TypeCache,
    plans: HashMap<u32, Arc<Plan>>,
    said: Vec<Said>,
}

/// A message of the server, as far as the tests ask.
#[derive(Debug)]
struct Said {
    command: Command,
    ioid: u32,
    subcommand: Subcommand,
    status: Status,
    value: Option<Value>,
    overrun: BitSet,
}

impl Said {
    fn number(&self, path: &str) -> Option<f64> {
        self.value.as_ref()?.get(path)?.as_f64()
    }
}

impl Client {
    fn take(&mut self, message: &Message<'_>) {
        let mut reader = message.reader(&LIMITS);
        let command = Command::from_code(message.command);
        let mut said = Said {
            command,
            ioid: 0,
            subcommand: Subcommand::NONE,
            status: Status::OK,
            value: None,
            overrun: BitSet::new(),
        };
        match command {
            Command::CreateChannel => {
                let created = ChannelCreated::decode(&mut reader).expect("it is one");
                (said.ioid, said.status) = (created.sid, created.status);
            }
            Command::DestroyChannel => said.ioid = DestroyChannel::decode(&mut reader).expect("it is one").cid,
            Command::GetField => {
                let reply = FieldReply::decode(&mut reader).expect("it is one");
                let plan =
                    reply.status.is_success().then(|| self.types.decode(&mut reader).expect("a type").expect("one"));
                said.value = plan.map(|plan| Value::new(&plan));
                (said.ioid, said.status) = (reply.ioid, reply.status);
            }
            Command::SearchResponse => {
                said.ioid = SearchResponse::decode(&mut reader).expect("it is one").channels().count() as u32;
            }
            _ => {
                let reply = Reply::decode(command, &mut reader).expect("it is one");
                let is_end = command == Command::Monitor && reply.subcommand.has(Subcommand::DESTROY);
                if reply.status.is_success() && !is_end {
                    self.value(&reply, &mut reader, &mut said);
                }
                (said.ioid, said.subcommand, said.status) = (reply.ioid, reply.subcommand, reply.status);
            }
        }
        assert!(reader.rest().is_empty(), "{command:?}: bytes are left");
        self.said.push(said);
    }

    fn value(&mut self, reply: &Reply, reader: &mut Reader<'_>, said: &mut Said) {
        if reply.subcommand.has(Subcommand::INIT) {
            while !reader.rest().is_empty() {
                let plan = self.types.decode(reader).expect("a type").expect("one");
                self.plans.insert(reply.ioid, plan);
            }
            return;
        }
        if said.command == Command::Rpc {
            said.value = Value::decode_any(reader, &mut self.types).expect("a value");
        } else if !reader.rest().is_empty() {
            let mut value = Value::new(&self.plans[&reply.ioid]);
            value.decode_changed(reader, &mut self.types).expect("a value");
            if said.command == Command::Monitor {
                said.overrun.decode(value.plan().len(), reader).expect("a set");
            }
            said.value = Some(value);
        }
    }
}

fn sample() -> Value {
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().build());
    value.set("value", 1.5).expect("it fits");
    value
}

/// Makes every channel whose name begins with `made:`.
struct Made;

impl Source for Made {
    fn has(&self, name: &str) -> bool {
        name.starts_with("made:")
    }

    fn make(&self, name: &str) -> Option<(Value, Access)> {
        self.has(name).then(|| (sample(), Access::Mailbox))
    }
}

impl Scene {
    fn new(clients: u32) -> Self {
        let mut scene = Scene {
            server: Server::new(ServerConfig { queue_max: 100, source: Made.into(), ..ServerConfig::default() }),
            clients: Vec::new(),
            events: Vec::new(),
            closed: Vec::new(),
            now: Instant::ZERO,
        };
        for (name, access) in [("fixed", Access::ReadOnly), ("box", Access::Mailbox), ("asked", Access::Handled)] {
            scene.command(Ask::Serve { name: name.into(), value: Box::new(sample()), access });
        }
        for number in 0..clients {
            scene.clients.push(Client {
                session: Session::new(Side::Client, SessionConfig::default(), Instant::ZERO),
                inbound: Inbound::new(Side::Server),
                types: TypeCache::new(),
                plans: HashMap::new(),
                said: Vec::new(),
            });
            scene.server.handle(scene.now, Input::Opened(peer(number), &Ends::nodes(0, number)));
            scene.settle();
        }
        scene
    }

    fn command(&mut self, command: Ask) {
        self.server.handle(self.now, Input::Command(command));
        self.settle();
    }

    /// Carries everything to and fro until nobody says anything.
    fn settle(&mut self) {
        let mut out = Outbox::new();
        loop {
            out.clear();
            match self.server.poll(self.now, &mut out) {
                Output::Send(peer) => {
                    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
                    self.arrive(peer.index(), &bytes);
                }
                Output::Event(event) => self.events.push(event),
                Output::Close(peer) => self.closed.push(peer),
                Output::Open(..) => panic!("a server opens nothing"),
                Output::Idle(_) => {
                    let asked: Vec<Vec<u8>> =
                        self.clients.iter_mut().map(|client| taken(&mut client.session.writer)).collect();
                    if asked.iter().all(Vec::is_empty) {
                        return;
                    }
                    for (number, bytes) in (0..).zip(asked) {
                        self.server.handle(self.now, Input::Received(peer(number), &bytes));
                    }
                }
            }
        }
    }

    fn arrive(&mut self, number: usize, bytes: &[u8]) {
        let client = &mut self.clients[number];
        let mut rest = bytes;
        let mut inbound = std::mem::replace(&mut client.inbound, Inbound::new(Side::Server));
        while let Some(incoming) = inbound.next(&mut rest, &LIMITS).expect("a server's stream") {
            let step = client.session.take(self.now, &incoming).expect("it is allowed");
            if let (hodo_pva::session::Step::Pass, Incoming::Message(message)) = (step, &incoming) {
                client.take(message);
            }
        }
        client.inbound = inbound;
    }

    /// Sends messages of a client, and returns what the server says to it.
    fn say(&mut self, number: usize, write: impl FnOnce(&mut Writer)) -> Vec<Said> {
        write(&mut self.clients[number].session.writer);
        self.settle();
        std::mem::take(&mut self.clients[number].said)
    }

    fn open(&mut self, number: usize, name: &str) -> u32 {
        let said = self.say(number, |writer| CreateChannel { cid: 7, name: name.as_bytes() }.encode(writer));
        assert!(said[0].status.is_success(), "{said:?}");
        said[0].ioid
    }

    /// Sets an operation up on a channel.
    fn set_up(&mut self, number: usize, name: &str, command: Command, ioid: u32, request: &str) -> Status {
        let sid = self.open(number, name);
        let request = request.parse::<Request>().expect("it is one").to_value();
        let said = self.say(number, |writer| {
            Operation { sid, ioid, subcommand: Subcommand::INIT }.begin(command, writer);
            Value::encode_any(Some(&request), writer);
            writer.end();
        });
        said.into_iter().next().expect("an answer").status
    }

    fn execute(&mut self, number: usize, command: Command, ioid: u32, subcommand: Subcommand) -> Vec<Said> {
        self.say(number, |writer| Operation { sid: 0, ioid, subcommand }.encode(command, writer))
    }

    fn put(&mut self, number: usize, command: Command, ioid: u32, to: f64) -> Vec<Said> {
        let mut value = Value::new(&self.clients[number].plans[&ioid]);
        value.set("value", to).expect("it fits");
        self.say(number, |writer| {
            Operation { sid: 0, ioid, subcommand: Subcommand::NONE }.begin(command, writer);
            value.encode_changed(writer);
            writer.end();
        })
    }

    fn post(&mut self, name: &str, to: f64) {
        let mut value = sample();
        value.unmark();
        value.set("value", to).expect("it fits");
        self.command(Ask::Post { name: name.into(), value: Box::new(value) });
    }
}

fn taken(writer: &mut Writer) -> Vec<u8> {
    let bytes = writer.to_vec();
    writer.flush(&mut Outbox::new());
    bytes
}

fn numbers(said: &[Said]) -> Vec<Option<f64>> {
    said.iter().map(|one| one.number("value")).collect()
}

#[test]
fn a_get_has_the_fields_that_were_asked_for() {
    let mut scene = Scene::new(1);
    assert_eq!(scene.set_up(0, "fixed", Command::Get, 1, "field()"), Status::OK);
    assert_eq!(scene.set_up(0, "fixed", Command::Get, 2, "alarm.severity"), Status::OK);
    let all = scene.execute(0, Command::Get, 1, Subcommand::NONE);
    assert_eq!((all.len(), all[0].number("value")), (1, Some(1.5)));
    let some = scene.execute(0, Command::Get, 2, Subcommand::DESTROY);
    assert_eq!(some[0].value.as_ref().map(|value| value.changed().len()), Some(1));
    let gone = scene.execute(0, Command::Get, 2, Subcommand::NONE);
    assert!(!gone[0].status.is_success(), "it was the last time");
    assert!(!scene.set_up(0, "fixed", Command::Get, 3, "absent").is_success());
    assert!(!scene.set_up(0, "fixed", Command::Get, 1, "").is_success(), "the number is taken");
    assert!(!scene.set_up(0, "fixed", Command::Array, 4, "").is_success(), "an answer, not silence");
}

#[test]
fn what_is_put_to_a_mailbox_is_its_value_and_told_to_subscribers() {
    let mut scene = Scene::new(2);
    assert_eq!(scene.set_up(1, "box", Command::Monitor, 9, ""), Status::OK);
    assert_eq!(numbers(&scene.execute(1, Command::Monitor, 9, Subcommand::START)), [Some(1.5)]);
    assert_eq!(scene.set_up(0, "box", Command::Put, 1, "field(value)"), Status::OK);
    assert!(scene.put(0, Command::Put, 1, 8.5)[0].status.is_success());
    let update = scene.clients[1].said.pop().expect("the subscriber is told");
    assert_eq!((update.number("value"), update.overrun.is_empty()), (Some(8.5), true));
    assert_eq!(scene.server.value("box").and_then(|value| value.get("value")?.as_f64()), Some(8.5));
    assert_eq!(numbers(&scene.execute(0, Command::Put, 1, Subcommand::GET)), [Some(8.5)], "read back");
    assert_eq!(scene.set_up(0, "box", Command::PutGet, 2, ""), Status::OK);
    assert_eq!(numbers(&scene.put(0, Command::PutGet, 2, 9.0)), [Some(9.0)]);
    assert_eq!(scene.set_up(0, "fixed", Command::Put, 3, ""), Status::OK);
    assert!(!scene.put(0, Command::Put, 3, 1.0)[0].status.is_success(), "it can only be read");
    assert_eq!(scene.set_up(0, "box", Command::Process, 4, ""), Status::OK);
    assert!(scene.execute(0, Command::Process, 4, Subcommand::NONE)[0].status.is_success());
}

#[test]
fn the_application_answers_puts_and_calls_of_a_handled_channel() {
    let mut scene = Scene::new(1);
    assert_eq!(scene.set_up(0, "asked", Command::Put, 1, ""), Status::OK);
    assert!(scene.put(0, Command::Put, 1, 2.0).is_empty(), "not before the application has answered");
    let Some(Event::Put { call, channel, value, .. }) = scene.events.pop() else { panic!("no event") };
    assert_eq!(
        (scene.server.name(channel), value.get("value").and_then(Item::as_f64), value.changed().len()),
        (Some("asked"), Some(2.0), 1)
    );
    assert!(!scene.put(0, Command::Put, 1, 3.0)[0].status.is_success(), "one at a time");
    scene.command(Ask::Answer { call, result: Err(Status::error("not now")) });
    assert_eq!(scene.clients[0].said.pop().map(|said| said.status), Some(Status::error("not now")));
    assert_eq!(scene.set_up(0, "asked", Command::Rpc, 2, ""), Status::OK);
    for result in [Ok(Some(Box::new(sample()))), Ok(None), Err(Status::error("refused"))] {
        scene.say(0, |writer| {
            Operation { sid: 0, ioid: 2, subcommand: Subcommand::NONE }.begin(Command::Rpc, writer);
            Value::encode_any(Some(&sample()), writer);
            writer.end();
        });
        let Some(Event::Call { call, argument, .. }) = scene.events.pop() else { panic!("no event") };
        assert_eq!(argument.as_deref(), Some(&sample()));
        scene.command(Ask::Answer { call, result: result.clone() });
        let said = scene.clients[0].said.pop().expect("an answer");
        assert_eq!(
            (said.value, said.status),
            match result {
                Ok(value) => (value.map(|value| *value), Status::OK),
                Err(status) => (None, status),
            }
        );
        scene.command(Ask::Answer { call, result: Ok(None) });
        assert!(scene.clients[0].said.is_empty(), "an answer counts once");
    }
}

#[test]
fn a_monitor_starts_stops_and_counts() {
    let mut scene = Scene::new(1);
    assert_eq!(scene.set_up(0, "box", Command::Monitor, 1, "record[queueSize=2]"), Status::OK);
    scene.post("box", 2.0);
    assert!(scene.clients[0].said.is_empty(), "not started");
    let said = scene.execute(0, Command::Monitor, 1, Subcommand::START);
    assert_eq!(numbers(&said), [Some(1.5), Some(2.0)]);
    assert!(scene.execute(0, Command::Monitor, 1, Subcommand::STOP).is_empty());
    for number in 3..=9 {
        scene.post("box", number.into());
    }
    let said = scene.execute(0, Command::Monitor, 1, Subcommand::START);
    assert_eq!(numbers(&said), [Some(3.0), Some(9.0)]);
    assert_eq!(said.iter().map(|one| one.overrun.has(1)).collect::<Vec<_>>(), [false, true]);
    scene.say(0, |writer| EndRequest { sid: 0, ioid: 1 }.encode(Command::DestroyRequest, writer));
    scene.post("box", 10.0);
    assert!(scene.clients[0].said.is_empty(), "nobody is subscribed");
}

#[test]
fn a_pipelined_monitor_sends_as_many_as_it_may() {
    let mut scene = Scene::new(1);
    let sid = scene.open(0, "box");
    let at = Subcommand::INIT.with(Subcommand::PIPELINE);
    scene.say(0, |writer| {
        Operation { sid, ioid: 1, subcommand: at }.begin(Command::Monitor, writer);
        Value::encode_any(
            Some(&"record[queueSize=9,pipeline=true]".parse::<Request>().expect("one").to_value()),
            writer,
        );
        writer.u32(2);
        writer.end();
    });
    assert_eq!(scene.execute(0, Command::Monitor, 1, Subcommand::START).len(), 1);
    for number in 2..=4 {
        scene.post("box", number.into());
    }
    assert_eq!(numbers(&std::mem::take(&mut scene.clients[0].said)), [Some(2.0)]);
    let said = scene.say(0, |writer| {
        Operation { sid, ioid: 1, subcommand: Subcommand::PIPELINE }.begin(Command::Monitor, writer);
        writer.u32(5);
        writer.end();
    });
    assert_eq!(numbers(&said), [Some(3.0), Some(4.0)], "none is lost");
}

/// One client reads nothing for a while. It is heard, its updates become one, and the other client notices nothing.
#[test]
fn a_client_that_does_not_read_costs_the_others_nothing() {
    let mut scene = Scene::new(2);
    for number in 0..2 {
        assert_eq!(scene.set_up(number, "box", Command::Monitor, 1, ""), Status::OK);
        scene.execute(number, Command::Monitor, 1, Subcommand::START);
        assert_eq!(scene.set_up(number, "box", Command::Get, 2, ""), Status::OK);
    }
    scene.server.handle(scene.now, Input::Blocked(peer(0)));
    for number in 2..=50 {
        scene.post("box", number.into());
        assert_eq!(numbers(&std::mem::take(&mut scene.clients[1].said)), [Some(f64::from(number))]);
    }
    assert!(scene.execute(0, Command::Get, 2, Subcommand::NONE).is_empty());
    scene.say(0, |writer| EndRequest { sid: 0, ioid: 77 }.encode(Command::DestroyRequest, writer));
    scene.server.handle(scene.now, Input::Drained(peer(0)));
    scene.settle();
    let said = std::mem::take(&mut scene.clients[0].said);
    let commands: Vec<_> = said.iter().map(|one| one.command).collect();
    assert_eq!(commands[0], Command::Get, "replies come first");
    assert_eq!(numbers(&said), [Some(50.0), Some(2.0), Some(3.0), Some(4.0), Some(50.0)]);
    assert!(said[4].overrun.has(1) && !said[3].overrun.has(1));
}

#[test]
fn replies_that_nobody_reads_have_a_bound() {
    let config = ServerConfig { operations_max: 10, ..ServerConfig::default() };
    let mut scene = Scene::new(1);
    let mut large = Value::of(Type::structure("", [("value", Type::array(Scalar::F64))]));
    large.set("value", Datum::Array(Array::from(vec![0.0; 1000]))).expect("it fits");
    scene.server = Server::new(config);
    scene.command(Ask::Serve { name: "box".into(), value: Box::new(large), access: Access::Mailbox });
    scene.clients[0].session = Session::new(Side::Client, SessionConfig::default(), Instant::ZERO);
    scene.server.handle(scene.now, Input::Opened(peer(0), &Ends::nodes(0, 1)));
    scene.settle();
    assert_eq!(scene.set_up(0, "box", Command::Get, 1, ""), Status::OK);
    scene.server.handle(scene.now, Input::Blocked(peer(0)));
    for _ in 0..20 {
        assert!(scene.execute(0, Command::Get, 1, Subcommand::NONE).is_empty() && scene.closed.is_empty());
    }
    scene.execute(0, Command::Get, 1, Subcommand::NONE);
    assert_eq!(scene.closed, [peer(0)]);
}

#[test]
fn channels_are_found_described_and_closed() {
    let mut scene = Scene::new(1);
    let absent = scene.say(0, |writer| CreateChannel { cid: 1, name: b"absent" }.encode(writer));
    assert!(!absent[0].status.is_success());
    let sid = scene.open(0, "box");
    let whole = scene.say(0, |writer| GetField { sid, ioid: 3, field: b"" }.encode(writer));
    assert_eq!(whole[0].value.as_ref().map(|value| value.plan().of().clone()), Some(sample().plan().of().clone()));
    let none = scene.say(0, |writer| GetField { sid, ioid: 3, field: b"alarm.none" }.encode(writer));
    assert!(!none[0].status.is_success());
    let address = "::".parse().expect("an address");
    let front = SearchFront { sequence: 5, flags: 0, address, port: 0, protocols: &["tcp"] };
    let found =
        scene.say(0, |writer| front.encode([(1, &b"box"[..]), (2, b"absent"), (3, b"fixed")].into_iter(), writer));
    assert_eq!((found[0].command, found[0].ioid), (Command::SearchResponse, 2));
    assert_eq!(scene.set_up(0, "box", Command::Get, 4, ""), Status::OK);
    scene.command(Ask::Remove { name: "box".into() });
    let told = std::mem::take(&mut scene.clients[0].said);
    assert_eq!(told.iter().map(|one| one.command).collect::<Vec<_>>(), [Command::DestroyChannel; 2]);
    let gone = scene.execute(0, Command::Get, 4, Subcommand::NONE);
    assert!(!gone[0].status.is_success());
    let sid = scene.open(0, "fixed");
    let closed = scene.say(0, |writer| DestroyChannel { sid, cid: 7 }.encode(writer));
    assert_eq!((closed[0].command, closed[0].ioid), (Command::DestroyChannel, 7));
}

#[test]
fn a_client_that_breaks_the_rules_or_falls_silent_is_closed() {
    let mut scene = Scene::new(2);
    scene.server.handle(scene.now, Input::Received(peer(0), b"GET / HTTP/1.1\r\n"));
    scene.settle();
    assert_eq!(scene.closed, [peer(0)]);
    scene.now = Instant::ZERO + Duration::from_secs(40);
    scene.server.handle(scene.now, Input::Elapsed);
    scene.settle();
    assert_eq!(scene.closed, [peer(0), peer(1)]);
    let mut out = Outbox::new();
    assert!(matches!(scene.server.poll(scene.now, &mut out), Output::Idle(None)), "nothing is left of them");
}

#[test]
fn big_endian_servers_are_understood() {
    let session = SessionConfig { order: Order::Big, ..SessionConfig::default() };
    let mut scene = Scene::new(1);
    scene.server = Server::new(ServerConfig { session, ..ServerConfig::default() });
    scene.command(Ask::Serve { name: "fixed".into(), value: Box::new(sample()), access: Access::ReadOnly });
    scene.clients[0].session = Session::new(Side::Client, SessionConfig::default(), Instant::ZERO);
    scene.server.handle(scene.now, Input::Opened(peer(0), &Ends::nodes(0, 1)));
    scene.settle();
    assert_eq!(scene.set_up(0, "fixed", Command::Get, 1, ""), Status::OK);
    assert_eq!(numbers(&scene.execute(0, Command::Get, 1, Subcommand::NONE)), [Some(1.5)]);
    assert_eq!(scene.clients[0].session.writer.order(), Order::Big);
}

#[test]
fn puts_that_arrive_together_are_one_update_each() {
    let mut scene = Scene::new(2);
    assert_eq!(scene.set_up(1, "box", Command::Monitor, 9, "record[queueSize=10]"), Status::OK);
    scene.execute(1, Command::Monitor, 9, Subcommand::START);
    assert_eq!(scene.set_up(0, "box", Command::Put, 1, "field(value)"), Status::OK);
    let mut value = Value::new(&scene.clients[0].plans[&1]);
    scene.say(0, |writer| {
        for number in 1..=5 {
            value.set("value", f64::from(number)).expect("it fits");
            Operation { sid: 0, ioid: 1, subcommand: Subcommand::NONE }.begin(Command::Put, writer);
            value.encode_changed(writer);
            writer.end();
        }
    });
    assert_eq!(numbers(&scene.clients[1].said), [1.0, 2.0, 3.0, 4.0, 5.0].map(Some));
    assert!(scene.clients[1].said.iter().all(|update| update.overrun.is_empty()), "nothing is lost");
}

#[test]
fn what_a_source_has_merged_is_told_as_overrun() {
    let mut scene = Scene::new(1);
    assert_eq!(scene.set_up(0, "box", Command::Monitor, 9, "value"), Status::OK);
    scene.execute(0, Command::Monitor, 9, Subcommand::START);
    let mut value = sample();
    value.unmark();
    value.set("value", 3.0).expect("it fits");
    let number = (0..9).find(|number| scene.server.name(*number) == Some("box")).expect("it is served");
    scene.server.post(number, &value, &BitSet::from_iter([1, 3]));
    scene.command(Ask::Publish);
    let update = scene.clients[0].said.pop().expect("an update");
    assert_eq!(
        (update.number("value"), update.overrun),
        (Some(3.0), BitSet::from_iter([1])),
        "only of what is selected"
    );
}

#[test]
fn the_application_learns_who_comes_and_why_one_goes() {
    let mut scene = Scene::new(1);
    assert!(matches!(&scene.events[..], [Event::Connected(of, _)] if *of == peer(0)), "{:?}", scene.events);
    assert_eq!(scene.set_up(0, "box", Command::Monitor, 9, "value"), Status::OK);
    let client = scene.server.client(peer(0)).expect("it is there");
    assert_eq!((client.claim, client.channels, client.operations, client.subscriptions), (None, 1, 1, 1));
    scene.server.handle(scene.now, Input::Received(peer(0), b"GET / HTTP/1.1\r\n"));
    scene.settle();
    let Some(Event::Disconnected(_, client, Ended::Wrong(why))) = scene.events.pop() else { panic!("no end") };
    assert_eq!((client.ends, why), (Ends::nodes(0, 0), hodo_pva::Error::NotPva { first: b'G' }));
    assert_eq!((scene.closed.len(), scene.server.clients().count(), scene.server.counters().clients), (1, 0, 1));
}

#[test]
fn a_server_that_is_to_stop_answers_what_it_has_and_accepts_no_more() {
    let mut scene = Scene::new(1);
    assert_eq!(scene.set_up(0, "asked", Command::Put, 1, ""), Status::OK);
    assert_eq!(scene.set_up(0, "asked", Command::Get, 2, ""), Status::OK);
    assert!(scene.server.is_drained());
    scene.put(0, Command::Put, 1, 2.0);
    let Some(Event::Put { call, .. }) = scene.events.pop() else { panic!("no event") };
    scene.command(Ask::Drain);
    assert!(!scene.server.is_drained(), "a put is not answered");
    scene.command(Ask::Answer { call, result: Ok(None) });
    assert!(scene.clients[0].said.pop().is_some_and(|said| said.status.is_success()) && scene.server.is_drained());
    assert!(!scene.put(0, Command::Put, 1, 3.0)[0].status.is_success(), "no more");
    assert_eq!(numbers(&scene.execute(0, Command::Get, 2, Subcommand::NONE)), [Some(1.5)]);
}

#[test]
fn a_channel_of_a_source_lives_as_long_as_a_client_has_it_open() {
    let mut scene = Scene::new(2);
    let sids = [scene.open(0, "made:1"), scene.open(1, "made:1")];
    assert_eq!(scene.set_up(0, "made:1", Command::Put, 1, ""), Status::OK);
    assert!(scene.put(0, Command::Put, 1, 8.5)[0].status.is_success());
    assert_eq!(scene.set_up(1, "made:1", Command::Get, 1, ""), Status::OK);
    assert_eq!(numbers(&scene.execute(1, Command::Get, 1, Subcommand::NONE)), [Some(8.5)], "it is one channel");
    scene.server.handle(scene.now, Input::Closed(peer(0), Closed::Reset));
    scene.settle();
    assert!(scene.server.value("made:1").is_some(), "the other client has it open twice");
    let sid = sids[1];
    scene.say(1, |writer| DestroyChannel { sid, cid: 7 }.encode(writer));
    assert!(scene.server.value("made:1").is_some(), "and now once");
    scene.server.handle(scene.now, Input::Closed(peer(1), Closed::Reset));
    scene.settle();
    assert!(scene.server.value("made:1").is_none());
    let refused = Scene::new(1).say(0, |writer| CreateChannel { cid: 7, name: b"absent" }.encode(writer));
    assert!(!refused[0].status.is_success());
}

#[test]
fn a_removed_channel_of_a_source_is_made_anew() {
    let mut scene = Scene::new(1);
    scene.open(0, "made:1");
    scene.command(Ask::Remove { name: "made:1".into() });
    assert!(scene.server.value("made:1").is_none());
    scene.open(0, "made:1");
    assert_eq!(scene.server.value("made:1").and_then(|value| value.get("value")?.as_f64()), Some(1.5));
    scene.command(Ask::Serve { name: "made:1".into(), value: Box::new(sample()), access: Access::ReadOnly });
    scene.server.handle(scene.now, Input::Closed(peer(0), Closed::Reset));
    assert!(scene.server.value("made:1").is_some(), "the application serves it now");
}
