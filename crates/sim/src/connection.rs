use crate::Transport;
use crate::sender::Sender;
use hodo_machine::{Instant, Outbox, Peer, Slab};
use std::collections::VecDeque;

/// One end of one connection. Stale once the connection has been freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    connection: u32,
    generation: u32,
    /// 0 for the node that opened it, 1 for the node that it was opened to.
    pub(crate) side: u8,
}

impl End {
    pub(crate) const fn far(self) -> End {
        End { side: 1 - self.side, ..self }
    }

    pub(crate) const fn index(self) -> usize {
        self.side as usize
    }
}

/// Whether a node knows of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Not yet.
    Absent,
    There,
    /// No longer.
    Gone,
}

/// Two peers, each of which is the other's far end.
#[derive(Debug)]
pub(crate) struct Connection {
    generation: u32,
    pub(crate) transport: Transport,
    pub(crate) nodes: [u32; 2],
    pub(crate) peers: [Peer; 2],
    pub(crate) presence: [Presence; 2],
    pub(crate) flows: [Flow; 2],
    /// The group that its datagrams go to, instead of a node.
    pub(crate) group: Option<u32>,
    /// The group that it is to one member of: who sent to the group does not know of it before an answer comes.
    pub(crate) branch: Option<u32>,
    /// Whether it was reset: nothing moves any more.
    pub(crate) dead: bool,
    /// Which end is gone without a word: all that is sent to it is lost, and nothing is sent again from there.
    pub(crate) gone: [bool; 2],
    /// When connecting began.
    pub(crate) asked: Instant,
    /// When connecting is given up.
    pub(crate) give_up: Instant,
    /// Datagrams on their way.
    pub(crate) datagrams: u32,
}

impl Connection {
    /// Returns whether this end's machine knows of it and may still be told of it.
    pub(crate) fn is_there(&self, end: End) -> bool {
        self.presence[end.index()] == Presence::There
    }
}

/// Bytes that were sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) length: u32,
    pub(crate) arrived: bool,
    /// Whether the mark behind the last byte is in it.
    pub(crate) last: bool,
    /// How often it was sent again.
    pub(crate) tries: u32,
}

/// The bytes that one end has written and the other has not read.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// In order: bytes that have arrived and were not read, bytes in flight, bytes not sent.
    pub(crate) bytes: ByteQueue,
    pub(crate) ready: usize,
    pub(crate) flying: usize,
    /// The segments in flight, the oldest first; a segment leaves when it and all before it have arrived.
    pub(crate) segments: VecDeque<Segment>,
    /// The number of the oldest.
    pub(crate) first: u32,
    /// When the last of those in flight arrives: none sent later arrives earlier, unless it is sent again.
    pub(crate) last_arrival: Instant,
    /// The congestion control, where there is one.
    pub(crate) sender: Option<Box<Sender>>,
    /// Whether the connection stands, so that bytes may be sent.
    pub(crate) open: bool,
    /// Whether the writer was told to hold back.
    pub(crate) blocked: bool,
    /// Whether bytes were written since the last flush.
    pub(crate) dirty: bool,
    /// Whether it waits for room in its wire's queue.
    pub(crate) waiting: bool,
    /// Whether the reader's inbox says that bytes are ready.
    pub(crate) posted: bool,
    /// Whether the writer has closed, so that a mark follows the last byte.
    pub(crate) closing: bool,
    /// Whether that mark has arrived.
    pub(crate) finished: bool,
    /// The number of the next datagram.
    pub(crate) next_number: u64,
    /// One more than the highest number that was delivered.
    pub(crate) delivered_below: u64,
}

impl Flow {
    pub(crate) const fn unsent(&self) -> usize {
        self.bytes.len() - self.ready - self.flying
    }

    /// Takes bytes that were read, or that nobody will read, off the front.
    pub(crate) fn consume(&mut self, count: usize) {
        self.ready -= count;
        self.bytes.consume(count);
    }

    /// Returns the segment of this number, while it is in flight.
    pub(crate) fn segment(&mut self, number: u32) -> Option<&mut Segment> {
        self.segments.get_mut(number.wrapping_sub(self.first) as usize)
    }

    /// Makes the segments that have arrived, and all before them, ready to be read; returns whether all has been read
    /// once those are.
    pub(crate) fn take_arrived(&mut self) -> bool {
        while self.segments.front().is_some_and(|segment| segment.arrived) {
            let Some(segment) = self.segments.pop_front() else { break };
            self.first = self.first.wrapping_add(1);
            self.flying -= segment.length as usize;
            self.ready += segment.length as usize;
            self.finished |= segment.last;
        }
        self.finished
    }

    /// Forgets the bytes that were not sent.
    pub(crate) fn drop_unsent(&mut self) {
        self.bytes.truncate(self.ready + self.flying);
        self.open = false;
    }

    /// Forgets the bytes that have not arrived.
    pub(crate) fn drop_flying(&mut self) {
        self.bytes.truncate(self.ready);
        self.segments.clear();
        self.flying = 0;
    }

    fn reset(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        let mut segments = std::mem::take(&mut self.segments);
        bytes.clear();
        segments.clear();
        *self = Flow { bytes, segments, ..Flow::default() };
    }

    /// Forgets every byte; nothing more is sent.
    pub(crate) fn stop(&mut self) {
        self.bytes.clear();
        self.segments.clear();
        self.sender = None;
        (self.ready, self.flying) = (0, 0);
        (self.open, self.blocked) = (false, false);
    }
}

/// A queue of bytes in one piece.
#[derive(Debug, Default)]
pub(crate) struct ByteQueue {
    bytes: Vec<u8>,
    start: usize,
}

impl ByteQueue {
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub(crate) fn front(&self, count: usize) -> &[u8] {
        &self.bytes[self.start..self.start + count]
    }

    pub(crate) fn append(&mut self, outbox: &Outbox) {
        // Moving the rest to the front when it is the smaller part costs each byte at most one more copy.
        if self.start > self.bytes.len() / 2 {
            self.bytes.copy_within(self.start.., 0);
            self.bytes.truncate(self.bytes.len() - self.start);
            self.start = 0;
        }
        for piece in outbox.pieces() {
            self.bytes.extend_from_slice(outbox.bytes(piece));
        }
    }

    fn truncate(&mut self, count: usize) {
        self.bytes.truncate(self.start + count);
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start == self.bytes.len() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }
}

/// All connections; a freed one's place and buffers are used again.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    slab: Slab<Connection>,
}

impl Connections {
    /// Opens a connection and returns the opener's end.
    pub(crate) fn open(&mut self, transport: Transport, from: u32, peer: Peer, to: u32) -> End {
        let connection = self.slab.take(|| Connection {
            generation: 0,
            transport,
            nodes: [0; 2],
            peers: [peer; 2],
            presence: [Presence::Gone; 2],
            flows: <[Flow; 2]>::default(),
            group: None,
            branch: None,
            dead: true,
            gone: [false; 2],
            asked: Instant::ZERO,
            give_up: Instant::MAX,
            datagrams: 0,
        });
        let slot = &mut self.slab[connection];
        (slot.transport, slot.nodes) = (transport, [from, to]);
        slot.peers = [peer; 2];
        slot.presence = [Presence::There, Presence::Absent];
        (slot.group, slot.branch, slot.dead, slot.gone) = (None, None, false, [false; 2]);
        (slot.give_up, slot.datagrams) = (Instant::MAX, 0);
        End { connection, generation: slot.generation, side: 0 }
    }

    /// Opens a connection for datagrams to one member of a group, of which neither end knows yet.
    pub(crate) fn branch(&mut self, from: u32, group: u32, to: u32) -> End {
        let end = self.open(Transport::Datagram, from, Peer(0), to);
        if let Some(slot) = self.at(end) {
            slot.branch = Some(group);
            slot.presence = [Presence::Absent; 2];
        }
        end
    }

    pub(crate) fn at(&mut self, end: End) -> Option<&mut Connection> {
        self.slab.at(end.connection).filter(|slot| slot.generation == end.generation)
    }

    pub(crate) fn of(&self, end: End) -> Option<&Connection> {
        self.slab.get(end.connection).filter(|slot| slot.generation == end.generation)
    }

    /// Frees a connection that neither node knows any more and that carries nothing.
    pub(crate) fn free_if_forgotten(&mut self, end: End) {
        let Some(slot) = self.at(end) else { return };
        if slot.datagrams > 0 || slot.presence.contains(&Presence::There) {
            return;
        }
        slot.generation = slot.generation.wrapping_add(1);
        slot.dead = true;
        slot.flows.iter_mut().for_each(Flow::reset);
        self.slab.release(end.connection);
    }

    /// Returns the openers' ends of all connections of this transport that live.
    pub(crate) fn live(&self, transport: Transport) -> Vec<End> {
        let is_live = |slot: &Connection| !slot.dead && slot.transport == transport;
        let numbered = self.slab.iter().filter(|(_, slot)| is_live(slot));
        numbered.map(|(connection, slot)| End { connection, generation: slot.generation, side: 0 }).collect()
    }

    /// Returns the bytes held for streams.
    pub(crate) fn bytes(&self) -> usize {
        self.slab.iter().flat_map(|(_, slot)| &slot.flows).map(|flow| flow.bytes.len()).sum()
    }
}
