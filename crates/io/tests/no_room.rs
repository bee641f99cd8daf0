//! Machines without room for more: the far end is held back by the stream's flow control, nothing is lost, and others go on.

use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::{Address, Closed, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// The bytes that the machine keeps of a peer before it has no room, and the most of one receive beyond them.
const ROOM: usize = 100_000;
const BEYOND: usize = 2 << 20;
const TOTAL: usize = 48 << 20;
const PERIOD: usize = 251;

const HELD: Peer = Peer(0);
const OTHER: Peer = Peer(1);

/// A machine that keeps bytes of one peer, and counts those of another.
struct Keeper {
    to_open: VecDeque<(Peer, Address)>,
    kept: usize,
    total: usize,
    others: usize,
    to_send: usize,
    closed: Vec<(Peer, Closed)>,
    pattern: Vec<u8>,
}

impl Machine for Keeper {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Received(HELD, bytes) => {
                assert!(self.kept < ROOM, "{} bytes came without room", bytes.len());
                assert!(bytes == &self.pattern[self.total % PERIOD..][..bytes.len()], "other bytes at {}", self.total);
                self.kept += bytes.len();
                self.total += bytes.len();
            }
            Input::Received(_, bytes) => self.others += bytes.len(),
            Input::Closed(peer, why) => self.closed.push((peer, why)),
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if let Some((peer, address)) = self.to_open.pop_front() {
            return Output::Open(peer, address);
        }
        if self.to_send > 0 {
            let count = self.to_send.min(60_000);
            self.to_send -= count;
            out.copy(&vec![7; count]);
            return Output::Send(HELD);
        }
        Output::Idle(None)
    }

    fn has_room(&self, peer: Peer) -> bool {
        peer != HELD || self.kept < ROOM
    }
}

/// Returns bytes that repeat, enough for any receive from any offset within the period.
fn pattern() -> Vec<u8> {
    (0..(4 << 20)).map(|at: usize| (at % PERIOD) as u8).collect()
}

struct Scene {
    endpoint: Endpoint<Keeper, Sockets>,
    held: TcpStream,
    other: Option<TcpStream>,
    wait: Wait,
    sent: usize,
}

impl Scene {
    fn new(wait: Wait, peers: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = Address::Tcp(listener.local_addr().expect("it is bound"));
        let to_open = (0..peers).map(|peer| (Peer(peer), at.clone())).collect();
        let keeper =
            Keeper { to_open, kept: 0, total: 0, others: 0, to_send: 0, closed: Vec::new(), pattern: pattern() };
        let sockets = Sockets::new(SocketSettings::default()).expect("descriptors are left");
        let mut endpoint = Endpoint::new(keeper, sockets, Clock::start());
        let mut streams = Vec::new();
        for _ in 0..peers {
            turn(&mut endpoint, wait);
            let (stream, _) = listener.accept().expect("it connects");
            stream.set_nonblocking(true).expect("it is a socket");
            streams.push(stream);
        }
        let other = (peers > 1).then(|| streams.remove(1));
        Scene { endpoint, held: streams.remove(0), other, wait, sent: 0 }
    }

    /// Writes as much as the stream takes, and lets the endpoint turn meanwhile.
    fn fill(&mut self) {
        let mut full = 0;
        while self.sent < TOTAL && full < 20 {
            full = if self.write() { 0 } else { full + 1 };
            turn(&mut self.endpoint, self.wait);
        }
    }

    /// Writes once. Returns whether the stream took something.
    fn write(&mut self) -> bool {
        let count = (TOTAL - self.sent).min(1 << 20);
        match self.held.write(&self.endpoint.machine().pattern[self.sent % PERIOD..][..count]) {
            Ok(count) => self.sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("{error}"),
        }
        true
    }
}

fn turn(endpoint: &mut Endpoint<Keeper, Sockets>, wait: Wait) {
    let until = endpoint.now() + Duration::from_millis(2);
    endpoint.turn(wait, until, &mut |()| {}).expect("it waits");
}

const WAITS: [Wait; 3] = [Wait::Block, Wait::SpinThenBlock(Duration::from_micros(20)), Wait::Spin];

#[test]
fn a_peer_without_room_is_held_back_and_goes_on_where_it_was() {
    for (wait, peers) in WAITS.into_iter().flat_map(|wait| [(wait, 1), (wait, 2)]) {
        let mut scene = Scene::new(wait, peers);
        scene.fill();
        let (sent, total) = (scene.sent, scene.endpoint.machine().total);
        assert!(sent < TOTAL, "{wait}: the far end is not held back");
        assert!((ROOM..ROOM + BEYOND).contains(&total), "{wait}: {total} bytes came");
        if let Some(other) = &mut scene.other {
            for _ in 0..100 {
                other.write_all(&[1; 50]).expect("it is read");
                turn(&mut scene.endpoint, wait);
            }
            let end = scene.endpoint.now() + Duration::from_secs(10);
            while scene.endpoint.machine().others < 5_000 {
                assert!(scene.endpoint.now() < end, "{wait}: another peer is held back too");
                turn(&mut scene.endpoint, wait);
            }
        }
        assert_eq!(scene.endpoint.machine().total, total, "{wait}");
        let end = scene.endpoint.now() + Duration::from_secs(60);
        while scene.endpoint.machine().total < TOTAL {
            assert!(scene.endpoint.now() < end, "{wait}, {peers}: {} have come", scene.endpoint.machine().total);
            scene.endpoint.machine_mut().kept = 0;
            scene.write();
            turn(&mut scene.endpoint, wait);
        }
    }
}

#[test]
fn bytes_leave_for_a_peer_without_room_for_its_own() {
    for wait in WAITS {
        let mut scene = Scene::new(wait, 1);
        scene.fill();
        const BACK: usize = 16 << 20;
        scene.endpoint.machine_mut().to_send = BACK;
        let (mut came, mut buffer) = (0, vec![0; 1 << 16]);
        let end = scene.endpoint.now() + Duration::from_secs(60);
        while came < BACK {
            assert!(scene.endpoint.now() < end, "{wait}: {came} have come back");
            turn(&mut scene.endpoint, wait);
            match scene.held.read(&mut buffer) {
                Ok(count) => came += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(scene.endpoint.machine().total < ROOM + BEYOND, "{wait}");
    }
}

#[test]
fn the_end_of_a_peer_is_told_behind_its_bytes() {
    for wait in WAITS {
        let mut scene = Scene::new(wait, 2);
        let bytes = &pattern()[..300_000];
        let mut sent = 0;
        while sent < bytes.len() {
            if let Ok(count) = scene.held.write(&bytes[sent..]) {
                sent += count;
            }
            turn(&mut scene.endpoint, wait);
        }
        scene.held.shutdown(std::net::Shutdown::Both).expect("it is open");
        for _ in 0..20 {
            turn(&mut scene.endpoint, wait);
        }
        let end = scene.endpoint.now() + Duration::from_secs(10);
        while scene.endpoint.machine().closed.is_empty() {
            assert!(scene.endpoint.now() < end, "{wait}: the end is not told");
            scene.endpoint.machine_mut().kept = 0;
            turn(&mut scene.endpoint, wait);
        }
        assert_eq!(scene.endpoint.machine().total, bytes.len(), "{wait}");
        assert_eq!(scene.endpoint.machine().closed, [(HELD, Closed::Finished)], "{wait}");
        assert!(scene.other.is_some() && OTHER != HELD);
    }
}
