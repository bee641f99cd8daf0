use super::{
    DataError, Instruction, Kind, LENGTH_MAX, Malformed, Operation, PROTOCOL, data, instruction, split_header,
};
use super::{u24, u24_bytes};
use crate::EndOfPacket;
use crate::rmap::Crc;
use alloc::vec::Vec;
use hodo_machine::Cursor;

/// Bytes of a command's header without its reply address field.
const FIXED: usize = 16;
/// Bytes of the longest reply address field.
const REPLY_ADDRESS_MAX: usize = 12;

/// The path of a reply (5.1.6), in a field of 0, 4, 8 or 12 bytes.
///
/// Zeros in front of the path fill the field and are not sent. A field of zeros alone stands for the path of one zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ReplyAddress {
    field: [u8; REPLY_ADDRESS_MAX],
    length: u8,
}

/// The header of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommandHeader {
    /// The target logical address.
    pub target: u8,
    /// The instruction; its length of the reply address is that of `reply_address`.
    pub instruction: Instruction,
    /// The key.
    pub key: u8,
    /// The path of the reply.
    pub reply_address: ReplyAddress,
    /// The initiator logical address.
    pub initiator: u8,
    /// The transaction identifier.
    pub transaction: u16,
    /// The extended address and the address, in 40 bits.
    pub address: u64,
    /// The data length, in 24 bits.
    pub length: u32,
}

/// A whole command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Command<'a> {
    /// The header.
    pub header: CommandHeader,
    /// The data of a write; data and mask of a read-modify-write.
    pub data: &'a [u8],
}

impl ReplyAddress {
    /// Returns the field of a path, or `None` if the path has more than 12 bytes, or more than one and a leading zero.
    #[must_use]
    pub fn from_path(path: &[u8]) -> Option<Self> {
        let length = path.len().next_multiple_of(4);
        if length > REPLY_ADDRESS_MAX || path.len() > 1 && path[0] == 0 {
            return None;
        }
        let mut field = [0; REPLY_ADDRESS_MAX];
        field[length - path.len()..length].copy_from_slice(path);
        Some(ReplyAddress { field, length: length as u8 })
    }

    /// Returns the path that a reply begins with.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        let field = self.field();
        let zeros = field.iter().take_while(|byte| **byte == 0).count();
        &field[zeros.min(field.len().saturating_sub(1))..]
    }

    /// Returns the bytes of the field.
    #[must_use]
    pub fn field(&self) -> &[u8] {
        &self.field[..usize::from(self.length)]
    }

    pub(super) fn from_field(bytes: &[u8]) -> Self {
        let mut field = [0; REPLY_ADDRESS_MAX];
        field[..bytes.len()].copy_from_slice(bytes);
        ReplyAddress { field, length: bytes.len() as u8 }
    }
}

impl CommandHeader {
    /// Parses the header of a packet that begins with the target logical address, and returns it with the bytes behind it.
    ///
    /// A reserved packet type and a command code without a meaning have a header too: a target replies to some of them.
    ///
    /// # Errors
    /// Returns the defect of the header, never [`Malformed::Data`].
    pub fn decode(packet: &[u8], crc: Crc) -> Result<(Self, &[u8]), Malformed> {
        let instruction = instruction(packet, FIXED)?;
        if instruction.kind() == Kind::Reply {
            return Err(Malformed::Kind(instruction));
        }
        let (header, body) = split_header(packet, FIXED + instruction.reply_address_length(), crc)?;
        let mut fields = Cursor::new(header);
        let [target, _, _, key] = fields.array()?;
        let reply_address = ReplyAddress::from_field(fields.bytes(instruction.reply_address_length())?);
        let [initiator, transaction @ .., extended] = fields.array::<4>()?;
        let [high, middle, low, least] = fields.array()?;
        let header = CommandHeader {
            target,
            instruction,
            key,
            reply_address,
            initiator,
            transaction: u16::from_be_bytes(transaction),
            address: u64::from_be_bytes([0, 0, 0, extended, high, middle, low, least]),
            length: u24(fields.array()?),
        };
        Ok((header, body))
    }

    /// Appends the header: address and length modulo what their bits express.
    pub fn encode(&self, crc: Crc, out: &mut Vec<u8>) {
        let start = out.len();
        let reply_address = self.reply_address.field();
        let instruction = self.instruction.with_reply_address(&self.reply_address);
        out.extend_from_slice(&[self.target, PROTOCOL, instruction.byte(), self.key]);
        out.extend_from_slice(reply_address);
        let [_, _, _, address @ ..] = self.address.to_be_bytes();
        out.push(self.initiator);
        out.extend_from_slice(&self.transaction.to_be_bytes());
        out.extend_from_slice(&address);
        out.extend_from_slice(&u24_bytes(self.length & LENGTH_MAX));
        out.push(crc.of(&out[start..]));
    }

    /// Returns the data behind the header, which is empty in a read.
    ///
    /// # Errors
    /// Returns how the data differs from what the header announces.
    pub fn data<'a>(&self, body: &'a [u8], end: EndOfPacket, crc: Crc) -> Result<&'a [u8], DataError> {
        data(body, self.carries_data().then_some(self.length), end, crc)
    }

    /// Returns whether data and its CRC follow the header.
    fn carries_data(&self) -> bool {
        matches!(self.instruction.operation(), Some(Operation::Write { .. } | Operation::ReadModifyWrite))
    }
}

impl<'a> Command<'a> {
    /// Parses a whole packet that begins with the target logical address.
    ///
    /// # Errors
    /// Returns the defect of the packet.
    pub fn decode(packet: &'a [u8], end: EndOfPacket, crc: Crc) -> Result<Self, Malformed> {
        let (header, body) = CommandHeader::decode(packet, crc)?;
        Ok(Command { header, data: header.data(body, end, crc)? })
    }

    /// Appends the packet. The header's length is sent as it stands, also where it is not that of the data.
    pub fn encode(&self, crc: Crc, out: &mut Vec<u8>) {
        self.header.encode(crc, out);
        if self.header.carries_data() {
            out.extend_from_slice(self.data);
            out.push(crc.of(self.data));
        }
    }
}
