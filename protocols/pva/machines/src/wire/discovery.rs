//! Messages that find servers, over UDP and over the TCP of a name server.
//!
//! | command | payload |
//! |---|---|
//! | beacon | 12 bytes identity, u8 flags, u8 sequence, u16 changes, address, u16 port, text protocol, any: state |
//! | search | u32 sequence, u8 flags, 3 bytes 0, address and u16 port for the answer, texts: protocols, u16 count, of each u32 number, text name |
//! | search response | 12 bytes identity, u32 sequence, address, u16 port, text protocol, u8 found, u16 count, u32 numbers |
//! | origin tag | address |
//!
//! Addresses have 16 bytes; those of IPv4 are mapped into IPv6. An unspecified one stands for the sender of the datagram.

use crate::wire::Command;
use crate::{Error, Reader, TypeCache, Value, Writer};
use core::net::{IpAddr, Ipv6Addr};

/// The identity of a server, another one each time it starts.
pub type Guid = [u8; 12];

/// Flag of a search: answer even if none is found.
pub const REPLY_REQUIRED: u8 = 0x01;
/// Flag of a search: it was sent to one address, so that the host that receives it passes it on to its other servers.
pub const UNICAST: u8 = 0x80;

/// A server's sign of life.
#[derive(Debug, Clone, PartialEq)]
pub struct Beacon<'a> {
    /// Identity of the server.
    pub guid: Guid,
    /// Flags; none is assigned.
    pub flags: u8,
    /// Number of the beacon.
    pub sequence: u8,
    /// How many times the server's list of channels has changed.
    pub changes: u16,
    /// Address of the server.
    pub address: IpAddr,
    /// Port of the server.
    pub port: u16,
    /// Protocol that it speaks there: `tcp`, `tls`.
    pub protocol: &'a [u8],
    /// State of the server.
    pub state: Option<Value>,
}

impl<'a> Beacon<'a> {
    /// Decodes the payload.
    ///
    /// # Errors
    /// An [`Error`] for what is none.
    pub fn decode(reader: &mut Reader<'a>, types: &mut TypeCache) -> Result<Self, Error> {
        let front = Beacon::decode_front(reader)?;
        Ok(Beacon { state: Value::decode_any(reader, types)?, ..front })
    }

    /// Decodes the payload but for the state of the server, which any stranger may make large.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn decode_front(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Ok(Beacon {
            guid: reader.array()?,
            flags: reader.u8()?,
            sequence: reader.u8()?,
            changes: reader.u16()?,
            address: address(reader)?,
            port: reader.u16()?,
            protocol: reader.text()?,
            state: None,
        })
    }

    /// Writes the message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.begin(Command::Beacon.code());
        writer.bytes(&self.guid);
        writer.u8(self.flags);
        writer.u8(self.sequence);
        writer.u16(self.changes);
        write_address(self.address, writer);
        writer.u16(self.port);
        writer.text(self.protocol);
        Value::encode_any(self.state.as_ref(), writer);
        writer.end();
    }
}

/// A client's question who has channels of these names. With none it asks which servers there are.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    /// Number of the search, which the answer repeats.
    pub sequence: u32,
    /// [`REPLY_REQUIRED`] and [`UNICAST`].
    pub flags: u8,
    /// Address for the answer.
    pub address: IpAddr,
    /// Port for the answer.
    pub port: u16,
    protocols: Reader<'a>,
    protocol_count: usize,
    channels: Reader<'a>,
    channel_count: u16,
}

impl<'a> Search<'a> {
    /// Decodes the payload, and checks it to its end. Nothing is allocated.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let (sequence, flags) = (reader.u32()?, reader.u8()?);
        reader.bytes(3)?;
        let (address, port) = (address(reader)?, reader.u16()?);
        let protocol_count = reader.count(1)?;
        let protocols = reader.clone();
        for _ in 0..protocol_count {
            reader.text()?;
        }
        let channel_count = reader.u16()?;
        let channels = reader.clone();
        for _ in 0..channel_count {
            reader.u32()?;
            reader.text()?;
        }
        Ok(Search { sequence, flags, address, port, protocols, protocol_count, channels, channel_count })
    }

    /// Returns the protocols that the client speaks.
    pub fn protocols(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (mut reader, count) = (self.protocols.clone(), self.protocol_count);
        (0..count).map_while(move |_| reader.text().ok())
    }

    /// Returns the client's number and the name of each channel.
    pub fn channels(&self) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        let (mut reader, count) = (self.channels.clone(), self.channel_count);
        (0..count).map_while(move |_| Some((reader.u32().ok()?, reader.text().ok()?)))
    }
}

/// The fields of a search that stand before its channels.
#[derive(Debug, Clone, Copy)]
pub struct SearchFront<'a> {
    /// Number of the search, which the answer repeats.
    pub sequence: u32,
    /// [`REPLY_REQUIRED`] and [`UNICAST`].
    pub flags: u8,
    /// Address for the answer.
    pub address: IpAddr,
    /// Port for the answer.
    pub port: u16,
    /// The protocols that the client speaks.
    pub protocols: &'a [&'a str],
}

impl SearchFront<'_> {
    /// Writes the message.
    pub fn encode<'n>(&self, channels: impl ExactSizeIterator<Item = (u32, &'n [u8])>, writer: &mut Writer) {
        self.begin(channels.len() as u16, writer);
        for (cid, name) in channels {
            writer.u32(cid);
            writer.text(name);
        }
        writer.end();
    }

    /// Begins the message; so many numbers and names follow.
    pub fn begin(&self, count: u16, writer: &mut Writer) {
        writer.begin(Command::Search.code());
        writer.u32(self.sequence);
        writer.u8(self.flags);
        writer.bytes(&[0; 3]);
        write_address(self.address, writer);
        writer.u16(self.port);
        writer.size(self.protocols.len() as u64);
        for protocol in self.protocols {
            writer.text(protocol.as_bytes());
        }
        writer.u16(count);
    }
}

/// A server's answer to a search.
#[derive(Debug, Clone)]
pub struct SearchResponse<'a> {
    /// Identity of the server.
    pub guid: Guid,
    /// Number of the search.
    pub sequence: u32,
    /// Address of the server.
    pub address: IpAddr,
    /// Port of the server; 0 over TCP for the port of the connection.
    pub port: u16,
    /// Protocol that it speaks there.
    pub protocol: &'a [u8],
    /// Whether the server has these channels, or has not.
    pub found: bool,
    numbers: Reader<'a>,
    count: u16,
}

impl<'a> SearchResponse<'a> {
    /// Decodes the payload, and checks it to its end. Nothing is allocated.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let (guid, sequence, address, port) = (reader.array()?, reader.u32()?, address(reader)?, reader.u16()?);
        let (protocol, found, count) = (reader.text()?, reader.u8()? != 0, reader.u16()?);
        let numbers = reader.clone();
        reader.bytes(4 * usize::from(count))?;
        Ok(SearchResponse { guid, sequence, address, port, protocol, found, numbers, count })
    }

    /// Returns the client's numbers of the channels.
    pub fn channels(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (mut reader, count) = (self.numbers.clone(), self.count);
        (0..count).map_while(move |_| reader.u32().ok())
    }
}

/// The fields of an answer to a search that stand before its channels.
#[derive(Debug, Clone, Copy)]
pub struct ResponseFront<'a> {
    /// Identity of the server.
    pub guid: Guid,
    /// Number of the search.
    pub sequence: u32,
    /// Address of the server.
    pub address: IpAddr,
    /// Port of the server; 0 over TCP for the port of the connection.
    pub port: u16,
    /// Protocol that it speaks there.
    pub protocol: &'a str,
    /// Whether the server has these channels, or has not.
    pub found: bool,
}

impl ResponseFront<'_> {
    /// Writes the message.
    pub fn encode(&self, channels: impl ExactSizeIterator<Item = u32>, writer: &mut Writer) {
        writer.begin(Command::SearchResponse.code());
        writer.bytes(&self.guid);
        writer.u32(self.sequence);
        write_address(self.address, writer);
        writer.u16(self.port);
        writer.text(self.protocol.as_bytes());
        writer.u8(self.found.into());
        writer.u16(channels.len() as u16);
        for cid in channels {
            writer.u32(cid);
        }
        writer.end();
    }
}

/// Decodes the payload of an origin tag: the address that a forwarded datagram was sent to.
///
/// # Errors
/// [`Error::Truncated`].
pub fn decode_origin_tag(reader: &mut Reader<'_>) -> Result<IpAddr, Error> {
    address(reader)
}

/// Writes an origin tag.
pub fn encode_origin_tag(address: IpAddr, writer: &mut Writer) {
    writer.begin(Command::OriginTag.code());
    write_address(address, writer);
    writer.end();
}

fn address(reader: &mut Reader<'_>) -> Result<IpAddr, Error> {
    let address = Ipv6Addr::from(reader.array::<16>()?);
    Ok(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
}

fn write_address(address: IpAddr, writer: &mut Writer) {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    writer.bytes(&address.octets());
}
