//! The threads that run handlers.

use super::handlers::{Call, Put};
use super::pv::Shared;
use super::{Core, ServerError};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Puts and calls that wait for a handler, and the PVs that have some, in turn.
pub(crate) struct Workers {
    ready: Mutex<Ready>,
    some: Condvar,
    waiting_max: usize,
    pub(crate) overloaded: AtomicU64,
}

#[derive(Default)]
struct Ready {
    pvs: VecDeque<Arc<Shared>>,
    waiting: usize,
    is_over: bool,
}

/// The puts and calls of one PV, handled in their order.
pub(crate) struct Lane {
    waiting: VecDeque<Job>,
    running: usize,
    concurrent: usize,
}

/// A put or a call.
pub(crate) enum Job {
    Put(Put),
    Call(Call),
}

/// Threads that end with this.
pub(crate) struct Crew {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
}

impl Lane {
    pub(crate) fn new(concurrent: usize) -> Self {
        Lane { waiting: VecDeque::new(), running: 0, concurrent }
    }
}

impl Workers {
    pub(crate) fn new(waiting_max: usize) -> Self {
        Workers { ready: Mutex::default(), some: Condvar::new(), waiting_max, overloaded: AtomicU64::new(0) }
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// [`ServerError::NoThread`] if one cannot be started.
    pub(crate) fn start(core: &Arc<Core>, count: usize) -> Result<Crew, ServerError> {
        let mut crew = Crew { core: Arc::clone(core), threads: Vec::new() };
        for number in 0..count.max(1) {
            let core = Arc::clone(core);
            let thread = Builder::new().name(format!("pva worker {number}")).spawn(move || core.workers.work());
            crew.threads.push(thread.map_err(|why| ServerError::NoThread(why.to_string()))?);
        }
        Ok(crew)
    }

    /// Returns the number of puts and calls that wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.ready().waiting
    }

    /// Leaves a job of a PV. Refuses it if too many are waiting.
    pub(crate) fn push(&self, pv: &Arc<Shared>, job: Job) {
        let mut ready = self.ready();
        if ready.waiting >= self.waiting_max {
            drop(ready);
            self.overloaded.fetch_add(1, Ordering::Relaxed);
            return job.refuse("too many requests are waiting for this server's handlers: try again later");
        }
        ready.waiting += 1;
        let mut lane = pv.lane();
        lane.waiting.push_back(job);
        // A PV stands once in the queue for each handler that may begin.
        if lane.running < lane.concurrent {
            lane.running += 1;
            ready.pvs.push_back(Arc::clone(pv));
            self.some.notify_one();
        }
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut ready = self.ready();
        loop {
            while ready.pvs.is_empty() && !ready.is_over {
                ready = self.some.wait(ready).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(pv) = ready.pvs.pop_front() else { return };
            let job = pv.lane().waiting.pop_front();
            let Some(job) = job else {
                pv.lane().running -= 1;
                continue;
            };
            ready.waiting -= 1;
            drop(ready);
            job.run(&pv);
            ready = self.ready();
            let mut lane = pv.lane();
            if lane.waiting.is_empty() {
                lane.running -= 1;
            } else {
                drop(lane);
                // Behind the others, so that one PV does not keep them waiting.
                ready.pvs.push_back(pv);
            }
        }
    }

    /// Ends the threads, each after the handler that it runs. Jobs that wait are refused.
    pub(crate) fn end(&self) {
        let mut ready = self.ready();
        ready.is_over = true;
        let left: Vec<Arc<Shared>> = ready.pvs.drain(..).collect();
        drop(ready);
        for pv in left {
            let jobs = std::mem::take(&mut pv.lane().waiting);
            jobs.into_iter().for_each(|job| job.refuse("the server is about to stop: try again in a moment"));
        }
        self.some.notify_all();
    }
}

impl Shared {
    fn lane(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn run(self, pv: &Shared) {
        let run = || match self {
            Job::Put(put) => {
                if let Some(handler) = &pv.handlers.put {
                    handler(put);
                }
            }
            Job::Call(call) => {
                if let Some(handler) = &pv.handlers.call {
                    handler(call);
                }
            }
        };
        // What it was to answer is refused when it is dropped.
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            tracing::error!("{}: the handler panicked; the client was told that it has no answer", pv.name);
        }
    }

    fn refuse(self, why: &str) {
        match self {
            Job::Put(put) => put.refuse(why),
            Job::Call(call) => call.refuse(why),
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.core.workers.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
