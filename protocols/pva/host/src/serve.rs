//! The daemon that serves the PVs of a file: `hodo pva serve`.

mod access;
mod catalog;
mod command;
mod file;
mod keys;
mod names;
mod page;
mod place;
mod plan;
mod players;
mod puts;
mod recordings;
mod reload;
mod replay;
mod rules;
mod settings;
mod sources;
mod types;

use crate::server::{Bound, ClientName, ClientStatistics, Ended, Pvs, ServerError, Watch};
use catalog::Catalog;
use hodo_daemon::{Daemon, Options, Reply, Rounds};
use hodo_machine::{Address, Closed, Instant, Wait};
use plan::Plan;
use puts::PutLog;
use recordings::Recordings;
use reload::{Reload, Upkeep};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a page waits for the serving thread.
const PATIENCE: Duration = Duration::from_secs(2);
/// The least number of threads for programs, which calls that a later file adds may use, and the most.
const WORKERS_MIN: usize = 4;
const WORKERS_MAX: usize = 64;

/// The settings of the daemon. What is not set is as the file says, otherwise as the environment says, otherwise as usual.
#[derive(Debug, Clone, Default)]
pub struct ServeSettings {
    /// The file of PVs.
    pub file: PathBuf,
    /// The address for clients. Port 0 is any free one.
    pub listen: Option<SocketAddr>,
    /// Whether it answers no searches over UDP and sends no beacons.
    pub is_tcp_only: bool,
    /// The address of the pages.
    pub metrics: Option<SocketAddr>,
    /// Whether there are no pages.
    pub has_no_metrics: bool,
    /// Names that the pages may be asked for, beside this host's.
    pub pages_names: Vec<String>,
    /// The file that the process number is written to.
    pub pid_file: Option<PathBuf>,
    /// The way in which the serving thread waits.
    pub wait: Option<Wait>,
    /// The processor of the serving thread.
    pub cpu: Option<usize>,
    /// Clients at once.
    pub clients: Option<usize>,
    /// How long puts and calls under way may take when the server stops.
    pub drain: Option<Duration>,
    /// Whether everything is sent big-endian.
    pub is_big_endian: bool,
}

/// Why the daemon cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The file cannot be read, or says what cannot be.
    #[error("{0}")]
    File(String),
    /// A source made what its PV cannot hold.
    #[error("{0}")]
    Source(String),
    /// The server cannot serve.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Pages, signals or the file with the process number.
    #[error(transparent)]
    Daemon(#[from] hodo_daemon::Error),
}

/// A daemon that is bound, with its pages. Nothing is served before [`ServeDaemon::run`].
pub struct ServeDaemon {
    bound: Bound,
    daemon: Daemon,
    upkeep: Upkeep,
}

/// Checks a file, and returns how many PVs it has.
///
/// # Errors
/// [`ServeError::File`] with the line, the mistake and what to write instead.
pub fn check(file: &Path) -> Result<usize, ServeError> {
    let plan = Plan::read(file, &Recordings::default())?;
    plan.server.options(&ServeSettings::default(), &plan.place)?;
    Ok(plan.count())
}

impl ServeDaemon {
    /// Reads the file, listens, and starts the pages.
    ///
    /// # Errors
    /// A [`ServeError`] for the file, the address or the pages.
    pub fn start(settings: &ServeSettings) -> Result<Self, ServeError> {
        let plan = Plan::read(&settings.file, &Recordings::default())?;
        let mut options = plan.server.options(settings, &plan.place)?;
        options.workers = plan.workers().clamp(WORKERS_MIN, WORKERS_MAX);
        options.config.rules = plan.rules.clone();
        let bound = Bound::new(options)?;
        let log = Arc::new(PutLog::default());
        let daemon = start_daemon(&plan.server.pages(settings), &bound.pvs(), &log)?;
        let upkeep = Upkeep::start(settings.file.clone(), plan, Catalog::new(bound.pvs(), log))?;
        Ok(ServeDaemon { bound, daemon, upkeep })
    }

    /// Returns the address on which clients connect.
    #[must_use]
    pub fn address(&self) -> Address {
        Address::Tcp(self.bound.address())
    }

    /// Returns what it shares with every daemon: signals, pages, health.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// A [`ServeError`] if the network or a source fails.
    pub fn run(self) -> Result<(), ServeError> {
        let ServeDaemon { bound, daemon, upkeep } = self;
        let (stop, pvs, reload) = (Arc::clone(daemon.stop()), bound.pvs(), upkeep.reload_request());
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            let (ending, failure) = (&stop, &failure);
            let made = std::thread::Builder::new().name("pva sources".to_owned()).spawn_scoped(scope, move || {
                if let Err(why) = upkeep.run(ending) {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    ending.store(true, std::sync::atomic::Ordering::Relaxed);
                    pvs.ring();
                }
            });
            made.map_err(|why| ServerError::NoThread(why.to_string()))?;
            let served = bound.run(Observer { rounds: daemon.rounds("pva server"), reload }, &stop);
            // The sources end with the server, whatever ended it.
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            served
        })?;
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// Starts pages, signals and the messages to the service manager.
fn start_daemon(options: &Options, pvs: &Pvs, log: &Arc<PutLog>) -> Result<Daemon, ServeError> {
    let (shown, puts) = (pvs.clone(), Arc::clone(log));
    let daemon = Daemon::start(options, |pages| {
        let pages = pages.with(page::PUTS, move || Reply::text(200, puts.text()));
        pages.with(page::STATS, move || match shown.state(PATIENCE) {
            Some(state) => Reply::text(200, page::text(&state)),
            None => Reply::text(503, "the server has not begun, or is stuck\n"),
        })
    })?;
    let told = pvs.clone();
    daemon.registry().source(move |exposition| {
        if let Some(state) = told.state(PATIENCE) {
            page::metrics(&state, exposition);
        }
    });
    Ok(daemon)
}

/// The log lines of the serving thread, and its rounds.
struct Observer {
    rounds: Rounds,
    reload: Arc<Reload>,
}

impl Watch for Observer {
    fn connected(&mut self, client: &ClientName) {
        tracing::debug!("{client} has connected");
    }

    fn disconnected(&mut self, client: &ClientName, statistics: &ClientStatistics, why: &Ended) {
        let ClientStatistics { channels, subscriptions, .. } = statistics;
        match why {
            Ended::Closed(Closed::Finished | Closed::Reset) => tracing::debug!("{client} is gone: {why}"),
            _ => tracing::warn!("{client} is gone, with {channels} channels and {subscriptions} subscriptions: {why}"),
        }
    }

    fn look_in(&mut self, now: Instant) {
        if self.rounds.look_in(now) {
            self.reload.ask();
        }
        if let Some(outcome) = self.reload.outcome() {
            self.rounds.reloaded(&outcome);
        }
    }

    fn draining(&mut self) {
        self.rounds.draining("answering puts and calls under way");
    }
}
