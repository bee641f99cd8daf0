use super::packets::Packets;
use super::stages::mark_answered;
use super::statistics::ClientCounters;
use crate::wire::chunk;
use crate::wire::hub::{Code, REPLY_HEADER, Reply};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use hodo_machine::{Address, Instant, Outbox, Peer};

/// Bytes of replies after which they are handed to the driver.
const BURST: usize = 128 << 10;

/// The answers owed to one client, in the order in which it asked.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) peer: Peer,
    pub(super) address: Address,
    pub(super) came: Instant,
    /// Chunks that wait, in order, until a board has room.
    pub(super) backlog: VecDeque<Box<[u8]>>,
    /// Packets in them; a chunk without any counts as one.
    pub(super) backlog_packets: usize,
    /// Where the first of them waits for room.
    pub(super) waits_for: Option<Full>,
    /// When the last byte of it came.
    pub(super) heard: Instant,
    entries: VecDeque<Entry>,
    chunks: VecDeque<Owed>,
    /// The number of the first of them; they are counted up, going round.
    first: u32,
    /// Lanes of the client: each with its board.
    pub(super) lanes: Vec<(u32, u32)>,
    /// The board that it asked for last: mostly the one that it asks for next.
    pub(super) board: u32,
    /// Whether the driver holds too much for it.
    pub(super) blocked: bool,
    /// Whether it is in the queue of those that can be answered.
    pub(super) ready: bool,
    pub(super) counters: ClientCounters,
}

/// A queue without room for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The queue of this board.
    Board(u32),
    /// The packets of all boards together.
    Hub,
}

/// The answer to one packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Entry {
    /// The answer of a board, or why there is none.
    Packet(u32),
    /// It was refused at once.
    Refused(SocketAddrV4, Code),
}

/// A chunk of answers.
#[derive(Debug)]
struct Owed {
    entries: u32,
    /// Entries that are not answered yet.
    open: u32,
    /// Bytes of those that are.
    bytes: u32,
}

impl Client {
    pub(super) fn new(peer: Peer, address: Address, now: Instant) -> Self {
        Client {
            peer,
            address,
            came: now,
            backlog: VecDeque::new(),
            backlog_packets: 0,
            waits_for: None,
            heard: now,
            entries: VecDeque::new(),
            chunks: VecDeque::new(),
            first: 0,
            lanes: Vec::new(),
            board: 0,
            blocked: false,
            ready: false,
            counters: ClientCounters::default(),
        }
    }

    /// Returns the lane that holds packets for a board, if one does.
    pub(super) fn lane(&self, board: u32) -> Option<u32> {
        self.lanes.iter().find(|(of, _)| *of == board).map(|(_, lane)| *lane)
    }

    /// Packets that it is owed an answer to, with those that wait for room.
    pub(super) fn owed(&self) -> usize {
        self.entries.len() + self.backlog_packets
    }

    /// Begins the entries of a new chunk, and returns its number.
    pub(super) fn begin_chunk(&mut self) -> u32 {
        self.chunks.push_back(Owed { entries: 0, open: 0, bytes: 0 });
        self.first.wrapping_add(self.chunks.len() as u32 - 1)
    }

    /// Adds an entry to the chunk that came last.
    pub(super) fn owe(&mut self, entry: Entry) {
        self.entries.push_back(entry);
        let chunk = self.chunks.back_mut().expect("a chunk has begun");
        chunk.entries += 1;
        match entry {
            Entry::Packet(_) => chunk.open += 1,
            Entry::Refused(..) => chunk.bytes += REPLY_HEADER as u32,
        }
    }

    /// Notes that an entry of this chunk is answered, by a packet of this many bytes.
    pub(super) fn settle(&mut self, chunk: u32, bytes: usize) {
        let chunk = &mut self.chunks[chunk.wrapping_sub(self.first) as usize];
        chunk.open -= 1;
        chunk.bytes += (REPLY_HEADER + bytes) as u32;
    }

    /// Tells whether the next chunk can go out.
    pub(super) fn can_write(&self) -> bool {
        !self.blocked && self.is_answered()
    }

    fn is_answered(&self) -> bool {
        self.chunks.front().is_some_and(|chunk| chunk.open == 0)
    }

    /// Writes the chunks that are answered, up to a burst, and gives their packets back.
    pub(super) fn write(&mut self, packets: &mut Packets, out: &mut Outbox) {
        let start = out.len();
        while self.is_answered()
            && out.len() - start < BURST
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.first = self.first.wrapping_add(1);
            out.copy(&chunk::length(chunk.bytes as usize));
            for entry in self.entries.drain(..chunk.entries as usize) {
                match entry {
                    Entry::Packet(number) => {
                        let packet = &packets[number];
                        let reply = Reply { target: packet.target, code: packet.code, packet: &packet.bytes };
                        out.copy(&reply.header());
                        out.copy(reply.packet);
                        self.counters.answered(packet.code);
                        mark_answered(number, packet, out);
                        packets.release(number);
                    }
                    Entry::Refused(target, code) => {
                        out.copy(&Reply { target, code, packet: &[] }.header());
                        self.counters.answered(code);
                    }
                }
            }
        }
        self.counters.bytes_out += (out.len() - start) as u64;
    }

    /// Returns the packets that the client will never be told of.
    pub(super) fn forget(&mut self) -> impl Iterator<Item = u32> {
        self.entries.drain(..).filter_map(|entry| match entry {
            Entry::Packet(number) => Some(number),
            Entry::Refused(..) => None,
        })
    }
}
