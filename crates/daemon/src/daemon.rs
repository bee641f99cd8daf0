use crate::{Choice, Ending, Error, Health, Notifier, Pages, PidFile, Pulse, Registry, Signals, Site, State};
use hodo_io::Stop;
use hodo_machine::Instant;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A thread that has not turned for this long counts as stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of a daemon.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of the pages; `None` for no pages. Everybody who can reach the address can read them: use loopback
    /// unless the network is trusted. If the port of a usual one is taken, those ten, twenty, … above it are tried.
    pub http: Option<Choice<SocketAddr>>,
    /// The name under which it is found and steered on its host, as `hub`; without pages nobody asks for it.
    pub name: Choice<String>,
    /// Names that the pages may be asked for over TCP, beside this host's name, `localhost` and every IP address.
    pub names: Vec<String>,
    /// The file that the process number is written to.
    pub pid_file: Option<PathBuf>,
    /// Whether the signals of the whole process are caught, as [`Signals::catch`] does. A program that runs a daemon beside
    /// other work leaves them alone, and stops the daemon by [`Daemon::stop`].
    pub catches_signals: bool,
    /// How long pending work may take once the daemon is to stop. Where it catches signals, the process ends a second later at the latest,
    /// as [`Ending::enforce`] does.
    pub drain: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let name = Choice::Usual("daemon".to_owned());
        Options { http: None, name, names: Vec::new(), pid_file: None, catches_signals: false, drain: Duration::ZERO }
    }
}

/// A daemon apart from its machines: signals, systemd, pages over HTTP, the PID file.
///
/// Each serving thread has a [`Rounds`].
pub struct Daemon {
    signals: Signals,
    notifier: Notifier,
    health: Arc<Health>,
    registry: Arc<Registry>,
    site: Option<Site>,
    ending: Arc<Ending>,
    _pid_file: Option<PidFile>,
}

impl Daemon {
    /// Writes the PID file, serves the pages, and catches signals if the options say so; `more` adds pages.
    ///
    /// # Errors
    /// [`Error::Running`] if another process holds the PID file, [`Error::PidFile`] if it cannot be written,
    /// [`Error::Listen`] or [`Error::NoThread`] if the pages cannot be served, [`Error::Folder`], [`Error::LongPath`] or [`Error::NameTaken`]
    /// if it cannot have a socket of its name, [`Error::Signals`] if signals cannot be caught, [`Error::Start`] if there can be no thread.
    pub fn start(options: &Options, more: impl FnOnce(Pages) -> Pages) -> Result<Self, Error> {
        let pid_file = options.pid_file.as_deref().map(PidFile::create).transpose()?;
        let registry = Arc::new(Registry::new());
        let health = Arc::new(Health::new(PATIENCE));
        let pages = || more(Pages::new(Arc::clone(&registry), Arc::clone(&health)));
        let open = |at: &Choice<SocketAddr>| Site::open(at, &options.name, pages(), &options.names);
        let site = options.http.as_ref().map(open).transpose()?;
        let signals = if options.catches_signals { Signals::catch()? } else { Signals::none() };
        let ending = Ending::new(signals.stop(), options.drain);
        if options.catches_signals {
            ending.enforce()?;
        }
        let notifier = Notifier::from_environment();
        Ok(Daemon { signals, notifier, health, registry, site, ending, _pid_file: pid_file })
    }

    /// Reports that the daemon serves, with a status of one line, to which its pages and its name are added.
    pub fn ready(&self, status: &str) {
        self.health.set(State::Ready);
        let pages = self.site.as_ref().map(|site| format!("; pages on http://{} as {}", site.address(), site.name()));
        self.notifier.ready(&format!("{status}{}", pages.unwrap_or_default()));
    }

    /// Returns the flag that is set when the daemon has to stop.
    #[must_use]
    pub fn stop(&self) -> &Arc<Stop> {
        self.signals.stop()
    }

    /// Returns the end of the daemon, which says how long work may go on.
    #[must_use]
    pub fn ending(&self) -> &Arc<Ending> {
        &self.ending
    }

    /// Returns the metrics.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the health.
    #[must_use]
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Returns the address of the pages, or `None` without pages.
    #[must_use]
    pub fn site(&self) -> Option<SocketAddr> {
        self.site.as_ref().map(Site::address)
    }

    /// Returns the name and the socket under which it is found on its host, or `None` without pages.
    #[must_use]
    pub fn seat(&self) -> Option<(&str, &Path)> {
        self.site.as_ref().map(|site| (site.name(), site.socket()))
    }

    /// Returns the rounds of a serving thread of this name.
    #[must_use]
    pub fn rounds(&self, thread: &str) -> Rounds {
        Rounds {
            pulse: self.health.pulse(thread),
            health: Arc::clone(&self.health),
            notifier: self.notifier.clone(),
            alive_at: Instant::ZERO,
            // A SIGHUP before it serves counts: the configuration was read before.
            reloads: 0,
            signals: self.signals.clone(),
        }
    }
}

/// The duties of a serving thread between two batches of work.
#[derive(Debug)]
pub struct Rounds {
    pulse: Pulse,
    health: Arc<Health>,
    notifier: Notifier,
    alive_at: Instant,
    signals: Signals,
    reloads: usize,
}

impl Rounds {
    /// Shows that the thread turns. Returns `true` if the configuration has to be read again.
    ///
    /// The service manager's watchdog is fed as long as every thread turns.
    pub fn look_in(&mut self, now: Instant) -> bool {
        self.pulse.beat();
        if let Some(every) = self.notifier.watchdog_every()
            && now >= self.alive_at
        {
            self.alive_at = now + every;
            if self.health.is_turning() {
                self.notifier.alive();
            }
        }
        let reloads = self.signals.reloads();
        let asked = reloads != self.reloads;
        self.reloads = reloads;
        if asked {
            self.notifier.reloading();
        }
        asked
    }

    /// Returns `true` if SIGUSR1 came since the last call.
    #[must_use]
    pub fn is_switched(&self) -> bool {
        self.signals.is_switched()
    }

    /// Reports that the configuration has been read again.
    pub fn reloaded(&self, status: &str) {
        self.notifier.ready(status);
    }

    /// Reports that pending work is finished and nothing new is accepted.
    pub fn draining(&self, status: &str) {
        self.health.set(State::Draining);
        self.notifier.stopping(status);
    }
}
