use super::{Decider, Decision, Undecided};
use hodo_farm::node::Job;
use hodo_io::{Clock, Waker, affinity};
use hodo_machine::{Bytes, Instant, Peer};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where events wait for a decider, and decisions for the thread that speaks to the controllers.
pub(super) struct Desk {
    papers: Mutex<Papers>,
    /// An event has come, or the end. Only who can take an event waits for this.
    laid: Condvar,
    /// The end has come, or a decider has ended.
    ended: Condvar,
    /// There are answers.
    some: AtomicBool,
    clock: Clock,
}

struct Papers {
    waiting: VecDeque<Waiting>,
    answers: Vec<Answer>,
    deciders: usize,
    closed: bool,
    waker: Option<Waker>,
}

struct Waiting {
    job: Job,
    /// On this desk's clock.
    laid: Instant,
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
struct Present<'a>(&'a Desk);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.papers().deciders -= 1;
        self.0.ended.notify_all();
    }
}

impl Desk {
    pub(super) fn new(deciders: usize) -> Self {
        let (waiting, answers) = (VecDeque::new(), Vec::new());
        Desk {
            papers: Mutex::new(Papers { waiting, answers, deciders, closed: false, waker: None }),
            laid: Condvar::new(),
            ended: Condvar::new(),
            some: AtomicBool::new(false),
            clock: Clock::start(),
        }
    }

    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is to be woken when there is an answer.
    pub(super) fn set_waker(&self, waker: Waker) {
        self.papers().waker = Some(waker);
    }

    /// An event has come.
    pub(super) fn lay(&self, job: Job, partial: bool, bytes: Bytes) {
        let event = Undecided { run: job.run, event: job.event, partial, bytes };
        let laid = self.clock.now();
        self.papers().waiting.push_back(Waiting { job, laid, event });
        self.laid.notify_one();
    }

    /// A controller is gone: nobody waits for these any more.
    pub(super) fn take_back(&self, peer: Peer) {
        self.papers().waiting.retain(|waiting| waiting.job.peer != peer);
    }

    /// Takes what was decided.
    #[inline]
    pub(super) fn collect(&self, into: &mut VecDeque<Answer>) {
        if self.some.load(Ordering::Relaxed) && self.some.swap(false, Ordering::Acquire) {
            into.extend(self.papers().answers.drain(..));
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
            let Some(Waiting { job, laid, event }) = self.next() else { break };
            let began = self.clock.now();
            let decision = catch_unwind(AssertUnwindSafe(|| decider.decide(&event)))
                .unwrap_or_else(|_| Decision::Failed("the decider has panicked".to_owned()));
            self.answer(Answer { job, decision, began: job.came + (began - laid) });
        }
        drop(decider);
        drop(present);
    }

    /// The next event; nothing at the end.
    fn next(&self) -> Option<Waiting> {
        let waits = |papers: &mut Papers| !papers.closed && papers.waiting.is_empty();
        let mut papers = self.laid.wait_while(self.papers(), waits).unwrap_or_else(PoisonError::into_inner);
        if papers.closed { None } else { papers.waiting.pop_front() }
    }

    /// Lets time pass; answers whether the end has come.
    fn rest(&self, time: Duration) -> bool {
        let waited = self.ended.wait_timeout_while(self.papers(), time, |papers| !papers.closed);
        waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    fn answer(&self, answer: Answer) {
        let mut papers = self.papers();
        papers.answers.push(answer);
        let was_taken = !self.some.swap(true, Ordering::Release);
        if let Some(waker) = papers.waker.as_ref().filter(|_| was_taken) {
            waker.wake();
        }
    }

    /// The end: waits until the deciders are gone, for so long at most.
    pub(super) fn close(&self, within: Duration) {
        let mut papers = self.papers();
        papers.closed = true;
        papers.waiting.clear();
        self.laid.notify_all();
        self.ended.notify_all();
        let waited = self.ended.wait_timeout_while(papers, within, |papers| papers.deciders > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
