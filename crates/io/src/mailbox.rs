use crate::sys;
use hodo_machine::Address;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A queue of accepted connections from a listener to the thread that serves them.
#[derive(Debug)]
pub struct Mailbox {
    letters: Mutex<Vec<(OwnedFd, Address)>>,
    some: AtomicBool,
    /// Whether the thread was called since it last looked.
    called: AtomicBool,
    peers: AtomicUsize,
    event: OwnedFd,
}

impl Mailbox {
    /// Creates an empty mailbox.
    ///
    /// # Errors
    /// Returns the operating system's error if no descriptor is left.
    pub fn new() -> io::Result<Self> {
        Ok(Mailbox {
            letters: Mutex::new(Vec::new()),
            some: AtomicBool::new(false),
            called: AtomicBool::new(false),
            peers: AtomicUsize::new(0),
            event: sys::event_counter()?,
        })
    }

    /// Adds a connection, and wakes the serving thread.
    pub(crate) fn post(&self, fd: OwnedFd, from: Address) {
        self.letters.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((fd, from));
        self.peers.fetch_add(1, Ordering::Relaxed);
        self.some.store(true, Ordering::Release);
        sys::raise(self.event.as_fd());
    }

    /// Wakes the serving thread without adding anything.
    pub(crate) fn wake(&self) {
        self.some.store(true, Ordering::Release);
        sys::raise(self.event.as_fd());
    }

    /// Wakes the serving thread to look in.
    pub(crate) fn call(&self) {
        self.called.store(true, Ordering::Release);
        self.wake();
    }

    /// Returns whether the thread was called since the last time.
    #[inline]
    pub(crate) fn is_called(&self) -> bool {
        self.called.load(Ordering::Relaxed) && self.called.swap(false, Ordering::Acquire)
    }

    /// Takes all connections.
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

    /// Records the end of a connection from this mailbox.
    pub(crate) fn left(&self) {
        self.peers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of connections from this mailbox that have not ended.
    pub(crate) fn peers(&self) -> usize {
        self.peers.load(Ordering::Relaxed)
    }
}
