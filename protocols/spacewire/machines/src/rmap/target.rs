//! A target: commands in, replies out, in between a [`Memory`] (5.3.3, 5.4.3, 5.5.3).
//!
//! The first check that fails decides:
//!
//! | check | fails with |
//! |---|---|
//! | protocol identifier, packet type not a reply, whole header | no reply (5.3.3.4) |
//! | header CRC | no reply (5.3.3.4) |
//! | packet type and command code | 2; a reserved type has no reply, unless [`TargetSettings::replies_to_reserved`] (5.3.3.4.6) |
//! | target logical address | 12 |
//! | key | 3 |
//! | length of a read-modify-write | 11 |
//! | data within the verify buffer | 9 |
//! | authorisation by the memory | 10, 3 or 12 |
//! | all data there | 5, or 7 after an EEP |
//! | data CRC | 4 |
//! | nothing behind the data, and an EOP | 6, or 7 after an EEP |
//! | the memory itself | 1 |
//!
//! A command without a reply bit gets none, whatever happens. The standard leaves the order of the status codes to the target
//! (5.6.1 d); the order of the header's is that of OpenRMAP, an implementation for gate arrays. Devices write the data of
//! an unverified write as it arrives, before they know its CRC (5.3.3.6.9): [`TargetSettings::writes_unchecked`] does that too.

mod statistics;
#[cfg(test)]
mod tests;

pub use statistics::TargetStatistics;

use super::memory::MODIFY_MAX;
use super::packet::{Kind, LENGTH_MAX, Malformed};
use super::{Access, CommandHeader, Crc, Memory, Operation, Refusal, ReplyHeader, Status};
use crate::EndOfPacket;
use alloc::vec::Vec;
use thiserror::Error;

/// The settings of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSettings {
    /// The logical address, or `None` to serve every one.
    pub logical_address: Option<u8>,
    /// The key, or `None` to leave keys to the memory.
    pub key: Option<u8>,
    /// Bytes of the buffer that the data of verified writes and read-modify-writes goes through.
    pub verify_buffer: u32,
    /// Whether an unverified write stores the data of a packet that is damaged or cut short, as devices do. The status is that of
    /// the defect in any case.
    pub writes_unchecked: bool,
    /// The largest data length of a read or write; longer ones are not authorised. Bounds the memory of a reply.
    pub length_max: u32,
    /// Whether commands of a reserved packet type get a reply, which the standard allows (5.3.3.4.6 c).
    pub replies_to_reserved: bool,
    /// The draft of the standard that the CRCs follow.
    pub crc: Crc,
}

impl Default for TargetSettings {
    /// Returns the settings of a target at the default logical address with the key 0, which verifies writes of any length.
    fn default() -> Self {
        TargetSettings {
            logical_address: Some(super::packet::DEFAULT_LOGICAL_ADDRESS),
            key: Some(0),
            verify_buffer: LENGTH_MAX,
            writes_unchecked: false,
            length_max: LENGTH_MAX,
            replies_to_reserved: false,
            crc: Crc::Standard,
        }
    }
}

/// A target.
#[derive(Debug, Clone)]
pub struct Target {
    settings: TargetSettings,
    statistics: TargetStatistics,
}

/// The outcome of a packet at a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The command was carried out or refused.
    Finished {
        /// The status, also where no reply reports it.
        status: Status,
        /// Whether there is a reply to be sent.
        has_reply: bool,
    },
    /// The packet was discarded without a reply.
    Discarded(Discarded),
}

/// The reason to discard a packet without a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Discarded {
    /// The packet belongs to another protocol.
    #[error("another protocol")]
    OtherProtocol,
    /// The packet is a reply.
    #[error("a reply, not a command")]
    Reply,
    /// An EOP ends the packet within its header.
    #[error("early EOP in the header")]
    Truncated,
    /// An EEP ends the packet within its header.
    #[error("EEP in the header")]
    Eep,
    /// The header's CRC is wrong.
    #[error("header CRC wrong")]
    HeaderCrc,
    /// The packet type is reserved.
    #[error("reserved packet type")]
    ReservedType,
}

impl Target {
    /// Creates a target.
    #[must_use]
    pub fn new(settings: TargetSettings) -> Self {
        Target { settings, statistics: TargetStatistics::default() }
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &TargetSettings {
        &self.settings
    }

    /// Returns the counts since the target was created.
    #[must_use]
    pub fn statistics(&self) -> &TargetStatistics {
        &self.statistics
    }

    /// Takes in a packet that begins with the target logical address, and appends the reply, if there is one, with its path.
    pub fn receive(
        &mut self,
        packet: &[u8],
        end: EndOfPacket,
        memory: &mut impl Memory,
        reply: &mut Vec<u8>,
    ) -> Outcome {
        let (header, body) = match CommandHeader::decode(packet, self.settings.crc) {
            Ok(command) => command,
            Err(error) => return self.discard(discarded(error, end)),
        };
        let is_reserved = header.instruction.kind() == Kind::Reserved;
        if is_reserved && !self.settings.replies_to_reserved {
            return self.discard(Discarded::ReservedType);
        }
        let status = self.serve(&header, body, end, memory, reply);
        let has_reply = header.instruction.requests_reply();
        self.statistics.count(&header, status, has_reply);
        Outcome::Finished { status, has_reply }
    }

    fn discard(&mut self, why: Discarded) -> Outcome {
        self.statistics.discard(why);
        Outcome::Discarded(why)
    }

    /// Carries out a command and appends its reply.
    fn serve(
        &self,
        command: &CommandHeader,
        body: &[u8],
        end: EndOfPacket,
        memory: &mut impl Memory,
        reply: &mut Vec<u8>,
    ) -> Status {
        let crc = self.settings.crc;
        let instruction = command.instruction.reply();
        let start = reply.len();
        reply.extend_from_slice(command.reply_address.path());
        let header_at = reply.len();
        // The data is read to where it is sent from; the header is written in front of it afterwards.
        let data_at = header_at + ReplyHeader::length_of(instruction);
        let checked = self.check(command, memory).and_then(|access| {
            let data = command.data(body, end, crc).map_err(|defect| {
                if self.settings.writes_unchecked && access.operation == (Operation::Write { verify: false }) {
                    let received = &body[..body.len().min(access.length as usize)];
                    // The defect is reported, whatever the memory does.
                    let _ = memory.write(&Access { length: received.len() as u32, ..access }, received);
                }
                defect.status()
            })?;
            reply.resize(data_at, 0);
            perform(&access, data, memory, reply)
        });
        let status = checked.err().unwrap_or(Status::Success);
        if !command.instruction.requests_reply() {
            reply.truncate(start);
            return status;
        }
        if status != Status::Success {
            reply.truncate(data_at);
        }
        let length = reply.len().saturating_sub(data_at) as u32;
        let header = ReplyHeader {
            initiator: command.initiator,
            instruction,
            status,
            target: command.target,
            transaction: command.transaction,
            length,
        };
        let code = reply.get(data_at..).map_or(0, |data| crc.of(data));
        header.encode_at(header_at, crc, reply);
        if !instruction.is_write() {
            reply.push(code);
        }
        status
    }

    /// Checks everything but the data.
    fn check(&self, command: &CommandHeader, memory: &impl Memory) -> Result<Access, Status> {
        let is_command = command.instruction.kind() == Kind::Command;
        let operation = command.instruction.operation().filter(|_| is_command).ok_or(Status::UnusedCode)?;
        if self.settings.logical_address.is_some_and(|address| address != command.target) {
            return Err(Status::InvalidLogicalAddress);
        }
        if self.settings.key.is_some_and(|key| key != command.key) {
            return Err(Status::InvalidKey);
        }
        let is_modify = operation == Operation::ReadModifyWrite;
        if is_modify && (!command.length.is_multiple_of(2) || command.length as usize > 2 * MODIFY_MAX) {
            return Err(Status::ModifyLength);
        }
        let length = if is_modify { command.length / 2 } else { command.length };
        let is_verified = is_modify || operation == Operation::Write { verify: true };
        if is_verified && length > self.settings.verify_buffer {
            return Err(Status::VerifyBufferOverrun);
        }
        if length > self.settings.length_max {
            return Err(Status::NotAuthorised);
        }
        let access = Access {
            operation,
            address: command.address,
            length,
            increments: command.instruction.increments(),
            key: command.key,
            target: command.target,
            initiator: command.initiator,
        };
        memory.authorise(&access).map_err(|refusal| match refusal {
            Refusal::Key => Status::InvalidKey,
            Refusal::LogicalAddress => Status::InvalidLogicalAddress,
            Refusal::NotAuthorised => Status::NotAuthorised,
        })?;
        Ok(access)
    }
}

/// Reads or writes, and appends what a read found.
fn perform(access: &Access, data: &[u8], memory: &mut impl Memory, found: &mut Vec<u8>) -> Result<(), Status> {
    let at = found.len();
    let done = match access.operation {
        Operation::Write { .. } => memory.write(access, data),
        Operation::Read => {
            found.resize(at + access.length as usize, 0);
            memory.read(access, &mut found[at..])
        }
        Operation::ReadModifyWrite => {
            let (data, mask) = data.split_at(access.length as usize);
            found.resize(at + data.len(), 0);
            memory.modify(access, data, mask, &mut found[at..])
        }
    };
    done.map_err(|_| Status::General)
}

fn discarded(error: Malformed, end: EndOfPacket) -> Discarded {
    match error {
        Malformed::Protocol(_) => Discarded::OtherProtocol,
        Malformed::Kind(_) => Discarded::Reply,
        Malformed::HeaderCrc { .. } => Discarded::HeaderCrc,
        Malformed::Truncated(_) | Malformed::Data(_) if end == EndOfPacket::Eep => Discarded::Eep,
        Malformed::Truncated(_) | Malformed::Data(_) => Discarded::Truncated,
    }
}
