use crate::data::{BitSet, Plan, Step, Value};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The changed numbers of values of one plan, first in, first out, in one piece of memory: hundreds of queues of small updates stay in
/// the processor's cache, where whole values would not.
///
/// | words | content of an update |
/// |---|---|
/// | one for 64 fields | the changed fields |
/// | as many | the overrun |
/// | one for each number | the numbers |
/// | one | the number of all these words |
#[derive(Debug, Default)]
pub(crate) struct Packed {
    plan: Option<Arc<Plan>>,
    words: Vec<u64>,
    /// Place of the first update.
    front: usize,
}

impl Packed {
    /// Returns the plan of the values.
    pub(crate) const fn plan(&self) -> Option<&Arc<Plan>> {
        self.plan.as_ref()
    }

    /// Returns the bytes of all updates.
    pub(crate) const fn bytes(&self) -> usize {
        (self.words.len() - self.front) * size_of::<u64>()
    }

    /// Puts a set of fields of a value behind the others. Returns `false`, and changes nothing, if some field is no number, or if the
    /// others are of another plan.
    #[inline]
    pub(crate) fn push(&mut self, from: &Value, set: &BitSet, overrun: &BitSet) -> bool {
        let plan = from.plan();
        if self.plan.as_ref().is_none_or(|known| !Arc::ptr_eq(known, plan)) {
            if self.bytes() > 0 {
                return false;
            }
            self.plan = Some(plan.clone());
        }
        let set_words = plan.len().div_ceil(64);
        self.make_room(2 * set_words + plan.words() + 1);
        let start = self.words.len();
        for bits in [set, overrun] {
            self.words.extend((0..set_words).map(|at| bits.words().get(at).copied().unwrap_or(0)));
        }
        let mut at = 0;
        while let Some(number) = set.next(at) {
            for leaf in plan.leaves_of(number) {
                if !matches!(leaf.step, Step::Word(_)) {
                    self.words.truncate(start);
                    return false;
                }
                self.words.push(from.words[leaf.place as usize]);
            }
            at = plan.end(number);
        }
        self.words.push((self.words.len() + 1 - start) as u64);
        true
    }

    /// Takes the first update over into a value of the same plan, and returns its bytes.
    #[inline]
    pub(crate) fn pop_front(&mut self, into: &mut Value, overrun: &mut BitSet) -> usize {
        let end = self.unpack(self.front, into, overrun) + 1;
        let bytes = (end - self.front) * size_of::<u64>();
        self.front = end;
        if end == self.words.len() {
            self.words.clear();
            self.front = 0;
        }
        bytes
    }

    /// Takes the last update over into a value of the same plan, and returns its bytes.
    pub(crate) fn pop_back(&mut self, into: &mut Value, overrun: &mut BitSet) -> usize {
        let Some(count) = self.words.last().map(|count| *count as usize) else { return 0 };
        let start = self.words.len() - count;
        self.unpack(start, into, overrun);
        self.words.truncate(start);
        count * size_of::<u64>()
    }

    /// Copies the update that starts here, and returns the place behind its numbers.
    #[inline]
    fn unpack(&self, start: usize, into: &mut Value, overrun: &mut BitSet) -> usize {
        let Value { plan, words, changed, .. } = into;
        let set_words = plan.len().div_ceil(64);
        let (sets, numbers) = self.words[start..].split_at(2 * set_words);
        changed.assign_words(&sets[..set_words]);
        overrun.assign_words(&sets[set_words..]);
        let (mut at, mut taken) = (0, 0);
        while let Some(number) = changed.next(at) {
            for leaf in plan.leaves_of(number) {
                words[leaf.place as usize] = numbers[taken];
                taken += 1;
            }
            at = plan.end(number);
        }
        start + 2 * set_words + taken
    }

    /// Moves the updates to the front of the memory where so many words would not fit behind them, and they take no more than half of it.
    #[inline]
    fn make_room(&mut self, words: usize) {
        if self.words.capacity() - self.words.len() < words && self.front >= self.words.len() / 2 {
            self.words.drain(..self.front);
            self.front = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normative::Normative;
    use crate::{Item, Scalar};
    use alloc::collections::VecDeque;

    fn value(number: i64, severity: i32) -> Value {
        let mut value = Value::of(Normative::scalar(Scalar::I64).alarm().build());
        value.set("value", number).expect("it fits");
        value.set("alarm.severity", severity).expect("it fits");
        value
    }

    #[test]
    fn numbers_come_out_as_they_went_in_from_both_ends() {
        let plan = value(0, 0).plan().clone();
        let field = |path| plan.number(path).expect("it is there");
        let (whole, severity) = (field("value"), field("alarm.severity"));
        let (mut packed, mut expected) = (Packed::default(), VecDeque::new());
        let (mut out, mut overrun) = (Value::new(&plan), BitSet::new());
        let number = |value: &Value, path: &str| value.get(path).and_then(Item::as_f64);
        let (mut seed, mut most_words) = (1u64, 0);
        for step in 0..10_000i32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if seed >> 60 < 9 {
                let mut from = Value::new(&plan);
                from.set("value", i64::from(step)).expect("it fits");
                from.set("alarm.severity", 2).expect("it fits");
                let set: BitSet =
                    if seed >> 59 & 1 == 0 { BitSet::from_iter([whole]) } else { BitSet::from_iter([whole, severity]) };
                let lost: BitSet = if seed >> 58 & 1 == 0 { BitSet::new() } else { BitSet::from_iter([whole]) };
                assert!(packed.push(&from, &set, &lost));
                expected.push_back((f64::from(step), set, lost));
                most_words = most_words.max(packed.bytes() / size_of::<u64>());
                continue;
            }
            let from_front = seed >> 57 & 7 > 0;
            let Some((step, set, lost)) = (if from_front { expected.pop_front() } else { expected.pop_back() }) else {
                assert_eq!(packed.bytes(), 0);
                continue;
            };
            let before = packed.bytes();
            let bytes = if from_front {
                packed.pop_front(&mut out, &mut overrun)
            } else {
                packed.pop_back(&mut out, &mut overrun)
            };
            assert_eq!((before - packed.bytes(), number(&out, "value")), (bytes, Some(step)));
            assert_eq!((out.changed(), &overrun), (&set, &lost));
        }
        assert!(packed.words.capacity() <= 4 * most_words + 64);
    }

    #[test]
    fn what_is_no_number_is_left_to_the_caller() {
        let mut packed = Packed::default();
        let from = value(1, 2);
        let message = from.plan().number("alarm.message").expect("it is there");
        assert!(!packed.push(&from, &BitSet::from_iter([message]), &BitSet::new()) && packed.bytes() == 0);
        assert!(!packed.push(&from, &BitSet::from_iter([0]), &BitSet::new()) && packed.bytes() == 0);
        assert!(packed.push(&from, &BitSet::from_iter([1]), &BitSet::new()));
        let other = value(3, 4);
        assert!(!packed.push(&other, &BitSet::from_iter([1]), &BitSet::new()), "its plan is another one");
        let mut out = Value::new(from.plan());
        packed.pop_front(&mut out, &mut BitSet::new());
        assert_eq!(out.at(1).and_then(Item::as_f64), Some(1.0));
        assert!(packed.push(&other, &BitSet::from_iter([1]), &BitSet::new()), "nothing of the former plan waits");
    }
}
