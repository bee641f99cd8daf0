//! SSDTP2, which carries packets and time-codes of SpaceWire over TCP: the protocol of SpaceWire-to-GigabitEther bridges.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | [`Flag`] |
//! | 1 | reserved, 0 |
//! | 10 | bytes of the body, big-endian |
//! | length | body |
//!
//! | flag | body |
//! |---|---|
//! | 0x00, 0x01 | packet, or the rest of one, that ends with EOP or EEP |
//! | 0x02 | fragment of a packet; control frames may follow before the next one |
//! | 0x30, 0x31 | time-code to be sent, or that was received; then a zero |
//! | 0x38 | divider of the link's rate, then a zero: 200 Mbit/s over the divider plus one |
//! | 0x40, 0x41, 0x50, 0x51 | registers: read, its reply, write, its reply |
//!
//! The layout follows SpaceWireRMAPLibrary, which its users take for the specification. That library names the register
//! frames and does not implement them, so their bodies come as they are. The reserved byte is not checked, nor is the zero in
//! control frames.

mod decoder;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, DecoderSettings, EmptyPackets};

use crate::EndOfPacket;
use alloc::vec::Vec;
use thiserror::Error;

/// The usual TCP port.
pub const PORT: u16 = 10030;
/// Bytes of a frame's header.
pub const HEADER_LENGTH: usize = 12;

hodo_machine::codes! {
    /// The kind of a frame.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Flag: u8 {
        /// A packet, or the rest of one, that ends with EOP.
        CompleteEop = 0x00,
        /// A packet, or the rest of one, that ends with EEP.
        CompleteEep = 0x01,
        /// A fragment of a packet that goes on.
        Fragment = 0x02,
        /// A time-code to be sent.
        SendTimeCode = 0x30,
        /// A time-code that was received.
        GotTimeCode = 0x31,
        /// A change of the link's rate.
        ChangeSpeed = 0x38,
        /// A request to read registers of the bridge.
        RegisterRead = 0x40,
        /// The reply to it.
        RegisterReadReply = 0x41,
        /// A request to write registers of the bridge.
        RegisterWrite = 0x50,
        /// The reply to it.
        RegisterWriteReply = 0x51,
    }
}

/// A message of either end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Message<'a> {
    /// A packet. An empty one is skipped or refused by most receivers.
    Packet {
        /// The bytes in front of the marker.
        data: &'a [u8],
        /// The marker.
        end: EndOfPacket,
    },
    /// A time-code that the bridge is to send.
    SendTimeCode(u8),
    /// A time-code that the bridge has received.
    GotTimeCode(u8),
    /// A divider of the bridge's link rate: 200 Mbit/s over the divider plus one.
    ChangeSpeed(u8),
    /// A request to read registers.
    RegisterRead(&'a [u8]),
    /// The reply to it.
    RegisterReadReply(&'a [u8]),
    /// A request to write registers.
    RegisterWrite(&'a [u8]),
    /// The reply to it.
    RegisterWriteReply(&'a [u8]),
}

/// The defect of a stream. Nothing after it can be told apart: close the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The flag has no meaning.
    #[error("flag {0:#04x} is unknown: the other end may not use SSDTP2")]
    UnknownFlag(u8),
    /// The packet, with the fragments before it, or the control frame is longer than the settings allow.
    #[error("{length} bytes in one packet, at most {limit}: raise the limit if the other end means it")]
    TooLarge {
        /// Bytes of the packet so far, as announced.
        length: u128,
        /// Bytes that are allowed.
        limit: usize,
    },
    /// A packet has no bytes, which the settings refuse.
    #[error("an empty packet")]
    Empty,
    /// A time-code or a divider does not have two bytes.
    #[error("{length} bytes with flag {:#04x}, not 2", .flag.code())]
    ControlLength {
        /// The flag.
        flag: Flag,
        /// Bytes of the body.
        length: u128,
    },
}

/// Returns the header of a frame, for bodies that are sent from where they lie.
#[must_use]
#[inline]
pub fn header(flag: Flag, length: usize) -> [u8; HEADER_LENGTH] {
    let mut header = [0; HEADER_LENGTH];
    header[0] = flag.code();
    header[4..].copy_from_slice(&(length as u64).to_be_bytes());
    header
}

/// Appends one frame for each packet.
pub fn encode_packets<'a>(packets: impl IntoIterator<Item = (&'a [u8], EndOfPacket)>, out: &mut Vec<u8>) {
    for (data, end) in packets {
        frame(complete(end), data, out);
    }
}

/// Appends a packet in fragments of at most `fragment` bytes, of which the last one ends it.
pub fn encode_fragments(data: &[u8], end: EndOfPacket, fragment: core::num::NonZeroUsize, out: &mut Vec<u8>) {
    let mut rest = data;
    while rest.len() > fragment.get() {
        let (front, back) = rest.split_at(fragment.get());
        frame(Flag::Fragment, front, out);
        rest = back;
    }
    frame(complete(end), rest, out);
}

impl Message<'_> {
    /// Appends the message in one frame.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Message::Packet { data, end } => frame(complete(end), data, out),
            Message::SendTimeCode(code) => frame(Flag::SendTimeCode, &[code, 0], out),
            Message::GotTimeCode(code) => frame(Flag::GotTimeCode, &[code, 0], out),
            Message::ChangeSpeed(divider) => frame(Flag::ChangeSpeed, &[divider, 0], out),
            Message::RegisterRead(body) => frame(Flag::RegisterRead, body, out),
            Message::RegisterReadReply(body) => frame(Flag::RegisterReadReply, body, out),
            Message::RegisterWrite(body) => frame(Flag::RegisterWrite, body, out),
            Message::RegisterWriteReply(body) => frame(Flag::RegisterWriteReply, body, out),
        }
    }
}

#[inline]
fn frame(flag: Flag, body: &[u8], out: &mut Vec<u8>) {
    out.reserve(HEADER_LENGTH + body.len());
    out.extend_from_slice(&header(flag, body.len()));
    out.extend_from_slice(body);
}

#[inline]
const fn complete(end: EndOfPacket) -> Flag {
    match end {
        EndOfPacket::Eop => Flag::CompleteEop,
        EndOfPacket::Eep => Flag::CompleteEep,
    }
}
