//! A queue of work requests with room for a fixed number, and for the entries of each.

use crate::ScatterEntry;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// A queue of requests, numbered from 0 as they were posted. A request's entries are kept beside it.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    slots: Vec<T>,
    entries: Box<[ScatterEntry]>,
    /// Entries of a request at most.
    width: usize,
    depth: u32,
    head: u64,
    tail: u64,
}

impl<T: Copy> Queue<T> {
    /// Returns the bytes that a queue takes.
    pub(crate) const fn size(depth: u32, width: u32) -> u64 {
        let each = size_of::<T>() as u64 + width as u64 * size_of::<ScatterEntry>() as u64;
        (depth as u64).saturating_mul(each)
    }

    pub(crate) fn new(depth: u32, width: u32) -> Self {
        let (depth, width) = (depth.max(1), width as usize);
        Queue {
            slots: Vec::with_capacity(depth as usize),
            entries: vec![ScatterEntry::default(); depth as usize * width].into_boxed_slice(),
            width,
            depth,
            head: 0,
            tail: 0,
        }
    }

    /// Entries of a request at most.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    pub(crate) const fn depth(&self) -> u32 {
        self.depth
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.tail - self.head >= self.depth as u64
    }

    /// Returns the number of the oldest request.
    #[inline]
    pub(crate) const fn head(&self) -> u64 {
        self.head
    }

    /// Returns the number that the next request gets.
    #[inline]
    pub(crate) const fn tail(&self) -> u64 {
        self.tail
    }

    /// Adds a request. There is room for it and for its entries.
    #[inline]
    pub(crate) fn push(&mut self, request: T, entries: &[ScatterEntry]) {
        let slot = self.slot(self.tail);
        match self.slots.get_mut(slot) {
            Some(place) => *place = request,
            None => self.slots.push(request),
        }
        self.entries[slot * self.width..][..entries.len()].copy_from_slice(entries);
        self.tail += 1;
    }

    /// Forgets the oldest request.
    #[inline]
    pub(crate) fn pop(&mut self) {
        debug_assert!(!self.is_empty(), "the caller has looked at the request");
        self.head += 1;
    }

    /// Returns the request of this number, which is outstanding.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        (self.head..self.tail).contains(&number).then(|| &self.slots[self.slot(number)])
    }

    #[inline]
    pub(crate) fn at(&mut self, number: u64) -> Option<&mut T> {
        let slot = self.slot(number);
        (self.head..self.tail).contains(&number).then(|| &mut self.slots[slot])
    }

    /// Returns the room for the entries of the request of this number.
    #[inline]
    pub(crate) fn entries(&self, number: u64) -> &[ScatterEntry] {
        &self.entries[self.slot(number) * self.width..][..self.width]
    }

    #[inline]
    pub(crate) const fn slot(&self, number: u64) -> usize {
        (number % self.depth as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_requests_and_entries_in_order_as_it_wraps() {
        let mut queue = Queue::new(2, 1);
        let entry = |length| [ScatterEntry { address: 0, length, key: 1 }];
        for number in 0..10u32 {
            queue.push(number, &entry(number));
            queue.push(number + 100, &[]);
            assert!(queue.is_full());
            let head = queue.head();
            assert_eq!((queue.get(head), queue.get(head + 1)), (Some(&number), Some(&(number + 100))));
            assert_eq!(queue.entries(head)[0].length, number);
            assert_eq!(queue.get(head + 2), None);
            queue.pop();
            queue.pop();
            assert!(queue.is_empty() && queue.get(head).is_none());
        }
    }
}
