use super::{HEADER, Header, Kind, TEXT_MAX};
use crate::Error;
use alloc::vec::Vec;
use core::ops::Range;
use hodo_machine::Cursor;

/// The parts of a fragment over datagrams that a builder lacks: HERE if there are none, else LACKS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacks {
    /// The run of the event.
    pub run: u32,
    /// Which event.
    pub event: u64,
    /// The first of the parts that have not come, ascending.
    pub parts: Vec<Range<u32>>,
}

impl Lacks {
    /// Parts that are told at once.
    pub const PARTS_MAX: usize = (TEXT_MAX as usize - 4) / 8;

    /// Creates the message that nothing is lacking.
    #[must_use]
    pub const fn here(run: u32, event: u64) -> Self {
        Lacks { run, event, parts: Vec::new() }
    }

    /// Reads what is behind the header of either.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the body ends inside a part.
    pub fn decode(event: u64, body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let run = cursor.u32_le().map_err(|_| Error::Truncated)?;
        let mut parts = Vec::new();
        while let (Ok(start), Ok(end)) = (cursor.u32_le(), cursor.u32_le()) {
            parts.push(start..end.max(start));
        }
        Ok(Lacks { run, event, parts })
    }

    /// Encodes the whole message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let kind = if self.parts.is_empty() { Kind::Here } else { Kind::Lacks };
        let parts = self.parts.iter().take(Self::PARTS_MAX);
        let length = 4 + 8 * parts.len();
        let mut bytes = Vec::with_capacity(HEADER + length);
        bytes.extend_from_slice(&Header::new(kind, length as u32, self.event).encode());
        bytes.extend_from_slice(&self.run.to_le_bytes());
        for part in parts {
            bytes.extend_from_slice(&part.start.to_le_bytes());
            bytes.extend_from_slice(&part.end.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Bytes worked out by hand from the table of the wire.
    #[test]
    fn literal_bytes() {
        let lacks = Lacks { run: 3, event: 7, parts: vec![1400..2800, 4200..4300] };
        let bytes = [
            &[20, 0, 0, 0xF0, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0][..],
            &[0x78, 5, 0, 0, 0xF0, 10, 0, 0, 0x68, 0x10, 0, 0, 0xCC, 0x10, 0, 0],
        ];
        assert_eq!(lacks.encode(), bytes.concat());
        assert_eq!(Lacks::decode(7, &bytes.concat()[HEADER..]), Ok(lacks));
        assert_eq!(Lacks::here(3, 7).encode(), [4, 0, 0, 0xE0, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        let many = Lacks { run: 1, event: 1, parts: (0..100).map(|part| part..part + 1).collect() };
        assert_eq!(many.encode().len(), HEADER + 4 + 8 * 31);
        assert_eq!(Lacks::decode(1, b"abc"), Err(Error::Truncated));
    }
}
