use crate::connection::{Connections, End, Presence};
use crate::lane::Lane;
use crate::parcel::Parcels;
use crate::schedule::{Happening, Schedule};
use crate::{Network, Random, Transport};
use hodo_machine::{Address, Closed, Instant, Outbox, Peer};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Separates the random numbers that cut streams into chunks from those of the lanes.
const CHUNKS: u64 = u64::MAX;

/// Everything between the machines: wires, connections, inboxes, and the one clock.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) now: Instant,
    pub(crate) schedule: Schedule,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) desks: Vec<Desk>,
    pub(crate) connections: Connections,
    pub(crate) parcels: Parcels,
    /// Draws where streams are cut into chunks, and when a landing is used.
    pub(crate) random: Random,
    /// Nodes whose next letter may be handled at once.
    due: VecDeque<u32>,
    /// How many things have happened.
    pub(crate) steps: u64,
    trace: Option<u64>,
}

/// A node's place in the fabric: what waits for its machine, and how long its processor is busy.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) peers: BTreeMap<u32, End>,
    /// What the connections are that the machine here opens.
    pub(crate) opens: Transport,
    pub(crate) listening: bool,
    /// Until when the processor is busy with what has been handled and sent.
    pub(crate) busy: Instant,
    /// The writing ends whose bytes were not offered to the wire yet.
    pub(crate) dirty: Vec<End>,
    /// Datagrams sent since the machine was last idle.
    pub(crate) burst: u32,
    /// Bytes of datagrams in the inbox.
    pub(crate) inbox_bytes: u64,
    pub(crate) buffer_bytes: u64,
    cost: Duration,
    inbox: VecDeque<Letter>,
    working: bool,
    accepted: u32,
    deadline: Option<Instant>,
    /// When the schedule will next look at the deadline.
    armed: Option<Instant>,
    /// No deadline is told of again before this, so that one that stays in the past cannot stop time.
    elapsed_before: Instant,
}

/// What a machine will be told.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Letter {
    Opened(End),
    Closed(End, Closed),
    Parcel(u32),
    Readable(End),
    Drained(End),
}

/// What a node is to do now.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    /// Take the next letter.
    Work(u32),
    /// Its machine's deadline has come.
    Elapsed(u32),
}

impl Fabric {
    /// Node 0 sends by `out` and is sent to by `back`; all others are servers, among which `out` counts.
    pub(crate) fn new(transport: Transport, out: &Network, back: &Network, nodes: u32) -> Self {
        let round_trip = out.delay + out.jitter + back.delay + back.jitter;
        let lanes = (0..nodes * nodes)
            .map(|lane| {
                let network = if lane % nodes == 0 { back } else { out };
                Lane::new(network.clone(), u64::from(lane), round_trip)
            })
            .collect();
        let desk = |node| {
            let (sends, receives) = if node == 0 { (out, back) } else { (back, out) };
            Desk::new(transport, sends.cost, receives.buffer_bytes, node > 0)
        };
        let mut schedule = Schedule::default();
        for cut in out.cuts.iter().chain(&back.cuts) {
            schedule.at(*cut, Happening::CutAll);
        }
        Fabric {
            now: Instant::ZERO,
            schedule,
            lanes,
            desks: (0..nodes).map(desk).collect(),
            connections: Connections::default(),
            parcels: Parcels::default(),
            random: Random::for_purpose(out.seed, CHUNKS),
            due: VecDeque::new(),
            steps: 0,
            trace: None,
        }
    }

    /// When the next thing happens.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        if self.due.is_empty() { self.schedule.next_at() } else { Some(self.now) }
    }

    /// Lets the next thing happen; answers what it means for a node.
    pub(crate) fn advance(&mut self) -> Option<Call> {
        self.steps += 1;
        if let Some(node) = self.due.pop_front() {
            return Some(Call::Work(node));
        }
        let (at, happening) = self.schedule.pop()?;
        self.now = self.now.max(at);
        match happening {
            Happening::Work(node) => return Some(Call::Work(node)),
            Happening::Timer(node) => return self.timer(node, at),
            Happening::Parcel(key) => self.parcel_arrives(key),
            Happening::Segment(end, count) => self.segment_arrives(end, count as usize),
            Happening::Asked(end) => self.asked(end),
            Happening::Answered(end) => self.answered(end),
            Happening::Finish(end) => self.finish_arrives(end),
            Happening::Failed(end, why) => self.failed(end, why),
            Happening::Pump(end) => self.pump(end),
            Happening::Drained(end) => self.burst_over(end),
            Happening::Room(lane) => self.room(lane as usize),
            Happening::Cut(end) => self.kill(end, Closed::Reset),
            Happening::CutAll => self.cut_all(),
        }
        None
    }

    /// Reaches an address for a machine.
    pub(crate) fn open(&mut self, node: u32, peer: Peer, address: &Address) {
        assert!(!peer.is_accepted(), "node {node} opened {peer:?}, a number that is the driver's to give");
        let known = match address {
            Address::Node(to) if (*to as usize) < self.desks.len() => Some(*to),
            _ => None,
        };
        let transport = self.desks[node as usize].opens;
        let end = self.connections.open(transport, node, peer, known.unwrap_or(node));
        let before = self.desks[node as usize].peers.insert(peer.0, end);
        assert!(before.is_none(), "node {node} opened {peer:?} twice");
        match (known, transport) {
            (None, _) => self.kill(end, Closed::Unreachable),
            (Some(_), Transport::Datagram) => self.post(node, Letter::Opened(end)),
            (Some(_), Transport::Stream) => self.connect(end),
        }
    }

    /// Sends what a machine put into the outbox; answers whether the machine is to be told to hold back.
    pub(crate) fn send(&mut self, node: u32, peer: Peer, outbox: &Outbox) -> bool {
        let Some(end) = self.desks[node as usize].peers.get(&peer.0).copied() else {
            return false;
        };
        match self.connections.of(end).map(|connection| connection.transport) {
            Some(Transport::Datagram) => self.send_datagram(node, end, outbox),
            Some(Transport::Stream) => self.write(node, end, outbox),
            None => false,
        }
    }

    /// Forgets a peer for a machine, once its bytes are sent.
    pub(crate) fn close(&mut self, node: u32, peer: Peer) {
        let Some(end) = self.desks[node as usize].peers.remove(&peer.0) else { return };
        let Some(connection) = self.connections.at(end) else { return };
        connection.presence[end.index()] = Presence::Gone;
        if connection.transport == Transport::Stream && !connection.dead && connection.is_there(end.far()) {
            self.finish(end);
        } else {
            self.connections.free_if_forgotten(end);
        }
    }

    /// Gives the far end of a connection a number at its node.
    pub(crate) fn accept(&mut self, end: End) -> Option<Peer> {
        let connection = self.connections.at(end)?;
        let desk = &mut self.desks[connection.nodes[end.index()] as usize];
        let peer = Peer(Peer::FIRST_ACCEPTED + desk.accepted);
        desk.accepted += 1;
        desk.peers.insert(peer.0, end);
        connection.peers[end.index()] = peer;
        connection.presence[end.index()] = Presence::There;
        Some(peer)
    }

    /// The peer that an end is to its machine, while the machine may be told of it; and where that peer is.
    pub(crate) fn peer(&self, end: End) -> Option<(Peer, Address)> {
        let connection = self.connections.of(end).filter(|connection| connection.is_there(end))?;
        Some((connection.peers[end.index()], Address::Node(connection.nodes[end.far().index()])))
    }

    /// Forgets a peer that its machine is about to be told is gone; answers its number unless the machine closed it.
    pub(crate) fn forget(&mut self, end: End) -> Option<Peer> {
        let (peer, _) = self.peer(end)?;
        let connection = self.connections.at(end)?;
        connection.presence[end.index()] = Presence::Gone;
        let node = connection.nodes[end.index()];
        self.desks[node as usize].peers.remove(&peer.0);
        self.connections.free_if_forgotten(end);
        Some(peer)
    }

    /// The number of the lane that carries what this end sends.
    pub(crate) fn lane_of(&self, end: End) -> Option<usize> {
        let [from, to] = self.connections.of(end).map(|connection| connection.nodes)?;
        let (from, to) = if end.side == 0 { (from, to) } else { (to, from) };
        Some(self.lane_between(from, to))
    }

    pub(crate) fn lane_between(&self, from: u32, to: u32) -> usize {
        from as usize * self.desks.len() + to as usize
    }

    /// Puts a letter into a node's inbox.
    pub(crate) fn post(&mut self, node: u32, letter: Letter) {
        let desk = &mut self.desks[node as usize];
        desk.inbox.push_back(letter);
        if !desk.working {
            self.start_work(node);
        }
    }

    /// Takes the letter that a [`Call::Work`] is about.
    pub(crate) fn take_letter(&mut self, node: u32) -> Option<Letter> {
        self.desks[node as usize].inbox.pop_front()
    }

    /// Says that the letter has been handled, and all that came of it was done.
    pub(crate) fn letter_done(&mut self, node: u32) {
        let desk = &mut self.desks[node as usize];
        desk.working = false;
        if !desk.inbox.is_empty() {
            self.start_work(node);
        }
    }

    fn start_work(&mut self, node: u32) {
        let desk = &mut self.desks[node as usize];
        let costs = matches!(desk.inbox.front(), Some(Letter::Parcel(_) | Letter::Readable(_)));
        desk.busy = desk.busy.max(self.now) + if costs { desk.cost } else { Duration::ZERO };
        desk.working = true;
        if desk.busy <= self.now {
            self.due.push_back(node);
        } else {
            self.schedule.at(desk.busy, Happening::Work(node));
        }
    }

    /// Charges a node's processor for a message that it sends; answers when it is done.
    pub(crate) fn charge(&mut self, node: u32) -> Instant {
        let free_at = self.free_at(node);
        let desk = &mut self.desks[node as usize];
        desk.busy = free_at + desk.cost;
        desk.busy
    }

    /// When a node's processor is done with what it has been given.
    pub(crate) fn free_at(&self, node: u32) -> Instant {
        self.desks[node as usize].busy.max(self.now)
    }

    /// Notes when a machine wants to be told that time has passed.
    pub(crate) fn set_deadline(&mut self, node: u32, deadline: Option<Instant>) {
        let desk = &mut self.desks[node as usize];
        desk.deadline = deadline.filter(|deadline| *deadline < Instant::MAX);
        if let Some(deadline) = desk.deadline {
            let at = deadline.max(desk.elapsed_before);
            if desk.armed.is_none_or(|armed| at < armed) {
                desk.armed = Some(at);
                self.schedule.at(at, Happening::Timer(node));
            }
        }
    }

    fn timer(&mut self, node: u32, at: Instant) -> Option<Call> {
        let desk = &mut self.desks[node as usize];
        if desk.armed != Some(at) {
            return None;
        }
        desk.armed = None;
        let deadline = desk.deadline?;
        let earliest = deadline.max(desk.busy);
        if earliest > self.now {
            desk.armed = Some(earliest);
            self.schedule.at(earliest, Happening::Timer(node));
            return None;
        }
        desk.deadline = None;
        desk.elapsed_before = self.now + Duration::from_nanos(1);
        Some(Call::Elapsed(node))
    }

    /// Bytes of payload that the network holds.
    pub(crate) fn outstanding_bytes(&self) -> usize {
        self.parcels.bytes() + self.connections.bytes()
    }

    /// Starts to fold everything that machines are told into a hash.
    pub(crate) fn set_tracing(&mut self) {
        self.trace = Some(0xCBF2_9CE4_8422_2325);
    }

    /// The hash so far; 0 where nothing is traced.
    pub(crate) fn trace(&self) -> u64 {
        self.trace.unwrap_or(0)
    }

    /// Folds bytes that the machine at this end reads into the trace.
    pub(crate) fn note_read(&mut self, node: u32, peer: Peer, end: End, count: usize) {
        if self.trace.is_some() {
            let bytes = self.front(end, count).to_vec();
            self.note(node, "received", peer, &bytes);
        }
    }

    /// Folds one input into the trace.
    pub(crate) fn note(&mut self, node: u32, what: &'static str, peer: Peer, bytes: &[u8]) {
        let Some(trace) = &mut self.trace else { return };
        *trace = fold(*trace, &self.now.as_nanos().to_le_bytes());
        *trace = fold(*trace, &node.to_le_bytes());
        *trace = fold(*trace, what.as_bytes());
        *trace = fold(*trace, &peer.0.to_le_bytes());
        *trace = fold(*trace, bytes);
    }
}

/// The FNV-1a hash, 64 bits.
fn fold(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

impl Desk {
    fn new(opens: Transport, cost: Duration, buffer_bytes: u64, listening: bool) -> Self {
        Desk {
            peers: BTreeMap::new(),
            opens,
            listening,
            busy: Instant::ZERO,
            dirty: Vec::new(),
            burst: 0,
            inbox_bytes: 0,
            buffer_bytes,
            cost,
            inbox: VecDeque::new(),
            working: false,
            accepted: 0,
            deadline: None,
            armed: None,
            elapsed_before: Instant::ZERO,
        }
    }
}
