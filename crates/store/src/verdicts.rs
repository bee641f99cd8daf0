//! Verdicts of many events in few bytes.
//!
//! ```text
//! groups (varint), then for each: run, verdict, ranges (varints), then for each range: the gap to the end of the one
//! before, or to 0; its length less 1 (varints)
//! ```
//!
//! Checksums may follow, and then zeros: they fill the block up to the end of a page of the disk. A varint has 7 bits in each byte, the lowest first; the top bit says that another byte follows.

use crate::given;
use crate::ranges::Ranges;
use crate::record::Verdict;
use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of events by run and verdict.
pub type Verdicts = BTreeMap<(u32, Verdict), Ranges>;

/// Appends groups of ascending ranges.
pub fn encode<'a, R>(groups: impl ExactSizeIterator<Item = (u32, Verdict, R)>, into: &mut Vec<u8>)
where
    R: Iterator<Item = Range<u64>> + 'a,
{
    varint(groups.len() as u64, into);
    let mut body = Vec::new();
    for (run, verdict, ranges) in groups {
        let (mut count, mut end) = (0, 0);
        body.clear();
        for range in ranges {
            varint(range.start - end, &mut body);
            varint(range.end - range.start - 1, &mut body);
            (count, end) = (count + 1, range.end);
        }
        varint(u64::from(run), into);
        varint(u64::from(verdict.code()), into);
        varint(count, into);
        into.extend_from_slice(&body);
    }
}

/// Appends all of these verdicts.
pub fn encode_all(verdicts: &Verdicts, into: &mut Vec<u8>) {
    encode(verdicts.iter().map(|((run, verdict), ranges)| (*run, *verdict, ranges.iter())), into);
}

/// Calls `each` with every range, and `each_given` with the run, the verdict and the first number of checksums, and them;
/// `None` if the bytes are malformed.
pub fn decode_all(
    bytes: &[u8],
    each: impl FnMut(u32, Verdict, Range<u64>),
    each_given: impl FnMut(u32, Verdict, u64, &[[u8; 4]]),
) -> Option<()> {
    let mut rest = bytes;
    take(&mut rest, each)?;
    given::take(&mut rest, each_given)?;
    rest.iter().all(|byte| *byte == 0).then_some(())
}

/// Calls `each` with every range; `None` if the bytes are malformed.
pub fn decode(bytes: &[u8], each: impl FnMut(u32, Verdict, Range<u64>)) -> Option<()> {
    decode_all(bytes, each, |_, _, _, _| ())
}

/// Takes groups off the front, and calls `each` with every range; `None` if the bytes are malformed.
pub fn take(rest: &mut &[u8], mut each: impl FnMut(u32, Verdict, Range<u64>)) -> Option<()> {
    for _ in 0..number(rest)? {
        let run = u32::try_from(number(rest)?).ok()?;
        let verdict = Verdict::from_code(u8::try_from(number(rest)?).ok()?)?;
        let mut end = 0_u64;
        for _ in 0..number(rest)? {
            let start = end.checked_add(number(rest)?)?;
            end = start.checked_add(number(rest)?)?.checked_add(1)?;
            each(run, verdict, start..end);
        }
    }
    Some(())
}

/// Adds the verdicts that the bytes hold; `None` if the bytes are malformed.
pub fn decode_into(bytes: &[u8], into: &mut Verdicts) -> Option<()> {
    decode(bytes, |run, verdict, range| {
        into.entry((run, verdict)).or_default().insert_range(range);
    })
}

fn varint(mut value: u64, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, others) = rest.split_first()?;
        *rest = others;
        let bits = u64::from(first & 0x7F);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_these_bytes() {
        let mut verdicts = Verdicts::new();
        verdicts.entry((300, Verdict::Rejected)).or_default().extend(&[1..4, 200..201].into_iter().collect());
        let mut bytes = Vec::new();
        encode_all(&verdicts, &mut bytes);
        assert_eq!(bytes, [1, 0xAC, 0x02, 2, 2, 1, 2, 0xC4, 0x01, 0]);
        let mut decoded = Verdicts::new();
        assert_eq!(decode_into(&bytes, &mut decoded), Some(()));
        assert_eq!(decoded, verdicts);
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut], |_, _, _| ()), None);
        }
    }

    #[test]
    fn numbers_past_the_last_are_refused() {
        let largest = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
        assert_eq!(number(&mut &largest[..]), Some(u64::MAX));
        assert_eq!(number(&mut &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2][..]), None);
        let mut bytes = vec![1, 1, 1, 1];
        bytes.extend(largest);
        bytes.push(0);
        assert_eq!(decode(&bytes, |_, _, _| ()), None);
    }
}
