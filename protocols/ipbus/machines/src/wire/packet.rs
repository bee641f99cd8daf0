//! The header of an IPbus 2.0 packet, one word:
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 31..28 | version | 2 |
//! | 27..24 | reserved | 0 |
//! | 23..8 | id | 0 where nothing is to be recovered; else 1 to 65535, one after the other |
//! | 7..4 | byte order | 0xF: it stands in the last byte of a big-endian packet, in the first of a little-endian one |
//! | 3..0 | type | [`Kind`] |
//!
//! A control packet's reply has its request's header and byte order. Status and resend packets are big-endian.

use super::operation::{Replies, Requests};
use super::{Order, Reader, WORD};
use crate::Error;
use hodo_machine::codes;

/// Bytes of the header.
pub const HEADER: usize = WORD;

codes! {
    /// The kind of a packet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Kind: u8 {
        /// Transactions, or the replies to them.
        Control = 0,
        /// A request for, or the reply with, the device's [`Status`](super::status::Status).
        Status = 1,
        /// A request for the reply of this id once more. Never a reply.
        Resend = 2,
    }
}

/// The first word of every IPbus 2.0 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The packet's number; 0 where it is not to be recovered.
    pub id: u16,
    /// Kind of the packet.
    pub kind: Kind,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`Error::NotIpbus`] for other bytes, and [`Error::PacketKind`] for a type that is not assigned.
    #[inline]
    pub const fn decode(word: u32) -> Result<Header, Error> {
        if !is_header(word) {
            return Err(Error::NotIpbus { first: word });
        }
        match Kind::from_code((word & 0xF) as u8) {
            Some(kind) => Ok(Header { id: (word >> 8) as u16, kind }),
            None => Err(Error::PacketKind { header: word }),
        }
    }

    /// Encodes the header's word.
    #[must_use]
    #[inline]
    pub const fn encode(self) -> u32 {
        0x2000_00F0 | (self.id as u32) << 8 | self.kind as u32
    }
}

/// Tells whether a word, in the right byte order, is the header of an IPbus 2.0 packet of any type.
#[must_use]
#[inline]
pub const fn is_header(word: u32) -> bool {
    word & 0xFF00_00F0 == 0x2000_00F0
}

/// Returns the whole packet that asks for a reply once more.
#[must_use]
pub const fn resend(id: u16) -> [u8; HEADER] {
    Order::Big.bytes_32(Header { id, kind: Kind::Resend }.encode())
}

/// Returns the id that follows: 0 is never a turn's.
#[must_use]
#[inline]
pub const fn following(id: u16) -> u16 {
    if id == u16::MAX { 1 } else { id + 1 }
}

/// Returns how many packets `to` is after `from`, both from 1 on, going round.
#[must_use]
#[inline]
pub const fn distance(from: u16, to: u16) -> u16 {
    if to >= from { to - from } else { to.wrapping_sub(from).wrapping_sub(1) }
}

/// A packet whose header is understood.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// The header.
    pub header: Header,
    /// The byte order of its words.
    pub order: Order,
    /// Bytes behind the header.
    pub body: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads the header, and finds the byte order by it.
    ///
    /// # Errors
    /// [`Error::NotIpbus`] for other bytes, and [`Error::PacketKind`] for a type that is not assigned.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let Some((first, body)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(Error::Truncated { need: HEADER, have: bytes.len() });
        };
        let found = Order::BOTH.into_iter().find(|order| is_header(order.u32(*first)));
        let order = found.ok_or(Error::NotIpbus { first: u32::from_be_bytes(*first) })?;
        let header = Header::decode(order.u32(*first))?;
        if header.kind != Kind::Control && order != Order::Big {
            return Err(Error::LittleEndian { kind: header.kind });
        }
        Ok(Packet { header, order, body })
    }

    /// Iterates over the transactions of a control packet from a host.
    #[must_use]
    pub const fn requests(&self) -> Requests<'a> {
        Requests::new(Reader::new(self.body, self.order))
    }

    /// Iterates over the transactions of a control packet from a device.
    #[must_use]
    pub const fn replies(&self) -> Replies<'a> {
        Replies::new(Reader::new(self.body, self.order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with words laid out by hand after the table above; uHAL 2.8 sends the second one, with id 0.
    #[test]
    fn headers_are_these_words() {
        let cases = [
            ([0x20, 0x12, 0x34, 0xF0], Order::Big, 0x1234, Kind::Control),
            ([0xF0, 0x34, 0x12, 0x20], Order::Little, 0x1234, Kind::Control),
            ([0x20, 0x00, 0x00, 0xF1], Order::Big, 0, Kind::Status),
            ([0x20, 0xFF, 0xFE, 0xF2], Order::Big, 0xFFFE, Kind::Resend),
        ];
        for (bytes, order, id, kind) in cases {
            let header = Header { id, kind };
            assert_eq!(order.bytes_32(header.encode()), bytes);
            let packet = Packet::decode(&bytes).expect("it is a packet");
            assert_eq!((packet.header, packet.order, packet.body), (header, order, &[][..]));
        }
        assert_eq!(resend(0xFFFE), [0x20, 0xFF, 0xFE, 0xF2]);
    }

    #[test]
    fn what_is_no_packet_is_named_by_its_first_word() {
        let error = |bytes: &[u8]| Packet::decode(bytes).map(|packet| packet.header);
        assert_eq!(error(b"GET "), Err(Error::NotIpbus { first: 0x4745_5420 }));
        assert_eq!(error(&[0x20, 0, 0, 0xF3]), Err(Error::PacketKind { header: 0x2000_00F3 }));
        assert_eq!(error(&[0xF1, 0, 0, 0x20]), Err(Error::LittleEndian { kind: Kind::Status }));
        assert_eq!(error(&[0x20, 0]), Err(Error::Truncated { need: 4, have: 2 }));
        assert_eq!(error(&[0x10, 0, 0, 0xF8]), Err(Error::NotIpbus { first: 0x1000_00F8 }), "version 1.3");
    }

    #[test]
    fn every_word_decodes_to_itself_or_not_at_all() {
        let mut random = hodo_sim::Random::new(1);
        for _ in 0..100_000 {
            let word = random.bits() as u32;
            for word in [word, word & 0x00FF_FF0F | 0x2000_00F0] {
                if let Ok(header) = Header::decode(word) {
                    assert_eq!(header.encode(), word);
                }
            }
        }
    }

    #[test]
    fn numbers_go_round_without_zero() {
        assert_eq!((following(1), following(0xFFFF)), (2, 1));
        assert_eq!((distance(5, 5), distance(5, 7), distance(0xFFFF, 1), distance(2, 1)), (0, 2, 1, 65534));
        let mut id = 0xFFF0;
        for steps in 0..40 {
            assert_eq!(distance(0xFFF0, id), steps);
            id = following(id);
        }
    }
}
