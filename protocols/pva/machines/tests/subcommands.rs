//! The subcommand of a reply is that of its request, but for the bit of a pipelined monitor and for updates: as the field's servers have it, and as
//! ours has it.

use crate::golden;

use golden::{hex, lines};
use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Server, ServerConfig};
use hodo_pva::session::CLAIMED;
use hodo_pva::wire::connection::{CreateChannel, Credentials};
use hodo_pva::wire::operation::{Operation, Subcommand};
use hodo_pva::wire::{Command, Inbound, Incoming, Side};
use hodo_pva::{Limits, Order, Scalar, Value, Writer};
use std::collections::{BTreeMap, BTreeSet};

/// A command, the subcommand of its request, and that of the reply.
type Pair = (Command, u8, u8);

/// Replies to the requests that set up and carry out each operation.
const PAIRS: [Pair; 21] = [
    (Command::Get, 0x08, 0x08),
    (Command::Get, 0x00, 0x00),
    (Command::Get, 0x10, 0x10),
    (Command::Put, 0x08, 0x08),
    (Command::Put, 0x00, 0x00),
    (Command::Put, 0x40, 0x40),
    (Command::Put, 0x10, 0x10),
    (Command::PutGet, 0x08, 0x08),
    (Command::PutGet, 0x00, 0x00),
    (Command::PutGet, 0x40, 0x40),
    (Command::PutGet, 0x80, 0x80),
    (Command::PutGet, 0x50, 0x50),
    (Command::Process, 0x08, 0x08),
    (Command::Process, 0x00, 0x00),
    (Command::Process, 0x10, 0x10),
    (Command::Monitor, 0x08, 0x08),
    (Command::Monitor, 0x88, 0x08),
    (Command::Monitor, 0x44, 0x00),
    (Command::Rpc, 0x08, 0x08),
    (Command::Rpc, 0x00, 0x00),
    (Command::Rpc, 0x10, 0x10),
];

const RECORDED: [&str; 4] = [
    include_str!("golden/pvxs-little.txt"),
    include_str!("golden/pvxs-big.txt"),
    include_str!("golden/pvaccesscpp-little.txt"),
    include_str!("golden/pvaccesscpp-big.txt"),
];

/// Returns the command of a message about an operation, the operation's number and the subcommand.
fn operation(bytes: &[u8], from: Side) -> Option<(u8, [u8; 4], u8)> {
    let at = if from == Side::Client { 12 } else { 8 };
    let is_one = matches!(bytes.get(3)?, 10..=14 | 16 | 20) && bytes[2] & 0x31 == 0;
    is_one.then_some((bytes[3], bytes.get(at..at + 4)?.try_into().ok()?, *bytes.get(at + 4)?))
}

/// Returns the pairs of a recorded conversation. A monitor's updates belong to its start.
fn recorded(text: &str) -> BTreeSet<(u8, u8, u8)> {
    let mut asked: BTreeMap<(u8, [u8; 4]), u8> = BTreeMap::new();
    let mut pairs = BTreeSet::new();
    for line in lines(text) {
        let Some((sign, digits)) = line.split_once(' ') else {
            asked.clear();
            continue;
        };
        let from = if sign == ">" { Side::Client } else { Side::Server };
        let Some((command, number, subcommand)) = operation(&hex(digits), from) else { continue };
        let is_monitor = command == Command::Monitor.code();
        match from {
            Side::Client if is_monitor && matches!(subcommand, 0x04 | 0x80) => {}
            Side::Client => drop(asked.insert((command, number), subcommand)),
            Side::Server => {
                pairs.insert((command, asked[&(command, number)], subcommand));
            }
        }
    }
    pairs
}

#[test]
fn servers_of_the_field_reply_as_the_table_says() {
    let table: BTreeMap<(u8, u8), u8> =
        PAIRS.iter().map(|(command, asked, replied)| ((command.code(), *asked), *replied)).collect();
    let mut found = BTreeSet::new();
    for (command, asked, replied) in RECORDED.into_iter().flat_map(recorded) {
        // Arrays are none of our server's operations.
        if command != Command::Array.code() {
            assert_eq!(table.get(&(command, asked)), Some(&replied), "command {command}: {asked:#04x}");
            found.insert((command, asked));
        }
    }
    assert!(found.contains(&(Command::Monitor.code(), 0x88)) && found.len() >= 12, "{found:?}");
}

/// Returns what a server says to the messages that are written.
fn said(server: &mut Server, bytes: &[u8]) -> Vec<u8> {
    server.handle(Instant::ZERO, Input::Received(Peer::accepted(0), bytes));
    let (mut out, mut said) = (Outbox::new(), Vec::new());
    loop {
        out.clear();
        match server.poll(Instant::ZERO, &mut out) {
            Output::Send(_) => said.extend(out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec())),
            Output::Close(_) => panic!("the server closes"),
            Output::Idle(_) => return said,
            _ => {}
        }
    }
}

/// Returns the subcommands of the replies among what a server says.
fn replied(bytes: &[u8]) -> Vec<u8> {
    let (mut rest, mut inbound, mut found) = (bytes, Inbound::new(Side::Server), Vec::new());
    while let Some(incoming) = inbound.next(&mut rest, &Limits::DEFAULT).expect("a server's stream") {
        if let Incoming::Message(message) = incoming
            && matches!(message.command, 10..=14 | 16 | 20)
        {
            found.push(message.payload()[4]);
        }
    }
    found
}

fn served() -> Server {
    let mut server = Server::new(ServerConfig::default());
    let value = Value::of(Normative::scalar(Scalar::F64).build());
    server.serve("box".into(), value, Access::Mailbox);
    server.handle(Instant::ZERO, Input::Opened(Peer::accepted(0), &Ends::nodes(0, 1)));
    server
}

/// Returns the subcommands of our server's replies to the set-up with a subcommand, and to one more request.
fn replies(command: Command, init: u8, then: Option<u8>) -> Vec<u8> {
    let mut server = served();
    let mut writer = Writer::new(Side::Client, Order::Little);
    Credentials { buffer_bytes: 1, types: 1, priority: 0, way: CLAIMED.into(), claim: None }.encode(&mut writer);
    CreateChannel { cid: 1, name: b"box" }.encode(&mut writer);
    Operation { sid: 0, ioid: 1, subcommand: Subcommand(init) }.begin(command, &mut writer);
    Value::encode_any(None, &mut writer);
    if init & 0x80 != 0 {
        writer.u32(4);
    }
    writer.end();
    if let Some(then) = then {
        Operation { sid: 0, ioid: 1, subcommand: Subcommand(then) }.begin(command, &mut writer);
        match command {
            Command::Rpc => Value::encode_any(None, &mut writer),
            Command::Put | Command::PutGet if then & 0xC0 == 0 => {
                let mut value = Value::of(Normative::scalar(Scalar::F64).build());
                value.set("value", 2.5).expect("it fits");
                value.encode_changed(&mut writer);
            }
            _ => {}
        }
        writer.end();
    }
    replied(&said(&mut server, &writer.to_vec()))
}

#[test]
fn our_server_replies_as_the_table_says() {
    for (command, asked, reply) in PAIRS {
        let (init, then) = if asked & 0x08 == 0 { (0x08, Some(asked)) } else { (asked, None) };
        let expected: Vec<u8> = std::iter::once(0x08).chain(then.map(|_| reply)).collect();
        assert_eq!(replies(command, init, then), expected, "{command:?}: {asked:#04x}");
    }
}
