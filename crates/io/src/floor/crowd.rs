//! Many sockets, with a window on each or messages one way. One thread a side asks the kernel which of them have something, as any server does.

use super::{BULK, Calls, Floor, Group, Kind};
use crate::poller::Poller;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One socket of the many.
#[derive(Debug, Clone)]
struct Place {
    /// The bytes of a group that has come in part.
    part: usize,
    /// The bytes that may go.
    credit: usize,
    /// Whether it waits for room to send.
    is_full: bool,
}

impl Floor {
    /// Exchanges groups on every socket: each group that arrives lets one of this side's go there. The near side begins with a window's worth.
    pub(super) fn crowd(
        &self,
        fds: &[OwnedFd],
        window: usize,
        group_in: usize,
        group: Group,
        mut over: impl FnMut(usize) -> bool,
    ) -> io::Result<()> {
        let mut poller = Poller::new()?;
        let mut calls = Calls::one_by_one(self, BULK);
        let out = vec![0x55u8; self.piece(self.bulk_of(group.piece) * group.piece)];
        let mut places = vec![Place { part: 0, credit: window * group.bytes, is_full: false }; fds.len()];
        for (token, (fd, place)) in fds.iter().zip(&mut places).enumerate() {
            poller.add(fd.as_fd(), token as u64, false)?;
            self.pass_on(&poller, fd.as_fd(), token, place, group, &out)?;
        }
        loop {
            calls.wait(&mut poller)?;
            let mut came = 0;
            while let Some(ready) = poller.next() {
                let token = ready.token as usize;
                let (fd, place) = (fds[token].as_fd(), &mut places[token]);
                match if ready.readable { calls.receive_some(fd, false)? } else { None } {
                    Some(0) if self.kind != Kind::Udp => return Ok(()),
                    here => place.part += here.inspect(|here| came += here).unwrap_or(0),
                }
                place.credit += place.part / group_in * group.bytes;
                place.part %= group_in;
                self.pass_on(&poller, fd, token, place, group, &out)?;
            }
            if over(came) {
                return Ok(());
            }
        }
    }

    /// Receives from every socket until `stop` is set or a stream ends.
    pub(super) fn sinks(
        &self,
        fds: &[OwnedFd],
        mut calls: Calls,
        arrived: &AtomicU64,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let mut poller = Poller::new()?;
        for (token, fd) in fds.iter().enumerate() {
            poller.add(fd.as_fd(), token as u64, false)?;
        }
        while !stop.load(Ordering::Relaxed) {
            calls.wait(&mut poller)?;
            while let Some(ready) = poller.next() {
                match calls.receive_some(fds[ready.token as usize].as_fd(), false)? {
                    Some(0) if self.kind != Kind::Udp => return Ok(()),
                    came => arrived.fetch_add(came.unwrap_or(0) as u64, Ordering::Relaxed),
                };
            }
        }
        Ok(())
    }

    /// Sends what may go on a socket, and has the kernel say when there is room for the rest.
    fn pass_on(
        &self,
        poller: &Poller,
        fd: BorrowedFd<'_>,
        token: usize,
        place: &mut Place,
        group: Group,
        out: &[u8],
    ) -> io::Result<()> {
        let most = if self.kind == Kind::Udp { group.piece } else { out.len() };
        let mut is_full = false;
        while place.credit > 0 && !is_full {
            let go = place.credit.min(most);
            match sys::send(fd, &out[..go], libc::MSG_DONTWAIT) {
                Ok(went) => place.credit -= went,
                Err(error) if sys::is_vain(&error) => is_full = true,
                Err(error) => return Err(error),
            }
        }
        if is_full != place.is_full {
            place.is_full = is_full;
            poller.change(fd, token as u64, is_full)?;
        }
        Ok(())
    }
}
