//! The daemon of a builder: makes events of the fragments of several sources, and gives each to the controller.

mod settings;
pub mod status;
mod thread;

pub use settings::BuilderSettings;
pub use status::BuilderStatus;

use crate::Error;
use hodo_daemon::{Daemon, Reply};
use hodo_farm::{Builder, BuilderConfig};
use hodo_io::{Bell, Server, Snapshot, random_bits};
use hodo_machine::{Address, Instant, Transport};
use status::BuilderSnapshot;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use thread::{BuilderThread, Faults};

/// Connections that are accepted beyond two of each source, so that those which are turned away are told why.
const MORE_PEERS: usize = 256;
/// How long a page waits for the builder.
const PATIENCE: Duration = Duration::from_secs(2);

/// A builder that listens, with its pages. Nothing is served before [`run`](Self::run).
pub struct BuilderDaemon {
    settings: BuilderSettings,
    snapshot: Arc<Snapshot<BuilderSnapshot>>,
    daemon: Daemon,
    server: Server,
}

impl BuilderDaemon {
    /// Starts the pages, and listens.
    ///
    /// # Errors
    /// What failed: the pages, or the address.
    pub fn start(settings: BuilderSettings) -> Result<Self, Error> {
        let options = settings.process.gathering_options(1, 2 * settings.config.sources as usize + MORE_PEERS);
        let bell = Bell::default();
        let snapshot = Arc::new(Snapshot::with_bell(&bell));
        let daemon = start_daemon(&settings, &snapshot)?;
        let at = settings.listen;
        let transport = if settings.config.datagrams { Transport::Datagram } else { Transport::Stream };
        let server = Server::bind(&Address::of(transport, at), options);
        let server = server.map_err(|why| Error::Listen { at, why: why.to_string() })?.with_bell(&bell);
        Ok(BuilderDaemon { settings, snapshot, daemon, server })
    }

    /// Returns the address on which it listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        self.server.address()
    }

    /// Returns what it shares with every daemon: signals, pages, health.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Builds events until it is stopped.
    ///
    /// # Errors
    /// [`Error::Run`] if the network fails, [`Error::Discarded`] if events were thrown away for their size,
    /// [`Error::Behind`] if events went on without a source that was there.
    pub fn run(self) -> Result<(), Error> {
        let BuilderDaemon { settings, snapshot, daemon, server } = self;
        let turned_away = server.turned_away();
        let faults = Arc::new(Faults::default());
        let make = |_, _| {
            let thread = BuilderThread {
                to: settings.config.controller.clone(),
                rounds: daemon.rounds("builder"),
                snapshot: Arc::clone(&snapshot),
                turned_away: Arc::clone(&turned_away),
                incomplete: 0,
                told_at: Instant::ZERO,
                conflicting: BTreeSet::new(),
                awaited_at: Instant::ZERO,
                faults: Arc::clone(&faults),
            };
            let config = BuilderConfig { instance: random_bits(), ..settings.config.clone() };
            (Builder::new(config), thread)
        };
        let served = server.with_drain(settings.drain).attend_woken(make, daemon.stop());
        served.map_err(|why| Error::run(format!("serving {}", settings.listen), &why))?;
        let Faults { too_large, max, behind } = &*faults;
        match (too_large.load(Ordering::Relaxed), behind.load(Ordering::Relaxed)) {
            (0, 0) => Ok(()),
            (0, times) => Err(Error::Behind { times }),
            (events, _) => Err(Error::Discarded { events, max: max.load(Ordering::Relaxed) }),
        }
    }
}

/// Starts pages, signals and the messages to the service manager.
fn start_daemon(settings: &BuilderSettings, snapshot: &Arc<Snapshot<BuilderSnapshot>>) -> Result<Daemon, Error> {
    let controller = settings.config.controller.to_string();
    let snapshot = Arc::clone(snapshot);
    let read = move || snapshot.ask(PATIENCE).map(|snapshot| BuilderStatus::new(&snapshot, &controller));
    let shown = read.clone();
    let daemon = Daemon::start(&settings.daemon, |pages| {
        pages.with(status::PATH, move || match shown() {
            Some(status) => Reply::json(status.json()),
            None => Reply::text(503, "the builder has not begun, or is stuck\n"),
        })
    })?;
    daemon.registry().source(move |exposition| {
        if let Some(status) = read() {
            status.write_metrics(exposition);
        }
    });
    Ok(daemon)
}

/// Returns the page of a running builder's status.
///
/// # Errors
/// [`Error::Daemon`] if the page cannot be read, [`Error::NoStatus`] if it is not a builder's.
pub fn read(pages: SocketAddr, within: Duration) -> Result<BuilderStatus, Error> {
    BuilderStatus::parse(&hodo_daemon::fetch(pages, status::PATH, within)?)
}
