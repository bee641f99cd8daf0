//! The way from any thread to the one thread that serves all.

use hodo_io::Waker;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The orders that the serving thread has not taken.
pub(crate) struct Orders<T> {
    waiting: Mutex<VecDeque<T>>,
    /// Whether there are some, so that looking costs nothing if there are none.
    has_some: AtomicBool,
    waker: OnceLock<Waker>,
}

impl<T> Default for Orders<T> {
    fn default() -> Self {
        Orders { waiting: Mutex::default(), has_some: AtomicBool::new(false), waker: OnceLock::new() }
    }
}

impl<T> Orders<T> {
    /// Wakes this thread for orders from now on.
    pub(crate) fn serve_with(&self, waker: Waker) {
        let _ = self.waker.set(waker);
    }

    /// Leaves an order, and wakes the serving thread if it is the first.
    pub(crate) fn push(&self, order: T) {
        if self.push_here(order) {
            self.wake();
        }
    }

    /// Leaves an order on the serving thread itself, which looks before it sleeps. Returns whether it is the first.
    pub(crate) fn push_here(&self, order: T) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(order);
        // Under the lock: whoever takes the orders finds this one, or is woken.
        !self.has_some.swap(true, Ordering::Release)
    }

    /// Wakes the serving thread.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// Returns whether there are orders.
    pub(crate) fn has_some(&self) -> bool {
        self.has_some.load(Ordering::Acquire)
    }

    /// Takes all orders in exchange for an empty queue.
    pub(crate) fn take(&self, into: &mut VecDeque<T>) {
        if self.has_some.load(Ordering::Acquire) {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            self.has_some.store(false, Ordering::Release);
            std::mem::swap(&mut *waiting, into);
        }
    }
}
