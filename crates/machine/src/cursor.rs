use thiserror::Error;

/// Reads fixed-size fields off the front of received bytes.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

/// Fewer bytes were there than a field needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("truncated: {need} bytes needed, {have} there")]
pub struct Truncated {
    /// Bytes that the field needs.
    pub need: usize,
    /// Bytes that were left.
    pub have: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    /// Returns the bytes that have not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes the next `length` bytes.
    ///
    /// # Errors
    /// [`Truncated`] if fewer bytes are left.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Truncated> {
        let (front, rest) =
            self.rest.split_at_checked(length).ok_or(Truncated { need: length, have: self.rest.len() })?;
        self.rest = rest;
        Ok(front)
    }

    /// Takes the next `N` bytes as an array.
    ///
    /// # Errors
    /// [`Truncated`] if fewer bytes are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (front, rest) = self.rest.split_first_chunk::<N>().ok_or(Truncated { need: N, have: self.rest.len() })?;
        self.rest = rest;
        Ok(*front)
    }

    /// Takes the next byte.
    ///
    /// # Errors
    /// [`Truncated`] if fewer bytes are left.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Takes the next two bytes, least significant first.
    ///
    /// # Errors
    /// [`Truncated`] if fewer bytes are left.
    pub fn u16_le(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_le_bytes)
    }

    /// Takes the next four bytes, least significant first.
    ///
    /// # Errors
    /// [`Truncated`] if fewer bytes are left.
    pub fn u32_le(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_le_bytes)
    }

    /// Takes the next eight bytes, least significant first.
    ///
    /// # Errors
    /// [`Truncated`] if fewer bytes are left.
    pub fn u64_le(&mut self) -> Result<u64, Truncated> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fields_in_order_and_says_what_is_missing() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3, 0, 0, 0, 9]);
        assert_eq!(cursor.u8(), Ok(1));
        assert_eq!(cursor.u16_le(), Ok(2));
        assert_eq!(cursor.u32_le(), Ok(3));
        assert_eq!(cursor.u32_le(), Err(Truncated { need: 4, have: 1 }));
        assert_eq!(cursor.rest(), &[9]);
    }
}
