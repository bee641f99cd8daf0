//! Messages about the connection and its channels.
//!
//! | command | from | payload |
//! |---|---|---|
//! | validation | server | u32 receive buffer, u16 types that it remembers, texts: ways of authentication, the best last |
//! | | client | u32 receive buffer, u16 types that it remembers, u16 priority, text: way of authentication, any: credentials |
//! | validated | server | status |
//! | echo | both | any bytes, which come back |
//! | authentication | both | any |
//! | access rights | server | u32 client's number, u16 rights |
//! | create channel | client | u16 count, of each u32 client's number, text: name |
//! | | server | u32 client's number, u32 server's number, status |
//! | destroy channel | both | u32 server's number, u32 client's number |
//! | message | both | u32 operation, u8 severity, text |

use crate::wire::{Command, Severity, Status};
use crate::{Error, Reader, TypeCache, Value, Writer};
use alloc::string::String;
use alloc::vec::Vec;

/// A server's first message on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation {
    /// Bytes of its receive buffer.
    pub buffer_bytes: u32,
    /// Types that it remembers.
    pub types: u16,
    /// Ways of authentication, of which older clients prefer the last.
    pub ways: Vec<String>,
}

impl Validation {
    /// Decodes the payload.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (buffer_bytes, types) = (reader.u32()?, reader.u16()?);
        let count = reader.count(1)?;
        let ways = (0..count).map(|_| text(reader)).collect::<Result<_, _>>()?;
        Ok(Validation { buffer_bytes, types, ways })
    }

    /// Writes the message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.begin(Command::Validation.code());
        writer.u32(self.buffer_bytes);
        writer.u16(self.types);
        writer.size(self.ways.len() as u64);
        for way in &self.ways {
            writer.text(way.as_bytes());
        }
        writer.end();
    }
}

/// A client's answer to [`Validation`].
#[derive(Debug, Clone, PartialEq)]
pub struct Credentials {
    /// Bytes of its receive buffer.
    pub buffer_bytes: u32,
    /// Types that it remembers.
    pub types: u16,
    /// Priority of the connection.
    pub priority: u16,
    /// The chosen way of authentication.
    pub way: String,
    /// The claim, as the way of authentication defines it.
    pub claim: Option<Value>,
}

impl Credentials {
    /// Decodes the payload.
    ///
    /// # Errors
    /// An [`Error`] for what is none.
    pub fn decode(reader: &mut Reader<'_>, types: &mut TypeCache) -> Result<Self, Error> {
        let (buffer_bytes, type_count, priority) = (reader.u32()?, reader.u16()?, reader.u16()?);
        let way = text(reader)?;
        // Old clients send nothing here for `anonymous`.
        let claim = if reader.rest().is_empty() { None } else { Value::decode_any(reader, types)? };
        Ok(Credentials { buffer_bytes, types: type_count, priority, way, claim })
    }

    /// Writes the message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.begin(Command::Validation.code());
        writer.u32(self.buffer_bytes);
        writer.u16(self.types);
        writer.u16(self.priority);
        writer.text(self.way.as_bytes());
        Value::encode_any(self.claim.as_ref(), writer);
        writer.end();
    }
}

/// Writes the message that a connection is accepted, or why not.
pub fn encode_validated(status: &Status, writer: &mut Writer) {
    writer.begin(Command::Validated.code());
    status.encode(writer);
    writer.end();
}

/// Writes an echo, or the answer to one: the same bytes.
pub fn encode_echo(bytes: &[u8], writer: &mut Writer) {
    writer.begin(Command::Echo.code());
    writer.bytes(bytes);
    writer.end();
}

/// Writes a further step of authentication.
pub fn encode_authentication(data: Option<&Value>, writer: &mut Writer) {
    writer.begin(Command::Authentication.code());
    Value::encode_any(data, writer);
    writer.end();
}

/// The access rights of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRights {
    /// The client's number of the channel.
    pub cid: u32,
    /// The rights, one bit each.
    pub rights: u16,
}

impl AccessRights {
    /// Decodes the payload.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(AccessRights { cid: reader.u32()?, rights: reader.u16()? })
    }

    /// Writes the message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.begin(Command::AccessRights.code());
        writer.u32(self.cid);
        writer.u16(self.rights);
        writer.end();
    }
}

/// A channel that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateChannel<'a> {
    /// The client's number of the channel.
    pub cid: u32,
    /// Name of the channel.
    pub name: &'a [u8],
}

impl<'a> CreateChannel<'a> {
    /// Decodes the payload, and tells of each channel.
    ///
    /// # Errors
    /// [`Error::Truncated`]; the channels before it have been told.
    pub fn decode(reader: &mut Reader<'a>, mut each: impl FnMut(CreateChannel<'a>)) -> Result<(), Error> {
        for _ in 0..reader.u16()? {
            each(CreateChannel { cid: reader.u32()?, name: reader.text()? });
        }
        Ok(())
    }

    /// Writes the message, with this channel alone: what all servers understand.
    pub fn encode(&self, writer: &mut Writer) {
        writer.begin(Command::CreateChannel.code());
        writer.u16(1);
        writer.u32(self.cid);
        writer.text(self.name);
        writer.end();
    }
}

/// A server's answer to [`CreateChannel`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelCreated {
    /// The client's number of the channel.
    pub cid: u32,
    /// The server's number of the channel.
    pub sid: u32,
    /// Whether it is open.
    pub status: Status,
}

impl ChannelCreated {
    /// Decodes the payload.
    ///
    /// # Errors
    /// An [`Error`] for what is none.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(ChannelCreated { cid: reader.u32()?, sid: reader.u32()?, status: Status::decode(reader)? })
    }

    /// Writes the message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.begin(Command::CreateChannel.code());
        writer.u32(self.cid);
        writer.u32(self.sid);
        self.status.encode(writer);
        writer.end();
    }
}

/// The end of a channel, from either side, and its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DestroyChannel {
    /// The server's number of the channel.
    pub sid: u32,
    /// The client's number of the channel.
    pub cid: u32,
}

impl DestroyChannel {
    /// Decodes the payload.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(DestroyChannel { sid: reader.u32()?, cid: reader.u32()? })
    }

    /// Writes the message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.begin(Command::DestroyChannel.code());
        writer.u32(self.sid);
        writer.u32(self.cid);
        writer.end();
    }
}

/// A text for people about an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Number of the operation.
    pub ioid: u32,
    /// How bad it is.
    pub severity: Severity,
    /// The text.
    pub text: String,
}

impl Note {
    /// Decodes the payload.
    ///
    /// # Errors
    /// [`Error::Truncated`], or [`Error::Code`] for a severity that is not assigned.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (ioid, code) = (reader.u32()?, reader.u8()?);
        let severity = Severity::from_code(code).ok_or(Error::Code { what: "severity", code })?;
        Ok(Note { ioid, severity, text: text(reader)? })
    }

    /// Writes the message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.begin(Command::Message.code());
        writer.u32(self.ioid);
        writer.u8(self.severity.code());
        writer.text(self.text.as_bytes());
        writer.end();
    }
}

fn text(reader: &mut Reader<'_>) -> Result<String, Error> {
    reader.text().map(|text| String::from_utf8_lossy(text).into_owned())
}
