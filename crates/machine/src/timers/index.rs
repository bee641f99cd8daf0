use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// The least number of entries of a table.
const ENTRIES_MIN: usize = 8;

/// Finds slots by the keys in them: an open-addressed table, at most half full, in which a key is looked for from the place
/// of its hash on.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Slots plus one; 0 where there is none. A power of two of them, or none at all.
    table: Vec<u32>,
    count: usize,
}

impl Index {
    #[inline]
    pub(super) fn find<K: Hash + Eq>(&self, key: &K, key_of: impl Fn(u32) -> K) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let place = self.place(key, key_of);
        self.table[place].checked_sub(1)
    }

    pub(super) fn insert<K: Hash + Eq>(&mut self, slot: u32, key_of: impl Fn(u32) -> K) {
        self.count += 1;
        if self.count * 2 > self.table.len() {
            let entries = (self.table.len() * 2).max(ENTRIES_MIN);
            let old = core::mem::replace(&mut self.table, alloc::vec![0; entries]);
            for entry in old.into_iter().filter(|entry| *entry != 0) {
                let place = self.place(&key_of(entry - 1), &key_of);
                self.table[place] = entry;
            }
        }
        let place = self.place(&key_of(slot), &key_of);
        self.table[place] = slot + 1;
    }

    pub(super) fn remove<K: Hash + Eq>(&mut self, key: &K, key_of: impl Fn(u32) -> K) {
        let mask = self.table.len() - 1;
        let mut hole = self.place(key, &key_of);
        self.table[hole] = 0;
        self.count -= 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let entry = self.table[place];
            if entry == 0 {
                return;
            }
            // Whatever would be looked for from the hole or from before it moves there.
            let home = hash(key_of(entry - 1)) & mask;
            if place.wrapping_sub(home) & mask >= place.wrapping_sub(hole) & mask {
                self.table.swap(hole, place);
                hole = place;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.table.fill(0);
        self.count = 0;
    }

    /// Returns the place of a key, or the empty one where it would be.
    #[inline]
    fn place<K: Hash + Eq>(&self, key: &K, key_of: impl Fn(u32) -> K) -> usize {
        let mask = self.table.len() - 1;
        let mut place = hash(key) & mask;
        while let Some(slot) = self.table[place].checked_sub(1)
            && key_of(slot) != *key
        {
            place = (place + 1) & mask;
        }
        place
    }
}

#[inline]
fn hash<K: Hash>(key: K) -> usize {
    let mut mixed = Mixed(0);
    key.hash(&mut mixed);
    (mixed.0 >> 32) as usize
}

/// A hash of small integers, the same in every run.
struct Mixed(u64);

impl Mixed {
    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(32) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.add(number as u64);
    }
}
