//! The CCSDS packet transfer protocol (ECSS-E-ST-50-53C): space packets within packets of SpaceWire.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | target logical address, behind the path |
//! | 1 | protocol identifier, 0x02 |
//! | 1 | reserved, 0 |
//! | 1 | user application, whose meaning the ends agree on |
//! | 7 to 65542 | space packet: [`PrimaryHeader`] and data |

mod space_packet;
#[cfg(test)]
mod tests;

pub use space_packet::{PRIMARY_HEADER_LENGTH, PrimaryHeader, SequenceFlags, SpacePacket};

use crate::EndOfPacket;
use alloc::vec::Vec;
use hodo_machine::{Cursor, Truncated};
use thiserror::Error;

/// The protocol identifier of the CCSDS packet transfer protocol.
pub const PROTOCOL: u8 = 0x02;

/// A packet that carries a space packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packet<'a> {
    /// The target logical address.
    pub target: u8,
    /// The value for the user application.
    pub application: u8,
    /// The space packet.
    pub space_packet: SpacePacket<'a>,
}

/// The defect of bytes that are no packet of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The packet ends within a header.
    #[error(transparent)]
    Truncated(#[from] Truncated),
    /// The packet belongs to another protocol.
    #[error("protocol identifier {0:#04x}, not that of CCSDS packet transfer, 0x02")]
    Protocol(u8),
    /// The reserved byte is not 0.
    #[error("reserved byte {0:#04x}, not 0")]
    Reserved(u8),
    /// An EEP ends the packet.
    #[error("an EEP ends the packet")]
    Eep,
    /// The version is not that of space packets, 0.
    #[error("packet version {0}, not that of space packets, 0")]
    Version(u8),
    /// The data has another length than the primary header says.
    #[error("{have} bytes of data behind a primary header that announces {announced}")]
    Length {
        /// Bytes of data that the primary header announces.
        announced: usize,
        /// Bytes of data that are there.
        have: usize,
    },
}

impl<'a> Packet<'a> {
    /// Parses a packet that begins with the target logical address.
    ///
    /// # Errors
    /// Returns the defect of the packet.
    pub fn decode(packet: &'a [u8], end: EndOfPacket) -> Result<Self, Malformed> {
        if end == EndOfPacket::Eep {
            return Err(Malformed::Eep);
        }
        let mut fields = Cursor::new(packet);
        let [target, protocol] = fields.array()?;
        if protocol != PROTOCOL {
            return Err(Malformed::Protocol(protocol));
        }
        let [reserved, application] = fields.array()?;
        if reserved != 0 {
            return Err(Malformed::Reserved(reserved));
        }
        Ok(Packet { target, application, space_packet: SpacePacket::decode(fields.rest())? })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// Returns [`Malformed::Length`] if the data is empty or longer than 65536 bytes, which no primary header announces.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let header = self.space_packet.header_bytes()?;
        out.extend_from_slice(&[self.target, PROTOCOL, 0, self.application]);
        out.extend_from_slice(&header);
        out.extend_from_slice(self.space_packet.data);
        Ok(())
    }
}
