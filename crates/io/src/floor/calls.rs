//! The system calls of one side of a floor: large writes, and datagrams that the kernel cuts and joins.

use super::{Floor, GIVE_UP, Kind, LOOK_UP};
use crate::patience::{Begin, Patience, Poll};
use crate::poller::Poller;
use crate::sys::{self, RawAddress};
use crate::sys_datagram::{self as batch, Received};
use crate::{Clock, polling};
use hodo_machine::{Instant, Wait};
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The system calls of one side.
pub(super) struct Calls {
    udp: bool,
    flags: i32,
    /// Whether a thread that spins in vain lets the other thread of its processor run.
    yields: bool,
    buffer: Vec<u8>,
    datagrams: Option<Received>,
    cut: Option<u16>,
    /// How a receive that may sleep begins, where both sides wait adaptively.
    patience: Option<Patience>,
    /// The empty looks since a side that polls last found something.
    poll: Option<Poll>,
    /// Whether each reply goes to where the last datagram came from.
    answers: bool,
    to: Option<RawAddress>,
    pub(super) clock: Clock,
}

impl Calls {
    /// Creates the calls of a side with room for one message of this size, which comes and goes by itself.
    pub(super) fn one_by_one(floor: &Floor, size: usize) -> Self {
        Calls { datagrams: None, cut: None, ..Calls::new(floor, size) }
    }

    /// Creates the calls of a side with `room` bytes of buffer, and with datagrams that are cut into messages of
    /// `piece` bytes.
    pub(super) fn of_pieces(floor: &Floor, room: usize, piece: usize) -> Self {
        let udp = floor.kind == Kind::Udp;
        let cut = udp.then(|| u16::try_from(piece).ok()).flatten().filter(|_| floor.bulk_of(piece) > 1);
        Calls { datagrams: udp.then(Received::new), cut, ..Calls::new(floor, room) }
    }

    pub(super) fn new(floor: &Floor, size: usize) -> Self {
        let udp = floor.kind == Kind::Udp;
        Calls {
            udp,
            yields: floor.is_crowded(),
            flags: if floor.wait.sleeps() { 0 } else { libc::MSG_DONTWAIT },
            buffer: vec![0; size.max(1)],
            datagrams: (udp && size > floor.size).then(Received::new),
            cut: (udp && size > floor.size).then(|| u16::try_from(floor.size).ok()).flatten(),
            patience: (floor.wait == Wait::Adaptive).then(Patience::new),
            poll: None,
            answers: false,
            to: None,
            clock: Clock::start(),
        }
    }

    /// Converts to the calls of the far side, which replies to each sender. A stream needs no address for that.
    pub(super) fn answering(mut self) -> Self {
        self.answers = self.udp;
        if self.answers {
            self.datagrams.get_or_insert_with(Received::new);
        }
        self
    }

    #[inline]
    pub(super) fn send(&mut self, fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let sent = match (self.cut, &self.to) {
                (None, None) => sys::send(fd, rest, 0),
                (cut, to) => batch::send(fd, to.as_ref(), None, &[IoSlice::new(rest)], cut).map(|()| rest.len()),
            };
            match sent {
                Ok(count) => rest = &rest[count..],
                Err(error) if sys::is_vain(&error) && self.clock.now() < Instant::ZERO + GIVE_UP => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends a message of `size` bytes, in pieces if it is larger than `piece`.
    #[inline]
    pub(super) fn send_message(&mut self, fd: BorrowedFd<'_>, piece: &[u8], size: usize) -> io::Result<()> {
        let mut left = size;
        while left > piece.len() {
            self.send(fd, piece)?;
            left -= piece.len();
        }
        self.send(fd, &piece[..left])
    }

    /// Sends as many bytes as there is room for, and returns their number.
    #[inline]
    pub(super) fn send_some(&mut self, fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        let cut = self.cut.filter(|each| bytes.len() > usize::from(*each));
        let sent = match (cut, &self.to) {
            (None, None) => sys::send(fd, bytes, libc::MSG_DONTWAIT),
            (cut, to) => batch::send(fd, to.as_ref(), None, &[IoSlice::new(bytes)], cut).map(|()| bytes.len()),
        };
        match sent {
            Err(error) if sys::is_vain(&error) => Ok(0),
            other => other,
        }
    }

    /// Receives the bytes that are there, and waits for some only if `wait` is set.
    #[inline]
    pub(super) fn receive_some(&mut self, fd: BorrowedFd<'_>, wait: bool) -> io::Result<Option<usize>> {
        if wait { self.receive(fd) } else { self.look(fd, libc::MSG_DONTWAIT) }
    }

    /// Returns whether a wait sleeps.
    pub(super) fn blocks(&self) -> bool {
        self.flags == 0
    }

    /// Receives some bytes, and returns their number; `None` if none came in time.
    #[inline]
    pub(super) fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<Option<usize>> {
        self.waited(|calls, sleeps| calls.look(fd, if sleeps { 0 } else { libc::MSG_DONTWAIT }))
    }

    /// Waits until one of many sockets has something, for a short time at most.
    pub(super) fn wait(&mut self, poller: &mut Poller) -> io::Result<()> {
        let mut look = |sleeps| poller.wait(Some(if sleeps { LOOK_UP } else { Duration::ZERO }));
        self.waited(|_, sleeps| look(sleeps).map(|ready| (ready > 0).then_some(ready))).map(drop)
    }

    /// Waits as it was asked for, by looks that sleep or do not.
    #[inline]
    fn waited(
        &mut self,
        mut look: impl FnMut(&mut Self, bool) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        if self.patience.is_some() {
            return self.waited_adaptively(look);
        }
        let came = look(self, self.blocks())?;
        if !self.blocks() {
            self.note_look(came.is_some());
        }
        Ok(came)
    }

    /// Counts the time from the first empty look to the one that finds something.
    #[inline]
    fn note_look(&mut self, found: bool) {
        if found {
            self.poll.take().iter().for_each(|poll| polling::add(poll.polled_ns()));
            return;
        }
        if self.yields {
            sys::yield_now();
        }
        let now = self.clock.now();
        self.poll.get_or_insert(Poll::begin(now)).looked(now);
    }

    /// Waits as an endpoint does that waits adaptively.
    fn waited_adaptively(
        &mut self,
        mut look: impl FnMut(&mut Self, bool) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        let mut poll = Poll::begin(self.clock.now());
        let begin = self.patience.as_mut().map_or(Begin::Sleep, |patience| patience.begin(poll.began()));
        if begin == Begin::Sleep {
            let came = look(self, true)?;
            let took_ns = poll.took_ns(self.clock.now());
            self.patience.iter_mut().filter(|_| came.is_some()).for_each(|patience| patience.slept(took_ns));
            return Ok(came);
        }
        let (came, now) = loop {
            if begin == Begin::Yield {
                sys::yield_now();
            }
            let (came, now) = (look(self, false)?, self.clock.now());
            if came.is_some() || !poll.looked(now) {
                break (came, now);
            }
        };
        polling::add(poll.polled_ns());
        self.patience.iter_mut().for_each(|patience| match came {
            Some(_) => patience.found(poll.took_ns(now), poll.polled_ns(), now),
            None => patience.found_nothing(poll.polled_ns(), now),
        });
        if came.is_some() { Ok(came) } else { look(self, true) }
    }

    /// Receives with these flags.
    #[inline]
    fn look(&mut self, fd: BorrowedFd<'_>, flags: i32) -> io::Result<Option<usize>> {
        let came = match &mut self.datagrams {
            Some(received) => {
                let runs = match self.cut {
                    Some(_) => received.receive(fd, flags, self.answers),
                    None => received.receive_one(fd, flags, self.answers),
                };
                if self.answers && runs.is_ok() {
                    self.to = Some(*received.run(0).from);
                }
                runs.map(|runs| (0..runs).map(|index| received.run(index).bytes.len()).sum())
            }
            None => sys::receive(fd, &mut self.buffer, flags),
        };
        match came {
            Ok(count) => Ok(Some(count)),
            Err(error) if sys::is_vain(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[inline]
    pub(super) fn receive_exactly(&mut self, fd: BorrowedFd<'_>, size: usize) -> io::Result<()> {
        let (mut came, mut empty) = (0, 0u32);
        while came < size {
            match self.receive(fd)? {
                Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Some(count) => came += count,
                None => {
                    empty += 1;
                    if empty.is_multiple_of(64) && self.clock.now() >= Instant::ZERO + GIVE_UP {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
            }
        }
        Ok(())
    }
}
