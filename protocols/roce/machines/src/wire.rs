//! Packets of the reliable connection, from the base transport header to the invariant CRC (volume 1, chapter 9).
//!
//! | bytes | field | clause |
//! |---|---|---|
//! | 12 | base transport header, [`BaseHeader`] | 9.2 |
//! | 0 to 28 | extended headers, as the opcode says, [`Extended`] | 9.3 to 9.5 |
//! | 0 to path MTU | payload | |
//! | 0 to 3 | padding to four bytes | 9.2.3 |
//! | 4 | invariant CRC, least significant byte first | A17.3.3 |
//!
//! Numbers are big-endian, except for the CRC. The packet is the payload of a UDP datagram to port 4791.

mod extended;
mod opcode;
mod syndrome;

pub use extended::{AckHeader, AtomicHeader, Extended, RdmaHeader};
pub use opcode::{Opcode, Position};
pub use syndrome::{NakCode, Syndrome, rnr_span};

use crate::Psn;
use thiserror::Error;

/// The UDP port of RoCEv2 (A17.3.1).
pub const PORT: u16 = 4791;
/// Bytes of the base transport header.
pub const BASE_LENGTH: usize = 12;
/// Bytes of the invariant CRC.
pub const ICRC_LENGTH: usize = 4;
/// Bytes of the longest headers: a base transport header and an atomic header.
pub const HEADERS_MAX: usize = BASE_LENGTH + extended::LENGTH_MAX;
/// The default partition key.
pub const PARTITION_KEY: u16 = 0xFFFF;

/// The base transport header (9.2).
///
/// | byte | bits | field |
/// |---|---|---|
/// | 0 | 8 | opcode |
/// | 1 | 1, 1, 2, 4 | solicited event, migration state, pad count, transport version (0) |
/// | 2 | 16 | partition key |
/// | 4 | 1, 1, 6 | forward and backward congestion (A17.9), reserved; not covered by the CRC |
/// | 5 | 24 | number of the destination queue pair |
/// | 8 | 1, 7 | acknowledge request, reserved |
/// | 9 | 24 | packet sequence number |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseHeader {
    /// The kind of packet.
    pub opcode: Opcode,
    /// Whether the completion at the receiver is a solicited event.
    pub is_solicited: bool,
    /// The migration state; set if it is "migrated", as adapters send it.
    pub is_migrated: bool,
    /// The partition key.
    pub partition_key: u16,
    /// Whether the packet met congestion (FECN).
    pub forward_congestion: bool,
    /// Whether packets of the other direction met congestion (BECN).
    pub backward_congestion: bool,
    /// The receiver's queue pair.
    pub queue_pair: u32,
    /// Whether the sender asks for an acknowledgement.
    pub asks_ack: bool,
    /// The packet sequence number.
    pub psn: Psn,
}

/// A packet in its parts, without its CRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The base transport header.
    pub base: BaseHeader,
    /// The extended headers.
    pub extended: Extended,
    /// The payload, without its padding.
    pub payload: &'a [u8],
}

/// Why bytes are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The headers or the CRC are cut off.
    #[error("truncated: {need} bytes needed, {have} there")]
    Truncated {
        /// Bytes that are needed.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// The opcode is not one of the reliable connection, or is not assigned.
    #[error("opcode {0:#04x} is not one of the reliable connection")]
    Opcode(u8),
    /// The transport version is not 0.
    #[error("transport version {0}, not 0")]
    Version(u8),
    /// The pad count is larger than the payload, or the length is no multiple of four.
    #[error("{0} bytes of payload and padding do not go with the pad count")]
    Padding(usize),
}

impl BaseHeader {
    /// Creates a header with the default partition key, for a path that has migrated, and without flags.
    #[must_use]
    pub const fn new(opcode: Opcode, queue_pair: u32, psn: Psn) -> Self {
        BaseHeader {
            opcode,
            is_solicited: false,
            is_migrated: true,
            partition_key: PARTITION_KEY,
            forward_congestion: false,
            backward_congestion: false,
            queue_pair,
            asks_ack: false,
            psn,
        }
    }

    /// Returns the header's bytes in front of a payload of this length.
    #[must_use]
    #[inline]
    pub fn encode(&self, payload: usize) -> [u8; BASE_LENGTH] {
        let flags =
            u8::from(self.is_solicited) << 7 | u8::from(self.is_migrated) << 6 | (padding_of(payload) as u8) << 4;
        let congestion = u8::from(self.forward_congestion) << 7 | u8::from(self.backward_congestion) << 6;
        let [key_high, key_low] = self.partition_key.to_be_bytes();
        let [_, to_high, to_middle, to_low] = self.queue_pair.to_be_bytes();
        let [_, psn_high, psn_middle, psn_low] = self.psn.value().to_be_bytes();
        let ack = u8::from(self.asks_ack) << 7;
        let opcode = self.opcode.code();
        [opcode, flags, key_high, key_low, congestion, to_high, to_middle, to_low, ack, psn_high, psn_middle, psn_low]
    }

    /// Parses a header. Returns it with the pad count.
    fn decode(bytes: &[u8; BASE_LENGTH]) -> Result<(Self, usize), Malformed> {
        let [code, flags, key_high, key_low, congestion, to @ .., psn_high, psn_middle, psn_low] = *bytes;
        let [to_high, to_middle, to_low, ack] = to;
        let opcode = Opcode::from_code(code).ok_or(Malformed::Opcode(code))?;
        if flags & 0xF != 0 {
            return Err(Malformed::Version(flags & 0xF));
        }
        let header = BaseHeader {
            opcode,
            is_solicited: flags & 0x80 != 0,
            is_migrated: flags & 0x40 != 0,
            partition_key: u16::from_be_bytes([key_high, key_low]),
            forward_congestion: congestion & 0x80 != 0,
            backward_congestion: congestion & 0x40 != 0,
            queue_pair: u32::from_be_bytes([0, to_high, to_middle, to_low]),
            asks_ack: ack & 0x80 != 0,
            psn: Psn::new(u32::from_be_bytes([0, psn_high, psn_middle, psn_low])),
        };
        Ok((header, usize::from(flags >> 4 & 3)))
    }
}

impl<'a> Packet<'a> {
    /// Parses the payload of a datagram. The CRC has its place, and is not checked.
    ///
    /// # Errors
    /// Returns how the bytes are [`Malformed`].
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let truncated = |need| Malformed::Truncated { need, have: bytes.len() };
        let (base, rest) = bytes.split_first_chunk().ok_or(truncated(BASE_LENGTH + ICRC_LENGTH))?;
        let (base, padding) = BaseHeader::decode(base)?;
        let length = Extended::length_of(base.opcode);
        let (extended, rest) = rest.split_at_checked(length).ok_or(truncated(BASE_LENGTH + length + ICRC_LENGTH))?;
        let padded = rest.len().checked_sub(ICRC_LENGTH).ok_or(truncated(BASE_LENGTH + length + ICRC_LENGTH))?;
        if padded % 4 != 0 || padding > padded {
            return Err(Malformed::Padding(padded));
        }
        let extended = Extended::decode(base.opcode, extended);
        Ok(Packet { base, extended, payload: &rest[..padded - padding] })
    }

    /// Writes the headers of a packet with `length` bytes of payload into `room`, and returns how many bytes they take. Payload,
    /// padding and CRC follow them.
    #[inline]
    pub fn encode_headers(
        base: &BaseHeader,
        extended: &Extended,
        length: usize,
        room: &mut [u8; HEADERS_MAX],
    ) -> usize {
        let (front, rest) = room.split_at_mut(BASE_LENGTH);
        front.copy_from_slice(&base.encode(length));
        BASE_LENGTH + extended.encode(rest)
    }
}

/// Returns how many bytes pad a payload of this length.
#[must_use]
#[inline]
pub const fn padding_of(payload: usize) -> usize {
    payload.wrapping_neg() & 3
}

#[cfg(test)]
mod tests;
