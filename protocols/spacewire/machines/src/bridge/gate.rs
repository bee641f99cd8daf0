//! Gates: nodes that hosts reach over TCP.
use super::MalformedStream;
use crate::EndOfPacket;
use crate::gresb;
use crate::network::{Network, NodeId, Observer};
use crate::ssdtp2;
use alloc::vec::Vec;
use hodo_machine::Peer;

/// A node that hosts reach at TCP ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// The node.
    pub node: NodeId,
    /// The protocol, and its ports.
    pub protocol: GateProtocol,
    /// Bytes of the longest packet from a host. Bounds the memory of its connection.
    pub packet_max: usize,
    /// Packets and bytes of the node's transmit queue, beyond half of which a host is not read from.
    pub queue_max: (usize, usize),
}

/// The protocol of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GateProtocol {
    /// SSDTP2: both directions over one connection to this port.
    Ssdtp2 {
        /// The TCP port.
        port: u16,
        /// Bytes of a fragment to the host, or `None` for whole packets.
        fragment: Option<core::num::NonZeroUsize>,
    },
    /// GRESB: a port for either direction.
    Gresb {
        /// The TCP port from the host to the bridge.
        to_bridge: u16,
        /// The TCP port from the bridge to the host.
        to_host: u16,
        /// The order of the status bits.
        status_bits: gresb::StatusBits,
    },
}

/// Counters of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GateCounters {
    /// Packets from hosts into the network.
    pub packets_in: u64,
    /// Packets from the network to hosts.
    pub packets_out: u64,
    /// Bytes of packets from hosts.
    pub bytes_in: u64,
    /// Bytes of packets to hosts.
    pub bytes_out: u64,
    /// Time-codes from hosts.
    pub time_codes_in: u64,
    /// Time-codes to hosts.
    pub time_codes_out: u64,
    /// Packets from the network that no host was there for.
    pub unclaimed: u64,
    /// Packets from hosts that the network refused.
    pub refused: u64,
    /// Frames of hosts without a meaning here: registers, configuration.
    pub ignored: u64,
}

/// The direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    ToBridge,
    ToHost,
}

impl Gate {
    /// Returns the direction of connections to a port of this gate.
    pub(super) fn side_at(&self, port: u16) -> Option<Side> {
        match self.protocol {
            GateProtocol::Ssdtp2 { port: own, .. } => (port == own).then_some(Side::Both),
            GateProtocol::Gresb { to_bridge, to_host, .. } => {
                (port == to_bridge).then_some(Side::ToBridge).or((port == to_host).then_some(Side::ToHost))
            }
        }
    }

    /// Returns whether the node's queue takes what one receive may bring.
    pub(super) fn has_room(&self, (packets, bytes): (usize, usize)) -> bool {
        packets < self.queue_max.0 / 2 && bytes < self.queue_max.1 / 2
    }
}

/// A gate with its hosts.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) gate: Gate,
    pub(super) counters: GateCounters,
    /// Whether the host is not read from for a while.
    pub(super) is_sated: bool,
    sender: Option<Peer>,
    receiver: Option<Peer>,
}

impl Attached {
    pub(super) fn new(gate: Gate) -> Self {
        Attached { gate, counters: GateCounters::default(), is_sated: false, sender: None, receiver: None }
    }

    /// Attaches a host, and returns those whose place it takes.
    pub(super) fn attach(&mut self, peer: Peer, side: Side) -> [Option<Peer>; 2] {
        let sender = if side == Side::ToHost { None } else { self.sender.replace(peer) };
        let receiver = if side == Side::ToBridge { None } else { self.receiver.replace(peer) };
        [sender, receiver.filter(|receiver| Some(*receiver) != sender)]
    }

    pub(super) fn detach(&mut self, peer: Peer) {
        self.sender.take_if(|sender| *sender == peer);
        self.receiver.take_if(|receiver| *receiver == peer);
    }

    pub(super) fn hosts(&self) -> usize {
        let sender = self.sender.filter(|sender| Some(*sender) != self.receiver);
        usize::from(sender.is_some()) + usize::from(self.receiver.is_some())
    }

    /// Returns the host that packets go to.
    pub(super) fn receiver(&self) -> Option<Peer> {
        self.receiver
    }

    /// Appends frames of what has arrived at the node, up to about `most` bytes; without a host it is discarded.
    pub(super) fn collect<O: Observer>(
        &mut self,
        network: &mut Network<O>,
        is_claimed: bool,
        most: usize,
        packet: &mut Vec<u8>,
        frames: &mut Vec<u8>,
    ) {
        let node = self.gate.node;
        while let Some((_, code)) = network.receive_time_code(node) {
            // GRESB reports no time-codes to the host.
            if let (GateProtocol::Ssdtp2 { .. }, true) = (self.gate.protocol, is_claimed) {
                ssdtp2::Message::GotTimeCode(code).encode(frames);
                self.counters.time_codes_out += 1;
            }
        }
        while frames.len() < most {
            packet.clear();
            let Some(header) = network.receive_into(node, packet) else { return };
            if !is_claimed {
                self.counters.unclaimed += 1;
                continue;
            }
            self.counters.packets_out += 1;
            self.counters.bytes_out += packet.len() as u64;
            self.frame(packet, header.end, frames);
        }
    }

    fn frame(&mut self, packet: &[u8], end: EndOfPacket, frames: &mut Vec<u8>) {
        match self.gate.protocol {
            GateProtocol::Ssdtp2 { fragment: Some(fragment), .. } => {
                ssdtp2::encode_fragments(packet, end, fragment, frames);
            }
            GateProtocol::Ssdtp2 { fragment: None, .. } => {
                ssdtp2::Message::Packet { data: packet, end }.encode(frames);
            }
            GateProtocol::Gresb { status_bits, .. } => {
                let kept = packet.len().min(gresb::BODY_MAX);
                let is_truncated = kept < packet.len();
                let frame = gresb::ToHost { data: &packet[..kept], end, is_truncated };
                // A length of 24 bits always fits after the cut.
                let _ = frame.encode(status_bits, frames);
            }
        }
    }

    fn send<O: Observer>(&mut self, packet: &[u8], end: EndOfPacket, network: &mut Network<O>) {
        match network.send(self.gate.node, packet, end) {
            Ok(()) => {
                self.counters.packets_in += 1;
                self.counters.bytes_in += packet.len() as u64;
            }
            Err(_) => self.counters.refused += 1,
        }
    }

    fn send_time_code<O: Observer>(&mut self, code: u8, network: &mut Network<O>) {
        self.counters.time_codes_in += 1;
        // The node is one of this network's.
        let _ = network.time_code(self.gate.node, code);
    }
}

/// A connected host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) gate: usize,
    pub(super) side: Side,
    pub(super) is_blocked: bool,
    decoder: Decoder,
}

#[derive(Debug)]
enum Decoder {
    Ssdtp2(ssdtp2::Decoder),
    Gresb(gresb::FromHostDecoder),
}

impl Host {
    pub(super) fn new(number: usize, side: Side, gate: &Gate) -> Self {
        let packet_max = gate.packet_max;
        let decoder = match gate.protocol {
            GateProtocol::Ssdtp2 { .. } => {
                let settings = ssdtp2::DecoderSettings { packet_max, ..ssdtp2::DecoderSettings::default() };
                Decoder::Ssdtp2(ssdtp2::Decoder::new(settings))
            }
            GateProtocol::Gresb { .. } => {
                let body_max = packet_max.min(gresb::BODY_MAX);
                let settings = gresb::DecoderSettings { body_max, ..gresb::DecoderSettings::default() };
                Decoder::Gresb(gresb::FromHostDecoder::new(settings))
            }
        };
        Host { gate: number, side, is_blocked: false, decoder }
    }

    /// Takes bytes of the stream, and sends the packets in them.
    pub(super) fn receive<O: Observer>(
        &mut self,
        bytes: &mut &[u8],
        gate: &mut Attached,
        network: &mut Network<O>,
    ) -> Result<(), MalformedStream> {
        // Nothing is expected on the connection that carries packets to the host.
        if self.side == Side::ToHost {
            gate.counters.ignored += 1;
            return Ok(());
        }
        match &mut self.decoder {
            Decoder::Ssdtp2(decoder) => {
                while let Some(message) = decoder.next(bytes)? {
                    take_message(message, gate, network);
                }
            }
            Decoder::Gresb(decoder) => {
                while let Some(frame) = decoder.next(bytes)? {
                    take_frame(frame, gate, network);
                }
            }
        }
        Ok(())
    }

    pub(super) fn landing(&mut self) -> Option<&mut [u8]> {
        match &mut self.decoder {
            _ if self.side == Side::ToHost => None,
            Decoder::Ssdtp2(decoder) => decoder.landing(),
            Decoder::Gresb(decoder) => decoder.landing(),
        }
    }

    pub(super) fn landed<O: Observer>(&mut self, count: usize, gate: &mut Attached, network: &mut Network<O>) {
        match &mut self.decoder {
            Decoder::Ssdtp2(decoder) => {
                if let Some(message) = decoder.landed(count) {
                    take_message(message, gate, network);
                }
            }
            Decoder::Gresb(decoder) => {
                if let Some(frame) = decoder.landed(count) {
                    take_frame(frame, gate, network);
                }
            }
        }
    }
}

fn take_message<O: Observer>(message: ssdtp2::Message<'_>, gate: &mut Attached, network: &mut Network<O>) {
    match message {
        ssdtp2::Message::Packet { data, end } => gate.send(data, end, network),
        ssdtp2::Message::SendTimeCode(code) => gate.send_time_code(code, network),
        _ => gate.counters.ignored += 1,
    }
}

fn take_frame<O: Observer>(frame: gresb::FromHost<'_>, gate: &mut Attached, network: &mut Network<O>) {
    match frame {
        gresb::FromHost::Packet(data) => gate.send(data, EndOfPacket::Eop, network),
        gresb::FromHost::SendTimeCode(code) => gate.send_time_code(code, network),
        _ => gate.counters.ignored += 1,
    }
}
