//! The memory of `far=rmap` behind a simulated link, with both ends of RMAP.

use crate::options::Target;
use crate::request;
use hodo_machine::Instant;
use hodo_measure::Mode;
use hodo_spacewire::EndOfPacket;
use hodo_spacewire::rmap::{Destination, Initiator, InitiatorSettings, Ram, ReplyAddress, TargetSettings};
use std::time::Duration;

/// The time after which a command without a reply makes room for others.
const DEADLINE: Duration = Duration::from_millis(100);

/// The initiator at one node, and the memory at the other.
pub(super) struct Memory {
    initiator: Initiator,
    to: Destination,
    address: u64,
    payload: Vec<u8>,
    target: hodo_spacewire::rmap::Target,
    ram: Ram,
}

/// The answer to an operation.
pub(super) struct Answer {
    pub(super) number: u32,
    pub(super) succeeded: bool,
}

impl Memory {
    /// Creates a memory of the largest size at the target's address. `paths` lead there and back; `in_flight` is the number of operations
    /// and their largest size.
    pub(super) fn new(target: &Target, paths: &[Vec<u8>; 2], (window, size): (usize, usize)) -> Memory {
        let reply_address = ReplyAddress::from_path(&paths[1]).unwrap_or_default();
        let to = Destination { path: paths[0].clone(), reply_address, ..target.to.clone() };
        // Where replies are lost, their commands are outstanding until the deadline.
        let outstanding_max = (4 * window).clamp(64, 1 << 15) as u16;
        let settings = TargetSettings {
            logical_address: Some(to.logical_address),
            key: Some(to.key),
            ..TargetSettings::default()
        };
        Memory {
            initiator: Initiator::new(InitiatorSettings { logical_address: target.initiator, outstanding_max }),
            to,
            address: target.address,
            payload: vec![0; size.max(1)],
            target: hodo_spacewire::rmap::Target::new(settings),
            ram: Ram::new(target.address, vec![0; size.max(1)]),
        }
    }

    /// Appends the command of an operation. One that finds no room is lost, as if its command were.
    pub(super) fn request(&mut self, mode: Mode, size: u32, number: u32, now: Instant, command: &mut Vec<u8>) {
        let request = request(mode, self.address, &self.payload[..size as usize]);
        let _ = self.initiator.send(&request, &self.to, u64::from(number), now + DEADLINE, command);
    }

    /// Appends the memory's reply to a command.
    pub(super) fn serve(&mut self, packet: &[u8], end: EndOfPacket, reply: &mut Vec<u8>) {
        self.target.receive(packet, end, &mut self.ram, reply);
    }

    /// Takes a reply.
    pub(super) fn receive(&mut self, packet: &[u8], end: EndOfPacket, now: Instant) -> Option<Answer> {
        // What has no reply by now is given up where a later reply comes, or with the link.
        while self.initiator.expire(now).is_some() {}
        let completion = self.initiator.receive(packet, end).ok()?;
        Some(Answer { number: completion.tag as u32, succeeded: completion.result.is_ok() })
    }
}
