//! The client against a server that says what a test tells it to, in order or not.

use crate::rig;

use hodo_machine::{Instant, Outbox, Peer};
use hodo_pva::client::{ClientConfig, Command, Event, Failure, Kind, Lost};
use hodo_pva::session::{Session, Step};
use hodo_pva::wire::connection::{ChannelCreated, CreateChannel};
use hodo_pva::wire::operation::{Operation, Reply, Subcommand};
use hodo_pva::wire::{Command as Code, Inbound, Incoming, Message, Side, Status};
use hodo_pva::{BitSet, Error, Limits, Order, Scalar, SessionConfig, Type, Value, Writer};
use rig::{Far, Rig, sample};
use std::time::Duration;

const LIMITS: Limits = Limits::DEFAULT;

/// A server that opens every channel and leaves the rest to the test.
struct Script {
    link: Option<(Peer, Session, Inbound)>,
    verdict: Status,
    /// Whether it never speaks.
    is_mute: bool,
    /// Requests: command, number of the operation, step.
    asked: Vec<(Code, u32, u8)>,
}

impl Script {
    fn scene() -> Rig<Script> {
        let script = Script { link: None, verdict: Status::OK, is_mute: false, asked: Vec::new() };
        Rig::new(ClientConfig::default(), vec![script])
    }

    fn asked(&mut self, message: &Message<'_>) {
        let Some((_, session, _)) = &mut self.link else { return };
        let mut reader = message.reader(&LIMITS);
        match Code::from_code(message.command) {
            Code::CreateChannel => CreateChannel::decode(&mut reader, |one| {
                ChannelCreated { cid: one.cid, sid: 7, status: Status::OK }.encode(&mut session.writer);
            })
            .expect("it is one"),
            code => {
                let front = Operation::decode(&mut reader);
                let front = front.unwrap_or(Operation { sid: 0, ioid: 0, subcommand: Subcommand::NONE });
                self.asked.push((code, front.ioid, front.subcommand.0));
            }
        }
    }

    fn writer(&mut self) -> &mut Writer {
        &mut self.link.as_mut().expect("it is connected").1.writer
    }

    /// Replies that an operation is set up, with a type.
    fn set_up(&mut self, code: Code, ioid: u32, of: &Type) {
        let writer = self.writer();
        Reply { ioid, subcommand: Subcommand::INIT, status: Status::OK }.begin(code, writer);
        of.encode(writer);
        writer.end();
    }

    fn update(&mut self, ioid: u32, subcommand: Subcommand, value: Option<&Value>, overrun: &BitSet) {
        let writer = self.writer();
        Reply { ioid, subcommand, status: Status::OK }.begin(Code::Monitor, writer);
        if let Some(value) = value {
            value.encode_changed(writer);
            overrun.encode(writer);
        }
        writer.end();
    }
}

impl Far for Script {
    fn opened(&mut self, now: Instant, peer: Peer) {
        self.link = Some((peer, Session::new(Side::Server, SessionConfig::default(), now), Inbound::new(Side::Client)));
    }
    fn received(&mut self, now: Instant, _: Peer, bytes: &[u8]) {
        let Some((_, _, inbound)) = &mut self.link else { return };
        let mut inbound = std::mem::replace(inbound, Inbound::new(Side::Client));
        let mut rest = bytes;
        while let Some(incoming) = inbound.next(&mut rest, &LIMITS).expect("a client's stream") {
            let Some((_, session, _)) = &mut self.link else { return };
            match (session.take(now, &incoming).expect("it is allowed"), &incoming) {
                (Step::Claim(_), _) => session.decide(&self.verdict),
                (Step::Pass, Incoming::Message(message)) => self.asked(message),
                _ => {}
            }
        }
        if let Some(link) = &mut self.link {
            link.2 = inbound;
        }
    }
    fn closed(&mut self, _: Instant, _: Peer) {
        self.link = None;
    }
    fn say(&mut self, _: Instant) -> Option<(Peer, Vec<u8>)> {
        let (peer, session, _) = self.link.as_mut()?;
        let bytes = session.writer.to_vec();
        session.writer.flush(&mut Outbox::new());
        (!bytes.is_empty() && !self.is_mute).then_some((*peer, bytes))
    }
}

/// Opens a channel, prepares an operation and returns its number on the wire.
fn prepared(rig: &mut Rig<Script>, operation: u32, kind: Kind, request: &str) -> u32 {
    if !rig.client.is_open(0) {
        rig.open(0, "any", 1);
    }
    rig.prepare(operation, 0, kind, request);
    rig.told();
    rig.far[0].asked.last().expect("it has asked").1
}

#[test]
fn a_monitor_ends_with_its_last_update_and_is_not_started_again_by_itself() {
    let mut rig = Script::scene();
    let ioid = prepared(&mut rig, 1, Kind::Monitor, "");
    let mut value = sample(1.5);
    rig.far[0].set_up(Code::Monitor, ioid, value.plan().of());
    assert_eq!(rig.execute(1), [Event::Ready { operation: 1 }]);
    value.mark_all();
    rig.far[0].update(ioid, Subcommand::NONE, Some(&value), &BitSet::new());
    value.unmark();
    value.set("value", 2.5).expect("it fits");
    rig.far[0].update(ioid, Subcommand::DESTROY, Some(&value), &BitSet::from_iter([1]));
    let ended = Event::Ended { operation: 1, status: Status::OK };
    assert_eq!(rig.told(), [Event::Updates { operation: 1 }, ended]);
    assert_eq!(rig.updates(1), [(1.5, false), (2.5, true)]);
    let asked = rig.far[0].asked.len();
    rig.cut(1);
    rig.pass(Duration::from_secs(1));
    assert_eq!((rig.far[0].asked.len(), rig.told().len()), (asked, 2), "disconnected and connected, no more");
    rig.execute(1);
    assert_eq!(rig.far[0].asked.last().map(|asked| (asked.0, asked.2)), Some((Code::Monitor, Subcommand::INIT.0)));
}

/// Updates of which two become one here as well as at the server.
#[test]
fn what_the_server_overwrote_is_told_too_when_updates_are_merged_here() {
    let mut rig = Script::scene();
    let ioid = prepared(&mut rig, 1, Kind::Monitor, "record[queueSize=1]");
    let mut value = sample(0.0);
    rig.far[0].set_up(Code::Monitor, ioid, value.plan().of());
    rig.execute(1);
    let (alarm, whole) = (value.plan().number("alarm").expect("one"), BitSet::from_iter([0]));
    value.mark_all();
    rig.far[0].update(ioid, Subcommand::NONE, Some(&value), &BitSet::new());
    value.unmark();
    value.set("alarm.severity", 2).expect("it fits");
    rig.far[0].update(ioid, Subcommand::NONE, Some(&value), &BitSet::from_iter([alarm + 2]));
    rig.settle();
    let update = rig.client.next_update(1).expect("one");
    assert_eq!(update.value.alarm().map(|alarm| alarm.severity), Some(2));
    assert_eq!(*update.overrun, BitSet::from_iter([alarm + 1, alarm + 2]), "the severity here, the status there");
    let mut changed = update.value.changed().clone();
    update.value.plan().expand(&mut changed);
    let mut all = whole;
    update.value.plan().expand(&mut all);
    assert_eq!(changed, all, "the first one was whole");
    assert!(rig.client.next_update(1).is_none());
}

/// The type comes by number with a reply that nobody waits for any more, and is referred to later.
#[test]
fn types_of_late_replies_are_remembered() {
    let mut rig = Script::scene();
    let first = prepared(&mut rig, 1, Kind::Get, "");
    rig.command(Command::Finish { operation: 1 });
    let second = prepared(&mut rig, 1, Kind::Get, "");
    assert_ne!(first, second, "another number on the wire");
    let of = Type::structure("", [("value", Scalar::F64.into()), ("any", Type::Any)]);
    for (ioid, is_new) in [(first, true), (second, false)] {
        let writer = rig.far[0].writer();
        Reply { ioid, subcommand: Subcommand::INIT, status: Status::OK }.begin(Code::Get, writer);
        writer.u8(if is_new { 0xFD } else { 0xFE });
        writer.u16(1);
        if is_new {
            of.encode(writer);
        }
        writer.end();
    }
    assert_eq!(rig.told(), [Event::Ready { operation: 1 }]);
    assert_eq!(rig.client.plan(1).map(|plan| plan.of()), Some(&of));
    // And so a type within a value.
    rig.execute(1);
    rig.command(Command::Cancel { operation: 1 });
    rig.told();
    let third = rig.far[0].asked.last().expect("it is set up again").1;
    for (ioid, subcommand) in [(second, Subcommand::NONE), (third, Subcommand::INIT)] {
        let writer = rig.far[0].writer();
        Reply { ioid, subcommand, status: Status::OK }.begin(Code::Get, writer);
        if subcommand == Subcommand::NONE {
            BitSet::from_iter([2]).encode(writer);
            writer.u8(0xFD);
            writer.u16(2);
            Type::from(Scalar::I32).encode(writer);
            writer.u32(5);
        } else {
            writer.u8(0xFE);
            writer.u16(2);
        }
        writer.end();
    }
    assert_eq!(rig.told(), [Event::Ready { operation: 1 }]);
    assert_eq!(rig.client.plan(1).map(|plan| plan.of()), Some(&Type::Scalar(Scalar::I32)));
}

#[test]
fn a_server_that_breaks_the_rules_is_left_and_tried_again() {
    for broken in 0..3 {
        let mut rig = Script::scene();
        let ioid = prepared(&mut rig, 1, Kind::Get, "");
        let writer = rig.far[0].writer();
        let error = match broken {
            0 => {
                Reply { ioid, subcommand: Subcommand::INIT, status: Status::OK }.encode(Code::Put, writer);
                Error::Unexpected { command: Code::Put.code() }
            }
            1 => {
                Reply { ioid, subcommand: Subcommand::INIT, status: Status::OK }.encode(Code::Get, writer);
                Error::Truncated { need: 1, have: 0 }
            }
            _ => {
                writer.bytes(b"HTTP/1.1");
                Error::NotPva { first: b'H' }
            }
        };
        let why = Lost::Misbehaved(Box::new(error));
        assert_eq!(rig.told(), [Event::Disconnected { channel: 0, why: why.clone() }]);
        assert!(rig.open.is_empty() && rig.client.trouble(0) == Some(&why));
        rig.pass(Duration::from_secs(1));
        assert_eq!(rig.told(), [Event::Connected { channel: 0 }]);
    }
}

#[test]
fn replies_that_nobody_asked_for_change_nothing() {
    let mut rig = Script::scene();
    let ioid = prepared(&mut rig, 1, Kind::Get, "");
    rig.far[0].set_up(Code::Get, ioid, sample(0.0).plan().of());
    assert_eq!(rig.told(), [Event::Ready { operation: 1 }]);
    rig.far[0].set_up(Code::Get, ioid, &Type::Any);
    rig.far[0].set_up(Code::Get, ioid + 1, &Type::Any);
    rig.far[0].set_up(Code::Rpc, u32::MAX, &Type::Any);
    let writer = rig.far[0].writer();
    Reply { ioid, subcommand: Subcommand::NONE, status: Status::OK }.encode(Code::Get, writer);
    ChannelCreated { cid: 1, sid: 1, status: Status::OK }.encode(writer);
    writer.begin(99);
    writer.end();
    assert!(rig.told().is_empty());
    assert_eq!(rig.client.plan(1).map(|plan| plan.of().clone()), Some(sample(0.0).plan().of().clone()));
}

#[test]
fn a_server_that_refuses_this_client_or_says_nothing_is_tried_again() {
    let mut rig = Script::scene();
    rig.far[0].verdict = Status::error("who are you");
    rig.open(0, "any", 1);
    rig.settle();
    assert_eq!(rig.client.trouble(0), Some(&Lost::Denied(Status::error("who are you"))));
    rig.far[0].verdict = Status::OK;
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.told(), [Event::Connected { channel: 0 }]);
    rig.far[0].is_mute = true;
    rig.prepare(1, 0, Kind::Get, "");
    rig.command(Command::Execute { operation: 1 });
    rig.pass(Duration::from_secs(39));
    assert!(rig.told().is_empty() && rig.open.len() == 1);
    rig.pass(Duration::from_secs(2));
    let silent = Lost::Misbehaved(Box::new(Error::Silent));
    assert_eq!(rig.told(), [Event::Disconnected { channel: 0, why: silent.clone() }]);
    rig.pass(Duration::from_secs(20));
    assert_eq!(rig.client.trouble(0), Some(&silent), "nor does it greet");
    assert!((4..=6).contains(&rig.tries.len()), "{}: it has five seconds each time", rig.tries.len());
    rig.far[0].is_mute = false;
    rig.pass(Duration::from_secs(10));
    assert_eq!(rig.told(), [Event::Connected { channel: 0 }]);
}

/// A type that is not the one of before, after the server was started again.
#[test]
fn the_type_may_be_another_one_after_a_restart() {
    let mut rig = Script::scene();
    let ioid = prepared(&mut rig, 1, Kind::Monitor, "record[queueSize=1]");
    let mut old = sample(1.0);
    rig.far[0].set_up(Code::Monitor, ioid, old.plan().of());
    rig.execute(1);
    old.mark_all();
    rig.far[0].update(ioid, Subcommand::NONE, Some(&old), &BitSet::new());
    rig.settle();
    rig.cut(1);
    rig.pass(Duration::from_secs(1));
    let ioid = rig.far[0].asked.last().expect("it is set up again").1;
    let mut new = Value::of(Type::structure("", [("value", Scalar::F64.into())]));
    new.set("value", 2.0).expect("it fits");
    rig.far[0].set_up(Code::Monitor, ioid, new.plan().of());
    rig.far[0].update(ioid, Subcommand::NONE, Some(&new), &BitSet::new());
    rig.settle();
    assert_eq!(rig.updates(1), [(1.0, false), (2.0, false)], "the former one is not merged into another type");
    assert_eq!(rig.client.value(1).map(|value| value.plan().len()), Some(2));
}

#[test]
fn both_byte_orders_may_change_between_messages() {
    let mut rig = Script::scene();
    let ioid = prepared(&mut rig, 1, Kind::Get, "");
    for order in [Order::Big, Order::Little] {
        let writer = rig.far[0].writer();
        writer.set_order(order);
        match order {
            Order::Big => rig.far[0].set_up(Code::Get, ioid, sample(0.0).plan().of()),
            Order::Little => {
                rig.execute(1);
                let writer = rig.far[0].writer();
                Reply { ioid, subcommand: Subcommand::NONE, status: Status::OK }.begin(Code::Get, writer);
                sample(6.5).encode_changed(writer);
                writer.end();
            }
        }
    }
    assert_eq!(rig.told(), [Event::Done { operation: 1 }]);
    assert_eq!(rig.number(1), Some(6.5));
    assert_eq!(rig.execute(1), []);
    rig.cut(1);
    assert!(rig.told().contains(&Event::Failed { operation: 1, why: Failure::Disconnected }));
}
