//! A URI becomes a raw link or its far end, on sockets or simulated.

use crate::link::{self, RawLink, client_config, server_config};
use crate::suite;
use crate::{facts, group};
use hodo_io::{Clock, Endpoint, Sockets};
use hodo_machine::{Address, Bytes, Driver, Transport};
use hodo_raw::{Client, Counters, Server as Machine, ServerCommand, ServerConfig, ServerEvent};
use hodo_sim::Sim;
use hodo_tester::{
    Error, LOOPBACK, Opened, Payload, SERVER_NODE, ServeSettings, Server, Service, Settings, Uri, cannot, check_size,
    in_parts, networks, simulated, simulated_far_end, socket_settings,
};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// The port of a server, unless told otherwise.
pub(crate) const DEFAULT_PORT: u16 = 4242;

/// Opens a link over sockets.
pub(crate) fn open(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
    if let Some(group) = group::named(uri)? {
        return group::open(uri, group, settings, stop);
    }
    let address = address(uri, "")?;
    in_parts(settings, |channels, clock, opened| open_part(uri, settings, &address, &channels, clock, stop, opened))
}

/// Opens one thread's part of a link.
fn open_part(
    uri: &Uri,
    settings: &Settings,
    address: &Address,
    channels: &Range<u32>,
    clock: Clock,
    stop: &AtomicBool,
    opened: &mut Opened,
) -> Result<(), Error> {
    let (transport, channels) = (crate::transport(uri), channels.len() as u32);
    if settings.reconnect && transport == Transport::Datagram {
        return Err(Error::Usage("--reconnect needs connections; UDP has none".into()));
    }
    let failed = |error: std::io::Error| Error::Failed(format!("opening {uri}: {error}"));
    let sockets = socket_settings(settings);
    let client = Client::new(client_config(settings, transport, address.clone().over(transport), channels));
    let endpoint = Endpoint::new(client, Sockets::new(sockets).map_err(failed)?, clock);
    let link = RawLink::open(endpoint, channels, settings, stop).map_err(|error| cannot(uri, &error))?;
    check_size(uri, settings, link.size_max())?;
    opened.note(link.driver().transport().facts());
    opened.far_end = facts::decode(link.driver().machine().far_facts());
    opened.links.push(Box::new(link));
    Ok(())
}

/// Opens a link over the simulated network.
pub(crate) fn simulate(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
    let link = simulated_link(uri, settings, stop)?;
    let model = link.driver().model();
    Ok(simulated(Box::new(link), model, 1))
}

pub(crate) fn simulated_link(
    uri: &Uri,
    settings: &Settings,
    stop: &AtomicBool,
) -> Result<RawLink<Sim<Client, Machine>>, Error> {
    let (out, back) = networks(uri, &uri.options, settings)?;
    let transport = crate::transport(uri);
    let client = Client::new(client_config(settings, transport, Address::Node(SERVER_NODE), settings.channels));
    // Nobody can listen in on a simulation, and a run has to be the same each time.
    let server = Machine::new(server_config(&simulated_far_end(settings), transport, [0, 0]));
    let sim = Sim::new(transport, (&out, &back), client, vec![server], answer);
    let link = RawLink::open(sim, settings.channels, settings, stop).map_err(|error| cannot(uri, &error))?;
    check_size(uri, settings, link.size_max())?;
    Ok(link)
}

/// Returns the simulated far end's report. It has no process of its own, and a run has to be the same each time, so it
/// reports no CPU.
fn answer(event: ServerEvent) -> Option<ServerCommand> {
    match event {
        ServerEvent::ReportAsked(peer) => Some(ServerCommand::Report { peer, process: Counters::default() }),
        ServerEvent::Misbehaved(..) => None,
    }
}

/// Binds the far end.
pub(crate) fn serve(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    let transport = crate::transport(uri);
    let address = address(uri, LOOPBACK)?;
    let config = server_config(settings, transport, [0, 0]);
    let payload = settings.payload.as_ref().map_or_else(Bytes::new, Payload::bytes);
    let told = facts::encode(&settings.facts(&address.clone().over(transport)));
    let service = Service {
        // Each has a secret of its own, because each numbers its peers by itself.
        make: move |_| {
            Machine::new(ServerConfig { secret: [(); 2].map(|()| hodo_io::random_bits()), ..config })
                .telling(told.clone())
                .carrying(payload.clone())
        },
        answer: link::answer,
        transport,
        threads: settings.thread_count(),
        listeners: 1,
    };
    Server::bind(uri, &address, settings, service)
}

/// Returns the address that a URI names.
pub(crate) fn address(uri: &Uri, default: &str) -> Result<Address, Error> {
    if uri.scheme != suite::UNIX.name {
        return uri.socket_address(default, DEFAULT_PORT);
    }
    uri.without_options()?;
    let path = format!("{}{}", uri.authority, uri.path);
    if path.is_empty() {
        return Err(Error::Usage(format!("`{uri}` names no socket; write unix:///path/of/socket")));
    }
    Ok(Address::Path(path))
}
