//! The wire: words of 32 bits, in packets of a header and transactions, in either byte order.
//!
//! | bytes | file | what |
//! |---|---|---|
//! | `20 II II Ft`, or `Ft II II 20` | [`packet`] | header of an IPbus 2.0 packet: control, status or resend |
//! | `2 III WW K C` | [`transaction`] | header of a transaction |
//! | address, data, ... | [`operation`] | what follows it in a request and in a reply |
//! | 64, big-endian | [`status`] | what a device says of itself |
//! | `1 ...` | [`legacy`] | IPbus 1.3: no packet header, a byte-order transaction first |
//! | length, then so many | [`chunk`] | TCP: what a stream is cut into, to a device and to the hub |
//! | address, port, ... | [`hub`] | what the hub's chunks hold: packets, each with its device |
//!
//! The layouts are those of the field's firmware, client (uHAL 2.8) and hub. Vectors in the tests say which were sent
//! or taken by uHAL, and which are laid out by hand.

pub mod chunk;
pub mod hub;
pub mod legacy;
pub mod operation;
pub mod packet;
mod reader;
#[cfg(test)]
mod samples;
pub mod status;
pub mod transaction;
mod words;

pub use reader::Reader;
pub use words::{Data, Iter, Order, Words, swap};

use core::fmt;

/// Bytes of a word.
pub const WORD: usize = 4;
/// The UDP or TCP port that devices customarily listen on.
pub const DEVICE_PORT: u16 = 50001;
/// The TCP port of a hub.
pub const HUB_PORT: u16 = 10203;
/// Bytes of UDP payload that uHAL fills at most, in a request and in its reply, so that Ethernet carries it whole.
/// Through the hub they include the hub's header of the packet.
pub const PAYLOAD: usize = 1400;
/// Packets that uHAL keeps in flight to a device at most, where the device has as many buffers.
pub const IN_FLIGHT: usize = 16;
/// Packets that uHAL keeps in flight to a hub at most.
pub const HUB_IN_FLIGHT: usize = 60;
/// Replies that the firmware keeps for resending, as built by default.
pub const BUFFERS: u32 = 16;
/// Bytes of one buffer of the firmware, as built by default.
pub const BUFFER_BYTES: u32 = 2040;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// IPbus 1.3: one packet in flight, no recovery.
    V1_3,
    /// IPbus 2.0: packets have numbers, and can be recovered.
    V2_0,
}

impl Version {
    /// Returns the version and the byte order of a packet; `None` for other bytes.
    #[must_use]
    pub fn of(packet: &[u8]) -> Option<(Version, Order)> {
        let first = *packet.first_chunk::<WORD>()?;
        let order_of = |is: fn(u32) -> bool| Order::BOTH.into_iter().find(|order| is(order.u32(first)));
        let current = order_of(packet::is_header).map(|order| (Version::V2_0, order));
        current.or_else(|| order_of(legacy::is_byte_order).map(|order| (Version::V1_3, order)))
    }

    /// Words of one transaction at most.
    #[must_use]
    pub const fn words_max(self) -> usize {
        match self {
            Version::V1_3 => 0x1FF,
            Version::V2_0 => 0xFF,
        }
    }

    /// Words that can be read with one packet whose reply has so many bytes.
    #[must_use]
    pub const fn read_words(self, packet: usize) -> usize {
        self.words_behind(1, packet)
    }

    /// Words that can be written with one packet of so many bytes.
    #[must_use]
    pub const fn write_words(self, packet: usize) -> usize {
        self.words_behind(2, packet)
    }

    /// Words of data in a packet that begins with one word (a packet header, or the byte-order transaction), where
    /// each transaction begins with so many.
    const fn words_behind(self, overhead: usize, packet: usize) -> usize {
        let room = (packet / WORD).saturating_sub(1);
        let whole = room / (overhead + self.words_max());
        let rest = room % (overhead + self.words_max());
        whole * self.words_max() + rest.saturating_sub(overhead)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::V1_3 => "1.3",
            Version::V2_0 => "2.0",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the counts that uHAL 2.8 was seen to ask for in its first packet of a long block.
    #[test]
    fn a_packet_holds_as_many_words_as_the_fields_own_client_puts_into_it() {
        assert_eq!(Version::V2_0.read_words(PAYLOAD), 347);
        assert_eq!(Version::V2_0.write_words(PAYLOAD), 345);
        assert_eq!(Version::V1_3.read_words(PAYLOAD), 348);
        assert_eq!(Version::V2_0.read_words(PAYLOAD - hub::REPLY_HEADER), 344);
        assert_eq!(Version::V2_0.write_words(PAYLOAD - hub::REQUEST_HEADER), 343);
    }

    #[test]
    fn what_fits_is_what_the_transactions_need() {
        use transaction::Kind::{Read, Write};
        for version in [Version::V1_3, Version::V2_0] {
            for packet in 0..4000 {
                let needed = |words: usize, one: &dyn Fn(usize) -> usize| {
                    let (whole, rest) = (words / version.words_max(), words % version.words_max());
                    (1 + whole * one(version.words_max()) + if rest > 0 { one(rest) } else { 0 }) * WORD
                };
                let read = version.read_words(packet);
                assert!(read == 0 || needed(read, &|words| Read.reply_words(words)) <= packet);
                assert!(needed(read + 1, &|words| Read.reply_words(words)) > packet);
                let written = version.write_words(packet);
                assert!(written == 0 || needed(written, &|words| Write.request_words(words)) <= packet);
                assert!(needed(written + 1, &|words| Write.request_words(words)) > packet);
            }
        }
    }

    #[test]
    fn the_first_word_tells_version_and_byte_order() {
        assert_eq!(Version::of(&[0x20, 0, 0, 0xF0]), Some((Version::V2_0, Order::Big)));
        assert_eq!(Version::of(&[0xF0, 0, 0, 0x20, 1]), Some((Version::V2_0, Order::Little)));
        assert_eq!(Version::of(&[0x10, 0, 0, 0xF8]), Some((Version::V1_3, Order::Big)));
        assert_eq!(Version::of(&[0xF8, 0, 0, 0x10]), Some((Version::V1_3, Order::Little)));
        assert_eq!(Version::of(&[0xFC, 0, 2, 0x10]), Some((Version::V1_3, Order::Little)), "a reply");
        for other in [&[][..], &[0x20, 0, 0], b"GET ", &[0x20, 0, 0, 0xE0], &[0x21, 0, 0, 0xF0], &[0x18, 1, 0, 0x10]] {
            assert_eq!(Version::of(other), None, "{other:02X?}");
        }
    }
}
