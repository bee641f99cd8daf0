use crate::{Instant, Mark, Moment};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

/// Payloads up to this many bytes are copied behind their header; longer ones are shared, because a separate element of
/// a vectored write costs about as much as copying this much.
const COPY_UP_TO: usize = 4096;

/// The bytes that a machine wants sent: small ones in a scratch buffer, large ones as shared segments.
///
/// A driver keeps one for its whole life, so that nothing is allocated per message once it has grown.
#[derive(Debug, Default)]
pub struct Outbox {
    scratch: Vec<u8>,
    pieces: Vec<Piece>,
    sealed: usize,
    length: usize,
    is_urgent: bool,
    is_paused: bool,
    marks: Vec<Mark>,
    clock: Option<Clock>,
}

/// A clock that a driver lends to its machine.
#[derive(Debug, Clone, Copy)]
struct Clock {
    read_ns: fn() -> u64,
    origin_ns: u64,
}

/// One run of bytes in an outbox.
#[derive(Debug, Clone)]
pub enum Piece {
    /// A range of the scratch buffer.
    Scratch(Range<usize>),
    /// A segment that the machine still owns a share of.
    Shared(Bytes),
}

impl Outbox {
    /// Creates an empty outbox.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty outbox that lends a clock of nanoseconds; the driver's time is what it has counted since `origin_ns`.
    #[must_use]
    pub fn with_clock(read_ns: fn() -> u64, origin_ns: u64) -> Self {
        Outbox { clock: Some(Clock { read_ns, origin_ns }), ..Self::default() }
    }

    /// Returns the time of this very moment, for a mark within a poll; where the driver lends no clock, the time of the poll, `polled`.
    /// Only for operations that are to be stamped: it is a reading of the clock.
    #[must_use]
    #[inline]
    pub fn now(&self, polled: Instant) -> Instant {
        self.clock.map_or(polled, |clock| Instant::from_nanos((clock.read_ns)().saturating_sub(clock.origin_ns)))
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn copy(&mut self, bytes: &[u8]) {
        let start = self.scratch.len();
        self.scratch.extend_from_slice(bytes);
        let end = self.scratch.len();
        self.length += bytes.len();
        if self.pieces.len() > self.sealed
            && let Some(Piece::Scratch(range)) = self.pieces.last_mut()
            && range.end == start
        {
            range.end = end;
            return;
        }
        if start < end {
            self.pieces.push(Piece::Scratch(start..end));
        }
    }

    /// Appends a shared segment, without a copy where it is large enough for that to pay.
    #[inline]
    pub fn share(&mut self, segment: Bytes) {
        if segment.len() <= COPY_UP_TO {
            self.copy(&segment);
        } else {
            self.length += segment.len();
            self.pieces.push(Piece::Shared(segment));
        }
    }

    /// Has a driver send what there is before it polls the machine again: the peer can work on it while the machine goes on.
    #[inline]
    pub fn urge(&mut self) {
        self.is_urgent = true;
    }

    /// Tells whether what there is has to be sent before the machine is polled again.
    #[must_use]
    #[inline]
    pub const fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Has a driver return to the application after the event that goes with this poll, before it polls the machine again: what
    /// the application asks for then leaves together with what the machine owes its peers. The next turn goes on at once.
    #[inline]
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Takes whether the application has its turn now.
    #[must_use]
    #[inline]
    pub fn take_pause(&mut self) -> bool {
        core::mem::take(&mut self.is_paused)
    }

    /// Says that a stage of the operation `tag` is over. Only for operations that are to be stamped: a mark costs its
    /// driver readings of the clock.
    #[inline]
    pub fn mark(&mut self, stage: &'static str, tag: u64, moment: Moment) {
        self.marks.push(Mark { stage, tag, moment });
    }

    /// Tells whether there are marks to be stamped.
    #[must_use]
    #[inline]
    pub const fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Takes the marks made since the last call.
    pub fn drain_marks(&mut self) -> impl Iterator<Item = Mark> + '_ {
        self.marks.drain(..)
    }

    /// Bytes held.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Tells whether no byte is held.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds `bits`, without carries, to the last four bytes of the message that ends before this piece. They were copied together.
    #[inline]
    pub fn correct(&mut self, pieces_end: usize, bits: [u8; 4]) {
        if let Some(Piece::Scratch(range)) = pieces_end.checked_sub(1).and_then(|last| self.pieces.get(last))
            && range.len() >= bits.len()
        {
            self.scratch[range.end - bits.len()..range.end].iter_mut().zip(bits).for_each(|(byte, bits)| *byte ^= bits);
        }
    }

    /// Ends a message: what is appended from here on starts a run of its own. For drivers that gather several messages.
    /// Returns the number of runs so far.
    #[inline]
    pub fn seal(&mut self) -> usize {
        self.sealed = self.pieces.len();
        self.sealed
    }

    /// Returns the runs of bytes, in order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the bytes of one run.
    #[must_use]
    #[inline]
    pub fn bytes<'a>(&'a self, piece: &'a Piece) -> &'a [u8] {
        match piece {
            Piece::Scratch(range) => &self.scratch[range.clone()],
            Piece::Shared(segment) => segment,
        }
    }

    /// Bytes of the scratch buffer: for a driver that joins neighbouring runs.
    #[must_use]
    #[inline]
    pub fn scratch(&self, range: Range<usize>) -> &[u8] {
        &self.scratch[range]
    }

    /// Forgets the bytes, and keeps the room. Marks stay until they are drained.
    #[inline]
    pub fn clear(&mut self) {
        self.scratch.clear();
        self.pieces.clear();
        self.sealed = 0;
        self.length = 0;
        self.is_urgent = false;
        self.is_paused = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn joins_copies_and_keeps_large_segments_shared() {
        let mut outbox = Outbox::new();
        outbox.copy(b"ab");
        outbox.copy(b"cd");
        outbox.share(Bytes::from_static(b"ef"));
        outbox.share(Bytes::from(vec![7; COPY_UP_TO + 1]));
        outbox.copy(b"gh");
        let lengths: Vec<usize> = outbox.pieces().iter().map(|piece| outbox.bytes(piece).len()).collect();
        assert_eq!(lengths, [6, COPY_UP_TO + 1, 2]);
        assert_eq!(outbox.len(), COPY_UP_TO + 9);
        outbox.clear();
        assert!(outbox.is_empty() && outbox.pieces().is_empty());
    }

    #[test]
    fn time_is_that_of_the_poll_unless_a_clock_is_lent() {
        let polled = Instant::from_nanos(5);
        assert_eq!(Outbox::new().now(polled), polled);
        assert_eq!(Outbox::with_clock(|| 30, 10).now(polled), Instant::from_nanos(20));
    }

    #[test]
    fn marks_outlive_the_bytes_that_they_came_with() {
        let mut outbox = Outbox::new();
        assert!(!outbox.has_marks());
        outbox.mark("send", 2, Moment::Sent);
        outbox.clear();
        assert!(outbox.has_marks());
        assert_eq!(outbox.drain_marks().collect::<Vec<_>>(), [Mark { stage: "send", tag: 2, moment: Moment::Sent }]);
        assert!(!outbox.has_marks());
    }
}
