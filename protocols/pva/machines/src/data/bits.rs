use crate::{Error, Order, Reader, Writer};
use alloc::vec::Vec;

/// A set of numbers of fields.
#[derive(Debug, Clone, Default)]
pub struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        BitSet { words: Vec::new() }
    }

    /// Tells whether a number is in the set.
    #[must_use]
    #[inline]
    pub fn has(&self, number: usize) -> bool {
        self.words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Tells whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns how many numbers are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Puts a number in.
    #[inline]
    pub fn insert(&mut self, number: usize) {
        let at = number / 64;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (number % 64);
    }

    /// Takes a number out.
    pub fn remove(&mut self, number: usize) {
        if let Some(word) = self.words.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    /// Takes all numbers out, and keeps the room.
    #[inline]
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Returns the set as words of bits, the lowest first. Those at the end that are empty may be missing.
    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Makes the set the one that has these words of bits.
    #[inline]
    pub(crate) fn assign_words(&mut self, words: &[u64]) {
        self.words.clear();
        self.words.extend_from_slice(words);
    }

    /// Returns the lowest number in the set that is `from` or above.
    #[must_use]
    #[inline]
    pub fn next(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.words.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(64 * at + word.trailing_zeros() as usize)
    }

    /// Iterates over the numbers, the lowest first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let number = self.next(from)?;
            from = number + 1;
            Some(number)
        })
    }

    /// Puts in all numbers of another set.
    pub fn unite(&mut self, other: &BitSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Takes out all numbers that are not in another set.
    pub fn intersect(&mut self, other: &BitSet) {
        self.words.truncate(other.words.len());
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Returns the numbers that are in both sets.
    #[must_use]
    pub fn common(&self, other: &BitSet) -> BitSet {
        let mut both = self.clone();
        both.intersect(other);
        both
    }

    /// Makes this set equal to another, and keeps the room.
    pub fn assign(&mut self, other: &BitSet) {
        self.words.clear();
        self.words.extend_from_slice(&other.words);
    }

    /// Reads a set of numbers below `end` in place of this one. Higher ones, which name no field, are left out.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    #[inline]
    pub fn decode(&mut self, end: usize, reader: &mut Reader<'_>) -> Result<(), Error> {
        let length = reader.count(1)?;
        let mut bytes = reader.bytes(length)?;
        let order = reader.order();
        self.words.clear();
        while self.words.len() < end.div_ceil(64) && !bytes.is_empty() {
            let word = if let Some((full, rest)) = bytes.split_first_chunk::<8>() {
                bytes = rest;
                order.u64(*full)
            } else {
                let mut full = [0; 8];
                full[..bytes.len()].copy_from_slice(bytes);
                bytes = &[];
                u64::from_le_bytes(full)
            };
            self.words.push(word);
        }
        if let Some(last) = self.words.get_mut(end / 64) {
            *last &= !(u64::MAX << (end % 64));
        }
        Ok(())
    }

    /// Writes the set.
    #[inline]
    pub fn encode(&self, writer: &mut Writer) {
        let used = self.words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        let Some((last, full)) = self.words[..used].split_last() else { return writer.u8(0) };
        let rest = 8 - last.leading_zeros() as usize / 8;
        writer.size((8 * full.len() + rest) as u64);
        for word in full {
            writer.u64(*word);
        }
        // A last word of eight bytes is a full one.
        let order = if rest == 8 { writer.order() } else { Order::Little };
        writer.bytes(&order.bytes_64(*last)[..rest]);
    }
}

impl PartialEq for BitSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for BitSet {}

impl FromIterator<usize> for BitSet {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut set = BitSet::new();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::wire::Side;
    use alloc::vec;
    use hodo_machine::Random;

    fn encoded(set: &BitSet, order: Order) -> Vec<u8> {
        let mut writer = Writer::new(Side::Client, order);
        set.encode(&mut writer);
        writer.to_vec()
    }

    fn decoded(bytes: &[u8], end: usize, order: Order) -> BitSet {
        let limits = Limits::default();
        let mut set = BitSet::from_iter([1, 200]);
        set.decode(end, &mut Reader::new(bytes, order, &limits)).expect("it is whole");
        set
    }

    /// Full words are in the order of the message, as in the messages of pvxs in `tests/golden`.
    #[test]
    fn literal_sets_decode_and_encode() {
        for (numbers, bytes) in [
            (vec![], &b"\x00"[..]),
            (vec![0], b"\x01\x01"),
            (vec![1], b"\x01\x02"),
            (vec![7], b"\x01\x80"),
            (vec![8], b"\x02\x00\x01"),
            (vec![15], b"\x02\x00\x80"),
            (vec![55], b"\x07\x00\x00\x00\x00\x00\x00\x80"),
            (vec![63], b"\x08\x80\x00\x00\x00\x00\x00\x00\x00"),
            (vec![65], b"\x09\x00\x00\x00\x00\x00\x00\x00\x00\x02"),
        ] {
            let set: BitSet = numbers.into_iter().collect();
            assert_eq!(encoded(&set, Order::Big), bytes);
            assert_eq!(decoded(bytes, 100, Order::Big), set);
        }
        assert_eq!(encoded(&BitSet::from_iter([63]), Order::Little), b"\x08\0\0\0\0\0\0\0\x80");
    }

    #[test]
    fn numbers_of_no_field_are_left_out() {
        assert_eq!(
            decoded(b"\x09\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x07", 3, Order::Little).iter().collect::<Vec<_>>(),
            [0, 1, 2]
        );
        let up_to_65 = decoded(b"\x09\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x07", 65, Order::Little);
        assert_eq!(up_to_65.len(), 65);
        assert!(decoded(b"\x01\xFF", 0, Order::Little).is_empty());
    }

    #[test]
    fn any_set_survives_the_wire() {
        let mut random = Random::new(7);
        for _ in 0..500 {
            let end = 1 + random.below(300) as usize;
            let set: BitSet = (0..random.below(20)).map(|_| random.below(end as u64) as usize).collect();
            for order in Order::BOTH {
                assert_eq!(decoded(&encoded(&set, order), end, order), set);
            }
        }
    }

    #[test]
    fn sets_unite_and_intersect() {
        let (a, b) = (BitSet::from_iter([1, 5, 70]), BitSet::from_iter([5, 6]));
        let mut both = a.clone();
        both.unite(&b);
        assert_eq!(both.iter().collect::<Vec<_>>(), [1, 5, 6, 70]);
        assert_eq!(a.common(&b), BitSet::from_iter([5]));
        assert_eq!((a.next(2), a.next(6), a.next(71), a.next(999)), (Some(5), Some(70), None, None));
        both.remove(70);
        both.remove(999);
        assert!(!both.has(70) && both.has(6) && !both.is_empty() && both.len() == 3);
    }
}
