use crate::Error;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};

/// Buffers that are kept at most.
const KEPT_MAX: usize = 256;
/// Larger buffers are not kept: one such event should not hold its memory for ever.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The first room for the data behind a token; it is doubled as bytes come.
const FIRST_BYTES: usize = 64 << 10;

/// Memory for the payloads of events, used again when its event has its verdict, and for data that is arriving.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Vec<BytesMut>,
    /// The room for the data behind tokens that is arriving, of all peers together, and the bound on it.
    arriving: u64,
    arriving_max: u64,
}

impl Default for Pool {
    /// Creates a pool without a bound on what is arriving.
    fn default() -> Self {
        Pool { free: Vec::new(), arriving: 0, arriving_max: u64::MAX }
    }
}

impl Pool {
    /// Creates a pool with a bound on the data behind tokens that is arriving.
    pub(crate) fn with_arriving(arriving_max: u64) -> Self {
        Pool { arriving_max, ..Pool::default() }
    }

    /// Gives data that is arriving its first room, or twice as much as it has.
    ///
    /// # Errors
    /// [`Error::OverData`] if all peers together would have more than the bound.
    pub(crate) fn extend(&mut self, buffer: &mut BytesMut, length: usize) -> Result<(), Error> {
        let room = (2 * buffer.len()).max(FIRST_BYTES).min(length);
        let arriving = self.arriving + (room - buffer.len()) as u64;
        if arriving > self.arriving_max {
            return Err(Error::OverData { max: self.arriving_max });
        }
        self.arriving = arriving;
        if buffer.is_empty() {
            *buffer = self.take(room);
        } else {
            buffer.resize(room, 0);
        }
        Ok(())
    }

    /// Notes that so many bytes of room are arriving no more.
    pub(crate) fn arrived(&mut self, room: usize) {
        self.arriving -= room as u64;
    }

    /// Returns a buffer of this length, with any content.
    pub(crate) fn take(&mut self, length: usize) -> BytesMut {
        match self.free.pop() {
            Some(mut buffer) if buffer.capacity() >= length => {
                buffer.resize(length, 0);
                buffer
            }
            _ => BytesMut::zeroed(length),
        }
    }

    /// Takes a payload back, where nobody else has a share of it.
    pub(crate) fn give(&mut self, payload: Bytes) {
        if self.free.len() < KEPT_MAX
            && !payload.is_empty()
            && let Ok(buffer) = payload.try_into_mut()
            && buffer.capacity() <= KEPT_BYTES_MAX
        {
            self.free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_same_memory_again() {
        let mut pool = Pool::default();
        let first = pool.take(5000);
        let at = first.as_ptr();
        pool.give(first.freeze());
        let again = pool.take(4000);
        assert_eq!((again.as_ptr(), again.len()), (at, 4000));
        let shared = again.freeze();
        pool.give(shared.clone());
        assert_ne!(pool.take(4000).as_ptr(), shared.as_ptr());
    }
}
