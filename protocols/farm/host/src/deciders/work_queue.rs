use super::{Decider, Decision, Undecided};
use hodo_farm::node::Job;
use hodo_io::{Clock, Waker, affinity};
use hodo_machine::{Bytes, Instant, Peer};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The queue of events that wait for a decider, and of decisions for the thread that talks to the controllers.
pub(super) struct WorkQueue {
    state: Mutex<State>,
    /// Signals an event, or the end. Only deciders that can take an event wait for it.
    pushed: Condvar,
    /// Signals the end, or that a decider has ended.
    ended: Condvar,
    /// Whether there are answers.
    some: AtomicBool,
    clock: Clock,
}

struct State {
    waiting: VecDeque<Waiting>,
    answers: Vec<Answer>,
    deciders: usize,
    closed: bool,
    waker: Option<Waker>,
}

struct Waiting {
    job: Job,
    /// The time of the push, on the clock of the queue.
    pushed: Instant,
    event: Undecided,
}

/// A decision.
pub(super) struct Answer {
    pub(super) job: Job,
    pub(super) decision: Decision,
    /// When it began, on the clock of the job.
    pub(super) began: Instant,
}

/// Counts a decider out when it is gone, whatever ended it.
struct Present<'a>(&'a WorkQueue);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.state().deciders -= 1;
        self.0.ended.notify_all();
    }
}

impl WorkQueue {
    pub(super) fn new(deciders: usize) -> Self {
        let (waiting, answers) = (VecDeque::new(), Vec::new());
        WorkQueue {
            state: Mutex::new(State { waiting, answers, deciders, closed: false, waker: None }),
            pushed: Condvar::new(),
            ended: Condvar::new(),
            some: AtomicBool::new(false),
            clock: Clock::start(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the waker that is called when there is an answer.
    pub(super) fn set_waker(&self, waker: Waker) {
        self.state().waker = Some(waker);
    }

    /// Appends an event that has arrived.
    pub(super) fn push(&self, job: Job, partial: bool, bytes: Bytes) {
        let event = Undecided { run: job.run, event: job.event, partial, bytes };
        let pushed = self.clock.now();
        self.state().waiting.push_back(Waiting { job, pushed, event });
        self.pushed.notify_one();
    }

    /// Discards the waiting events of a controller that is gone.
    pub(super) fn withdraw(&self, peer: Peer) {
        self.state().waiting.retain(|waiting| waiting.job.peer != peer);
    }

    /// Moves the decisions into `into`.
    #[inline]
    pub(super) fn collect(&self, into: &mut VecDeque<Answer>) {
        if self.some.load(Ordering::Relaxed) && self.some.swap(false, Ordering::Acquire) {
            into.extend(self.state().answers.drain(..));
        }
    }

    /// Decides until the end.
    pub(super) fn work(&self, mut decider: impl Decider, cpu: Option<usize>) {
        let present = Present(self);
        if let Some(cpu) = cpu {
            // Where that is not allowed, it runs where it is allowed to.
            let _ = affinity::pin_thread(cpu);
        }
        loop {
            if let Some(rest) = decider.rests() {
                if self.rest(rest) {
                    break;
                }
                continue;
            }
            let Some(Waiting { job, pushed, event }) = self.next() else { break };
            let began = self.clock.now();
            let decision = catch_unwind(AssertUnwindSafe(|| decider.decide(&event)))
                .unwrap_or_else(|_| Decision::Failed("the decider has panicked".to_owned()));
            self.answer(Answer { job, decision, began: job.came + (began - pushed) });
        }
        drop(decider);
        drop(present);
    }

    /// Returns the next event, or `None` at the end.
    fn next(&self) -> Option<Waiting> {
        let waits = |state: &mut State| !state.closed && state.waiting.is_empty();
        let mut state = self.pushed.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner);
        if state.closed { None } else { state.waiting.pop_front() }
    }

    /// Waits for `time`, and returns whether the end has come.
    fn rest(&self, time: Duration) -> bool {
        let waited = self.ended.wait_timeout_while(self.state(), time, |state| !state.closed);
        waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    fn answer(&self, answer: Answer) {
        let mut state = self.state();
        state.answers.push(answer);
        let was_taken = !self.some.swap(true, Ordering::Release);
        if let Some(waker) = state.waker.as_ref().filter(|_| was_taken) {
            waker.wake();
        }
    }

    /// Closes the queue, and waits until the deciders are gone, but not longer than `within`.
    pub(super) fn close(&self, within: Duration) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
        self.pushed.notify_all();
        self.ended.notify_all();
        let waited = self.ended.wait_timeout_while(state, within, |state| state.deciders > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
