//! Events whose verdict and data follow from their number.

use hodo_store::{Record, Verdict};

/// Returns the verdict of an event.
pub fn verdict(event: u64) -> Verdict {
    match event % 10 {
        3 | 8 => Verdict::Accepted,
        5 => Verdict::Quarantined,
        7 => Verdict::Incomplete,
        _ => Verdict::Rejected,
    }
}

/// Bytes of which every event has a part.
pub fn bytes() -> Vec<u8> {
    (0..80_000_u32 + 251).map(|place| (place % 251) as u8).collect()
}

/// Returns the event as it is put, up to 80 KB.
pub fn record(event: u64, bytes: &[u8]) -> Record<'_> {
    let length = (event.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % 80_000;
    let data = &bytes[event as usize % 251..][..length];
    Record { node: 4, attempts: 1, time_ns: event, ..Record::new(1, event, verdict(event), data) }
}
