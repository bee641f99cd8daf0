//! Events on their way from the connections' thread to who takes them: a thread that waits, or a callback on a worker.

use super::callbacks::{Job, Lane, quietly};
use super::{Core, Order};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A function that is called with each event.
pub(super) type Callback<E> = Box<dyn FnMut(E) + Send>;

/// A bounded queue of events, and the callback that takes them if there is one.
pub(super) struct Feed<E> {
    core: Arc<Core>,
    state: Mutex<FeedState<E>>,
    some: Condvar,
    callback: Option<Mutex<Callback<E>>>,
    /// The number of the operation or the channel that fills it.
    source: AtomicU32,
}

struct FeedState<E> {
    queue: VecDeque<E>,
    /// Whether the source has kept back events for which there was no room.
    is_held: bool,
    /// Whether a worker is to run the callback.
    is_ordered: bool,
    /// Whether nobody takes events any more.
    is_left: bool,
    /// Whether no further events come.
    is_over: bool,
}

impl<E: Send + 'static> Feed<E> {
    pub(super) fn new(core: &Arc<Core>, callback: Option<Callback<E>>) -> Arc<Self> {
        let state =
            FeedState { queue: VecDeque::new(), is_held: false, is_ordered: false, is_left: false, is_over: false };
        Arc::new(Feed {
            core: Arc::clone(core),
            state: Mutex::new(state),
            some: Condvar::new(),
            callback: callback.map(Mutex::new),
            source: AtomicU32::new(u32::MAX),
        })
    }

    pub(super) fn source(&self) -> u32 {
        self.source.load(Ordering::Relaxed)
    }

    pub(super) fn set_source(&self, number: u32) {
        self.source.store(number, Ordering::Relaxed);
    }

    /// Adds events from a source while there is room. If it may have more, it is to be asked again once they are taken.
    pub(super) fn fill(self: &Arc<Self>, max: usize, mut next: impl FnMut() -> Option<E>) {
        let mut state = self.state();
        state.is_held = loop {
            if state.queue.len() >= max {
                break true;
            }
            match next() {
                Some(event) => state.queue.push_back(event),
                None => break false,
            }
        };
        self.announce(state);
    }

    /// Puts an event in the place of those that nobody has taken.
    pub(super) fn replace(self: &Arc<Self>, event: E) {
        let mut state = self.state();
        state.queue.clear();
        state.queue.push_back(event);
        self.announce(state);
    }

    /// Adds the last event.
    pub(super) fn end(self: &Arc<Self>, last: Option<E>) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_over, true) {
            state.queue.extend(last);
            self.announce(state);
        }
    }

    /// Returns whether its source has kept events back.
    pub(super) fn is_held(&self) -> bool {
        self.state().is_held
    }

    /// Drops the events, and those that still come: nobody takes them.
    pub(super) fn leave(&self) {
        let mut state = self.state();
        state.is_left = true;
        state.queue.clear();
    }

    /// Takes all events, after waiting for some. Returns `false` if no more come.
    pub(super) fn take(&self, into: &mut VecDeque<E>, timeout: Duration) -> bool {
        let waits = |state: &mut FeedState<E>| state.queue.is_empty() && !state.is_over;
        let (mut state, _) =
            self.some.wait_timeout_while(self.state(), timeout, waits).unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.queue, into);
        let goes_on = !state.is_over || !into.is_empty();
        self.order_more(state);
        goes_on
    }

    fn state(&self) -> MutexGuard<'_, FeedState<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(self: &Arc<Self>, mut state: MutexGuard<'_, FeedState<E>>) {
        if state.is_left {
            return state.queue.clear();
        }
        if self.callback.is_none() {
            self.some.notify_all();
        } else if !state.queue.is_empty() && !std::mem::replace(&mut state.is_ordered, true) {
            drop(state);
            self.core.workers.push(Job::Lane(Arc::clone(self) as Arc<dyn Lane>));
        }
    }

    /// Requests from the source what it has kept back.
    fn order_more(&self, mut state: MutexGuard<'_, FeedState<E>>) {
        if std::mem::take(&mut state.is_held) {
            drop(state);
            self.core.push(Order::Refill(self.source()));
        }
    }
}

impl<E: Send + 'static> Lane for Feed<E> {
    fn run(&self) -> bool {
        let mut events = VecDeque::new();
        let mut state = self.state();
        std::mem::swap(&mut state.queue, &mut events);
        self.order_more(state);
        if let Some(callback) = &self.callback {
            let mut callback = callback.lock().unwrap_or_else(PoisonError::into_inner);
            for event in events {
                if self.state().is_left {
                    break;
                }
                quietly(|| callback(event));
            }
        }
        let mut state = self.state();
        state.is_ordered = !state.queue.is_empty();
        state.is_ordered
    }
}
