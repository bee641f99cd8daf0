//! The daemon of a hub: between IPbus clients over TCP and boards over UDP.

mod metrics;
pub mod page;
mod snapshot;
mod thread;
mod trace_log;

pub use snapshot::HubSnapshot;

use hodo_daemon::{Daemon, Options, PidFile, Reply};
use hodo_io::{Bell, Clock, ServeOptions, Server, Snapshot, SocketSettings, Trace, TraceOptions, process, sleep};
use hodo_ipbus::hub::{AllowList, Hub, HubCommand, HubConfig};
use hodo_ipbus::window::WindowConfig;
use hodo_machine::{Address, Input, Instant, Machine, Sampling, Wait};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thread::HubThread;
use trace_log::TraceLog;

/// The port of the hub's pages, unless told otherwise.
pub const PAGES_PORT: u16 = 9203;
/// The path of the hub's stages among its pages.
pub const STAGES_PATH: &str = "/stages";
/// The port on which a hub listens by default.
const PORT: u16 = 10203;
/// Connections that the driver accepts beyond the hub's own bound, so that the hub counts those that it turns away.
const MORE_PEERS: usize = 64;
/// How long a page waits for the hub.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a lone packet may take where nothing was lost lately: a timer as far away costs nothing, and a lone packet
/// is hardly ever late.
const CALM: Duration = Duration::from_millis(10);
/// One packet in 2 to the power of this is measured.
const SAMPLED_BITS: u32 = 6;
/// Between two looks at whether a hub has gone.
const LOOK: Duration = Duration::from_millis(20);

/// Settings of a hub.
#[derive(Debug, Clone)]
pub struct HubSettings {
    /// Where clients connect; port 0 is any free one.
    pub listen: SocketAddr,
    /// The file of boards that clients may reach, a line a.b.c.d or a.b.c.d:port for each; `None`: every board.
    pub allow: Option<PathBuf>,
    /// Pages, and the file with the process number.
    pub daemon: Options,
    /// How the hub waits.
    pub wait: Wait,
    /// The processor to run on; `None`: wherever the kernel puts it.
    pub cpu: Option<usize>,
    /// Clients at once.
    pub clients: usize,
    /// Boards at once.
    pub boards: usize,
    /// Packets in flight to a board at most.
    pub in_flight: usize,
    /// How long a board may be silent before its clients are told.
    pub patience: Duration,
    /// The least time after which an answer of a board is late.
    pub late: Duration,
    /// How long packets under way may take when the hub is to stop.
    pub drain: Duration,
    /// The trace of the hub's packets.
    pub trace: Option<TraceOptions>,
    /// Whether it measures where the time of one packet in 64 goes.
    pub stages: bool,
}

/// The defaults of the command line, but without pages.
impl Default for HubSettings {
    fn default() -> Self {
        HubSettings {
            listen: (Ipv4Addr::LOCALHOST, PORT).into(),
            allow: None,
            daemon: Options::default(),
            wait: Wait::Adaptive,
            cpu: None,
            clients: 4096,
            boards: 2048,
            in_flight: 16,
            patience: Duration::from_millis(100),
            late: Duration::from_micros(200),
            drain: Duration::from_secs(5),
            trace: None,
            stages: false,
        }
    }
}

/// Why a hub cannot run, or be stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The list of boards cannot be read.
    #[error("--allow {}: {why}", file.display())]
    AllowList {
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// The trace cannot be written.
    #[error("--trace {}: this file cannot be written: {why}", file.display())]
    Trace {
        /// The file.
        file: PathBuf,
        /// The message of the system.
        why: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {at}: {why}; choose another port, or stop the process that holds it")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The message of the system.
        why: String,
    },
    /// The network failed under the hub.
    #[error("serving {at}: {why}")]
    Run {
        /// Where it listens.
        at: String,
        /// The message of the system.
        why: String,
    },
    /// Pages, signals or the file with the process number.
    #[error(transparent)]
    Daemon(#[from] hodo_daemon::Error),
    /// The process cannot be told to end.
    #[error("{0}; run this as the user of the hub")]
    NotAllowed(String),
    /// The process has not ended in time.
    #[error("process {0} was asked to stop and has not; its log may say why, and `kill -KILL {0}` ends it at once")]
    StillThere(u32),
}

/// A hub that listens, with its pages. Nothing is served before [`run`](Self::run).
pub struct HubDaemon {
    settings: HubSettings,
    allow: AllowList,
    snapshot: Arc<Snapshot<HubSnapshot>>,
    trace: Option<Arc<Trace>>,
    daemon: Daemon,
    server: Server,
}

impl HubDaemon {
    /// Reads the list of boards, starts the pages, and listens.
    ///
    /// # Errors
    /// What failed: the list, the pages, or the address.
    pub fn start(settings: HubSettings) -> Result<Self, HubError> {
        let allow = allow_list(settings.allow.as_deref())?;
        // Each client and each board takes a descriptor; where that is not allowed, fewer are served.
        let _ = hodo_io::host::raise_descriptor_limit();
        let bell = Bell::default();
        let snapshot = Arc::new(Snapshot::with_bell(&bell));
        let daemon = start_daemon(&settings.daemon, &snapshot)?;
        // A second hub with the same file of the process number has ended by now, and does not begin a trace anew.
        let trace = settings.trace.as_ref().map(start_trace).transpose()?;
        let server = bind(&settings, trace.clone())?.with_bell(&bell);
        Ok(HubDaemon { settings, allow, snapshot, trace, daemon, server })
    }

    /// Returns the address on which clients connect.
    #[must_use]
    pub fn address(&self) -> &Address {
        self.server.address()
    }

    /// Returns what it shares with every daemon: signals, pages, health.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// [`HubError::Run`] if the network fails.
    pub fn run(self) -> Result<(), HubError> {
        let HubDaemon { settings, allow, snapshot, trace, daemon, server } = self;
        let at = server.address().to_string();
        let make = |index| {
            let mut hub = Hub::new(config(&settings), allow.clone());
            if settings.stages {
                let sampling = Sampling::ending_in_zeros(SAMPLED_BITS);
                hub.handle(Instant::ZERO, Input::Command(HubCommand::Sample(sampling)));
            }
            let rounds = daemon.rounds(&format!("hub {index}"));
            let log = TraceLog::new(trace.clone());
            (hub, HubThread::new(rounds, Arc::clone(&snapshot), settings.allow.clone(), log))
        };
        server.attend(make, daemon.stop()).map_err(|why| HubError::Run { at, why: why.to_string() })
    }
}

/// Stops the hub that holds this file and waits until it has gone. Returns the number of its process, or `None` if no hub
/// was running.
///
/// # Errors
/// [`HubError::NotAllowed`] if it belongs to somebody else, [`HubError::StillThere`] if it takes longer than `within`.
pub fn stop(pid_file: &Path, within: Duration) -> Result<Option<u32>, HubError> {
    let holder =
        || PidFile::holder(pid_file).map_err(|why| HubError::NotAllowed(format!("{}: {why}", pid_file.display())));
    let Some(pid) = holder()? else { return Ok(None) };
    let told = process::terminate(pid);
    told.map_err(|why| HubError::NotAllowed(format!("process {pid} cannot be stopped: {why}")))?;
    let clock = Clock::start();
    while holder()? == Some(pid) {
        if clock.now() > Instant::ZERO + within {
            return Err(HubError::StillThere(pid));
        }
        sleep(LOOK);
    }
    Ok(Some(pid))
}

/// Starts pages, signals and the messages to the service manager.
fn start_daemon(options: &Options, snapshot: &Arc<Snapshot<HubSnapshot>>) -> Result<Daemon, HubError> {
    let shown = Arc::clone(snapshot);
    let page = move |text: fn(&HubSnapshot) -> String| match shown.ask(PATIENCE) {
        Some(snapshot) => Reply::text(200, text(&snapshot)),
        None => Reply::text(503, "the hub has not begun, or is stuck\n"),
    };
    let (stats, stages) = (page.clone(), page);
    let daemon = Daemon::start(options, |pages| {
        let pages = pages.with(page::PATH, move || stats(page::text));
        pages.with(STAGES_PATH, move || stages(|snapshot| snapshot.stages.text()))
    })?;
    let told = Arc::clone(snapshot);
    daemon.registry().source(move |exposition| {
        if let Some(snapshot) = told.ask(PATIENCE) {
            metrics::write(&snapshot, exposition);
        }
    });
    Ok(daemon)
}

fn start_trace(options: &TraceOptions) -> Result<Arc<Trace>, HubError> {
    let wrong = |why: std::io::Error| HubError::Trace { file: options.file.clone(), why: why.to_string() };
    Trace::start(options).map(Arc::new).map_err(wrong)
}

fn bind(settings: &HubSettings, trace: Option<Arc<Trace>>) -> Result<Server, HubError> {
    let peers_max = settings.clients + MORE_PEERS;
    let options = ServeOptions {
        threads: 1,
        cpus: settings.cpu.into_iter().collect(),
        wait: settings.wait,
        settings: SocketSettings { peers_max, ..SocketSettings::default() },
    };
    let boards = SocketSettings { peers_max: settings.boards + MORE_PEERS, ..SocketSettings::default() };
    let at = settings.listen;
    let server =
        Server::bind(&Address::Tcp(at), options).map_err(|why| HubError::Listen { at, why: why.to_string() })?;
    let server = server.with_datagrams(boards).with_drain(settings.drain);
    Ok(match trace {
        Some(trace) => server.traced(trace),
        None => server,
    })
}

fn config(settings: &HubSettings) -> HubConfig {
    HubConfig {
        clients: settings.clients,
        boards: settings.boards,
        window: WindowConfig {
            in_flight: settings.in_flight,
            patience: settings.patience,
            late_min: settings.late,
            // A spinning hub sets no timers.
            calm: if settings.wait.sleeps() { CALM } else { Duration::ZERO },
            ..WindowConfig::default()
        },
        seed: hodo_io::random_bits(),
        ..HubConfig::default()
    }
}

/// Reads the boards that clients may reach.
fn allow_list(file: Option<&Path>) -> Result<AllowList, HubError> {
    let Some(file) = file else { return Ok(AllowList::ALL) };
    let wrong = |why: String| HubError::AllowList { file: file.to_owned(), why };
    let text = hodo_io::files::read_text(file).map_err(|why| wrong(format!("cannot be read: {why}")))?;
    AllowList::parse(&text).map_err(|why| wrong(why.to_string()))
}
