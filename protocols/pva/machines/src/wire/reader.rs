use crate::{Error, Limits, Order};
use bytes::BytesMut;
use hodo_machine::{Bytes, Cursor, Truncated};

/// Arrays of at least this many bytes are shared out of a message that is itself shared; smaller ones are copied, so that they
/// do not keep the message in memory.
pub(crate) const SHARE_FROM: usize = 4096;

/// Returns the room behind a long array of so many bytes, or behind its message.
///
/// The memory of a message comes back as that of its array, which begins behind the front of the message. With this room the next message
/// of the same length fits behind that place again and again, and not only at the front of the memory, which then has to be cleared.
pub(crate) const fn slack(bytes: usize) -> usize {
    if bytes / 16 < SHARE_FROM { bytes / 16 } else { SHARE_FROM }
}

/// Returns shared memory that can be taken back and frozen again without an allocation: once it was split, its users are counted in one
/// place for ever.
pub(crate) fn frozen(mut memory: BytesMut) -> Bytes {
    drop(memory.split_off(memory.len()));
    memory.freeze()
}

/// Reads the payload of one message.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    cursor: Cursor<'a>,
    order: Order,
    whole: Option<&'a Bytes>,
    limits: &'a Limits,
    left: usize,
    fields_left: usize,
    left_over: LeftOver,
}

/// The remains of a message that the next one can use: see [`Inbound::recycle`](crate::wire::Inbound::recycle).
#[derive(Debug, Clone, Default)]
pub struct LeftOver {
    /// The place in the payload of the first array that was shared out of it.
    pub(crate) first_share: Option<usize>,
    /// The memory of an array that was replaced.
    pub(crate) memory: Option<Bytes>,
}

impl<'a> Reader<'a> {
    /// Starts at the front of a payload.
    #[must_use]
    pub const fn new(bytes: &'a [u8], order: Order, limits: &'a Limits) -> Self {
        Reader {
            cursor: Cursor::new(bytes),
            order,
            whole: None,
            limits,
            left: limits.value_bytes,
            fields_left: limits.fields.saturating_add(bytes.len()),
            left_over: LeftOver { first_share: None, memory: None },
        }
    }

    /// Starts at the front of a payload that long arrays are shared out of, instead of being copied.
    #[must_use]
    pub fn shared(bytes: &'a Bytes, order: Order, limits: &'a Limits) -> Self {
        Reader { whole: Some(bytes), ..Reader::new(bytes, order, limits) }
    }

    /// Returns the byte order of the message.
    #[must_use]
    #[inline]
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Returns the bounds that this reader keeps.
    #[must_use]
    pub const fn limits(&self) -> &'a Limits {
        self.limits
    }

    /// Returns the bytes that have not been read.
    #[must_use]
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    /// Hands over what the reading leaves for the next message, if it does.
    #[inline]
    pub fn leave(self, left_over: &mut LeftOver) {
        if self.left_over.first_share.is_some() {
            *left_over = self.left_over;
        }
    }

    /// Takes the memory of an array that was replaced by a part of this message.
    #[inline]
    pub(crate) fn give_back(&mut self, memory: Bytes) {
        let known = self.left_over.memory.as_ref().map_or(SHARE_FROM, Bytes::len);
        if memory.len() >= known {
            self.left_over.memory = Some(memory);
        }
    }

    /// Takes the next `length` bytes.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Error> {
        Ok(self.cursor.bytes(length)?)
    }

    /// Takes the next `N` bytes as an array.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        Ok(self.cursor.array()?)
    }

    /// Takes the next byte.
    ///
    /// # Errors
    /// [`Error::Truncated`] if no byte is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.cursor.u8()?)
    }

    /// Takes the next two bytes.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(|bytes| self.order.u16(bytes))
    }

    /// Takes the next four bytes.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(|bytes| self.order.u32(bytes))
    }

    /// Takes the next eight bytes.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(|bytes| self.order.u64(bytes))
    }

    /// Takes a size: one byte, or five, or thirteen. `None` is the null size.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn size(&mut self) -> Result<Option<u64>, Error> {
        match self.u8()? {
            0xFF => Ok(None),
            0xFE => match self.u32()? {
                0x7FFF_FFFF => self.u64().map(Some),
                size => Ok(Some(size.into())),
            },
            size => Ok(Some(size.into())),
        }
    }

    /// Takes a count of things that take at least `bytes_each` bytes each, which are all there. Null counts as none.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left than the things need.
    #[inline]
    pub fn count(&mut self, bytes_each: usize) -> Result<usize, Error> {
        let count = usize::try_from(self.size()?.unwrap_or(0)).unwrap_or(usize::MAX);
        let need = count.saturating_mul(bytes_each);
        let have = self.rest().len();
        if need > have { Err(Truncated { need, have }.into()) } else { Ok(count) }
    }

    /// Takes a text's bytes. A null text is empty.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn text(&mut self) -> Result<&'a [u8], Error> {
        let length = self.count(1)?;
        self.bytes(length)
    }

    /// Takes the next `length` bytes as a slice of the shared message. `None`, and nothing taken, if they are few, or the
    /// message is not shared.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn share(&mut self, length: usize) -> Result<Option<Bytes>, Error> {
        let Some(whole) = self.whole.filter(|_| length >= SHARE_FROM) else { return Ok(None) };
        let at = whole.len() - self.rest().len();
        self.bytes(length)?;
        self.left_over.first_share.get_or_insert(at);
        Ok(Some(whole.slice(at..at + length)))
    }

    /// Notes that the values being read take so much memory beside the message.
    ///
    /// # Errors
    /// [`Error::OverLimit`] if that is over the bound for one message.
    #[inline]
    pub fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        let max = self.limits.value_bytes;
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                let count = (max - self.left).saturating_add(bytes) as u64;
                Err(Error::OverLimit { what: "bytes of memory for the values of a message", count, max: max as u64 })
            }
        }
    }

    /// Notes that a type of so many fields is being compiled. A message may have as many fields compiled as one type may have, and
    /// one more for each of its bytes: a few bytes could otherwise name a large remembered type again and again.
    pub(crate) fn charge_fields(&mut self, count: usize) -> Result<(), Error> {
        let max = self.limits.fields;
        self.fields_left = self.fields_left.checked_sub(count).ok_or(Error::OverLimit {
            what: "fields of the types of a message",
            count: count as u64,
            max: max as u64,
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_forms_and_null() {
        let limits = Limits::default();
        let bytes = [0xFD, 0xFF, 0xFE, 0, 1, 0, 0, 0xFE, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0];
        let mut reader = Reader::new(&bytes, Order::Big, &limits);
        let sizes = core::array::from_fn(|_| reader.size());
        assert_eq!(sizes, [Ok(Some(0xFD)), Ok(None), Ok(Some(0x1_0000)), Ok(Some(1 << 32))]);
        assert_eq!(reader.size(), Err(Error::Truncated { need: 1, have: 0 }));
    }

    #[test]
    fn a_count_of_more_than_is_there_is_refused_before_anything_is_taken_for_it() {
        let limits = Limits::default();
        let bytes = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3];
        let refused = Reader::new(&bytes, Order::Little, &limits).count(8);
        assert_eq!(refused, Err(Error::Truncated { need: 0xFFFF_FFFF * 8, have: 3 }));
    }

    #[test]
    fn memory_for_values_has_a_bound() {
        let limits = Limits { value_bytes: 100, ..Limits::default() };
        let mut reader = Reader::new(&[], Order::Little, &limits);
        assert_eq!(reader.charge(60), Ok(()));
        assert!(matches!(reader.charge(41), Err(Error::OverLimit { count: 101, max: 100, .. })));
    }

    #[test]
    fn long_arrays_are_slices_of_a_shared_message() {
        let limits = Limits::default();
        let whole = Bytes::from(alloc::vec![7; SHARE_FROM + 20]);
        let mut reader = Reader::shared(&whole, Order::Little, &limits);
        assert_eq!(reader.share(10), Ok(None));
        reader.bytes(10).expect("they are there");
        let slice = reader.share(SHARE_FROM).expect("it is there").expect("it is long");
        assert_eq!(slice.as_ptr(), whole[10..].as_ptr());
        let mut left_over = LeftOver::default();
        assert_eq!(reader.rest().len(), 10);
        reader.leave(&mut left_over);
        assert_eq!(left_over.first_share, Some(10));
    }
}
