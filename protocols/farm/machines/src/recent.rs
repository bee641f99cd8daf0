use alloc::collections::VecDeque;

/// The last values of many, up to a number.
#[derive(Debug, Clone)]
pub(crate) struct Recent<T, const MAX: usize>(VecDeque<T>);

impl<T, const MAX: usize> Default for Recent<T, MAX> {
    fn default() -> Self {
        Recent(VecDeque::new())
    }
}

impl<T: PartialEq, const MAX: usize> Recent<T, MAX> {
    /// Returns whether this value is among them.
    pub(crate) fn contains(&self, value: &T) -> bool {
        self.0.contains(value)
    }

    /// Adds a value in the place of the oldest one, and returns whether it is new.
    pub(crate) fn insert(&mut self, value: T) -> bool {
        if self.contains(&value) {
            return false;
        }
        if self.0.len() >= MAX {
            self.0.pop_front();
        }
        self.0.push_back(value);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_value_makes_room() {
        let mut recent = Recent::<u32, 3>::default();
        assert!([1, 2, 3].into_iter().all(|value| recent.insert(value)) && !recent.insert(1));
        assert!(recent.insert(4) && recent.contains(&2) && !recent.contains(&1));
    }
}
