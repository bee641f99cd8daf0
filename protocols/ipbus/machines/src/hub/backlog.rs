//! The chunks of clients that ask for more than a board, or the hub, has room for: they wait as they came, and are taken in,
//! client by client, as the queue empties.

use super::client::Full;
use super::intake::version_of;
use super::router::{Router, Timer};
use super::{Ended, HubConfig};
use crate::wire::hub::Requests;
use alloc::boxed::Box;
use hodo_machine::{Instant, Peer};

impl Router {
    /// Takes a whole chunk of a client: now, or once there is room for it and what the client sent before has been taken in.
    /// Returns why the client is to be ended, if it is.
    pub(super) fn take_chunk(&mut self, now: Instant, number: u32, chunk: &[u8]) -> Result<(), Ended> {
        if self.draining {
            return Ok(());
        }
        let full = self.full(chunk);
        let Some(client) = self.clients.at(Peer::accepted(number)) else { return Ok(()) };
        if full.is_none() && client.backlog.is_empty() {
            return self.take_in(now, number, chunk);
        }
        let count = count(chunk);
        if client.owed() + count > self.config.client_packets {
            return Err(Ended::TooManyPackets);
        }
        if self.backlog_bytes + chunk.len() > self.config.backlog_bytes {
            self.empty_backlog(now, number)?;
            return self.take_in(now, number, chunk);
        }
        self.backlog_bytes += chunk.len();
        client.backlog_packets += count;
        client.backlog.push_back(Box::from(chunk));
        self.timers.cancel(Timer::FirstChunk(number));
        if let Some(full) = full {
            self.wait_for(number, full);
        }
        Ok(())
    }

    /// Returns the queue that has no room for a chunk: the hub's, or that of the first board with as many packets as it may have.
    #[inline]
    fn full(&mut self, chunk: &[u8]) -> Option<Full> {
        let HubConfig { board_packets, packets, client_packets, .. } = self.config;
        // A chunk of more than a client's packets is never taken in.
        if self.packets.held() < board_packets.min(packets.saturating_sub(client_packets)) {
            return None;
        }
        if !self.holds(chunk) {
            return Some(Full::Hub);
        }
        Requests::new(chunk).flatten().find_map(|request| {
            let board = self.boards.find(request.target, version_of(request.packet)?, 0)?;
            self.boards.at(board)?.is_full(board_packets).then_some(Full::Board(board))
        })
    }

    /// Tells whether the hub has places for the packets of a chunk. An empty hub takes any, though it refuses some.
    fn holds(&self, chunk: &[u8]) -> bool {
        let held = self.packets.held();
        held == 0 || held + count(chunk) <= self.config.packets
    }

    /// Has a client wait for room, unless it waits already.
    fn wait_for(&mut self, number: u32, full: Full) {
        let Some(client) = self.clients.at(Peer::accepted(number)).filter(|client| client.waits_for.is_none()) else {
            return;
        };
        let waiting = match full {
            Full::Hub => Some(&mut self.waiting),
            Full::Board(board) => self.boards.at(board).map(|board| &mut board.waiting),
        };
        if let Some(waiting) = waiting {
            client.waits_for = Some(full);
            waiting.push_back(number);
        }
    }

    /// Takes in the chunks of the clients that wait for the hub, the first one first, as long as it has room.
    pub(super) fn admit_to_hub(&mut self, now: Instant) {
        while let Some(&number) = self.waiting.front() {
            let next = self.clients.get(Peer::accepted(number)).and_then(|client| client.backlog.front());
            if next.is_some_and(|chunk| !self.holds(chunk)) {
                return;
            }
            self.waiting.pop_front();
            self.admit(now, number);
        }
    }

    /// Takes in the chunks of the clients that wait for a board, the first one first, as long as its queue has room.
    pub(super) fn admit_waiting(&mut self, now: Instant, board_number: u32) {
        while let Some(board) = self.boards.at(board_number)
            && board.admits(self.config.board_packets)
            && let Some(number) = board.waiting.pop_front()
        {
            self.admit(now, number);
        }
    }

    /// Takes in what a client has waiting, as far as there is room now.
    fn admit(&mut self, now: Instant, number: u32) {
        if let Some(client) = self.client(number) {
            client.waits_for = None;
        }
        if let Err(ended) = self.work_off(now, number) {
            self.end(now, number, ended);
        }
    }

    /// Takes in a client's backlog up to the first chunk that there is no room for.
    fn work_off(&mut self, now: Instant, number: u32) -> Result<(), Ended> {
        while let Some(chunk) = self.next_of_backlog(number) {
            if let Some(full) = self.full(&chunk) {
                self.backlog_bytes += chunk.len();
                if let Some(client) = self.client(number) {
                    client.backlog_packets += count(&chunk);
                    client.backlog.push_front(chunk);
                }
                self.wait_for(number, full);
                return Ok(());
            }
            self.take_in(now, number, &chunk)?;
        }
        Ok(())
    }

    /// Takes in the whole backlog of a client, whether there is room or not.
    pub(super) fn empty_backlog(&mut self, now: Instant, number: u32) -> Result<(), Ended> {
        let waiting = match self.client(number).and_then(|client| client.waits_for.take()) {
            Some(Full::Hub) => Some(&mut self.waiting),
            Some(Full::Board(board)) => self.boards.at(board).map(|board| &mut board.waiting),
            None => None,
        };
        if let Some(waiting) = waiting {
            waiting.retain(|waiting| *waiting != number);
        }
        while let Some(chunk) = self.next_of_backlog(number) {
            self.take_in(now, number, &chunk)?;
        }
        Ok(())
    }

    fn next_of_backlog(&mut self, number: u32) -> Option<Box<[u8]>> {
        let client = self.clients.at(Peer::accepted(number))?;
        let chunk = client.backlog.pop_front()?;
        client.backlog_packets -= count(&chunk);
        self.backlog_bytes -= chunk.len();
        Some(chunk)
    }
}

/// Returns how many packets a chunk counts for while it waits.
fn count(chunk: &[u8]) -> usize {
    Requests::new(chunk).count().max(1)
}
