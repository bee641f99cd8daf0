//! A connection begins as those of pvxs do, keeps itself alive, and ends when the other side is silent.

use crate::golden;

use golden::{hex, lines};
use hodo_machine::Instant;
use hodo_pva::session::{Session, SessionConfig, Step, claimed};
use hodo_pva::wire::{Command, Control, Inbound, Side, Status};
use hodo_pva::{Error, Order, Writer};
use std::time::Duration;

const PVXS: [&str; 2] = [include_str!("golden/pvxs-little.txt"), include_str!("golden/pvxs-big.txt")];

/// One side, and what it was told.
struct End {
    session: Session,
    inbound: Inbound,
    told: Vec<&'static str>,
    claim: Option<(String, String)>,
    verdict: Status,
}

impl End {
    fn new(side: Side, config: SessionConfig) -> Self {
        let peer = if side == Side::Client { Side::Server } else { Side::Client };
        End {
            session: Session::new(side, config, Instant::ZERO),
            inbound: Inbound::new(peer),
            told: Vec::new(),
            claim: None,
            verdict: Status::OK,
        }
    }

    fn take(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        let limits = *self.session.limits();
        while let Some(incoming) = self.inbound.next(&mut rest, &limits)? {
            self.told.push(match self.session.take(now, &incoming)? {
                Step::Done => continue,
                Step::Claim(credentials) => {
                    self.claim = claimed(&credentials);
                    self.session.decide(&self.verdict);
                    "claim"
                }
                Step::Ready => "ready",
                Step::Refused(_) => "refused",
                Step::Pass => "pass",
            });
        }
        Ok(())
    }

    fn said(&mut self) -> Vec<u8> {
        let said = self.session.writer.to_vec();
        self.session.writer.flush(&mut hodo_machine::Outbox::new());
        said
    }
}

fn config(order: Order) -> SessionConfig {
    SessionConfig { order, claim: Some(("root".into(), "laboratory".into())), ..SessionConfig::default() }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Lets two ends talk, in chunks of so many bytes, until neither says anything.
fn talk(client: &mut End, server: &mut End, chunk: usize) -> Result<(), Error> {
    loop {
        let (asked, answered) = (client.said(), server.said());
        if asked.is_empty() && answered.is_empty() {
            return Ok(());
        }
        asked.chunks(chunk).try_for_each(|bytes| server.take(Instant::ZERO, bytes))?;
        answered.chunks(chunk).try_for_each(|bytes| client.take(Instant::ZERO, bytes))?;
    }
}

/// The names of user and host are those of the computer that the conversations were recorded on.
#[test]
fn a_connection_begins_byte_for_byte_as_those_of_pvxs() {
    for (order, text) in Order::BOTH.into_iter().zip(PVXS) {
        let said: Vec<(bool, Vec<u8>)> = lines(text)
            .filter_map(|line| line.split_once(' '))
            .map(|(sign, digits)| (sign == "<", hex(digits)))
            .take(4)
            .collect();
        let [(true, order_of), (true, validation), (false, credentials), (true, validated)] = &said[..] else {
            panic!("{said:02X?}");
        };
        let mut client = End::new(Side::Client, config(Order::Little));
        client.take(Instant::ZERO, &[&order_of[..], validation].concat()).expect("it is understood");
        assert_eq!(client.said(), *credentials, "{order:?}");
        client.take(Instant::ZERO, validated).expect("it is understood");
        assert!(client.session.is_ready() && client.told == ["ready"]);
        let mut server = End::new(Side::Server, config(order));
        assert_eq!(server.said(), [&order_of[..], validation].concat(), "{order:?}");
        server.take(Instant::ZERO, credentials).expect("it is understood");
        assert_eq!(server.said(), *validated, "{order:?}");
        assert_eq!(server.claim, Some(("root".into(), "laboratory".into())));
    }
}

#[test]
fn two_ends_understand_each_other_however_the_stream_is_cut() {
    for order in Order::BOTH {
        for chunk in [1, 3, 8, 1000] {
            let (mut client, mut server) =
                (End::new(Side::Client, config(Order::NATIVE)), End::new(Side::Server, config(order)));
            assert_eq!(talk(&mut client, &mut server, chunk), Ok(()));
            assert!(client.session.is_ready() && server.session.is_ready());
            assert_eq!(client.session.writer.order(), order, "a client sends in the order that its server asks for");
        }
    }
}

#[test]
fn a_client_that_claims_nothing_is_anonymous_and_may_be_refused() {
    let mut client = End::new(Side::Client, SessionConfig::default());
    let mut server = End::new(Side::Server, SessionConfig::default());
    server.verdict = Status::error("who are you");
    assert_eq!(talk(&mut client, &mut server, 1000), Ok(()));
    assert_eq!((server.claim, client.told, server.told), (None, vec!["refused"], vec!["claim"]));
    assert!(!client.session.is_ready() && !server.session.is_ready());
}

fn message(from: Side, command: Command, payload: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(from, Order::Little);
    writer.begin(command.code());
    writer.bytes(payload);
    writer.end();
    writer.to_vec()
}

#[test]
fn nothing_is_passed_on_before_the_claim_is_accepted() {
    for (command, payload) in
        [(Command::CreateChannel, &[0, 0][..]), (Command::Validated, &[0xFF]), (Command::Get, &[])]
    {
        let mut server = End::new(Side::Server, SessionConfig::default());
        let refused = server.take(Instant::ZERO, &message(Side::Client, command, payload));
        assert_eq!(refused, Err(Error::Unexpected { command: command.code() }));
        let mut client = End::new(Side::Client, SessionConfig::default());
        let refused = client.take(Instant::ZERO, &message(Side::Server, command, payload));
        assert_eq!(refused, Err(Error::Unexpected { command: command.code() }));
    }
}

#[test]
fn a_server_that_knows_only_other_ways_is_left() {
    let mut client = End::new(Side::Client, config(Order::Little));
    let only = message(Side::Server, Command::Validation, b"\0\0\0\0\0\0\x01\x04x509");
    assert_eq!(client.take(Instant::ZERO, &only), Err(Error::NoCommonAuthentication));
}

fn ready() -> (End, End) {
    let mut client = End::new(Side::Client, config(Order::Little));
    let mut server = End::new(Side::Server, config(Order::Little));
    talk(&mut client, &mut server, 1000).expect("they understand each other");
    (client, server)
}

#[test]
fn echoes_come_back_as_they_were_and_once() {
    let (mut client, mut server) = ready();
    let echo = message(Side::Client, Command::Echo, b"any bytes");
    server.take(at(1), &echo).expect("it is understood");
    assert_eq!(server.said(), message(Side::Server, Command::Echo, b"any bytes"));
    client.take(at(1), &message(Side::Server, Command::Echo, b"any bytes")).expect("it is understood");
    assert!(client.said().is_empty());
    let mut control = Writer::new(Side::Client, Order::Little);
    control.control(Control::EchoRequest, 7);
    server.take(at(1), &control.to_vec()).expect("it is understood");
    assert_eq!(server.said(), [0xCA, 2, 0x41, 4, 7, 0, 0, 0]);
    server.take(at(1), &message(Side::Client, Command::Other(99), b"skipped")).expect("it is passed on");
    assert_eq!(server.told.last(), Some(&"pass"));
}

#[test]
fn an_idle_connection_stays_alive_by_the_clients_echoes() {
    let (mut client, mut server) = ready();
    let mut echoes = 0;
    for second in 1..200 {
        assert_eq!(
            (client.session.elapsed(at(second)), server.session.elapsed(at(second))),
            (Ok(()), Ok(())),
            "{second} s"
        );
        let asked = client.said();
        echoes += usize::from(!asked.is_empty());
        server.take(at(second), &asked).expect("it is understood");
        let answered = server.said();
        client.take(at(second), &answered).expect("it is understood");
        assert!(client.session.deadline() > at(second) && server.session.deadline() > at(second));
    }
    assert_eq!(echoes, 199 / 15);
}

#[test]
fn a_client_that_only_listens_stays_alive_by_its_echoes() {
    let (mut client, mut server) = ready();
    let mut echoes = 0;
    for second in 1..200 {
        client.take(at(second), &message(Side::Server, Command::Other(99), b"an update")).expect("it is passed on");
        assert_eq!(client.session.elapsed(at(second)), Ok(()));
        let said = client.said();
        echoes += usize::from(!said.is_empty());
        server.take(at(second), &said).expect("it is understood");
        server.said();
        assert_eq!(server.session.elapsed(at(second)), Ok(()), "{second} s");
    }
    assert_eq!(echoes, 199 / 15);
}

#[test]
fn a_silent_peer_is_given_up() {
    let (mut client, mut server) = ready();
    assert_eq!(server.session.deadline(), at(40));
    assert_eq!((server.session.elapsed(at(39)), server.session.elapsed(at(40))), (Ok(()), Err(Error::Silent)));
    assert_eq!(client.session.deadline(), at(15));
    assert_eq!((client.session.elapsed(at(39)), client.session.elapsed(at(40))), (Ok(()), Err(Error::Silent)));
    for side in [Side::Client, Side::Server] {
        let mut end = End::new(side, SessionConfig::default());
        assert_eq!(end.session.deadline(), at(5));
        assert_eq!((end.session.elapsed(at(4)), end.session.elapsed(at(5))), (Ok(()), Err(Error::Silent)));
    }
}
