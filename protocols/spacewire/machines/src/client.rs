//! A host: a client of a bridge or box that speaks SSDTP2 or GRESB.
mod inbox;
#[cfg(test)]
mod tests;

use crate::EndOfPacket;
use crate::bridge::MalformedStream;
use crate::{gresb, ssdtp2};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer};
pub use inbox::{Inbox, InboxSettings};

/// Bytes that leave in one step.
const STEP: usize = 256 << 10;
/// The connection that packets leave on, and the other one of GRESB.
const OUT: Peer = Peer(0);
const BACK: Peer = Peer(1);

/// Takes what arrives.
pub trait Receiver {
    /// Takes a packet.
    fn packet(&mut self, data: &[u8], end: EndOfPacket);

    /// Takes a time-code.
    fn time_code(&mut self, code: u8);

    /// Returns whether there is room for another packet. Without it the bridge is held back.
    fn has_room(&self) -> bool;
}

/// The port of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Port {
    /// SSDTP2 at this address.
    Ssdtp2(Address),
    /// GRESB.
    Gresb {
        /// The address for packets to the bridge.
        to_bridge: Address,
        /// The address for packets from it.
        to_host: Address,
        /// The order of the status bits.
        status_bits: gresb::StatusBits,
    },
}

/// The directions in which a client uses its port. GRESB has a connection for each, and another program may have the other one; SSDTP2
/// has one for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Directions {
    /// Packets leave and arrive.
    #[default]
    Both,
    /// Packets leave. Over GRESB none arrive.
    Sending,
    /// Packets arrive, and none may be sent.
    Receiving,
}

/// The settings of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// The port of the bridge.
    pub port: Port,
    /// The directions that are used.
    pub directions: Directions,
    /// Bytes of the longest packet that may arrive.
    pub packet_max: usize,
    /// Bytes that wait to leave, beyond which nothing more is taken.
    pub queue_max: usize,
}

impl ClientSettings {
    /// Returns the settings for a port that is used in both directions, with 16 MiB for a packet and for the queue.
    #[must_use]
    pub const fn new(port: Port) -> Self {
        ClientSettings { port, directions: Directions::Both, packet_max: 16 << 20, queue_max: 16 << 20 }
    }

    /// Returns whether each of the two connections is needed.
    const fn needed(&self) -> [bool; 2] {
        match (&self.port, self.directions) {
            (Port::Ssdtp2(_), _) | (_, Directions::Sending) => [true, false],
            (_, Directions::Receiving) => [false, true],
            (_, Directions::Both) => [true, true],
        }
    }
}

/// An event at a client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// Packets may be sent.
    Connected(Ends),
    /// The bridge is gone, or could not be reached. What waited to leave is lost.
    Closed(Closed),
    /// The bridge sent a stream that cannot be understood, and was disconnected.
    Malformed(MalformedStream),
}

/// The reason that nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotSend {
    /// The bridge is not connected.
    #[error("not connected")]
    NotConnected,
    /// As much waits to leave as the settings allow.
    #[error("{0} bytes wait to leave already: let them")]
    Full(usize),
    /// The client was made for receiving.
    #[error("this port was opened for receiving alone")]
    ReceivesOnly,
    /// GRESB has no way to send a packet that ends with EEP.
    #[error("GRESB cannot send a packet that ends with EEP")]
    NoEep,
    /// The packet is longer than a frame can say.
    #[error(transparent)]
    TooLong(#[from] gresb::TooLong),
}

/// A client.
#[derive(Debug)]
pub struct Client<R> {
    settings: ClientSettings,
    receiver: R,
    decoder: Decoder,
    to_open: VecDeque<Peer>,
    to_close: VecDeque<Peer>,
    open: [bool; 2],
    is_connected: bool,
    is_blocked: bool,
    /// Frames, and how much of them has left.
    frames: Vec<u8>,
    left: usize,
    /// Packets that are not copied, each behind so many bytes of `frames`.
    shared: VecDeque<(usize, Bytes)>,
    queued: usize,
    /// Bytes that have left so far.
    passed: u64,
    events: VecDeque<ClientEvent>,
}

#[derive(Debug)]
enum Decoder {
    Ssdtp2(ssdtp2::Decoder),
    Gresb(gresb::ToHostDecoder),
}

impl<R: Receiver> Client<R> {
    /// Creates a client, which connects at once.
    #[must_use]
    pub fn new(settings: ClientSettings, receiver: R) -> Self {
        let decoder = decoder(&settings);
        let mut client = Client {
            settings,
            receiver,
            decoder,
            to_open: VecDeque::new(),
            to_close: VecDeque::new(),
            open: [false; 2],
            is_connected: false,
            is_blocked: false,
            frames: Vec::new(),
            left: 0,
            shared: VecDeque::new(),
            queued: 0,
            passed: 0,
            events: VecDeque::new(),
        };
        client.connect();
        client
    }

    /// Connects again, after the connection was lost.
    pub fn connect(&mut self) {
        if self.to_open.is_empty() && self.open == [false; 2] {
            self.decoder = decoder(&self.settings);
            let needed = self.settings.needed();
            self.to_open.extend([OUT, BACK].into_iter().filter(|peer| needed[peer.0 as usize]));
        }
    }

    /// Returns whether the bridge is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Returns the receiver.
    #[must_use]
    pub fn receiver(&self) -> &R {
        &self.receiver
    }

    /// Returns the receiver, to take from it.
    pub fn receiver_mut(&mut self) -> &mut R {
        &mut self.receiver
    }

    /// Returns how many bytes wait to leave, with their frames.
    #[must_use]
    #[inline]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Returns how many bytes have been passed to the driver so far.
    #[must_use]
    #[inline]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Returns whether the bridge holds the client back.
    #[must_use]
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Sends a packet: it leaves with the next turn of the driver.
    ///
    /// # Errors
    /// The reason that it cannot be sent. Nothing of it is then.
    #[inline]
    pub fn send(&mut self, packet: &[u8], end: EndOfPacket) -> Result<(), CannotSend> {
        self.check(end)?;
        let before = self.frames.len();
        match &self.settings.port {
            Port::Ssdtp2(_) => ssdtp2::Message::Packet { data: packet, end }.encode(&mut self.frames),
            Port::Gresb { .. } => gresb::FromHost::Packet(packet).encode(&mut self.frames)?,
        }
        self.queued += self.frames.len() - before;
        Ok(())
    }

    /// Sends a packet whose bytes are not copied.
    ///
    /// # Errors
    /// The reason that it cannot be sent. Nothing of it is then.
    pub fn send_shared(&mut self, packet: Bytes, end: EndOfPacket) -> Result<(), CannotSend> {
        self.check(end)?;
        let before = self.frames.len();
        match &self.settings.port {
            Port::Ssdtp2(_) => {
                let flag = match end {
                    EndOfPacket::Eop => ssdtp2::Flag::CompleteEop,
                    EndOfPacket::Eep => ssdtp2::Flag::CompleteEep,
                };
                self.frames.extend_from_slice(&ssdtp2::header(flag, packet.len()));
            }
            Port::Gresb { .. } => self.frames.extend_from_slice(&gresb::packet_header(packet.len())?),
        }
        self.queued += self.frames.len() - before + packet.len();
        self.shared.push_back((self.frames.len(), packet));
        Ok(())
    }

    /// Sends a time-code.
    ///
    /// # Errors
    /// The reason that it cannot be sent.
    pub fn send_time_code(&mut self, code: u8) -> Result<(), CannotSend> {
        self.check(EndOfPacket::Eop)?;
        let before = self.frames.len();
        match &self.settings.port {
            Port::Ssdtp2(_) => ssdtp2::Message::SendTimeCode(code).encode(&mut self.frames),
            Port::Gresb { .. } => gresb::FromHost::SendTimeCode(code).encode(&mut self.frames)?,
        }
        self.queued += self.frames.len() - before;
        Ok(())
    }

    #[inline]
    fn check(&self, end: EndOfPacket) -> Result<(), CannotSend> {
        if !self.is_connected {
            return Err(CannotSend::NotConnected);
        }
        if self.queued >= self.settings.queue_max {
            return Err(CannotSend::Full(self.queued));
        }
        if self.settings.directions == Directions::Receiving {
            return Err(CannotSend::ReceivesOnly);
        }
        match (&self.settings.port, end) {
            (Port::Gresb { .. }, EndOfPacket::Eep) => Err(CannotSend::NoEep),
            _ => Ok(()),
        }
    }

    fn opened(&mut self, peer: Peer, ends: &Ends) {
        if let Some(open) = self.open.get_mut(peer.0 as usize) {
            *open = true;
        }
        if self.open == self.settings.needed() && !self.is_connected {
            self.is_connected = true;
            self.events.push_back(ClientEvent::Connected(ends.clone()));
        }
    }

    /// Ends every connection.
    fn end(&mut self, event: ClientEvent) {
        self.is_connected = false;
        self.is_blocked = false;
        self.to_open.clear();
        for peer in [OUT, BACK] {
            if core::mem::take(&mut self.open[peer.0 as usize]) {
                self.to_close.push_back(peer);
            }
        }
        self.shared.clear();
        self.frames.clear();
        self.left = 0;
        self.queued = 0;
        self.events.push_back(event);
    }

    /// Passes on what comes next, all of it or a step, and returns how much that was.
    fn pass(&mut self, out: &mut Outbox) -> usize {
        let mut passed = 0;
        while passed < STEP {
            let until = self.shared.front().map_or(self.frames.len(), |(behind, _)| *behind);
            out.copy(&self.frames[self.left..until]);
            passed += until - self.left;
            self.left = until;
            let Some((_, packet)) = self.shared.pop_front() else { break };
            passed += packet.len();
            out.share(packet);
        }
        if self.left == self.frames.len() {
            self.frames.clear();
            self.left = 0;
        } else if self.left > STEP {
            self.frames.drain(..self.left);
            self.shared.iter_mut().for_each(|(behind, _)| *behind -= self.left);
            self.left = 0;
        }
        passed
    }

    fn receive(&mut self, mut bytes: &[u8]) {
        let Client { decoder, receiver, .. } = self;
        let result = match decoder {
            Decoder::Ssdtp2(decoder) => loop {
                match decoder.next(&mut bytes) {
                    Ok(Some(message)) => take_message(message, receiver),
                    Ok(None) => break Ok(()),
                    Err(why) => break Err(MalformedStream::Ssdtp2(why)),
                }
            },
            Decoder::Gresb(decoder) => loop {
                match decoder.next(&mut bytes) {
                    Ok(Some(frame)) => receiver.packet(frame.data, gresb_end(frame)),
                    Ok(None) => break Ok(()),
                    Err(why) => break Err(MalformedStream::Gresb(why)),
                }
            },
        };
        if let Err(why) = result {
            self.end(ClientEvent::Malformed(why));
        }
    }

    fn landed(&mut self, count: usize) {
        let Client { decoder, receiver, .. } = self;
        match decoder {
            Decoder::Ssdtp2(decoder) => decoder.landed(count).into_iter().for_each(|it| take_message(it, receiver)),
            Decoder::Gresb(decoder) => {
                decoder.landed(count).into_iter().for_each(|frame| receiver.packet(frame.data, gresb_end(frame)));
            }
        }
    }

    fn address(&self, peer: Peer) -> Address {
        match &self.settings.port {
            Port::Gresb { to_host, .. } if peer == BACK => to_host.clone(),
            Port::Ssdtp2(to_bridge) | Port::Gresb { to_bridge, .. } => to_bridge.clone(),
        }
    }

    /// Returns whether packets arrive on a connection.
    fn is_inbound(&self, peer: Peer) -> bool {
        peer == if matches!(self.settings.port, Port::Gresb { .. }) { BACK } else { OUT }
    }
}

fn decoder(settings: &ClientSettings) -> Decoder {
    let packet_max = settings.packet_max;
    match settings.port {
        Port::Ssdtp2(_) => {
            let settings = ssdtp2::DecoderSettings { packet_max, ..ssdtp2::DecoderSettings::default() };
            Decoder::Ssdtp2(ssdtp2::Decoder::new(settings))
        }
        Port::Gresb { status_bits, .. } => {
            let body_max = packet_max.min(gresb::BODY_MAX);
            Decoder::Gresb(gresb::ToHostDecoder::new(gresb::DecoderSettings { body_max, status_bits }))
        }
    }
}

#[inline]
fn take_message(message: ssdtp2::Message<'_>, receiver: &mut impl Receiver) {
    match message {
        ssdtp2::Message::Packet { data, end } => receiver.packet(data, end),
        ssdtp2::Message::GotTimeCode(code) => receiver.time_code(code),
        // A bridge answers nothing else, because nothing else was asked.
        _ => {}
    }
}

/// Returns how a packet ended. A truncated one is not whole, whatever its marker.
fn gresb_end(frame: gresb::ToHost<'_>) -> EndOfPacket {
    if frame.is_truncated { EndOfPacket::Eep } else { frame.end }
}

impl<R: Receiver> Machine for Client<R> {
    type Command = ();
    type Event = ClientEvent;

    fn handle(&mut self, _now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, ends) => self.opened(peer, ends),
            Input::Received(peer, bytes) if self.is_inbound(peer) => self.receive(bytes),
            Input::Landed(peer, count) if self.is_inbound(peer) => self.landed(count),
            Input::Closed(peer, why) => {
                if let Some(open) = self.open.get_mut(peer.0 as usize) {
                    *open = false;
                    self.end(ClientEvent::Closed(why));
                }
            }
            Input::Blocked(_) => self.is_blocked = true,
            Input::Drained(_) => self.is_blocked = false,
            _ => {}
        }
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<ClientEvent> {
        if let Some(peer) = self.to_close.pop_front() {
            return Output::Close(peer);
        }
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if let Some(peer) = self.to_open.pop_front() {
            return Output::Open(peer, self.address(peer));
        }
        if self.is_blocked || self.queued == 0 {
            return Output::Idle(None);
        }
        let sent = self.pass(out);
        self.queued -= sent;
        self.passed += sent as u64;
        Output::Send(OUT)
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        if !self.is_inbound(peer) {
            return None;
        }
        match &mut self.decoder {
            Decoder::Ssdtp2(decoder) => decoder.landing(),
            Decoder::Gresb(decoder) => decoder.landing(),
        }
    }

    #[inline]
    fn has_room(&self, peer: Peer) -> bool {
        !self.is_inbound(peer) || self.receiver.has_room()
    }
}
