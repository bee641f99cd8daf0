use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Values at places whose numbers are given out again: the last one that became free first.
#[derive(Debug, Clone)]
pub struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Returns how many values are there.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Tells whether no value is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts a value at a free place, and returns the number of the place.
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.places[number as usize] = Some(value);
                number
            }
            None => {
                self.places.push(Some(value));
                (self.places.len() - 1) as u32
            }
        }
    }

    /// Takes the value at a place away, which is free from then on.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.places.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(value)
    }

    /// Returns the value at a place, if there is one.
    #[must_use]
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.places.get(number as usize)?.as_ref()
    }

    /// Returns the value at a place to be changed, if there is one.
    #[inline]
    pub fn at(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_mut()
    }

    /// Iterates over the values with the numbers of their places, in the order of these.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.places).filter_map(|(number, value)| Some((number, value.as_ref()?)))
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        self.get(number).expect("the caller knows that a value is there")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        self.at(number).expect("the caller knows that a value is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_out_again() {
        let mut slab = Slab::default();
        assert_eq!([slab.insert('a'), slab.insert('b'), slab.insert('c')], [0, 1, 2]);
        assert_eq!((slab.remove(1), slab.remove(1), slab.remove(7)), (Some('b'), None, None));
        assert_eq!((slab.len(), slab.get(1), slab[2]), (2, None, 'c'));
        assert_eq!((slab.insert('d'), slab.insert('e')), (1, 3));
        slab[3] = 'f';
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(0, &'a'), (1, &'d'), (2, &'c'), (3, &'f')]);
    }
}
