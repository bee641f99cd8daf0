use hodo_store::Ranges;
use hodo_store::bytes::{Piece, decode_verdicts, encode_verdicts, pieces};
use std::collections::BTreeMap;

/// Checks that every byte of a segment is in a block or reported as damaged, whatever the bytes are.
pub fn segment(input: &[u8]) {
    let found = pieces(input);
    let mut place = 64;
    for Piece { offset, bytes, .. } in &found {
        assert_eq!(*offset, place, "bytes were passed over");
        place += bytes;
    }
    assert!(found.is_empty() || place == input.len() as u64);
}

/// Verdicts that can be decoded are encoded to the same sets.
pub fn verdicts(input: &[u8]) {
    let Some(all) = decode_verdicts(input) else { return };
    let sets = |all: &[_]| {
        let mut sets: BTreeMap<_, Ranges> = BTreeMap::new();
        for (run, verdict, range) in all {
            sets.entry((*run, *verdict)).or_default().insert_range(std::ops::Range::clone(range));
        }
        sets
    };
    let again = decode_verdicts(&encode_verdicts(&all)).expect("they were encoded here");
    assert!(sets(&again) == sets(&all));
}
