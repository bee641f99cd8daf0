use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Values at numbered places that are used again: the last one that became free first.
///
/// A free place keeps its value until it is taken again, so that buffers in it need not be allocated anew.
#[derive(Debug, Clone)]
pub struct Slab<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Returns how many places are taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Tells whether no place is taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a place with the value that it had when it was released, or a new one with a `fresh` value, and returns its
    /// number.
    pub fn take(&mut self, fresh: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(fresh());
            (self.places.len() - 1) as u32
        })
    }

    /// Puts a value at a free place, and returns the number of the place.
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.places[number as usize] = value;
                number
            }
            None => {
                self.places.push(value);
                (self.places.len() - 1) as u32
            }
        }
    }

    /// Frees a place, which keeps its value until it is taken again.
    #[inline]
    pub fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Returns the value at a place, taken or free, if there is such a place.
    #[must_use]
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.places.get(number as usize)
    }

    /// Returns the value at a place to be changed, taken or free, if there is such a place.
    #[inline]
    pub fn at(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)
    }

    /// Iterates over the values at all places, taken or free, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.places)
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.places[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.places[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_with_what_they_held() {
        let mut slab = Slab::default();
        assert_eq!([slab.insert('a'), slab.insert('b'), slab.take(|| 'c')], [0, 1, 2]);
        slab.release(1);
        assert_eq!((slab.len(), slab[1], slab.get(7)), (2, 'b', None));
        assert_eq!((slab.take(|| 'd'), slab[1]), (1, 'b'));
        slab.release(0);
        assert_eq!((slab.insert('e'), slab[0], slab.len()), (0, 'e', 3));
        slab[2] = 'f';
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(0, &'e'), (1, &'b'), (2, &'f')]);
    }
}
