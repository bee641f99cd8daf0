use super::{Order, WORD, Words};
use crate::Error;
use hodo_machine::Cursor;

/// Reads words of one byte order off the front of received bytes.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    cursor: Cursor<'a>,
    order: Order,
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], order: Order) -> Self {
        Reader { cursor: Cursor::new(bytes), order }
    }

    /// Takes the next word.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn word(&mut self) -> Result<u32, Error> {
        Ok(self.order.u32(self.cursor.array()?))
    }

    /// Takes the next words, as they are.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn words(&mut self, count: usize) -> Result<Words<'a>, Error> {
        Ok(Words::new(self.cursor.bytes(count * WORD)?, self.order))
    }

    /// Takes the next bytes, whole words or not.
    ///
    /// # Errors
    /// [`Error::Truncated`] if fewer bytes are left.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        Ok(self.cursor.bytes(count)?)
    }

    /// Returns the bytes that have not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    /// Takes the next of several items, until nothing is left, or one cannot be read: nobody knows where another
    /// begins.
    #[inline]
    pub(super) fn next_item<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        if self.rest().is_empty() {
            return None;
        }
        let item = read(self);
        if item.is_err() {
            self.cursor = Cursor::new(&[]);
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_says_what_is_missing() {
        let mut reader = Reader::new(&[0x12, 0x34, 0x56, 0x78, 0, 0, 0, 1, 0xFF], Order::Big);
        assert_eq!(reader.word(), Ok(0x1234_5678));
        assert_eq!(reader.words(2), Err(Error::Truncated { need: 8, have: 5 }));
        assert_eq!(reader.words(1).map(|words| words.at(0)), Ok(Some(1)));
        assert_eq!(reader.word(), Err(Error::Truncated { need: 4, have: 1 }));
    }
}
