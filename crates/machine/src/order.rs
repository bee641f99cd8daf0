use alloc::vec::Vec;
use core::fmt;

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Order {
    /// Both orders.
    pub const BOTH: [Order; 2] = [Order::Little, Order::Big];
    /// The order of this computer.
    pub const NATIVE: Order = if cfg!(target_endian = "big") { Order::Big } else { Order::Little };

    /// Returns the other order.
    #[must_use]
    pub const fn other(self) -> Order {
        match self {
            Order::Little => Order::Big,
            Order::Big => Order::Little,
        }
    }

    /// Reads two bytes.
    #[must_use]
    #[inline]
    pub const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Reads four bytes.
    #[must_use]
    #[inline]
    pub const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Reads eight bytes.
    #[must_use]
    #[inline]
    pub const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Order::Little => u64::from_le_bytes(bytes),
            Order::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Returns the two bytes of a number.
    #[must_use]
    #[inline]
    pub const fn bytes_16(self, value: u16) -> [u8; 2] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    /// Returns the four bytes of a number.
    #[must_use]
    #[inline]
    pub const fn bytes_32(self, value: u32) -> [u8; 4] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    /// Returns the eight bytes of a number.
    #[must_use]
    #[inline]
    pub const fn bytes_64(self, value: u64) -> [u8; 8] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    /// Reads words of four bytes, as many as there are whole ones in `bytes` and places in `words`; returns how many.
    #[inline]
    pub fn read(self, bytes: &[u8], words: &mut [u32]) -> usize {
        let (bytes, _) = bytes.as_chunks::<4>();
        let count = bytes.len().min(words.len());
        // One loop for each order, so that each is a block copy or a block swap.
        match self {
            Order::Big => bytes.iter().zip(words).for_each(|(bytes, word)| *word = u32::from_be_bytes(*bytes)),
            Order::Little => bytes.iter().zip(words).for_each(|(bytes, word)| *word = u32::from_le_bytes(*bytes)),
        }
        count
    }

    /// Writes words of four bytes, as many as there are in `words` and whole places in `bytes`; returns how many.
    #[inline]
    pub fn write(self, words: &[u32], bytes: &mut [u8]) -> usize {
        let (bytes, _) = bytes.as_chunks_mut::<4>();
        let count = bytes.len().min(words.len());
        match self {
            Order::Big => bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_be_bytes()),
            Order::Little => bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes()),
        }
        count
    }

    /// Appends one word of four bytes.
    #[inline]
    pub fn push(self, word: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes_32(word));
    }

    /// Appends words of four bytes.
    #[inline]
    pub fn append(self, words: &[u32], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + words.len() * 4, 0);
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
