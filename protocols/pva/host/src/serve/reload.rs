//! The thread beside the serving one: it posts the values of sources, and reads the file again when asked to.

use super::ServeError;
use super::catalog::Catalog;
use super::plan::Plan;
use super::recordings::Recordings;
use super::settings::ServerTable;
use hodo_io::{Clock, Stop};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A request to read the file again, and what became of it.
#[derive(Debug, Default)]
pub struct Reload {
    is_asked: AtomicBool,
    has_outcome: AtomicBool,
    outcome: Mutex<String>,
}

impl Reload {
    /// Requests that the file be read again.
    pub fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// Returns what became of the last request, once.
    pub fn outcome(&self) -> Option<String> {
        self.has_outcome
            .swap(false, Ordering::Acquire)
            .then(|| self.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn answer(&self, outcome: String) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
        self.has_outcome.store(true, Ordering::Release);
    }
}

/// The PVs and sources of a file, which may be read again.
pub struct Upkeep {
    path: PathBuf,
    server: ServerTable,
    workers: usize,
    recordings: Recordings,
    catalog: Catalog,
    clock: Clock,
    reload: Arc<Reload>,
}

impl Upkeep {
    /// Serves the PVs of a plan.
    ///
    /// # Errors
    /// [`ServeError::Source`] if a value does not fit into its PV.
    pub fn start(path: PathBuf, plan: Plan, mut catalog: Catalog) -> Result<Self, ServeError> {
        let clock = Clock::start();
        catalog.become_as(&plan, clock.now())?;
        let workers = plan.workers();
        Ok(Upkeep {
            path,
            server: plan.server,
            workers,
            recordings: plan.recordings,
            catalog,
            clock,
            reload: Arc::default(),
        })
    }

    /// Returns where the file is asked to be read again.
    pub fn reload_request(&self) -> Arc<Reload> {
        Arc::clone(&self.reload)
    }

    /// Posts the values of all sources when they are due, until `stop` is set.
    ///
    /// # Errors
    /// [`ServeError::Source`] if a source makes what its PV cannot hold.
    pub fn run(mut self, stop: &Stop) -> Result<(), ServeError> {
        while !stop.load(Ordering::Relaxed) {
            if self.reload.is_asked.swap(false, Ordering::Relaxed) {
                let outcome = self.read_again();
                self.reload.answer(outcome);
            }
            let idle = self.catalog.sources.turn(&self.clock)?;
            if !idle.is_zero() {
                hodo_io::sleep(idle);
            }
        }
        Ok(())
    }

    /// Reads the file again. One that is wrong changes nothing.
    fn read_again(&mut self) -> String {
        let read = Plan::read(&self.path, &self.recordings).and_then(|plan| {
            let changes = self.catalog.become_as(&plan, self.clock.now())?;
            Ok((plan, changes))
        });
        let (plan, changes) = match read {
            Ok(read) => read,
            Err(why) => {
                let status = format!("{why}; the PVs stay as they were");
                tracing::error!("{status}");
                return status;
            }
        };
        if plan.server != self.server {
            tracing::warn!("{}: [server] has changed: restart the server for it", self.path.display());
        }
        if plan.workers() > self.workers.max(super::WORKERS_MIN) {
            tracing::warn!(
                "{}: calls beyond those of the first file wait for a worker until a restart",
                self.path.display()
            );
        }
        self.recordings = plan.recordings;
        let status = format!("{} was read again: {changes}", self.path.display());
        tracing::info!("{status}");
        status
    }
}
