use crate::wire::{CHECKSUM, Header};
use alloc::vec::Vec;
use crc32fast::Hasher;
use hodo_machine::{Bytes, Outbox};

/// The bytes that operations carry, shared by all messages in flight: one block again and again, or the application's own bytes one
/// after the other.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    block: Bytes,
    /// Where the next operation's bytes begin; `None`: all carry the same.
    next: Option<usize>,
}

/// A payload is cut into pieces of this size at most: it stays in a core's second-level cache.
const BLOCK: usize = 256 << 10;
/// A payload below this size is copied.
const SHARED_FROM: usize = 4096;

impl Payload {
    pub(crate) fn new() -> Self {
        let mut word = 0x9E37_79B9u32;
        let bytes: Vec<u8> = core::iter::repeat_with(|| {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (word >> 24) as u8
        })
        .take(BLOCK)
        .collect();
        Payload { block: Bytes::from(bytes), next: None }
    }

    /// Creates the payload of an application; without a byte it is as [`Payload::new`].
    pub(crate) fn of(bytes: Bytes) -> Self {
        if bytes.is_empty() { Payload::new() } else { Payload { block: bytes, next: Some(0) } }
    }

    /// Appends a whole message: the header, and as much payload as its length asks for.
    #[inline]
    pub(crate) fn message(&mut self, header: &Header, is_checked: bool, out: &mut Outbox) {
        self.behind(&header.encode(), header.body(), is_checked, out);
    }

    /// Appends a message of these first bytes and as much payload, whose end is a checksum if it `is_checked`.
    #[inline]
    pub(crate) fn behind(&mut self, first: &[u8], payload: usize, is_checked: bool, out: &mut Outbox) {
        out.copy(first);
        if is_checked && payload >= CHECKSUM {
            self.checked(first, payload - CHECKSUM, out);
        } else {
            self.append(payload, first.len(), |block, range| push(block, range, payload, out));
        }
    }

    #[cold]
    fn checked(&mut self, first: &[u8], payload: usize, out: &mut Outbox) {
        let mut hasher = Hasher::new();
        hasher.update(first);
        self.append(payload, first.len(), |block, range| {
            hasher.update(&block[range.clone()]);
            push(block, range, payload, out);
        });
        out.copy(&hasher.finalize().to_le_bytes());
    }

    /// Calls `each` for the stretches of the block that make up the next `left` bytes, which stand behind `before` of the same message.
    #[inline]
    fn append(&mut self, mut left: usize, before: usize, mut each: impl FnMut(&Bytes, core::ops::Range<usize>)) {
        // The offset keeps source and destination of the kernel's copies equally aligned, whatever the size.
        let mut offset = self.next.unwrap_or(if left < SHARED_FROM { 0 } else { before });
        while left > 0 {
            let take = left.min(self.block.len() - offset);
            each(&self.block, offset..offset + take);
            left -= take;
            offset = if offset + take == self.block.len() { 0 } else { offset + take };
        }
        if self.next.is_some() {
            self.next = Some(offset);
        }
    }
}

#[inline]
fn push(block: &Bytes, range: core::ops::Range<usize>, of: usize, out: &mut Outbox) {
    if of < SHARED_FROM { out.copy(&block[range]) } else { out.share(block.slice(range)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{self, HEADER, Kind};

    fn written(payload: &mut Payload, size: u32, is_checked: bool) -> Vec<u8> {
        let mut out = Outbox::new();
        payload.message(&Header::new(Kind::Send, size, 7), is_checked, &mut out);
        out.seal();
        out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect()
    }

    #[test]
    fn an_applications_bytes_follow_each_other_and_begin_again() {
        let mut payload = Payload::of(Bytes::from_static(b"0123456789"));
        let bodies: Vec<Vec<u8>> =
            [20, 16, 23, 18].map(|size| written(&mut payload, size, false)[HEADER..].to_vec()).into();
        assert_eq!(bodies, [&b"0123"[..], b"", b"4567890", b"12"]);
        let large = written(&mut payload, 16 + 5000, false);
        assert_eq!(large.len(), 5016);
        assert!(large[HEADER..].iter().zip(b"34567890123456789012").all(|(is, wanted)| is == wanted));
        assert_eq!(Payload::of(Bytes::new()).next, None);
    }

    #[test]
    fn whoever_changes_a_byte_of_a_checked_message_is_found_out() {
        for (size, mut payload) in
            [(20, Payload::new()), (64, Payload::new()), (9000, Payload::of(Bytes::from_static(b"ab")))]
        {
            let mut bytes = written(&mut payload, size, true);
            assert_eq!(bytes.len(), size as usize);
            assert!(wire::is_intact(&bytes));
            for at in [0, 9, bytes.len() / 2, bytes.len() - 1] {
                bytes[at] ^= 0x10;
                assert!(!wire::is_intact(&bytes), "byte {at} of {size}");
                bytes[at] ^= 0x10;
            }
            bytes.swap(HEADER, HEADER + 1);
            assert!(!wire::is_intact(&bytes), "two bytes that changed places");
        }
        assert_eq!(
            written(&mut Payload::new(), 19, true),
            written(&mut Payload::new(), 19, false),
            "no room for a checksum"
        );
    }
}
