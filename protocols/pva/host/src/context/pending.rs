//! The outcome of an operation that a context does for another thread.

use super::callbacks::Job;
use super::{Core, Order, Running};
use crate::client::ClientError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of no operation.
const NOT_BEGUN: u32 = u32::MAX;

/// The identity of an execution, by which it can be cancelled.
#[derive(Clone)]
pub(super) struct Ticket(Arc<AtomicU32>);

impl Ticket {
    fn new() -> Self {
        Ticket(Arc::new(AtomicU32::new(NOT_BEGUN)))
    }

    /// Notes the operation that executes it, on the connections' thread.
    pub(super) fn begin(&self, operation: u32) {
        self.0.store(operation, Ordering::Relaxed);
    }

    /// Returns the operation that executes it.
    pub(super) fn operation(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|number| *number != NOT_BEGUN)
    }

    pub(super) fn is(&self, other: &Ticket) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The place of one execution among those that may be under way.
pub(super) struct Permit(Arc<Core>);

impl Permit {
    /// Takes a place.
    ///
    /// # Errors
    /// [`ClientError::Overloaded`] if there is none.
    pub(super) fn take(core: &Arc<Core>) -> Result<Permit, ClientError> {
        let max = core.operations_max;
        let taken =
            core.under_way.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < max).then(|| now + 1));
        taken.map(|_| Permit(Arc::clone(core))).map_err(|_| ClientError::Overloaded { max })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

type Callback<T> = Box<dyn FnOnce(Result<T, ClientError>) + Send>;

enum State<T> {
    Waiting,
    Then(Callback<T>),
    Done(Result<T, ClientError>),
    Taken,
}

struct Slot<T> {
    state: Mutex<State<T>>,
    done: Condvar,
}

impl<T> Slot<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of an execution at the connections' thread. Dropped without a result, it reports that the context is closed.
pub(super) struct Completer<T: Send + 'static> {
    slot: Arc<Slot<T>>,
    permit: Option<Permit>,
    pub(super) ticket: Ticket,
}

impl<T: Send + 'static> Completer<T> {
    pub(super) fn finish(mut self, result: Result<T, ClientError>) {
        self.end(result);
    }

    fn end(&mut self, result: Result<T, ClientError>) {
        let Some(permit) = self.permit.take() else { return };
        let mut state = self.slot.state();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Then(callback) => {
                drop(state);
                let core = Arc::clone(&permit.0);
                // The place stays taken until the callback has run, which bounds how many wait for a worker.
                let run = move || {
                    callback(result);
                    drop(permit);
                };
                core.workers.push(Job::Once(Box::new(run)));
            }
            _ => {
                // Before anybody knows: who has the outcome has the place, too.
                drop(permit);
                *state = State::Done(result);
                drop(state);
                self.slot.done.notify_all();
            }
        }
    }
}

impl<T: Send + 'static> Drop for Completer<T> {
    fn drop(&mut self) {
        self.end(Err(ClientError::Closed));
    }
}

/// An operation under way: wait for its outcome, look whether it is there, or leave a callback. Dropped before its end, it is cancelled.
#[must_use = "a pending operation that is dropped is cancelled"]
pub struct Pending<T: Send + 'static> {
    slot: Arc<Slot<T>>,
    ticket: Ticket,
    running: Arc<Running>,
}

impl<T: Send + 'static> Pending<T> {
    /// Creates the two ends of an execution.
    ///
    /// # Errors
    /// [`ClientError::Overloaded`] if too many are under way.
    pub(super) fn pair(running: &Arc<Running>) -> Result<(Pending<T>, Completer<T>), ClientError> {
        let permit = Some(Permit::take(&running.core)?);
        let slot = Arc::new(Slot { state: Mutex::new(State::Waiting), done: Condvar::new() });
        let ticket = Ticket::new();
        let completer = Completer { slot: Arc::clone(&slot), permit, ticket: ticket.clone() };
        Ok((Pending { slot, ticket, running: Arc::clone(running) }, completer))
    }

    /// Waits for the outcome, which comes within the context's timeout.
    ///
    /// # Errors
    /// The [`ClientError`] of the operation.
    pub fn wait(self) -> Result<T, ClientError> {
        let state = self.slot.state();
        let waited = self.slot.done.wait_while(state, |state| matches!(state, State::Waiting));
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Done(result) => result,
            _ => Err(ClientError::Closed),
        }
    }

    /// Waits for the outcome for some time. Returns `None` if it is not there by then, or was returned before.
    pub fn wait_within(&mut self, timeout: Duration) -> Option<Result<T, ClientError>> {
        let state = self.slot.state();
        let waited = self.slot.done.wait_timeout_while(state, timeout, |state| matches!(state, State::Waiting));
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Done(result) => Some(result),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Returns whether the outcome is there.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !matches!(*self.slot.state(), State::Waiting)
    }

    /// Leaves a function that one of the context's workers calls with the outcome. It may call whatever waits.
    pub fn then(self, callback: impl FnOnce(Result<T, ClientError>) + Send + 'static) {
        let mut state = self.slot.state();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Waiting => *state = State::Then(Box::new(callback)),
            State::Done(result) => {
                drop(state);
                self.running.core.workers.push(Job::Once(Box::new(move || callback(result))));
            }
            State::Then(_) | State::Taken => {}
        }
    }
}

impl<T: Send + 'static> Drop for Pending<T> {
    fn drop(&mut self) {
        if !self.is_done() {
            self.running.core.push(Order::Cancel(self.ticket.clone()));
        }
    }
}
