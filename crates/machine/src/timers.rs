mod index;

use crate::Instant;
use alloc::vec::Vec;
use core::hash::Hash;
use index::Index;

/// The timers of a machine, each named by a key of the machine's own type and armed at most once.
///
/// Arming, moving, cancelling and taking a timer cost O(log n), the next deadline O(1); nothing is allocated once as many
/// timers have been armed at a time as ever will be. Timers that are due at the same instant come in the order of their
/// keys, so that a machine does the same in every run.
///
/// A deadline that moves with every message, as that of silence, need not be moved here each time: keep the instant of the
/// last message with the peer, and arm the timer anew where it turns out to be too early.
///
/// ```
/// use core::time::Duration;
/// use hodo_machine::{Instant, Timers};
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
/// enum Timer {
///     Greeting(u32),
///     Report,
/// }
///
/// let (mut timers, now) = (Timers::default(), Instant::ZERO);
/// timers.arm(Timer::Report, now + Duration::from_secs(1));
/// timers.arm(Timer::Greeting(7), now + Duration::from_secs(2));
/// timers.arm(Timer::Greeting(8), now + Duration::from_secs(3));
/// timers.cancel(Timer::Report);
/// assert_eq!(timers.next(), Some(now + Duration::from_secs(2)));
/// assert_eq!(timers.pop_due(now + Duration::from_secs(2)), Some(Timer::Greeting(7)));
/// assert_eq!(timers.pop_due(now + Duration::from_secs(2)), None);
/// ```
#[derive(Debug, Clone)]
pub struct Timers<K> {
    /// A binary heap of the armed timers: each with its slot, the earliest first.
    heap: Vec<(Instant, u32)>,
    slots: Vec<Slot<K>>,
    /// Slots without a timer.
    free: Vec<u32>,
    index: Index,
}

#[derive(Debug, Clone)]
struct Slot<K> {
    key: K,
    /// Where the timer stands in the heap.
    place: usize,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Timers { heap: Vec::new(), slots: Vec::new(), free: Vec::new(), index: Index::default() }
    }
}

impl<K: Copy + Ord + Hash> Timers<K> {
    /// Arms a timer, or moves it to this instant if it is armed.
    #[inline]
    pub fn arm(&mut self, key: K, at: Instant) {
        match self.find(key) {
            Some(slot) => self.move_to(slot, at),
            None => self.insert(key, at),
        }
    }

    /// Arms a timer, or moves it to this instant if it is armed for a later one.
    #[inline]
    pub fn arm_by(&mut self, key: K, at: Instant) {
        match self.find(key) {
            Some(slot) if at < self.heap[self.slots[slot as usize].place].0 => self.move_to(slot, at),
            Some(_) => {}
            None => self.insert(key, at),
        }
    }

    /// Arms a timer, or cancels it for `None`.
    #[inline]
    pub fn set(&mut self, key: K, at: Option<Instant>) {
        match at {
            Some(at) => self.arm(key, at),
            None => self.cancel(key),
        }
    }

    /// Cancels a timer, if it is armed.
    #[inline]
    pub fn cancel(&mut self, key: K) {
        if let Some(slot) = self.find(key) {
            self.take(self.slots[slot as usize].place);
        }
    }

    /// Cancels every timer.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.slots.clear();
        self.free.clear();
        self.index.clear();
    }

    /// Returns when a timer is due, if it is armed.
    #[must_use]
    pub fn at(&self, key: K) -> Option<Instant> {
        self.find(key).map(|slot| self.heap[self.slots[slot as usize].place].0)
    }

    /// Returns when the next timer is due.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Takes the earliest timer if it is due; it is not armed any more.
    #[inline]
    pub fn pop_due(&mut self, now: Instant) -> Option<K> {
        let due = self.heap.first().is_some_and(|(at, _)| *at <= now);
        due.then(|| self.take(0))
    }

    /// Returns how many timers are armed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Tells whether no timer is armed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    #[inline]
    fn find(&self, key: K) -> Option<u32> {
        self.index.find(&key, |slot| self.slots[slot as usize].key)
    }

    fn insert(&mut self, key: K, at: Instant) {
        let place = self.heap.len();
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(slot as usize) {
            Some(spare) => *spare = Slot { key, place },
            None => self.slots.push(Slot { key, place }),
        }
        self.index.insert(slot, |slot| self.slots[slot as usize].key);
        self.heap.push((at, slot));
        self.rise(place);
    }

    fn move_to(&mut self, slot: u32, at: Instant) {
        let place = self.slots[slot as usize].place;
        if self.heap[place].0 != at {
            self.heap[place].0 = at;
            let place = self.rise(place);
            self.sink(place);
        }
    }

    /// Takes the timer at a place of the heap out of everything.
    fn take(&mut self, place: usize) -> K {
        let (_, slot) = self.heap.swap_remove(place);
        if place < self.heap.len() {
            let place = self.rise(place);
            self.sink(place);
        }
        let key = self.slots[slot as usize].key;
        self.index.remove(&key, |slot| self.slots[slot as usize].key);
        self.free.push(slot);
        key
    }

    fn is_before(&self, one: usize, other: usize) -> bool {
        let key = |place: usize| (self.heap[place].0, self.slots[self.heap[place].1 as usize].key);
        key(one) < key(other)
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 && self.is_before(place, (place - 1) / 2) {
            self.heap.swap(place, (place - 1) / 2);
            self.note(place);
            place = (place - 1) / 2;
        }
        self.note(place);
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let mut least = place;
            for child in (2 * place + 1)..self.heap.len().min(2 * place + 3) {
                if self.is_before(child, least) {
                    least = child;
                }
            }
            if least == place {
                break;
            }
            self.heap.swap(place, least);
            self.note(place);
            place = least;
        }
        self.note(place);
    }

    fn note(&mut self, place: usize) {
        self.slots[self.heap[place].1 as usize].place = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use alloc::collections::BTreeMap;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn the_next_is_the_earliest_of_all_that_are_armed() {
        for seed in 0..8 {
            let mut random = Random::new(seed);
            let (mut timers, mut truth) = (Timers::default(), BTreeMap::new());
            for _ in 0..20_000 {
                let key = (random.below(3) as u8, random.below(40));
                let when = at(random.below(1000));
                match random.below(4) {
                    0 => {
                        timers.cancel(key);
                        truth.remove(&key);
                    }
                    1 => {
                        timers.arm_by(key, when);
                        let entry = truth.entry(key).or_insert(when);
                        *entry = when.min(*entry);
                    }
                    2 => {
                        timers.arm(key, when);
                        truth.insert(key, when);
                    }
                    _ => {
                        let now = at(random.below(100));
                        let first =
                            truth.iter().map(|(key, when)| (*when, *key)).min().filter(|(when, _)| *when <= now);
                        assert_eq!(timers.pop_due(now), first.map(|(_, key)| key));
                        first.map(|(_, key)| truth.remove(&key));
                    }
                }
                assert_eq!(timers.next(), truth.values().min().copied());
                assert_eq!((timers.len(), timers.is_empty()), (truth.len(), truth.is_empty()));
                assert_eq!(timers.at(key), truth.get(&key).copied());
            }
        }
    }

    #[test]
    fn timers_of_one_instant_come_in_the_order_of_their_keys() {
        let mut timers = Timers::default();
        [3, 1, 4, 5, 9, 2, 6].into_iter().for_each(|key| timers.arm(key, at(7)));
        timers.set(5, None);
        let all: Vec<i32> = core::iter::from_fn(|| timers.pop_due(at(7))).collect();
        assert_eq!(all, [1, 2, 3, 4, 6, 9]);
    }

    #[test]
    fn all_can_be_cancelled_at_once() {
        let mut timers = Timers::default();
        (0..100_u32).for_each(|key| timers.arm(key, at(u64::from(key))));
        timers.clear();
        assert_eq!((timers.next(), timers.at(5)), (None, None));
        timers.arm(5, at(1));
        assert_eq!(timers.pop_due(at(1)), Some(5));
    }
}
