use super::ReplyAddress;

/// The instruction field (5.1.4).
///
/// | bits | field |
/// |---|---|
/// | 7, 6 | packet type: 01 command, 00 reply, others reserved |
/// | 5 | write |
/// | 4 | verify the data before it is written |
/// | 3 | reply |
/// | 2 | increment the address |
/// | 1, 0 | length of the reply address field in units of four bytes |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction(u8);

/// The type of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A command of an initiator.
    Command,
    /// A reply of a target.
    Reply,
    /// A type without a meaning.
    Reserved,
}

/// The operation of a command code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A read.
    Read,
    /// A write.
    Write {
        /// Whether the data is checked before any of it is written.
        verify: bool,
    },
    /// A read, and a write of the bits under a mask.
    ReadModifyWrite,
}

const RESERVED: u8 = 0x80;
const COMMAND: u8 = 0x40;
const WRITE: u8 = 0x20;
const VERIFY: u8 = 0x10;
const REPLY: u8 = 0x08;
const INCREMENT: u8 = 0x04;
const ADDRESS_LENGTH: u8 = 0x03;

impl Instruction {
    /// Returns the instruction of a read command.
    #[must_use]
    pub const fn read(increment: bool) -> Self {
        Instruction(COMMAND | REPLY | if increment { INCREMENT } else { 0 })
    }

    /// Returns the instruction of a write command.
    #[must_use]
    pub const fn write(verify: bool, reply: bool, increment: bool) -> Self {
        let verify = if verify { VERIFY } else { 0 };
        let reply = if reply { REPLY } else { 0 };
        Instruction(COMMAND | WRITE | verify | reply | if increment { INCREMENT } else { 0 })
    }

    /// Returns the instruction of a read-modify-write command.
    #[must_use]
    pub const fn read_modify_write() -> Self {
        Instruction(COMMAND | VERIFY | REPLY | INCREMENT)
    }

    /// Returns the instruction of a byte on the wire, with or without a meaning.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Self {
        Instruction(byte)
    }

    /// Returns the byte on the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// Returns the type of the packet.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self.0 & (RESERVED | COMMAND) {
            0 => Kind::Reply,
            COMMAND => Kind::Command,
            _ => Kind::Reserved,
        }
    }

    /// Returns the operation, or `None` for a command code without a meaning.
    #[must_use]
    pub const fn operation(self) -> Option<Operation> {
        match self.0 & (WRITE | VERIFY | REPLY | INCREMENT) {
            code if code & WRITE != 0 => Some(Operation::Write { verify: code & VERIFY != 0 }),
            REPLY => Some(Operation::Read),
            code if code == REPLY | INCREMENT => Some(Operation::Read),
            code if code == VERIFY | REPLY | INCREMENT => Some(Operation::ReadModifyWrite),
            _ => None,
        }
    }

    /// Returns whether the write bit is set, which makes a reply one without data.
    #[must_use]
    pub const fn is_write(self) -> bool {
        self.0 & WRITE != 0
    }

    /// Returns whether the command requests a reply.
    #[must_use]
    pub const fn requests_reply(self) -> bool {
        self.0 & REPLY != 0
    }

    /// Returns whether the address advances with the data.
    #[must_use]
    pub const fn increments(self) -> bool {
        self.0 & INCREMENT != 0
    }

    /// Returns the bytes of the reply address field.
    #[must_use]
    pub const fn reply_address_length(self) -> usize {
        (self.0 & ADDRESS_LENGTH) as usize * 4
    }

    /// Returns the instruction of the reply to this command.
    #[must_use]
    pub const fn reply(self) -> Self {
        Instruction(self.0 & !(RESERVED | COMMAND))
    }

    /// Returns this instruction with the length of this reply address.
    pub(in crate::rmap) fn with_reply_address(self, address: &ReplyAddress) -> Self {
        Instruction(self.0 & !ADDRESS_LENGTH | (address.field().len() / 4) as u8)
    }
}
