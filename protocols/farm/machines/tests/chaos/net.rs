//! Streams between hosts: bytes take their time, are cut anywhere, and connections end at any moment.

use crate::programs::{Program, Told};
use hodo_machine::{Address, Closed, Input, Instant, Outbox, Output, Peer, Random};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

/// Bytes on the way after which a sender is told to hold back, and under which it may go on.
const FULL: usize = 20_000;
const EMPTY: usize = 5_000;
const OUTPUTS_MAX: usize = 100_000;

#[derive(Default)]
pub struct Host {
    pub program: Option<Program>,
    /// Which program it is that runs here, counted.
    pub generation: u32,
    pub stopped: bool,
    /// What would have happened while it was stopped.
    held: Vec<Happening>,
    /// Its connections, each with the side of it that is here.
    peers: BTreeMap<u32, (usize, usize)>,
    free: Vec<u32>,
    accepted: u32,
    armed: Option<Instant>,
    polling: bool,
}

struct Connection {
    hosts: [u32; 2],
    peers: [Option<Peer>; 2],
    /// What each side will receive; `None` ends it.
    pipes: [Pipe; 2],
    opened: bool,
    dead: bool,
    /// Whether it carries datagrams, any of which may be lost, and of whose end nobody is told.
    datagrams: bool,
}

#[derive(Default)]
struct Pipe {
    packets: VecDeque<Option<Vec<u8>>>,
    bytes: usize,
    last: Instant,
    /// Whether who sends into it has been told to hold back.
    blocked: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum Happening {
    Datagram {
        connection: usize,
        side: usize,
        parcel: usize,
    },
    Arrives {
        connection: usize,
        side: usize,
    },
    Asked {
        connection: usize,
    },
    Opened {
        connection: usize,
    },
    Gone {
        connection: usize,
        side: usize,
        why: Closed,
    },
    Room {
        connection: usize,
        side: usize,
    },
    Timer {
        host: u32,
        generation: u32,
    },
    Poll {
        host: u32,
    },
    /// Something of the application's: the world knows what.
    Own {
        host: u32,
        generation: u32,
        what: u64,
    },
}

pub struct Net {
    pub now: Instant,
    pub random: Random,
    pub hosts: Vec<Host>,
    pub steps: u64,
    /// A host that is reached over datagrams.
    pub datagrams_to: Option<u32>,
    parcels: Vec<Vec<u8>>,
    connections: Vec<Connection>,
    schedule: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    happenings: Vec<Option<Happening>>,
    spare: Vec<usize>,
    order: u64,
    out: Outbox,
}

impl Net {
    pub fn new(seed: u64) -> Self {
        Net {
            now: Instant::ZERO,
            random: Random::new(seed),
            hosts: Vec::new(),
            steps: 0,
            datagrams_to: None,
            parcels: Vec::new(),
            connections: Vec::new(),
            schedule: BinaryHeap::new(),
            happenings: Vec::new(),
            spare: Vec::new(),
            order: 0,
            out: Outbox::new(),
        }
    }

    pub fn micros(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.random.below(most + 1))
    }

    pub fn at(&mut self, at: Instant, happening: Happening) {
        let index = self.spare.pop().unwrap_or_else(|| {
            self.happenings.push(None);
            self.happenings.len() - 1
        });
        self.happenings[index] = Some(happening);
        self.order += 1;
        self.schedule.push(Reverse((at, self.order, index)));
    }

    /// The next thing that happens, by then.
    pub fn next(&mut self, until: Instant) -> Option<Happening> {
        let Reverse((at, _, index)) = *self.schedule.peek()?;
        if at > until {
            return None;
        }
        self.schedule.pop();
        self.now = self.now.max(at);
        self.steps += 1;
        self.spare.push(index);
        self.happenings[index].take()
    }

    /// Starts a program.
    pub fn start(&mut self, host: u32, program: Program) {
        let place = &mut self.hosts[host as usize];
        assert!(place.program.is_none() && place.peers.is_empty());
        place.program = Some(program);
        place.generation += 1;
        (place.armed, place.stopped) = (None, false);
        (place.free, place.accepted) = (Vec::new(), 0);
        place.held.clear();
        self.poll_later(host);
    }

    /// Ends a program. Its connections are ended by its system, or never heard of again where that is gone too.
    pub fn kill(&mut self, host: u32, silently: bool) {
        let place = &mut self.hosts[host as usize];
        place.program = None;
        place.held.clear();
        for (connection, side) in std::mem::take(&mut place.peers).into_values() {
            self.connections[connection].peers[side] = None;
            if !silently && !self.connections[connection].datagrams {
                self.end_far(connection, side, Closed::Reset);
            }
        }
    }

    fn end_far(&mut self, connection: usize, side: usize, why: Closed) {
        if self.connections[connection].peers[1 - side].is_some() {
            let at = self.now + self.micros(2000);
            self.at(at, Happening::Gone { connection, side: 1 - side, why });
        }
        self.connections[connection].dead = true;
    }

    /// Goes on with what it has missed.
    pub fn resume(&mut self, host: u32) {
        let place = &mut self.hosts[host as usize];
        place.stopped = false;
        for happening in std::mem::take(&mut place.held) {
            self.at(self.now, happening);
        }
        self.poll_later(host);
    }

    pub fn poll_later(&mut self, host: u32) {
        if !std::mem::replace(&mut self.hosts[host as usize].polling, true) {
            let late = if self.random.chance(0.2) { self.micros(300) } else { Duration::ZERO };
            self.at(self.now + late, Happening::Poll { host });
        }
    }

    /// Cuts a random connection, anywhere in its bytes.
    pub fn reset_one(&mut self) {
        let alive = |connection: &Connection| {
            !connection.dead && !connection.datagrams && connection.peers.iter().all(Option::is_some)
        };
        let candidates: Vec<usize> =
            (0..self.connections.len()).filter(|index| alive(&self.connections[*index])).collect();
        let Some(connection) = candidates.get(self.random.below(candidates.len() as u64) as usize).copied() else {
            return;
        };
        self.connections[connection].dead = true;
        for side in [0, 1] {
            if let Some(Some(mut packet)) = self.connections[connection].pipes[side].packets.pop_front() {
                packet.truncate(self.random.below(packet.len() as u64 + 1) as usize);
                if !self.hosts[self.connections[connection].hosts[side] as usize].stopped {
                    self.deliver(connection, side, &packet);
                }
            }
            self.connections[connection].pipes[side].packets.clear();
            let at = self.now + self.micros(3000);
            self.at(at, Happening::Gone { connection, side, why: Closed::Reset });
        }
    }

    /// The host that something happens at.
    fn place(&self, happening: &Happening) -> u32 {
        match *happening {
            Happening::Arrives { connection, side }
            | Happening::Gone { connection, side, .. }
            | Happening::Datagram { connection, side, .. }
            | Happening::Room { connection, side } => self.connections[connection].hosts[side],
            Happening::Asked { connection } => self.connections[connection].hosts[1],
            Happening::Opened { connection } => self.connections[connection].hosts[0],
            Happening::Timer { host, .. } | Happening::Poll { host } | Happening::Own { host, .. } => host,
        }
    }

    /// Lets something happen, unless its host is stopped. Answers an application's own business.
    pub fn happen(&mut self, happening: Happening) -> Option<(u32, u64)> {
        let host = self.place(&happening);
        if self.hosts[host as usize].stopped {
            if let Happening::Poll { .. } = happening {
                self.hosts[host as usize].polling = false;
            }
            self.hosts[host as usize].held.push(happening);
            return None;
        }
        match happening {
            Happening::Arrives { connection, side } => self.arrives(connection, side),
            Happening::Asked { connection } => self.asked(connection),
            Happening::Opened { connection } => {
                if let Some(peer) = self.connections[connection].peers[0] {
                    self.connections[connection].opened = true;
                    let far = self.connections[connection].hosts[1];
                    self.tell(host, &Input::Opened(peer, &Address::Node(far)));
                }
            }
            Happening::Gone { connection, side, why } => self.gone(connection, side, why),
            Happening::Datagram { connection, side, parcel } => self.datagram(connection, side, parcel),
            Happening::Room { connection, side } => {
                let pipe = &mut self.connections[connection].pipes[1 - side];
                if std::mem::take(&mut pipe.blocked)
                    && let Some(peer) = self.connections[connection].peers[side]
                {
                    self.tell(host, &Input::Drained(peer));
                }
            }
            Happening::Timer { generation, .. } => {
                let place = &mut self.hosts[host as usize];
                if place.generation == generation && place.armed.is_some_and(|armed| armed <= self.now) {
                    place.armed = None;
                    self.tell(host, &Input::Elapsed);
                }
            }
            Happening::Poll { .. } => self.hosts[host as usize].polling = false,
            Happening::Own { generation, what, .. } => {
                let place = &self.hosts[host as usize];
                return (place.generation == generation && place.program.is_some()).then_some((host, what));
            }
        }
        None
    }

    fn tell(&mut self, host: u32, input: &Input<'_, ()>) {
        if let Some(program) = &mut self.hosts[host as usize].program {
            program.tell(self.now, input);
            self.poll_later(host);
        }
    }

    fn asked(&mut self, connection: usize) {
        let [from, host] = self.connections[connection].hosts;
        if self.connections[connection].peers[0].is_none() {
            return;
        }
        let place = &self.hosts[host as usize];
        let is_server = matches!(&place.program, Some(program) if program.listens());
        if !is_server {
            let at = self.now + self.micros(1000);
            return self.at(at, Happening::Gone { connection, side: 0, why: Closed::Refused });
        }
        let peer = self.accept(connection, host);
        let at = self.now + self.micros(1000);
        self.at(at, Happening::Opened { connection });
        // Nothing is received over a connection before it is there.
        self.connections[connection].pipes[0].last = at;
        self.tell(host, &Input::Opened(peer, &Address::Node(from)));
    }

    fn accept(&mut self, connection: usize, host: u32) -> Peer {
        let place = &mut self.hosts[host as usize];
        let number = place.free.pop().unwrap_or_else(|| {
            place.accepted += 1;
            Peer::FIRST_ACCEPTED + place.accepted - 1
        });
        place.peers.insert(number, (connection, 1));
        self.connections[connection].peers[1] = Some(Peer(number));
        Peer(number)
    }

    /// One that is lost, or comes once or twice, whenever it likes.
    fn send_datagram(&mut self, connection: usize, side: usize, bytes: &[u8]) {
        assert!(bytes.len() <= 1500);
        for _ in 0..1 + u8::from(self.random.chance(0.05)) {
            if !self.random.chance(0.1) {
                self.parcels.push(bytes.to_vec());
                let at = self.now + self.micros(1000);
                let parcel = self.parcels.len() - 1;
                self.at(at, Happening::Datagram { connection, side, parcel });
            }
        }
    }

    /// The first one of a peer makes it known.
    fn datagram(&mut self, connection: usize, side: usize, parcel: usize) {
        let [from, host] = self.connections[connection].hosts;
        let bytes = std::mem::take(&mut self.parcels[parcel]);
        let peer = match self.connections[connection].peers[side] {
            Some(peer) => peer,
            None if side == 1 && self.hosts[host as usize].program.is_some() => {
                let peer = self.accept(connection, host);
                self.tell(host, &Input::Opened(peer, &Address::Node(from)));
                peer
            }
            None => return,
        };
        self.tell(self.connections[connection].hosts[side], &Input::Received(peer, &bytes));
    }

    fn arrives(&mut self, connection: usize, side: usize) {
        let far = 1 - side;
        let Some(packet) = self.connections[connection].pipes[side].packets.pop_front() else { return };
        match packet {
            None => self.gone(connection, side, Closed::Finished),
            Some(packet) => {
                let pipe = &mut self.connections[connection].pipes[side];
                pipe.bytes -= packet.len();
                if pipe.blocked && pipe.bytes < EMPTY {
                    self.at(self.now, Happening::Room { connection, side: far });
                }
                self.deliver(connection, side, &packet);
            }
        }
    }

    /// Bytes come in pieces, and some straight into the place that the machine offers.
    fn deliver(&mut self, connection: usize, side: usize, mut bytes: &[u8]) {
        let host = self.connections[connection].hosts[side];
        while !bytes.is_empty() {
            let Some(peer) = self.connections[connection].peers[side] else { return };
            let Some(program) = &mut self.hosts[host as usize].program else { return };
            let mut count = bytes.len();
            if self.random.chance(0.3) {
                count = 1 + self.random.below(count as u64) as usize;
            }
            if let Some(place) = program.landing(peer).filter(|place| !place.is_empty())
                && self.random.chance(0.5)
            {
                let count = count.min(place.len());
                place[..count].copy_from_slice(&bytes[..count]);
                program.tell(self.now, &Input::Landed(peer, count));
                bytes = &bytes[count..];
            } else {
                program.tell(self.now, &Input::Received(peer, &bytes[..count]));
                bytes = &bytes[count..];
            }
        }
        self.poll_later(host);
    }

    fn gone(&mut self, connection: usize, side: usize, why: Closed) {
        let host = self.connections[connection].hosts[side];
        if why == Closed::TimedOut && self.connections[connection].opened {
            return;
        }
        let Some(peer) = self.connections[connection].peers[side].take() else { return };
        self.forget(host, peer);
        if why == Closed::Finished {
            // What it may still have to say has nobody to hear it.
            self.connections[connection].dead = true;
        }
        self.tell(host, &Input::Closed(peer, why));
    }

    fn forget(&mut self, host: u32, peer: Peer) -> Option<(usize, usize)> {
        let place = &mut self.hosts[host as usize];
        if peer.is_accepted() {
            place.free.push(peer.0);
        }
        place.peers.remove(&peer.0)
    }

    /// Has a program do what it wants until it is idle. What it tells is given to `told`.
    pub fn carry_out(&mut self, host: u32, told: &mut Vec<Told>) {
        if self.hosts[host as usize].stopped {
            return;
        }
        for _ in 0..OUTPUTS_MAX {
            let Some(program) = &mut self.hosts[host as usize].program else { return };
            match program.poll(self.now, &mut self.out) {
                Output::Send(peer) => {
                    let pieces = self.out.pieces().iter();
                    let bytes: Vec<u8> = pieces.flat_map(|piece| self.out.bytes(piece).to_vec()).collect();
                    self.out.clear();
                    self.send(host, peer, bytes);
                }
                Output::Event(event) => {
                    told.push(event);
                    return self.poll_later(host);
                }
                Output::Open(peer, address) => {
                    let Address::Node(to) = address else { panic!("{address}") };
                    self.open(host, peer, to);
                }
                Output::Close(peer) => {
                    let (connection, side) = self.forget(host, peer).expect("only who is there is closed");
                    self.connections[connection].peers[side] = None;
                    if self.connections[connection].datagrams {
                        continue;
                    }
                    let late = self.micros(500);
                    self.push(connection, 1 - side, None, late);
                }
                Output::Idle(deadline) => return self.arm(host, deadline),
            }
        }
        panic!("host {host} does not come to rest");
    }

    fn arm(&mut self, host: u32, deadline: Option<Instant>) {
        let place = &mut self.hosts[host as usize];
        let Some(deadline) = deadline.filter(|deadline| *deadline < Instant::MAX) else { return };
        if place.armed.is_none_or(|armed| deadline < armed) {
            // One that stays in the past must not stop time.
            let at = deadline.max(self.now + Duration::from_nanos(1));
            place.armed = Some(at);
            let generation = place.generation;
            self.at(at, Happening::Timer { host, generation });
        }
    }

    fn open(&mut self, host: u32, peer: Peer, to: u32) {
        let connection = self.connections.len();
        self.connections.push(Connection {
            hosts: [host, to],
            peers: [Some(peer), None],
            pipes: [Pipe::default(), Pipe::default()],
            opened: false,
            dead: false,
            datagrams: self.datagrams_to == Some(to),
        });
        let before = self.hosts[host as usize].peers.insert(peer.0, (connection, 0));
        assert_eq!(before, None, "host {host} opens {peer:?} twice");
        if self.datagrams_to == Some(to) {
            return self.at(self.now, Happening::Opened { connection });
        }
        let at = self.now + self.micros(1000);
        self.at(at, Happening::Asked { connection });
        let at = self.now + Duration::from_secs(1);
        self.at(at, Happening::Gone { connection, side: 0, why: Closed::TimedOut });
    }

    pub fn send(&mut self, host: u32, peer: Peer, bytes: Vec<u8>) {
        let found = self.hosts[host as usize].peers.get(&peer.0).copied();
        let (connection, side) = found.unwrap_or_else(|| panic!("host {host} sends to {peer:?}, which is gone"));
        if self.connections[connection].datagrams {
            return self.send_datagram(connection, 1 - side, &bytes);
        }
        let late = if self.random.chance(0.02) { self.micros(20_000) } else { self.micros(200) };
        self.push(connection, 1 - side, Some(bytes), late);
        let pipe = &mut self.connections[connection].pipes[1 - side];
        if pipe.bytes > FULL && !pipe.blocked {
            pipe.blocked = true;
            self.tell(host, &Input::Blocked(peer));
        }
    }

    fn push(&mut self, connection: usize, side: usize, packet: Option<Vec<u8>>, late: Duration) {
        if self.connections[connection].dead {
            return;
        }
        let pipe = &mut self.connections[connection].pipes[side];
        pipe.bytes += packet.as_ref().map_or(0, Vec::len);
        pipe.packets.push_back(packet);
        pipe.last = pipe.last.max(self.now + late);
        let at = pipe.last;
        self.at(at, Happening::Arrives { connection, side });
    }

    /// Whether a peer is there.
    pub fn has_peer(&self, host: u32, peer: Peer) -> bool {
        self.hosts[host as usize].peers.contains_key(&peer.0)
    }

    /// One more host.
    pub fn place_for_one(&mut self) -> u32 {
        self.hosts.push(Host::default());
        self.hosts.len() as u32 - 1
    }
}
