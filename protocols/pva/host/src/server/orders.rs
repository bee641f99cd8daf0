//! The way from any thread to the serving thread.

use super::pv::Shared;
use crate::machines::Value;
use crate::machines::wire::Status;
use hodo_io::Waker;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// An order for the serving thread. There are at most two for each PV, and one for each put or call under way.
pub(crate) enum Order {
    /// Serve a PV with this value.
    Serve(Arc<Shared>, Box<Value>),
    /// Serve it no more.
    Remove(Arc<Shared>),
    /// Take the updates that wait in a PV.
    Post(Arc<Shared>),
    /// Answer a put or a call.
    Answer { call: u64, result: Result<Option<Box<Value>>, Status> },
}

/// The orders that the serving thread has not taken.
#[derive(Default)]
pub(crate) struct Orders {
    waiting: Mutex<VecDeque<Order>>,
    /// Whether there are some, so that looking costs nothing if there are none.
    has_some: AtomicBool,
    waker: OnceLock<Waker>,
}

impl Orders {
    /// Wakes this thread for orders from now on.
    pub(crate) fn serve_with(&self, waker: Waker) {
        let _ = self.waker.set(waker);
    }

    /// Leaves an order, and wakes the serving thread if it is the first.
    pub(crate) fn push(&self, order: Order) {
        if self.push_here(order)
            && let Some(waker) = self.waker.get()
        {
            waker.wake();
        }
    }

    /// Leaves an order on the serving thread itself, which looks before it sleeps. Returns whether it is the first.
    pub(crate) fn push_here(&self, order: Order) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(order);
        // Under the lock: whoever takes the orders finds this one, or is woken.
        !self.has_some.swap(true, Ordering::Release)
    }

    /// Returns whether there are orders.
    pub(crate) fn has_some(&self) -> bool {
        self.has_some.load(Ordering::Acquire)
    }

    /// Takes all orders in exchange for an empty queue.
    pub(crate) fn take(&self, into: &mut VecDeque<Order>) {
        if self.has_some.load(Ordering::Acquire) {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            self.has_some.store(false, Ordering::Release);
            std::mem::swap(&mut *waiting, into);
        }
    }
}
