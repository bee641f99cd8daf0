//! A node: the host's queues, and how it takes N-chars from the receive buffer.
use alloc::collections::VecDeque;
use alloc::string::String;

use super::port::{NEVER, SECOND};
use super::queue::{Incoming, Outgoing};
use super::run::end_of_packet;
use super::{EndOfPacket, Network, NodeSettings, Observer, SendError, Sink};
use crate::character::Code;
use crate::time::Picos;

/// Time-codes that a node keeps for its host.
const TIME_CODES: usize = 64;

/// A node and its host's queues.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) port: usize,
    pub(super) settings: NodeSettings,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// N-chars in the receive buffer, and whether they count there. An EEP that an error left does not.
    pub(super) buffer: VecDeque<(Code, bool)>,
    pub(super) time_codes: VecDeque<(Picos, u8)>,
    /// Whether the rest of a packet is dropped that was too long.
    skipping: bool,
    /// Packets that were cut because they were too long.
    pub(super) too_long: u64,
    /// When the host may take the next N-char, if it takes them at a rate.
    next_take: u64,
    /// Whether a packet that arrives here ends a run that ends with an arrival.
    pub(super) is_watched: bool,
}

impl Node {
    pub(super) fn new(name: String, settings: NodeSettings) -> Self {
        Node {
            name,
            port: usize::MAX,
            settings,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            buffer: VecDeque::new(),
            time_codes: VecDeque::with_capacity(TIME_CODES),
            skipping: false,
            too_long: 0,
            next_take: 0,
            is_watched: false,
        }
    }

    #[inline]
    pub(super) fn send(&mut self, bytes: &[u8], end: EndOfPacket) -> Result<(), SendError> {
        let NodeSettings { packets, bytes: limit, .. } = self.settings;
        if self.outgoing.packets() >= packets {
            return Err(SendError::TooManyPackets { node: self.name.clone(), limit: packets });
        }
        let queued = self.outgoing.bytes();
        if queued + bytes.len() > limit {
            return Err(SendError::TooManyBytes { node: self.name.clone(), length: bytes.len(), queued, limit });
        }
        self.outgoing.push(bytes, end);
        Ok(())
    }

    pub(super) fn offered(&self) -> Option<Code> {
        let (bytes, end) = self.outgoing.front()?;
        Some(match (bytes.first(), end) {
            (Some(byte), _) => Code::Data(*byte),
            (None, EndOfPacket::Eop) => Code::Eop,
            (None, EndOfPacket::Eep) => Code::Eep,
        })
    }

    pub(super) fn time_code(&mut self, code: u8, now: u64) {
        if self.time_codes.len() == TIME_CODES {
            self.time_codes.pop_front();
        }
        self.time_codes.push_back((Picos(now), code));
    }

    /// Tells whether a packet that arrives in runs is received like any other.
    pub(super) fn takes_runs(&self) -> bool {
        self.settings.sink == Sink::AtOnce && self.buffer.is_empty() && !self.skipping
    }

    /// Puts an N-char into the receive queue. Returns `false` if that is full.
    fn accept(&mut self, code: Code, now: u64) -> bool {
        let end = match code {
            Code::Data(byte) => return self.accept_byte(byte, now),
            code => end_of_packet(code),
        };
        // An end with nothing before it is an empty packet, and discarded.
        if !core::mem::replace(&mut self.skipping, false) && self.incoming.is_open() {
            self.incoming.end(end, Picos(now));
        }
        true
    }

    fn accept_byte(&mut self, byte: u8, now: u64) -> bool {
        if self.skipping {
            return true;
        }
        if !self.incoming.is_open() && self.incoming.packets() >= self.settings.packets {
            return false;
        }
        if self.incoming.bytes() >= self.settings.bytes {
            if self.incoming.packets() > 0 || !self.incoming.is_open() {
                return false;
            }
            self.incoming.end(EndOfPacket::Eep, Picos(now));
            self.skipping = true;
            self.too_long += 1;
            return true;
        }
        self.incoming.push(&[byte], Picos(now));
        true
    }
}

impl<O: Observer> Network<O> {
    pub(super) fn deliver_to_node(&mut self, node: usize, code: Code, counts: bool, now: u64) {
        let this = &mut self.nodes[node];
        let port = this.port;
        let direct = this.settings.sink == Sink::AtOnce && this.buffer.is_empty();
        if direct && this.accept(code, now) {
            return self.ports[port].end.take(u16::from(counts));
        }
        this.buffer.push_back((code, counts));
        self.arm_sink(node, now);
    }

    /// Takes up to `n` N-chars from the receive buffer. Returns how many it took.
    pub(super) fn take_from(&mut self, node: usize, n: usize, now: u64) -> usize {
        let this = &mut self.nodes[node];
        let port = this.port;
        let mut taken = 0;
        while taken < n
            && let Some((code, counts)) = this.buffer.front().copied()
            && this.accept(code, now)
        {
            this.buffer.pop_front();
            self.ports[port].end.take(u16::from(counts));
            taken += 1;
        }
        if taken > 0 {
            self.wake(port, now);
        }
        taken
    }

    /// Goes on receiving after the host made room in the receive queue.
    pub(super) fn drain(&mut self, node: usize, now: u64) {
        if self.nodes[node].buffer.is_empty() {
            return;
        }
        match self.nodes[node].settings.sink {
            Sink::AtOnce => _ = self.take_from(node, usize::MAX, now),
            Sink::Rate(_) => self.arm_sink(node, now),
            Sink::Asked => {}
        }
    }

    fn arm_sink(&mut self, node: usize, now: u64) {
        let this = &self.nodes[node];
        if matches!(this.settings.sink, Sink::Rate(_)) && self.ports[this.port].sink_at == NEVER {
            let port = this.port;
            self.ports[port].sink_at = this.next_take.max(now);
            self.ports[port].set_alarm();
            self.touch(port);
        }
    }

    /// Takes the next N-char at the host's rate.
    pub(super) fn sink(&mut self, port: usize, now: u64) {
        let super::port::Owner::Node(node) = self.ports[port].owner else { return };
        let Sink::Rate(rate) = self.nodes[node].settings.sink else { return };
        if self.take_from(node, 1, now) == 1 {
            self.nodes[node].next_take = now + SECOND / rate.max(1);
            if !self.nodes[node].buffer.is_empty() {
                self.arm_sink(node, now);
            }
        }
    }
}
