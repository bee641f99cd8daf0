//! Parts of arrays: reading, writing and cutting them, as in the messages of [`Command::Array`](crate::wire::Command::Array).

use crate::Order;
use crate::data::Array;
use alloc::borrow::Cow;
use alloc::vec::Vec;

impl Array {
    /// Returns every `stride`th element from `offset` on, up to `count` of them, or all for 0. Nothing is copied if they lie beside each
    /// other.
    #[must_use]
    pub fn part(&self, offset: usize, count: usize, stride: usize) -> Array {
        let stride = stride.max(1);
        let there = self.length.saturating_sub(offset).div_ceil(stride);
        let count = if count == 0 { there } else { count.min(there) };
        let Some(width) = self.scalar.width() else {
            let texts = self.iter_texts().into_iter().flatten().skip(offset).step_by(stride);
            return Array::texts(texts.take(count));
        };
        if count == 0 {
            return Array::empty(self.scalar);
        }
        if stride == 1 {
            let bytes = self.bytes.slice(offset * width..(offset + count) * width);
            return Array { length: count, bytes, ..*self };
        }
        let elements = self.bytes[offset * width..].chunks_exact(width).step_by(stride).take(count);
        let mut bytes = Vec::with_capacity(count * width);
        elements.for_each(|element| bytes.extend_from_slice(element));
        Array { length: count, bytes: bytes.into(), ..*self }
    }

    /// Returns the array with other elements at every `stride`th place from `offset` on. It becomes longer where they need it; what lies
    /// between is zero or empty. `None` if it would have more than `length_max` elements, or if the elements are of another type.
    #[must_use]
    pub fn with_part(&self, offset: usize, stride: usize, elements: &Array, length_max: usize) -> Option<Array> {
        let stride = stride.max(1);
        if elements.scalar != self.scalar {
            return None;
        }
        let Some(last) = elements.length.checked_sub(1) else { return Some(self.clone()) };
        let length = last.checked_mul(stride)?.checked_add(offset)?.checked_add(1)?.max(self.length);
        let longer = self.resized(length, length_max)?;
        let Some(width) = self.scalar.width() else {
            let mut texts: Vec<&[u8]> = longer.iter_texts()?.collect();
            let places = texts.get_mut(offset..)?.iter_mut().step_by(stride);
            places.zip(elements.iter_texts()?).for_each(|(place, text)| *place = text);
            return Some(Array::texts(texts));
        };
        let from = elements.bytes_in(longer.order, width);
        let mut bytes = match longer.bytes.try_into_mut() {
            Ok(own) => own,
            Err(shared) => shared.as_ref().into(),
        };
        let places = bytes.get_mut(offset * width..)?.chunks_exact_mut(width).step_by(stride);
        places.zip(from.chunks_exact(width)).for_each(|(place, element)| place.copy_from_slice(element));
        Some(Array { bytes: bytes.freeze(), ..longer })
    }

    /// Returns the array with another number of elements; further ones are zero or empty. `None` if that is over `length_max`.
    #[must_use]
    pub fn resized(&self, length: usize, length_max: usize) -> Option<Array> {
        if length <= self.length {
            return Some(self.first(length));
        }
        if length > length_max {
            return None;
        }
        let Some(width) = self.scalar.width() else {
            let missing = core::iter::repeat_n(&[][..], length - self.length);
            return Some(Array::texts(self.iter_texts()?.chain(missing)));
        };
        let mut bytes = Vec::with_capacity(length.checked_mul(width)?);
        bytes.extend_from_slice(&self.bytes);
        bytes.resize(length * width, 0);
        Some(Array { length, bytes: bytes.into(), ..*self })
    }

    /// Returns the bytes of numbers or bools in a byte order.
    fn bytes_in(&self, order: Order, width: usize) -> Cow<'_, [u8]> {
        if self.order == order || width == 1 {
            return Cow::Borrowed(&self.bytes);
        }
        let mut bytes = self.bytes.to_vec();
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        Cow::Owned(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;

    fn numbers(array: &Array) -> Vec<i32> {
        array.iter::<i32>().expect("numbers").collect()
    }

    fn texts(array: &Array) -> Vec<&str> {
        array.iter_texts().expect("texts").map(|text| core::str::from_utf8(text).expect("ASCII")).collect()
    }

    #[test]
    fn parts_are_read() {
        let array = Array::from(alloc::vec![0, 1, 2, 3, 4, 5, 6]);
        let words = Array::texts(["a", "b", "c", "d"]);
        for (offset, count, stride, expected, expected_texts) in [
            (0, 0, 0, &[0, 1, 2, 3, 4, 5, 6][..], &["a", "b", "c", "d"][..]),
            (2, 3, 1, &[2, 3, 4], &["c", "d"]),
            (1, 0, 3, &[1, 4], &["b"]),
            (0, 2, 2, &[0, 2], &["a", "c"]),
            (6, 9, 9, &[6], &[]),
            (7, 0, 1, &[], &[]),
            (usize::MAX, usize::MAX, usize::MAX, &[], &[]),
        ] {
            assert_eq!(numbers(&array.part(offset, count, stride)), expected, "{offset} {count} {stride}");
            assert_eq!(texts(&words.part(offset, count, stride)), expected_texts);
        }
        assert_eq!(array.part(2, 3, 1).bytes().as_ptr(), array.bytes()[8..].as_ptr(), "no copy");
    }

    #[test]
    fn parts_are_written_in_any_byte_order_and_the_rest_is_zero() {
        let array = Array::from(alloc::vec![0, 1, 2, 3]);
        let other = if Order::NATIVE == Order::Little { Order::Big } else { Order::Little };
        let bytes: Vec<u8> = [7_i32, 8].into_iter().flat_map(|number| other.bytes_32(number as u32)).collect();
        let swapped = Array::from_bytes(Scalar::I32, other, bytes.into()).expect("whole elements");
        let written = |offset, stride, max| array.with_part(offset, stride, &swapped, max).map(|array| numbers(&array));
        assert_eq!(written(1, 1, 4), Some([0, 7, 8, 3].to_vec()));
        assert_eq!(written(0, 3, 4), Some([7, 1, 2, 8].to_vec()));
        assert_eq!(written(5, 2, 8), Some([0, 1, 2, 3, 0, 7, 0, 8].to_vec()));
        assert_eq!((written(5, 2, 7), written(usize::MAX, 1, 100), written(1, usize::MAX, 100)), (None, None, None));
        assert_eq!(numbers(&array), [0, 1, 2, 3], "the array that was there is shared");
        let words = Array::texts(["a", "b"]);
        let more = words.with_part(1, 2, &Array::texts(["x", "yy"]), 9).expect("it fits");
        assert_eq!(texts(&more), ["a", "x", "", "yy"]);
        assert!(array.with_part(0, 1, &words, 9).is_none());
        assert_eq!(array.with_part(9, 9, &Array::empty(Scalar::I32), 2).map(|array| array.len()), Some(4));
    }

    #[test]
    fn arrays_become_shorter_and_longer() {
        let array = Array::from(alloc::vec![1, 2]);
        assert_eq!(numbers(&array.resized(1, 0).expect("shorter")), [1]);
        assert_eq!(numbers(&array.resized(4, 4).expect("it fits")), [1, 2, 0, 0]);
        assert!(array.resized(5, 4).is_none());
        assert_eq!(texts(&Array::texts(["a"]).resized(2, 2).expect("it fits")), ["a", ""]);
    }
}
