//! Extended transport headers (9.3).

use super::{Opcode, Syndrome};

/// Bytes of the longest extended header.
pub(super) const LENGTH_MAX: usize = 28;

const RDMA: usize = 16;
const ATOMIC: usize = 28;
const ACK: usize = 4;
const ATOMIC_ACK: usize = 8;
const IMMEDIATE: usize = 4;

/// The RDMA extended transport header: where to write or to read (9.3.1).
///
/// | bytes | field |
/// |---|---|
/// | 8 | virtual address |
/// | 4 | remote key |
/// | 4 | length of the whole message |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RdmaHeader {
    /// The virtual address at the responder.
    pub address: u64,
    /// The remote key.
    pub key: u32,
    /// Bytes of the whole message.
    pub length: u32,
}

/// The atomic extended transport header (9.3.2).
///
/// | bytes | field |
/// |---|---|
/// | 8 | virtual address |
/// | 4 | remote key |
/// | 8 | value to swap in, or to add |
/// | 8 | value to compare with; 0 for a fetch-and-add |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomicHeader {
    /// The virtual address at the responder.
    pub address: u64,
    /// The remote key.
    pub key: u32,
    /// The value to swap in, or to add.
    pub swap_or_add: u64,
    /// The value to compare with.
    pub compare: u64,
}

/// The acknowledge extended transport header (9.3.3): a syndrome, and the message sequence number in 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckHeader {
    /// The kind of acknowledgement.
    pub syndrome: Syndrome,
    /// The number of messages that the responder has completed, modulo 2^24.
    pub messages: u32,
}

/// The extended headers of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    /// None.
    None,
    /// Where to write or to read.
    Rdma(RdmaHeader),
    /// Where to write, and immediate data.
    RdmaImmediate(RdmaHeader, u32),
    /// Immediate data.
    Immediate(u32),
    /// A key to be invalidated.
    Invalidate(u32),
    /// An acknowledgement.
    Ack(AckHeader),
    /// An acknowledgement, and what an atomic operation found.
    AtomicAck(AckHeader, u64),
    /// An atomic operation.
    Atomic(AtomicHeader),
}

impl Extended {
    /// Returns the bytes of the extended headers that follow an opcode.
    #[must_use]
    #[inline]
    pub const fn length_of(opcode: Opcode) -> usize {
        match opcode {
            Opcode::WriteFirst | Opcode::WriteOnly | Opcode::ReadRequest => RDMA,
            Opcode::WriteOnlyImmediate => RDMA + IMMEDIATE,
            Opcode::SendLastImmediate
            | Opcode::SendOnlyImmediate
            | Opcode::WriteLastImmediate
            | Opcode::SendLastInvalidate
            | Opcode::SendOnlyInvalidate => IMMEDIATE,
            Opcode::ReadResponseFirst | Opcode::ReadResponseLast | Opcode::ReadResponseOnly | Opcode::Acknowledge => {
                ACK
            }
            Opcode::AtomicAcknowledge => ACK + ATOMIC_ACK,
            Opcode::CompareSwap | Opcode::FetchAdd => ATOMIC,
            Opcode::SendFirst
            | Opcode::SendMiddle
            | Opcode::SendLast
            | Opcode::SendOnly
            | Opcode::WriteMiddle
            | Opcode::WriteLast
            | Opcode::ReadResponseMiddle
            | Opcode::CongestionNotification => 0,
        }
    }

    /// Parses the headers that follow an opcode, of which there are [`Extended::length_of`] bytes.
    #[inline]
    pub(super) fn decode(opcode: Opcode, bytes: &[u8]) -> Self {
        match opcode {
            Opcode::WriteFirst | Opcode::WriteOnly | Opcode::ReadRequest => Extended::Rdma(RdmaHeader::decode(bytes)),
            Opcode::WriteOnlyImmediate => Extended::RdmaImmediate(RdmaHeader::decode(bytes), word(bytes, RDMA)),
            Opcode::SendLastImmediate | Opcode::SendOnlyImmediate | Opcode::WriteLastImmediate => {
                Extended::Immediate(word(bytes, 0))
            }
            Opcode::SendLastInvalidate | Opcode::SendOnlyInvalidate => Extended::Invalidate(word(bytes, 0)),
            Opcode::ReadResponseFirst | Opcode::ReadResponseLast | Opcode::ReadResponseOnly | Opcode::Acknowledge => {
                Extended::Ack(AckHeader::decode(bytes))
            }
            Opcode::AtomicAcknowledge => Extended::AtomicAck(AckHeader::decode(bytes), long(bytes, ACK)),
            Opcode::CompareSwap | Opcode::FetchAdd => Extended::Atomic(AtomicHeader {
                address: long(bytes, 0),
                key: word(bytes, 8),
                swap_or_add: long(bytes, 12),
                compare: long(bytes, 20),
            }),
            _ => Extended::None,
        }
    }

    /// Writes the headers into `room`, and returns how many bytes they take.
    #[inline]
    pub(super) fn encode(&self, room: &mut [u8]) -> usize {
        match *self {
            Extended::None => 0,
            Extended::Rdma(rdma) => rdma.encode(room),
            Extended::RdmaImmediate(rdma, immediate) => {
                rdma.encode(room);
                room[RDMA..][..IMMEDIATE].copy_from_slice(&immediate.to_be_bytes());
                RDMA + IMMEDIATE
            }
            Extended::Immediate(word) | Extended::Invalidate(word) => {
                room[..IMMEDIATE].copy_from_slice(&word.to_be_bytes());
                IMMEDIATE
            }
            Extended::Ack(ack) => ack.encode(room),
            Extended::AtomicAck(ack, original) => {
                ack.encode(room);
                room[ACK..][..ATOMIC_ACK].copy_from_slice(&original.to_be_bytes());
                ACK + ATOMIC_ACK
            }
            Extended::Atomic(AtomicHeader { address, key, swap_or_add, compare }) => {
                room[..8].copy_from_slice(&address.to_be_bytes());
                room[8..12].copy_from_slice(&key.to_be_bytes());
                room[12..20].copy_from_slice(&swap_or_add.to_be_bytes());
                room[20..28].copy_from_slice(&compare.to_be_bytes());
                ATOMIC
            }
        }
    }
}

impl RdmaHeader {
    fn decode(bytes: &[u8]) -> Self {
        RdmaHeader { address: long(bytes, 0), key: word(bytes, 8), length: word(bytes, 12) }
    }

    fn encode(self, room: &mut [u8]) -> usize {
        room[..8].copy_from_slice(&self.address.to_be_bytes());
        room[8..12].copy_from_slice(&self.key.to_be_bytes());
        room[12..16].copy_from_slice(&self.length.to_be_bytes());
        RDMA
    }
}

impl AckHeader {
    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        let bits = word(bytes, 0);
        AckHeader { syndrome: Syndrome::decode((bits >> 24) as u8), messages: bits & 0xFF_FFFF }
    }

    #[inline]
    fn encode(self, room: &mut [u8]) -> usize {
        let bits = u32::from(self.syndrome.encode()) << 24 | self.messages & 0xFF_FFFF;
        room[..ACK].copy_from_slice(&bits.to_be_bytes());
        ACK
    }
}

/// Reads four bytes at a place that is inside, as [`Extended::length_of`] says.
#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

/// Reads eight bytes at a place that is inside, as [`Extended::length_of`] says.
#[inline]
fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) << 32 | u64::from(word(bytes, at + 4))
}
