use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem::size_of;

/// The replies that a peer does not take for now, oldest first.
#[derive(Debug, Default)]
pub(super) struct UnsentReplies {
    bytes: Vec<u8>,
    /// The place of the oldest byte; what is before it has left.
    start: usize,
    /// The lengths of datagrams; a stream has none.
    lengths: VecDeque<u32>,
}

impl UnsentReplies {
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Returns the bytes of memory that are in use.
    pub(super) fn retained(&self) -> u64 {
        (self.bytes.capacity() + self.lengths.capacity() * size_of::<u32>()) as u64
    }

    /// Adds bytes of a stream.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds one datagram.
    pub(super) fn add_datagram(&mut self, datagram: &[u8]) {
        self.lengths.push_back(datagram.len() as u32);
        self.add(datagram);
    }

    /// Takes the oldest datagram, or up to `most` bytes of a stream.
    pub(super) fn take(&mut self, most: usize) -> &[u8] {
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let left = self.bytes.len() - self.start;
        let length = self.lengths.pop_front().map_or(most, |length| length as usize).min(left);
        self.start += length;
        &self.bytes[self.start - length..self.start]
    }

    /// Drops the older half of the datagrams, at least one, with the memory that they took. Returns how many there were.
    pub(super) fn drop_older_half(&mut self) -> u64 {
        let count = self.lengths.len().div_ceil(2);
        self.start += self.lengths.drain(..count).map(|length| length as usize).sum::<usize>();
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.shrink_to_fit();
        self.lengths.shrink_to_fit();
        count as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_leave_whole_and_in_order() {
        let mut held = UnsentReplies::default();
        for number in 0..5u8 {
            held.add_datagram(&[number; 3]);
        }
        assert_eq!(held.take(1), [0; 3]);
        assert_eq!(held.drop_older_half(), 2);
        assert_eq!([held.take(9).to_vec(), held.take(9).to_vec()], [[3; 3], [4; 3]]);
        assert!(held.is_empty());
        assert!(held.take(9).is_empty());
        assert_eq!((held.drop_older_half(), held.retained()), (0, 0));
    }

    #[test]
    fn a_stream_leaves_in_pieces_of_any_size() {
        let mut held = UnsentReplies::default();
        let all: Vec<u8> = (0..100).collect();
        held.add(&all);
        let mut taken = Vec::new();
        while !held.is_empty() {
            taken.extend_from_slice(held.take(7));
            assert!(held.bytes.len() - held.start <= 100 - taken.len());
        }
        assert_eq!(taken, all);
    }
}
