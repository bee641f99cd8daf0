//! Links to a multicast group: one end sends, and every server that has joined the group receives.

use crate::link::{RawLink, client_config};
use hodo_io::{Clock, Endpoint, Port, PortOptions, Sockets, any_address, source_towards};
use hodo_machine::{Address, Driver, Transport};
use hodo_measure::{Mode, Plan};
use hodo_raw::Client;
use hodo_tester::{Error, Opened, Settings, Uri, cannot, check_size, socket_settings};
use std::net::SocketAddr;
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
    let group = crate::open::address(&plain, "")?.over(Transport::Datagram).group();
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
    let any = Address::Udp(any_address(group.is_ipv4(), 0));
    let port = Port::bind(&any, &PortOptions::default()).map_err(failed)?;
    let number = port.address().ip().map_or(0, |address| address.port());
    let mut sockets = Sockets::new(socket_settings(settings)).map_err(failed)?;
    sockets.bind(port).map_err(failed)?;
    let config = client_config(settings, Transport::Datagram, Address::UdpFrom(number, group), receivers);
    let endpoint = Endpoint::new(Client::new(config), sockets, Clock::start());
    let link = RawLink::open(endpoint, receivers, settings, stop).map_err(|error| cannot(uri, &error))?;
    check_size(uri, settings, link.size_max())?;
    let mut opened = Opened::new(Vec::new());
    opened.remote = link.driver().machine().receivers().find_map(Address::ip);
    opened.local = opened.remote.and_then(source_towards).map(|source| SocketAddr::new(source, number));
    opened.far_end = crate::facts::decode(link.driver().machine().far_facts());
    opened.links.push(Box::new(link));
    Ok(opened)
}
