//! A URI becomes a link to the nodes of a farm, or those nodes, on sockets or simulated.

use crate::link::{self, FarmLink};
use crate::options::{FarmOptions, addresses};
use hodo_farm::Node;
use hodo_farm::controller::FarCounters;
use hodo_farm::wire::NODES_PORT;
use hodo_farm_host::process_counters;
use hodo_io::{Clock, Endpoint, Sockets};
use hodo_machine::{Address, Transport};
use hodo_sim::Sim;
use hodo_tester::{
    Error, LOOPBACK, Opened, SERVER_NODE, ServeSettings, Server, Service, Settings, Uri, cannot, check_size, in_parts,
    networks, simulated, socket_settings,
};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Opens a link over sockets.
pub(crate) fn open(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
    let hosts = addresses(uri)?;
    in_parts(settings, |channels, clock, opened| open_part(uri, &hosts, settings, channels, clock, stop, opened))
}

/// Opens one thread's part of a link.
fn open_part(
    uri: &Uri,
    hosts: &[Address],
    settings: &Settings,
    channels: Range<u32>,
    clock: Clock,
    stop: &AtomicBool,
    opened: &mut Opened,
) -> Result<(), Error> {
    if settings.reconnect {
        return Err(Error::Usage("--reconnect: the nodes of a farm keep their connections; leave it out".into()));
    }
    let options = FarmOptions::of(uri)?;
    let count = channels.end - channels.start;
    let nodes = channels.map(|channel| hosts[channel as usize % hosts.len()].clone()).collect();
    let transport =
        Sockets::new(socket_settings(settings)).map_err(|error| Error::Failed(format!("opening {uri}: {error}")))?;
    let endpoint = Endpoint::new(link::controller(&options, settings, nodes), transport, clock);
    let link = FarmLink::open(endpoint, count, settings, stop).map_err(|error| cannot(uri, &error))?;
    check_size(uri, settings, link.size_max())?;
    opened.note(link.driver().transport().facts());
    opened.links.push(Box::new(link));
    Ok(())
}

/// Opens a link over the simulated network. There is a node for each channel, all of them one machine's, as those of a
/// server are.
pub(crate) fn simulate(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
    let (options, network) = FarmOptions::and_others(uri)?;
    let (out, back) = networks(uri, &network, settings)?;
    let nodes = vec![Address::Node(SERVER_NODE); settings.channels as usize];
    let controller = link::controller(&options, settings, nodes);
    let node = Node::new(options.nodes(settings.size_max));
    let answer = |event| link::answer(event, FarCounters::default);
    let sim = Sim::new(Transport::Stream, (&out, &back), controller, vec![node], answer);
    let link = FarmLink::open(sim, settings.channels, settings, stop).map_err(|error| cannot(uri, &error))?;
    let model = link.driver().model();
    Ok(simulated(Box::new(link), model, 1))
}

/// Binds nodes: one for each connection.
pub(crate) fn serve(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    let config = FarmOptions::of(uri)?.nodes(settings.size_max);
    // Without options: what the nodes do is nothing that their controller has to say.
    let place = uri.with_options(|_| false);
    let service = Service {
        make: move |_| Node::new(config.clone()),
        answer: |event| link::answer(event, process_counters),
        transport: Transport::Stream,
        threads: settings.thread_count(),
        listeners: 1,
    };
    Server::bind(&place, &place.socket_address(LOOPBACK, NODES_PORT)?, settings, service)
}
