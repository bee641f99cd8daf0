use crate::data::encoding::decode_word;
use crate::data::{BitSet, Plan, Scalar, Step, Value};
use crate::{Limits, Order, Reader};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// Updates of numbers, first in, first out, in one piece of memory: hundreds of queues of small updates stay in the processor's cache,
/// where whole values would not.
///
/// Each waits as it stands in a message of little byte order, so that it is copied in and out where its set of fields is that of the
/// update before it:
///
/// | bytes | content |
/// |---|---|
/// | 1 | the length of the three that follow |
/// | 1 to 9 | the changed fields |
/// | as its types say | their numbers |
/// | 1 | no overrun: 0 |
/// | 1 | the length again, by which the last update is found |
#[derive(Debug, Default)]
pub(crate) struct Packed {
    plan: Option<Arc<Plan>>,
    bytes: Vec<u8>,
    /// Place of the first update.
    front: usize,
    /// How the last ones looked that came in, and that were taken out.
    into: Form,
    out: Form,
}

/// How updates of one set of fields look.
#[derive(Debug, Default)]
struct Form {
    fields: u64,
    /// Bytes of the whole; 0 if this is no form.
    length: usize,
    /// The set of fields, with its length before it.
    head: [u8; 9],
    head_length: usize,
    /// Place and type of each number.
    numbers: Vec<(usize, Scalar)>,
}

impl Packed {
    /// The most bytes of an update.
    pub(crate) const LONGEST: usize = u8::MAX as usize + 2;

    /// Returns the plan of the values.
    pub(crate) const fn plan(&self) -> Option<&Arc<Plan>> {
        self.plan.as_ref()
    }

    /// Returns the bytes of all updates.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes.len() - self.front
    }

    /// Puts a set of fields of a value behind the others. Returns `false`, and changes nothing, if some field is no number, if they are
    /// too many, or if the others are of another plan.
    #[inline]
    pub(crate) fn push(&mut self, from: &Value, set: &BitSet) -> bool {
        let plan = from.plan();
        let ([fields] | [fields, ..]) = set.words() else { return false };
        if !self.is_of(plan) {
            if self.bytes() > 0 {
                return false;
            }
            self.plan = Some(plan.clone());
            (self.into.length, self.out.length) = (0, 0);
        }
        if (self.into.length == 0 || self.into.fields != *fields) && !self.into.compile(plan, *fields) {
            return false;
        }
        self.make_room(self.into.length + 2);
        let Packed { bytes, into: form, .. } = self;
        bytes.push(form.length as u8);
        bytes.extend_from_slice(&form.head[..form.head_length]);
        for (place, scalar) in &form.numbers {
            let word = from.words[*place];
            match scalar.width() {
                Some(8) => bytes.extend_from_slice(&word.to_le_bytes()),
                Some(4) => bytes.extend_from_slice(&(word as u32).to_le_bytes()),
                Some(2) => bytes.extend_from_slice(&(word as u16).to_le_bytes()),
                _ => bytes.push(word as u8),
            }
        }
        bytes.extend_from_slice(&[0, form.length as u8]);
        true
    }

    /// Puts the content of a message of little byte order behind the others, if it looks as the last update did. Returns `false`, and
    /// changes nothing, if it does not.
    #[inline]
    pub(crate) fn push_same(&mut self, plan: &Arc<Plan>, content: &[u8]) -> bool {
        if !self.into.fits(content) || content.last() != Some(&0) || !self.is_of(plan) {
            return false;
        }
        self.make_room(content.len() + 2);
        self.bytes.push(content.len() as u8);
        self.bytes.extend_from_slice(content);
        self.bytes.push(content.len() as u8);
        true
    }

    /// Returns the content of a message of little byte order with the first update.
    #[inline]
    pub(crate) fn first(&self) -> &[u8] {
        let Some((length, rest)) = self.bytes[self.front..].split_first() else { return &[] };
        &rest[..usize::from(*length)]
    }

    /// Drops the first update, and returns its bytes.
    #[inline]
    pub(crate) fn drop_first(&mut self) -> usize {
        let bytes = self.first().len() + 2;
        self.front += bytes;
        if self.front >= self.bytes.len() {
            self.bytes.clear();
            self.front = 0;
        }
        bytes
    }

    /// Takes the first update over into a value of the same plan, and returns its bytes.
    #[inline]
    pub(crate) fn pop_front(&mut self, into: &mut Value) -> usize {
        let start = self.front + 1;
        self.unpack(start..start + self.first().len(), into);
        self.drop_first()
    }

    /// Takes the last update over into a value of the same plan, and returns its bytes.
    pub(crate) fn pop_back(&mut self, into: &mut Value) -> usize {
        let Some(length) = self.bytes.last().map(|length| usize::from(*length)) else { return 0 };
        let start = self.bytes.len() - 2 - length;
        self.unpack(start + 1..start + 1 + length, into);
        self.bytes.truncate(start);
        length + 2
    }

    /// Copies the update that stands here.
    #[inline]
    fn unpack(&mut self, place: Range<usize>, into: &mut Value) {
        let content = &self.bytes[place];
        let Value { plan, words, changed, .. } = into;
        let form = &mut self.out;
        if !form.fits(content) {
            let head = usize::from(content[0]);
            let mut fields = [0; 8];
            fields[..head].copy_from_slice(&content[1..=head]);
            form.compile(plan, u64::from_le_bytes(fields));
        }
        changed.assign_words(&[form.fields]);
        let mut reader = Reader::new(&content[form.head_length..], Order::Little, &Limits::DEFAULT);
        for (place, scalar) in &form.numbers {
            words[*place] = decode_word(*scalar, &mut reader).unwrap_or_default();
        }
    }

    #[inline]
    fn is_of(&self, plan: &Arc<Plan>) -> bool {
        self.plan.as_ref().is_some_and(|known| Arc::ptr_eq(known, plan))
    }

    /// Moves the updates to the front of the memory where so many bytes would not fit behind them, and they take no more than half of it.
    #[inline]
    fn make_room(&mut self, bytes: usize) {
        if self.bytes.capacity() - self.bytes.len() < bytes && self.front >= self.bytes.len() / 2 {
            self.bytes.drain(..self.front);
            self.front = 0;
        }
    }
}

impl Form {
    /// Tells whether this is the form of the content of a message.
    #[inline]
    fn fits(&self, content: &[u8]) -> bool {
        let length = self.head_length;
        content.len() == self.length && content.iter().zip(&self.head).take(length).all(|(one, other)| one == other)
    }

    /// Sets this to the form of updates of these fields. Returns `false` if they have none.
    #[cold]
    fn compile(&mut self, plan: &Plan, fields: u64) -> bool {
        self.length = 0;
        self.numbers.clear();
        if plan.len() > 64 {
            return false;
        }
        let (mut at, mut bytes) = (0, 0);
        let behind = |at: usize| fields & u64::MAX.checked_shl(at as u32).unwrap_or(0);
        while behind(at) != 0 {
            let number = behind(at).trailing_zeros() as usize;
            for leaf in plan.leaves_of(number) {
                let Step::Word(scalar) = leaf.step else { return false };
                self.numbers.push((leaf.place as usize, scalar));
                bytes += scalar.width().unwrap_or(1);
            }
            at = plan.end(number);
        }
        let used = 8 - fields.leading_zeros() as usize / 8;
        self.head = [0; 9];
        self.head[0] = used as u8;
        self.head[1..].copy_from_slice(&fields.to_le_bytes());
        (self.fields, self.head_length) = (fields, used + 1);
        let length = self.head_length + bytes + 1;
        let is_small = length <= usize::from(u8::MAX);
        if is_small {
            self.length = length;
        }
        is_small
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normative::Normative;
    use crate::{Item, Scalar, Type};
    use alloc::collections::VecDeque;
    use alloc::string::String;

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
        let mut out = Value::new(&plan);
        let number = |value: &Value, path: &str| value.get(path).and_then(Item::as_f64);
        let (mut seed, mut most_bytes) = (1u64, 0);
        for step in 0..10_000i32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if seed >> 60 < 9 {
                let mut from = Value::new(&plan);
                from.set("value", i64::from(-step)).expect("it fits");
                from.set("alarm.severity", -2).expect("it fits");
                let set: BitSet =
                    if seed >> 59 & 1 == 0 { BitSet::from_iter([whole]) } else { BitSet::from_iter([whole, severity]) };
                assert!(packed.push(&from, &set));
                if seed >> 58 & 1 == 0 {
                    // The same once more, as it would come in a message.
                    let length = usize::from(*packed.bytes.last().expect("a length"));
                    let content = packed.bytes[packed.bytes.len() - 1 - length..][..length].to_vec();
                    assert!(packed.push_same(&plan, &content));
                    expected.push_back((f64::from(-step), set.clone()));
                }
                expected.push_back((f64::from(-step), set));
                most_bytes = most_bytes.max(packed.bytes());
                continue;
            }
            let from_front = seed >> 57 & 7 > 0;
            let Some((step, set)) = (if from_front { expected.pop_front() } else { expected.pop_back() }) else {
                assert_eq!(packed.bytes(), 0);
                continue;
            };
            let before = packed.bytes();
            let bytes = if from_front { packed.pop_front(&mut out) } else { packed.pop_back(&mut out) };
            assert_eq!((before - packed.bytes(), number(&out, "value")), (bytes, Some(step)));
            if set.has(severity) {
                assert_eq!(number(&out, "alarm.severity"), Some(-2.0));
            }
            assert_eq!(out.changed(), &set);
        }
        assert!(packed.bytes.capacity() <= 4 * most_bytes + 64);
    }

    #[test]
    fn every_kind_of_number_is_kept() {
        let all = [Scalar::Bool, Scalar::I8, Scalar::U8, Scalar::I16, Scalar::U16, Scalar::I32, Scalar::U32];
        for scalar in all.into_iter().chain([Scalar::I64, Scalar::U64, Scalar::F32, Scalar::F64]) {
            let mut from = Value::of(Normative::scalar(scalar).build());
            from.set("value", 1).or_else(|_| from.set("value", true)).expect("it fits");
            let (mut packed, mut out) = (Packed::default(), Value::new(from.plan()));
            assert!(packed.push(&from, &BitSet::from_iter([1])), "{scalar:?}");
            let content = packed.first().to_vec();
            assert_eq!(
                (content.len(), &content[..2]),
                (3 + scalar.width().expect("a number"), &[1, 2][..]),
                "{scalar:?}"
            );
            packed.pop_front(&mut out);
            assert_eq!(out.at(1), from.at(1), "{scalar:?}");
        }
    }

    #[test]
    fn only_what_looks_as_before_is_copied() {
        let mut packed = Packed::default();
        let from = value(5, 0);
        let plan = from.plan().clone();
        assert!(!packed.push_same(&plan, &[1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "nothing was before");
        assert!(packed.push(&from, &BitSet::from_iter([1])));
        let good = packed.first().to_vec();
        assert!(packed.push_same(&plan, &good));
        let changed = |at: usize, to: u8| {
            let mut other = good.clone();
            other[at] = to;
            other
        };
        let longer = [&good[..], &[0]].concat();
        for other in
            [&good[1..], &good[..good.len() - 1], &longer, &changed(0, 2), &changed(1, 4), &changed(10, 1), &[]]
        {
            assert!(!packed.push_same(&plan, other), "{other:?}");
        }
        assert!(!packed.push_same(value(1, 2).plan(), &good), "its plan is another one");
        assert_eq!(packed.bytes(), 2 * (good.len() + 2));
    }

    #[test]
    fn what_is_no_number_is_left_to_the_caller() {
        let mut packed = Packed::default();
        let from = value(1, 2);
        let message = from.plan().number("alarm.message").expect("it is there");
        assert!(!packed.push(&from, &BitSet::from_iter([message])) && packed.bytes() == 0);
        assert!(!packed.push(&from, &BitSet::from_iter([0])) && packed.bytes() == 0);
        assert!(packed.push(&from, &BitSet::from_iter([1])));
        let other = value(3, 4);
        assert!(!packed.push(&other, &BitSet::from_iter([1])), "its plan is another one");
        let mut out = Value::new(from.plan());
        packed.pop_front(&mut out);
        assert_eq!(out.at(1).and_then(Item::as_f64), Some(1.0));
        assert!(packed.push(&other, &BitSet::from_iter([1])), "nothing of the former plan waits");
    }

    #[test]
    fn more_numbers_than_a_length_counts_are_left_to_the_caller() {
        let of = |fields: usize| {
            let names: Vec<String> = (0..fields).map(|number| alloc::format!("n{number}")).collect();
            Value::of(Type::structure("", names.iter().map(|name| (&**name, Type::Scalar(Scalar::F64)))))
        };
        for (fields, fits) in [(31, true), (32, false), (63, false), (64, false), (200, false)] {
            let mut packed = Packed::default();
            assert_eq!(packed.push(&of(fields), &BitSet::from_iter([0])), fits, "{fields}");
        }
        let mut packed = Packed::default();
        assert!(packed.push(&of(63), &BitSet::from_iter([63])));
        let mut out = Value::new(packed.plan().expect("it is known"));
        packed.pop_front(&mut out);
        assert_eq!(out.changed(), &BitSet::from_iter([63]));
    }
}
