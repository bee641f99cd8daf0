//! Streams deliver every byte in its place, whatever the sockets take at once, and hold back their machines in pairs.

use crate::stopping;

use hodo_io::{Clock, Endpoint, ServeOptions, Server, SocketSettings, Sockets};
use hodo_machine::{Address, Bytes, Closed, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use stopping::Stopping;

/// The period of the bytes of every stream, a prime: a byte that is out of place is detected.
const PERIOD: usize = 65_521;
/// The longest message.
const MESSAGE_MAX: u64 = 20_000;
/// The bytes that wait for one peer before its machine is notified to hold back.
const BACKLOG: usize = 16 << 10;
const TIMEOUT: Duration = Duration::from_secs(30);

/// A sender of a number of bytes of a pattern to every peer, in messages of random sizes, which checks the bytes that
/// it receives.
struct Patterned {
    sends: u64,
    expects: u64,
    seed: u64,
    /// Whether it closes a peer as soon as all bytes are handed over.
    closes: bool,
    to_open: VecDeque<(Peer, Address)>,
    to_close: VecDeque<Peer>,
    events: VecDeque<StreamEvent>,
    flows: BTreeMap<u32, Flow>,
    pattern: Bytes,
    place: Vec<u8>,
}

#[derive(Default)]
struct Flow {
    open: bool,
    sent: u64,
    received: u64,
    blocked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamEvent {
    Whole,
    Blocked,
    Drained,
    Closed(Closed),
}

fn pattern(place: usize) -> u8 {
    ((place * 2_654_435_761) >> 13) as u8
}

impl Patterned {
    fn new(seed: u64, sends: u64, expects: u64) -> Self {
        Patterned {
            sends,
            expects,
            seed,
            closes: false,
            to_open: VecDeque::new(),
            to_close: VecDeque::new(),
            events: VecDeque::new(),
            flows: BTreeMap::new(),
            // Two periods, so that a message of any length can begin anywhere in the first.
            pattern: (0..2 * PERIOD).map(|place| pattern(place % PERIOD)).collect(),
            place: vec![0; 3000],
        }
    }

    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }

    fn flow(&mut self, peer: Peer) -> &mut Flow {
        self.flows.get_mut(&peer.0).expect("a peer is opened before anything else is told of it")
    }

    fn took(&mut self, peer: Peer, bytes: &[u8]) {
        let (expects, pattern) = (self.expects, self.pattern.clone());
        let flow = self.flow(peer);
        let start = (flow.received % PERIOD as u64) as usize;
        for (part, chunk) in bytes.chunks(PERIOD).enumerate() {
            let start = (start + part * PERIOD) % PERIOD;
            assert!(*chunk == pattern[start..start + chunk.len()], "a byte is out of place after {}", flow.received);
        }
        flow.received += bytes.len() as u64;
        assert!(flow.received <= expects, "more came than was sent");
        if flow.received == expects && !bytes.is_empty() {
            self.events.push_back(StreamEvent::Whole);
        }
    }

    /// Writes a message of several pieces: copied ones, and shared ones of any length.
    fn message(&mut self, peer: Peer, out: &mut Outbox) {
        let left = self.sends - self.flow(peer).sent;
        let size = (1 + self.random() % MESSAGE_MAX).min(left);
        let (mut written, whole) = (0, self.pattern.clone());
        while written < size {
            let random = self.random();
            let piece = (1 + random % MESSAGE_MAX).min(size - written) as usize;
            let start = ((self.flow(peer).sent + written) % PERIOD as u64) as usize;
            match random >> 32 & 1 {
                0 => out.copy(&whole[start..start + piece]),
                _ => out.share(whole.slice(start..start + piece)),
            }
            written += piece as u64;
        }
        self.flow(peer).sent += size;
    }

    /// Returns whether all bytes are handed over and have gone out, and all have come.
    fn is_done(&self) -> bool {
        self.flows.values().all(|flow| flow.sent == self.sends && flow.received == self.expects && !flow.blocked)
    }
}

impl Machine for Patterned {
    type Command = ();
    type Event = StreamEvent;

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) => {
                self.flows.insert(peer.0, Flow { open: true, ..Flow::default() });
            }
            Input::Received(peer, bytes) => self.took(peer, bytes),
            Input::Landed(peer, count) => {
                let place = std::mem::take(&mut self.place);
                self.took(peer, &place[..count]);
                self.place = place;
            }
            Input::Blocked(peer) => {
                assert!(!std::mem::replace(&mut self.flow(peer).blocked, true), "told to hold back twice");
                self.events.push_back(StreamEvent::Blocked);
            }
            Input::Drained(peer) => {
                assert!(std::mem::replace(&mut self.flow(peer).blocked, false), "drained, and was not held back");
                self.events.push_back(StreamEvent::Drained);
            }
            Input::Closed(peer, why) => {
                self.flow(peer).open = false;
                self.events.push_back(StreamEvent::Closed(why));
            }
            Input::Command(()) | Input::Elapsed => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<StreamEvent> {
        if let Some(told) = self.events.pop_front() {
            return Output::Event(told);
        }
        if let Some((peer, address)) = self.to_open.pop_front() {
            return Output::Open(peer, address);
        }
        if let Some(peer) = self.to_close.pop_front() {
            self.flow(peer).open = false;
            return Output::Close(peer);
        }
        let writable = |(peer, flow): (&u32, &Flow)| {
            (flow.open && !flow.blocked && flow.sent < self.sends).then_some((flow.sent, Peer(*peer)))
        };
        // The one that is the furthest behind, so that all are busy at once.
        let Some((_, peer)) = self.flows.iter().filter_map(writable).min() else { return Output::Idle(None) };
        self.message(peer, out);
        if self.closes && self.flow(peer).sent == self.sends {
            self.to_close.push_back(peer);
        }
        Output::Send(peer)
    }

    /// Offers a place now and then.
    fn landing(&mut self, _: Peer) -> Option<&mut [u8]> {
        (self.random() & 1 == 0).then_some(&mut self.place[..])
    }
}

/// Returns a path for a Unix socket, or any free port.
fn address(kind: &str, seed: u64) -> Address {
    match kind {
        "tcp" => Address::Tcp(([127, 0, 0, 1], 0).into()),
        _ => {
            let name = format!("hodo-io-streams-{}-{seed}", std::process::id());
            Address::Path(std::env::temp_dir().join(name).display().to_string())
        }
    }
}

fn settings(socket_buffer: Option<usize>) -> SocketSettings {
    SocketSettings { socket_buffer, backlog_max: BACKLOG, ..SocketSettings::default() }
}

#[derive(Debug, Default)]
struct Tally {
    whole: AtomicU32,
    blocked: AtomicU32,
    drained: AtomicU32,
    finished: AtomicU32,
}

impl Tally {
    fn count(&self, told: StreamEvent) {
        let counter = match told {
            StreamEvent::Whole => &self.whole,
            StreamEvent::Blocked => &self.blocked,
            StreamEvent::Drained => &self.drained,
            StreamEvent::Closed(why) => {
                assert_eq!(why, Closed::Finished);
                &self.finished
            }
        };
        counter.fetch_add(1, Relaxed);
    }

    fn pairs(&self) -> bool {
        self.blocked.load(Relaxed) == self.drained.load(Relaxed)
    }
}

/// An exchange between two machines.
#[derive(Debug, Clone, Copy)]
struct Exchange {
    kind: &'static str,
    seed: u64,
    peers: u32,
    socket_buffer: Option<usize>,
    /// Bytes to the server and back, for each peer.
    totals: (u64, u64),
    wait: Wait,
    /// Whether the client closes as soon as it has handed over all bytes.
    closes: bool,
}

impl Exchange {
    /// Runs the exchange, and returns the events of the client and of the server.
    fn run(self) -> (Tally, Tally) {
        let Exchange { kind, seed, socket_buffer, totals: (there, back), wait, .. } = self;
        let threads = 1 + seed as usize % 2;
        let options = ServeOptions { threads, cpus: Vec::new(), wait, settings: settings(socket_buffer) };
        let server = Server::bind(&address(kind, seed), options).expect("a free address");
        let at = server.address().clone();
        let (stop, near, far) = (AtomicBool::new(false), Tally::default(), Tally::default());
        std::thread::scope(|scope| {
            let stopping = Stopping(&stop);
            let serving = scope.spawn(|| {
                let make = || Patterned::new(seed + 1, back, there);
                let answer = |event| {
                    far.count(event);
                    None
                };
                server.run(make, answer, &stop)
            });
            self.drive(&at, &near, &far);
            drop(stopping);
            serving.join().expect("the server finds every byte in its place").expect("it ends in order");
        });
        (near, far)
    }

    /// Runs the client until both sides have all bytes.
    fn drive(self, at: &Address, near: &Tally, far: &Tally) {
        let mut machine = Patterned::new(self.seed, self.totals.0, self.totals.1);
        machine.closes = self.closes;
        machine.to_open = (0..self.peers).map(|peer| (Peer(peer), at.clone())).collect();
        let streams = Sockets::new(settings(self.socket_buffer)).expect("a poller");
        let clock = Clock::start();
        let mut endpoint = Endpoint::new(machine, streams, clock);
        let end = clock.now() + TIMEOUT;
        let all = |counter: &AtomicU32| counter.load(Relaxed) == self.peers;
        let is_done = |endpoint: &Endpoint<Patterned, Sockets>| {
            let near_done = if self.closes { all(&far.finished) } else { endpoint.machine().is_done() };
            near_done && all(&far.whole) && far.pairs()
        };
        while !is_done(&endpoint) {
            let now = clock.now();
            assert!(now < end, "{self:?} is not over after {TIMEOUT:?}: {near:?} {far:?}");
            let until = now + Duration::from_millis(20);
            endpoint.step(self.wait, until, &mut |event| near.count(event)).expect("the sockets work");
        }
    }
}

/// The kind, the socket buffers, and the bytes that go through them in a second at most: TCP through buffers smaller
/// than a segment waits for timers of the kernel again and again.
const TIGHT: [(&str, usize, u64); 3] =
    [("tcp", 4 << 10, 64 << 10), ("tcp", 64 << 10, 3 << 20), ("unix", 4 << 10, 3 << 20)];

fn tight((kind, socket_buffer, total): (&'static str, usize, u64)) -> Exchange {
    Exchange {
        kind,
        seed: 1,
        peers: 3,
        socket_buffer: Some(socket_buffer),
        totals: (total, total),
        wait: Wait::Block,
        closes: false,
    }
}

#[test]
fn every_byte_arrives_in_its_place_through_tight_buffers() {
    for case in TIGHT {
        for (seed, wait) in [(1, Wait::Block), (2, Wait::Spin), (3, Wait::SpinThenBlock(Duration::from_micros(20)))] {
            let (near, far) = Exchange { seed, wait, ..tight(case) }.run();
            // How often depends on who is scheduled when; a share of a round is more than a MiB, so it is not for each.
            let blocked = (case.2 >> 20).max(1) as u32;
            for side in [near, far] {
                assert_eq!(side.whole.load(Relaxed), 3);
                assert!(side.pairs() && side.blocked.load(Relaxed) >= blocked, "{case:?}: {side:?}");
            }
        }
    }
}

/// Checks a single peer, from which the endpoint reads without its poller whenever nothing waits to be sent.
#[test]
fn one_peer_is_no_different() {
    for case in TIGHT {
        for (seed, narrow) in [(4, true), (5, false)] {
            let exchange = Exchange { seed, peers: 1, ..tight(case) };
            let socket_buffer = exchange.socket_buffer.filter(|_| narrow);
            let (near, far) = Exchange { socket_buffer, ..exchange }.run();
            assert!(near.pairs() && far.pairs(), "{near:?} {far:?}");
        }
    }
}

#[test]
fn a_server_that_only_sends_is_held_back_in_pairs() {
    for case in TIGHT {
        let (near, far) = Exchange { seed: 6, totals: (1, case.2), ..tight(case) }.run();
        assert!(far.pairs() && far.blocked.load(Relaxed) >= 3, "{far:?}");
        assert_eq!(near.blocked.load(Relaxed), 0);
    }
}

#[test]
fn what_was_handed_over_before_a_close_arrives() {
    for case in TIGHT {
        for (seed, total) in [(7, 1), (8, 20_000), (9, case.2)] {
            let (_, far) = Exchange { seed, totals: (total, 0), closes: true, ..tight(case) }.run();
            assert_eq!((far.whole.load(Relaxed), far.finished.load(Relaxed)), (3, 3));
        }
    }
}
