//! Payloads that are looked at: what a path changes below every other checksum is counted on the side where it arrives.

use core::time::Duration;
use hodo_machine::{Address, Bytes, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_raw::wire::updates::STAMP;
use hodo_raw::wire::{FLAG_CHECKS, HEADER, Header, Kind};
use hodo_raw::{
    Client, ClientConfig, Command, Counters, Direction, Error, Event, Server, ServerCommand, ServerConfig, ServerEvent,
    Transport,
};

const CLIENT: Peer = Peer::accepted(0);
const SERVER: Peer = Peer(0);
const ENDS: Ends = Ends { local: Address::Node(0), remote: Address::Node(1), interface: None, user: None };
const SECOND: Duration = Duration::from_secs(1);

/// A client and a server, and a path between them that changes bytes.
struct Path {
    client: Client,
    server: Server,
    transport: Transport,
    /// Changes a message on its way, by its kind.
    change: fn(Kind, &mut [u8]),
    events: Vec<Event>,
    /// Payloads that went either way, without their headers.
    payloads: Vec<u8>,
}

impl Path {
    fn new(transport: Transport, check: bool, change: fn(Kind, &mut [u8])) -> Path {
        let client = Client::new(ClientConfig {
            transport,
            address: Address::Node(1),
            channels: 1,
            size_max: 1 << 20,
            acknowledge_every: 1,
            unbounded: false,
            greeting_timeout: SECOND,
            timeout: SECOND,
            reconnect: false,
            is_group: false,
            check,
            payload: Bytes::from_static(b"the bytes of a file"),
        });
        let config = ServerConfig {
            transport,
            size_max: 1 << 20,
            pending_max: 1000,
            greeting_timeout: SECOND,
            silence_timeout: SECOND,
            lease: SECOND,
            secret: [1, 2],
        };
        let mut server = Server::new(config).carrying(Bytes::from_static(b"those of another"));
        server.handle(Instant::ZERO, Input::Opened(CLIENT, &ENDS));
        let mut path = Path { client, server, transport, change, events: Vec::new(), payloads: Vec::new() };
        path.settle();
        path
    }

    /// Carries messages until neither side has one.
    fn settle(&mut self) {
        loop {
            let to_server = self.sent_by_client();
            to_server.iter().for_each(|message| self.server.handle(Instant::ZERO, Input::Received(CLIENT, message)));
            let to_client = self.sent_by_server();
            to_client.iter().for_each(|message| self.client.handle(Instant::ZERO, Input::Received(SERVER, message)));
            if to_server.is_empty() && to_client.is_empty() {
                return;
            }
        }
    }

    fn sent_by_client(&mut self) -> Vec<Vec<u8>> {
        let (mut out, mut sent) = (Outbox::new(), Vec::new());
        loop {
            match self.client.poll(Instant::ZERO, &mut out) {
                Output::Send(_) => sent.extend(self.carried(&mut out)),
                Output::Event(event) => self.events.push(event),
                Output::Open(peer, _) => self.client.handle(Instant::ZERO, Input::Opened(peer, &ENDS)),
                Output::Close(_) => {}
                Output::Idle(_) => return sent,
            }
        }
    }

    fn sent_by_server(&mut self) -> Vec<Vec<u8>> {
        let (mut out, mut sent) = (Outbox::new(), Vec::new());
        loop {
            match self.server.poll(Instant::ZERO, &mut out) {
                Output::Send(_) => sent.extend(self.carried(&mut out)),
                Output::Event(ServerEvent::ReportAsked(peer)) => {
                    let command = ServerCommand::Report { peer, process: Counters::default() };
                    self.server.handle(Instant::ZERO, Input::Command(command));
                }
                Output::Idle(_) => return sent,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Takes the messages of a poll, changed, and in pieces of 7 bytes on a stream.
    fn carried(&mut self, out: &mut Outbox) -> Vec<Vec<u8>> {
        out.seal();
        let mut bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
        out.clear();
        let mut at = 0;
        while at < bytes.len() {
            let header = Header::decode(bytes[at..].first_chunk().unwrap()).unwrap();
            let more = if self.transport == Transport::Datagram && header.kind == Kind::Receive { 8 } else { 0 };
            let end = at + HEADER + header.body() + more;
            if header.kind.is_payload() {
                self.payloads.extend(&bytes[at + HEADER..end]);
            }
            (self.change)(header.kind, &mut bytes[at..end]);
            at = end;
        }
        let piece = if self.transport == Transport::Stream { 7 } else { bytes.len().max(1) };
        bytes.chunks(piece).map(<[u8]>::to_vec).collect()
    }

    /// Does so many operations, asks for the counters, and returns how many payloads were damaged there and here.
    fn damaged(&mut self, direction: Direction, size: u32, count: u64) -> (Option<u64>, u64) {
        for tag in 0..count {
            let operation = Command::Operation { tag, channel: 0, size, direction };
            self.client.handle(Instant::ZERO, Input::Command(operation));
            self.settle();
        }
        assert_eq!(self.events.iter().filter(|event| matches!(event, Event::Done(_))).count() as u64, count);
        self.client.handle(Instant::ZERO, Input::Command(Command::Report));
        self.settle();
        let Some(Event::Report { damaged, .. }) = self.events.pop() else { panic!("no report") };
        (damaged, self.client.noticed().damaged)
    }
}

const BOTH: [Transport; 2] = [Transport::Stream, Transport::Datagram];

#[test]
fn an_honest_path_damages_nothing_and_carries_the_bytes_of_the_file() {
    for transport in BOTH {
        let mut path = Path::new(transport, true, |_, _| ());
        assert_eq!(path.damaged(Direction::Both, HEADER as u32 + 4 + 10, 3), (Some(0), 0));
        let carried: Vec<&[u8]> = path.payloads.chunks(14).map(|payload| &payload[..10]).collect();
        let wanted: [&[u8]; 6] =
            [b"the bytes ", b"those of a", b"of a filet", b"notherthos", b"he bytes o", b"e of anoth"];
        assert_eq!(carried, wanted);
        assert_eq!(Path::new(transport, true, |_, _| ()).damaged(Direction::Receive, 9_000, 5), (Some(0), 0));
    }
}

#[test]
fn what_a_path_changes_is_counted_where_it_arrives() {
    for transport in BOTH {
        let swap = |kind: Kind, message: &mut [u8]| {
            // Two words that change places leave the checksums of TCP and UDP as they are.
            if kind.is_payload() && message.len() >= HEADER + 4 {
                message.swap(HEADER, HEADER + 2);
                message.swap(HEADER + 1, HEADER + 3);
            }
        };
        for (direction, wanted) in
            [(Direction::Send, (Some(4), 0)), (Direction::Receive, (Some(0), 4)), (Direction::Both, (Some(4), 4))]
        {
            assert_eq!(Path::new(transport, true, swap).damaged(direction, 100, 4), wanted, "{direction:?}");
        }
        assert_eq!(Path::new(transport, false, swap).damaged(Direction::Both, 100, 4), (None, 0), "nobody looks");
        assert_eq!(Path::new(transport, true, swap).damaged(Direction::Both, 19, 4).0, Some(0), "no room to look at");
    }
}

#[test]
fn updates_are_looked_at_with_their_stamps() {
    let flip = |kind: Kind, message: &mut [u8]| {
        if kind == Kind::Update {
            message[HEADER + STAMP - 1] ^= 1;
        }
    };
    for transport in BOTH {
        for (change, wanted) in [(flip as fn(Kind, &mut [u8]), 1), (|_, _| (), 0)] {
            let mut path = Path::new(transport, true, change);
            let ask = Command::Subscribe { channel: 0, size: 64, rate_micro: 1, first_after: Duration::ZERO, queue: 4 };
            path.client.handle(Instant::ZERO, Input::Command(ask));
            path.settle();
            assert_eq!(path.events.iter().filter(|event| matches!(event, Event::Update { .. })).count(), 1);
            assert_eq!(path.client.noticed().damaged, wanted);
        }
    }
}

#[test]
fn a_server_that_does_not_look_is_told_at_once() {
    let forget = |kind: Kind, message: &mut [u8]| {
        if kind == Kind::Welcome {
            message[1] &= !FLAG_CHECKS;
        }
    };
    for transport in BOTH {
        let path = Path::new(transport, true, forget);
        assert!(path.events.contains(&Event::Failed { channel: 0, error: Error::NoCheck }), "{:?}", path.events);
    }
}
