//! Duplicate datagrams, and datagrams that come long after they were sent.

use core::time::Duration;
use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_raw::wire::{FLAG_FACTS, GREETING, HEADER, Header, Kind, PROOF, encode_greeting};
use hodo_raw::{Counters, Server, ServerCommand, ServerConfig, ServerEvent, Transport};

const PEER: Peer = Peer(Peer::FIRST_ACCEPTED);
/// More than any far end remembers.
const LONG_AGO: u64 = 10_000;

/// A server over UDP that has greeted one peer.
struct Greeted(Server, [u8; PROOF]);

impl Greeted {
    fn new() -> Greeted {
        let mut server = Greeted(
            Server::new(ServerConfig {
                transport: Transport::Datagram,
                size_max: 1 << 16,
                pending_max: 1 << 20,
                greeting_timeout: Duration::from_secs(5),
                silence_timeout: Duration::from_secs(60),
                lease: Duration::from_secs(1),
                secret: [1, 2],
            }),
            [0; PROOF],
        );
        server.0.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(1, 0)));
        let hello = Header { flags: FLAG_FACTS, ..Header::new(Kind::Hello, (GREETING + PROOF) as u32, 0) }.encode();
        let answers = server.tell(&[&hello[..], &encode_greeting(1 << 16), &[0; PROOF]].concat());
        assert_eq!(answers.iter().map(|answer| answer.0.kind).collect::<Vec<_>>(), [Kind::Welcome]);
        server.1.copy_from_slice(&answers[0].1[GREETING..]);
        server
    }

    /// Returns the messages that the server sends back for one datagram.
    fn tell(&mut self, datagram: &[u8]) -> Vec<(Header, Vec<u8>)> {
        self.0.handle(Instant::ZERO, Input::Received(PEER, datagram));
        let (mut answers, mut out) = (Vec::new(), Outbox::new());
        loop {
            match self.0.poll(Instant::ZERO, &mut out) {
                Output::Send(_) => {
                    out.seal();
                    let bytes = out.pieces().iter().flat_map(|piece| out.bytes(piece)).copied().collect::<Vec<u8>>();
                    let (header, body) = bytes.split_first_chunk::<HEADER>().expect("a whole message");
                    answers.push((Header::decode(header).unwrap(), body.to_vec()));
                    out.clear();
                }
                Output::Event(ServerEvent::ReportAsked(peer)) => {
                    let process = Counters::default();
                    self.0.handle(Instant::ZERO, Input::Command(ServerCommand::Report { peer, process }));
                }
                Output::Idle(_) => return answers,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the numbers of the operations that the server answers to a message with this body.
    fn answered(&mut self, header: &Header, body: &[u8]) -> Vec<u64> {
        self.tell(&[&header.encode()[..], body].concat()).iter().map(|answer| answer.0.sequence).collect()
    }

    fn echo(&mut self, sequence: u64) -> Vec<u64> {
        self.answered(&Header::new(Kind::Echo, HEADER as u32, sequence), &[])
    }

    fn receive(&mut self, sequence: u64, count: u16) -> Vec<u64> {
        self.answered(&Header { count, ..Header::new(Kind::Receive, HEADER as u32, sequence) }, &self.1.clone())
    }

    fn counters(&mut self) -> Counters {
        let answers = self.tell(&[&Header::new(Kind::Report, PROOF as u32, 1).encode()[..], &self.1.clone()].concat());
        let (_, body) = answers.iter().find(|answer| answer.0.kind == Kind::Counters).expect("they were asked for");
        Counters::decode(body).unwrap()
    }
}

#[test]
fn a_request_that_comes_twice_is_answered_once() {
    let mut server = Greeted::new();
    assert_eq!(server.receive(0, 3), [0, 1, 2]);
    assert_eq!(server.receive(3, 2), [3, 4]);
    assert_eq!(server.receive(0, 3), []);
    assert_eq!(server.receive(3, 2), []);
    assert_eq!(server.counters().duplicated, 2);
}

#[test]
fn requests_that_swap_places_are_both_answered() {
    let mut server = Greeted::new();
    assert_eq!(server.receive(1000, 1000).len(), 1000);
    assert_eq!(server.receive(0, 1000).len(), 1000);
    assert_eq!(server.receive(2000, 1).len(), 1);
    let counters = server.counters();
    assert_eq!((counters.duplicated, counters.reordered), (0, 1));
}

/// Expects answers to old operations: the client knows what is under way, and so what is a duplicate.
#[test]
fn what_was_overtaken_long_ago_is_answered() {
    let mut server = Greeted::new();
    assert_eq!(server.echo(LONG_AGO), [LONG_AGO]);
    assert_eq!(server.echo(1), [1]);
    assert_eq!(server.receive(LONG_AGO, 1), [LONG_AGO]);
    assert_eq!(server.receive(1, 2), [1, 2]);
    assert_eq!(server.counters().duplicated, 0);
}

/// Expects no count of old sends: nobody is told of them one by one, and no more may be counted than were sent.
#[test]
fn sends_from_long_ago_are_not_counted_again() {
    let mut server = Greeted::new();
    for sequence in [0, LONG_AGO, 0] {
        server.answered(&Header::new(Kind::Send, HEADER as u32, sequence), &[]);
    }
    let counters = server.counters();
    assert_eq!((counters.received, counters.duplicated), (2, 1));
}
