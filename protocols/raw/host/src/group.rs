//! Links to a multicast group: one end sends, and every server that has joined the group receives.

use crate::link::{RawLink, client_config};
use hodo_io::nic::interfaces;
use hodo_io::{Clock, Endpoint, Port, PortOptions, Route, Sockets};
use hodo_machine::{Address, Driver, Transport};
use hodo_measure::{Mode, Plan};
use hodo_raw::Client;
use hodo_tester::{Error, Opened, Settings, Uri, cannot, check_size, socket_settings};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

/// The option of a link that says how many receivers have to be there.
const RECEIVERS: &str = "receivers";
/// Receivers at most: each has a channel here.
const RECEIVERS_MAX: u32 = 1024;

/// Returns the group that a link names, and how many receivers it has; `None` if it names none.
pub(crate) fn named(uri: &Uri) -> Result<Option<(SocketAddr, u32)>, Error> {
    if crate::transport(uri) != Transport::Datagram || uri.simulated || uri.authority.is_empty() {
        return Ok(None);
    }
    let plain = uri.with_options(|name| name != RECEIVERS);
    let address = crate::open::address(&plain, "")?;
    let group = address.ip().filter(|address| address.ip().is_multicast());
    let receivers = match (uri.option(RECEIVERS), group) {
        (None, _) => 1,
        (Some(_), None) => {
            return Err(Error::Usage(format!(
                "`{uri}`: only a multicast group has {RECEIVERS}, as udp://239.1.2.3:4242"
            )));
        }
        (Some(text), Some(_)) => {
            text.parse().ok().filter(|count| (1..=RECEIVERS_MAX).contains(count)).ok_or_else(|| {
                Error::Usage(format!(
                    "`{uri}`: `{RECEIVERS}` is a number in 1..={RECEIVERS_MAX}, as udp://239.1.2.3?{RECEIVERS}=2"
                ))
            })?
        }
    };
    Ok(group.map(|group| (group, receivers)))
}

/// Checks that a group can do what a plan asks.
pub(crate) fn check(uri: &Uri, plan: &Plan) -> Result<(), Error> {
    if named(uri)?.is_some() && (!plan.unbounded || plan.mode != Mode::Send || plan.channels != 1) {
        return Err(Error::Usage(format!(
            "`{uri}`: to a multicast group datagrams are sent over one channel without waiting for any; add --test rate --mode send --window none"
        )));
    }
    Ok(())
}

/// Returns the address from which packets to a receiver leave.
fn source(remote: SocketAddr) -> Option<IpAddr> {
    let route = Route::to(remote.ip()).ok()?;
    if route.is_local {
        return Some(remote.ip());
    }
    let of_route = interfaces().into_iter().filter(|one| one.name == route.interface);
    of_route.filter_map(|one| one.address).find(|address| address.is_ipv4() == remote.is_ipv4())
}

/// Opens a link to a group.
pub(crate) fn open(
    uri: &Uri,
    (group, receivers): (SocketAddr, u32),
    settings: &Settings,
    stop: &AtomicBool,
) -> Result<Opened, Error> {
    if settings.path.local.is_some() {
        return Err(Error::Usage("--bind: what goes to a multicast group leaves by an interface; use --device".into()));
    }
    let failed = |error: std::io::Error| Error::Failed(format!("opening {uri}: {error}"));
    let any: IpAddr = if group.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let port = Port::bind(&Address::Udp(SocketAddr::new(any, 0)), &PortOptions::default()).map_err(failed)?;
    let number = port.address().ip().map_or(0, |address| address.port());
    let mut sockets = Sockets::new(socket_settings(settings)).map_err(failed)?;
    sockets.bind(port).map_err(failed)?;
    let config = client_config(settings, Transport::Datagram, Address::UdpFrom(number, group), receivers);
    let endpoint = Endpoint::new(Client::new(config), sockets, Clock::start());
    let link = RawLink::open(endpoint, receivers, settings, stop).map_err(|error| cannot(uri, &error))?;
    check_size(uri, settings, link.size_max())?;
    let mut opened = Opened::new(Vec::new());
    opened.remote = link.driver().machine().receivers().find_map(Address::ip);
    opened.local = opened.remote.and_then(source).map(|source| SocketAddr::new(source, number));
    opened.far_end = crate::facts::decode(link.driver().machine().far_facts());
    opened.links.push(Box::new(link));
    Ok(opened)
}
