use crate::wire::{HEADER, Header};
use alloc::vec::Vec;
use hodo_machine::{Bytes, Outbox};

/// The bytes that every operation carries: one block, shared by all messages in flight.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    block: Bytes,
}

/// A payload is cut into pieces of this size at most: it stays in a core's second-level cache.
const BLOCK: usize = 256 << 10;

impl Payload {
    pub(crate) fn new() -> Self {
        let mut word = 0x9E37_79B9u32;
        let bytes: Vec<u8> = core::iter::repeat_with(|| {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (word >> 24) as u8
        })
        .take(BLOCK)
        .collect();
        Payload { block: Bytes::from(bytes) }
    }

    /// Appends a whole message: the header, and as much payload as its length asks for.
    #[inline]
    pub(crate) fn message(&self, header: &Header, out: &mut Outbox) {
        out.copy(&header.encode());
        self.append(header.body(), HEADER, out);
    }

    /// Appends so many bytes of payload behind `before` bytes of the same message.
    #[inline]
    pub(crate) fn append(&self, mut left: usize, before: usize, out: &mut Outbox) {
        if left < 4096 {
            out.copy(&self.block[..left]);
            return;
        }
        // The offset keeps source and destination of the kernel's copies equally aligned, whatever the size.
        let mut offset = before;
        while left > 0 {
            let take = left.min(BLOCK - offset);
            out.share(self.block.slice(offset..offset + take));
            left -= take;
            offset = 0;
        }
    }
}
