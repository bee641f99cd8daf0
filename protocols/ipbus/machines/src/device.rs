//! A device in software: what a board's firmware does, for developing and testing against.
//!
//! A [`Device`] answers packets of one version of IPbus from any number of peers, over datagrams or streams. As of a
//! board there is one of everything, whoever asks: one bus, one next packet number, one set of kept replies. Unlike a
//! board it forgets nothing for want of time. What goes wrong on request is in [`FaultyDevice`].

mod board;
mod bus;
mod faults;
mod history;
mod memory;
mod register;
mod replies;
mod room;
mod unsent;

pub use board::DeviceCounters;
pub use faults::{FaultCounters, Faults, FaultyDevice, Way};
pub use register::{Behaviour, Failure, Register, RegisterError, Registers};

use crate::Error;
use crate::wire::status::Status;
use crate::wire::{BUFFER_BYTES, BUFFERS, Version, chunk};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
pub(crate) use board::Board;
use core::time::Duration;
use hodo_machine::{
    Address, Allowance, Charges, Ends, Input, Instant, Machine, Outbox, Output, Over, Peer, Peers, Pool, Share, Timers,
    Transport,
};
use room::Turn;
use unsent::UnsentReplies;

/// Words of the configuration space of firmware.
const CONFIGURATION: usize = 4;
/// Bytes of a packet at most, whatever is asked for: those of a UDP datagram.
const BUFFER_BYTES_MAX: u32 = 65_507;
/// Bytes after which a stream's replies are handed to the driver; more than one packet.
const BURST: usize = 128 << 10;
/// Bytes of the buffer for the replies of a turn that are kept for the next one.
const KEPT_BYTES: usize = 4 << 20;
/// Bytes that are retained for all peers unless told otherwise, and the part of them for one.
const MEMORY: u64 = 64 << 20;
const PEER_PART: u64 = 4;

/// The settings and bounds of a device.
#[derive(Debug, Clone)]
pub struct DeviceConfig {
    /// Datagrams, or a stream of chunks for each peer.
    pub transport: Transport,
    /// The version of IPbus; packets of another one are refused.
    pub version: Version,
    /// Replies that are kept for being sent again; at most 1024.
    pub buffers: u32,
    /// Bytes of a packet, of a host or of the device, at most; up to 65507. A longer datagram is dropped, a longer chunk ends its
    /// peer; a transaction whose reply would not fit is answered as one that cannot be read.
    pub buffer_bytes: u32,
    /// Memory of the bus at most: what was written, in pages with their tables, and what is in FIFOs. A write that
    /// needs more is a bus error.
    pub memory_bytes_max: usize,
    /// The registers that are more than memory.
    pub registers: Registers,
    /// The words of the configuration space after a reset.
    pub configuration: Vec<u32>,
    /// The memory that may be retained for peers, by this device and those that share its pool: replies that they do not take, and
    /// unfinished chunks. Beyond, the peer with the most is closed, and over datagrams its oldest replies are dropped.
    pub allowance: Allowance,
    /// The memory that is retained by all of these.
    pub pool: Pool,
    /// Peers at once. One more takes the place of the one that was silent for longest: over datagrams of any, over streams of one that
    /// was silent for 10 s and waits for nothing.
    pub peers_max: usize,
    /// A peer over datagrams that was silent for so long is forgotten; its next datagram makes it known again.
    pub silence_timeout: Duration,
}

impl DeviceConfig {
    /// Creates the settings of firmware as it is built by default, all memory.
    #[must_use]
    pub fn new(transport: Transport, version: Version) -> Self {
        DeviceConfig {
            transport,
            version,
            buffers: BUFFERS,
            buffer_bytes: BUFFER_BYTES,
            memory_bytes_max: 64 << 20,
            registers: Registers::default(),
            configuration: vec![0; CONFIGURATION],
            allowance: allowance(MEMORY),
            pool: Pool::default(),
            peers_max: 16_384,
            silence_timeout: Duration::from_secs(60),
        }
    }
}

/// Returns the allowance of a device that may retain this many bytes for all peers: a quarter of them for one.
#[must_use]
pub fn allowance(bytes: u64) -> Allowance {
    Allowance { peer_bytes: bytes / PEER_PART, ..Allowance::of_bytes(bytes) }
}

/// A command of the application to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceCommand {
    /// Forget packet numbers, kept replies and history, as a board that lost its power.
    Reboot {
        /// Whether what was written is forgotten too.
        clear_memory: bool,
    },
    /// Change a word from inside, whatever a host may do there; at a FIFO's address put it in.
    Poke {
        /// Where.
        address: u32,
        /// The new word.
        word: u32,
    },
}

/// An event that a device reports to the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceEvent {
    /// A peer's stream cannot be cut into chunks, or most memory was retained for it; it was closed.
    Misbehaved(Peer, Address, Error),
    /// A datagram of this many bytes is longer than the buffers, and was dropped without an answer, as a board drops it. Reported
    /// when the count doubles.
    TooLong {
        /// The peer.
        remote: Address,
        /// Bytes of the datagram.
        bytes: usize,
        /// Bytes of a buffer.
        buffer: usize,
        /// Such datagrams so far.
        count: u64,
    },
    /// All places are taken: peers that were silent for longest have made room for new ones, or new ones found none. Reported
    /// when either count doubles.
    Crowded {
        /// Peers that made room so far.
        displaced: u64,
        /// Peers that found no place so far.
        refused: u64,
    },
}

/// A software device. See the [module](self).
#[derive(Debug)]
pub struct Device {
    transport: Transport,
    buffer_bytes: usize,
    peers_max: usize,
    silence_timeout: Duration,
    board: Board,
    sessions: Peers<Session>,
    /// The number of the next session.
    next_session: u64,
    /// Sessions, with those that may have been silent for longest in front.
    turns: VecDeque<Turn>,
    /// When to look again for a peer that makes room for another one.
    full_until: Instant,
    charges: Charges,
    /// Bytes of the replies of this turn that are charged, and those of replies to peers that are gone.
    waiting: u64,
    lost: usize,
    /// When each peer over datagrams may have been silent for too long.
    timers: Timers<Peer>,
    /// Replies that have not been handed to the driver, one behind the other, from `handed` on.
    replies: Vec<u8>,
    handed: usize,
    /// To whom they go, with the number of the session, and where they end.
    owed: VecDeque<(Peer, u64, usize)>,
    /// Peers who take again what waits for them.
    resumed: VecDeque<Peer>,
    closing: VecDeque<Peer>,
    events: VecDeque<DeviceEvent>,
}

/// One peer.
#[derive(Debug)]
struct Session {
    number: u64,
    remote: Address,
    heard: Instant,
    chunks: chunk::Chunks,
    blocked: bool,
    held: UnsentReplies,
    /// Memory of packets on their way to it and from it, where they take time.
    on_way: u64,
}

impl Session {
    /// Returns the bytes of memory that are retained for the peer.
    #[inline]
    fn retained(&self) -> u64 {
        self.chunks.retained() as u64 + self.held.retained() + self.on_way
    }
}

impl Device {
    /// Creates a device that was just switched on.
    #[must_use]
    pub fn new(config: DeviceConfig) -> Self {
        let config = DeviceConfig { buffer_bytes: config.buffer_bytes.min(BUFFER_BYTES_MAX), ..config };
        Device {
            transport: config.transport,
            buffer_bytes: config.buffer_bytes as usize,
            peers_max: config.peers_max.max(1),
            silence_timeout: config.silence_timeout,
            charges: Charges::new(config.allowance, config.pool.clone()),
            board: Board::new(config),
            sessions: Peers::default(),
            next_session: 0,
            turns: VecDeque::new(),
            full_until: Instant::ZERO,
            waiting: 0,
            lost: 0,
            timers: Timers::default(),
            replies: Vec::new(),
            handed: 0,
            owed: VecDeque::new(),
            resumed: VecDeque::new(),
            closing: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Returns the answer to a status request.
    #[must_use]
    pub fn status(&self) -> Status {
        self.board.status()
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counters(&self) -> DeviceCounters {
        self.board.counters()
    }

    /// Returns the word at an address, which stays as it is; the oldest of a FIFO, or 0.
    #[must_use]
    pub fn peek(&self, address: u32) -> u32 {
        self.board.bus.peek(address)
    }

    /// Iterates over the words in the FIFO at an address, oldest first; empty if there is none.
    pub fn fifo(&self, address: u32) -> impl Iterator<Item = u32> + '_ {
        self.board.bus.fifo(address)
    }

    /// Peers that are there.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.sessions.len()
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    fn opened(&mut self, now: Instant, peer: Peer, ends: &Ends) {
        if !peer.is_accepted() {
            return;
        }
        self.forget(peer);
        if self.sessions.len() >= self.peers_max && !self.make_room(now) {
            self.closing.push_back(peer);
            return self.note_crowd(|counters| &mut counters.refused_peers);
        }
        let number = self.next_session;
        self.next_session += 1;
        let (chunks, remote) = (chunk::Chunks::new(self.buffer_bytes), ends.remote.clone());
        self.charges.open(peer, &remote);
        let held = UnsentReplies::default();
        let session = Session { number, remote, heard: now, chunks, blocked: false, held, on_way: 0 };
        self.sessions.insert(peer, session);
        self.note_newest(now, peer, number);
        if self.transport == Transport::Datagram {
            self.timers.arm(peer, now + self.silence_timeout);
        }
    }

    fn forget(&mut self, peer: Peer) -> Option<Session> {
        let session = self.sessions.remove(peer)?;
        self.charges.close(peer);
        self.timers.cancel(peer);
        if self.transport == Transport::Stream {
            self.lost +=
                self.waiting_for().filter(|(_, number, _)| *number == session.number).map(|wait| wait.2).sum::<usize>();
        }
        Some(*session)
    }

    #[inline]
    fn datagram(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        let Some(session) = self.sessions.at(peer) else { return };
        session.heard = now;
        let number = session.number;
        if bytes.len() > self.buffer_bytes {
            self.note_too_long(peer, bytes.len());
        }
        if (self.replies.len() + self.buffer_bytes) as u64 > self.charges.allowance().bytes {
            return self.board.drop_packet();
        }
        let before = self.replies.len();
        self.board.answer(bytes, &mut self.replies);
        self.owe(peer, number, before);
    }

    #[inline]
    fn stream(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        let before = self.replies.len();
        match self.answer_chunks(now, peer, bytes, before) {
            Ok(number) => {
                self.owe(peer, number, before);
                self.charge(peer);
                self.charge_turn();
            }
            Err(error) => {
                self.replies.truncate(before);
                self.end(peer, error);
            }
        }
    }

    /// Handles the whole chunks in bytes of a stream. Returns the number of the peer's session.
    #[inline]
    fn answer_chunks(&mut self, now: Instant, peer: Peer, bytes: &[u8], before: usize) -> Result<u64, Error> {
        let max = self.charges.allowance().peer_bytes;
        let Some(session) = self.sessions.at(peer) else { return Ok(0) };
        session.heard = now;
        let held = session.held.retained();
        let mut rest = bytes;
        while let Some(packet) = session.chunks.next(&mut rest)? {
            let begun = chunk::begin(&mut self.replies);
            self.board.answer(packet, &mut self.replies);
            if self.replies.len() == begun {
                self.replies.truncate(begun - chunk::HEADER);
                continue;
            }
            chunk::end(&mut self.replies, begun);
            let bytes = (self.replies.len() - before) as u64 + held;
            if bytes > max {
                return Err(Error::TooMuchMemory(Over { peer, share: Share::Peer, bytes, max }));
            }
        }
        Ok(session.number)
    }

    /// Owes a peer the replies from `before` on.
    #[inline]
    fn owe(&mut self, peer: Peer, session: u64, before: usize) {
        if self.replies.len() > before {
            self.owed.push_back((peer, session, self.replies.len()));
        }
    }

    fn set_blocked(&mut self, peer: Peer, blocked: bool) {
        if let Some(session) = self.sessions.at(peer) {
            session.blocked = blocked;
            if !blocked && !session.held.is_empty() {
                self.resumed.push_back(peer);
            }
        }
    }

    /// Puts the next replies into the outbox: one datagram, or a burst of a stream.
    #[inline]
    fn send(&mut self, out: &mut Outbox) -> Option<Peer> {
        while let Some(&(peer, number, end)) = self.owed.front() {
            let session = self.sessions.at(peer).filter(|session| session.number == number);
            let burst = self.handed..end.min(self.handed + BURST);
            let mut is_held = false;
            let sent = match session {
                None => {
                    self.lost = self.lost.saturating_sub(burst.len());
                    false
                }
                Some(session) if session.blocked || !session.held.is_empty() => {
                    let replies = &self.replies[burst.clone()];
                    match self.transport {
                        Transport::Datagram => session.held.add_datagram(replies),
                        Transport::Stream => session.held.add(replies),
                    }
                    is_held = true;
                    false
                }
                Some(_) => {
                    out.copy(&self.replies[burst.clone()]);
                    true
                }
            };
            self.handed = burst.end;
            if self.handed == end {
                self.owed.pop_front();
            }
            if self.owed.is_empty() {
                self.replies.clear();
                self.replies.shrink_to(KEPT_BYTES);
                (self.handed, self.lost) = (0, 0);
                self.charge_turn();
            }
            if is_held {
                self.charge_turn();
                self.charge(peer);
            }
            if sent {
                return Some(peer);
            }
        }
        self.resume(out)
    }

    /// Writes the next burst of replies that waited for a peer.
    fn resume(&mut self, out: &mut Outbox) -> Option<Peer> {
        while let Some(&peer) = self.resumed.front() {
            let session = self.sessions.at(peer);
            if let Some(session) = session.filter(|session| !session.blocked && !session.held.is_empty()) {
                out.copy(session.held.take(BURST));
                if session.held.is_empty() {
                    // Few peers ever have to wait; none keeps the room for it.
                    session.held = UnsentReplies::default();
                }
                self.charge(peer);
                return Some(peer);
            }
            self.resumed.pop_front();
        }
        None
    }

    /// Forgets a peer over datagrams if it was silent for too long.
    fn elapsed(&mut self, now: Instant, peer: Peer) {
        let Some(session) = self.sessions.get(peer) else { return };
        match session.heard + self.silence_timeout {
            until if until <= now => {
                self.forget(peer);
                self.closing.push_back(peer);
            }
            until => self.timers.arm(peer, until),
        }
    }
}

impl Machine for Device {
    type Command = DeviceCommand;
    type Event = DeviceEvent;

    #[inline]
    fn handle(&mut self, now: Instant, input: Input<'_, DeviceCommand>) {
        match input {
            Input::Opened(peer, ends) => self.opened(now, peer, ends),
            Input::Received(peer, bytes) => match self.transport {
                Transport::Datagram => self.datagram(now, peer, bytes),
                Transport::Stream => self.stream(now, peer, bytes),
            },
            Input::Closed(peer, _) => {
                self.forget(peer);
            }
            Input::Blocked(peer) => self.set_blocked(peer, true),
            Input::Drained(peer) => self.set_blocked(peer, false),
            Input::Command(DeviceCommand::Reboot { clear_memory }) => self.board.reboot(clear_memory),
            Input::Command(DeviceCommand::Poke { address, word }) => self.board.bus.poke(address, word),
            Input::Landed(..) => {}
            Input::Elapsed => {
                while let Some(peer) = self.timers.pop_due(now) {
                    self.elapsed(now, peer);
                }
            }
        }
    }

    #[inline]
    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<DeviceEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Output::Event(event);
            }
            if let Some(peer) = self.closing.pop_front() {
                return Output::Close(peer);
            }
            match self.send(out) {
                Some(peer) => return Output::Send(peer),
                // A peer may have been ended meanwhile.
                None if self.closing.is_empty() => return Output::Idle(self.timers.next()),
                None => {}
            }
        }
    }

    fn charges(&self) -> Option<&Charges> {
        Some(&self.charges)
    }

    /// Tells whether replies wait for the client to read.
    fn owes(&self, peer: Peer) -> bool {
        let is_held = self.sessions.get(peer).is_some_and(|session| !session.held.is_empty());
        is_held || self.owed.iter().any(|(other, ..)| *other == peer)
    }
}

#[cfg(test)]
mod tests;
