use crate::sys;
use hodo_machine::Address;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Where a listener leaves accepted connections for the thread that serves them.
pub struct Mailbox {
    letters: Mutex<Vec<(OwnedFd, Address)>>,
    some: AtomicBool,
    peers: AtomicUsize,
    event: OwnedFd,
}

impl Mailbox {
    /// An empty mailbox.
    pub fn new() -> io::Result<Self> {
        Ok(Mailbox {
            letters: Mutex::new(Vec::new()),
            some: AtomicBool::new(false),
            peers: AtomicUsize::new(0),
            event: sys::event_counter()?,
        })
    }

    /// Leaves a connection, and wakes its thread.
    pub(crate) fn post(&self, fd: OwnedFd, from: Address) {
        self.letters.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((fd, from));
        self.peers.fetch_add(1, Ordering::Relaxed);
        self.some.store(true, Ordering::Release);
        sys::raise(self.event.as_fd());
    }

    /// Wakes the thread without leaving anything.
    pub(crate) fn wake(&self) {
        self.some.store(true, Ordering::Release);
        sys::raise(self.event.as_fd());
    }

    /// Takes everything.
    pub(crate) fn take(&self) -> Vec<(OwnedFd, Address)> {
        sys::lower(self.event.as_fd());
        self.some.store(false, Ordering::Release);
        std::mem::take(&mut self.letters.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    #[inline]
    pub(crate) fn has_some(&self) -> bool {
        self.some.load(Ordering::Acquire)
    }

    pub(crate) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// A connection that was left here has ended.
    pub(crate) fn left(&self) {
        self.peers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Connections that were left here and have not ended.
    pub(crate) fn peers(&self) -> usize {
        self.peers.load(Ordering::Relaxed)
    }
}
