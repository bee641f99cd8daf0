//! Frames of a header and a body within a stream: bodies come out whole, borrowed from the received bytes wherever they lie
//! whole in them. Bridges over TCP share this.

mod assembly;

use assembly::Assembly;
use hodo_machine::{FramePiece, Frames};

/// Bodies with at least this many bytes to come are received in place.
const LANDING_MIN: u64 = 4096;

/// Cuts a stream into bodies. `K` is the kind of a frame, `E` the error of a header.
#[derive(Debug, Clone)]
pub(crate) struct Stream<const HEADER: usize, K, E> {
    frames: Frames<HEADER>,
    frame: Option<(K, Role)>,
    packet: Assembly,
    aside: Assembly,
    broken: Option<E>,
}

/// The meaning of a header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<K> {
    pub(crate) kind: K,
    pub(crate) role: Role,
    pub(crate) length: usize,
}

/// The place of a body in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The rest of a packet, or a whole one.
    Last,
    /// A part of a packet that goes on in another frame.
    Fragment,
    /// A body of its own, which may come between fragments.
    Aside,
    /// No body, and nothing to report.
    Skipped,
}

impl<const HEADER: usize, K, E> Default for Stream<HEADER, K, E> {
    fn default() -> Self {
        Stream {
            frames: Frames::default(),
            frame: None,
            packet: Assembly::default(),
            aside: Assembly::default(),
            broken: None,
        }
    }
}

impl<const HEADER: usize, K: Copy, E: Copy> Stream<HEADER, K, E> {
    /// Takes the next body off the front of `bytes`, or returns `None` once they are used up.
    ///
    /// `parse` receives a header and the bytes of the fragments before it. The stream ends with its first error, which is
    /// returned from then on.
    #[inline]
    pub(crate) fn next<'s, 'b: 's>(
        &'s mut self,
        bytes: &mut &'b [u8],
        parse: impl Fn(&[u8; HEADER], usize) -> Result<Frame<K>, E>,
    ) -> Result<Option<(K, &'s [u8])>, E> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let (kind, role, last) = loop {
            let (piece, left): (&'b [u8], u64) = match self.frames.next(bytes) {
                None => return Ok(None),
                Some(FramePiece::Body(piece, left)) => (piece, left),
                Some(FramePiece::Header(header)) => {
                    let frame = parse(&header, self.packet.len()).inspect_err(|error| self.broken = Some(*error))?;
                    self.frame = Some((frame.kind, frame.role));
                    self.frames.expect_body(frame.length as u64);
                    if frame.length > 0 {
                        continue;
                    }
                    (&[], 0)
                }
            };
            match self.frame {
                Some((kind, role @ (Role::Last | Role::Aside))) if left == 0 => break (kind, role, piece),
                Some((_, Role::Aside)) => self.aside.append(piece),
                Some((_, Role::Last | Role::Fragment)) => self.packet.append(piece),
                Some((_, Role::Skipped)) | None => {}
            }
        };
        let assembly = if role == Role::Aside { &mut self.aside } else { &mut self.packet };
        Ok(Some((kind, assembly.finish(last))))
    }

    /// Returns where the next bytes of the stream may be received directly, while much of a packet is outstanding.
    pub(crate) fn landing(&mut self) -> Option<&mut [u8]> {
        let left = self.frames.body_left();
        let is_packet = matches!(self.frame, Some((_, Role::Last | Role::Fragment)));
        (self.broken.is_none() && is_packet && left >= LANDING_MIN).then(|| self.packet.room(left))
    }

    /// Takes in that so many bytes were received where [`landing`](Self::landing) returned, and returns the body if that
    /// was its rest.
    pub(crate) fn landed(&mut self, count: usize) -> Option<(K, &[u8])> {
        let (kind, role) = self.frame?;
        if count as u64 > self.frames.body_left() || count == 0 {
            return None;
        }
        self.packet.fill(count);
        let left = self.frames.landed(count);
        (left == 0 && role == Role::Last).then(|| (kind, self.packet.finish(&[])))
    }
}
