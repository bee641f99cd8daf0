//! Chunks of a TCP stream, to a device and to the hub: a length of four bytes, big-endian, and that many bytes.
//!
//! To a device, and from it, a chunk is one packet; to the hub, and from it, what [`hub`](super::hub) says.

use crate::Error;
use alloc::vec::Vec;
use hodo_machine::{FramePiece, Frames};

/// Bytes of the length.
pub const HEADER: usize = 4;

/// Begins a chunk at the end of `out`; [`end`] is to be told what this answers.
#[inline]
pub fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; HEADER]);
    out.len()
}

/// Ends the chunk that [`begin`] began: what was appended since is in it.
///
/// # Panics
/// Where `begun` is not what [`begin`] answered for this buffer, or the chunk has 4 GiB.
#[inline]
pub fn end(out: &mut [u8], begun: usize) {
    let length = length(out.len() - begun);
    out[begun - HEADER..begun].copy_from_slice(&length);
}

/// Returns the length in front of a chunk of this many bytes.
///
/// # Panics
/// Where those are 4 GiB.
#[must_use]
pub fn length(bytes: usize) -> [u8; HEADER] {
    u32::try_from(bytes).expect("a chunk holds a few packets").to_be_bytes()
}

/// One peer's stream, cut into chunks.
///
/// A chunk that arrives in one piece is not copied; one that does not is gathered as it comes, so that a peer that
/// announces much and sends nothing costs nothing.
#[derive(Debug)]
pub struct Chunks {
    frames: Frames<HEADER>,
    gathered: Vec<u8>,
    complete: bool,
    length_max: usize,
}

impl Chunks {
    /// Creates the reader of a stream whose chunks have at most this many bytes.
    #[must_use]
    pub fn new(length_max: usize) -> Self {
        Chunks { frames: Frames::default(), gathered: Vec::new(), complete: false, length_max }
    }

    /// Returns the next whole chunk that ends in `bytes`, which are taken off the front.
    ///
    /// After an error the stream cannot be cut any more: nobody knows where the next chunk begins.
    ///
    /// # Errors
    /// [`Error::ChunkTooLong`] if a chunk is longer than the bound.
    pub fn next<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Result<Option<&'s [u8]>, Error> {
        if self.complete {
            self.gathered.clear();
            self.complete = false;
        }
        while let Some(piece) = self.frames.next(bytes) {
            match piece {
                FramePiece::Header(length) => {
                    let length = u32::from_be_bytes(length) as usize;
                    if length > self.length_max {
                        return Err(Error::ChunkTooLong { length, max: self.length_max });
                    }
                    if length == 0 {
                        return Ok(Some(&[]));
                    }
                    self.frames.expect_body(length as u64);
                }
                FramePiece::Body(body, 0) if self.gathered.is_empty() => return Ok(Some(body)),
                FramePiece::Body(body, left) => {
                    self.gathered.extend_from_slice(body);
                    if left == 0 {
                        self.complete = true;
                        return Ok(Some(&self.gathered));
                    }
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// uHAL 2.8 to a device of version 2.0: one read.
    const READ: [u8; 16] = [0, 0, 0, 0x0C, 0xF0, 0, 0, 0x20, 0x0F, 0x01, 0x00, 0x20, 0x34, 0x12, 0x00, 0x00];

    #[test]
    fn finds_the_same_chunks_however_the_stream_is_cut() {
        let stream = [&READ[..], &[0, 0, 0, 0], &READ, &[0, 0, 0, 1, 9]].concat();
        for cut in 1..=stream.len() {
            let mut chunks = Chunks::new(12);
            let mut found: Vec<Vec<u8>> = Vec::new();
            for mut rest in stream.chunks(cut) {
                while let Some(chunk) = chunks.next(&mut rest).expect("it is within the bound") {
                    found.push(chunk.to_vec());
                }
            }
            assert_eq!(found, [&READ[4..], &[], &READ[4..], &[9]], "cut {cut}");
        }
    }

    #[test]
    fn a_chunk_over_the_bound_is_refused_by_its_length() {
        let mut chunks = Chunks::new(11);
        assert_eq!(chunks.next(&mut &READ[..4]), Err(Error::ChunkTooLong { length: 12, max: 11 }));
    }

    #[test]
    fn a_length_alone_reserves_nothing() {
        let mut chunks = Chunks::new(usize::MAX);
        assert_eq!(chunks.next(&mut &[0x7F, 0xFF, 0xFF, 0xFF, 1][..]), Ok(None));
        assert!(chunks.gathered.capacity() < 64);
    }

    #[test]
    fn begins_and_ends() {
        let mut out = vec![7];
        let begun = begin(&mut out);
        out.extend_from_slice(&READ[4..]);
        end(&mut out, begun);
        assert_eq!(out[1..], READ);
    }
}
