use crate::sys;
use hodo_machine::{Outbox, Piece};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::BorrowedFd;

/// The number of slices in one vectored write.
pub(crate) const SLICES: usize = 64;

/// Bytes that a stream has not taken yet. Shared segments stay shared; small pieces are copied.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pieces: VecDeque<Piece>,
    scratch: Vec<u8>,
    /// Bytes of the front piece that have been sent.
    sent: usize,
    length: usize,
}

impl Backlog {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the bytes that were copied for it.
    pub(crate) fn copied(&self) -> usize {
        self.scratch.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Keeps the bytes behind the first `skip` of these pieces of an outbox.
    pub(crate) fn keep(&mut self, out: &Outbox, pieces: &[Piece], skip: usize) {
        let mut skip = skip;
        for piece in pieces {
            let bytes = out.bytes(piece);
            if skip >= bytes.len() {
                skip -= bytes.len();
                continue;
            }
            match piece {
                Piece::Shared(segment) => self.pieces.push_back(Piece::Shared(segment.slice(skip..))),
                Piece::Scratch(_) => {
                    let start = self.scratch.len();
                    self.scratch.extend_from_slice(&bytes[skip..]);
                    self.pieces.push_back(Piece::Scratch(start..self.scratch.len()));
                }
            }
            self.length += bytes.len() - skip;
            skip = 0;
        }
    }

    /// Fills `slices` with the next bytes to send, and returns how many of them are set.
    pub(crate) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            let bytes = match piece {
                Piece::Scratch(range) => &self.scratch[range.clone()],
                Piece::Shared(segment) => &segment[..],
            };
            *slice = IoSlice::new(if count == 0 { &bytes[self.sent..] } else { bytes });
            count += 1;
        }
        count
    }

    /// Discards `count` bytes, which the stream has taken.
    pub(crate) fn sent(&mut self, count: usize) {
        self.length -= count;
        self.sent += count;
        while let Some(front) = self.pieces.front() {
            let length = match front {
                Piece::Scratch(range) => range.len(),
                Piece::Shared(segment) => segment.len(),
            };
            if self.sent < length {
                break;
            }
            self.sent -= length;
            self.pieces.pop_front();
        }
        if self.pieces.is_empty() {
            self.scratch.clear();
        } else if self.scratch.len() > 1 << 20 {
            self.compact();
        }
    }

    /// Discards copied bytes that are sent: a stream that is never quite drained would otherwise keep all of them.
    fn compact(&mut self) {
        let first = self.pieces.iter().find_map(|piece| match piece {
            Piece::Scratch(range) => Some(range.start),
            Piece::Shared(_) => None,
        });
        let gone = first.unwrap_or(self.scratch.len());
        if gone < self.scratch.len() / 2 {
            return;
        }
        self.scratch.drain(..gone);
        for piece in &mut self.pieces {
            if let Piece::Scratch(range) = piece {
                *range = range.start - gone..range.end - gone;
            }
        }
    }
}

/// Writes pieces until the stream takes no more, and returns how many bytes it took.
#[inline]
pub(crate) fn write_now(fd: BorrowedFd<'_>, out: &Outbox, pieces: &[Piece]) -> io::Result<usize> {
    if let [one] = pieces {
        return match sys::send(fd, out.bytes(one), libc::MSG_DONTWAIT) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            other => other,
        };
    }
    let mut sent = 0;
    for pieces in pieces.chunks(SLICES) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut wanted = 0;
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            let bytes = out.bytes(piece);
            wanted += bytes.len();
            *slice = IoSlice::new(bytes);
        }
        match sys::send_vectored(fd, &slices[..pieces.len()], libc::MSG_DONTWAIT) {
            Ok(taken) => {
                sent += taken;
                if taken < wanted {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::Bytes;

    #[test]
    fn gives_back_the_same_bytes_whatever_is_taken_at_once() {
        let mut out = Outbox::new();
        out.copy(b"head");
        out.share(Bytes::from(vec![b'x'; 5000]));
        out.copy(b"tail");
        let whole: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
        for step in [1, 3, 4, 1000, 6000] {
            let mut backlog = Backlog::default();
            backlog.keep(&out, out.pieces(), 2);
            let mut got = Vec::new();
            while !backlog.is_empty() {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let count = backlog.slices(&mut slices);
                let next: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).take(step).collect();
                got.extend_from_slice(&next);
                let taken = next.len();
                backlog.sent(taken);
            }
            assert_eq!(got, whole[2..], "step {step}");
        }
    }

    #[test]
    fn does_not_grow_when_it_is_never_empty() {
        let mut backlog = Backlog::default();
        let mut out = Outbox::new();
        out.copy(&[1; 1000]);
        backlog.keep(&out, out.pieces(), 0);
        for _ in 0..10_000 {
            backlog.keep(&out, out.pieces(), 0);
            backlog.sent(1000);
        }
        assert_eq!(backlog.len(), 1000);
        assert!(backlog.scratch.capacity() < 4 << 20);
    }
}
