//! Links from URIs.

use crate::{Content, Error, FarEndProcess, Uri, path};
use hodo_io::{Clock, LocalAddress, PathOptions, SocketFacts, SocketSettings, affinity};
use hodo_machine::{Closed, Wait};
use hodo_measure::limits::Carrier;
use hodo_measure::{FarEndFacts, Link, LinkError, Plan};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The interval at which opening checks whether it is to go on.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The pace of a socket over that of the operations: these start when due, and the socket, which counts headers too, spaces the packets
/// of each.
const ABOVE_PACE: f64 = 1.05;

/// How a link is opened.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Channels.
    pub channels: u32,
    /// Operations in flight per channel, at most.
    pub window: u32,
    /// Whether operations are sent without waiting for any, as [`hodo_measure::Plan::unbounded`] says; `window` is what is handed over at a time then.
    pub unbounded: bool,
    /// The largest operation in bytes.
    pub size_max: u32,
    /// How this side waits.
    pub wait: Wait,
    /// Processors to run on; empty: wherever the kernel puts the threads. One channel uses the first; many use one
    /// thread each.
    pub cpus: Vec<usize>,
    /// TCP congestion control; `None` leaves the system's.
    pub congestion: Option<String>,
    /// The marks of the packets, and the way on which they leave.
    pub path: PathOptions,
    /// Socket buffer sizes in bytes; `None` leaves the system's.
    pub socket_buffer: Option<usize>,
    /// The most payload bits per second on all channels; `None` for as fast as it goes.
    pub pace: Option<f64>,
    /// Operations in a packet, where the protocol concatenates.
    pub batch: u32,
    /// The process of a far end that was started here; `None` if it is elsewhere or not known.
    pub far_process: Option<FarEndProcess>,
    /// Whether every operation has a connection of its own, opened and closed with it (`TCP_CRR`).
    pub reconnect: bool,
    /// The content of the operations.
    pub content: Content,
    /// The seed of everything drawn at random.
    pub seed: u64,
    /// How long connecting and a single answer may take.
    pub timeout: Duration,
}

impl Settings {
    /// Returns the settings that a link needs for a plan; everything else is left to the system and the protocol.
    #[must_use]
    pub fn of(plan: &Plan) -> Settings {
        Settings {
            channels: plan.channels,
            window: plan.window,
            unbounded: plan.unbounded,
            size_max: plan.size.bounds().1,
            wait: plan.wait,
            cpus: Vec::new(),
            congestion: None,
            path: PathOptions::default(),
            socket_buffer: None,
            pace: plan.pace,
            batch: plan.batch,
            far_process: None,
            reconnect: false,
            content: Content::default(),
            seed: plan.seed,
            timeout: plan.stall,
        }
    }
}

/// An open link.
pub struct Opened {
    /// The links, one for each thread; the channels are distributed over them.
    pub links: Vec<Box<dyn Link + Send>>,
    /// The threads' processors, one for each link; `None`: wherever the kernel puts it.
    pub cpus: Vec<Option<usize>>,
    /// The congestion control that the sockets use.
    pub congestion: Option<String>,
    /// The bytes of payload in the largest TCP segment.
    pub mss: Option<u32>,
    /// The address at this end, for finding the interface that the link leaves by.
    pub local: Option<SocketAddr>,
    /// The address at the far end.
    pub remote: Option<SocketAddr>,
    /// The far end's report of its side, if it reports any.
    pub far_end: Option<FarEndFacts>,
    /// The simulated network out and back, of a simulated link.
    pub model: Option<(hodo_sim::Model, hodo_sim::Model)>,
    /// Far ends of a simulated link, each with a line of its own.
    pub far_ends: u32,
}

impl Opened {
    /// Creates an open link of which nothing else is known.
    #[must_use]
    pub fn new(links: Vec<Box<dyn Link + Send>>) -> Opened {
        let (congestion, mss, local, remote, far_end) = (None, None, None, None, None);
        Opened { links, cpus: vec![None], congestion, mss, local, remote, far_end, model: None, far_ends: 1 }
    }

    /// Adds the report of the sockets of one thread's part.
    pub fn note(&mut self, facts: SocketFacts) {
        let SocketFacts { congestion, mss, local, remote } = facts;
        self.congestion = congestion.or(self.congestion.take());
        self.mss = mss.or(self.mss);
        self.local = local.or(self.local);
        self.remote = remote.or(self.remote);
    }

    /// Returns whether both sides are on this host, where there is no line between them.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let same = |local: SocketAddr, remote: SocketAddr| local.ip() == remote.ip();
        self.local.zip(self.remote).is_none_or(|(local, remote)| remote.ip().is_loopback() || same(local, remote))
    }
}

/// Opens the link that a URI names. The far end must be there (see [`crate::serve()`]) unless the link is simulated.
///
/// It gives up when `stop` is set, which is noticed within a tenth of a second.
///
/// # Errors
/// [`Error::Usage`] if the URI or a setting is wrong, [`Error::Failed`] if the far end cannot be reached.
pub fn open(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
    if settings.channels == 0 || settings.window == 0 {
        return Err(Error::Usage("a link needs at least one channel and a window of at least 1".into()));
    }
    check_options(uri, settings.congestion.as_deref(), &settings.path, !settings.cpus.is_empty(), settings.wait)?;
    settings.content.check(uri)?;
    if uri.simulated {
        return uri.protocol.simulate(uri, settings, stop);
    }
    check_congestion(settings.congestion.as_deref())?;
    path::check_host(uri, &settings.path)?;
    uri.protocol.open(&path::resolved(uri, &settings.path)?, settings, stop)
}

/// Opens a link in parts, one for each thread that will drive it: `open_part` opens the channels that it is given on
/// the processor that will drive them, and adds its link.
///
/// # Errors
/// The first error of a part; [`Error::Usage`] if a processor cannot be used.
pub fn in_parts(
    settings: &Settings,
    mut open_part: impl FnMut(Range<u32>, Clock, &mut Opened) -> Result<(), Error>,
) -> Result<Opened, Error> {
    let clock = Clock::start();
    let home = affinity::allowed_cpus();
    let cpus = cpus(settings);
    let mut opened = Opened { cpus, ..Opened::new(Vec::new()) };
    let parts = opened.cpus.len() as u32;
    let mut first = 0;
    for (index, cpu) in (0..).zip(opened.cpus.clone()) {
        // Connections are made on the processor that will drive them, so that the far end can put its side there too.
        pin(cpu)?;
        let channels = settings.channels / parts + u32::from(index < settings.channels % parts);
        open_part(first..first + channels, clock, &mut opened)?;
        first += channels;
    }
    if let Ok(home) = home
        && opened.cpus.iter().any(Option::is_some)
    {
        affinity::allow_cpus(&home).map_err(|error| Error::Failed(format!("restoring the processors: {error}")))?;
    }
    Ok(opened)
}

/// Refuses options that a link cannot have: processors and polling where time is virtual, a congestion control where no
/// TCP socket is, options of IP packets where there are none.
///
/// # Errors
/// [`Error::Usage`] with the remedy.
pub fn check_options(
    uri: &Uri,
    congestion: Option<&str>,
    path: &PathOptions,
    has_cpus: bool,
    wait: Wait,
) -> Result<(), Error> {
    path::check_options(uri, path)?;
    let refused = |option: &str, why: &str| Err(Error::Usage(format!("{option} does not apply to `{uri}`: {why}")));
    if uri.simulated {
        if let Some(name) = congestion {
            let why =
                format!("its streams are simulated; write {}?congestion={name}, or cubic, reno or none", place(uri));
            return refused("--congestion", &why);
        }
        if has_cpus {
            return refused("--cpu", "a simulation takes no time of a processor; leave it out");
        }
        if !(wait.sleeps() || wait == Wait::Never) {
            return refused(&format!("--wait {wait}"), "a simulation waits in virtual time; leave it out");
        }
        return Ok(());
    }
    if congestion.is_some() && path::carrier(uri) != Some(Carrier::Tcp) {
        return refused("--congestion", "it has no TCP sockets; leave it out");
    }
    Ok(())
}

/// Returns a URI without its options.
fn place(uri: &Uri) -> String {
    Uri { options: Vec::new(), ..uri.clone() }.to_string()
}

/// Refuses a congestion control that the sockets could not use.
pub(crate) fn check_congestion(name: Option<&str>) -> Result<(), Error> {
    let Some(name) = name else { return Ok(()) };
    hodo_io::check_congestion(name).map_err(|error| {
        let known = hodo_io::host::HostFacts::collect().congestion_controls.join(", ");
        Error::Usage(format!("--congestion {name}: {error}; this system has {known}"))
    })
}

/// Returns the settings of every socket of a link.
#[must_use]
pub fn socket_settings(settings: &Settings) -> SocketSettings {
    SocketSettings {
        congestion: settings.congestion.clone(),
        path: settings.path.clone(),
        socket_buffer: settings.socket_buffer,
        peers_max: 2 * settings.channels as usize + 1,
        // A connection that ended in order would keep its port for a minute.
        cut_on_close: settings.reconnect || settings.path.local.as_ref().is_some_and(LocalAddress::has_port),
        pace: settings.pace.map(|bits_per_s| (bits_per_s / 8.0 * ABOVE_PACE) as u64),
        ..SocketSettings::default()
    }
}

/// Returns one processor for each thread: one thread for one channel, else one for each processor.
fn cpus(settings: &Settings) -> Vec<Option<usize>> {
    let threads = match (settings.channels, settings.cpus.len()) {
        (1, _) => 1,
        (channels, 0) => std::thread::available_parallelism().map_or(1, usize::from).min(channels as usize),
        (channels, cpus) => cpus.min(channels as usize),
    };
    (0..threads).map(|index| settings.cpus.get(index).copied()).collect()
}

fn pin(cpu: Option<usize>) -> Result<(), Error> {
    let Some(cpu) = cpu else { return Ok(()) };
    affinity::pin_thread(cpu).map_err(|error| Error::Usage(format!("--cpu {cpu}: {error}")))
}

/// Turns a link until its far end is ready, at most for `timeout`, and no longer than until `stop` is set.
///
/// # Errors
/// [`LinkError::Stalled`] after the timeout, [`LinkError::Interrupted`] if `stop` was set, or the link's own error.
pub fn until_ready<L: Link>(
    link: &mut L,
    timeout: Duration,
    stop: &AtomicBool,
    is_ready: impl Fn(&L) -> bool,
) -> Result<(), LinkError> {
    let end = link.now() + timeout;
    let mut done = Vec::new();
    while !is_ready(link) {
        if link.now() >= end {
            return Err(LinkError::Stalled { millis: timeout.as_millis() as u64 });
        }
        if stop.load(Ordering::Relaxed) {
            return Err(LinkError::Interrupted);
        }
        let look = link.now() + LOOK_UP;
        link.poll(Wait::Block, end.min(look), &mut done)?;
    }
    Ok(())
}

/// Checks that the far end takes operations of the size that the settings ask for.
///
/// # Errors
/// [`Error::Failed`] if the far end takes only smaller ones.
pub fn check_size(uri: &Uri, settings: &Settings, theirs: u32) -> Result<(), Error> {
    if settings.size_max > theirs.max(16) {
        return Err(Error::Failed(format!(
            "{uri} takes operations of at most {theirs} bytes, {} are asked for; lower --sizes",
            settings.size_max
        )));
    }
    Ok(())
}

/// Returns the error for a link that could not be opened, with the remedy.
#[must_use]
pub fn cannot(uri: &Uri, error: &LinkError) -> Error {
    let uri = uri.with_port();
    let place = Uri { options: Vec::new(), ..uri.clone() };
    let why = match error {
        LinkError::Closed { why: why @ Closed::Refused, .. } => {
            let is_here = uri.authority.is_empty() || hodo_io::port_of_loopback(&uri.authority).is_some();
            let or_else = if is_here { "" } else { ", or on its loopback only" };
            format!("{why}{or_else}; {}", uri.protocol.remedy(&place))
        }
        LinkError::Closed { why: why @ (Closed::Finished | Closed::Reset), .. } => {
            format!("{why}; is it a `hodo serve` of this protocol, with room for this many peers (--peers-max)?")
        }
        LinkError::Stalled { millis } => {
            format!("it has been silent for {millis} ms; is it a running `hodo serve` of this protocol?")
        }
        other => other.to_string(),
    };
    Error::Failed(format!("cannot open {uri}: {why}"))
}
