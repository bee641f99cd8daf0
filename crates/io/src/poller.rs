use crate::sys;
use hodo_machine::Instant;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The number of events taken from the kernel at once.
const EVENTS: usize = 256;

/// A level-triggered poller of many descriptors.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Box<[libc::epoll_event]>,
    ready: usize,
    next: usize,
}

/// The readiness of a descriptor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS].into_boxed_slice();
        Ok(Poller { epoll: sys::epoll()?, events, ready: 0, next: 0 })
    }

    /// Returns a second handle to the same set of descriptors: this poller reports the descriptors that it adds.
    pub(crate) fn sharing(&self) -> io::Result<Poller> {
        Ok(Poller { epoll: self.epoll.try_clone()?, events: Box::new([]), ready: 0, next: 0 })
    }

    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64, writable: bool) -> io::Result<()> {
        sys::epoll_control(self.epoll.as_fd(), libc::EPOLL_CTL_ADD, fd, interest(writable), token)
    }

    pub(crate) fn change(&self, fd: BorrowedFd<'_>, token: u64, writable: bool) -> io::Result<()> {
        sys::epoll_control(self.epoll.as_fd(), libc::EPOLL_CTL_MOD, fd, interest(writable), token)
    }

    /// Watches a descriptor for room alone.
    pub(crate) fn add_for_room(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        sys::epoll_control(self.epoll.as_fd(), libc::EPOLL_CTL_ADD, fd, libc::EPOLLOUT, token)
    }

    /// Stops watching a descriptor, and discards pending events with this token.
    pub(crate) fn remove(&mut self, fd: BorrowedFd<'_>, token: u64) {
        // Closing a descriptor removes it as well, so a failure here leaves nothing behind.
        let _ = sys::epoll_control(self.epoll.as_fd(), libc::EPOLL_CTL_DEL, fd, 0, token);
        for event in &mut self.events[self.next..self.ready] {
            if { event.u64 } == token {
                event.events = 0;
            }
        }
    }

    /// Returns the next descriptor that the last [`Poller::wait`] found ready.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Ready> {
        while self.next < self.ready {
            let libc::epoll_event { events, u64: token } = self.events[self.next];
            self.next += 1;
            let writable = events & (libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
            let readable = events & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
            if readable || writable {
                return Some(Ready { token, readable, writable });
            }
        }
        None
    }

    /// Polls, sleeps for at most `span` while nothing is ready, and returns how many descriptors are.
    #[inline]
    pub(crate) fn wait(&mut self, span: Option<Duration>) -> io::Result<usize> {
        self.next = 0;
        self.ready = sys::epoll_wait(self.epoll.as_fd(), &mut self.events, span)?;
        Ok(self.ready)
    }
}

/// Returns the time to sleep until an instant; `None`, which is without end, for [`Instant::MAX`].
pub(crate) fn span_until(until: Instant, now: Instant) -> Option<Duration> {
    (until != Instant::MAX).then(|| until - now)
}

fn interest(writable: bool) -> libc::c_int {
    libc::EPOLLIN | libc::EPOLLRDHUP | if writable { libc::EPOLLOUT } else { 0 }
}
