mod part;

use crate::data::{Scalar, Text};
use crate::wire::{SHARE_FROM, frozen, slack};
use crate::{Error, Limits, Order, Reader, Writer};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use bytemuck::Pod;
use bytes::BytesMut;
use core::fmt;
use hodo_machine::Bytes;

/// An array of numbers, bools or texts: shared bytes, in the order in which they came. Cheap to clone.
///
/// An array that is sent in its own byte order is not copied. One that was received is a slice of its message, or a copy of
/// it if it is short.
#[derive(Clone)]
pub struct Array {
    scalar: Scalar,
    order: Order,
    length: usize,
    bytes: Bytes,
}

/// A Rust type of an array's elements.
pub trait Element: Pod + sealed::Sealed {
    /// The type on the wire.
    const SCALAR: Scalar;
    /// Returns the value with its bytes the other way round.
    #[must_use]
    fn swapped(self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($Rust:ty, $Scalar:ident);+ $(;)?) => { $(
        impl sealed::Sealed for $Rust {}
        impl Element for $Rust {
            const SCALAR: Scalar = Scalar::$Scalar;
            #[inline]
            fn swapped(self) -> Self {
                let mut bytes = self.to_ne_bytes();
                bytes.reverse();
                <$Rust>::from_ne_bytes(bytes)
            }
        }
    )+ };
}

elements! { i8, I8; i16, I16; i32, I32; i64, I64; u8, U8; u16, U16; u32, U32; u64, U64; f32, F32; f64, F64 }

/// A vector whose bytes are an array's.
struct Owner<T>(Vec<T>);

impl<T: Pod> AsRef<[u8]> for Owner<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl<T: Element + Send> From<Vec<T>> for Array {
    /// Takes the elements over without a copy.
    fn from(elements: Vec<T>) -> Self {
        let length = elements.len();
        Array { scalar: T::SCALAR, order: Order::NATIVE, length, bytes: Bytes::from_owner(Owner(elements)) }
    }
}

impl<T: Element> From<&[T]> for Array {
    fn from(elements: &[T]) -> Self {
        let bytes = Bytes::copy_from_slice(bytemuck::cast_slice(elements));
        Array { scalar: T::SCALAR, order: Order::NATIVE, length: elements.len(), bytes }
    }
}

impl Array {
    /// Creates an array without elements.
    #[must_use]
    pub const fn empty(scalar: Scalar) -> Self {
        Array { scalar, order: Order::NATIVE, length: 0, bytes: Bytes::new() }
    }

    /// Creates an array of numbers or bools from shared bytes, in the byte order that they have. `None` if they do not make
    /// whole elements, and for texts.
    #[must_use]
    pub fn from_bytes(scalar: Scalar, order: Order, bytes: Bytes) -> Option<Self> {
        let width = scalar.width()?;
        let length = bytes.len() / width;
        bytes.len().is_multiple_of(width).then_some(Array { scalar, order, length, bytes })
    }

    /// Creates an array of bools.
    #[must_use]
    pub fn bools(elements: impl IntoIterator<Item = bool>) -> Self {
        let bytes: Vec<u8> = elements.into_iter().map(u8::from).collect();
        Array { scalar: Scalar::Bool, order: Order::NATIVE, length: bytes.len(), bytes: bytes.into() }
    }

    /// Creates an array of texts.
    #[must_use]
    pub fn texts<T: AsRef<[u8]>>(elements: impl IntoIterator<Item = T>) -> Self {
        let mut writer = Writer::new(crate::wire::Side::Client, Order::NATIVE);
        let mut length = 0;
        for element in elements {
            writer.text(element.as_ref());
            length += 1;
        }
        Array { scalar: Scalar::Text, order: Order::NATIVE, length, bytes: writer.to_vec().into() }
    }

    /// Returns the type of the elements.
    #[must_use]
    pub const fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// Returns the number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Tells whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the bytes, as they are on the wire in [`Array::order`].
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the byte order of [`Array::bytes`].
    #[must_use]
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Returns the elements as a slice of the array's own memory. `None` if they have another type or byte order, or are not
    /// aligned: [`Array::to_slice`] copies them then.
    #[must_use]
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        let is_native = self.order == Order::NATIVE || size_of::<T>() == 1;
        let is_same = self.scalar == T::SCALAR && is_native;
        is_same.then(|| bytemuck::try_cast_slice(&self.bytes).ok()).flatten()
    }

    /// Returns the elements as a slice, copied only if they have to be. `None` if they have another type.
    #[must_use]
    pub fn to_slice<T: Element>(&self) -> Option<Cow<'_, [T]>> {
        if let Some(slice) = self.as_slice() {
            return Some(Cow::Borrowed(slice));
        }
        self.iter::<T>().map(|elements| Cow::Owned(elements.collect()))
    }

    /// Iterates over the elements. `None` if they have another type.
    #[must_use]
    pub fn iter<T: Element>(&self) -> Option<Elements<'_, T>> {
        let is_swapped = self.order != Order::NATIVE;
        let chunks = self.bytes.chunks_exact(size_of::<T>());
        (self.scalar == T::SCALAR).then_some(Elements { chunks, is_swapped, of: core::marker::PhantomData })
    }

    /// Iterates over the elements of an array of bools. `None` if they have another type.
    pub fn iter_bools(&self) -> Option<impl ExactSizeIterator<Item = bool> + '_> {
        (self.scalar == Scalar::Bool).then(|| self.bytes.iter().map(|byte| *byte != 0))
    }

    /// Iterates over the elements of an array of texts. `None` if they have another type.
    #[must_use]
    pub fn iter_texts(&self) -> Option<Texts<'_>> {
        (self.scalar == Scalar::Text).then_some(Texts { rest: &self.bytes, order: self.order, left: self.length })
    }

    /// Reads the elements in place of those that are there, into their memory if nobody shares it.
    #[inline]
    pub(crate) fn decode(&mut self, fixed: Option<u64>, reader: &mut Reader<'_>) -> Result<(), Error> {
        let least = self.scalar.least_width();
        let length = match fixed {
            None => reader.count(least)?,
            Some(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let (need, have) = (length.saturating_mul(least), reader.rest().len());
                if need > have {
                    return Err(Error::Truncated { need, have });
                }
                length
            }
        };
        let size = match self.scalar.width() {
            Some(width) => length * width,
            None => texts_size(length, reader)?,
        };
        self.bytes = match reader.share(size)? {
            Some(shared) => {
                reader.give_back(core::mem::take(&mut self.bytes));
                shared
            }
            None => replaced(core::mem::take(&mut self.bytes), reader.bytes(size)?),
        };
        (self.length, self.order) = (length, reader.order());
        Ok(())
    }

    /// Writes the elements, and their number if it is not `fixed`. Of a fixed number those that lack are zero or empty.
    #[inline]
    pub(crate) fn encode(&self, fixed: Option<u64>, writer: &mut Writer) {
        match fixed {
            None => {
                writer.size(self.length as u64);
                self.encode_elements(writer);
            }
            Some(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                self.first(length).encode_elements(writer);
                for _ in self.length.min(length)..length {
                    writer.bytes(&[0; 8][..self.scalar.least_width()]);
                }
            }
        }
    }

    fn encode_elements(&self, writer: &mut Writer) {
        if self.order == writer.order() || self.scalar.width() == Some(1) {
            if self.bytes.len() >= SHARE_FROM {
                writer.share(self.bytes.clone());
            } else {
                writer.bytes(&self.bytes);
            }
            return;
        }
        match self.scalar.width() {
            Some(2) => write_swapped::<2>(&self.bytes, writer),
            Some(4) => write_swapped::<4>(&self.bytes, writer),
            Some(_) => write_swapped::<8>(&self.bytes, writer),
            None => self.iter_texts().into_iter().flatten().for_each(|text| writer.text(text)),
        }
    }

    /// Returns the first elements, or all if there are fewer.
    #[must_use]
    pub fn first(&self, length: usize) -> Array {
        if length >= self.length {
            return self.clone();
        }
        let size = match self.scalar.width() {
            Some(width) => length * width,
            None => {
                let mut reader = Reader::new(&self.bytes, self.order, &Limits::DEFAULT);
                (0..length).for_each(|_| _ = reader.text());
                self.bytes.len() - reader.rest().len()
            }
        };
        Array { length, bytes: self.bytes.slice(..size), ..*self }
    }
}

/// Returns the bytes that so many texts take.
fn texts_size(length: usize, reader: &Reader<'_>) -> Result<usize, Error> {
    let mut ahead = reader.clone();
    for _ in 0..length {
        ahead.text()?;
    }
    Ok(reader.rest().len() - ahead.rest().len())
}

/// Returns a copy of `bytes`, in the memory of `old` if nobody shares it and it is not much larger.
fn replaced(old: Bytes, bytes: &[u8]) -> Bytes {
    match old.try_into_mut() {
        Ok(mut memory) if (bytes.len()..=2 * bytes.len() + SHARE_FROM).contains(&memory.capacity()) => {
            memory.clear();
            memory.extend_from_slice(bytes);
            frozen(memory)
        }
        _ if bytes.len() < SHARE_FROM => Bytes::copy_from_slice(bytes),
        _ => {
            let mut memory = BytesMut::with_capacity(bytes.len() + slack(bytes.len()));
            memory.extend_from_slice(bytes);
            frozen(memory)
        }
    }
}

fn write_swapped<const WIDTH: usize>(bytes: &[u8], writer: &mut Writer) {
    let mut swapped = [0; 512];
    for run in bytes.chunks(512) {
        let into = &mut swapped[..run.len()];
        for (to, from) in into.chunks_exact_mut(WIDTH).zip(run.chunks_exact(WIDTH)) {
            to.copy_from_slice(from);
            to.reverse();
        }
        writer.bytes(into);
    }
}

/// The elements of an array of numbers.
#[derive(Debug, Clone)]
pub struct Elements<'a, T> {
    chunks: core::slice::ChunksExact<'a, u8>,
    is_swapped: bool,
    of: core::marker::PhantomData<T>,
}

impl<T: Element> Iterator for Elements<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let element: T = bytemuck::pod_read_unaligned(self.chunks.next()?);
        Some(if self.is_swapped { element.swapped() } else { element })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.chunks.size_hint()
    }
}

impl<T: Element> ExactSizeIterator for Elements<'_, T> {}

/// The elements of an array of texts.
#[derive(Debug, Clone)]
pub struct Texts<'a> {
    rest: &'a [u8],
    order: Order,
    left: usize,
}

impl<'a> Iterator for Texts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let mut reader = Reader::new(self.rest, self.order, &Limits::DEFAULT);
        let text = reader.text().ok()?;
        self.rest = reader.rest();
        Some(text)
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Self) -> bool {
        if (self.scalar, self.length) != (other.scalar, other.length) {
            return false;
        }
        let width = self.scalar.width();
        if self.order == other.order && width.is_some() || width == Some(1) {
            return self.bytes == other.bytes;
        }
        match width {
            None => self.iter_texts().into_iter().flatten().eq(other.iter_texts().into_iter().flatten()),
            Some(width) => {
                let others = other.bytes.chunks_exact(width);
                self.bytes.chunks_exact(width).zip(others).all(|(one, other)| one.iter().eq(other.iter().rev()))
            }
        }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Elements that are shown.
        const SHOWN: usize = 16;
        let mut list = f.debug_list();
        macro_rules! show {
            ($($Scalar:ident $Rust:ty),+) => {
                match self.scalar {
                    Scalar::Bool => list.entries(self.iter_bools().into_iter().flatten().take(SHOWN)),
                    Scalar::Text => list.entries(self.iter_texts().into_iter().flatten().take(SHOWN).map(Text::from)),
                    $(Scalar::$Scalar => list.entries(self.iter::<$Rust>().into_iter().flatten().take(SHOWN)),)+
                }
            };
        }
        show!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64);
        if self.length > SHOWN { list.finish_non_exhaustive() } else { list.finish() }
    }
}

#[cfg(test)]
mod tests;
