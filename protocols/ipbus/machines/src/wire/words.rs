use super::WORD;
use alloc::vec::Vec;
use core::fmt;
use core::iter::FusedIterator;

/// The order of the bytes in every word of a packet. A reply has its request's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl Order {
    /// Both.
    pub const BOTH: [Order; 2] = [Order::Big, Order::Little];
    /// That of this processor: words need no work.
    pub const NATIVE: Order = if cfg!(target_endian = "big") { Order::Big } else { Order::Little };

    /// Returns the other one.
    #[must_use]
    pub const fn other(self) -> Order {
        match self {
            Order::Big => Order::Little,
            Order::Little => Order::Big,
        }
    }

    /// Returns the word of these bytes.
    #[must_use]
    #[inline]
    pub const fn word(self, bytes: [u8; WORD]) -> u32 {
        match self {
            Order::Big => u32::from_be_bytes(bytes),
            Order::Little => u32::from_le_bytes(bytes),
        }
    }

    /// Returns the bytes of this word.
    #[must_use]
    #[inline]
    pub const fn bytes(self, word: u32) -> [u8; WORD] {
        match self {
            Order::Big => word.to_be_bytes(),
            Order::Little => word.to_le_bytes(),
        }
    }

    /// Reads words, as many as there are whole ones in `bytes` and places in `words`; answers how many.
    #[inline]
    pub fn read(self, bytes: &[u8], words: &mut [u32]) -> usize {
        let (bytes, _) = bytes.as_chunks::<WORD>();
        let count = bytes.len().min(words.len());
        // One loop for each order, so that each is a block copy or a block swap.
        match self {
            Order::Big => bytes.iter().zip(words).for_each(|(bytes, word)| *word = u32::from_be_bytes(*bytes)),
            Order::Little => bytes.iter().zip(words).for_each(|(bytes, word)| *word = u32::from_le_bytes(*bytes)),
        }
        count
    }

    /// Writes words, as many as there are in `words` and whole places in `bytes`; answers how many.
    #[inline]
    pub fn write(self, words: &[u32], bytes: &mut [u8]) -> usize {
        let (bytes, _) = bytes.as_chunks_mut::<WORD>();
        let count = bytes.len().min(words.len());
        match self {
            Order::Big => bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_be_bytes()),
            Order::Little => bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes()),
        }
        count
    }

    /// Appends one word.
    #[inline]
    pub fn push(self, word: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes(word));
    }

    /// Appends words.
    #[inline]
    pub fn append(self, words: &[u32], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + words.len() * WORD, 0);
        self.write(words, &mut out[start..]);
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Order::Big => "big-endian",
            Order::Little => "little-endian",
        })
    }
}

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
        self.bytes.get(index).map(|bytes| self.order.word(*bytes))
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
        self.bytes.next().map(|bytes| self.order.word(*bytes))
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
