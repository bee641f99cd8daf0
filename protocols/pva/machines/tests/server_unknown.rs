//! A server answers what it does not know, if somebody waits for the answer.

use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Server, ServerConfig};
use hodo_pva::session::ANONYMOUS;
use hodo_pva::wire::connection::{ChannelCreated, CreateChannel, Credentials, encode_echo};
use hodo_pva::wire::operation::{Operation, Reply, Subcommand};
use hodo_pva::wire::{Command, HEADER, Header, Side};
use hodo_pva::{Limits, Order, Reader, Scalar, SessionConfig, Value, Writer};

/// Hands a client's bytes to the server, and returns what it says.
fn said(server: &mut Server, asked: &[u8]) -> Vec<u8> {
    server.handle(Instant::ZERO, Input::Received(Peer::accepted(0), asked));
    let (mut out, mut all) = (Outbox::new(), Vec::new());
    loop {
        match server.poll(Instant::ZERO, &mut out) {
            Output::Send(_) => {
                all.extend(out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()));
                out.clear();
            }
            Output::Event(_) => {}
            Output::Idle(_) => return all,
            other => panic!("{other:?}"),
        }
    }
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new(Side::Client, Order::Little);
    write(&mut writer);
    writer.to_vec()
}

#[test]
fn a_request_of_an_unknown_kind_about_an_open_channel_is_answered_and_any_other_passed_over() {
    let limits = Limits::DEFAULT;
    let session = SessionConfig { order: Order::Little, ..SessionConfig::default() };
    let mut server = Server::new(ServerConfig { session, ..ServerConfig::default() });
    server.serve("pv".into(), Value::of(Normative::scalar(Scalar::F64).build()), Access::ReadOnly);
    server.handle(Instant::ZERO, Input::Opened(Peer::accepted(0), &Ends::nodes(0, 1)));
    let way = ANONYMOUS.to_string();
    let credentials = Credentials { buffer_bytes: 0, types: 0, priority: 0, way, claim: None };
    said(&mut server, &written(|writer| credentials.encode(writer)));
    let opened = said(&mut server, &written(|writer| CreateChannel { cid: 7, name: b"pv" }.encode(writer)));
    let created = ChannelCreated::decode(&mut Reader::new(&opened[HEADER..], Order::Little, &limits));
    let sid = created.expect("it is one").sid;
    for command in [19, 23, 200] {
        let request = |sid| {
            written(|writer| {
                Operation { sid, ioid: 77, subcommand: Subcommand::INIT }.begin(Command::from_code(command), writer);
                writer.end();
            })
        };
        let answer = said(&mut server, &request(sid));
        let header = Header::decode(answer.first_chunk().expect("a header")).expect("a header");
        let mut reader = Reader::new(&answer[HEADER..], Order::Little, &limits);
        let reply = Reply::decode(Command::Get, &mut reader).expect("it is one");
        assert_eq!((header.command, reply.ioid, reply.subcommand), (command, 77, Subcommand::INIT));
        assert!(!reply.status.is_success());
        assert!(said(&mut server, &request(sid + 1)).is_empty(), "no channel of the client");
    }
    assert_eq!(server.counters().refused, 3);
    assert_eq!(said(&mut server, &written(|writer| encode_echo(b"on", writer))).len(), HEADER + 2, "it goes on");
}
