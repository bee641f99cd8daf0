//! The chunks of clients that ask for more than a board has room for: they wait as they came, and are taken in, client by
//! client, as the board's queue empties.

use super::Ended;
use super::intake::version_of;
use super::router::{Router, Timer};
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
        let full = self.full_board(chunk);
        let Some(client) = self.clients.at(Peer::accepted(number)) else { return Ok(()) };
        if full.is_none() && client.backlog.is_empty() {
            return self.take_in(now, number, chunk);
        }
        let count = packets(chunk);
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
        if let Some(board) = full {
            self.wait_for(number, board);
        }
        Ok(())
    }

    /// Returns the first board of a chunk that has as many packets queued as it may have.
    #[inline]
    fn full_board(&mut self, chunk: &[u8]) -> Option<u32> {
        let queued_max = self.config.board_packets;
        if self.packets.held() < queued_max {
            return None;
        }
        Requests::new(chunk).flatten().find_map(|request| {
            let board = self.boards.find(request.target, version_of(request.packet)?, 0)?;
            self.boards.at(board)?.is_full(queued_max).then_some(board)
        })
    }

    /// Has a client wait for room in a board's queue, unless it waits for one already.
    fn wait_for(&mut self, number: u32, board_number: u32) {
        if let Some(client) = self.clients.at(Peer::accepted(number))
            && client.waits_for.is_none()
            && let Some(board) = self.boards.at(board_number)
        {
            client.waits_for = Some(board_number);
            board.waiting.push_back(number);
        }
    }

    /// Takes in the chunks of the clients that wait for a board, the first one first, as long as its queue has room.
    pub(super) fn admit_waiting(&mut self, now: Instant, board_number: u32) {
        while let Some(board) = self.boards.at(board_number)
            && board.admits(self.config.board_packets)
            && let Some(number) = board.waiting.pop_front()
        {
            if let Some(client) = self.client(number) {
                client.waits_for = None;
            }
            if let Err(ended) = self.work_off(now, number) {
                self.end(now, number, ended);
            }
        }
    }

    /// Takes in a client's backlog up to the first chunk for a board that is full.
    fn work_off(&mut self, now: Instant, number: u32) -> Result<(), Ended> {
        while let Some(chunk) = self.next_of_backlog(number) {
            if let Some(board) = self.full_board(&chunk) {
                self.backlog_bytes += chunk.len();
                if let Some(client) = self.client(number) {
                    client.backlog_packets += packets(&chunk);
                    client.backlog.push_front(chunk);
                }
                self.wait_for(number, board);
                return Ok(());
            }
            self.take_in(now, number, &chunk)?;
        }
        Ok(())
    }

    /// Takes in the whole backlog of a client, whether its boards have room or not.
    pub(super) fn empty_backlog(&mut self, now: Instant, number: u32) -> Result<(), Ended> {
        let board = self.client(number).and_then(|client| client.waits_for.take());
        if let Some(board) = board.and_then(|board| self.boards.at(board)) {
            board.waiting.retain(|waiting| *waiting != number);
        }
        while let Some(chunk) = self.next_of_backlog(number) {
            self.take_in(now, number, &chunk)?;
        }
        Ok(())
    }

    fn next_of_backlog(&mut self, number: u32) -> Option<Box<[u8]>> {
        let client = self.clients.at(Peer::accepted(number))?;
        let chunk = client.backlog.pop_front()?;
        client.backlog_packets -= packets(&chunk);
        self.backlog_bytes -= chunk.len();
        Some(chunk)
    }
}

/// Returns how many packets a chunk counts for while it waits.
fn packets(chunk: &[u8]) -> usize {
    Requests::new(chunk).count().max(1)
}
