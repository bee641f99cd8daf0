//! The system calls of one side of a floor: large writes, and datagrams that the kernel cuts and joins.

use super::{Floor, GIVE_UP, Kind};
use crate::Clock;
use crate::sockets::{LINGER, LITTLE};
use crate::sys::{self, RawAddress};
use crate::sys_datagram::{self as batch, Received};
use hodo_machine::{Instant, Wait};
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::BorrowedFd;

/// The system calls of one side.
pub(super) struct Calls {
    udp: bool,
    flags: i32,
    /// Whether a thread that spins in vain lets the other thread of its processor run.
    yields: bool,
    buffer: Vec<u8>,
    datagrams: Option<Received>,
    cut: Option<u16>,
    /// Whether a receive that may sleep looks for a while first, as an endpoint does while a small reply is owed.
    lingers: bool,
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
            flags: if matches!(floor.wait, Wait::Block) { 0 } else { libc::MSG_DONTWAIT },
            buffer: vec![0; size.max(1)],
            datagrams: (udp && size > floor.size).then(Received::new),
            cut: (udp && size > floor.size).then(|| u16::try_from(floor.size).ok()).flatten(),
            lingers: false,
            answers: false,
            to: None,
            clock: Clock::start(),
        }
    }

    /// Converts to the calls of a side that is owed a reply, which waits for it as an endpoint does.
    pub(super) fn owed(self, reply: usize) -> Self {
        Calls { lingers: self.flags == 0 && reply <= LITTLE, ..self }
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
        let flags = self.flags;
        if !wait {
            self.flags = libc::MSG_DONTWAIT;
        }
        let came = self.receive(fd);
        self.flags = flags;
        came
    }

    /// Returns whether a wait sleeps.
    pub(super) fn blocks(&self) -> bool {
        self.flags == 0
    }

    /// Receives some bytes, and returns their number; `None` if none came in time.
    #[inline]
    pub(super) fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<Option<usize>> {
        let came = match &mut self.datagrams {
            Some(received) => {
                let runs = match self.cut {
                    Some(_) => received.receive(fd, self.flags, self.answers),
                    None => received.receive_one(fd, self.flags, self.answers),
                };
                if self.answers && runs.is_ok() {
                    self.to = Some(*received.run(0).from);
                }
                runs.map(|runs| (0..runs).map(|index| received.run(index).bytes.len()).sum())
            }
            None => sys::receive(fd, &mut self.buffer, self.flags),
        };
        match came {
            Ok(count) => Ok(Some(count)),
            Err(error) if sys::is_vain(&error) => {
                if self.yields && self.flags != 0 {
                    std::thread::yield_now();
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Looks for bytes for a while, and lets other threads run, before a receive that sleeps. Returns their number, 0 if
    /// none came or the stream is at its end, which the next receive tells apart.
    fn linger(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        let began = self.clock.now();
        loop {
            if let Some(count) = self.receive_some(fd, false)? {
                return Ok(count);
            }
            sys::yield_now();
            if self.clock.now() - began >= LINGER {
                return Ok(0);
            }
        }
    }

    #[inline]
    pub(super) fn receive_exactly(&mut self, fd: BorrowedFd<'_>, size: usize) -> io::Result<()> {
        let (mut came, mut empty) = (0, 0u32);
        if self.lingers {
            came = self.linger(fd)?;
        }
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
