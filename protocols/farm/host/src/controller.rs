//! The daemon of a controller: takes events in, hands each to one node, stores what is accepted.

mod control;
mod generator;
pub mod metrics;
mod orders;
mod pages;
mod settings;
pub mod shares;
mod snapshot;
pub mod status;
mod storage;
mod text;
mod thread;
mod timeline;
mod upload;

pub use pages::{Snapshots, snapshot};
pub use settings::{ControllerSettings, StoreSettings, UploadTo};
pub use snapshot::ControllerSnapshot;
pub use status::Status;
pub use text::uploaded;
pub use thread::Decided;

use crate::Error;
use control::OrderDispatch;
use generator::Made;
use hodo_daemon::{Daemon, Health};
use hodo_farm::controller::Pace;
use hodo_farm::wire::Verdict;
use hodo_farm::{Content, Controller, ControllerConfig, Ledger, Ranges};
use hodo_io::{Bell, Server, Waker, random_bits};
use hodo_machine::Address;
use hodo_store::{Recovered, Store};
use pages::StatusReader;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use storage::{Storage, StoragePace, Upload, stored_verdict};
use thread::{ControllerThread, ThreadState};

/// The beginning of the last line that a controller prints: then comes how many events of its run have a verdict.
pub const DECIDED: &str = "events with a verdict: ";
/// Connections that the driver accepts beyond the controller's own bounds, so that it counts those that it turns away.
const MORE_PEERS: usize = 1024;

/// A controller that listens, with its store and its pages. Nothing is served before [`run`](Self::run).
pub struct ControllerDaemon {
    settings: ControllerSettings,
    storage: Option<Storage>,
    recovered: Recovered,
    status: StatusReader,
    orders: OrderDispatch,
    daemon: Daemon,
    server: Server,
}

impl ControllerDaemon {
    /// Opens the store, starts the pages, and listens.
    ///
    /// # Errors
    /// [`Error::Settings`] for several threads without a generator, else what failed: store, pages, or the address.
    pub fn start(settings: ControllerSettings) -> Result<Self, Error> {
        let threads = settings.threads;
        if threads > 1 && settings.generator.is_none() {
            let why = "--threads above 1 works only with events that are generated here; add --events";
            return Err(Error::Settings(why.to_owned()));
        }
        let (store, recovered) = open_store(&settings)?;
        let peers_max = (settings.config.nodes_max + settings.config.sources_max) as usize + MORE_PEERS;
        let options = settings.process.gathering_options(threads, peers_max);
        let bell = Bell::default();
        let status = StatusReader::new(threads, settings.config.policy, &bell);
        let orders = OrderDispatch::new(threads, &bell);
        let daemon = pages::start(&settings.daemon, settings.control, &status, &orders)?;
        orders.set_stop(daemon.stop());
        let storage = store.map(|store| start_storage(&settings, store, daemon.health())).transpose()?;
        let at = settings.listen;
        let server =
            Server::bind(&Address::Tcp(at), options).map_err(|why| Error::Listen { at, why: why.to_string() })?;
        let server = server.with_bell(&bell);
        Ok(ControllerDaemon { settings, storage, recovered, status, orders, daemon, server })
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

    /// Returns a reader of the status, for other threads while it runs.
    #[must_use]
    pub fn status(&self) -> StatusReader {
        self.status.clone()
    }

    /// Serves until it is stopped, or until what it was to make has its verdict. Returns the totals.
    ///
    /// # Errors
    /// [`Error::Run`] if the network fails, [`Error::Store`] if verdicts are left that could not be stored.
    pub fn run(self) -> Result<Decided, Error> {
        let ControllerDaemon { settings, storage, recovered, status, orders, daemon, server } = self;
        let threads = settings.threads;
        let at = server.address().to_string();
        let turned_away = server.turned_away();
        let running = Arc::new(AtomicU32::new(threads as u32));
        let done = done(&recovered, settings.config.run);
        // One thread takes events of sources. What the store has told is not needed any more.
        let known = Mutex::new(Some(ledger(&recovered, settings.config.run)));
        drop(recovered);
        let pace = Pace::of(threads);
        let decided = Arc::new(Mutex::new(Decided::default()));
        let make = |index: usize, waker: Waker| {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner).take_if(|_| index == 0);
            let ledger = known.unwrap_or_default();
            let config = config(&settings, (Arc::clone(&pace), index));
            let made = Made::part(settings.generator.as_ref(), index, threads, &done);
            let queue = storage.as_ref().map(|storage| storage.queue(index));
            if let Some(queue) = &queue {
                queue.set_waker(waker);
            }
            let thread = ControllerThread {
                rounds: daemon.rounds(&format!("controller {index}")),
                snapshot: status.thread(index),
                storage: queue,
                running: Arc::clone(&running),
                until_done: settings.until_done,
                turned_away: Arc::clone(&turned_away),
                decided: Arc::clone(&decided),
                orders: orders.orders(index),
                health: Arc::clone(daemon.health()),
                state: ThreadState::default(),
            };
            (Controller::new(config, made, ledger), thread)
        };
        let served = server.with_drain(settings.drain).attend_woken(make, daemon.stop());
        let stored = storage.map_or(Ok(()), |storage| storage.finish().map_err(Error::Store));
        served.map_err(|why| Error::run(format!("serving {at}"), &why)).and(stored)?;
        let decided = *decided.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(decided)
    }
}

/// Opens the store, and logs what is damaged in it.
fn open_store(settings: &ControllerSettings) -> Result<(Option<Store>, Recovered), Error> {
    let Some(asked) = &settings.store else { return Ok((None, Recovered::default())) };
    let (store, recovered) = Store::open(asked.options.clone())?;
    for damage in &recovered.damaged {
        tracing::warn!("{damage:?}");
    }
    Ok((Some(store), recovered))
}

/// Starts the threads of the store.
fn start_storage(settings: &ControllerSettings, store: Store, health: &Arc<Health>) -> Result<Storage, Error> {
    let asked = settings.store.as_ref().expect("there is a store");
    let uploader = asked.upload.as_ref().map(|to| upload::start(&asked.options.directory, to, health)).transpose()?;
    let upload = uploader.map(|uploader| Upload { uploader, within: settings.drain });
    let pace =
        StoragePace { commit_every: asked.commit_every, sync_every: asked.sync_every, sync_bytes: asked.sync_bytes };
    Storage::start(store, settings.threads, pace, upload, health)
        .map_err(|why| Error::run("starting the threads of the store", &why))
}

fn config(settings: &ControllerSettings, pace: (Arc<Pace>, usize)) -> ControllerConfig {
    let config = settings.config.clone();
    ControllerConfig {
        // Events of sources need one table of what is known.
        sources_max: if settings.threads > 1 { 0 } else { config.sources_max },
        uncommitted_max: config.uncommitted_max.filter(|_| settings.store.is_some()),
        uncommitted_bytes_max: config.uncommitted_bytes_max / settings.threads as u64,
        pace: Some(pace),
        instance: random_bits(),
        ..config
    }
}

/// Returns the events of the run that have their verdict.
fn done(recovered: &Recovered, run: u32) -> Ranges {
    let mut done = Ranges::default();
    if let Some(ledger) = recovered.runs.get(&run) {
        for verdict in hodo_store::Verdict::ALL {
            for range in ledger.of(verdict).iter() {
                done.insert_range(range);
            }
        }
    }
    done
}

/// Returns what is known of the run that goes on, and of the newest of the others.
fn ledger(recovered: &Recovered, current: u32) -> Ledger {
    let mut ledger = Ledger::default();
    let others: Vec<_> = recovered.runs.iter().filter(|(run, _)| **run != current).collect();
    let (over, open) = others.split_at(others.len().saturating_sub(Ledger::RUNS_MAX - 1));
    for (run, known) in open.iter().copied().chain(recovered.runs.get_key_value(&current)) {
        for verdict in [Verdict::Accepted, Verdict::Rejected, Verdict::Quarantined, Verdict::Incomplete] {
            let ranges: Vec<_> = known.of(stored_verdict(verdict)).iter().collect();
            // There is room for each.
            let _ = ledger.recover(*run, verdict, &ranges);
        }
    }
    if let Some((run, _)) = over.last() {
        ledger.forget(**run);
    }
    for range in &recovered.given {
        for (event, sum) in range.iter() {
            ledger.recover_content(range.run, event, Content::from_code(sum));
        }
    }
    ledger
}
