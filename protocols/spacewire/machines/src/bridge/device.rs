//! Nodes with applications of their own.
use crate::EndOfPacket;
use crate::network::{Network, NodeId, Observer};
use crate::rmap::{Ram, Target, TargetSettings, TargetStatistics};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes of answers that may wait to leave before the next packet is looked at.
const QUEUE: usize = 64 << 10;

/// The application of a node.
#[derive(Debug, Clone)]
pub enum Device {
    /// A memory behind an RMAP target.
    Memory(TargetSettings, Ram),
    /// Each packet is sent back, behind this path.
    Echo(Vec<u8>),
    /// Packets are taken, and nothing is done with them.
    Sink,
    /// This packet is sent again and again, as fast as the link takes it. Packets that arrive are taken.
    Babble(Vec<u8>),
}

/// A device at work.
#[derive(Debug)]
pub(super) enum Application {
    Memory(Box<Target>, Ram),
    Echo(Vec<u8>),
    Sink,
    Babble(Vec<u8>),
}

impl Application {
    pub(super) fn new(device: Device) -> Self {
        match device {
            Device::Memory(settings, ram) => Application::Memory(Box::new(Target::new(settings)), ram),
            Device::Echo(path) => Application::Echo(path),
            Device::Sink => Application::Sink,
            Device::Babble(packet) => Application::Babble(packet),
        }
    }

    /// Returns whether it has something to do, or will soon, although nothing arrives.
    pub(super) fn has_to_look<O: Observer>(&self, node: NodeId, network: &Network<O>) -> bool {
        matches!(self, Application::Babble(_)) || network.peek(node).is_some()
    }

    /// Takes the packets that have arrived at `node`, as long as answers to them have room.
    pub(super) fn answer<O: Observer>(&mut self, node: NodeId, network: &mut Network<O>, packet: &mut Vec<u8>) {
        if let Application::Babble(said) = self {
            while network.queued(node).1 < QUEUE && network.send(node, said, EndOfPacket::Eop).is_ok() {}
            // What arrives is not to fill its queue.
            while network.receive_into(node, packet).is_some() {
                packet.clear();
            }
            return;
        }
        let mut reply = Vec::new();
        while network.queued(node).1 < QUEUE {
            packet.clear();
            let Some(header) = network.receive_into(node, packet) else { return };
            reply.clear();
            let mut end = EndOfPacket::Eop;
            match self {
                Application::Memory(target, ram) => {
                    target.receive(packet, header.end, ram, &mut reply);
                }
                Application::Echo(path) => {
                    reply.extend_from_slice(path);
                    reply.extend_from_slice(packet);
                    end = header.end;
                }
                Application::Sink | Application::Babble(_) => {}
            }
            if !reply.is_empty() {
                // Only a reply that is longer than all of the node's queue does not fit: the initiator's deadline tells.
                let _ = network.send(node, &reply, end);
            }
        }
    }

    /// Returns what the target of a memory has counted.
    pub(super) fn statistics(&self) -> Option<&TargetStatistics> {
        match self {
            Application::Memory(target, _) => Some(target.statistics()),
            _ => None,
        }
    }
}
