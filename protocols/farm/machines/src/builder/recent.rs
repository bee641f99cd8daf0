use super::assembly::Key;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

/// The fragments that each source over datagrams has given last, as long as it is the same program: so many of each at most.
#[derive(Debug)]
pub(crate) struct Recent {
    sources: BTreeMap<u32, RecentFragments>,
    max: usize,
}

#[derive(Debug, Default)]
struct RecentFragments {
    instance: u64,
    keys: BTreeSet<Key>,
    order: VecDeque<Key>,
}

impl Recent {
    pub(crate) fn new(max: usize) -> Self {
        Recent { sources: BTreeMap::new(), max }
    }

    /// Forgets what another program with the number of this one has given.
    pub(crate) fn came(&mut self, source: u32, instance: u64) {
        let given = self.sources.entry(source).or_default();
        if given.instance != instance {
            *given = RecentFragments { instance, ..RecentFragments::default() };
        }
    }

    pub(crate) fn add(&mut self, source: u32, key: Key) {
        let given = self.sources.entry(source).or_default();
        if !given.keys.insert(key) {
            return;
        }
        given.order.push_back(key);
        if given.order.len() > self.max
            && let Some(oldest) = given.order.pop_front()
        {
            given.keys.remove(&oldest);
        }
    }

    pub(crate) fn has(&self, source: u32, key: Key) -> bool {
        self.sources.get(&source).is_some_and(|given| given.keys.contains(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_of_one_program_are_known() {
        let mut recent = Recent::new(2);
        recent.came(3, 1);
        for event in 0..3 {
            recent.add(3, (1, event));
            recent.add(3, (1, event));
        }
        assert_eq!([0, 1, 2].map(|event| recent.has(3, (1, event))), [false, true, true]);
        assert!(!recent.has(4, (1, 2)));
        recent.came(3, 1);
        assert!(recent.has(3, (1, 2)));
        recent.came(3, 2);
        assert!(!recent.has(3, (1, 2)));
    }
}
