/// Cuts one peer's stream into frames of a fixed header and a body whose length the header tells.
///
/// Holds at most a partial header: bodies are passed on as they come, so that ten thousand peers cost little memory and
/// a large payload is not gathered before it is used.
#[derive(Debug, Clone)]
pub struct Frames<const HEADER: usize> {
    header: [u8; HEADER],
    filled: u8,
    body_left: u64,
}

/// A run of a stream's next bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a, const HEADER: usize> {
    /// A whole header. Answer with [`Frames::expect_body`] where a body follows.
    Header([u8; HEADER]),
    /// The next bytes of the body, and how many are still to come after them.
    Body(&'a [u8], u64),
}

impl<const HEADER: usize> Default for Frames<HEADER> {
    fn default() -> Self {
        const { assert!(HEADER > 0 && HEADER < 256) };
        Frames { header: [0; HEADER], filled: 0, body_left: 0 }
    }
}

impl<const HEADER: usize> Frames<HEADER> {
    /// Says how many bytes of body follow the header that was just returned.
    #[inline]
    pub fn expect_body(&mut self, length: u64) {
        self.body_left = length;
    }

    /// Bytes of the body that are still to come.
    #[must_use]
    #[inline]
    pub const fn body_left(&self) -> u64 {
        self.body_left
    }

    /// Notes that so many bytes of the body were received elsewhere; answers how many are still to come.
    #[inline]
    pub fn landed(&mut self, count: usize) -> u64 {
        self.body_left = self.body_left.saturating_sub(count as u64);
        self.body_left
    }

    /// Takes the next piece off the front of `bytes`, or nothing where the rest is a partial header (which is kept).
    #[inline]
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Piece<'a, HEADER>> {
        if bytes.is_empty() {
            return None;
        }
        if self.body_left > 0 {
            let take = usize::try_from(self.body_left).unwrap_or(usize::MAX).min(bytes.len());
            let (body, rest) = bytes.split_at(take);
            *bytes = rest;
            self.body_left -= take as u64;
            return Some(Piece::Body(body, self.body_left));
        }
        if self.filled == 0
            && let Some((header, rest)) = bytes.split_first_chunk::<HEADER>()
        {
            *bytes = rest;
            return Some(Piece::Header(*header));
        }
        let filled = usize::from(self.filled);
        let take = (HEADER - filled).min(bytes.len());
        let (front, rest) = bytes.split_at(take);
        *bytes = rest;
        self.header[filled..filled + take].copy_from_slice(front);
        self.filled += take as u8;
        if usize::from(self.filled) < HEADER {
            return None;
        }
        self.filled = 0;
        Some(Piece::Header(self.header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// Frames of a one-byte length behind one more byte: the same frames come out however the stream is cut.
    #[test]
    fn finds_the_same_frames_however_the_stream_is_cut() {
        let stream: Vec<u8> = vec![9, 3, 1, 2, 3, 9, 0, 9, 1, 7, 9, 2, 5, 6];
        for cut in 1..=stream.len() {
            let mut frames = Frames::<2>::default();
            let (mut headers, mut body) = (0, Vec::new());
            for chunk in stream.chunks(cut) {
                let mut rest = chunk;
                while let Some(piece) = frames.next(&mut rest) {
                    match piece {
                        Piece::Header([9, length]) => {
                            headers += 1;
                            frames.expect_body(u64::from(length));
                        }
                        Piece::Header(other) => panic!("cut {cut}: header {other:?}"),
                        Piece::Body(bytes, _) => body.extend_from_slice(bytes),
                    }
                }
            }
            assert_eq!((headers, body.as_slice()), (4, &[1, 2, 3, 7, 5, 6][..]), "cut {cut}");
        }
    }
}
