//! Messages about operations on a channel.
//!
//! A request begins with u32 server's number of the channel, u32 number of the operation, u8 [`Subcommand`]; a reply with
//! u32 number of the operation, u8 subcommand, and but for updates of a monitor a status. If that is an error, nothing follows.
//!
//! | command | subcommand | request | reply |
//! |---|---|---|---|
//! | get | init | any: what is asked for | type |
//! | | none | | changed value |
//! | put | init | any | type |
//! | | none | changed value | |
//! | | get | | changed value |
//! | put-get | init | any | type that is put, type that is got |
//! | | none | changed value | changed value |
//! | | get, get-put | | changed value: what would be got, what was put |
//! | monitor | init | any; if pipelined u32 updates that may be sent | type |
//! | | start, stop | | |
//! | | pipeline | u32 further updates that may be sent | |
//! | | none | | no status: changed value, overrun bits |
//! | | destroy | | status of the end, after which perhaps a last update |
//! | array | init | any | type |
//! | | get | size offset, size count, size stride | array |
//! | | none (put) | size offset, size stride, array | |
//! | | get-put (set length) | size length | |
//! | | process (get length) | | size length |
//! | process | init | any | |
//! | | none | | |
//! | call | init | any | |
//! | | none | any | any |
//!
//! A *changed value* is a set of bits, and the fields that it names. A *type* and *any* are described in [`data`](crate::data).
//! `get field` has no subcommand: u32 server's number, u32 operation, text: field; its reply is u32 operation, status, type.
//! `destroy request` and `cancel request` are the two numbers, and have no reply.

use crate::wire::{Command, Status};
use crate::{Error, Reader, Writer};

/// The step of an operation that is requested or answered: a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Subcommand(pub u8);

impl Subcommand {
    /// Execute the operation, and keep it.
    pub const NONE: Subcommand = Subcommand(0);
    /// Process the record. In a monitor, [`START`](Self::START) and [`STOP`](Self::STOP) contain this bit.
    pub const PROCESS: Subcommand = Subcommand(0x04);
    /// Set the operation up.
    pub const INIT: Subcommand = Subcommand(0x08);
    /// Destroy the operation after this step. In an update of a monitor: it is the last one.
    pub const DESTROY: Subcommand = Subcommand(0x10);
    /// Read. In a put: read the present value.
    pub const GET: Subcommand = Subcommand(0x40);
    /// Read back what was put. In an array operation: set the length.
    pub const GET_PUT: Subcommand = Subcommand(0x80);
    /// In a monitor: the client says how many further updates may be sent.
    pub const PIPELINE: Subcommand = Subcommand(0x80);
    /// In a monitor: send updates.
    pub const START: Subcommand = Subcommand(0x44);
    /// In a monitor: send no more updates.
    pub const STOP: Subcommand = Subcommand(0x04);

    /// Tells whether all bits of another one are set.
    #[must_use]
    #[inline]
    pub const fn has(self, bits: Subcommand) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Returns the subcommand of the reply. A monitor is not told that it is pipelined, which only its client says: servers of pvxs and
    /// pvAccessCPP leave this bit out, and clients in Java take no reply that has it.
    const fn answered(self, command: Command) -> Subcommand {
        let bits = if matches!(command, Command::Monitor) { Self::PIPELINE.0 } else { 0 };
        Subcommand(self.0 & !bits)
    }

    /// Tells whether this is a step of an array operation that only reads.
    #[must_use]
    pub const fn reads_array(self) -> bool {
        self.has(Self::GET) || self.has(Self::PROCESS)
    }

    /// Returns one with the bits of both.
    #[must_use]
    pub const fn with(self, bits: Subcommand) -> Subcommand {
        Subcommand(self.0 | bits.0)
    }
}

/// The front of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The server's number of the channel.
    pub sid: u32,
    /// Number of the operation.
    pub ioid: u32,
    /// The requested step.
    pub subcommand: Subcommand,
}

impl Operation {
    /// Decodes the front of a request.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    #[inline]
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Operation { sid: reader.u32()?, ioid: reader.u32()?, subcommand: Subcommand(reader.u8()?) })
    }

    /// Begins the message; what the subcommand needs is written next, and then it is [ended](Writer::end).
    #[inline]
    pub fn begin(&self, command: Command, writer: &mut Writer) {
        writer.begin(command.code());
        writer.u32(self.sid);
        writer.u32(self.ioid);
        writer.u8(self.subcommand.0);
    }

    /// Writes a message that has nothing behind its front.
    #[inline]
    pub fn encode(&self, command: Command, writer: &mut Writer) {
        self.begin(command, writer);
        writer.end();
    }
}

/// The front of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Number of the operation.
    pub ioid: u32,
    /// The step that is answered.
    pub subcommand: Subcommand,
    /// Whether it was. An update of a monitor has none on the wire, and counts as done.
    pub status: Status,
}

impl Reply {
    /// Decodes the front of a reply.
    ///
    /// # Errors
    /// An [`Error`] for what is none.
    #[inline]
    pub fn decode(command: Command, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (ioid, subcommand) = (reader.u32()?, Subcommand(reader.u8()?));
        let status = if is_update(command, subcommand) { Status::OK } else { Status::decode(reader)? };
        Ok(Reply { ioid, subcommand, status })
    }

    /// Begins the message; what the subcommand needs is written next, and then it is [ended](Writer::end).
    #[inline]
    pub fn begin(&self, command: Command, writer: &mut Writer) {
        writer.begin(command.code());
        writer.u32(self.ioid);
        writer.u8(self.subcommand.answered(command).0);
        if !is_update(command, self.subcommand) {
            self.status.encode(writer);
        }
    }

    /// Writes a message that has nothing behind its front.
    #[inline]
    pub fn encode(&self, command: Command, writer: &mut Writer) {
        self.begin(command, writer);
        writer.end();
    }
}

/// Returns whether a reply is an update of a monitor, which has no status.
const fn is_update(command: Command, subcommand: Subcommand) -> bool {
    matches!(command, Command::Monitor) && !subcommand.has(Subcommand::INIT) && !subcommand.has(Subcommand::DESTROY)
}

/// The part of an array that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArraySlice {
    /// The first element.
    pub offset: u64,
    /// How many elements; 0 for all that there are.
    pub count: u64,
    /// The distance between two elements.
    pub stride: u64,
}

impl ArraySlice {
    /// Decodes what stands behind the front of a request to read.
    ///
    /// # Errors
    /// An [`Error`] for what is none.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(ArraySlice { offset: whole(reader)?, count: whole(reader)?, stride: whole(reader)? })
    }

    /// Writes what stands behind the front of a request to read.
    pub fn encode(&self, writer: &mut Writer) {
        for number in [self.offset, self.count, self.stride] {
            writer.size(number);
        }
    }
}

/// The place in an array that is written to. The elements follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayPlace {
    /// The first element.
    pub offset: u64,
    /// The distance between two elements.
    pub stride: u64,
}

impl ArrayPlace {
    /// Decodes what stands behind the front of a request to write, before the elements.
    ///
    /// # Errors
    /// An [`Error`] for what is none.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(ArrayPlace { offset: whole(reader)?, stride: whole(reader)? })
    }

    /// Writes what stands behind the front of a request to write, before the elements.
    pub fn encode(&self, writer: &mut Writer) {
        writer.size(self.offset);
        writer.size(self.stride);
    }
}

/// Decodes the length of an array, in a request to set it and in the reply that tells it.
///
/// # Errors
/// An [`Error`] for what is none.
pub fn decode_length(reader: &mut Reader<'_>) -> Result<u64, Error> {
    whole(reader)
}

/// A client's question for the type of a channel, or of a field of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetField<'a> {
    /// The server's number of the channel.
    pub sid: u32,
    /// Number of the operation.
    pub ioid: u32,
    /// Path of the field; empty for all.
    pub field: &'a [u8],
}

impl<'a> GetField<'a> {
    /// Decodes the payload.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Ok(GetField { sid: reader.u32()?, ioid: reader.u32()?, field: reader.text()? })
    }

    /// Writes the message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.begin(Command::GetField.code());
        writer.u32(self.sid);
        writer.u32(self.ioid);
        writer.text(self.field);
        writer.end();
    }
}

/// The front of the answer to [`GetField`]. The type follows if it is a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldReply {
    /// Number of the operation.
    pub ioid: u32,
    /// Whether there is such a field.
    pub status: Status,
}

impl FieldReply {
    /// Decodes the front of the answer.
    ///
    /// # Errors
    /// An [`Error`] for what is none.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(FieldReply { ioid: reader.u32()?, status: Status::decode(reader)? })
    }

    /// Begins the message; the type is written next, and then it is [ended](Writer::end).
    pub fn begin(&self, writer: &mut Writer) {
        writer.begin(Command::GetField.code());
        writer.u32(self.ioid);
        self.status.encode(writer);
    }
}

/// The end of an operation ([`Command::DestroyRequest`]), or a stop of it ([`Command::CancelRequest`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndRequest {
    /// The server's number of the channel.
    pub sid: u32,
    /// Number of the operation.
    pub ioid: u32,
}

impl EndRequest {
    /// Decodes the payload.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(EndRequest { sid: reader.u32()?, ioid: reader.u32()? })
    }

    /// Writes the message.
    pub fn encode(&self, command: Command, writer: &mut Writer) {
        writer.begin(command.code());
        writer.u32(self.sid);
        writer.u32(self.ioid);
        writer.end();
    }
}

fn whole(reader: &mut Reader<'_>) -> Result<u64, Error> {
    reader.size()?.ok_or(Error::Null { what: "a number of an array" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Order, Side};
    use alloc::vec::Vec;
    use hodo_machine::Outbox;

    /// A pipelined monitor's reply is as `tests/golden/pvxs-little.txt` has it of pvxs; all others repeat their requests.
    #[test]
    fn a_reply_has_the_subcommand_that_the_fields_servers_give_it() {
        for (command, asked, answered) in [
            (Command::Get, 0x08, 0x08),
            (Command::Get, 0x50, 0x50),
            (Command::Put, 0x08, 0x08),
            (Command::Put, 0x40, 0x40),
            (Command::PutGet, 0x80, 0x80),
            (Command::Array, 0x80, 0x80),
            (Command::Monitor, 0x08, 0x08),
            (Command::Monitor, 0x88, 0x08),
            (Command::Rpc, 0x08, 0x08),
        ] {
            let mut writer = Writer::new(Side::Server, Order::Little);
            Reply { ioid: 1, subcommand: Subcommand(asked), status: Status::OK }.encode(command, &mut writer);
            let mut out = Outbox::new();
            writer.flush(&mut out);
            let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
            // Behind the header of 8 bytes and the number of the operation.
            assert_eq!(bytes[12], answered, "{command:?} 0x{asked:02x}");
        }
    }
}
