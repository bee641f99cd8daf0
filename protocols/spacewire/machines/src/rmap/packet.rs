//! Packets of RMAP, without the path in front of them.
//!
//! A command (5.3.1, 5.4.1, 5.5.1), [`CommandHeader`] and data:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | target logical address |
//! | 1 | protocol identifier, 0x01 |
//! | 1 | [`Instruction`] |
//! | 1 | key |
//! | 0, 4, 8 or 12 | [`ReplyAddress`] |
//! | 1 | initiator logical address |
//! | 2 | transaction identifier |
//! | 5 | extended address and address |
//! | 3 | data length |
//! | 1 | header CRC |
//! | data length | data; in a read-modify-write the data, then the mask; none in a read |
//! | 1 | data CRC; none in a read |
//!
//! A reply (5.3.2, 5.4.2, 5.5.2), [`ReplyHeader`] and data:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | initiator logical address |
//! | 1 | protocol identifier, 0x01 |
//! | 1 | [`Instruction`] of the command with its type changed |
//! | 1 | [`Status`] |
//! | 1 | target logical address |
//! | 2 | transaction identifier |
//! | 1 | reserved, 0; not in the reply to a write |
//! | 3 | data length; not in the reply to a write |
//! | 1 | header CRC |
//! | data length | data; not in the reply to a write |
//! | 1 | data CRC; not in the reply to a write |
//!
//! Numbers are big-endian. Both codes begin anew: the data's covers the data alone.

mod command;
mod instruction;
mod reply;
mod status;

pub use command::{Command, CommandHeader, ReplyAddress};
pub use instruction::{Instruction, Kind, Operation};
pub use reply::{Reply, ReplyHeader};
pub use status::Status;

use super::Crc;
use crate::EndOfPacket;
use hodo_machine::Truncated;
use thiserror::Error;

/// The protocol identifier of RMAP.
pub const PROTOCOL: u8 = 0x01;
/// The logical address of a node that has no other one.
pub const DEFAULT_LOGICAL_ADDRESS: u8 = 0xFE;
/// The largest data length that 24 bits express.
pub const LENGTH_MAX: u32 = 0xFF_FFFF;
/// The largest address that 40 bits express: the extended address before the address.
pub const ADDRESS_MAX: u64 = 0xFF_FFFF_FFFF;

/// The first logical address; smaller bytes are ports of routers.
const FIRST_LOGICAL_ADDRESS: u8 = 32;

/// The defect of bytes that are no packet of RMAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The packet ends within its header.
    #[error(transparent)]
    Truncated(#[from] Truncated),
    /// The packet belongs to another protocol.
    #[error("protocol identifier {0:#04x}, not that of RMAP, 0x01")]
    Protocol(u8),
    /// A reply arrived in place of a command, or a command in place of a reply.
    #[error("instruction {:#04x} belongs to the other kind of packet: check which end is the target", .0.byte())]
    Kind(Instruction),
    /// The header's CRC is wrong.
    #[error("header CRC {received:#04x}, not {computed:#04x}: the other end may use the CRC of draft E")]
    HeaderCrc {
        /// The CRC in the packet.
        received: u8,
        /// The CRC of the header that came with it.
        computed: u8,
    },
    /// The data does not match the header.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// A difference between the data of a packet and what its header announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The packet ends before its data or the CRC of the data.
    #[error("the packet ends before its data")]
    EarlyEop,
    /// An EEP ends the packet.
    #[error("an EEP ends the packet")]
    Eep,
    /// The CRC of the data is wrong.
    #[error("the CRC of the data is wrong")]
    Crc,
    /// The packet goes on after the CRC of the data, or after the header of a packet without data.
    #[error("the packet goes on after its data")]
    TooMuch,
}

impl DataError {
    /// Returns the status of a reply to a command with this defect (5.6).
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            DataError::EarlyEop => Status::EarlyEop,
            DataError::Eep => Status::Eep,
            DataError::Crc => Status::DataCrc,
            DataError::TooMuch => Status::TooMuchData,
        }
    }
}

/// Splits the ports in front of a packet from the rest: bytes below 32, which no logical address is.
#[must_use]
pub fn split_path(packet: &[u8]) -> (&[u8], &[u8]) {
    let length = packet.iter().take_while(|byte| **byte < FIRST_LOGICAL_ADDRESS).count();
    packet.split_at(length)
}

/// Checks what is common to all packets and returns the instruction.
fn instruction(packet: &[u8], header_length: usize) -> Result<Instruction, Malformed> {
    match *packet {
        [_, protocol, ..] if protocol != PROTOCOL => Err(Malformed::Protocol(protocol)),
        [_, _, instruction, ..] => Ok(Instruction::from_byte(instruction)),
        _ => Err(Truncated { need: header_length, have: packet.len() }.into()),
    }
}

/// Splits a packet behind its header, whose CRC must be right.
fn split_header(packet: &[u8], length: usize, crc: Crc) -> Result<(&[u8], &[u8]), Malformed> {
    let truncated = Truncated { need: length, have: packet.len() };
    let (header, body) = packet.split_at_checked(length).ok_or(truncated)?;
    let (&received, covered) = header.split_last().ok_or(truncated)?;
    let computed = crc.of(covered);
    if received == computed { Ok((header, body)) } else { Err(Malformed::HeaderCrc { received, computed }) }
}

/// Returns the data behind a header, where it is as announced: this many bytes and their CRC, or nothing for `None`.
fn data(body: &[u8], length: Option<u32>, end: EndOfPacket, crc: Crc) -> Result<&[u8], DataError> {
    let data: &[u8] = match length {
        None => &[],
        Some(length) => {
            let length = length as usize;
            let cut = if end == EndOfPacket::Eep { DataError::Eep } else { DataError::EarlyEop };
            let covered = body.get(..length + 1).ok_or(cut)?;
            if crc.of(covered) != 0 {
                return Err(DataError::Crc);
            }
            &covered[..length]
        }
    };
    let used = data.len() + usize::from(length.is_some());
    match end {
        EndOfPacket::Eep => Err(DataError::Eep),
        EndOfPacket::Eop if body.len() > used => Err(DataError::TooMuch),
        EndOfPacket::Eop => Ok(data),
    }
}

fn u24(bytes: [u8; 3]) -> u32 {
    let [high, middle, low] = bytes;
    u32::from_be_bytes([0, high, middle, low])
}

fn u24_bytes(number: u32) -> [u8; 3] {
    let [_, bytes @ ..] = number.to_be_bytes();
    bytes
}

#[cfg(test)]
pub(super) mod tests;
