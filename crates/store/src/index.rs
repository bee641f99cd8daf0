//! The index of a closed segment: its events, and where each is.
//!
//! ```text
//! 0 4 run   4 4 bytes of data   8 8 event   16 8 place of the block   24 4 node   28 1 verdict   29 1 attempts   30 1 flags
//! 31 1 zero; entries ascend by run and event
//! ```

use crate::block::Header;

pub const ENTRY: usize = 32;

/// An event's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub run: u32,
    pub event: u64,
    pub offset: u64,
    pub length: u32,
    pub node: u32,
    pub verdict: u8,
    pub attempts: u8,
    pub flags: u8,
}

impl Entry {
    pub fn of(header: &Header, offset: u64) -> Self {
        let Header { run, a: event, length, node, verdict, attempts, flags, .. } = *header;
        Entry { run, event, offset, length, node, verdict, attempts, flags }
    }
}

/// Sorts the entries, and returns them as bytes.
pub fn encode(entries: &mut [Entry]) -> Vec<u8> {
    entries.sort_unstable();
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY);
    for entry in entries {
        bytes.extend_from_slice(&entry.run.to_le_bytes());
        bytes.extend_from_slice(&entry.length.to_le_bytes());
        bytes.extend_from_slice(&entry.event.to_le_bytes());
        bytes.extend_from_slice(&entry.offset.to_le_bytes());
        bytes.extend_from_slice(&entry.node.to_le_bytes());
        bytes.extend_from_slice(&[entry.verdict, entry.attempts, entry.flags, 0]);
    }
    bytes
}
