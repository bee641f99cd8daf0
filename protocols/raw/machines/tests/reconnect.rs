//! Connections of one operation each: none inherits the state of the one before, which had the same number.

use core::time::Duration;
use hodo_machine::{Address, Bytes, Ends, Input, Instant, Machine, Outbox, Output, Peer, Transport};
use hodo_raw::wire::{GREETING, HEADER, Header, Kind, encode_greeting};
use hodo_raw::{Client, ClientConfig, Command, Direction, Event};

const ADDRESS: Address = Address::Node(1);
const ENDS: Ends = Ends::new(Address::Node(0), ADDRESS);

/// Creates a client of one channel whose every operation has a connection of its own.
fn client() -> Client {
    Client::new(ClientConfig {
        transport: Transport::Stream,
        address: ADDRESS,
        channels: 1,
        size_max: 1 << 10,
        acknowledge_every: 1,
        unbounded: false,
        greeting_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        reconnect: true,
        check: false,
        is_group: false,
        payload: Bytes::new(),
    })
}

/// Polls the client until it is idle, opens what it asks for, and returns which connection that was and the kinds of the
/// messages that were sent.
fn poll(client: &mut Client) -> (Option<Peer>, Vec<Kind>) {
    let (mut opened, mut sent, mut out) = (None, Vec::new(), Outbox::new());
    loop {
        match client.poll(Instant::ZERO, &mut out) {
            Output::Open(peer, _) => {
                opened = Some(peer);
                client.handle(Instant::ZERO, Input::Opened(peer, &ENDS));
            }
            Output::Send(_) | Output::Close(_) | Output::Event(Event::Done(_) | Event::Ready { .. }) => {}
            Output::Idle(_) => break,
            other => panic!("{other:?}"),
        }
    }
    let bytes = out.pieces().iter().flat_map(|piece| out.bytes(piece)).copied().collect::<Vec<u8>>();
    let mut rest = &bytes[..];
    while let Some(header) = rest.first_chunk::<HEADER>() {
        let header = Header::decode(header).unwrap();
        sent.push(header.kind);
        rest = &rest[HEADER + header.body()..];
    }
    (opened, sent)
}

fn receive(client: &mut Client, peer: Peer, header: &Header, body: &[u8]) {
    let message = [&header.encode()[..], body].concat();
    client.handle(Instant::ZERO, Input::Received(peer, &message));
}

/// Does one operation, and returns the peer of its connection, which the client has not closed yet.
fn operate(client: &mut Client, tag: u64) -> Peer {
    let operation = Command::Operation { tag, channel: 0, size: HEADER as u32, direction: Direction::Both };
    client.handle(Instant::ZERO, Input::Command(operation));
    let (peer, sent) = poll(client);
    assert_eq!(sent, [Kind::Hello, Kind::Echo], "operation {tag}");
    let peer = peer.expect("a connection of its own");
    receive(client, peer, &Header::new(Kind::Welcome, GREETING as u32, 0), &encode_greeting(1 << 10));
    receive(client, peer, &Header::new(Kind::Reply, HEADER as u32, 0), &[]);
    peer
}

#[test]
fn a_connection_is_not_held_back_because_the_one_before_was() {
    let mut client = client();
    poll(&mut client);
    let first = operate(&mut client, 1);
    client.handle(Instant::ZERO, Input::Blocked(first));
    assert_eq!(operate(&mut client, 2), first);
}
