//! A queue of small values, for the innermost loops: the compiler joins it with its user, which it does not do with `VecDeque`.
use alloc::vec::Vec;
use core::ops::Index;

/// The places that a queue begins with.
const PLACES: usize = 16;

/// A queue that grows, and keeps its memory.
#[derive(Debug)]
pub(super) struct Ring<T> {
    /// None, or a power of two.
    places: Vec<T>,
    first: usize,
    len: usize,
}

impl<T: Copy> Ring<T> {
    #[inline(always)]
    fn place(&self, number: usize) -> usize {
        self.first.wrapping_add(number) & self.places.len().wrapping_sub(1)
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        (self.first, self.len) = (0, 0);
    }

    #[inline(always)]
    pub(super) fn push_back(&mut self, value: T) {
        if self.len == self.places.len() {
            self.grow(value);
        }
        let place = self.place(self.len);
        self.places[place] = value;
        self.len += 1;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: T) {
        let more = self.places.len().max(PLACES);
        self.places.rotate_left(self.first);
        self.first = 0;
        self.places.resize(self.places.len() + more, filler);
    }

    #[inline(always)]
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        if number < self.len { self.places.get(self.place(number)) } else { None }
    }

    #[inline(always)]
    pub(super) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline(always)]
    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        if self.len == 0 { None } else { self.places.get_mut(self.first) }
    }

    pub(super) fn back_mut(&mut self) -> Option<&mut T> {
        let last = self.place(self.len.checked_sub(1)?);
        self.places.get_mut(last)
    }

    #[inline(always)]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.first = self.place(1);
        self.len -= 1;
        Some(value)
    }

    pub(super) fn pop_back(&mut self) -> Option<T> {
        let value = *self.back_mut()?;
        self.len -= 1;
        Some(value)
    }

    #[inline(always)]
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        (0..self.len).map(|number| &self.places[self.place(number)])
    }
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { places: Vec::new(), first: 0, len: 0 }
    }
}

impl<T: Copy> Index<usize> for Ring<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        self.get(number).expect("a number below the length")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;

    #[test]
    fn it_does_what_a_queue_of_the_library_does() {
        let random = &mut hodo_machine::Random::new(1);
        let (mut ring, mut queue) = (Ring::default(), VecDeque::new());
        for step in 0..20_000u32 {
            match random.below(9) {
                0..=4 => {
                    ring.push_back(step);
                    queue.push_back(step);
                }
                5..=7 => assert_eq!(ring.pop_front(), queue.pop_front()),
                _ => assert_eq!(ring.pop_back(), queue.pop_back()),
            }
            if random.chance(0.002) {
                ring.clear();
                queue.clear();
            }
            assert_eq!((ring.len(), ring.front(), ring.get(3)), (queue.len(), queue.front(), queue.get(3)));
        }
        assert!(ring.iter().rev().eq(queue.iter().rev()) && !ring.is_empty());
    }
}
