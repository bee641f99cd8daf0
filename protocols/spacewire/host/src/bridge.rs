//! The daemon of a bridge: hosts over TCP, a simulated network behind it.

mod page;
mod paths;
mod snapshot;
mod thread;

pub use page::SHORTFALL as SHORTFALL_METRIC;
pub use paths::PATHS as PATHS_PAGE;

use crate::Names;
use crate::network::Plan;
use crate::recording::{RecordOptions, Recording, Watched};
use hodo_daemon::{Daemon, Options, Reply};
use hodo_io::{Bell, ServeOptions, Server, Snapshot, SocketSettings, Trace};
use hodo_machine::{Address, Wait};
use hodo_spacewire::bridge::{Bridge, GateProtocol, Pace};
use hodo_spacewire::network::Network;
use snapshot::BridgeSnapshot;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use thread::BridgeThread;

/// The port of the pages, unless another is chosen.
pub const PAGES_PORT: u16 = 9209;
/// How long a page waits for the bridge.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections at once, beyond one in each direction of each gate: a new one may come before the end of the old one is noticed.
const MORE_PEERS: usize = 16;

/// Settings of a bridge.
#[derive(Debug, Clone)]
pub struct BridgeSettings {
    /// The address of this host on which gates listen.
    pub listen: IpAddr,
    /// The time of the network.
    pub pace: Pace,
    /// Pages, and the file with the process number.
    pub daemon: Options,
    /// How the bridge waits.
    pub wait: Wait,
    /// The processor to run on; `None`: wherever the kernel puts it.
    pub cpu: Option<usize>,
    /// A recording of every link.
    pub recording: Option<RecordOptions>,
}

/// The defaults of the command line, but without pages.
impl Default for BridgeSettings {
    fn default() -> Self {
        BridgeSettings {
            listen: Ipv4Addr::LOCALHOST.into(),
            pace: Pace::RealTime,
            daemon: Options::default(),
            wait: Wait::Adaptive,
            cpu: None,
            recording: None,
        }
    }
}

/// Why a bridge cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The network has no node that hosts reach.
    #[error("no host can reach this network: give a node ssdtp2 = {{ port = 10030 }} or gresb = {{ port = 3000 }}")]
    NoGate,
    /// An address cannot be listened on.
    #[error("cannot listen on {at} for node {node}: {why}; {remedy}")]
    Listen {
        /// The name of the node.
        node: String,
        /// The address.
        at: SocketAddr,
        /// The message of the system.
        why: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The recording cannot be begun.
    #[error("cannot record in {}: {why}", .file.display())]
    Record {
        /// The file.
        file: PathBuf,
        /// The message of the system.
        why: String,
    },
    /// The sockets failed under the bridge.
    #[error("serving: {0}")]
    Run(String),
    /// Pages, signals or the file with the process number.
    #[error(transparent)]
    Daemon(#[from] hodo_daemon::Error),
}

/// A bridge that listens, with its pages. Nothing is served before [`run`](Self::run).
pub struct BridgeDaemon {
    plan: Plan,
    settings: BridgeSettings,
    snapshot: Arc<Snapshot<BridgeSnapshot>>,
    daemon: Daemon,
    server: Server,
    recording: Option<(Trace, Recording)>,
}

impl BridgeDaemon {
    /// Starts the pages, and listens.
    ///
    /// # Errors
    /// What failed: the pages, or an address.
    pub fn start(mut plan: Plan, settings: BridgeSettings) -> Result<Self, BridgeError> {
        let bell = Bell::default();
        let snapshot = Arc::new(Snapshot::with_bell(&bell));
        let paths = Arc::new(OnceLock::new());
        let daemon = start_daemon(&settings.daemon, &snapshot, names(&plan), &paths)?;
        let server = bind(&mut plan, &settings)?.with_bell(&bell);
        // The ports are known now.
        let _ = paths.set(paths::text(&plan));
        let begin = |options: &RecordOptions| {
            let wrong = |why: std::io::Error| BridgeError::Record { file: options.file.clone(), why: why.to_string() };
            Recording::start(options, &plan.names).map_err(wrong)
        };
        let recording = settings.recording.as_ref().map(begin).transpose()?;
        Ok(BridgeDaemon { plan, settings, snapshot, daemon, server, recording })
    }

    /// Returns each gate: the addresses that it listens on, and the words about it.
    #[must_use]
    pub fn gates(&self) -> Vec<(Address, String)> {
        let at = |port| Address::Tcp((self.settings.listen, port).into());
        let gates = self.plan.gates.iter().map(|(name, gate)| match gate.protocol {
            GateProtocol::Ssdtp2 { port, .. } => (at(port), format!("SSDTP2, node {name}")),
            GateProtocol::Gresb { to_bridge, to_host, .. } => {
                (at(to_bridge), format!("GRESB, node {name}; packets to the host at port {to_host}"))
            }
        });
        gates.collect()
    }

    /// Returns what it shares with every daemon: signals, pages, health.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// [`BridgeError::Run`] if the sockets fail.
    pub fn run(mut self) -> Result<(), BridgeError> {
        match self.recording.take() {
            None => self.serve(|network| network, None),
            // The trace goes last: it waits until everything is written.
            Some((trace, recording)) => self.serve(|network| network.observed_by(recording), Some(&Arc::new(trace))),
        }
    }

    /// Serves with an observer of the network.
    fn serve<O: Watched + 'static>(
        self,
        observe: impl FnOnce(Network) -> Network<O>,
        trace: Option<&Arc<Trace>>,
    ) -> Result<(), BridgeError> {
        let BridgeDaemon { plan, settings, snapshot, daemon, server, .. } = self;
        let names = names(&plan);
        let Plan { network, gates, devices, .. } = plan;
        let make = || {
            // Packets in the network are on time within microseconds. Without this they are a little later.
            let _ = hodo_io::affinity::wake_on_time();
            let gates = gates.into_iter().map(|(_, gate)| gate).collect();
            let bridge = Bridge::new(observe(network), settings.pace, gates, devices);
            (bridge, BridgeThread::new(daemon.rounds("bridge"), Arc::clone(&snapshot), names, trace.cloned()))
        };
        server.attend_here(make, daemon.stop()).map_err(|why| BridgeError::Run(why.to_string()))
    }
}

/// The names of gates and of everything in the network.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    gates: Vec<String>,
    network: Names,
}

fn names(plan: &Plan) -> Named {
    Named { gates: plan.gates.iter().map(|(name, _)| name.clone()).collect(), network: plan.names.clone() }
}

fn start_daemon(
    options: &Options,
    snapshot: &Arc<Snapshot<BridgeSnapshot>>,
    names: Named,
    paths: &Arc<OnceLock<String>>,
) -> Result<Daemon, BridgeError> {
    let paths = Arc::clone(paths);
    let (shown, told, names) = (Arc::clone(snapshot), Arc::clone(snapshot), Arc::new(names));
    let shown_names = Arc::clone(&names);
    let daemon = Daemon::start(options, |pages| {
        let not_yet = || Reply::text(503, "the bridge has not begun, or is stuck\n");
        let stats = move || match shown.ask(PATIENCE) {
            Some(snapshot) => Reply::text(200, page::text(&snapshot, &shown_names)),
            None => not_yet(),
        };
        let ways = move || paths.get().map_or_else(not_yet, |text| Reply::text(200, text.clone()));
        pages.with(page::STATS, stats).with(paths::PATHS, ways)
    })?;
    daemon.registry().source(move |exposition| {
        if let Some(snapshot) = told.ask(PATIENCE) {
            page::metrics(&snapshot, &names, exposition);
        }
    });
    Ok(daemon)
}

/// Binds every port, and puts those that were free to choose into the plan.
fn bind(plan: &mut Plan, settings: &BridgeSettings) -> Result<Server, BridgeError> {
    if plan.gates.is_empty() {
        return Err(BridgeError::NoGate);
    }
    let peers_max = 2 * plan.gates.len() + MORE_PEERS;
    let mut server = Server::new(ServeOptions {
        threads: 1,
        cpus: settings.cpu.into_iter().collect(),
        wait: settings.wait,
        settings: SocketSettings { peers_max, ..SocketSettings::default() },
    });
    for (node, gate) in &mut plan.gates {
        let ports = match &mut gate.protocol {
            GateProtocol::Ssdtp2 { port, .. } => vec![port],
            GateProtocol::Gresb { to_bridge, to_host, .. } => vec![to_bridge, to_host],
        };
        for port in ports {
            let at = SocketAddr::new(settings.listen, *port);
            let wrong = |why: std::io::Error| {
                let remedy = match why.kind() {
                    ErrorKind::AddrNotAvailable => "choose an address of this host",
                    _ => "choose another port in the file, or stop the process that holds it",
                };
                BridgeError::Listen { node: node.clone(), at, why: why.to_string(), remedy }
            };
            server = server.and(&Address::Tcp(at)).map_err(wrong)?;
            if let Some(Address::Tcp(bound)) = server.addresses().last() {
                *port = bound.port();
            }
        }
    }
    Ok(server)
}
