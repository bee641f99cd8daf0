//! A server that acknowledges by time what does not ask for it, to clients that know of that and to no others.

use core::time::Duration;
use hodo_machine::{Address, Bytes, Driver, DriverError, Ends, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use hodo_raw::wire::{
    COUNTERS, FLAG_ACKNOWLEDGE, FLAG_BY_TIME, FLAG_FACTS, GREETING, GREETING_MAX, HEADER, Header, Kind, PROOF, RANGE,
    encode_greeting,
};
use hodo_raw::{Client, ClientConfig, Command, Direction, Event, Server, ServerConfig, Transport};
use hodo_sim::Sim;
use hodo_sim::conformance::networks;

const PEER: Peer = Peer::accepted(0);
const SIZE: u32 = 1472;

fn server(transport: Transport) -> Server {
    Server::new(ServerConfig {
        transport,
        size_max: 16 << 20,
        pending_max: 100,
        greeting_timeout: Duration::from_secs(5),
        silence_timeout: Duration::from_secs(60),
        lease: Duration::from_secs(1),
        secret: [1, 2],
    })
}

/// A server with one peer, in virtual time.
struct There {
    server: Server,
    now: Instant,
    /// The acknowledgements so far: when, the sequence, and what stands behind the header.
    acknowledged: Vec<(Instant, u64, Vec<u8>)>,
}

impl There {
    /// Greets with these flags, a second after the beginning.
    fn new(transport: Transport, flags: u8) -> There {
        let now = Instant::ZERO + Duration::from_secs(1);
        let mut there = There { server: server(transport), now, acknowledged: Vec::new() };
        there.server.handle(now, Input::Opened(PEER, &Ends::nodes(1, 0)));
        let length = if transport == Transport::Datagram { GREETING_MAX } else { GREETING };
        let hello = Header { flags, ..Header::new(Kind::Hello, length as u32, 0) };
        let body = [&encode_greeting(1 << 20)[..], &vec![0; length - GREETING]].concat();
        there.receive(&[&hello.encode()[..], &body].concat());
        there
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.server.handle(self.now, Input::Received(PEER, bytes));
        self.poll();
    }

    /// Receives a SEND of this size.
    fn send(&mut self, sequence: u64, size: u32, flags: u8) {
        let header = Header { flags, ..Header::new(Kind::Send, size, sequence) };
        self.receive(&[&header.encode()[..], &vec![0; size as usize - HEADER]].concat());
    }

    /// Polls the server until it is idle, and returns its next deadline.
    fn poll(&mut self) -> Option<Instant> {
        let mut out = Outbox::new();
        loop {
            match self.server.poll(self.now, &mut out) {
                Output::Send(_) => {
                    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece)).copied().collect();
                    out.clear();
                    let (header, body) = bytes.split_first_chunk::<HEADER>().expect("a header");
                    let header = Header::decode(header).expect("one of ours");
                    if header.kind == Kind::Ack {
                        assert_eq!(body.len(), header.length as usize);
                        self.acknowledged.push((self.now, header.sequence, body.to_vec()));
                    }
                }
                Output::Idle(deadline) => return deadline,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Lets this much time pass.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(at) = self.poll().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.server.handle(self.now, Input::Elapsed);
        }
        self.now = until;
    }
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn a_client_of_before_gets_what_it_asks_for_and_nothing_else() {
    for transport in [Transport::Datagram, Transport::Stream] {
        let mut there = There::new(transport, FLAG_FACTS);
        for sequence in 0..100 {
            there.send(sequence, SIZE, 0);
            there.pass(millis(10));
        }
        there.pass(millis(5_000));
        assert_eq!(there.acknowledged, [], "{transport:?}");
        there.send(100, SIZE, FLAG_ACKNOWLEDGE);
        let [(_, 101, body)] = &there.acknowledged[..] else { panic!("{:?}", there.acknowledged) };
        assert_eq!(body.len(), if transport == Transport::Datagram { RANGE } else { 0 });
    }
}

#[test]
fn a_burst_that_asks_for_nothing_is_acknowledged_after_a_silence() {
    for transport in [Transport::Datagram, Transport::Stream] {
        let mut there = There::new(transport, FLAG_BY_TIME);
        let began = there.now;
        (0..7).for_each(|sequence| there.send(sequence, SIZE, 0));
        there.pass(millis(30));
        assert_eq!(there.acknowledged, [], "more may come");
        there.send(8, SIZE, 0);
        // The first one that comes late is, and no silence follows upon it.
        assert_eq!(there.acknowledged.len(), 1);
        there.send(9, SIZE, 0);
        there.pass(millis(5_000));
        assert_eq!(there.acknowledged.len(), 2);
        let (at, _, body) = &there.acknowledged[1];
        assert_eq!(*at, began + millis(30 + 50));
        if transport == Transport::Datagram {
            let numbers: Vec<u64> =
                body.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight bytes"))).collect();
            assert_eq!(numbers, [0, 7, 8, 2, 9], "two ranges, and how many have arrived");
        }
    }
}

#[test]
fn on_a_slow_line_each_is_acknowledged_as_it_arrives() {
    for transport in [Transport::Datagram, Transport::Stream] {
        let mut there = There::new(transport, FLAG_BY_TIME);
        for sequence in 0..20 {
            there.pass(millis(10));
            there.send(sequence, SIZE, 0);
            let (at, next, _) = there.acknowledged.last().expect("an acknowledgement");
            assert_eq!((*at, *next), (there.now, sequence + 1));
        }
    }
}

#[test]
fn on_a_fast_line_there_is_one_in_two_milliseconds() {
    for transport in [Transport::Datagram, Transport::Stream] {
        let mut there = There::new(transport, FLAG_BY_TIME);
        for sequence in 0..10_000 {
            there.pass(Duration::from_micros(10));
            there.send(sequence, SIZE, 0);
        }
        assert_eq!(there.acknowledged.len(), 50, "in 100 ms");
    }
}

#[test]
fn a_message_that_takes_long_is_told_to_be_arriving() {
    let mut there = There::new(Transport::Stream, FLAG_BY_TIME);
    for kind in [Kind::Send, Kind::Echo] {
        there.acknowledged.clear();
        there.receive(&Header::new(kind, 8 << 20, 0).encode());
        for _ in 0..100 {
            there.pass(millis(100));
            there.receive(&[0; 1000]);
        }
        assert_eq!(there.acknowledged.len(), 10, "in 10 s");
        there.receive(&vec![0; (8 << 20) - HEADER - 100 * 1000]);
    }
}

fn config(transport: Transport) -> ClientConfig {
    ClientConfig {
        transport,
        address: Address::Node(1),
        channels: 1,
        size_max: 16 << 20,
        acknowledge_every: 128,
        unbounded: false,
        greeting_timeout: Duration::from_secs(5),
        timeout: Duration::from_millis(250),
        reconnect: false,
        check: false,
        is_group: false,
        payload: Bytes::new(),
    }
}

/// Returns how many of a burst were done and lost, and how long that took, over a simulated network.
fn burst(network: &str, operations: u64) -> (usize, usize, Duration) {
    let (out, back) = networks(network, 1).expect("a network");
    let (client, server) = (Client::new(config(Transport::Datagram)), server(Transport::Datagram));
    let mut sim = Sim::new(hodo_sim::Transport::Datagram, (&out, &back), client, vec![server], |_| None);
    let mut events = Vec::new();
    let end = Instant::ZERO + Duration::from_secs(10);
    while events.is_empty() {
        sim.turn(Wait::Block, end, &mut |event| events.push(event)).expect("it is greeted");
    }
    events.clear();
    let began = sim.now();
    for tag in 0..operations {
        sim.command(Command::Operation { tag, channel: 0, size: SIZE, direction: Direction::Send });
    }
    while events.len() < operations as usize {
        match sim.turn(Wait::Block, end, &mut |event| events.push(event)) {
            Ok(()) => assert!(sim.now() < end, "{} of {operations} have ended", events.len()),
            Err(DriverError::NothingLeft) => panic!("{} of {operations} have ended", events.len()),
            Err(other) => panic!("{other}"),
        }
    }
    let done = events.iter().filter(|event| matches!(event, Event::Done(_))).count();
    (done, operations as usize - done, sim.now() - began)
}

#[test]
fn what_arrives_of_a_burst_is_done_whatever_the_queue_drops() {
    for (queue, least) in [("8K", 5), ("32K", 21), ("100K", 66)] {
        let (done, lost, _) = burst(&format!("delay=20us&rate=100M&queue={queue}&mtu=1500&overhead=38"), 512);
        assert!(done >= least && done <= least + 3, "{done} of 512 arrived through {queue}");
        assert_eq!(done + lost, 512);
    }
}

/// The answer of a server of before, which has nothing behind its ranges, and that of one of today.
#[test]
fn a_client_takes_acknowledgements_with_and_without_the_count() {
    for with_count in [false, true] {
        let (mut client, mut out) = (Client::new(config(Transport::Datagram)), Outbox::new());
        let poll = |client: &mut Client, out: &mut Outbox| {
            let mut events = Vec::new();
            loop {
                match client.poll(Instant::ZERO, out) {
                    Output::Event(event) => events.push(event),
                    Output::Idle(_) => return events,
                    _ => {}
                }
            }
        };
        poll(&mut client, &mut out);
        client.handle(Instant::ZERO, Input::Opened(Peer(0), &Ends::nodes(0, 1)));
        poll(&mut client, &mut out);
        let hello: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece)).copied().collect();
        assert_eq!((hello[0], hello[1], hello.len()), (0xA0, FLAG_FACTS | FLAG_BY_TIME, HEADER + GREETING_MAX));
        let welcome = Header::new(Kind::Welcome, (GREETING + PROOF) as u32, 0).encode();
        let welcome = [&welcome[..], &encode_greeting(1 << 20), &[7; PROOF]].concat();
        client.handle(Instant::ZERO, Input::Received(Peer(0), &welcome));
        for tag in 0..3 {
            let operation = Command::Operation { tag, channel: 0, size: SIZE, direction: Direction::Send };
            client.handle(Instant::ZERO, Input::Command(operation));
        }
        assert!(matches!(poll(&mut client, &mut out)[..], [Event::Ready { .. }]));
        let count: &[u8] = if with_count { &2_u64.to_le_bytes() } else { &[] };
        let header = Header { count: 1, ..Header::new(Kind::Ack, (RANGE + count.len()) as u32, 3) };
        let range = [1_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat();
        client.handle(Instant::ZERO, Input::Received(Peer(0), &[&header.encode()[..], &range, count].concat()));
        assert_eq!(poll(&mut client, &mut out), [Event::Done(1), Event::Done(2)], "{with_count}");
    }
}

/// An acknowledgement that says nothing new ends no connection of a single operation.
#[test]
fn a_single_echo_outlives_an_acknowledgement() {
    let mut there = There::new(Transport::Stream, FLAG_BY_TIME);
    let header = Header::new(Kind::Echo, COUNTERS as u32, 0);
    there.receive(&header.encode());
    there.pass(millis(2_000));
    there.receive(&[0; 8]);
    assert_eq!(there.acknowledged.iter().map(|(_, next, _)| *next).collect::<Vec<_>>(), [0]);
    let mut single = Client::new(ClientConfig { reconnect: true, acknowledge_every: 1, ..config(Transport::Stream) });
    let mut out = Outbox::new();
    let mut closed = 0;
    let mut poll = |client: &mut Client| {
        loop {
            match client.poll(Instant::ZERO, &mut out) {
                Output::Close(_) => closed += 1,
                Output::Idle(_) => return closed,
                _ => {}
            }
        }
    };
    let operation = Command::Operation { tag: 5, channel: 0, size: COUNTERS as u32, direction: Direction::Both };
    single.handle(Instant::ZERO, Input::Command(operation));
    poll(&mut single);
    single.handle(Instant::ZERO, Input::Opened(Peer(1), &Ends::nodes(0, 1)));
    poll(&mut single);
    let welcome = [&Header::new(Kind::Welcome, GREETING as u32, 0).encode()[..], &encode_greeting(1 << 20)].concat();
    single.handle(Instant::ZERO, Input::Received(Peer(1), &welcome));
    single.handle(Instant::ZERO, Input::Received(Peer(1), &Header::new(Kind::Ack, 0, 0).encode()));
    assert_eq!(poll(&mut single), 0);
    let reply = [&Header::new(Kind::Reply, COUNTERS as u32, 0).encode()[..], &[0; COUNTERS - HEADER]].concat();
    single.handle(Instant::ZERO, Input::Received(Peer(1), &reply));
    assert_eq!(poll(&mut single), 1);
}

/// Operations that wait behind a full stream are withdrawn, those on their way are not.
#[test]
fn what_has_not_left_is_withdrawn() {
    let (out, back) = networks("rate=10M&delay=1ms&mtu=1500", 1).expect("a network");
    let (client, server) = (Client::new(config(Transport::Stream)), server(Transport::Stream));
    let mut sim = Sim::new(hodo_sim::Transport::Stream, (&out, &back), client, vec![server], |_| None);
    let (mut events, end) = (Vec::new(), Instant::ZERO + Duration::from_secs(20));
    for tag in 0..64 {
        sim.command(Command::Operation { tag, channel: 0, size: 128 << 10, direction: Direction::Send });
    }
    while !events.contains(&Event::Done(0)) {
        sim.turn(Wait::Block, end, &mut |event| events.push(event)).expect("the first is on its way");
    }
    sim.command(Command::Withdraw);
    sim.command(Command::Flush);
    let of = |events: &[Event], kind: fn(u64) -> Event| (0..64).filter(|tag| events.contains(&kind(*tag))).count();
    while of(&events, Event::Done) + of(&events, Event::Withdrawn) < 64 {
        assert!(sim.now() < end, "{events:?}");
        sim.turn(Wait::Block, end, &mut |event| events.push(event)).expect("the rest is on its way");
    }
    assert!((3..10).contains(&of(&events, Event::Done)), "{}", of(&events, Event::Done));
    assert!(sim.now() < Instant::ZERO + Duration::from_secs(2), "64 would take 6.7 s");
}
