use crate::{Error, Health, Notifier, Pages, PidFile, Pulse, Registry, Signals, Site, State};
use hodo_io::Stop;
use hodo_machine::Instant;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A thread that has not turned for this long counts as stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of a daemon.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The address of the pages; `None` for no pages. Everybody who can reach the address can read them: use loopback
    /// unless the network is trusted.
    pub http: Option<SocketAddr>,
    /// Names that the pages may be asked for over TCP, beside this host's name, `localhost` and every IP address.
    pub names: Vec<String>,
    /// The file that the process number is written to.
    pub pid_file: Option<PathBuf>,
    /// Whether the signals of the whole process are caught, as [`Signals::catch`] does. A program that runs a daemon beside
    /// other work leaves them alone, and stops the daemon by [`Daemon::stop`].
    pub catches_signals: bool,
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
    _pid_file: Option<PidFile>,
}

impl Daemon {
    /// Writes the PID file, serves the pages, and catches signals if the options say so; `more` adds pages.
    ///
    /// # Errors
    /// [`Error::Running`] if another process holds the PID file, [`Error::PidFile`] if it cannot be written,
    /// [`Error::Listen`] or [`Error::NoThread`] if the pages cannot be served, [`Error::Signals`] if signals cannot be caught.
    pub fn start(options: &Options, more: impl FnOnce(Pages) -> Pages) -> Result<Self, Error> {
        let pid_file = options.pid_file.as_deref().map(PidFile::create).transpose()?;
        let registry = Arc::new(Registry::new());
        let health = Arc::new(Health::new(PATIENCE));
        let pages = || more(Pages::new(Arc::clone(&registry), Arc::clone(&health)));
        let site = options.http.map(|address| Site::open(address, pages(), &options.names)).transpose()?;
        let signals = if options.catches_signals { Signals::catch()? } else { Signals::none() };
        let notifier = Notifier::from_environment();
        Ok(Daemon { signals, notifier, health, registry, site, _pid_file: pid_file })
    }

    /// Reports that the daemon serves, with a status of one line.
    pub fn ready(&self, status: &str) {
        self.health.set(State::Ready);
        self.notifier.ready(status);
    }

    /// Returns the flag that is set when the daemon has to stop.
    #[must_use]
    pub fn stop(&self) -> &Arc<Stop> {
        self.signals.stop()
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

    /// Returns the rounds of a serving thread of this name.
    #[must_use]
    pub fn rounds(&self, thread: &str) -> Rounds {
        Rounds {
            pulse: self.health.pulse(thread),
            health: Arc::clone(&self.health),
            notifier: self.notifier.clone(),
            alive_at: Instant::ZERO,
            reloads: self.signals.reloads(),
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
