//! The threads that run callbacks, so that one that waits keeps no connection waiting.

use crate::client::ClientError;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// A job for a worker: an outcome, of which there are as many as operations may be under way, or a lane with events, each once.
pub(super) enum Job {
    Once(Box<dyn FnOnce() + Send>),
    Lane(Arc<dyn Lane>),
}

/// Callbacks that run one after the other.
pub(super) trait Lane: Send + Sync {
    /// Runs those that wait. Returns whether further ones have come meanwhile.
    fn run(&self) -> bool;
}

/// The jobs that wait for a worker, in turn.
#[derive(Default)]
pub(super) struct Workers {
    ready: Mutex<Ready>,
    some: Condvar,
}

#[derive(Default)]
struct Ready {
    jobs: VecDeque<Job>,
    is_over: bool,
}

impl Workers {
    /// Starts a thread.
    ///
    /// # Errors
    /// [`ClientError::NoThread`] if it cannot be started.
    pub(super) fn start(self: &Arc<Self>, number: usize) -> Result<JoinHandle<()>, ClientError> {
        let workers = Arc::clone(self);
        let thread = Builder::new().name(format!("pva callback {number}")).spawn(move || workers.work());
        thread.map_err(|why| ClientError::NoThread(why.to_string()))
    }

    /// Leaves a job. After the end it is run here: somebody has to hear of the outcome, or of the last event.
    pub(super) fn push(&self, job: Job) {
        let mut ready = self.ready();
        if ready.is_over {
            drop(ready);
            match job {
                Job::Once(run) => quietly(run),
                Job::Lane(lane) => while lane.run() {},
            }
            return;
        }
        ready.jobs.push_back(job);
        drop(ready);
        self.some.notify_one();
    }

    /// Ends the threads once they have run what waits.
    pub(super) fn end(&self) {
        self.ready().is_over = true;
        self.some.notify_all();
    }

    fn work(&self) {
        let mut ready = self.ready();
        loop {
            while ready.jobs.is_empty() && !ready.is_over {
                ready = self.some.wait(ready).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(job) = ready.jobs.pop_front() else { return };
            drop(ready);
            let more = match job {
                Job::Once(run) => {
                    quietly(run);
                    None
                }
                Job::Lane(lane) => lane.run().then_some(lane),
            };
            ready = self.ready();
            // Behind the others, so that one monitor does not keep them waiting.
            ready.jobs.extend(more.map(Job::Lane));
        }
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a callback whose panic ends nothing but itself.
pub(super) fn quietly(callback: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(callback)).is_err() {
        tracing::error!("a callback of a pvAccess context panicked; the context goes on");
    }
}
