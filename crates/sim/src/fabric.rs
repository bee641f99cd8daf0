use crate::connection::{Connections, End, Presence};
use crate::datagram::Datagrams;
use crate::host::{Host, Power};
use crate::schedule::{Happening, Schedule};
use crate::wire::Wire;
use crate::world::{BROADCAST, Death, FIRST_GROUP};
use crate::{Network, Random, Transport};
use hodo_machine::{Address, Closed, Ends, Instant, Outbox, Peer};
use std::collections::{BTreeSet, VecDeque};

/// Separates the random numbers that cut streams into chunks from those of the wires.
const CHUNKS: u64 = u64::MAX;

/// Everything between the machines: wires, connections, inboxes, and the one clock.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) now: Instant,
    pub(crate) schedule: Schedule,
    pub(crate) wires: Vec<Wire>,
    /// The wires from each node to each node: for streams, and for datagrams.
    routes: Vec<Vec<[u32; 2]>>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) connections: Connections,
    pub(crate) datagrams: Datagrams,
    /// Draws where streams are cut into chunks, and when a landing is used.
    pub(crate) random: Random,
    /// The members of each group.
    groups: BTreeSet<(u32, u32)>,
    /// The networks to all nodes but the first, and to the first, until told otherwise.
    networks: [Network; 2],
    /// Numbers the wires: that from node a to node b is number a x stride + b.
    stride: u64,
    /// Nodes whose next notice may be handled at once.
    pub(crate) due: VecDeque<u32>,
    /// How many things have happened.
    pub(crate) steps: u64,
    trace: Option<u64>,
}

/// A notice for a machine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notice {
    Opened(End),
    Closed(End, Closed),
    Datagram(u32),
    Readable(End),
    Drained(End),
}

/// A task for a node, due now.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    /// Take the next notice.
    Work(u32),
    /// Tell its machine that its deadline has passed.
    Elapsed(u32),
    /// Carry out what its machine wants.
    Poll(u32),
}

impl Fabric {
    /// Creates a network without nodes. Packets from node 0 go over the first network, packets to it over the second.
    pub(crate) fn new(out: &Network, back: &Network, stride: u64) -> Self {
        Fabric {
            now: Instant::ZERO,
            schedule: Schedule::default(),
            wires: Vec::new(),
            routes: Vec::new(),
            hosts: Vec::new(),
            connections: Connections::default(),
            datagrams: Datagrams::default(),
            random: Random::for_purpose(out.seed, CHUNKS),
            groups: BTreeSet::new(),
            networks: [out.clone(), back.clone()],
            stride,
            due: VecDeque::new(),
            steps: 0,
            trace: None,
        }
    }

    /// Adds a node, with wires to and from all others and to itself.
    pub(crate) fn add_host(&mut self) -> u32 {
        let node = self.hosts.len() as u32;
        let [out, back] = &self.networks;
        let (sends, receives) = if node == 0 { (out, back) } else { (back, out) };
        let host = Host::new(sends.cost, receives.buffer_bytes);
        self.hosts.push(host);
        self.routes.push(Vec::new());
        for other in 0..=node {
            let wire = self.add_wire(other, node);
            self.routes[other as usize].push([wire; 2]);
            if other < node {
                let wire = self.add_wire(node, other);
                self.routes[node as usize].push([wire; 2]);
            }
        }
        node
    }

    fn add_wire(&mut self, from: u32, to: u32) -> u32 {
        let [out, back] = &self.networks;
        let network = if to == 0 { back } else { out }.clone();
        let round_trip = out.delay + out.jitter + back.delay + back.jitter;
        let number = u64::from(from) * self.stride + u64::from(to);
        let wire = self.wires.len() as u32;
        for cut in &network.cuts {
            self.schedule.at(*cut, Happening::CutWire(wire));
        }
        self.wires.push(Wire::new(network, number, round_trip));
        wire
    }

    /// Sets the network from one node to another, for one transport or for both.
    pub(crate) fn set_network(&mut self, from: u32, to: u32, transport: Option<Transport>, network: &Network) {
        let [streams, datagrams] = self.routes[from as usize][to as usize];
        let wire = match transport {
            None => {
                self.routes[from as usize][to as usize] = [streams; 2];
                streams
            }
            Some(transport) => {
                if streams == datagrams {
                    let apart = self.add_wire(from, to);
                    self.routes[from as usize][to as usize][1] = apart;
                }
                self.wire_between(transport, from, to) as u32
            }
        };
        for cut in &network.cuts {
            self.schedule.at(*cut, Happening::CutWire(wire));
        }
        let number = u64::from(from) * self.stride + u64::from(to);
        self.wires[wire as usize].set_network(network.clone(), number);
        for (from, to) in [(from, to), (to, from)] {
            for transport in [Transport::Stream, Transport::Datagram] {
                let [way, back] = [(from, to), (to, from)].map(|(from, to)| self.wire_between(transport, from, to));
                let round_trip = self.wires[way].longest() + self.wires[back].longest();
                self.wires[way].set_round_trip(round_trip);
            }
        }
    }

    /// Returns when the next thing happens.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        if self.due.is_empty() { self.schedule.next_at() } else { Some(self.now) }
    }

    /// Lets the next thing happen; returns what a node is to do.
    pub(crate) fn advance(&mut self) -> Option<Call> {
        self.steps += 1;
        if let Some(node) = self.due.pop_front() {
            return self.work(node);
        }
        let (at, happening) = self.schedule.pop()?;
        self.now = self.now.max(at);
        match happening {
            Happening::Work(node, epoch) if self.is_current(node, epoch) => return self.work(node),
            Happening::Work(..) => {}
            Happening::Poll(node, epoch) => return self.poll(node, epoch),
            Happening::Timer(node) => return self.timer(node, at),
            Happening::Datagram(key) => self.datagram_arrives(key),
            Happening::Segment(end, number, transmission) => self.segment_arrives(end, number, transmission),
            Happening::Acknowledged(end) => self.acknowledged(end),
            Happening::Timeout(end) => self.timeout(end),
            Happening::Resend(end, number) => self.resend(end, number),
            Happening::Asked(end) => self.asked(end),
            Happening::Answered(end) => self.answered(end),
            Happening::Failed(end, why) => self.failed(end, why),
            Happening::Broken(end) => self.broken(end),
            Happening::Pump(end) => self.pump(end),
            Happening::Drained(end) => self.burst_over(end),
            Happening::Room(wire) => self.room(wire as usize),
            Happening::Cut(end) => self.reset(end, Closed::Reset),
            Happening::CutWire(wire) => self.cut_wire(wire as usize),
        }
        None
    }

    /// Reaches an address for a machine.
    pub(crate) fn open(&mut self, node: u32, peer: Peer, address: &Address) {
        assert!(!peer.is_accepted(), "node {node} opened {peer:?}, a number that is the driver's to give");
        let opens = self.hosts[node as usize].opens;
        let (to, transport, group) = match address {
            Address::Node(to) if *to >= FIRST_GROUP => (Some(node), Transport::Datagram, Some(*to)),
            Address::Node(to) if (*to as usize) < self.hosts.len() => (Some(*to), opens, None),
            _ => (None, opens, None),
        };
        let end = self.connections.open(transport, node, peer, to.unwrap_or(node));
        if let Some(connection) = self.connections.at(end) {
            connection.group = group;
        }
        let before = self.hosts[node as usize].peers.insert(peer.0, end);
        assert!(before.is_none(), "node {node} opened {peer:?} twice");
        match (to, transport) {
            (None, _) => self.reset(end, Closed::Unreachable),
            (Some(_), Transport::Datagram) => self.post(node, Notice::Opened(end)),
            (Some(_), Transport::Stream) => self.connect(end),
        }
    }

    /// Sends what a machine put into the outbox; returns whether the machine is to be told to hold back.
    pub(crate) fn send(&mut self, node: u32, peer: Peer, outbox: &Outbox) -> bool {
        let Some(end) = self.hosts[node as usize].peers.get(&peer.0).copied() else {
            return false;
        };
        match self.connections.of(end).map(|connection| (connection.transport, connection.group)) {
            Some((Transport::Datagram, None)) => self.send_datagram(node, end, outbox),
            Some((Transport::Datagram, Some(group))) => self.send_to_group(node, end, group, outbox),
            Some((Transport::Stream, _)) => self.write(node, end, outbox),
            None => false,
        }
    }

    /// Forgets a peer for a machine, once its bytes are sent.
    pub(crate) fn close(&mut self, node: u32, peer: Peer) {
        let Some(end) = self.hosts[node as usize].remove(peer) else { return };
        let Some(connection) = self.connections.at(end) else { return };
        connection.presence[end.index()] = Presence::Gone;
        if connection.transport == Transport::Stream && !connection.dead && connection.is_there(end.far()) {
            self.finish(end);
        } else {
            self.connections.free_if_forgotten(end);
        }
    }

    /// Leaves the bytes of a stream unread, for want of room at the machine.
    pub(crate) fn leave_unread(&mut self, node: u32, end: End) {
        self.hosts[node as usize].unread.push(end);
    }

    /// Takes the streams that were left unread at a node.
    pub(crate) fn take_unread(&mut self, node: u32) -> Vec<End> {
        std::mem::take(&mut self.hosts[node as usize].unread)
    }

    /// Announces the bytes of a stream again.
    pub(crate) fn announce_again(&mut self, node: u32, end: End) {
        self.post(node, Notice::Readable(end));
    }

    /// Gives the far end of a connection a number at its node.
    pub(crate) fn accept(&mut self, end: End) -> Option<Peer> {
        let connection = self.connections.at(end)?;
        let host = &mut self.hosts[connection.nodes[end.index()] as usize];
        let peer = host.next_accepted();
        host.peers.insert(peer.0, end);
        connection.peers[end.index()] = peer;
        connection.presence[end.index()] = Presence::There;
        Some(peer)
    }

    /// Returns the peer that an end is to its machine, while the machine may be told of it.
    pub(crate) fn peer(&self, end: End) -> Option<Peer> {
        let connection = self.connections.of(end).filter(|connection| connection.is_there(end))?;
        Some(connection.peers[end.index()])
    }

    /// Returns the ends of a connection as the machine at this end sees them.
    pub(crate) fn ends(&self, end: End) -> Option<Ends> {
        let connection = self.connections.of(end)?;
        let [near, far] = [end, end.far()].map(|end| connection.nodes[end.index()]);
        // A member of a group knows which of its addresses a datagram came to; whoever sent to the group, no member.
        let came_to = connection.branch.filter(|_| end.side == 1);
        Some(Ends::nodes(came_to.unwrap_or(near), connection.group.unwrap_or(far)))
    }

    /// Forgets a peer that its machine is about to be told is gone; returns its number unless the machine closed it.
    pub(crate) fn forget(&mut self, end: End) -> Option<Peer> {
        let peer = self.peer(end)?;
        let connection = self.connections.at(end)?;
        connection.presence[end.index()] = Presence::Gone;
        let node = connection.nodes[end.index()];
        self.hosts[node as usize].remove(peer);
        self.connections.free_if_forgotten(end);
        Some(peer)
    }

    /// Ends the machine at a node, with all that was its own.
    pub(crate) fn end_host(&mut self, node: u32, death: Death) {
        let (peers, inbox) = self.hosts[node as usize].clear();
        self.hosts[node as usize].power = if death == Death::Silent { Power::Off } else { Power::Idle };
        self.due.retain(|due| *due != node);
        for notice in inbox {
            if let Notice::Datagram(key) = notice {
                self.drop_datagram(key);
            }
        }
        peers.into_values().for_each(|end| self.abandon(end, death));
    }

    /// Returns whether a node is a member of a group; every node is one of the broadcast's.
    pub(crate) fn is_member(&self, node: u32, group: u32) -> bool {
        group == BROADCAST || self.groups.contains(&(group, node))
    }

    pub(crate) fn join(&mut self, node: u32, group: u32) {
        self.groups.insert((group, node));
    }

    /// Returns the number of the wire that carries what this end sends.
    pub(crate) fn wire_of(&self, end: End) -> Option<usize> {
        let connection = self.connections.of(end)?;
        let [from, to] = connection.nodes;
        let (from, to) = if end.side == 0 { (from, to) } else { (to, from) };
        Some(self.wire_between(connection.transport, from, to))
    }

    pub(crate) fn wire_between(&self, transport: Transport, from: u32, to: u32) -> usize {
        let [streams, datagrams] = self.routes[from as usize][to as usize];
        (if transport == Transport::Stream { streams } else { datagrams }) as usize
    }

    /// Returns the wires from one node to another: one for both transports, or one for each.
    pub(crate) fn wires_between(&self, from: u32, to: u32) -> impl Iterator<Item = usize> + use<> {
        let [streams, datagrams] = self.routes[from as usize][to as usize];
        [Some(streams), Some(datagrams).filter(|_| datagrams != streams)]
            .into_iter()
            .flatten()
            .map(|wire| wire as usize)
    }

    /// Bytes of payload that the network holds.
    pub(crate) fn outstanding_bytes(&self) -> usize {
        self.datagrams.bytes() + self.connections.bytes()
    }

    /// Starts to fold everything that machines are told into a hash.
    pub(crate) fn set_tracing(&mut self) {
        self.trace = Some(0xCBF2_9CE4_8422_2325);
    }

    /// Returns the hash so far; 0 where nothing is traced.
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

/// Folds bytes into an FNV-1a hash of 64 bits.
fn fold(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}
