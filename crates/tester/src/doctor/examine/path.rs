//! The path to the far end of a link.

use super::super::{FarProcess, Operations, PathFacts};
use crate::{Error, Settings, Uri};
use hodo_io::host::{Throttling, bound_at};
use hodo_io::nic::Nic;
use hodo_io::{Route, affinity};
use hodo_machine::Wait;
use hodo_measure::limits::Carrier;
use hodo_measure::{Mode, Plan, Until, Unwatched};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time within which a far end has to answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// The duration of a row of operations.
const OPERATIONS: Duration = Duration::from_millis(150);
/// Bytes of a small operation.
const SMALL: u32 = 64;
/// Bytes that the headers of all protocols leave free in a full packet.
const HEADERS: u32 = 200;
/// The largest packet of Ethernet, where the interface says nothing.
const ETHERNET: u32 = 1500;

/// A far end to which there is a route.
pub(super) struct Target {
    uri: Uri,
    remote: SocketAddr,
    pub(super) route: Route,
}

/// Returns the far end of a URI; `None` for a link whose far end is started here.
pub(super) fn target(uri: &Uri) -> Result<Option<Target>, Error> {
    if uri.simulated {
        let why = "a simulated link has no host and no path; leave sim+ out, or examine this host with `hodo doctor`";
        return Err(Error::Usage(format!("`{uri}`: {why}")));
    }
    if uri.authority.is_empty() {
        return Ok(None);
    }
    let wrong = |why| Error::Usage(format!("`{}` in `{uri}` cannot be resolved: {why}", uri.authority));
    let remote = hodo_io::resolve(&uri.authority, 0).map_err(wrong)?;
    let route = Route::to(remote.ip()).map_err(|why| {
        Error::Failed(format!("there is no route to {}: {why}; add one, or start an interface", remote.ip()))
    })?;
    Ok(Some(Target { uri: uri.clone(), remote, route }))
}

/// Examines the path to a far end, in up to five seconds.
pub(super) fn examine(target: Target) -> PathFacts {
    let Target { uri, remote, route } = target;
    let largest = Nic::named(&route.interface).and_then(|nic| nic.mtu).unwrap_or(ETHERNET);
    let mode = uri.protocol.modes(&uri).first().copied().unwrap_or(Mode::Both);
    let carrier = uri.protocol.on_the_wire(&uri, &Plan::one(mode, SMALL)).ok().map(|wire| wire.carrier);
    let probe = hodo_io::probe_path(remote.ip(), largest).map_err(|why| match why.kind() {
        ErrorKind::PermissionDenied => {
            "echo requests are not permitted to this user; run as root, or widen net.ipv4.ping_group_range".to_owned()
        }
        _ => why.to_string(),
    });
    let has_port = remote.port() != 0;
    // A daemon may have work to do, with which operations would interfere.
    let is_ours = uri.protocol.description().own && uri.protocol.far_end(&uri, false).served.is_some() && has_port;
    let operations = is_ours.then(|| operations(&uri, mode, largest.saturating_sub(HEADERS).max(SMALL)));
    let tcp = (carrier == Some(Carrier::Tcp) && has_port)
        .then(|| hodo_io::tcp_path(remote, PATIENCE).map_err(|why| why.to_string()));
    let far_process = bound_at(remote).map(|process| FarProcess {
        process,
        cpus: affinity::cpus_of(process).unwrap_or_default(),
        throttling: Throttling::of(process),
    });
    let known_mtu = Route::to(remote.ip()).ok().and_then(|route| route.mtu);
    PathFacts { remote, route, carrier, probe, tcp, operations, known_mtu, far_process }
}

/// Measures operations over the link: small ones, and some that fill packets.
fn operations(uri: &Uri, mode: Mode, large_bytes: u32) -> Result<Operations, String> {
    let small = median(uri, mode, SMALL)?;
    Ok(Operations { small, large_bytes, large: median(uri, mode, large_bytes).ok() })
}

/// Returns the median time of operations of a size, one at a time over a connection of their own.
fn median(uri: &Uri, mode: Mode, bytes: u32) -> Result<Duration, String> {
    let plan = Plan { until: Until::Elapsed(OPERATIONS), stall: PATIENCE, ..Plan::one(mode, bytes) };
    let settings = Settings { wait: Wait::Block, ..Settings::of(&plan) };
    let mut opened = crate::open(uri, &settings, &AtomicBool::new(false)).map_err(|why| why.to_string())?;
    let run = hodo_measure::run(&mut opened.links, &plan, &Unwatched);
    match (run.latency, run.error) {
        (Some(latency), None) => Ok(Duration::from_nanos(latency.p50)),
        (_, Some(why)) => Err(why.to_string()),
        (None, None) => Err("no operation completed".to_owned()),
    }
}
