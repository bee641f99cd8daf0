//! The header of a message, and the messages that are a header alone.

use crate::{Error, Order};

/// Bytes of a header.
pub const HEADER: usize = 8;
/// First byte of every message.
pub const MAGIC: u8 = 0xCA;
/// Version of the protocol that this side states. Any other is accepted.
pub const VERSION: u8 = 2;

const CONTROL: u8 = 0x01;
const SEGMENT: u8 = 0x30;
const FROM_SERVER: u8 = 0x40;
const BIG_ENDIAN: u8 = 0x80;

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The side that asks.
    Client,
    /// The side that has the channels.
    Server,
}

/// The place of a message's piece among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// The whole message.
    Whole,
    /// The first piece.
    First,
    /// A piece between the first and the last.
    Middle,
    /// The last piece.
    Last,
}

/// The header of a message, of one of its segments, or a control message, which is a header alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The side that sends it.
    pub from: Side,
    /// Byte order of the size, and of the payload.
    pub order: Order,
    /// Whether this is a control message.
    pub is_control: bool,
    /// Which piece of the message follows.
    pub segment: Segment,
    /// Command, or the kind of a control message.
    pub command: u8,
    /// Bytes of payload, or the data of a control message.
    pub size: u32,
}

impl Header {
    /// Decodes a header.
    ///
    /// # Errors
    /// [`Error::NotPva`] if the first byte, or the version, is another protocol's.
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Self, Error> {
        let [magic, version, flags, command, s0, s1, s2, s3] = *bytes;
        if magic != MAGIC || version == 0 {
            return Err(Error::NotPva { first: magic });
        }
        let order = if flags & BIG_ENDIAN != 0 { Order::Big } else { Order::Little };
        let segment = match flags & SEGMENT {
            0x00 => Segment::Whole,
            0x10 => Segment::First,
            0x20 => Segment::Last,
            _ => Segment::Middle,
        };
        Ok(Header {
            from: if flags & FROM_SERVER != 0 { Side::Server } else { Side::Client },
            order,
            is_control: flags & CONTROL != 0,
            segment,
            command,
            size: order.u32([s0, s1, s2, s3]),
        })
    }

    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER] {
        let mut flags = if self.is_control { CONTROL } else { 0 };
        flags |= match self.segment {
            Segment::Whole => 0x00,
            Segment::First => 0x10,
            Segment::Last => 0x20,
            Segment::Middle => 0x30,
        };
        flags |= if self.from == Side::Server { FROM_SERVER } else { 0 };
        flags |= if self.order == Order::Big { BIG_ENDIAN } else { 0 };
        let [s0, s1, s2, s3] = self.order.bytes_32(self.size);
        [MAGIC, VERSION, flags, self.command, s0, s1, s2, s3]
    }
}

hodo_machine::codes! {
    /// The kind of a control message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Control: u8 {
        /// Sets a marker in the stream.
        SetMarker = 0,
        /// Confirms that a marker was reached.
        AckMarker = 1,
        /// The byte order in which the client is to send, from its header's flags.
        SetByteOrder = 2,
        /// Requests an echo.
        EchoRequest = 3,
        /// The echo.
        EchoReply = 4,
    } else {
        /// A kind that is not assigned: to be skipped.
        Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_headers_decode_and_encode() {
        // Sent by pvxs: SetByteOrder, then a little-endian reply to a get.
        for (bytes, is_control, command, size) in
            [([0xCA, 2, 0x41, 2, 0, 0, 0, 0], true, 2, 0), ([0xCA, 2, 0x40, 10, 24, 0, 0, 0], false, 10, 24)]
        {
            let header = Header::decode(&bytes).expect("it is one");
            assert_eq!((header.is_control, header.command, header.size), (is_control, command, size));
            assert_eq!((header.from, header.order, header.segment), (Side::Server, Order::Little, Segment::Whole));
            assert_eq!(header.encode(), bytes);
        }
    }

    #[test]
    fn every_flag_decodes_to_itself() {
        for flags in 0..=255u8 {
            let bytes = [MAGIC, VERSION, flags, 7, 1, 2, 3, 4];
            let header = Header::decode(&bytes).expect("any flags are allowed");
            assert_eq!(header.encode()[2], flags & 0xF1, "bits that are not assigned are ignored");
        }
    }

    #[test]
    fn another_protocol_is_refused() {
        assert_eq!(Header::decode(b"GET / HT"), Err(Error::NotPva { first: b'G' }));
    }
}
