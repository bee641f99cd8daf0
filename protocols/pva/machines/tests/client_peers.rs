//! The client against the recorded replies of the field's own servers: types by number, segments, both byte orders, texts in between,
//! updates after a stop, a channel that the server closes.

use crate::golden;
use crate::rig;

use golden::{hex, lines};
use hodo_machine::{Instant, Peer};
use hodo_pva::client::{ArrayRequest, ClientConfig, Command, Event, Failure, Kind, Lost};
use hodo_pva::wire::connection::{CreateChannel, Validation};
use hodo_pva::wire::operation::{ArrayPlace, ArraySlice, Subcommand};
use hodo_pva::wire::{Command as Code, Inbound, Incoming, Message, Severity, Side};
use hodo_pva::{Array, Item, Limits, Order, Writer};
use rig::{Far, Rig};
use std::collections::{HashMap, VecDeque};

const LIMITS: Limits = Limits::DEFAULT;

/// A recorded server: answers each request as it did, with the numbers of the client that asks now.
struct Recorded {
    /// The conversation: whether the server said it, and the bytes of one message.
    said: Vec<(bool, Vec<u8>)>,
    at: usize,
    inbound: Inbound,
    /// The client's numbers of channels and operations, by the recorded ones.
    numbers: HashMap<u32, u32>,
    owed: VecDeque<(Peer, Vec<u8>)>,
}

impl Recorded {
    /// Reads one connection of a file, counted from 0.
    fn new(text: &str, connection: usize) -> Self {
        let mut connections = vec![Vec::new()];
        for line in lines(text) {
            match line.split_once(' ') {
                Some((sign, digits)) => connections.last_mut().expect("one").push((sign == "<", hex(digits))),
                None => connections.push(Vec::new()),
            }
        }
        let said = connections.swap_remove(connection + 1);
        Recorded { said, at: 0, inbound: Inbound::new(Side::Client), numbers: HashMap::new(), owed: VecDeque::new() }
    }

    /// Says what the server said until the client spoke, whose farewells to operations do not count.
    fn go_on(&mut self, peer: Peer) {
        while let Some((by_server, bytes)) = self.said.get(self.at) {
            if *by_server {
                let mut bytes = bytes.clone();
                self.renumber(&mut bytes);
                self.owed.push_back((peer, bytes));
            } else if bytes[3] != Code::DestroyRequest.code() {
                return;
            }
            self.at += 1;
        }
    }

    fn renumber(&self, bytes: &mut [u8]) {
        let [_, _, flags, command, ..] = *bytes else { return };
        let place = match Code::from_code(command) {
            Code::Validation | Code::Validated | Code::Echo => return,
            Code::DestroyChannel => 12,
            _ => 8,
        };
        let is_first = matches!(flags & 0x31, 0x00 | 0x10);
        if let Some(Some(number)) = is_first.then(|| bytes[place..].first_chunk_mut::<4>()) {
            let order = order_of(flags);
            let ours = self.numbers.get(&order.u32(*number)).expect("it was asked for");
            *number = order.bytes_32(*ours);
        }
    }

    /// Finds the recorded request that this one is like.
    fn asked(&mut self, peer: Peer, message: &Message<'_>) {
        let code = Code::from_code(message.command);
        let ours = front(code, message.order, message.payload());
        let Some((number, subcommand)) = ours else { return };
        let found = (self.at..self.said.len()).find(|at| {
            let (by_server, bytes) = &self.said[*at];
            let like = !by_server && bytes[3] == message.command && bytes[2] & 1 == 0;
            like && front(code, order_of(bytes[2]), &bytes[8..]).is_some_and(|(_, theirs)| theirs == subcommand)
        });
        let at = found.unwrap_or_else(|| panic!("nobody asked this: {message:?}"));
        let bytes = &self.said[at].1;
        if let Some((theirs, _)) = front(code, order_of(bytes[2]), &bytes[8..]) {
            self.numbers.insert(theirs, number);
        }
        self.at = at + 1;
        self.go_on(peer);
    }
}

fn order_of(flags: u8) -> Order {
    if flags & 0x80 != 0 { Order::Big } else { Order::Little }
}

/// Returns the number that the reply repeats, and the step or the name that is asked for; `None` for a request without a reply.
fn front(code: Code, order: Order, payload: &[u8]) -> Option<(u32, Vec<u8>)> {
    let number = |at: usize| payload[at..].first_chunk().map_or(0, |bytes| order.u32(*bytes));
    match code {
        Code::DestroyRequest | Code::CancelRequest => None,
        Code::Validation | Code::Echo => Some((0, Vec::new())),
        Code::CreateChannel => {
            let mut found = None;
            let mut reader = hodo_pva::Reader::new(payload, order, &LIMITS);
            CreateChannel::decode(&mut reader, |one| found = Some((one.cid, one.name.to_vec()))).expect("it is one");
            found
        }
        Code::DestroyChannel | Code::GetField => Some((number(4), Vec::new())),
        _ => Some((number(4), vec![payload[8] & !Subcommand::DESTROY.0])),
    }
}

impl Far for Recorded {
    fn opened(&mut self, _: Instant, peer: Peer) {
        self.go_on(peer);
        // The older server's first message is not in the file.
        if !self.owed.iter().any(|(_, bytes)| bytes[3] == Code::Validation.code()) {
            let mut writer = Writer::new(Side::Server, order_of(self.said[0].1[2]));
            Validation { buffer_bytes: 1, types: 1, ways: vec!["anonymous".into(), "ca".into()] }.encode(&mut writer);
            self.owed.push_back((peer, writer.to_vec()));
        }
    }
    fn received(&mut self, _: Instant, peer: Peer, bytes: &[u8]) {
        let mut rest = bytes;
        let mut inbound = std::mem::replace(&mut self.inbound, Inbound::new(Side::Client));
        while let Some(incoming) = inbound.next(&mut rest, &LIMITS).expect("a client's stream") {
            if let Incoming::Message(message) = incoming {
                self.asked(peer, &message);
            }
        }
        self.inbound = inbound;
    }
    fn closed(&mut self, _: Instant, _: Peer) {}
    fn say(&mut self, _: Instant) -> Option<(Peer, Vec<u8>)> {
        self.owed.pop_front()
    }
}

fn done(operation: u32) -> Event {
    Event::Done { operation }
}

fn scene(text: &str, connection: usize, chunk: usize) -> Rig<Recorded> {
    let mut rig = Rig::new(ClientConfig::default(), vec![Recorded::new(text, connection)]);
    rig.chunk = chunk;
    rig
}

/// Sets an operation up and executes it.
fn once(rig: &mut Rig<Recorded>, operation: u32, channel: u32, kind: Kind, request: &str) -> Vec<Event> {
    rig.prepare(operation, channel, kind, request);
    rig.execute(operation)
}

fn ready_and_done(operation: u32) -> [Event; 2] {
    [Event::Ready { operation }, done(operation)]
}

fn command(rig: &mut Rig<Recorded>, command: Command) -> Vec<Event> {
    rig.command(command);
    rig.told()
}

fn item(rig: &Rig<Recorded>, operation: u32, path: &str) -> Option<f64> {
    rig.client.value(operation)?.get(path)?.as_f64()
}

#[test]
fn a_server_of_pvaccesscpp_is_understood() {
    for text in [include_str!("golden/pvaccesscpp-little.txt"), include_str!("golden/pvaccesscpp-big.txt")] {
        for chunk in [1, 1000, usize::MAX] {
            let mut rig = scene(text, 0, chunk);
            rig.open(0, "all", 1);
            assert_eq!(rig.told(), [Event::Connected { channel: 0 }]);
            for operation in [1, 2] {
                assert_eq!(once(&mut rig, operation, 0, Kind::Get, ""), ready_and_done(operation));
                assert_eq!(
                    (item(&rig, operation, "value"), item(&rig, operation, "limits.high")),
                    (Some(0.75), Some(-3.0))
                );
                rig.command(Command::Finish { operation });
            }
            puts_and_gets(&mut rig);
            assert_eq!(once(&mut rig, 4, 0, Kind::Process, ""), ready_and_done(4));
            let [Event::Failed { operation: 4, why: Failure::Refused(status) }] = &rig.execute(4)[..] else { panic!() };
            assert_eq!(status.message(), "only once");
            parts_of_an_array(&mut rig);
            assert_eq!(
                command(&mut rig, Command::Describe { operation: 6, channel: 0, field: "limits".into() }),
                [done(6)]
            );
            assert_eq!(rig.client.plan(6).map(|plan| plan.len()), Some(7), "it describes the whole");
            rig.open(1, "large", 1);
            let events = once(&mut rig, 7, 1, Kind::Get, "");
            assert_eq!(events[1..], ready_and_done(7));
            let bytes =
                rig.client.value(7).and_then(|value| value.get("bytes")?.as_array().cloned()).expect("an array");
            assert!(
                bytes.len() == 70_000 && bytes.to_slice::<u8>().is_some_and(|all| all.iter().all(|byte| *byte == 7))
            );
            assert_eq!(item(&rig, 7, "limits.high"), Some(-3.0), "what stands behind the segments");
            assert_eq!(command(&mut rig, Command::Close { channel: 0 }), []);
            assert_eq!(rig.far[0].at, rig.far[0].said.len(), "all of it was said");
        }
    }
}

fn puts_and_gets(rig: &mut Rig<Recorded>) {
    rig.prepare(3, 0, Kind::PutGet, "");
    rig.told();
    assert_eq!((rig.put(3, 4.5), rig.number(3)), (vec![done(3)], Some(4.5)));
    assert_eq!(command(rig, Command::ReadBack { operation: 3 }), [done(3)]);
    let name = rig.client.value(3).and_then(|value| value.get("name")?.as_text().map(ToString::to_string));
    assert_eq!(name.as_deref(), Some("older"));
    assert_eq!((rig.execute(3), item(rig, 3, "limits.high")), (vec![done(3)], Some(-3.0)));
}

fn parts_of_an_array(rig: &mut Rig<Recorded>) {
    rig.prepare(5, 0, Kind::Array, "value");
    assert_eq!(rig.told(), [Event::Ready { operation: 5 }]);
    let mut ask = |request| command(rig, Command::Array { operation: 5, request: Box::new(request) });
    assert_eq!(ask(ArrayRequest::Read(ArraySlice { offset: 1, count: 2, stride: 3 })), [done(5)]);
    assert_eq!(ask(ArrayRequest::Length), [done(5)]);
    assert_eq!(ask(ArrayRequest::SetLength(300)), [done(5)]);
    let place = ArrayPlace { offset: 4, stride: 1 };
    assert_eq!(ask(ArrayRequest::Write(place, Array::from(vec![9, 9]))), [done(5)]);
    let other = ask(ArrayRequest::Write(place, Array::from(vec![9.0])));
    assert!(matches!(&other[..], [Event::Failed { why: Failure::Unsuitable(_), .. }]));
    let read = rig.client.value(5).and_then(|value| value.at(0)?.as_array().cloned()).expect("an array");
    assert_eq!(read.to_slice::<i32>().expect("of i32").as_ref(), [-5, -5, -5]);
    assert_eq!(rig.client.length(5), Some(3));
}

#[test]
fn a_server_of_pvxs_is_understood() {
    for text in [include_str!("golden/pvxs-little.txt"), include_str!("golden/pvxs-big.txt")] {
        for chunk in [1, 100, usize::MAX] {
            let mut rig = scene(text, 0, chunk);
            for (channel, name) in [(0, "scalar"), (1, "mixed"), (2, "image"), (3, "call")] {
                rig.open(channel, name, 1);
                let told = rig.told();
                assert_eq!(told, [Event::Connected { channel }]);
                match channel {
                    0 => gets(&mut rig),
                    1 => assert_eq!(once(&mut rig, 3, 1, Kind::Get, "")[1..], [done(3)]),
                    2 => image_and_puts(&mut rig),
                    _ => calls(&mut rig),
                }
            }
            assert_eq!(item(&rig, 3, "any"), Some(5.0));
            monitor(&mut rig);
            pipeline(&mut rig);
        }
    }
}

fn gets(rig: &mut Rig<Recorded>) {
    assert_eq!(once(rig, 0, 0, Kind::Get, ""), ready_and_done(0));
    assert_eq!(rig.number(0), Some(1.5));
    assert_eq!(once(rig, 1, 0, Kind::Get, "value,alarm{severity}"), ready_and_done(1));
    assert_eq!(rig.number(1), Some(1.5));
    let refused = once(rig, 2, 0, Kind::Get, "absent");
    assert!(matches!(&refused[..], [Event::Failed { operation: 2, why: Failure::Refused(_) }]), "{refused:?}");
}

fn image_and_puts(rig: &mut Rig<Recorded>) {
    assert_eq!(once(rig, 4, 2, Kind::Get, ""), ready_and_done(4));
    let Some(Item::Elements(dimension)) = rig.client.value(4).and_then(|value| value.get("dimension")) else {
        panic!()
    };
    assert_eq!(dimension.len(), 2);
    assert_eq!(command(rig, Command::Describe { operation: 5, channel: 2, field: String::new() }), [done(5)]);
    for (operation, to) in [(6, 2.5), (7, 3.5)] {
        rig.prepare(operation, 0, Kind::Put, "");
        rig.told();
        assert_eq!(rig.put(operation, to), [done(operation)]);
    }
    rig.prepare(8, 2, Kind::Put, "");
    rig.told();
    let value = rig.client.blank(8).expect("it is set up");
    let refused = command(rig, Command::Put { operation: 8, value });
    assert!(matches!(&refused[..], [Event::Failed { operation: 8, why: Failure::Refused(_) }]), "{refused:?}");
}

fn calls(rig: &mut Rig<Recorded>) {
    for operation in [9, 10, 11] {
        rig.prepare(operation, 3, Kind::Call, "");
        assert_eq!(rig.told(), [Event::Ready { operation }]);
        let told = command(rig, Command::Call { operation, argument: None });
        let message = Event::Message { operation, severity: Severity::Warning, text: "called".into() };
        assert_eq!(told[0], message);
        match operation {
            9 => assert_eq!((&told[1..], item(rig, 9, "query.a")), (&[done(9)][..], Some(1.0))),
            10 => {
                let [_, Event::Failed { why: Failure::Refused(status), .. }] = &told[..] else { panic!("{told:?}") };
                assert_eq!(status.message(), "refused");
            }
            _ => assert_eq!((&told[1..], rig.client.value(11)), (&[done(11)][..], None)),
        }
    }
}

fn monitor(rig: &mut Rig<Recorded>) {
    assert_eq!(once(rig, 12, 0, Kind::Monitor, ""), [Event::Ready { operation: 12 }, Event::Updates { operation: 12 }]);
    assert_eq!(rig.updates(12), [3.5, 11.0, 12.0, 13.0].map(|number| (number, false)));
    let late = command(rig, Command::Stop { operation: 12 });
    assert_eq!((late, rig.updates(12)), (vec![Event::Updates { operation: 12 }], vec![(14.0, false)]));
    assert_eq!(rig.execute(12), []);
    rig.command(Command::Finish { operation: 12 });
}

fn pipeline(rig: &mut Rig<Recorded>) {
    let told = once(rig, 13, 0, Kind::Monitor, "record[pipeline=true,queueSize=2,ackAny=2]");
    assert_eq!(told, [Event::Ready { operation: 13 }, Event::Updates { operation: 13 }]);
    for numbers in [[14.0, 11.0], [12.0, 13.0]] {
        assert_eq!(rig.updates(13), numbers.map(|number| (number, false)));
        rig.settle();
    }
    command(rig, Command::Stop { operation: 13 });
    assert_eq!(rig.updates(13), [(14.0, false)]);
    rig.execute(13);
}

/// The server closes a channel, which the client confirms, and asks for again.
#[test]
fn a_server_of_pvxs_closes_a_channel() {
    for text in [include_str!("golden/pvxs-little.txt"), include_str!("golden/pvxs-big.txt")] {
        let mut rig = scene(text, 0, usize::MAX);
        rig.open(3, "call", 1);
        rig.told();
        let closing =
            rig.far[0].said.iter().position(|(by_server, bytes)| *by_server && bytes[3] == 8).expect("it does");
        let mut bytes = rig.far[0].said[closing].1.clone();
        rig.far[0].renumber(&mut bytes);
        rig.far[0].at = closing + 1;
        rig.arrive(Peer(1), &bytes);
        assert_eq!(rig.told(), [Event::Disconnected { channel: 3, why: Lost::Removed }]);
        rig.pass(std::time::Duration::from_secs(1));
        assert_eq!(rig.told(), [Event::Connected { channel: 3 }]);
    }
}
