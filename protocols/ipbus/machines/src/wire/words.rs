use super::WORD;
use alloc::vec::Vec;
use core::fmt;
use core::iter::FusedIterator;

pub use hodo_machine::Order;

/// Turns every whole word of `bytes` into the other byte order.
#[inline]
pub fn swap(bytes: &mut [u8]) {
    for word in bytes.as_chunks_mut::<WORD>().0 {
        *word = u32::from_ne_bytes(*word).swap_bytes().to_ne_bytes();
    }
}

/// Words as they were received, not yet turned into this processor's byte order.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    bytes: &'a [[u8; WORD]],
    order: Order,
}

impl<'a> Words<'a> {
    /// Creates the whole words of these bytes.
    #[must_use]
    #[inline]
    pub const fn new(bytes: &'a [u8], order: Order) -> Self {
        Words { bytes: bytes.as_chunks().0, order }
    }

    /// Returns how many there are.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Tells whether there is none.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the first so many words, or all if there are fewer.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Words { bytes: &self.bytes[..count.min(self.len())], order: self.order }
    }

    /// Returns the word at this place.
    #[must_use]
    #[inline]
    pub fn at(&self, index: usize) -> Option<u32> {
        self.bytes.get(index).map(|bytes| self.order.u32(*bytes))
    }

    /// Iterates over the words.
    #[must_use]
    #[inline]
    pub fn iter(&self) -> Iter<'a> {
        Iter { bytes: self.bytes.iter(), order: self.order }
    }

    /// Reads as many as there are places; answers how many. The fast way for a block.
    #[inline]
    pub fn read(&self, words: &mut [u32]) -> usize {
        self.order.read(self.bytes(), words)
    }

    /// Returns the bytes as they were received.
    #[must_use]
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes.as_flattened()
    }

    /// Returns the byte order.
    #[must_use]
    #[inline]
    pub const fn order(&self) -> Order {
        self.order
    }
}

impl<'a> IntoIterator for Words<'a> {
    type Item = u32;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl PartialEq for Words<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Words<'_> {}

impl fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, word) in self.iter().enumerate() {
            write!(f, "{}0x{word:08X}", if index > 0 { ", " } else { "" })?;
        }
        f.write_str("]")
    }
}

/// Goes over [`Words`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    bytes: core::slice::Iter<'a, [u8; WORD]>,
    order: Order,
}

impl Iterator for Iter<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        self.bytes.next().map(|bytes| self.order.u32(*bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.bytes.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}

/// Words that can be put into a packet: `&[u32]`, or [`Words`] of either byte order.
pub trait Data {
    /// Returns how many there are.
    fn count(&self) -> usize;
    /// Appends them in this byte order.
    fn append_to(&self, order: Order, out: &mut Vec<u8>);
}

impl Data for &[u32] {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn append_to(&self, order: Order, out: &mut Vec<u8>) {
        order.append(self, out);
    }
}

impl Data for Words<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn append_to(&self, order: Order, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(self.bytes());
        if order != self.order {
            swap(&mut out[start..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const BYTES: [u8; 9] = [0x12, 0x34, 0x56, 0x78, 0x00, 0x00, 0x00, 0x01, 0xFF];

    #[test]
    fn both_orders_read_and_write_the_whole_words_that_fit() {
        for (order, expected) in [(Order::Big, [0x1234_5678, 1]), (Order::Little, [0x7856_3412, 0x0100_0000])] {
            let mut words = [0; 3];
            assert_eq!(order.read(&BYTES, &mut words), 2);
            assert_eq!(words, [expected[0], expected[1], 0]);
            assert_eq!(order.read(&BYTES, &mut words[..1]), 1);
            let mut bytes = [0; 9];
            assert_eq!(order.write(&words, &mut bytes), 2);
            assert_eq!(bytes[..8], BYTES[..8]);
            let mut out = vec![7];
            order.append(&expected, &mut out);
            assert_eq!(out[1..], BYTES[..8]);
            assert!(Words::new(&BYTES, order).iter().eq(expected));
            assert_eq!(Words::new(&BYTES, order).at(1), Some(expected[1]));
            assert_eq!(Words::new(&BYTES, order).at(2), None);
        }
    }

    #[test]
    fn words_of_either_order_are_the_same_data() {
        let words = [1, 0xDEAD_BEEF, 3];
        for from in Order::BOTH {
            let mut received = Vec::new();
            from.append(&words, &mut received);
            for to in Order::BOTH {
                let (mut copied, mut direct) = (Vec::new(), Vec::new());
                Words::new(&received, from).append_to(to, &mut copied);
                (&words[..]).append_to(to, &mut direct);
                assert_eq!(copied, direct, "{from} to {to}");
            }
        }
    }

    #[test]
    fn swapping_leaves_a_partial_word() {
        let mut bytes = [1, 2, 3, 4, 5, 6];
        swap(&mut bytes);
        assert_eq!(bytes, [4, 3, 2, 1, 5, 6]);
    }
}
