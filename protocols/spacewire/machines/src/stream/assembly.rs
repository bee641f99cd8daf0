use alloc::vec::Vec;

/// A landing offers at most this many bytes, so that memory grows with what arrives and not with what a header announces.
const LANDING_MAX: usize = 256 << 10;

/// A body that is gathered from the pieces in which it arrives. The buffer is used again for the next one.
#[derive(Debug, Clone, Default)]
pub(super) struct Assembly {
    /// Longer than what is filled, so that it is not cleared for every body.
    buffer: Vec<u8>,
    filled: usize,
    is_finished: bool,
}

impl Assembly {
    /// Returns the bytes that were gathered and not finished.
    #[inline]
    pub(super) fn len(&self) -> usize {
        if self.is_finished { 0 } else { self.filled }
    }

    /// Adds a piece.
    #[inline]
    pub(super) fn append(&mut self, piece: &[u8]) {
        self.begin();
        let end = self.filled + piece.len();
        match self.buffer.get_mut(self.filled..end) {
            Some(room) => room.copy_from_slice(piece),
            None => {
                self.buffer.truncate(self.filled);
                self.buffer.extend_from_slice(piece);
            }
        }
        self.filled = end;
    }

    /// Adds the last piece and returns the body, which is the piece itself where it is the only one.
    #[inline]
    pub(super) fn finish<'s, 'b: 's>(&'s mut self, last: &'b [u8]) -> &'s [u8] {
        if self.len() == 0 {
            return last;
        }
        self.append(last);
        self.is_finished = true;
        &self.buffer[..self.filled]
    }

    /// Returns room for the next of `left` bytes.
    pub(super) fn room(&mut self, left: u64) -> &mut [u8] {
        self.begin();
        let length = usize::try_from(left).map_or(LANDING_MAX, |left| left.min(LANDING_MAX));
        let end = self.filled + length;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        &mut self.buffer[self.filled..end]
    }

    /// Takes in that so many bytes were received into the room.
    pub(super) fn fill(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.buffer.len());
    }

    #[inline]
    fn begin(&mut self) {
        if self.is_finished {
            self.is_finished = false;
            self.filled = 0;
        }
    }
}
