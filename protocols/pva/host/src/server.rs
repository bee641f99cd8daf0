//! A server that a program embeds: channels (PVs) with values, posted from any thread, and handlers for what clients put and call.
//!
//! One thread serves all clients. It never runs a handler that may take long: those run on a few workers, and answer when they are done.
//!
//! ```
//! use hodo_pva_host::machines::normative::Normative;
//! use hodo_pva_host::machines::{Scalar, Value};
//! use hodo_pva_host::server::{Server, ServerOptions};
//!
//! # fn main() -> Result<(), hodo_pva_host::server::ServerError> {
//! # let options = ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into());
//! let server = Server::start(options)?;
//! let pv = server.pv("DEMO:POSITION", Value::of(Normative::scalar(Scalar::F64).time_stamp().build())).accept_puts().serve();
//! pv.update(|value| value.set("value", 1.5))?;
//! # Ok(())
//! # }
//! ```

mod attendant;
mod handlers;
mod listing;
mod orders;
mod pv;
mod sockets;
mod workers;

pub use crate::machines::server::{ClientStatistics, DiscoveryCounters, Ended, ServerCounters};
pub use attendant::{Quiet, Watch};
pub use handlers::{Call, ClientName, Put};
pub use pv::{PostError, Posted, Pv, PvOptions, now};

use crate::environment::{AddressEntry, Environment, EnvironmentError, ServerNetwork};
use crate::machines::data::SetError;
use crate::machines::server::{Ruled, Server as ServerMachine};
use crate::machines::wire::discovery::Guid;
use crate::machines::{ServerConfig, Value};
use crate::orders::Orders;
use attendant::Serving;
use hodo_io::{Bell, Snapshot, Stop};
use hodo_machine::Wait;
use orders::Order;
use pv::Shared;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use workers::Workers;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where the server listens, and how it is found. Another TCP port is taken if the default one is in use, and nobody has named it.
    pub network: ServerNetwork,
    /// Whether it answers searches over UDP and sends beacons. Without, clients name it as their name server.
    pub is_found: bool,
    /// Bounds on each client, and the byte order. The identity is set when the server starts, and the discovery from `network`.
    pub config: ServerConfig,
    /// Clients at once.
    pub clients_max: usize,
    /// Threads for handlers that may take long.
    pub workers: usize,
    /// Puts and calls that may wait for a worker; further ones are refused.
    pub waiting_max: usize,
    /// Updates of one PV that may wait for the serving thread; further ones are merged into the last.
    pub posts_max: usize,
    /// How long puts and calls under way may take when the server stops.
    pub drain: Duration,
    /// The way in which the serving thread waits.
    pub wait: Wait,
    /// The processor of the serving thread; `None` leaves the choice to the kernel.
    pub cpu: Option<usize>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            network: Environment::default().server.or_loopback(),
            is_found: true,
            config: ServerConfig::default(),
            clients_max: 10_000,
            workers: 4,
            waiting_max: 10_000,
            posts_max: 64,
            drain: Duration::from_secs(5),
            wait: Wait::Adaptive,
            cpu: None,
        }
    }
}

impl ServerOptions {
    /// Returns the options that the variables `EPICS_PVAS*` and `EPICS_PVA*` give: on loopback if they name no interface.
    ///
    /// # Errors
    /// [`ServerError::Environment`] with the variable and its mistake.
    pub fn from_environment() -> Result<Self, ServerError> {
        let network = Environment::read()?.server.or_loopback();
        let mut options = ServerOptions { network, ..ServerOptions::default() };
        options.config.session = options.network.session();
        Ok(options)
    }

    /// Returns the same options for a server at one address; port 0 is any free one.
    #[must_use]
    pub fn at(mut self, listen: SocketAddr) -> Self {
        self.network.port = listen.port();
        self.network.may_move = false;
        let address = SocketAddr::new(listen.ip(), 0);
        self.network.interfaces = vec![AddressEntry { address, hops: None, interface: None }];
        self
    }
}

/// Why a server cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {at}: {why}; choose another address or port, or stop the process that holds it")]
    Listen {
        /// The address.
        at: String,
        /// The message of the system.
        why: String,
    },
    /// A variable of the environment is wrong.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// A thread cannot be started.
    #[error("no thread can be started: {0}; raise the limit on threads or memory")]
    NoThread(String),
    /// The network failed under the server.
    #[error("serving {at}: {why}")]
    Run {
        /// Where it listens.
        at: String,
        /// The message of the system.
        why: String,
    },
    /// A value does not fit into its PV.
    #[error("the value does not fit into the PV: {0}")]
    Value(#[from] SetError),
    /// The serving thread has not answered in time.
    #[error("the serving thread has not answered within {0:?}: it has not started, has ended or is stuck")]
    Stuck(Duration),
}

/// The state of a server at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerState {
    /// PVs that are served.
    pub pvs: usize,
    /// The work so far.
    pub counters: ServerCounters,
    /// Searches and beacons so far.
    pub discovery: DiscoveryCounters,
    /// Updates that were merged before the serving thread took them, because it did not keep up.
    pub merged_posts: u64,
    /// Puts and calls that wait for a worker.
    pub waiting: usize,
    /// Puts and calls that were refused because too many were waiting.
    pub overloaded: u64,
    /// Clients that are connected.
    pub clients: Vec<ClientStatistics>,
}

/// The state that the handles of a server share.
pub(crate) struct Core {
    pub(crate) orders: Orders<Order>,
    pub(crate) workers: Workers,
    pub(crate) posts_max: usize,
    /// PVs that are served, by the numbers of their channels.
    served: Mutex<BTreeMap<u32, Arc<Shared>>>,
    /// The rules about who may do what, as they are now.
    rules: Mutex<Ruled>,
    snapshot: Snapshot<ServerState>,
    stop: Arc<Stop>,
    bell: Bell,
}

impl Core {
    pub(crate) fn served(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Shared>>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rules(&self) -> MutexGuard<'_, Ruled> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server whose address is bound. Nothing is served before [`Bound::run`].
pub struct Bound {
    core: Arc<Core>,
    options: ServerOptions,
    server: hodo_io::Server,
    at: SocketAddr,
}

/// A server that runs on a thread of its own. It ends with the last of its clones.
#[derive(Clone)]
pub struct Server(Arc<Running>);

struct Running {
    core: Arc<Core>,
    at: SocketAddr,
    thread: Mutex<Option<JoinHandle<Result<(), ServerError>>>>,
}

impl Bound {
    /// Binds the addresses.
    ///
    /// # Errors
    /// [`ServerError::Listen`] if an address is in use or does not belong to this host.
    pub fn new(mut options: ServerOptions) -> Result<Self, ServerError> {
        options.config.guid = guid();
        options.config.own_channel = listing::NAME.to_owned();
        let (server, at) = sockets::bind(&mut options)?;
        let bell = Bell::default();
        let core = Core {
            orders: Orders::default(),
            workers: Workers::new(options.waiting_max),
            posts_max: options.posts_max.max(1),
            served: Mutex::default(),
            rules: Mutex::new(options.config.rules.clone()),
            snapshot: Snapshot::with_bell(&bell),
            stop: Arc::default(),
            bell: bell.clone(),
        };
        let server = server.with_drain(options.drain).with_bell(&bell);
        let core = Arc::new(core);
        listing::serve(&core);
        Ok(Bound { core, options, server, at })
    }

    /// Returns the address on which clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// Returns a handle that adds PVs.
    #[must_use]
    pub fn pvs(&self) -> Pvs {
        Pvs(Arc::clone(&self.core))
    }

    /// Serves on the caller's thread until `stop` is set, then until every put and call is answered or the time for that is over.
    /// `watch` is told what happens.
    ///
    /// # Errors
    /// [`ServerError::Run`] if the network fails, [`ServerError::NoThread`] if no thread can be started.
    pub fn run<W: Watch>(self, watch: W, stop: &Stop) -> Result<(), ServerError> {
        let Bound { core, options, server, at } = self;
        let at = at.to_string();
        let _ = hodo_io::host::raise_descriptor_limit();
        let workers = Workers::start(&core, options.workers)?;
        let ran = server.attend_here_woken(
            |waker| {
                core.orders.serve_with(waker);
                (ServerMachine::new(options.config), Serving::new(Arc::clone(&core), watch))
            },
            stop,
        );
        core.workers.end();
        drop(workers);
        ran.map_err(|why| ServerError::Run { at, why: why.to_string() })
    }
}

impl Server {
    /// Binds the address, and serves on a thread of its own.
    ///
    /// # Errors
    /// [`ServerError::Listen`] if the address is in use or does not belong to this host, [`ServerError::NoThread`] if no thread can be
    /// started.
    pub fn start(options: ServerOptions) -> Result<Self, ServerError> {
        let bound = Bound::new(options)?;
        let (core, at) = (Arc::clone(&bound.core), bound.address());
        let stop = Arc::clone(&core.stop);
        let thread = Builder::new().name("pva server".to_owned()).spawn(move || bound.run(Quiet, &stop));
        let thread = thread.map_err(|why| ServerError::NoThread(why.to_string()))?;
        Ok(Server(Arc::new(Running { core, at, thread: Mutex::new(Some(thread)) })))
    }

    /// Returns the address on which clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.at
    }

    /// Begins a PV with this value, whose type it keeps. It takes the place of one that has the name already.
    pub fn pv(&self, name: impl Into<String>, value: Value) -> PvOptions {
        Pvs(Arc::clone(&self.0.core)).pv(name, value)
    }

    /// Returns clients and counters, as they are now.
    ///
    /// # Errors
    /// [`ServerError::Stuck`] if the serving thread does not answer in time.
    pub fn state(&self, within: Duration) -> Result<Arc<ServerState>, ServerError> {
        self.0.core.snapshot.ask(within).ok_or(ServerError::Stuck(within))
    }

    /// Stops the server in order: puts and calls under way are answered first. A stopped one stays stopped.
    ///
    /// # Errors
    /// The reason why it had ended before, if it had.
    pub fn stop(&self) -> Result<(), ServerError> {
        self.0.stop()
    }
}

impl Running {
    fn stop(&self) -> Result<(), ServerError> {
        self.core.stop.store(true, Ordering::Relaxed);
        self.core.bell.ring();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread.map(JoinHandle::join) {
            Some(Ok(ran)) => ran,
            Some(Err(_)) => {
                Err(ServerError::Run { at: self.at.to_string(), why: "the serving thread panicked".into() })
            }
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// A handle that adds PVs to a server.
#[derive(Clone)]
pub struct Pvs(Arc<Core>);

impl Pvs {
    /// Begins a PV with this value, whose type it keeps. It takes the place of one that has the name already.
    pub fn pv(&self, name: impl Into<String>, value: Value) -> PvOptions {
        PvOptions::new(Arc::clone(&self.0), name.into(), value)
    }

    /// Returns clients and counters, as they are now, or `None` if the serving thread does not answer in time.
    #[must_use]
    pub fn state(&self, within: Duration) -> Option<Arc<ServerState>> {
        self.0.snapshot.ask(within)
    }

    /// Goes by other rules about who may do what. Whoever loses a right to an open channel is told that the channel is gone.
    pub fn rule(&self, rules: Ruled) {
        self.0.rules().clone_from(&rules);
        self.0.orders.push(Order::Rule(rules));
    }

    /// Calls the serving thread, so that it notices at once that it is to stop.
    pub fn ring(&self) {
        self.0.bell.ring();
    }
}

/// Returns an identity that no other server has.
fn guid() -> Guid {
    let random = [(); 2].map(|()| hodo_io::random_bits().to_ne_bytes());
    std::array::from_fn(|at| random[at / 8][at % 8])
}
