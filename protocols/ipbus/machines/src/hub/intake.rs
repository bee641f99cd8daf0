use super::board::Board;
use super::client::Entry;
use super::router::{Router, Timer};
use super::{Ended, HubConfig};
use crate::window::WindowConfig;
use crate::wire::Version;
use crate::wire::hub::{Code, REQUEST_HEADER, Request, Requests, target};
use crate::wire::legacy;
use crate::wire::packet::{Kind, Packet};
use core::net::SocketAddrV4;
use hodo_machine::{Instant, Peer};

impl Router {
    pub(super) fn count_bytes(&mut self, now: Instant, number: u32, bytes: usize) {
        if let Some(client) = self.client(number) {
            client.heard = now;
            client.counters.bytes_in += bytes as u64;
        }
    }

    /// Queues the packets of a whole chunk; returns why the client is to be ended, if it is.
    pub(super) fn take_in(&mut self, now: Instant, number: u32, chunk: &[u8]) -> Result<(), Ended> {
        let client_packets = self.config.client_packets;
        let Some(client) = self.client(number) else { return Ok(()) };
        let whole = Requests::new(chunk).try_fold(0, |count, request| request.map(|_| count + 1));
        let Ok(count @ 1..) = whole else { return self.refuse(number, chunk) };
        if client.owed() + count > client_packets {
            return Err(Ended::TooManyPackets);
        }
        client.counters.chunks += 1;
        let is_first = client.counters.chunks == 1;
        client.counters.packets += count as u64;
        let place = client.begin_chunk();
        if is_first {
            self.timers.cancel(Timer::FirstChunk(number));
        }
        for request in Requests::new(chunk).flatten() {
            let entry = match self.accept(now, number, place, request) {
                Ok(packet) => Entry::Packet(packet),
                Err(code) => {
                    self.past.count(code);
                    Entry::Refused(request.target, code)
                }
            };
            if let Some(client) = self.client(number) {
                client.owe(entry);
            }
        }
        self.note_ready(number);
        Ok(())
    }

    /// Sends error codes for a chunk of which nothing can be done, because it is cut short: with the board of each
    /// entry.
    fn refuse(&mut self, number: u32, chunk: &[u8]) -> Result<(), Ended> {
        let client_packets = self.config.client_packets;
        let Some(client) = self.clients.at(Peer::accepted(number)) else { return Ok(()) };
        client.counters.malformed += 1;
        if target(chunk).is_none() {
            return Err(Ended::Malformed);
        }
        client.begin_chunk();
        let mut rest = chunk;
        while let Some(target) = target(rest) {
            if client.owed() == client_packets {
                return Err(Ended::TooManyPackets);
            }
            client.owe(Entry::Refused(target, Code::MalformedStatus));
            let whole = Requests::new(rest).next().and_then(Result::ok);
            rest = whole.map_or(&[], |request| &rest[REQUEST_HEADER + request.packet.len()..]);
            self.past.count(Code::MalformedStatus);
        }
        self.note_ready(number);
        Ok(())
    }

    /// Takes a packet on, or says why not.
    #[inline]
    fn accept(&mut self, now: Instant, number: u32, chunk: u32, request: Request<'_>) -> Result<u32, Code> {
        let version = version_of(request.packet).ok_or(Code::WrongVersion)?;
        if !is_whole(request.packet, version) {
            return Err(Code::MalformedStatus);
        }
        if !self.allow.allows(request.target) {
            return Err(Code::NotAllowed);
        }
        if request.packet.len() > self.config.packet_bytes {
            return Err(Code::HubTimeout);
        }
        let likely = self.client(number).map_or(0, |client| client.board);
        let board_number = match self.boards.find(request.target, version, likely) {
            Some(found) => found,
            None => self.remember(now, request.target, version)?,
        };
        let HubConfig { probe_first, window, .. } = self.config;
        let board = self.boards.at(board_number).ok_or(Code::HubTimeout)?;
        board.counters.packets += 1;
        let packet = match board.asked(now, probe_first, window.late_max()) {
            Err(code) => Err(code),
            Ok(()) => self.packets.take(request.target, number, chunk, request.packet).ok_or(Code::HubTimeout),
        };
        board.counters.errors += u64::from(packet.is_err());
        let packet = packet?;
        self.packets[packet].times = self.stages.begin(now);
        board.queued += 1;
        self.queue(number, board_number, packet);
        Ok(packet)
    }

    /// Appends a packet to the lane of its client and its board.
    fn queue(&mut self, number: u32, board_number: u32, packet: u32) {
        let Some(client) = self.clients.at(Peer::accepted(number)) else { return };
        client.board = board_number;
        let lane = match client.lane(board_number) {
            Some(lane) => lane,
            None => {
                let lane = self.lanes.take(number);
                client.lanes.push((board_number, lane));
                if let Some(board) = self.boards.at(board_number) {
                    board.turns.push_back(lane);
                }
                lane
            }
        };
        self.lanes.append(lane, packet, &mut self.packets);
        self.set_to_work(board_number);
    }

    /// Adds a board that is asked for the first time, and returns its number.
    fn remember(&mut self, now: Instant, target: SocketAddrV4, version: Version) -> Result<u32, Code> {
        if self.boards.len() >= self.config.boards {
            let idle = self.boards.idlest().ok_or(Code::HubTimeout)?;
            self.forget_board(idle);
        }
        let window = WindowConfig { own_ids: Some(self.random.bits()), ..self.config.window };
        let number = self.boards.insert(Board::new(target, version, window, now));
        self.timers.arm(Timer::Unused(number), now + self.config.forget);
        self.open_board(number);
        Ok(number)
    }
}

/// Returns the version of a request that the hub can pass on.
#[inline]
pub(super) fn version_of(packet: &[u8]) -> Option<Version> {
    match Version::of(packet)?.0 {
        Version::V2_0 => Packet::decode(packet).ok().filter(|packet| packet.header.kind == Kind::Control)?,
        Version::V1_3 => return Some(Version::V1_3),
    };
    Some(Version::V2_0)
}

/// Tells whether every transaction of a request can be read: a board would drop what it cannot read, or answer nothing that
/// is known for its reply, and hold up all that is behind it.
#[inline]
fn is_whole(packet: &[u8], version: Version) -> bool {
    match version {
        Version::V2_0 => Packet::decode(packet).is_ok_and(|packet| packet.requests().all(|request| request.is_ok())),
        Version::V1_3 => {
            legacy::Packet::decode(packet).is_ok_and(|packet| packet.requests().all(|request| request.is_ok()))
        }
    }
}
