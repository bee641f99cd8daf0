use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};

/// Buffers that are kept at most.
const KEPT_MAX: usize = 256;
/// Larger buffers are not kept: one such event should not hold its memory for ever.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Memory for the payloads of events, used again when its event has its verdict.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Vec<BytesMut>,
}

impl Pool {
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
