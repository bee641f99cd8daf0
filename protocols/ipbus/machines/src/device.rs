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

pub use board::DeviceCounters;
pub use faults::{FaultCounters, Faults, FaultyDevice, Way};
pub use register::{Behaviour, Failure, Register, RegisterError, Registers};

use crate::Error;
use crate::wire::status::Status;
use crate::wire::{BUFFER_BYTES, BUFFERS, Version, chunk};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use board::Board;
use core::time::Duration;
use hodo_machine::{Closed, Input, Instant, Machine, Outbox, Output, Peer, Peers, Timers, Transport};

/// Words of the configuration space of firmware.
const CONFIGURATION: usize = 4;
/// Bytes of a packet at most, whatever is asked for: those of a UDP datagram.
const BUFFER_BYTES_MAX: u32 = 65_507;
/// Bytes after which a stream's replies are handed to the driver; more than one packet.
const BURST: usize = 128 << 10;

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
    /// Replies that may wait for their peers, in all, in bytes; a quarter of them for one peer.
    pub unsent_bytes_max: usize,
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
            unsent_bytes_max: 64 << 20,
            silence_timeout: Duration::from_secs(60),
        }
    }
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceEvent {
    /// A peer's stream cannot be cut into chunks, or it asks and does not read; it was closed.
    Misbehaved(Peer, Error),
}

/// A software device. See the [module](self).
#[derive(Debug)]
pub struct Device {
    transport: Transport,
    buffer_bytes: usize,
    unsent_bytes_max: usize,
    silence_timeout: Duration,
    board: Board,
    sessions: Peers<Session>,
    /// When each peer over datagrams may have been silent for too long.
    timers: Timers<Peer>,
    /// Replies that have not been handed to the driver, one behind the other, from `handed` on.
    replies: Vec<u8>,
    handed: usize,
    /// To whom they go, and where they end.
    owed: VecDeque<(Peer, usize)>,
    /// Bytes that wait for peers who do not take them.
    held_bytes: usize,
    /// Peers who take again what waits for them.
    resumed: VecDeque<Peer>,
    closing: VecDeque<Peer>,
    events: VecDeque<DeviceEvent>,
}

/// One peer.
#[derive(Debug)]
struct Session {
    heard: Instant,
    chunks: chunk::Chunks,
    blocked: bool,
    /// Replies that it does not take for now.
    held: Vec<u8>,
}

impl Device {
    /// Creates a device that was just switched on.
    #[must_use]
    pub fn new(config: DeviceConfig) -> Self {
        let config = DeviceConfig { buffer_bytes: config.buffer_bytes.min(BUFFER_BYTES_MAX), ..config };
        Device {
            transport: config.transport,
            buffer_bytes: config.buffer_bytes as usize,
            unsent_bytes_max: config.unsent_bytes_max,
            silence_timeout: config.silence_timeout,
            board: Board::new(config),
            sessions: Peers::default(),
            timers: Timers::default(),
            replies: Vec::new(),
            handed: 0,
            owed: VecDeque::new(),
            held_bytes: 0,
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

    fn opened(&mut self, now: Instant, peer: Peer) {
        if !peer.is_accepted() {
            return;
        }
        self.forget(peer);
        let chunks = chunk::Chunks::new(self.buffer_bytes);
        self.sessions.insert(peer, Session { heard: now, chunks, blocked: false, held: Vec::new() });
        if self.transport == Transport::Datagram {
            self.timers.arm(peer, now + self.silence_timeout);
        }
    }

    fn forget(&mut self, peer: Peer) {
        if let Some(session) = self.sessions.remove(peer) {
            self.held_bytes -= session.held.len();
            self.timers.cancel(peer);
        }
    }

    #[inline]
    fn datagram(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        let Some(session) = self.sessions.at(peer) else { return };
        session.heard = now;
        if self.replies.len() + self.buffer_bytes > self.unsent_bytes_max {
            return self.board.drop_packet();
        }
        let before = self.replies.len();
        self.board.answer(bytes, &mut self.replies);
        self.owe(peer, before);
    }

    #[inline]
    fn stream(&mut self, peer: Peer, bytes: &[u8]) {
        let before = self.replies.len();
        match self.answer_chunks(peer, bytes, before) {
            Ok(()) => self.owe(peer, before),
            Err(error) => {
                self.replies.truncate(before);
                self.forget(peer);
                self.closing.push_back(peer);
                self.events.push_back(DeviceEvent::Misbehaved(peer, error));
            }
        }
    }

    #[inline]
    fn answer_chunks(&mut self, peer: Peer, bytes: &[u8], before: usize) -> Result<(), Error> {
        let Some(session) = self.sessions.at(peer) else { return Ok(()) };
        let mut rest = bytes;
        while let Some(packet) = session.chunks.next(&mut rest)? {
            let begun = chunk::begin(&mut self.replies);
            self.board.answer(packet, &mut self.replies);
            if self.replies.len() == begun {
                self.replies.truncate(begun - chunk::HEADER);
                continue;
            }
            chunk::end(&mut self.replies, begun);
            let unsent = self.replies.len() - before + session.held.len();
            if unsent > self.unsent_bytes_max / 4 || self.replies.len() + self.held_bytes > self.unsent_bytes_max {
                return Err(Error::Closed(Closed::OverBound));
            }
        }
        Ok(())
    }

    /// Owes a peer the replies from `before` on.
    #[inline]
    fn owe(&mut self, peer: Peer, before: usize) {
        if self.replies.len() > before {
            self.owed.push_back((peer, self.replies.len()));
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
        while let Some(&(peer, end)) = self.owed.front() {
            let session = self.sessions.at(peer);
            let burst = self.handed..end.min(self.handed + BURST);
            let sent = match session {
                None => false,
                Some(session) if session.blocked || !session.held.is_empty() => {
                    session.held.extend_from_slice(&self.replies[burst.clone()]);
                    self.held_bytes += burst.len();
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
                self.handed = 0;
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
                let burst = session.held.len().min(BURST);
                out.copy(&session.held[..burst]);
                session.held.drain(..burst);
                self.held_bytes -= burst;
                if session.held.is_empty() {
                    // Few peers ever have to wait; none keeps the room for it.
                    session.held = Vec::new();
                }
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
            Input::Opened(peer, _) => self.opened(now, peer),
            Input::Received(peer, bytes) => match self.transport {
                Transport::Datagram => self.datagram(now, peer, bytes),
                Transport::Stream => self.stream(peer, bytes),
            },
            Input::Closed(peer, _) => self.forget(peer),
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
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if let Some(peer) = self.closing.pop_front() {
            return Output::Close(peer);
        }
        match self.send(out) {
            Some(peer) => Output::Send(peer),
            None => Output::Idle(self.timers.next()),
        }
    }
}

#[cfg(test)]
mod tests;
