//! The layout of a file: a header, then blocks. All numbers are little-endian.
//!
//! ```text
//! file header   0  8 "HODOSEG\n" or "HODOLED\n"
//!               8  2 version, 1        10  2 bytes of this header, 64      12  4 zero
//!              16  8 segment's number (0 in a ledger)
//!              24 36 text for people, zeros behind it
//!              60  4 CRC-32C of bytes 0 to 59
//!
//! block header  0  4 kind              4  4 bytes of data                  8  4 CRC-32C of the data
//!              12  1 verdict          13  1 attempts       14  1 flags    15  1 zero
//!              16  8 event, or a      24  8 time in ns, or b
//!              32  4 run              36  4 node           40  4 checksum of the event as it was given, or 0
//!              44  4 CRC-32C of: segment's number (8), place of the block in the file (8), bytes 0 to 43
//! then the data, and zeros up to a multiple of 8
//! ```

use crate::record::{Record, Verdict};

pub const FILE_HEADER: usize = 64;
pub const HEADER: usize = 48;
/// The bytes that the system writes together: a failing write may take what else is in them.
const PAGE: u64 = 4096;
pub const VERSION: u16 = 1;
const TEXT: &[u8] = b"Hodoscope events, docs/farm-files.md";
const PARTIAL: u8 = 1;
const CONFLICT: u8 = 2;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Segment,
    Ledger,
}

impl FileKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            FileKind::Segment => b"HODOSEG\n",
            FileKind::Ledger => b"HODOLED\n",
        }
    }
}

pub fn encode_file_header(kind: FileKind, segment: u64) -> [u8; FILE_HEADER] {
    let mut bytes = [0; FILE_HEADER];
    bytes[..8].copy_from_slice(kind.magic());
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[10..12].copy_from_slice(&(FILE_HEADER as u16).to_le_bytes());
    bytes[16..24].copy_from_slice(&segment.to_le_bytes());
    bytes[24..24 + TEXT.len()].copy_from_slice(TEXT);
    let sum = crc32c::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The reason that the beginning of a file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// The file is of another kind.
    Magic,
    /// The file is a store's, in a version that is not known here.
    Version(u16),
    /// The checksum is wrong.
    Sum,
}

/// Decodes a file header, and returns the segment's number.
pub fn decode_file_header(kind: FileKind, bytes: &[u8; FILE_HEADER]) -> Result<u64, HeaderFault> {
    if u32_at(bytes, 60) != crc32c::crc32c(&bytes[..60]) {
        let ours = bytes[..8] == *kind.magic();
        return Err(if ours { HeaderFault::Sum } else { HeaderFault::Magic });
    }
    if bytes[..8] != *kind.magic() {
        return Err(HeaderFault::Magic);
    }
    let version = u16::from_le_bytes([bytes[8], bytes[9]]);
    if version != VERSION || bytes[10..16] != [FILE_HEADER as u8, 0, 0, 0, 0, 0] {
        return Err(HeaderFault::Version(version));
    }
    Ok(u64_at(bytes, 16))
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An event with its data.
    Event,
    /// The end of a commit: a = its number in the segment, b = events in the segment so far, run = the last commit of the
    /// segment that the disk was known to have; data = verdicts of events without data.
    Commit,
    /// A closed segment's events by number: a = how many.
    Index,
    /// Verdicts of whole segments: a = the first, b = the last.
    Ledger,
    /// The last block of a closed segment: a = place of the index, b = events in the segment, run = bytes of the block before,
    /// where there are checksums in it.
    End,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Event, Kind::Commit, Kind::Index, Kind::Ledger, Kind::End];

    fn code(self) -> [u8; 4] {
        *match self {
            Kind::Event => b"EVNT",
            Kind::Commit => b"CMIT",
            Kind::Index => b"INDX",
            Kind::Ledger => b"LEDG",
            Kind::End => b"ENDS",
        }
    }
}

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    /// Bytes of data.
    pub length: u32,
    pub data_sum: u32,
    pub verdict: u8,
    pub attempts: u8,
    pub flags: u8,
    /// The event, or what [`Kind`] says.
    pub a: u64,
    /// The time in ns, or what [`Kind`] says.
    pub b: u64,
    pub run: u32,
    pub node: u32,
    /// The checksum of an event as it was given.
    pub given: u32,
}

impl Header {
    pub fn new(kind: Kind, a: u64, b: u64, data: &[u8]) -> Self {
        let length = u32::try_from(data.len()).expect("callers bound their data");
        let data_sum = crc32c::crc32c(data);
        Header { kind, length, data_sum, verdict: 0, attempts: 0, flags: 0, a, b, run: 0, node: 0, given: 0 }
    }

    pub fn of_record(record: &Record<'_>) -> Self {
        Header {
            verdict: record.verdict.code(),
            attempts: record.attempts,
            flags: if record.partial { PARTIAL } else { 0 } | if record.conflict { CONFLICT } else { 0 },
            run: record.run,
            node: record.node,
            given: record.given,
            ..Header::new(Kind::Event, record.event, record.time_ns, record.data)
        }
    }

    /// Returns the record of an event's block, with these data; `None` for other kinds, and for verdicts without data.
    pub fn record<'a>(&self, data: &'a [u8]) -> Option<Record<'a>> {
        let verdict = Verdict::from_code(self.verdict).filter(|verdict| verdict.keeps_data())?;
        (self.kind == Kind::Event && self.a < u64::MAX).then_some(Record {
            run: self.run,
            event: self.a,
            verdict,
            node: self.node,
            attempts: self.attempts,
            partial: self.is_partial(),
            conflict: self.is_conflict(),
            given: self.given,
            time_ns: self.b,
            data,
        })
    }

    /// Tells whether an event's block says that fragments are missing.
    pub fn is_partial(&self) -> bool {
        self.flags & PARTIAL != 0
    }

    /// Tells whether an event's block is no verdict, but other data under the event's number.
    pub fn is_conflict(&self) -> bool {
        self.flags & CONFLICT != 0
    }

    /// Returns the length of the whole block in the file.
    pub fn block_length(&self) -> u64 {
        HEADER as u64 + padded(u64::from(self.length))
    }

    pub fn encode(&self, segment: u64, offset: u64) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.kind.code());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.data_sum.to_le_bytes());
        bytes[12..15].copy_from_slice(&[self.verdict, self.attempts, self.flags]);
        bytes[16..24].copy_from_slice(&self.a.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.b.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.run.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.node.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.given.to_le_bytes());
        let sum = header_sum(segment, offset, &bytes);
        bytes[44..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes the header at this place of this segment's file; `None` if there is none.
    pub fn decode(bytes: &[u8; HEADER], segment: u64, offset: u64) -> Option<Self> {
        let kind = Kind::ALL.into_iter().find(|kind| bytes[..4] == kind.code())?;
        let header = Header {
            kind,
            length: u32_at(bytes, 4),
            data_sum: u32_at(bytes, 8),
            verdict: bytes[12],
            attempts: bytes[13],
            flags: bytes[14],
            a: u64_at(bytes, 16),
            b: u64_at(bytes, 24),
            run: u32_at(bytes, 32),
            node: u32_at(bytes, 36),
            given: u32_at(bytes, 40),
        };
        let right = u32_at(bytes, 44) == header_sum(segment, offset, bytes);
        (right && (kind != Kind::Event || header.record(&[]).is_some())).then_some(header)
    }
}

/// Returns a header's checksum. The place is in it, so that a block that was copied, or stored inside an event, is not
/// taken for one.
fn header_sum(segment: u64, offset: u64, bytes: &[u8; HEADER]) -> u32 {
    let mut all = [0; 16 + HEADER - 4];
    all[..8].copy_from_slice(&segment.to_le_bytes());
    all[8..16].copy_from_slice(&offset.to_le_bytes());
    all[16..].copy_from_slice(&bytes[..HEADER - 4]);
    crc32c::crc32c(&all)
}

/// Returns the length of data with the zeros behind them.
pub fn padded(length: u64) -> u64 {
    length.next_multiple_of(8)
}

/// Appends zeros to the data of a block at this place, so that the block ends with a page.
pub fn fill_page(data: &mut Vec<u8>, offset: u64) {
    let end = offset + HEADER as u64 + padded(data.len() as u64);
    let more = end.next_multiple_of(PAGE) - end;
    data.resize(padded(data.len() as u64) as usize + more as usize, 0);
}

/// Appends a block whose place in the file is `offset`.
pub fn append(into: &mut Vec<u8>, header: &Header, data: &[u8], segment: u64, offset: u64) {
    into.extend_from_slice(&header.encode(segment, offset));
    into.extend_from_slice(data);
    into.resize(into.len() + (padded(data.len() as u64) as usize - data.len()), 0);
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_these_bytes() {
        let record = Record {
            run: 7,
            event: 0x0102_0304_0506_0708,
            verdict: Verdict::Accepted,
            node: 3,
            attempts: 2,
            partial: true,
            conflict: true,
            given: 0x2122_2324,
            time_ns: 0x1112_1314_1516_1718,
            data: b"123456789",
        };
        let mut bytes = Vec::new();
        append(&mut bytes, &Header::of_record(&record), record.data, 1, 64);
        let mut expected = b"EVNT".to_vec();
        // The checksum of "123456789" is the check value of CRC-32C, 0xE3069283.
        expected.extend([9, 0, 0, 0, 0x83, 0x92, 0x06, 0xE3, 1, 2, 3, 0]);
        expected.extend([8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]);
        expected.extend([7, 0, 0, 0, 3, 0, 0, 0, 0x24, 0x23, 0x22, 0x21]);
        assert_eq!(bytes[..44], expected);
        assert_eq!(bytes[48..], *b"123456789\0\0\0\0\0\0\0");
        let header: [u8; HEADER] = bytes[..HEADER].try_into().expect("48 bytes");
        assert_eq!(Header::decode(&header, 1, 64).and_then(|header| header.record(b"123456789")), Some(record));
    }

    #[test]
    fn elsewhere_it_is_no_block() {
        let bytes = Header::new(Kind::Commit, 1, 2, b"").encode(1, 64);
        assert!(Header::decode(&bytes, 1, 64).is_some());
        assert!(Header::decode(&bytes, 1, 72).is_none());
        assert!(Header::decode(&bytes, 2, 64).is_none());
    }

    #[test]
    fn a_changed_bit_is_noticed() {
        let bytes = Header::new(Kind::Commit, 1, 2, b"abc").encode(1, 64);
        let file = encode_file_header(FileKind::Segment, 9);
        assert_eq!(decode_file_header(FileKind::Segment, &file), Ok(9));
        assert_eq!(decode_file_header(FileKind::Ledger, &file), Err(HeaderFault::Magic));
        for bit in 0..8 * HEADER {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&changed, 1, 64), None);
        }
        for bit in 0..8 * FILE_HEADER {
            let mut changed = file;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_file_header(FileKind::Segment, &changed).is_err());
        }
    }
}
