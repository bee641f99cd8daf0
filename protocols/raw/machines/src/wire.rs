//! The wire: a header of 16 bytes, little-endian, and what follows it.
//!
//! | bytes | field | meaning |
//! |---|---|---|
//! | 0 | kind | one of [`Kind`] |
//! | 1 | flags | bit 0 on SEND: acknowledge at once; on REPORT: stamp stages, and tell of them; on HELLO: tell your facts; on WELCOME: greet again with this proof; on COUNTERS: 8 bytes behind them count payloads that are not as sent; bit 1 on HELLO: acknowledge by time too; bit 1 on WELCOME, bit 2 on HELLO: payloads end with a checksum |
//! | 2..4 | count | RECEIVE: operations asked for; ACK: ranges that follow; UPDATE: the number of its subscription |
//! | 4..8 | length | the operation's size, or the bytes behind the header |
//! | 8..16 | sequence | the operation's number in its direction, from 0 |
//!
//! The size of an operation counts from the header's first byte, as with the field's other testers: a message of ECHO,
//! REPLY, SEND or DATA is `max(length, 16)` bytes long, so that TCP carries exactly the payload that is counted; one of
//! UPDATE is `max(length, 32)`. Where both sides check payloads, the last four bytes of each of these messages are the CRC-32 of those
//! before them, its header's too, if four are left behind the header and the stamp. All other kinds have `length` bytes behind the header. Over UDP a datagram is one message, and
//! RECEIVE, REPORT, SUBSCRIBE and UNSUBSCRIBE have the proof of the WELCOME as the first 8 bytes behind their header.

pub mod updates;

use crate::Error;
use hodo_machine::{Cursor, Truncated, codes};

/// Bytes of the header.
pub const HEADER: usize = 16;
/// The version of this wire.
pub const VERSION: u16 = 1;
/// The first bytes of a HELLO or WELCOME, behind the header.
pub const MAGIC: [u8; 8] = *b"hodo raw";
/// Bytes behind the header of HELLO and WELCOME: magic, version (2), reserved (2), largest operation (4).
pub const GREETING: usize = 16;
/// Bytes behind the greeting in the WELCOME of a server that is asked for its facts: the number that over UDP the next HELLO has
/// to repeat, and every message that is answered with more than it has.
pub const PROOF: usize = 8;
/// Bytes behind the header of WELCOME at most: the greeting, the proof and the server's facts. Over UDP it is no longer than
/// the HELLO, whose greeting is filled up with zeros for it: an address that is not proven gets no more than it sent.
pub const GREETING_MAX: usize = 256;
/// Bytes behind the header of COUNTERS; with stages up to [`crate::stages::COUNTERS_MAX`].
pub const COUNTERS: usize = 72;
/// Ranges in one ACK at most.
pub const RANGES_MAX: usize = 32;
/// Bytes of one range in an ACK: first sequence number (8), count (8).
pub const RANGE: usize = 16;
/// Bytes behind the ranges of an ACK over UDP to a client that greeted with [`FLAG_BY_TIME`]: the SENDs received so far, each
/// counted once.
pub const RECEIVED: usize = 8;
/// SEND: acknowledge at once.
pub const FLAG_ACKNOWLEDGE: u8 = 1;
/// REPORT: stamp the stages of what is answered from here on, and tell of them behind the counters.
pub const FLAG_STAGES: u8 = 1;

/// HELLO: tell your facts behind the greeting.
pub const FLAG_FACTS: u8 = 1;
/// HELLO: acknowledge by time too, and not only what asks for it. Servers of before know no such bit.
pub const FLAG_BY_TIME: u8 = 2;
/// WELCOME: greet again with this proof; the server keeps nothing of the client until then.
pub const FLAG_PROVE: u8 = 1;

/// HELLO: payloads end with a checksum, here and there. Servers of before know no such bit.
pub const FLAG_CHECK: u8 = 4;
/// WELCOME: payloads end with a checksum, as was asked.
pub const FLAG_CHECKS: u8 = 2;
/// COUNTERS: behind them stands how many payloads are not as they were sent.
pub const FLAG_DAMAGED: u8 = 1;
/// Bytes of the checksum at the end of a payload.
pub const CHECKSUM: usize = 4;
/// Bytes of the count of payloads that are not as they were sent.
pub const DAMAGED: usize = 8;
/// The checksum of whatever ends with its own.
pub(crate) const INTACT: u32 = 0x2144_DF1C;

/// Operations asked for in one RECEIVE at most.
pub const RECEIVE_MAX: u16 = 1024;

/// Which way the payload of an operation goes, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Out and back.
    Both,
    /// To the server.
    Send,
    /// From the server.
    Receive,
}

codes! {
    /// The kind of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Kind: u8 {
        /// Client: first message of a peer.
        Hello = 0xA0,
        /// Server: the answer to HELLO.
        Welcome = 0xA1,
        /// Client: send it back.
        Echo = 0xA2,
        /// Server: the answer to ECHO.
        Reply = 0xA3,
        /// Client: payload.
        Send = 0xA4,
        /// Server: SENDs have arrived: all below `sequence` on a stream, the ranges that follow over UDP.
        Ack = 0xA5,
        /// Client: send `count` operations of `length` bytes.
        Receive = 0xA6,
        /// Server: payload.
        Data = 0xA7,
        /// Client: acknowledge what has come; with a sequence number above 0 also tell your counters, and with
        /// [`FLAG_STAGES`] your stages.
        Report = 0xA8,
        /// Server: the answer to REPORT, with its sequence number.
        Counters = 0xA9,
        /// Client: this peer is done.
        Goodbye = 0xAA,
        /// Client: send me updates; repeated, it renews the subscription.
        Subscribe = 0xAB,
        /// Server: the answer to SUBSCRIBE.
        Subscribed = 0xAC,
        /// Server: payload that nobody asked for one by one.
        Update = 0xAD,
        /// Client: send no more updates.
        Unsubscribe = 0xAE,
        /// Server: the answer to UNSUBSCRIBE.
        Ended = 0xAF,
    }
}

impl Kind {
    /// Tells whether the message is an operation's payload, whose size counts from the header's first byte.
    #[must_use]
    pub const fn is_payload(self) -> bool {
        matches!(self, Kind::Echo | Kind::Reply | Kind::Send | Kind::Data | Kind::Update)
    }
}

/// The first 16 bytes of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Kind of the message.
    pub kind: Kind,
    /// See the table above.
    pub flags: u8,
    /// See the table above.
    pub count: u16,
    /// See the table above.
    pub length: u32,
    /// The operation's number in its direction.
    pub sequence: u64,
}

impl Header {
    /// Creates a header without flags and count.
    #[must_use]
    pub const fn new(kind: Kind, length: u32, sequence: u64) -> Self {
        Header { kind, flags: 0, count: 0, length, sequence }
    }

    /// Bytes behind the header.
    #[must_use]
    #[inline]
    pub const fn body(&self) -> usize {
        match self.kind {
            Kind::Update if self.length < (HEADER + updates::STAMP) as u32 => updates::STAMP,
            kind if kind.is_payload() => (self.length as usize).saturating_sub(HEADER),
            _ => body_of_control(self),
        }
    }

    /// Returns whether a message with this header ends with a checksum, where both sides check payloads.
    #[inline]
    pub(crate) const fn has_checksum(&self) -> bool {
        let stamp = if matches!(self.kind, Kind::Update) { updates::STAMP } else { 0 };
        self.kind.is_payload() && self.body() >= stamp + CHECKSUM
    }

    /// Reads a header; the bytes are those of another protocol where the kind is unknown.
    ///
    /// # Errors
    /// An [`Error`] if the kind is unknown, or bytes are missing.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Header, Error> {
        let [kind, flags, c0, c1, l0, l1, l2, l3, sequence @ ..] = *bytes;
        let not_raw = Error::NotRaw { first: [bytes[0], bytes[1], bytes[2], bytes[3]] };
        Ok(Header {
            kind: Kind::from_code(kind).ok_or(not_raw)?,
            flags,
            count: u16::from_le_bytes([c0, c1]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
            sequence: u64::from_le_bytes(sequence),
        })
    }

    /// Encodes the header.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind.code();
        bytes[1] = self.flags;
        bytes[2..4].copy_from_slice(&self.count.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }
}

/// Returns the bytes behind the header of a control message: none for RECEIVE, whose `length` is the size asked for.
const fn body_of_control(header: &Header) -> usize {
    match header.kind {
        Kind::Receive => 0,
        _ => header.length as usize,
    }
}

/// Returns whether a whole message that ends with a checksum is as it was sent.
pub(crate) fn is_intact(message: &[u8]) -> bool {
    crc32fast::hash(message) == INTACT
}

/// Returns the bytes that a message has over UDP beyond those on a stream: the proof, where `length` does not count it.
pub(crate) const fn extra_over_udp(kind: Kind) -> usize {
    if matches!(kind, Kind::Receive) { PROOF } else { 0 }
}

/// Returns the proof at the front of these bytes; 0 if there is none.
pub(crate) fn proof(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |proof| u64::from_le_bytes(*proof))
}

/// Encodes the body of HELLO and WELCOME.
#[must_use]
pub fn encode_greeting(size_max: u32) -> [u8; GREETING] {
    let mut bytes = [0; GREETING];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&size_max.to_le_bytes());
    bytes
}

/// Returns the peer's largest operation if magic and version are ours.
///
/// # Errors
/// [`Error::NotRaw`] or [`Error::Version`] for another protocol or version.
pub fn decode_greeting(bytes: &[u8]) -> Result<u32, Error> {
    let short = |_: Truncated| Error::Length { told: GREETING, came: bytes.len() };
    let mut cursor = Cursor::new(bytes);
    let magic: [u8; 8] = cursor.array().map_err(short)?;
    if magic != MAGIC {
        return Err(Error::NotRaw { first: [magic[0], magic[1], magic[2], magic[3]] });
    }
    let theirs = cursor.u16_le().map_err(short)?;
    if theirs != VERSION {
        return Err(Error::Version { theirs });
    }
    cursor.u16_le().map_err(short)?;
    cursor.u32_le().map_err(short)
}

/// The counters of a server, for itself and for one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// SEND operations of this peer that arrived, each counted once.
    pub received: u64,
    /// Messages of this peer that arrived more than once.
    pub duplicated: u64,
    /// Messages of this peer that arrived after one that was sent later.
    pub reordered: u64,
    /// Nanoseconds of CPU in user mode, of the server's process.
    pub user_ns: u64,
    /// Nanoseconds of CPU in the kernel.
    pub system_ns: u64,
    /// Context switches because the process waited.
    pub voluntary_switches: u64,
    /// Context switches because its time slice ended.
    pub involuntary_switches: u64,
    /// The largest resident set in bytes.
    pub max_rss_bytes: u64,
    /// Whether the fields of the process are known: bit 0 of the last field.
    pub usage_known: bool,
    /// Microseconds of CPU spent polling, if they are known: the bits above hold one more, so that an older peer, which knows 0 and
    /// not 0 alone, reads the same.
    pub polling_us: Option<u64>,
}

impl Counters {
    /// Encodes the body of COUNTERS: the fields in order, 8 bytes each.
    #[must_use]
    pub fn encode(&self) -> [u8; COUNTERS] {
        let fields = [
            self.received,
            self.duplicated,
            self.reordered,
            self.user_ns,
            self.system_ns,
            self.voluntary_switches,
            self.involuntary_switches,
            self.max_rss_bytes,
            u64::from(self.usage_known) | self.polling_us.map_or(0, |micros| (micros + 1) << 1),
        ];
        let mut bytes = [0; COUNTERS];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Reads what [`Counters::encode`] wrote.
    ///
    /// # Errors
    /// An [`Error`] if the kind is unknown, or bytes are missing.
    pub fn decode(bytes: &[u8]) -> Result<Counters, Error> {
        let mut cursor = Cursor::new(bytes);
        let mut next = || cursor.u64_le().map_err(|_| Error::Length { told: COUNTERS, came: bytes.len() });
        let mut counters = Counters {
            received: next()?,
            duplicated: next()?,
            reordered: next()?,
            user_ns: next()?,
            system_ns: next()?,
            voluntary_switches: next()?,
            involuntary_switches: next()?,
            max_rss_bytes: next()?,
            ..Counters::default()
        };
        let known = next()?;
        (counters.usage_known, counters.polling_us) = (known != 0, (known >> 1).checked_sub(1));
        Ok(counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_these_bytes() {
        let header = Header { kind: Kind::Receive, flags: 0, count: 3, length: 1024, sequence: 0x0102 };
        let bytes = [0xA6, 0, 3, 0, 0, 4, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(header.encode(), bytes);
        assert_eq!(Header::decode(&bytes), Ok(header));
        assert_eq!(header.body(), 0);
    }

    #[test]
    fn sizes_count_from_the_first_byte() {
        assert_eq!(Header::new(Kind::Send, 64, 0).body(), 48);
        assert_eq!(Header::new(Kind::Send, 1, 0).body(), 0);
        assert_eq!(Header::new(Kind::Hello, 16, 0).body(), 16);
        assert_eq!([0, 32, 33].map(|size| Header::new(Kind::Update, size, 0).body()), [16, 16, 17]);
    }

    #[test]
    fn another_protocol_is_named_by_its_first_bytes() {
        let Err(error) = Header::decode(b"HTTP/1.1 400 Bad") else { panic!("decoded") };
        assert_eq!(error, Error::NotRaw { first: *b"HTTP" });
        assert!(alloc::format!("{error}").contains("48545450 \"HTTP\""));
    }

    #[test]
    fn every_first_byte_decodes_to_itself_or_not_at_all() {
        for first in 0..=255u8 {
            let mut bytes = [0x5A; HEADER];
            bytes[0] = first;
            if let Ok(header) = Header::decode(&bytes) {
                assert_eq!(header.encode(), bytes);
            }
        }
    }

    #[test]
    fn greeting_and_counters_round_trip() {
        assert_eq!(decode_greeting(&encode_greeting(1 << 20)), Ok(1 << 20));
        assert_eq!(decode_greeting(&[0; 16]), Err(Error::NotRaw { first: [0; 4] }));
        assert_eq!(decode_greeting(b"hodo"), Err(Error::Length { told: 16, came: 4 }));
        let counters =
            Counters { received: 1, duplicated: 2, max_rss_bytes: 9, usage_known: true, ..Counters::default() };
        for polling_us in [None, Some(0), Some(1 << 50)] {
            let counters = Counters { polling_us, ..counters };
            assert_eq!(Counters::decode(&counters.encode()), Ok(counters));
        }
        let bytes = Counters { polling_us: Some(2), ..counters }.encode();
        assert_eq!((bytes[0], bytes[64], counters.encode()[64]), (1, 7, 1), "1 is what an older server says");
    }
}
