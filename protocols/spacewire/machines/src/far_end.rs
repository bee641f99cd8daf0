//! The far end of the tester: a box that speaks SSDTP2, with ends of packets by logical address.
//!
//! | first byte | packet | done with it |
//! |---|---|---|
//! | 32 | any | counted |
//! | 33 | any | sent back |
//! | 34 | 34, number (2 bytes), length (4 bytes) | so many packets of that length are sent back, each beginning with 34 |
//! | 35 | 35 | the number of packets that were counted on this connection is sent back: 35, number (8 bytes) |
//! | 254 | command of RMAP | a memory of [`MEMORY`] bytes at address 0, with key 0, answers |
//!
//! Numbers are big-endian. Ports in front of these addresses are deleted, as routers would. Other packets are discarded. A host that does not
//! take what it asked for is not read from.
#[cfg(test)]
mod tests;

use crate::rmap::packet::{DEFAULT_LOGICAL_ADDRESS, split_path};
use crate::rmap::{Ram, Target, TargetSettings};
use crate::{EndOfPacket, ssdtp2};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use hodo_machine::{Input, Instant, Machine, Outbox, Output, Peer, Peers};

/// The address of packets that are counted.
pub const COUNTED: u8 = 32;
/// The address of packets that are sent back.
pub const ECHO: u8 = 33;
/// The address of requests for packets.
pub const SOURCE: u8 = 34;
/// The address of requests for the number of packets counted.
pub const COUNT: u8 = 35;
/// Bytes of the memory behind RMAP.
pub const MEMORY: usize = 16 << 20;

/// Bytes that may wait to leave, beyond which a host is not read from.
const QUEUE: usize = 1 << 20;
/// Requests for packets that may wait likewise.
const REQUESTS: usize = 1 << 16;
/// Bytes that leave in one step.
const STEP: usize = 256 << 10;
/// Packets from here on are not copied.
const SHARED: usize = 4096;

/// The settings of a far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FarEndSettings {
    /// Bytes of the longest packet.
    pub packet_max: usize,
}

/// An event at a far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FarEndEvent {
    /// A host sent a stream that cannot be understood, and was disconnected.
    Malformed(Peer, ssdtp2::Malformed),
}

/// A far end.
#[derive(Debug)]
pub struct FarEnd {
    settings: FarEndSettings,
    hosts: Peers<Host>,
    /// Hosts for whom something waits, each once.
    ready: VecDeque<Peer>,
    to_close: VecDeque<Peer>,
    events: VecDeque<FarEndEvent>,
    /// Bytes of the packets that are asked for.
    payload: Bytes,
    target: Target,
    memory: Ram,
    /// Bytes of a packet that was put where it belongs, while it is answered.
    frames: Vec<u8>,
}

#[derive(Debug)]
struct Host {
    decoder: ssdtp2::Decoder,
    /// Frames that wait to leave, in front of the packets that are asked for.
    frames: Vec<u8>,
    /// Received bytes that are not looked at before these have left: a short command may have a long reply.
    held: Vec<u8>,
    asked: VecDeque<PacketRequest>,
    counted: u64,
    is_ready: bool,
    is_blocked: bool,
}

/// Packets that a host asked for.
#[derive(Debug, Clone, Copy)]
struct PacketRequest {
    number: u16,
    length: usize,
}

impl FarEnd {
    /// Creates a far end.
    #[must_use]
    pub fn new(settings: FarEndSettings) -> Self {
        let mut payload = vec![0; settings.packet_max];
        if let Some(first) = payload.first_mut() {
            *first = SOURCE;
        }
        FarEnd {
            settings,
            hosts: Peers::default(),
            ready: VecDeque::new(),
            to_close: VecDeque::new(),
            events: VecDeque::new(),
            payload: payload.into(),
            target: Target::new(TargetSettings::default()),
            memory: Ram::new(0, vec![0; MEMORY]),
            frames: Vec::new(),
        }
    }

    fn receive(&mut self, peer: Peer, mut bytes: &[u8]) {
        let Some(host) = self.hosts.at(peer) else { return };
        let mut work = Work { target: &mut self.target, memory: &mut self.memory, longest: self.settings.packet_max };
        let Host { decoder, frames, held, asked, counted, .. } = host;
        let malformed = loop {
            if frames.len() >= QUEUE {
                held.extend_from_slice(bytes);
                break None;
            }
            match decoder.next(&mut bytes) {
                Ok(Some(message)) => work.take(message, frames, asked, counted),
                Ok(None) => break None,
                Err(why) => break Some(why),
            }
        };
        if let Some(why) = malformed {
            self.hosts.remove(peer);
            self.to_close.push_back(peer);
            self.events.push_back(FarEndEvent::Malformed(peer, why));
            return;
        }
        self.look(peer);
    }

    fn landed(&mut self, peer: Peer, count: usize) {
        let Some(host) = self.hosts.at(peer) else { return };
        let mut work = Work { target: &mut self.target, memory: &mut self.memory, longest: self.settings.packet_max };
        let Host { decoder, frames, asked, counted, .. } = host;
        if let Some(message) = decoder.landed(count) {
            work.take(message, frames, asked, counted);
        }
        self.look(peer);
    }

    /// Puts a host in the queue if something waits for it.
    #[inline]
    fn look(&mut self, peer: Peer) {
        if let Some(host) = self.hosts.at(peer)
            && host.has_something()
            && !host.is_blocked
            && !core::mem::replace(&mut host.is_ready, true)
        {
            self.ready.push_back(peer);
        }
    }

    /// Puts together what leaves to the next host.
    fn serve(&mut self, out: &mut Outbox) -> Option<Peer> {
        loop {
            let peer = self.ready.pop_front()?;
            let Some(host) = self.hosts.at(peer) else { continue };
            host.is_ready = false;
            if host.is_blocked || !host.has_something() {
                continue;
            }
            let mut sent = host.frames.len();
            core::mem::swap(&mut self.frames, &mut host.frames);
            while sent < STEP
                && let Some(asked) = host.asked.front_mut()
            {
                sent += asked.length + ssdtp2::HEADER_LENGTH;
                self.frames.extend_from_slice(&ssdtp2::header(ssdtp2::Flag::CompleteEop, asked.length));
                if asked.length < SHARED {
                    self.frames.extend_from_slice(&self.payload[..asked.length]);
                } else {
                    out.copy(&self.frames);
                    self.frames.clear();
                    out.share(self.payload.slice(..asked.length));
                }
                asked.number -= 1;
                if asked.number == 0 {
                    host.asked.pop_front();
                }
            }
            out.copy(&self.frames);
            self.frames.clear();
            let held = core::mem::take(&mut host.held);
            if held.is_empty() {
                self.look(peer);
            } else {
                self.receive(peer, &held);
            }
            return Some(peer);
        }
    }
}

impl Host {
    #[inline]
    fn has_something(&self) -> bool {
        !self.frames.is_empty() || !self.asked.is_empty()
    }
}

/// The part of a far end that answers packets.
struct Work<'a> {
    target: &'a mut Target,
    memory: &'a mut Ram,
    longest: usize,
}

impl Work<'_> {
    #[inline]
    fn take(
        &mut self,
        message: ssdtp2::Message<'_>,
        frames: &mut Vec<u8>,
        asked: &mut VecDeque<PacketRequest>,
        counted: &mut u64,
    ) {
        let ssdtp2::Message::Packet { data, end } = message else { return };
        let data = if data.first().is_some_and(|first| *first < COUNTED) { split_path(data).1 } else { data };
        match *data {
            [COUNTED, ..] => *counted += 1,
            [ECHO, ..] => ssdtp2::Message::Packet { data, end }.encode(frames),
            [SOURCE, n0, n1, l0, l1, l2, l3] => {
                let number = u16::from_be_bytes([n0, n1]);
                let length = (u32::from_be_bytes([l0, l1, l2, l3]) as usize).min(self.longest);
                if number > 0 && length > 0 {
                    asked.push_back(PacketRequest { number, length });
                }
            }
            [COUNT] => {
                let mut reply = [COUNT; 9];
                reply[1..].copy_from_slice(&counted.to_be_bytes());
                ssdtp2::Message::Packet { data: &reply, end: EndOfPacket::Eop }.encode(frames);
            }
            [DEFAULT_LOGICAL_ADDRESS, ..] => self.answer(data, end, frames),
            _ => {}
        }
    }

    /// Appends the frame of the target's reply.
    fn answer(&mut self, data: &[u8], end: EndOfPacket, frames: &mut Vec<u8>) {
        let begin = frames.len();
        frames.extend_from_slice(&[0; ssdtp2::HEADER_LENGTH]);
        self.target.receive(data, end, self.memory, frames);
        let length = frames.len() - begin - ssdtp2::HEADER_LENGTH;
        if length == 0 {
            frames.truncate(begin);
        } else {
            let header = ssdtp2::header(ssdtp2::Flag::CompleteEop, length);
            frames[begin..begin + ssdtp2::HEADER_LENGTH].copy_from_slice(&header);
        }
    }
}

impl Machine for FarEnd {
    type Command = ();
    type Event = FarEndEvent;

    fn handle(&mut self, _now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) => {
                let packet_max = self.settings.packet_max.max(64);
                let settings = ssdtp2::DecoderSettings { packet_max, ..ssdtp2::DecoderSettings::default() };
                let host = Host {
                    decoder: ssdtp2::Decoder::new(settings),
                    frames: Vec::new(),
                    held: Vec::new(),
                    asked: VecDeque::new(),
                    counted: 0,
                    is_ready: false,
                    is_blocked: false,
                };
                self.hosts.insert(peer, host);
            }
            Input::Received(peer, bytes) => self.receive(peer, bytes),
            Input::Landed(peer, count) => self.landed(peer, count),
            Input::Closed(peer, _) => {
                self.hosts.remove(peer);
            }
            Input::Blocked(peer) => {
                if let Some(host) = self.hosts.at(peer) {
                    host.is_blocked = true;
                }
            }
            Input::Drained(peer) => {
                if let Some(host) = self.hosts.at(peer) {
                    host.is_blocked = false;
                }
                self.look(peer);
            }
            Input::Command(()) | Input::Elapsed => {}
        }
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<FarEndEvent> {
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if let Some(peer) = self.to_close.pop_front() {
            return Output::Close(peer);
        }
        self.serve(out).map_or(Output::Idle(None), Output::Send)
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.hosts.at(peer)?.decoder.landing()
    }

    #[inline]
    fn has_room(&self, peer: Peer) -> bool {
        let has_room = |host: &Host| host.held.is_empty() && host.frames.len() < QUEUE && host.asked.len() < REQUESTS;
        self.hosts.get(peer).is_none_or(has_room)
    }
}
