//! The decoders, on files in memory: for the fuzzer.

use crate::block::{FILE_HEADER, FileKind};
use crate::record::Verdict;
use crate::scan::{Scan, Step};
use crate::verdicts;
use std::ops::Range;

/// A piece of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The place where the piece begins.
    pub offset: u64,
    /// The length of the piece.
    pub bytes: u64,
    /// Whether the piece is a block as it was written.
    pub good: bool,
}

/// Returns the pieces behind a segment's header; without a valid header, the segment is taken for number 1.
#[must_use]
pub fn pieces(segment: &[u8]) -> Vec<Piece> {
    let read = "bytes in memory can be read";
    let mut scan = Scan::new(segment, 1).expect(read);
    if let Some(Ok(number)) = scan.file_header(FileKind::Segment).expect(read) {
        scan.set_segment(number);
    }
    let mut found = Vec::new();
    while let Some(step) = scan.next().expect(read) {
        found.push(match step {
            Step::Block { header, offset } => Piece { offset, bytes: header.block_length(), good: true },
            Step::Damage { offset, bytes } | Step::Torn { offset, bytes } => Piece { offset, bytes, good: false },
        });
    }
    assert!(found.first().is_none_or(|piece| piece.offset == FILE_HEADER as u64));
    found
}

/// Decodes the verdicts in a block's data; `None` if the data are malformed.
#[must_use]
pub fn decode_verdicts(data: &[u8]) -> Option<Vec<(u32, Verdict, Range<u64>)>> {
    let mut all = Vec::new();
    verdicts::decode(data, |run, verdict, range| all.push((run, verdict, range)))?;
    Some(all)
}

/// Encodes verdicts as a block's data.
#[must_use]
pub fn encode_verdicts(all: &[(u32, Verdict, Range<u64>)]) -> Vec<u8> {
    let mut sets = verdicts::Verdicts::new();
    for (run, verdict, range) in all {
        sets.entry((*run, *verdict)).or_default().insert_range(range.clone());
    }
    let mut data = Vec::new();
    verdicts::encode_all(&sets, &mut data);
    data
}
