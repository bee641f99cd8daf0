//! SENDs over UDP that nobody waits for: the server counts them.

use core::time::Duration;
use hodo_machine::{Address, Bytes, Ends, Input, Instant, Machine, Outbox, Output, Peer, Transport};
use hodo_raw::wire::{FLAG_ACKNOWLEDGE, HEADER, Header, Kind, encode_greeting};
use hodo_raw::{Client, ClientConfig, Command, Direction, Error, Event};

const EVERY: u32 = 4;

/// A client whose server has greeted it.
struct Greeted(Client);

impl Greeted {
    fn new() -> Greeted {
        let mut client = Client::new(ClientConfig {
            transport: Transport::Datagram,
            address: Address::Node(1),
            channels: 1,
            size_max: 1024,
            acknowledge_every: EVERY,
            unbounded: true,
            greeting_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            reconnect: false,
            check: false,
            is_group: false,
            payload: Bytes::new(),
        });
        let mut out = Outbox::new();
        while !matches!(client.poll(Instant::ZERO, &mut out), Output::Open(..)) {}
        client.handle(Instant::ZERO, Input::Opened(Peer(0), &Ends::nodes(0, 1)));
        let mut greeted = Greeted(client);
        greeted.turn();
        let welcome = encode_greeting(1024);
        greeted.take(Kind::Welcome, 0, 0, &welcome);
        assert!(matches!(greeted.turn().1[..], [Event::Ready { .. }]));
        greeted
    }

    fn take(&mut self, kind: Kind, count: u16, sequence: u64, body: &[u8]) {
        let header = Header { count, ..Header::new(kind, body.len() as u32, sequence) };
        let bytes = [&header.encode()[..], body].concat();
        self.0.handle(Instant::ZERO, Input::Received(Peer(0), &bytes));
    }

    fn acknowledge(&mut self, received: u64) {
        self.take(Kind::Ack, 0, received, &received.to_le_bytes());
    }

    /// Starts operations of 64 bytes, and returns what was sent and told.
    fn send(&mut self, tags: core::ops::Range<u64>) -> (Vec<Header>, Vec<Event>) {
        for tag in tags {
            let command = Command::Operation { tag, channel: 0, size: 64, direction: Direction::Send };
            self.0.handle(Instant::ZERO, Input::Command(command));
        }
        self.turn()
    }

    fn turn(&mut self) -> (Vec<Header>, Vec<Event>) {
        let (mut headers, mut events) = (Vec::new(), Vec::new());
        loop {
            let mut out = Outbox::new();
            match self.0.poll(Instant::ZERO, &mut out) {
                Output::Event(event) => events.push(event),
                Output::Send(_) => {
                    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece)).copied().collect();
                    headers.push(Header::decode(bytes.first_chunk::<HEADER>().expect("a header")).expect("ours"));
                }
                Output::Idle(_) => return (headers, events),
                _ => {}
            }
        }
    }
}

#[test]
fn an_operation_ends_when_it_is_sent_and_arrives_by_the_servers_count() {
    let mut client = Greeted::new();
    let (sent, told) = client.send(0..10);
    assert!(sent.iter().map(|header| header.sequence).eq(0..10));
    let asked: Vec<u64> =
        sent.iter().filter(|header| header.flags == FLAG_ACKNOWLEDGE).map(|header| header.sequence).collect();
    assert_eq!(asked, [3, 7, 9], "each fourth, and the last of a burst");
    assert!(told.iter().copied().eq((0..10).map(Event::Sent)));
    for (received, arrived) in [(4, Some(4)), (4, None), (2, None), (9, Some(5)), (u64::MAX, Some(1)), (u64::MAX, None)]
    {
        client.acknowledge(received);
        let told = client.turn().1;
        assert!(
            told.iter().copied().eq(arrived.map(|count| Event::Arrived { channel: 0, count })),
            "{received}: {told:?}"
        );
    }
}

#[test]
fn a_server_that_does_not_count_is_told_of() {
    let mut client = Greeted::new();
    client.send(0..1);
    client.take(Kind::Ack, 0, 1, &[]);
    let told = client.turn().1;
    assert!(matches!(told[..], [Event::Failed { error: Error::NoCount, .. }]), "{told:?}");
}
