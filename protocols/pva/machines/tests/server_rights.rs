//! A server asks its rules who may do what, tells people about slow puts, and makes room for clients that need it.

use crate::rig;

use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_pva::client::{ArrayRequest, ClientConfig, Command, Event, Failure, Kind};
use hodo_pva::discovery::Subnet;
use hodo_pva::normative::Normative;
use hodo_pva::server::{
    Access, AccessList, AccessRule, Claimant, Command as Ask, Ended, Event as Asked, Rights, Rules, Server,
    ServerConfig,
};
use hodo_pva::session::ANONYMOUS;
use hodo_pva::wire::connection::{CreateChannel, Credentials};
use hodo_pva::wire::{Severity, Side};
use hodo_pva::{Array, Order, Scalar, SessionConfig, Value, Writer};
use rig::{Rig, Served, sample};
use std::time::Duration;

fn rule(users: &[&str], channels: &[&str], rights: Rights) -> AccessRule {
    let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    AccessRule { users: texts(users), hosts: Vec::new(), subnets: Vec::new(), channels: texts(channels), rights }
}

/// Connects a client that claims to be a user to a server with rules.
fn scene(user: &str) -> Served {
    let rules = AccessList(vec![
        rule(&["operator", "expert*"], &["box*", "wave"], Rights::ALL),
        rule(&["expert*"], &[], Rights::ALL),
        rule(&["writer"], &["box"], Rights { put: true, ..Rights::NONE }),
        rule(&[], &["box", "asked", "wave"], Rights::READ),
    ]);
    let mut server = Server::new(ServerConfig { rules: rules.into(), ..ServerConfig::default() });
    for (name, access) in [("fixed", Access::ReadOnly), ("box", Access::Mailbox), ("asked", Access::Handled)] {
        server.serve(name.into(), sample(1.5), access);
    }
    let mut wave = Value::of(Normative::scalar_array(Scalar::I32).build());
    wave.set("value", Array::from(vec![1, 2])).expect("it fits");
    server.serve("wave".into(), wave, Access::Mailbox);
    let session = SessionConfig { claim: Some((user.into(), "console".into())), ..SessionConfig::default() };
    Rig::new(ClientConfig { session, ..ClientConfig::default() }, vec![(server, Vec::new())])
}

/// Sets operations of these kinds up on a channel; returns for each whether it is.
fn set_up(rig: &mut Served, name: &str, kinds: &[Kind]) -> Vec<bool> {
    rig.open(0, name, 1);
    let told = rig.told();
    if !told.contains(&Event::Connected { channel: 0 }) {
        assert!(told.iter().any(|event| matches!(event, Event::Refused { channel: 0, .. })), "{told:?}");
        rig.command(Command::Close { channel: 0 });
        return Vec::new();
    }
    let all: Vec<bool> = (0..)
        .zip(kinds)
        .map(|(operation, kind)| {
            rig.prepare(operation, 0, *kind, "");
            rig.told().contains(&Event::Ready { operation })
        })
        .collect();
    rig.command(Command::Close { channel: 0 });
    rig.told();
    all
}

#[test]
fn the_first_rule_that_fits_decides_what_a_client_may_do() {
    let kinds = [Kind::Get, Kind::Monitor, Kind::Put, Kind::PutGet, Kind::Process, Kind::Call];
    let (all, reads) = ([true; 6], [true, true, false, false, false, false]);
    for (user, name, expected) in [
        ("operator", "box", &all[..]),
        ("operator", "asked", &reads),
        ("operator", "fixed", &[]),
        ("expert7", "fixed", &all),
        ("guest", "box", &reads),
        ("guest", "fixed", &[]),
        ("writer", "box", &[false, false, true, false, true, false]),
    ] {
        assert_eq!(set_up(&mut scene(user), name, &kinds), expected, "{user} {name}");
    }
}

#[test]
fn reading_back_and_writing_parts_need_the_right_too() {
    let refused = |events: &[Event]| matches!(events, [Event::Failed { why: Failure::Refused(_), .. }]);
    let mut rig = scene("writer");
    rig.open(0, "box", 1);
    rig.prepare(1, 0, Kind::Put, "");
    rig.told();
    assert_eq!(rig.put(1, 4.5), [Event::Done { operation: 1 }]);
    rig.command(Command::ReadBack { operation: 1 });
    assert!(refused(&rig.told()));

    let mut rig = scene("guest");
    rig.open(0, "wave", 1);
    rig.prepare(1, 0, Kind::Array, "");
    rig.command(Command::Array { operation: 1, request: Box::new(ArrayRequest::Length) });
    assert!(rig.told().contains(&Event::Done { operation: 1 }));
    rig.command(Command::Array { operation: 1, request: Box::new(ArrayRequest::SetLength(0)) });
    assert!(refused(&rig.told()));
}

#[test]
fn a_text_about_a_put_reaches_its_client_before_the_answer() {
    let mut rig = Served::pair();
    rig.open(0, "asked", 1);
    rig.prepare(1, 0, Kind::Put, "");
    rig.told();
    assert!(rig.put(1, 4.5).is_empty());
    let asked = std::mem::take(&mut rig.far[0].1);
    let call = asked.iter().find_map(|asked| if let Asked::Put { call, .. } = asked { Some(*call) } else { None });
    let call = call.expect("a put");
    rig.ask(1, Ask::Note { call, severity: Severity::Warning, text: "the motor is slow".into() });
    let text = "the motor is slow".to_owned();
    assert_eq!(rig.told(), [Event::Message { operation: 1, severity: Severity::Warning, text: text.clone().into() }]);
    rig.ask(1, Ask::Answer { call, result: Ok(None) });
    assert_eq!(rig.told(), [Event::Done { operation: 1 }]);
    rig.ask(1, Ask::Note { call, severity: Severity::Warning, text });
    assert!(rig.told().is_empty(), "it is answered");
}

/// Carries out what the server wants; returns the clients that it closes.
fn closed(server: &mut Server, now: Instant, events: &mut Vec<Asked>) -> Vec<usize> {
    let (mut out, mut closed) = (Outbox::new(), Vec::new());
    loop {
        out.clear();
        match server.poll(now, &mut out) {
            Output::Close(peer) => closed.push(peer.index()),
            Output::Event(event) => events.push(event),
            Output::Send(_) => {}
            Output::Idle(_) => return closed,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_client_too_many_takes_the_place_of_a_silent_one_that_has_nothing_open() {
    let mut server = Server::new(ServerConfig { clients_max: 3, ..ServerConfig::default() });
    server.serve("pv".into(), sample(1.0), Access::ReadOnly);
    let mut events = Vec::new();
    let mut connect = |server: &mut Server, client: u32, at: u64, opens: bool| {
        let (peer, now) = (Peer::accepted(client), Instant::from_nanos(at * 1_000_000_000));
        server.handle(now, Input::Opened(peer, &Ends::nodes(0, client)));
        if opens {
            let mut writer = Writer::new(Side::Client, Order::Little);
            let way = ANONYMOUS.to_string();
            Credentials { buffer_bytes: 0, types: 0, priority: 0, way, claim: None }.encode(&mut writer);
            CreateChannel { cid: 1, name: b"pv" }.encode(&mut writer);
            server.handle(now, Input::Received(peer, &writer.to_vec()));
        }
        closed(server, now, &mut events)
    };
    assert!(connect(&mut server, 0, 100, true).is_empty());
    assert!(connect(&mut server, 1, 101, false).is_empty());
    assert!(connect(&mut server, 2, 102, true).is_empty());
    assert_eq!(connect(&mut server, 3, 103, true), [3], "nobody has been silent for long");
    assert_eq!(connect(&mut server, 4, 107, true), [1]);
    assert_eq!(connect(&mut server, 5, 130, true), [5], "all have something open");
    assert_eq!(server.clients().count(), 3);
    let is_for_room =
        |event: &Asked| matches!(event, Asked::Disconnected(peer, _, Ended::Wrong(_)) if peer.index() == 1);
    assert!(events.iter().any(is_for_room), "{events:?}");
    server.handle(Instant::from_nanos(131_000_000_000), Input::Elapsed);
    let later = Instant::from_nanos(131_000_000_000) + Duration::from_secs(60);
    server.handle(later, Input::Elapsed);
    assert_eq!(closed(&mut server, later, &mut events).len(), 3, "all have been silent for too long");
}

#[test]
fn other_rules_take_the_channels_of_whoever_loses_a_right_and_leave_the_others() {
    let mut rig = scene("operator");
    for (channel, name) in [(0, "box"), (1, "wave")] {
        rig.open(channel, name, 1);
        rig.prepare(channel, channel, Kind::Monitor, "");
    }
    rig.told();
    // More rights than before disturb nobody.
    let kept = rule(&[], &["wave"], Rights::ALL);
    let all = AccessList(vec![rule(&[], &[], Rights::ALL)]);
    rig.ask(1, Ask::Rule(all.into()));
    assert!(rig.told().is_empty());
    let reads = AccessList(vec![kept.clone(), rule(&[], &["box"], Rights::READ)]);
    rig.ask(1, Ask::Rule(reads.into()));
    assert!(matches!(rig.told()[..], [Event::Disconnected { channel: 0, .. }]));
    // It opens again with what is left.
    rig.pass(Duration::from_secs(40));
    assert!(rig.told().contains(&Event::Connected { channel: 0 }));
    rig.prepare(2, 0, Kind::Put, "");
    assert!(rig.told().iter().any(|event| matches!(event, Event::Failed { operation: 2, .. })));
    rig.ask(1, Ask::Rule(AccessList(vec![kept]).into()));
    assert!(rig.told().iter().any(|event| matches!(event, Event::Disconnected { channel: 0, .. })));
    rig.pass(Duration::from_secs(40));
    let told = rig.told();
    assert!(told.iter().any(|event| matches!(event, Event::Refused { channel: 0, .. })), "{told:?}");
    assert!(!told.iter().any(|event| matches!(event, Event::Disconnected { channel: 1, .. })));
}

#[test]
fn an_address_is_no_claim() {
    let from = |ip: [u8; 4]| Ends { remote: Address::Tcp((ip, 4000).into()), ..Ends::nodes(0, 1) };
    let inside = AccessRule { subnets: vec![Subnet::new([10, 1, 0, 0].into(), 16)], ..rule(&[], &[], Rights::ALL) };
    let named = AccessRule { hosts: vec!["console*".into()], ..rule(&[], &[], Rights::READ) };
    let list = AccessList(vec![inside, named]);
    for (ip, host, expected) in [
        ([10, 1, 7, 7], "anything", Rights::ALL),
        ([10, 2, 7, 7], "10.1.7.7", Rights::NONE),
        ([10, 2, 7, 7], "console4", Rights::READ),
    ] {
        assert_eq!(list.rights(&Claimant { ends: &from(ip), user: "", host }, "pv"), expected, "{ip:?} {host}");
    }
}

#[test]
fn removing_channels_costs_each_its_own_clients() {
    const CHANNELS: u32 = 40_000;
    let mut server = Server::new(ServerConfig::default());
    for number in 0..CHANNELS {
        server.serve(format!("pv{number}"), sample(1.0), Access::ReadOnly);
    }
    let mut rig = Rig::new(ClientConfig::default(), vec![(server, Vec::new())]);
    for channel in 0..CHANNELS {
        rig.command(Command::Open { channel, name: format!("pv{channel}"), server: Some(Address::Node(1)) });
    }
    rig.settle();
    assert_eq!(rig.told().len(), CHANNELS as usize);
    // 800 million steps, were all open channels looked at for each.
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let server = &mut rig.far[0].0;
        (0..CHANNELS).for_each(|number| server.remove(&format!("pv{number}")));
        let left = server.clients().next().map(|client| client.channels);
        done.send((server.channels(), left)).expect("it is waited for");
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(5)), Ok((0, Some(0))));
}
