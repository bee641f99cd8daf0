//! The options of a link's sockets: which links can have them, whether this host can, and what a row says of them.

use crate::{Error, PathSupport, Uri};
use hodo_io::{IpVersion, PathOptions, resolve_as};
use hodo_machine::Transport;
use hodo_measure::limits::Carrier;
use hodo_measure::{Connection, Plan};

/// The interface of loopback.
const LOOPBACK_DEVICE: &str = "lo";

/// Refuses options of sockets that a link cannot have.
pub(crate) fn check_options(uri: &Uri, path: &PathOptions) -> Result<(), Error> {
    let Some(first) = first(path) else { return Ok(()) };
    let refused = |option: &str, why: &str| Err(Error::Usage(format!("{option} does not apply to `{uri}`: {why}")));
    if uri.simulated {
        return refused(first, "its network is simulated; leave it out, or name a far end on a network");
    }
    let carrier = carrier(uri);
    if carrier == Some(Carrier::Unix) {
        return refused(first, "it sends no IP packets; leave it out, or measure tcp or udp");
    }
    let of_socket = [("--bind", path.local.is_some()), ("--device", path.device.is_some())];
    match (uri.protocol.path_support(uri), of_socket.into_iter().find(|(_, is_set)| *is_set)) {
        (PathSupport::None, _) => return refused(first, "its packets are made by an adapter; leave it out"),
        (PathSupport::Marks, Some((option, _))) => {
            return refused(option, "its adapter has an address of its own, by the route to the far end; leave it out");
        }
        _ => {}
    }
    if path.mss.is_some() && carrier != Some(Carrier::Tcp) {
        return refused("--mss", "it has no TCP sockets; leave it out");
    }
    if uri.wants_far_end() && path.device.as_ref().is_some_and(|device| device != LOOPBACK_DEVICE) {
        return refused(
            "--device",
            "without a host its far end is at loopback, which is another interface; name the host",
        );
    }
    if uri.wants_far_end()
        && path.ip_version() == Some(IpVersion::V6)
        && uri.protocol.far_end(uri, false).served.is_none()
    {
        return refused(
            "--ipv6",
            "the far end that is started for it listens on IPv4; leave --ipv6 out, or name one that runs",
        );
    }
    match (path.version, &path.local) {
        (Some(version), Some(local)) if version != IpVersion::of(local.address().ip()) => Err(Error::Usage(format!(
            "--bind {local}: that is no {version} address; leave --ipv{} out, or name one",
            version.number()
        ))),
        _ => Ok(()),
    }
}

/// Returns the first option that is set, as it is written on the command line.
fn first(path: &PathOptions) -> Option<&'static str> {
    let PathOptions { dscp, ttl, mss, local, device, version } = path;
    let set = [
        ("--dscp", dscp.is_some()),
        ("--ttl", ttl.is_some()),
        ("--mss", mss.is_some()),
        ("--bind", local.is_some()),
        ("--device", device.is_some()),
        ("--ipv4", *version == Some(IpVersion::V4)),
        ("--ipv6", *version == Some(IpVersion::V6)),
    ];
    set.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name)
}

/// Returns the carrier of a link's operations; `None` if the URI is wrong.
pub(crate) fn carrier(uri: &Uri) -> Option<Carrier> {
    let plan = Plan::one(uri.protocol.description().modes[0], 64);
    uri.protocol.on_the_wire(uri, &plan).ok().map(|wire| wire.carrier)
}

/// Checks that this host has the interface and the addresses, and that this process may use them.
pub(crate) fn check_host(uri: &Uri, path: &PathOptions) -> Result<(), Error> {
    if first(path).is_none() {
        return Ok(());
    }
    let transport = if carrier(uri) == Some(Carrier::Udp) { Transport::Datagram } else { Transport::Stream };
    path.check(transport).map_err(|error| {
        let (option, value) = error.culprit();
        Error::Usage(format!("--{option} {value}: {error}"))
    })
}

/// Returns the URI with an address of the version of IP that the options ask for in place of each of its hosts.
pub(crate) fn resolved(uri: &Uri, path: &PathOptions) -> Result<Uri, Error> {
    let Some(version) = path.ip_version().filter(|_| !uri.authority.is_empty()) else { return Ok(uri.clone()) };
    let address = |host: &str| {
        let found = resolve_as(host, 0, Some(version)).map_err(|error| {
            Error::Usage(format!(
                "`{host}` in `{uri}`: {error}; leave --ipv4, --ipv6 and --bind out, or name another host"
            ))
        })?;
        let has_port = found.port() != 0 || host.ends_with(":0");
        let text = found.to_string();
        let end = text.rfind(':').unwrap_or(text.len());
        Ok(if has_port { text } else { text[..end].to_owned() })
    };
    let hosts = uri.authority.split(',').map(address).collect::<Result<Vec<_>, Error>>()?;
    Ok(Uri { authority: hosts.join(","), ..uri.clone() })
}

/// Returns what a row says of its sockets: what was requested, and the segments of an open connection.
pub(crate) fn connection(path: &PathOptions, mss: Option<u32>) -> Option<Connection> {
    let connection = Connection {
        dscp: path.dscp.map(hodo_io::Dscp::code),
        ttl: path.ttl,
        mss,
        mss_asked: path.mss.map(u32::from),
        bind: path.local.as_ref().map(ToString::to_string),
        device: path.device.clone(),
        ip_version: path.version.map(IpVersion::number),
    };
    Some(connection).filter(|connection| *connection != Connection::default())
}
