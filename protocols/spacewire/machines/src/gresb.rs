//! GRESB, which carries packets of SpaceWire over TCP: the protocol of Gaisler's Ethernet bridge.
//!
//! A bridge has six virtual links, each with two ports: one takes frames of the host, one sends frames to it.
//!
//! From the host, [`FromHost`]:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | [`Command`] |
//! | 3 | bytes of the body, big-endian |
//! | length | body |
//!
//! To the host, [`ToHost`]:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | whether the packet was truncated, and whether an EEP ended it: see [`StatusBits`] |
//! | 3 | bytes of the packet, big-endian |
//! | length | packet |
//!
//! The bridge's manual was not at hand, nor was a bridge. Ports, header fields and command numbers come from a public C header of the
//! University of Vienna that cites GRESB-UM 1.5.14. Unverified are: the order of the status bits; whether the length counts the body also
//! in frames that are no packets; that a time-code is a body of one byte; and the bodies of configuration, which come as they are.
//! The records of the bridge's sniffer, which begin with 13 bytes of an unknown layout, are not decoded.

mod decoder;
#[cfg(test)]
mod tests;

pub use decoder::{FromHostDecoder, ToHostDecoder};

use crate::EndOfPacket;
use alloc::vec::Vec;
use thiserror::Error;

/// The TCP port that takes frames of the host to virtual link 0.
pub const PORT_BASE: u16 = 3000;
/// Virtual links of a bridge.
pub const VIRTUAL_LINKS: u8 = 6;
/// Bytes of a frame's header.
pub const HEADER_LENGTH: usize = 4;
/// Bytes of the longest body that the header expresses.
pub const BODY_MAX: usize = 0xFF_FFFF;

hodo_machine::codes! {
    /// The kind of a frame from the host.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Command: u8 {
        /// A packet to be sent.
        Packet = 0,
        /// A change of the configuration.
        SetConfiguration = 1,
        /// A request for the configuration.
        ReadConfiguration = 2,
        /// A time-code to be sent.
        SendTimeCode = 3,
    }
}

/// A virtual link of a bridge, 0 to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VirtualLink(u8);

/// A frame from the host to the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FromHost<'a> {
    /// A packet to be sent, without its EOP.
    Packet(&'a [u8]),
    /// A change of the configuration, in an unknown layout.
    SetConfiguration(&'a [u8]),
    /// A request for the configuration, in an unknown layout.
    ReadConfiguration(&'a [u8]),
    /// A time-code to be sent.
    SendTimeCode(u8),
}

/// A packet from the bridge to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToHost<'a> {
    /// The bytes in front of the marker.
    pub data: &'a [u8],
    /// The marker.
    pub end: EndOfPacket,
    /// Whether the bridge has cut off the rest of the packet.
    pub is_truncated: bool,
}

/// The order of the bits of the status in frames to the host. The C header gives it as a bit field, whose order depends on the
/// processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StatusBits {
    /// Bit 6 truncated, bit 7 EEP: the bit field on little-endian processors such as x86.
    #[default]
    High,
    /// Bit 1 truncated, bit 0 EEP: the bit field on big-endian processors such as SPARC.
    Low,
}

/// The settings of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecoderSettings {
    /// Bytes of the longest body. Bounds the memory of a connection, to about twice as much.
    pub body_max: usize,
    /// The order of the status bits, which only frames to the host have.
    pub status_bits: StatusBits,
}

impl Default for DecoderSettings {
    /// Returns settings for all bodies that a header expresses.
    fn default() -> Self {
        DecoderSettings { body_max: BODY_MAX, status_bits: StatusBits::default() }
    }
}

/// The defect of a stream. Nothing after it can be told apart: close the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The command has no meaning.
    #[error("command {0} is unknown: the other end may not use GRESB, or this is the port of the other direction")]
    UnknownCommand(u8),
    /// Bits of the status are set that should not be.
    #[error("status {0:#04x} has other bits than truncated and EEP: try the other order of the status bits")]
    UnknownStatus(u8),
    /// The body is longer than the settings allow.
    #[error("{length} bytes in one frame, at most {limit}: raise the limit if the other end means it")]
    TooLarge {
        /// Bytes of the body.
        length: usize,
        /// Bytes that are allowed.
        limit: usize,
    },
    /// A time-code does not have one byte.
    #[error("{0} bytes of a time-code, not 1")]
    TimeCodeLength(usize),
}

/// A body is longer than 24 bits express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{length} bytes in one frame, at most 16777215")]
pub struct TooLong {
    /// Bytes of the body.
    pub length: usize,
}

impl VirtualLink {
    /// The first one, number 0.
    pub const FIRST: VirtualLink = VirtualLink(0);

    /// Returns the virtual link of a number, or `None` from 6 on.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number < VIRTUAL_LINKS { Some(VirtualLink(number)) } else { None }
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns the TCP port that takes frames of the host.
    #[must_use]
    pub const fn port_from_host(self) -> u16 {
        PORT_BASE + 2 * self.0 as u16
    }

    /// Returns the TCP port that sends frames to the host.
    #[must_use]
    pub const fn port_to_host(self) -> u16 {
        self.port_from_host() + 1
    }
}

impl FromHost<'_> {
    /// Appends the frame.
    ///
    /// # Errors
    /// [`TooLong`] if the body has more than 24 bits of length.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        match *self {
            FromHost::Packet(data) => frame(Command::Packet.code(), data, out),
            FromHost::SetConfiguration(body) => frame(Command::SetConfiguration.code(), body, out),
            FromHost::ReadConfiguration(body) => frame(Command::ReadConfiguration.code(), body, out),
            FromHost::SendTimeCode(code) => frame(Command::SendTimeCode.code(), &[code], out),
        }
    }
}

impl ToHost<'_> {
    /// Appends the frame.
    ///
    /// # Errors
    /// [`TooLong`] if the packet has more than 24 bits of length. A bridge would truncate it.
    #[inline]
    pub fn encode(&self, bits: StatusBits, out: &mut Vec<u8>) -> Result<(), TooLong> {
        frame(bits.byte(self.end, self.is_truncated), self.data, out)
    }

    /// Returns the header of the frame, for packets that are sent from where they lie.
    ///
    /// # Errors
    /// [`TooLong`] if the packet has more than 24 bits of length.
    #[inline]
    pub fn header(&self, bits: StatusBits) -> Result<[u8; HEADER_LENGTH], TooLong> {
        header(bits.byte(self.end, self.is_truncated), self.data.len())
    }
}

impl StatusBits {
    const fn masks(self) -> (u8, u8) {
        match self {
            StatusBits::High => (1 << 6, 1 << 7),
            StatusBits::Low => (1 << 1, 1 << 0),
        }
    }

    const fn byte(self, end: EndOfPacket, is_truncated: bool) -> u8 {
        let (truncated, eep) = self.masks();
        let truncated = if is_truncated { truncated } else { 0 };
        truncated | if matches!(end, EndOfPacket::Eep) { eep } else { 0 }
    }
}

/// Returns the header of a packet from the host, for packets that are sent from where they lie.
///
/// # Errors
/// [`TooLong`] if the packet has more than 24 bits of length.
#[inline]
pub fn packet_header(length: usize) -> Result<[u8; HEADER_LENGTH], TooLong> {
    header(Command::Packet.code(), length)
}

#[inline]
fn header(first: u8, length: usize) -> Result<[u8; HEADER_LENGTH], TooLong> {
    if length > BODY_MAX {
        return Err(TooLong { length });
    }
    let [_, high, middle, low] = (length as u32).to_be_bytes();
    Ok([first, high, middle, low])
}

#[inline]
fn frame(first: u8, body: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    let header = header(first, body.len())?;
    out.reserve(HEADER_LENGTH + body.len());
    out.extend_from_slice(&header);
    out.extend_from_slice(body);
    Ok(())
}
