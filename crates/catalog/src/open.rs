use crate::{Error, Uri};
use hodo_machine::Wait;
use hodo_measure::{Limit, Link, Measurement, Plan};
use std::time::Duration;

/// How a link is opened.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Channels.
    pub channels: u32,
    /// Operations in flight per channel, at most.
    pub window: u32,
    /// The largest operation in bytes.
    pub size_max: u32,
    /// How this side waits.
    pub wait: Wait,
    /// Processors to run on; empty: wherever the kernel puts us. One channel uses the first; many use one thread each.
    pub cpus: Vec<usize>,
    /// TCP congestion control; `None` leaves the system's.
    pub congestion: Option<String>,
    /// Socket buffer sizes in bytes; `None` leaves the system's.
    pub socket_buffer: Option<usize>,
    /// Every operation on a connection of its own, opened and closed with it (`TCP_CRR`).
    pub reconnect: bool,
    /// For everything drawn at random.
    pub seed: u64,
    /// How long connecting and a single answer may take.
    pub timeout: Duration,
}

/// An open link.
pub struct Opened {
    /// One for each thread that drives it; the channels are dealt over them.
    pub links: Vec<Box<dyn Link + Send>>,
    /// The threads' processors, one for each link; `None`: wherever the kernel puts it.
    pub cpus: Vec<Option<usize>>,
    /// The congestion control that the sockets use.
    pub congestion: Option<String>,
    /// The address at this end, for finding the interface that the link leaves by.
    pub local: Option<std::net::SocketAddr>,
    /// The address at the far end.
    pub remote: Option<std::net::SocketAddr>,
}

/// What bare sockets do in the same run, with the same sizes, wait and placement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Operations per second.
    pub operations_per_s: f64,
    /// The median time of an operation, of one at a time.
    pub latency_ns: Option<f64>,
}

/// Opens the link that a URI names. The far end must be there (see [`crate::serve`]) unless the link is simulated.
pub fn open(uri: &Uri, settings: &Settings) -> Result<Opened, Error> {
    let _ = settings;
    Err(Error::Failed(format!("{uri}: not there yet")))
}

/// Measures what bare sockets do for the same plan, on this machine, in about a fifth of a second.
pub fn floor(uri: &Uri, settings: &Settings, plan: &Plan, far_cpus: &[usize]) -> Result<Option<Floor>, Error> {
    let _ = (uri, settings, plan, far_cpus);
    Ok(None)
}

/// The limit of a measurement: of the line where its rate is known, of bare sockets where there is no line, of the
/// model for a simulated link.
#[must_use]
pub fn limit(
    uri: &Uri,
    opened: &Opened,
    line: Option<(f64, u32)>,
    floor: Option<Floor>,
    found: &Measurement,
) -> Option<Limit> {
    let _ = (uri, opened, line, floor, found);
    None
}
