use crate::{Error, Health, Notifier, Pages, PidFile, Pulse, Registry, Signals, Site, State};
use hodo_io::Stop;
use hodo_machine::Instant;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A thread that does not turn for so long is taken for stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a daemon runs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where its pages are; `None`: nowhere. They are for everybody who can reach the address: use loopback, unless the
    /// network is trusted.
    pub http: Option<SocketAddr>,
    /// Where its process number is written.
    pub pid_file: Option<PathBuf>,
}

/// What a daemon is beside what it serves: signals, systemd, pages over HTTP, its process number.
///
/// The threads that serve do their part with [`Rounds`].
pub struct Daemon {
    signals: Signals,
    notifier: Notifier,
    health: Arc<Health>,
    registry: Arc<Registry>,
    site: Option<Site>,
    _pid_file: Option<PidFile>,
}

impl Daemon {
    /// Catches signals, takes the process number's file, and gives pages; `more` adds to them.
    pub fn start(options: &Options, more: impl FnOnce(Pages) -> Pages) -> Result<Self, Error> {
        let pid_file = options.pid_file.as_deref().map(PidFile::create).transpose()?;
        let registry = Arc::new(Registry::new());
        let health = Arc::new(Health::new(PATIENCE));
        let pages = || more(Pages::new(Arc::clone(&registry), Arc::clone(&health)));
        let site = options.http.map(|address| Site::open(address, pages())).transpose()?;
        let signals = Signals::catch()?;
        let notifier = Notifier::from_environment();
        Ok(Daemon { signals, notifier, health, registry, site, _pid_file: pid_file })
    }

    /// Says that it serves, with one line for people.
    pub fn ready(&self, status: &str) {
        self.health.set(State::Ready);
        self.notifier.ready(status);
    }

    /// Set when it is to come to its end.
    #[must_use]
    pub fn stop(&self) -> &Arc<Stop> {
        self.signals.stop()
    }

    /// Its metrics.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// How it does.
    #[must_use]
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Where its pages are.
    #[must_use]
    pub fn site(&self) -> Option<SocketAddr> {
        self.site.as_ref().map(Site::address)
    }

    /// For a thread that serves, under this name.
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

/// What a thread that serves does for its daemon, each time that it looks up from its work.
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
    /// Shows that the thread turns. Answers whether the configuration is to be read again.
    ///
    /// The manager's watchdog is fed as long as every thread turns.
    pub fn look_in(&mut self, now: Instant) -> bool {
        self.pulse.beat();
        if let Some(every) = self.notifier.watchdog_every()
            && now >= self.alive_at
        {
            self.alive_at = now + every;
            if self.health.stuck().is_none() {
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

    /// Whether SIGUSR1 came since this was last called.
    #[must_use]
    pub fn is_switched(&self) -> bool {
        self.signals.is_switched()
    }

    /// The configuration has been read again.
    pub fn reloaded(&self, status: &str) {
        self.notifier.ready(status);
    }

    /// What is under way is answered, nothing new is taken.
    pub fn draining(&self, status: &str) {
        self.health.set(State::Draining);
        self.notifier.stopping(status);
    }
}
