//! The daemon that serves the PVs of a file: `hodo pva serve`.

mod command;
mod file;
mod names;
mod page;
mod puts;
mod replay;
mod rules;
mod sources;
mod types;

use crate::machines::{Order, Value};
use crate::server::{Bound, ClientName, ClientStatistics, Ended, Pvs, ServerError, ServerOptions, Watch};
use command::Program;
use file::{CallTable, File, Place, Puts, PvTable};
use hodo_daemon::{Daemon, Options, Reply, Rounds};
use hodo_machine::{Address, Closed, Instant, Wait};
use puts::PutLog;
use rules::{Beyond, Rules};
use sources::{Recipe, Source};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a page waits for the serving thread.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the program of a call may take unless the file says otherwise, and how many run at once.
const TIMEOUT: Duration = Duration::from_secs(10);
const CONCURRENT: usize = 4;
/// Programs of all calls that run at once.
const WORKERS_MAX: usize = 64;

/// The settings of the daemon.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// The file of PVs.
    pub file: PathBuf,
    /// The address for clients instead of those that the environment names. Port 0 is any free one.
    pub listen: Option<SocketAddr>,
    /// Whether it answers searches over UDP and sends beacons.
    pub is_found: bool,
    /// Pages, and the file with the process number.
    pub daemon: Options,
    /// The way in which the serving thread waits.
    pub wait: Wait,
    /// The processor of the serving thread; `None` leaves the choice to the kernel.
    pub cpu: Option<usize>,
    /// Clients at once.
    pub clients: usize,
    /// How long puts and calls under way may take when the server stops.
    pub drain: Duration,
    /// The byte order of what is sent.
    pub order: Order,
}

impl Default for ServeSettings {
    fn default() -> Self {
        let ServerOptions { clients_max, drain, wait, cpu, .. } = ServerOptions::default();
        ServeSettings {
            file: PathBuf::new(),
            listen: None,
            is_found: true,
            daemon: Options::default(),
            wait,
            cpu,
            clients: clients_max,
            drain,
            order: Order::NATIVE,
        }
    }
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
    sources: Vec<Source>,
}

/// The contents of a file, checked.
struct Plan {
    file: File,
    place: Place,
    folder: PathBuf,
    /// The first value and the source of each table of PVs.
    values: Vec<(Value, Option<Recipe>)>,
}

/// Checks a file, and returns how many PVs it has.
///
/// # Errors
/// [`ServeError::File`] with the line, the mistake and what to write instead.
pub fn check(file: &Path) -> Result<usize, ServeError> {
    let plan = Plan::read(file)?;
    let families = plan.file.pv.iter().map(|table| &table.name).chain(plan.file.call.iter().map(|table| &table.name));
    Ok(families.map(|family| names::names(family.get_ref()).map_or(0, |names| names.len())).sum())
}

impl ServeDaemon {
    /// Reads the file, listens, and starts the pages.
    ///
    /// # Errors
    /// A [`ServeError`] for the file, the address or the pages.
    pub fn start(settings: &ServeSettings) -> Result<Self, ServeError> {
        let plan = Plan::read(&settings.file)?;
        let mut options = ServerOptions {
            is_found: settings.is_found,
            clients_max: settings.clients,
            workers: plan.workers(),
            drain: settings.drain,
            wait: settings.wait,
            cpu: settings.cpu,
            ..ServerOptions::from_environment()?
        };
        if let Some(listen) = settings.listen {
            options = options.at(listen);
        }
        options.config.session.order = settings.order;
        let bound = Bound::new(options)?;
        let log = Arc::new(PutLog::default());
        let daemon = start_daemon(&settings.daemon, &bound.pvs(), &log)?;
        let sources = plan.serve(&bound.pvs(), &log)?;
        Ok(ServeDaemon { bound, daemon, sources })
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
        let ServeDaemon { bound, daemon, sources } = self;
        let (stop, pvs) = (Arc::clone(daemon.stop()), bound.pvs());
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            let (ending, failure) = (&stop, &failure);
            let made = std::thread::Builder::new().name("pva sources".to_owned()).spawn_scoped(scope, move || {
                if let Err(why) = sources::run(sources, ending) {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    ending.store(true, std::sync::atomic::Ordering::Relaxed);
                    pvs.ring();
                }
            });
            made.map_err(|why| ServerError::NoThread(why.to_string()))?;
            let served = bound.run(Observer { rounds: daemon.rounds("pva server") }, &stop);
            // The sources end with the server, whatever ended it.
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            served
        })?;
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

impl Plan {
    fn read(path: &Path) -> Result<Self, ServeError> {
        let (file, place) = file::read(path)?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let prepare = |table: &PvTable| {
            let wrong = |why| place.wrong("[[pv]]", &table.name, why);
            let value = types::value(table).map_err(wrong)?;
            let recipe = Recipe::of(table, &value, &folder).map_err(wrong)?;
            Ok((value, recipe))
        };
        let values = file.pv.iter().map(prepare).collect::<Result<Vec<_>, ServeError>>()?;
        for table in &file.call {
            if table.command.is_empty() {
                return Err(place.wrong(
                    "[[call]]",
                    &table.name,
                    "command: write a program and its arguments, as [\"python3\", \"add.py\"]",
                ));
            }
        }
        Ok(Plan { file, place, folder, values })
    }

    /// Returns the number of threads that programs need, so that one call does not keep another waiting.
    fn workers(&self) -> usize {
        let concurrent = |table: &CallTable| table.concurrent.unwrap_or(CONCURRENT);
        self.file.call.iter().map(concurrent).sum::<usize>().clamp(1, WORKERS_MAX)
    }

    /// Adds the PVs to a server, and returns their sources.
    fn serve(self, pvs: &Pvs, log: &Arc<PutLog>) -> Result<Vec<Source>, ServeError> {
        let mut sources = Vec::new();
        for (table, (value, recipe)) in self.file.pv.iter().zip(&self.values) {
            let rules = Rules::of(table);
            for name in self.names("[[pv]]", &table.name)? {
                let mut value = value.clone();
                rules.judge(&mut value, Beyond::None).map_err(|why| self.place.wrong("[[pv]]", &table.name, why))?;
                let pv = pvs.pv(&name, value);
                let pv = match table.put {
                    Puts::Refuse => pv,
                    puts => {
                        let log = (puts == Puts::Log).then(|| Arc::clone(log));
                        pv.check_puts(move |latest: &Value, put: &mut Value, client: &ClientName| {
                            rules.check(latest, put)?;
                            log.iter().for_each(|log| log.add(&name, client, put));
                            rules.judge(put, Beyond::of(latest)).map_err(|why| why.to_string())
                        })
                    }
                };
                let pv = pv.serve();
                sources.extend(recipe.as_ref().map(|recipe| recipe.source(pv, rules)));
            }
        }
        for table in &self.file.call {
            let (timeout, concurrent) = (table.timeout.unwrap_or(TIMEOUT), table.concurrent.unwrap_or(CONCURRENT));
            let folder = if self.folder.as_os_str().is_empty() { PathBuf::from(".") } else { self.folder.clone() };
            let program = Arc::new(Program { command: table.command.clone(), folder, timeout });
            for name in self.names("[[call]]", &table.name)? {
                let program = Arc::clone(&program);
                pvs.pv(name, types::called()).on_call(move |call| program.answer(call)).concurrent(concurrent).serve();
            }
        }
        Ok(sources)
    }

    fn names(&self, title: &str, family: &toml::Spanned<String>) -> Result<Vec<String>, ServeError> {
        names::names(family.get_ref()).map_err(|why| self.place.wrong(title, family, why))
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
            self.rounds.reloaded("serving; PVs change only by a restart");
        }
    }

    fn draining(&mut self) {
        self.rounds.draining("answering puts and calls under way");
    }
}
