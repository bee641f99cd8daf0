use super::{DataError, Instruction, Kind, LENGTH_MAX, Malformed, PROTOCOL, Status, data, instruction, split_header};
use super::{u24, u24_bytes};
use crate::EndOfPacket;
use crate::rmap::Crc;
use alloc::vec::Vec;
use hodo_machine::Cursor;

/// Bytes of the header of a reply to a write.
const SHORT: usize = 8;
/// Bytes of the header of any other reply.
const LONG: usize = 12;

/// The header of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplyHeader {
    /// The initiator logical address.
    pub initiator: u8,
    /// The instruction of the command, as [`Instruction::reply`] returns it.
    pub instruction: Instruction,
    /// The outcome of the command.
    pub status: Status,
    /// The target logical address.
    pub target: u8,
    /// The transaction identifier of the command.
    pub transaction: u16,
    /// The data length, in 24 bits; 0 in the reply to a write.
    pub length: u32,
}

/// A whole reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reply<'a> {
    /// The header.
    pub header: ReplyHeader,
    /// The data; none in the reply to a write.
    pub data: &'a [u8],
}

impl ReplyHeader {
    /// Parses the header of a packet that begins with the initiator logical address, and returns it with the bytes behind it.
    ///
    /// # Errors
    /// Returns the defect of the header, never [`Malformed::Data`].
    pub fn decode(packet: &[u8], crc: Crc) -> Result<(Self, &[u8]), Malformed> {
        let instruction = instruction(packet, SHORT)?;
        if instruction.kind() != Kind::Reply {
            return Err(Malformed::Kind(instruction));
        }
        let (header, body) = split_header(packet, Self::length_of(instruction), crc)?;
        let mut fields = Cursor::new(header);
        let [initiator, _, _, status, target, transaction @ ..] = fields.array::<7>()?;
        let length = if instruction.is_write() {
            0
        } else {
            let [_, length @ ..] = fields.array::<4>()?;
            u24(length)
        };
        let header = ReplyHeader {
            initiator,
            instruction,
            status: Status::from_code(status),
            target,
            transaction: u16::from_be_bytes(transaction),
            length,
        };
        Ok((header, body))
    }

    /// Appends the header.
    pub fn encode(&self, crc: Crc, out: &mut Vec<u8>) {
        let at = out.len();
        self.encode_at(at, crc, out);
    }

    /// Writes the header over the bytes from `at` on, as far as there are any, and appends the rest.
    pub(in crate::rmap) fn encode_at(&self, at: usize, crc: Crc, out: &mut Vec<u8>) {
        let [first, second] = self.transaction.to_be_bytes();
        let [high, middle, low] = u24_bytes(self.length & LENGTH_MAX);
        let mut header = [0; LONG];
        let fields = [self.initiator, PROTOCOL, self.instruction.byte(), self.status.code(), self.target];
        header[..5].copy_from_slice(&fields);
        header[5..11].copy_from_slice(&[first, second, 0, high, middle, low]);
        let length = Self::length_of(self.instruction);
        header[length - 1] = crc.of(&header[..length - 1]);
        let end = (at + length).max(out.len());
        out.resize(end, 0);
        out[at..at + length].copy_from_slice(&header[..length]);
    }

    /// Returns the data behind the header, which is empty in the reply to a write.
    ///
    /// # Errors
    /// Returns how the data differs from what the header announces.
    pub fn data<'a>(&self, body: &'a [u8], end: EndOfPacket, crc: Crc) -> Result<&'a [u8], DataError> {
        data(body, (!self.instruction.is_write()).then_some(self.length), end, crc)
    }

    /// Returns the bytes of the header of a reply with this instruction.
    #[must_use]
    pub const fn length_of(instruction: Instruction) -> usize {
        if instruction.is_write() { SHORT } else { LONG }
    }
}

impl<'a> Reply<'a> {
    /// Parses a whole packet that begins with the initiator logical address.
    ///
    /// # Errors
    /// Returns the defect of the packet.
    pub fn decode(packet: &'a [u8], end: EndOfPacket, crc: Crc) -> Result<Self, Malformed> {
        let (header, body) = ReplyHeader::decode(packet, crc)?;
        Ok(Reply { header, data: header.data(body, end, crc)? })
    }

    /// Appends the packet. The header's length is sent as it stands, also where it is not that of the data.
    pub fn encode(&self, crc: Crc, out: &mut Vec<u8>) {
        self.header.encode(crc, out);
        if !self.header.instruction.is_write() {
            out.extend_from_slice(self.data);
            out.push(crc.of(self.data));
        }
    }
}
