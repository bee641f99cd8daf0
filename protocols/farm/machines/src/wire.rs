//! The wire: a header of 12 bytes, little-endian, and what follows it.
//!
//! | bytes | field | meaning |
//! |---|---|---|
//! | 0..4 | word | bits 28..32 the [`Kind`], bits 0..28 the length of what follows |
//! | 4..12 | value | the event's number; of other kinds see [`Kind`] |
//!
//! A token has 28 bytes, and its length counts what follows those:
//!
//! | bytes | field | meaning |
//! |---|---|---|
//! | 0..12 | header | of kind TOKEN; value is the event's number |
//! | 12 | verdict | one of [`Verdict`] |
//! | 13 | credits | events that may be sent for this token, usually 1 |
//! | 14 | flags | bit 0: this event had been sent before; bit 1: the data stands for the event; bit 2: its number is another's; bit 3: its event went on without it |
//! | 15 | reserved | 0 |
//! | 16..20 | run | the run that the event belongs to |
//! | 20..24 | waited | microseconds from the event's arrival to the start of its decision |
//! | 24..28 | decided | microseconds that the decision took |
//!
//! Over datagrams a source gives its fragments as segments of 28 bytes and data. A datagram is one segment, or whole other
//! messages; what has no token is sent again:
//!
//! | bytes | field | meaning |
//! |---|---|---|
//! | 0..12 | header | of kind SEGMENT; value is the event's number, the length that of the data behind the 28 bytes |
//! | 12..16 | run | the run that the event belongs to |
//! | 16..20 | source | the source's number |
//! | 20..24 | offset | where in the fragment the data belongs |
//! | 24..28 | total | bits 28..32 what the fragment is, as [`Kind`]: EVENT, PARTIAL, SKIP; bits 0..28 its length |
//!
//! A builder answers a whole fragment with HERE: the header, whose value is the event's number, and 4 bytes of its run. A
//! segment without data asks for that answer, or for the token, or for LACKS: as HERE, and behind it the parts that have not
//! come, offset and end of each in 4 bytes. Its offset is the fragment's CRC-32 where both have greeted with [`FLAG_COMPARES`].
//!
//! HELLO is each side's first message. Its body has 36 bytes, or 48 where it says how far a run has come, and a reader skips
//! what it does not know:
//!
//! | bytes | field | meaning |
//! |---|---|---|
//! | 0..2 | version | of this wire |
//! | 2 | role | one of [`Role`] |
//! | 3 | flags | bit 0: this side sends no tokens; bit 1, over datagrams: it compares by checksums, or says them; bit 2: this builder has its sources end together |
//! | 4..8 | number | which source, builder or node it is |
//! | 8..12 | credits | events that may be unanswered towards this side; 0 for one that takes none |
//! | 12..20 | window | bytes of events that may be, 0 for no bound |
//! | 20..24 | event_max | the largest event that this side takes |
//! | 24..28 | weight | a node's share beside others, 1 as a rule |
//! | 28..36 | instance | differs each time that the program starts |
//! | 36..40 | run | of a source that has had verdicts: the last run of which; of a controller, to a builder: the last run of which events came to it |
//! | 40..48 | from | of a source: the lowest number of an event that it may still give in it; of a controller 0 |

mod lacks;

use crate::Error;
use alloc::vec::Vec;
use hodo_machine::{Cursor, codes};
pub use lacks::Lacks;

/// Bytes of the header.
pub const HEADER: usize = 12;
/// Bytes of a token.
pub const TOKEN: usize = 28;
/// Bytes behind the header of HELLO, where it does not say how far a run has come.
pub const HELLO: usize = 36;
/// The version of this wire.
pub const VERSION: u16 = 1;
/// The value of HELLO: `hodofarm`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hodofarm");
/// The largest length that a header can tell.
pub const LENGTH_MAX: u32 = (1 << 28) - 1;
/// The longest text of a REFUSED message, and the most that is read of a HELLO's body.
pub const TEXT_MAX: u32 = 256;
/// Where a controller listens unless told otherwise.
pub const CONTROLLER_PORT: u16 = 5500;
/// The port of nodes that wait for their controller, unless told otherwise.
pub const NODES_PORT: u16 = 5502;

codes! {
    /// The kind of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Kind: u8 {
        /// Each side's first message; value is [`MAGIC`].
        Hello = 1,
        /// An event, or a fragment of it where the sender is a source.
        Event = 2,
        /// An event of which fragments are missing.
        Partial = 3,
        /// An event that its builder has given up: it has no bytes, and counts as incomplete.
        Skip = 4,
        /// The answer to one event.
        Token = 5,
        /// The events behind this message belong to the run of this value; with [`APART`], they are fragments for the
        /// quarantine.
        Run = 6,
        /// Are you there? Answer with the same value.
        Ping = 7,
        /// The answer to PING.
        Pong = 8,
        /// This side takes nothing new; what it has it still answers. Who gives answers with the same: no event is on its way
        /// behind that.
        Drain = 9,
        /// The connection is about to be closed; value is a code of [`Error`], the body says why.
        Refused = 10,
        /// Tell your counters; value is the asker's number for the question.
        Report = 11,
        /// The answer to REPORT: counters of eight bytes each.
        Counters = 12,
        /// A part of a fragment, over datagrams.
        Segment = 13,
        /// A fragment is whole at its builder, and need not be sent again; over datagrams.
        Here = 14,
        /// Parts of a fragment have not come to its builder; over datagrams.
        Lacks = 15,
    }
}

impl Kind {
    /// Tells whether the message is answered by a token: an event, whatever is left of it.
    #[must_use]
    pub const fn is_event(self) -> bool {
        matches!(self, Kind::Event | Kind::Partial | Kind::Skip)
    }
}

/// The first 12 bytes of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Kind of the message.
    pub kind: Kind,
    /// Bytes behind the header; behind the token's 28 bytes for a token.
    pub length: u32,
    /// The event's number, or what [`Kind`] says.
    pub value: u64,
}

impl Header {
    /// Creates the header of a message.
    #[must_use]
    pub const fn new(kind: Kind, length: u32, value: u64) -> Self {
        Header { kind, length, value }
    }

    /// Reads a header; the bytes are those of another protocol where the kind is unknown.
    ///
    /// # Errors
    /// An [`Error`] that names what cannot be read: the kind, the version, the role, the verdict, or missing bytes.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Header, Error> {
        let [w0, w1, w2, w3, value @ ..] = *bytes;
        let word = u32::from_le_bytes([w0, w1, w2, w3]);
        let kind = Kind::from_code((word >> 28) as u8).ok_or(Error::NotFarm { first: [w0, w1, w2, w3] })?;
        Ok(Header { kind, length: word & LENGTH_MAX, value: u64::from_le_bytes(value) })
    }

    /// Encodes the header.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&((self.kind as u32) << 28 | self.length).to_le_bytes());
        bytes[4..].copy_from_slice(&self.value.to_le_bytes());
        bytes
    }
}

codes! {
    /// The verdict on an event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Verdict: u8 {
        /// To be stored for good.
        Accepted = 0 => "accepted",
        /// Not to be kept.
        Rejected = 1 => "rejected",
        /// The node could not decide. Never final: another node is asked.
        Failed = 2 => "failed",
        /// Too many nodes failed or died over it: stored apart, and not handed on.
        Quarantined = 3 => "quarantined",
        /// Fragments are missing, and the policy drops such events.
        Incomplete = 4 => "incomplete",
    }
}

/// The event had been sent before: this is what became of it then.
pub const FLAG_DUPLICATE: u8 = 1;
/// The token's data is to be stored instead of the event.
pub const FLAG_OUTPUT: u8 = 2;
/// The event was given under the number of another one, and is in quarantine. With [`FLAG_DUPLICATE`]: what was given apart.
pub const FLAG_CONFLICT: u8 = 4;
/// The event of a fragment went on without it, as it came too late.
pub const FLAG_LATE: u8 = 8;

/// A bit in the value of a builder's RUN: behind it are fragments under numbers that other data of their sources have, each
/// like an event that is built of it alone.
pub const APART: u64 = 1 << 32;

/// The first 28 bytes of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Which event.
    pub event: u64,
    /// The verdict on the event.
    pub verdict: Verdict,
    /// Events that may be sent for it.
    pub credits: u8,
    /// [`FLAG_DUPLICATE`], [`FLAG_OUTPUT`], [`FLAG_CONFLICT`], [`FLAG_LATE`].
    pub flags: u8,
    /// The run that the event belongs to.
    pub run: u32,
    /// Microseconds from the event's arrival to the start of its decision. Towards builders, see [`Token::with_sources`].
    pub waited_us: u32,
    /// Microseconds that the decision took.
    pub decided_us: u32,
    /// Bytes of data behind it.
    pub length: u32,
}

impl Token {
    /// Creates the token that tells a giver the verdict on its event.
    #[must_use]
    pub const fn answer(run: u32, event: u64, verdict: Verdict, flags: u8) -> Self {
        Token { event, verdict, credits: 1, flags, run, waited_us: 0, decided_us: 0, length: 0 }
    }

    /// Returns this token with the sources of a built event that have given other data: bit n for those of number n modulo
    /// 64. No bit stands for all.
    #[must_use]
    pub const fn with_sources(self, sources: u64) -> Self {
        Token { waited_us: sources as u32, decided_us: (sources >> 32) as u32, ..self }
    }

    /// Tells whether a source may be one of those.
    #[must_use]
    pub const fn is_of_source(&self, number: u32) -> bool {
        let sources = self.waited_us as u64 | (self.decided_us as u64) << 32;
        sources == 0 || sources >> (number % 64) & 1 == 1
    }

    /// Tells whether the token answers what a builder gave behind [`APART`].
    #[must_use]
    pub const fn is_apart(&self) -> bool {
        const BOTH: u8 = FLAG_CONFLICT | FLAG_DUPLICATE;
        self.flags & BOTH == BOTH
    }

    /// Reads a token.
    ///
    /// # Errors
    /// An [`Error`] that names what cannot be read: the kind, the version, the role, the verdict, or missing bytes.
    #[inline]
    pub fn decode(bytes: &[u8; TOKEN]) -> Result<Token, Error> {
        let mut cursor = Cursor::new(bytes);
        let truncated = |_| Error::Truncated;
        let header = Header::decode(&cursor.array().map_err(truncated)?)?;
        let [verdict, credits, flags, _] = cursor.array().map_err(truncated)?;
        Ok(Token {
            event: header.value,
            verdict: Verdict::from_code(verdict).ok_or(Error::NoVerdict { code: verdict })?,
            credits,
            flags,
            run: cursor.u32_le().map_err(truncated)?,
            waited_us: cursor.u32_le().map_err(truncated)?,
            decided_us: cursor.u32_le().map_err(truncated)?,
            length: header.length,
        })
    }

    /// Encodes the token.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; TOKEN] {
        let mut bytes = [0; TOKEN];
        bytes[..HEADER].copy_from_slice(&Header::new(Kind::Token, self.length, self.event).encode());
        bytes[12..16].copy_from_slice(&[self.verdict.code(), self.credits, self.flags, 0]);
        bytes[16..20].copy_from_slice(&self.run.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.waited_us.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.decided_us.to_le_bytes());
        bytes
    }
}

/// The first 28 bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Which event.
    pub event: u64,
    /// The run that it belongs to.
    pub run: u32,
    /// Which source's fragment.
    pub source: u32,
    /// Kind of the fragment: [`Kind::Event`], [`Kind::Partial`] or [`Kind::Skip`].
    pub kind: Kind,
    /// Where in the fragment the data belongs; without data, the fragment's checksum, or 0.
    pub offset: u32,
    /// Bytes of the fragment.
    pub total: u32,
    /// Bytes of the data behind this.
    pub length: u32,
}

/// Bytes of a segment before its data.
pub const SEGMENT: usize = 28;

impl Segment {
    /// Reads a segment: its data lies within its fragment.
    ///
    /// # Errors
    /// An [`Error`] that names what cannot be read: the kind, the version, the role, the verdict, or missing bytes.
    pub fn decode(bytes: &[u8; SEGMENT]) -> Result<Segment, Error> {
        let mut cursor = Cursor::new(bytes);
        let truncated = |_| Error::Truncated;
        let header = Header::decode(&cursor.array().map_err(truncated)?)?;
        let run = cursor.u32_le().map_err(truncated)?;
        let source = cursor.u32_le().map_err(truncated)?;
        let offset = cursor.u32_le().map_err(truncated)?;
        let word = cursor.u32_le().map_err(truncated)?;
        let kind = [Kind::Event, Kind::Partial, Kind::Skip].into_iter().find(|kind| *kind as u32 == word >> 28);
        let kind =
            kind.filter(|_| header.kind == Kind::Segment).ok_or(Error::Unexpected { kind: header.kind.code() })?;
        let (total, length) = (word & LENGTH_MAX, header.length);
        if length > 0 && offset.checked_add(length).is_none_or(|end| end > total) {
            return Err(Error::TooLarge { size: offset.saturating_add(length), max: total });
        }
        Ok(Segment { event: header.value, run, source, kind, offset, total, length })
    }

    /// Encodes the segment's bytes before its data.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT] {
        let mut bytes = [0; SEGMENT];
        bytes[..HEADER].copy_from_slice(&Header::new(Kind::Segment, self.length, self.event).encode());
        bytes[12..16].copy_from_slice(&self.run.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.source.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..28].copy_from_slice(&((self.kind as u32) << 28 | self.total).to_le_bytes());
        bytes
    }
}

codes! {
    /// The role of one side of a connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Role: u8 {
        /// Gives fragments, or whole events.
        Source = 1 => "source",
        /// Takes fragments, gives events.
        Builder = 2 => "builder",
        /// Takes events, gives each to one node.
        Controller = 3 => "controller",
        /// Takes events and decides.
        Node = 4 => "node",
    }
}

/// This side sends no tokens. Of a node of a measurement only: what it is given counts as rejected.
pub const FLAG_NO_TOKENS: u8 = 1;

/// Over datagrams: this builder compares what comes, or this source says what it asks for.
pub const FLAG_COMPARES: u8 = 2;

/// This builder tells sources that are to end up to which number all of them give.
pub const FLAG_ENDS: u8 = 4;

/// The greeting of a side: its role, and how much it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The role of the side.
    pub role: Role,
    /// [`FLAG_NO_TOKENS`], [`FLAG_COMPARES`], [`FLAG_ENDS`].
    pub flags: u8,
    /// Which of its kind.
    pub number: u32,
    /// Events that may be unanswered towards it.
    pub credits: u32,
    /// Bytes of events that may be; 0 for no bound.
    pub window: u64,
    /// The largest event that it takes, in bytes.
    pub event_max: u32,
    /// A node's share beside others.
    pub weight: u32,
    /// Differs each time that the program starts.
    pub instance: u64,
    /// The run and the lowest number of an event that a source may still give, where it has had verdicts; the last run of which
    /// events came to a controller.
    pub resumes: Option<(u32, u64)>,
}

impl Hello {
    /// Reads a HELLO's body.
    ///
    /// # Errors
    /// An [`Error`] that names what cannot be read: the kind, the version, the role, the verdict, or missing bytes.
    pub fn decode(header: &Header, body: &[u8]) -> Result<Hello, Error> {
        if header.value != MAGIC {
            let first = header.encode();
            return Err(Error::NotFarm { first: [first[4], first[5], first[6], first[7]] });
        }
        let mut cursor = Cursor::new(body);
        let truncated = |_| Error::Truncated;
        let version = cursor.u16_le().map_err(truncated)?;
        if version != VERSION {
            return Err(Error::Version { theirs: version });
        }
        let [role, flags] = cursor.array().map_err(truncated)?;
        let role = Role::from_code(role).ok_or(Error::NoRole { code: role })?;
        Ok(Hello {
            role,
            flags,
            number: cursor.u32_le().map_err(truncated)?,
            credits: cursor.u32_le().map_err(truncated)?,
            window: cursor.u64_le().map_err(truncated)?,
            event_max: cursor.u32_le().map_err(truncated)?,
            weight: cursor.u32_le().map_err(truncated)?,
            instance: cursor.u64_le().map_err(truncated)?,
            resumes: cursor.u32_le().ok().zip(cursor.u64_le().ok()),
        })
    }

    /// Encodes the whole message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Hello { role, flags, number, credits, window, event_max, weight, instance, resumes } = *self;
        let mut bytes = Vec::with_capacity(HEADER + HELLO + 12);
        bytes.extend(Header::new(Kind::Hello, 0, MAGIC).encode());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([role.code(), flags]);
        [number, credits].into_iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        bytes.extend(window.to_le_bytes());
        [event_max, weight].into_iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        bytes.extend(instance.to_le_bytes());
        if let Some((run, from)) = resumes {
            bytes.extend(run.to_le_bytes());
            bytes.extend(from.to_le_bytes());
        }
        let length = (bytes.len() - HEADER) as u32;
        bytes[..HEADER].copy_from_slice(&Header::new(Kind::Hello, length, MAGIC).encode());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::Random;

    /// Bytes worked out by hand from the tables above.
    #[test]
    fn literal_bytes() {
        let header = Header::new(Kind::Event, 32_000, 0x0102);
        assert_eq!(header.encode(), [0x00, 0x7D, 0, 0x20, 2, 1, 0, 0, 0, 0, 0, 0]);
        let token = Token {
            event: 7,
            verdict: Verdict::Accepted,
            credits: 1,
            flags: FLAG_OUTPUT,
            run: 3,
            waited_us: 4,
            decided_us: 5,
            length: 65_536,
        };
        let bytes = [0, 0, 1, 0x50, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0];
        assert_eq!(token.encode(), bytes);
        assert_eq!(Token::decode(&bytes), Ok(token));
        let of_sources = Token { length: 0, ..token.with_sources(1 << 63 | 2) };
        assert_eq!(of_sources.encode()[20..], [2, 0, 0, 0, 0, 0, 0, 0x80]);
        assert!([1, 63, 65].into_iter().all(|source| of_sources.is_of_source(source)) && !of_sources.is_of_source(0));
        let segment = Segment { event: 7, run: 3, source: 2, kind: Kind::Event, offset: 1400, total: 1402, length: 2 };
        let bytes = [2, 0, 0, 0xD0, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0x78, 5, 0, 0, 0x7A, 5, 0, 0x20];
        assert_eq!(segment.encode(), bytes);
        assert_eq!(Segment::decode(&bytes), Ok(segment));
        let hello = Hello {
            role: Role::Node,
            flags: 0,
            number: 9,
            credits: 2,
            window: 0,
            event_max: 1 << 20,
            weight: 1,
            instance: 1,
            resumes: None,
        };
        let bytes = hello.encode();
        assert_eq!(bytes[..18], *b"\x24\x00\x00\x10hodofarm\x01\x00\x04\x00\x09\x00");
        let header = Header::decode(bytes.first_chunk().unwrap()).unwrap();
        assert_eq!(Hello::decode(&header, &bytes[HEADER..]), Ok(hello));
        let resumes = Hello { resumes: Some((7, 0x0102)), ..hello };
        let bytes = resumes.encode();
        assert_eq!((&bytes[..1], &bytes[48..]), (&[48][..], &[7, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0][..]));
        assert_eq!(Hello::decode(&header, &bytes[HEADER..]), Ok(resumes));
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let bytes: [u8; TOKEN + HELLO] = core::array::from_fn(|_| random.bits() as u8);
            if let Ok(header) = Header::decode(bytes.first_chunk().unwrap()) {
                assert_eq!(header.encode(), bytes[..HEADER]);
                let _ = Hello::decode(&Header { value: MAGIC, ..header }, &bytes[HEADER..]);
            }
            if let Ok(segment) = Segment::decode(bytes.first_chunk().unwrap()) {
                assert_eq!(segment.encode(), bytes[..SEGMENT]);
            }
            if let Ok(token) = Token::decode(bytes.first_chunk().unwrap()) {
                assert_eq!(Token::decode(&token.encode()), Ok(token));
            }
        }
    }

    #[test]
    fn another_version_and_another_protocol_are_told_apart() {
        let mut bytes = Hello {
            role: Role::Source,
            flags: 0,
            number: 0,
            credits: 0,
            window: 0,
            event_max: 0,
            weight: 1,
            instance: 0,
            resumes: None,
        }
        .encode();
        bytes[HEADER] = 9;
        let header = Header::decode(bytes.first_chunk().unwrap()).unwrap();
        assert_eq!(Hello::decode(&header, &bytes[HEADER..]), Err(Error::Version { theirs: 9 }));
        assert_eq!(
            Header::decode(b"GET / HTTP/1"),
            Err(Error::NotFarm { first: *b"GET " }).or(Header::decode(b"GET / HTTP/1"))
        );
    }
}
