//! The memory that clients make a hub retain, and who is ended where it is too much.

use super::Ended;
use super::packets::{NONE, Packet, Stage};
use super::router::Router;
use alloc::vec::Vec;
use core::mem::size_of;
use hodo_machine::{Instant, Over, Peer, Share};

/// Memory of an answer that is no packet, and of the answer's place beside each packet.
pub(super) const ENTRY: u64 = 64;
/// Memory of a chunk that waits, beside its bytes: its place and its allocation.
const CHUNK: u64 = 32;

/// Returns the memory of a packet with this many bytes.
#[inline]
pub(super) const fn memory_of_packet(bytes: usize) -> u32 {
    (bytes + size_of::<Packet>()) as u32 + ENTRY as u32
}

/// Returns the memory of a chunk that waits.
pub(super) const fn memory_of_chunk(chunk: &[u8]) -> u64 {
    chunk.len() as u64 + CHUNK
}

impl Router {
    /// Charges a client for what it has sent, and for the chunk that has not ended.
    #[inline]
    pub(super) fn charge_chunks(&mut self, now: Instant, number: u32, unfinished: u64) {
        if let Some(client) = self.client(number) {
            client.unfinished = unfinished;
        }
        self.charge(now, number);
    }

    /// Charges a client for what is retained for it, if that has changed much.
    #[inline]
    pub(super) fn charge(&mut self, now: Instant, number: u32) {
        if number == NONE {
            return;
        }
        if let Some(client) = self.client(number) {
            let bytes = client.retained + client.unfinished;
            let peer = client.peer;
            if let Err(over) = self.charges.set_about(peer, bytes) {
                self.relieve(now, over);
            }
        }
    }

    /// Ends the clients for which most memory is retained, while it is too much.
    #[cold]
    fn relieve(&mut self, now: Instant, over: Over) {
        let mut next = Some(over);
        if over.share == Share::All && self.orphans > self.charges.of(over.peer) {
            self.drop_orphans();
            next = self.charges.next_over();
        }
        while let Some(over) = next {
            self.end(now, super::index(over.peer), Ended::TooMuchMemory);
            next = self.charges.next_over();
        }
    }

    /// Drops what waits of a client that is ended for its memory: its chunks, and its packets that are not in flight.
    pub(super) fn drop_queued(&mut self, number: u32) {
        self.drop_backlog(number);
        let Some(client) = self.clients.get(Peer::accepted(number)) else { return };
        for (board, lane) in client.lanes.clone() {
            while let Some(packet) = self.lanes.pop(lane, &self.packets) {
                self.packets[packet].stage = Stage::Dropped;
                if let Some(board) = self.boards.at(board) {
                    board.queued -= 1;
                    board.counters.errors += 1;
                }
            }
            self.set_to_work(board);
        }
    }

    /// Drops the packets of clients that are gone, but for those in flight.
    fn drop_orphans(&mut self) {
        let boards: Vec<u32> = self.boards.all().map(|(number, _)| number).collect();
        for number in boards {
            let Some(board) = self.boards.at(number) else { continue };
            let lanes: Vec<u32> = board.turns.iter().copied().filter(|lane| self.lanes.client(*lane) == NONE).collect();
            for lane in lanes {
                while let Some(packet) = self.lanes.pop(lane, &self.packets) {
                    if let Some(board) = self.boards.at(number) {
                        board.queued -= 1;
                        board.counters.errors += 1;
                    }
                    self.release_orphan(packet, self.packets[packet].memory);
                }
            }
            self.set_to_work(number);
        }
    }

    /// Leaves a packet to nobody.
    pub(super) fn orphan(&mut self, packet: u32) {
        self.packets[packet].client = NONE;
        self.orphans += u64::from(self.packets[packet].memory);
        self.charges.set_common(self.orphans);
    }

    /// Frees the place of a packet that is nobody's, now that it is done.
    pub(super) fn release_orphan(&mut self, packet: u32, memory: u32) {
        self.orphans -= u64::from(memory);
        self.charges.set_common(self.orphans);
        self.packets.release(packet);
    }
}
