use alloc::vec::Vec;

/// The last replies to packets with a number, kept so that they can be sent again: as many as there are buffers.
#[derive(Debug)]
pub(crate) struct Replies {
    buffers: Vec<Buffer>,
    oldest: usize,
}

/// One reply. Its room is used again and again.
#[derive(Debug, Default)]
struct Buffer {
    /// 0 where it holds none.
    id: u16,
    bytes: Vec<u8>,
}

impl Replies {
    /// Creates this many empty buffers, each with room for this many bytes.
    pub(crate) fn new(buffers: usize, buffer_bytes: usize) -> Self {
        let buffer = || Buffer { id: 0, bytes: Vec::with_capacity(buffer_bytes) };
        Replies { buffers: core::iter::repeat_with(buffer).take(buffers).collect(), oldest: 0 }
    }

    /// Keeps a reply in the place of the oldest.
    pub(crate) fn keep(&mut self, id: u16, reply: &[u8]) {
        let Some(buffer) = self.buffers.get_mut(self.oldest) else { return };
        buffer.id = id;
        buffer.bytes.clear();
        buffer.bytes.extend_from_slice(reply);
        self.oldest = (self.oldest + 1) % self.buffers.len();
    }

    /// Returns the reply to the packet of this number, if it is still there.
    pub(crate) fn find(&self, id: u16) -> Option<&[u8]> {
        let found = self.buffers.iter().find(|buffer| buffer.id == id && id != 0);
        found.map(|buffer| buffer.bytes.as_slice())
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.buffers.iter_mut().for_each(|buffer| buffer.id = 0);
        self.oldest = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way() {
        let mut replies = Replies::new(2, 8);
        for id in [1, 2, 3] {
            replies.keep(id, &[id as u8; 3]);
        }
        assert_eq!((replies.find(1), replies.find(2), replies.find(3)), (None, Some(&[2; 3][..]), Some(&[3; 3][..])));
        replies.clear();
        assert_eq!((replies.find(2), replies.find(0)), (None, None));
    }
}
