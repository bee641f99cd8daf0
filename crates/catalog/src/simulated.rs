//! The same machines over the simulated network.

use crate::boards::{self, Boards};
use crate::farm_link::{self, FarmLink};
use crate::farm_options::{self, FarmOptions};
use crate::ipbus_limit::Packets;
use crate::ipbus_link::{self, IpbusLink};
use crate::open::{Opened, Settings, cannot, check_size};
use crate::raw::{self, RawLink, client_config, server_config};
use crate::{Error, ServeSettings, Uri};
use hodo_farm::Node;
use hodo_farm::controller::FarCounters;
use hodo_ipbus::{Clients, Device};
use hodo_machine::{Address, Wait};
use hodo_measure::limits::{self, Bound};
use hodo_measure::{Binding, Limit, LimitKind, Link, Loss, Measurement, Mode, Test};
use hodo_raw::{Client, Counters, Server, ServerCommand, ServerEvent};
use hodo_sim::{Model, Network, Sim, Transport};
use std::sync::atomic::AtomicBool;

#[cfg(test)]
mod tests;

/// The node that the server stands at.
const SERVER: u32 = 1;

/// Opens a link over the network that the URI's options describe.
pub(crate) fn open(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
    if boards::is_scheme(uri.scheme) {
        let (boards, network) = Boards::simulated(uri, settings.channels)?;
        let link = link_to_boards(uri, &boards, &network, settings)?;
        let model = link.driver().model();
        return Ok(opened(Box::new(link), model, Some(boards)));
    }
    if uri.scheme == farm_options::SCHEME {
        let link = link_to_nodes(uri, settings, stop)?;
        let model = link.driver().model();
        return Ok(opened(Box::new(link), model, None));
    }
    let link = link(uri, settings, stop)?;
    let model = link.driver().model();
    Ok(opened(Box::new(link), model, None))
}

fn opened(link: Box<dyn Link + Send>, model: (Model, Model), boards: Option<Boards>) -> Opened {
    let (cpus, links) = (vec![None], vec![link]);
    Opened { links, cpus, congestion: None, local: None, remote: None, boards, model: Some(model) }
}

/// A device for each channel.
fn link_to_boards(
    uri: &Uri,
    boards: &Boards,
    network: &[(String, String)],
    settings: &Settings,
) -> Result<IpbusLink<Sim<Clients, Device>>, Error> {
    if uri.scheme.starts_with("chtcp") {
        return Err(Error::Usage(format!(
            "`{uri}`: there is no simulated hub; measure a device with sim+ipbusudp-2.0"
        )));
    }
    let (out, back) = networks(uri, network, settings)?;
    let (transport, device) = boards.device();
    let device = || Device::new(device.clone());
    let servers = (0..settings.channels).map(|_| device()).collect();
    let clients = Clients::new((0..settings.channels).map(|channel| boards.client(channel, settings)));
    let sim = Sim::new(transport, (&out, &back), clients, servers, |_| None);
    let noticed = |sim: &Sim<Clients, Device>| ipbus_link::noticed(sim.machine());
    let asked = boards.asked(0..settings.channels, settings);
    IpbusLink::open(sim, noticed, asked, settings.timeout).map_err(|error| cannot(uri, &error))
}

/// A node for each channel, all of them one machine's, as those of a server are.
fn link_to_nodes(
    uri: &Uri,
    settings: &Settings,
    stop: &AtomicBool,
) -> Result<FarmLink<Sim<farm_link::Giver, Node>>, Error> {
    let (options, network) = FarmOptions::and_others(uri)?;
    let (out, back) = networks(uri, &network, settings)?;
    let nodes = vec![Address::Node(SERVER); settings.channels as usize];
    let controller = farm_link::controller(&options, settings, nodes);
    let node = Node::new(options.nodes(settings.size_max));
    let answer = |event| farm_link::answer(event, FarCounters::default);
    let sim = Sim::new(Transport::Stream, (&out, &back), controller, vec![node], answer);
    FarmLink::open(sim, |_| Loss::default(), settings.channels, settings, stop).map_err(|error| cannot(uri, &error))
}

/// The networks out and back.
fn networks(uri: &Uri, options: &[(String, String)], settings: &Settings) -> Result<(Network, Network), Error> {
    if !uri.authority.is_empty() || !uri.path.is_empty() {
        return Err(Error::Usage(format!(
            "`{uri}` names a host; a simulated link has none: sim+{}://?delay=…",
            uri.scheme
        )));
    }
    let (mut out, mut back) = Network::both_ways(options).map_err(|error| Error::Usage(format!("`{uri}`: {error}")))?;
    if !options.iter().any(|(name, _)| name.ends_with("seed")) {
        (out.seed, back.seed) = (settings.seed, settings.seed);
    }
    Ok((out, back))
}

fn link(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<RawLink<Sim<Client, Server>>, Error> {
    let (out, back) = networks(uri, &uri.options, settings)?;
    let (transport, messages) = match uri.scheme {
        "udp" => (Transport::Datagram, hodo_raw::Transport::Datagram),
        _ => (Transport::Stream, hodo_raw::Transport::Stream),
    };
    let client = Client::new(client_config(settings, messages, Address::Node(SERVER), settings.channels));
    let server = Server::new(server_config(&far_end(settings), messages));
    let sim = Sim::new(transport, (&out, &back), client, vec![server], answer);
    let noticed = |sim: &Sim<Client, Server>| raw::noticed(sim.machine());
    let link =
        RawLink::open(sim, noticed, settings.channels, settings.timeout, stop).map_err(|error| cannot(uri, &error))?;
    check_size(uri, settings, link.size_max())?;
    Ok(link)
}

/// The simulated far end has no process of its own, and a run has to be the same each time: no CPU is told.
fn answer(event: ServerEvent) -> Option<ServerCommand> {
    match event {
        ServerEvent::ReportAsked(peer) => Some(ServerCommand::Report { peer, process: Counters::default() }),
        ServerEvent::Misbehaved(..) => None,
    }
}

fn far_end(settings: &Settings) -> ServeSettings {
    ServeSettings {
        threads: 1,
        cpus: Vec::new(),
        wait: Wait::Block,
        congestion: None,
        socket_buffer: None,
        size_max: settings.size_max,
        peers_max: settings.channels as usize,
    }
}

/// The bounds that the model sets: its wire, its window over the round-trip, its processors, its stream's buffer.
pub(crate) fn limit(
    (out, back): (Model, Model),
    (packets, farm): (Option<&Packets>, Option<&FarmOptions>),
    found: &Measurement,
    payload: f64,
) -> Option<Limit> {
    if let Some(packets) = packets {
        return limit_of_packets((out, back), packets, found, payload);
    }
    let header = hodo_raw::wire::HEADER as u64;
    let message = (payload as u64).max(header);
    let (there, here) = match found.mode {
        _ if let Some(farm) = farm => farm.messages(payload as u64),
        Mode::Both => (message, message),
        Mode::Send => (message, header),
        Mode::Receive => (header, message),
    };
    let costs = 2 * (out.cost + back.cost);
    let decision_ns = farm.map_or(0.0, FarmOptions::time_mean_ns);
    let round_trip_ns = (out.transit(there) + back.transit(here) + costs).as_nanos() as f64 + decision_ns;
    if found.test == Test::Latency {
        let formula =
            format!("{:?} + {:?} of transit + {costs:?} of processing", out.transit(there), back.transit(here));
        return Some(Limit::of_latency(LimitKind::Model, round_trip_ns, payload, formula, ASSUMES.into()));
    }
    let mut bounds = vec![Bound::window(u64::from(found.window) * u64::from(found.channels), round_trip_ns)];
    for (model, size, counts) in
        [(out, there, found.mode != Mode::Receive), (back, here, found.mode != Mode::Send || here > there)]
    {
        if counts && let Some(bits) = model.payload_bits_per_s(size) {
            bounds.push(Bound::pipe(Binding::Line, bits, size as f64, "the model's rate less its headers"));
        }
        if counts
            && model.transport == Transport::Stream
            && let Some(bits) = model.buffer_bits_per_s()
        {
            let bits = bits * f64::from(found.channels);
            bounds.push(Bound::pipe(Binding::Window, bits, size as f64, "the model's stream buffers over their delay"));
        }
    }
    bounds.extend(farm.and_then(|farm| farm.decisions(found.channels)));
    if out.transport == Transport::Datagram {
        let messages = if found.mode == Mode::Both { 2.0 } else { 1.0 };
        let slower = out.cost.max(back.cost).as_nanos() as f64;
        bounds.push(Bound::cpu(1, messages * slower));
    }
    if let Some(rate) = found.rate_asked.filter(|_| found.test == Test::Open) {
        bounds.push(Bound::schedule(rate));
    }
    limits::least(LimitKind::Model, bounds, payload)
}

/// The same for operations that are cut into packets, or share them: each packet is a message, and has its reply.
fn limit_of_packets(
    (out, back): (Model, Model),
    packets: &Packets,
    found: &Measurement,
    payload: f64,
) -> Option<Limit> {
    let (mean, each) = (packets.mean(), packets.per_operation());
    let costs = 2 * (out.cost + back.cost);
    let transit = (out.transit(mean.request as u64), back.transit(mean.reply as u64));
    let round_trip_ns = (transit.0 + transit.1 + costs).as_nanos() as f64;
    if found.test == Test::Latency {
        let formula = format!("{:?} + {:?} of transit + {costs:?} of processing", transit.0, transit.1);
        return Some(Limit::of_latency(LimitKind::Model, round_trip_ns, payload, formula, ASSUMES.into()));
    }
    let operations = u64::from(found.window) * u64::from(found.channels);
    let mut bounds = vec![Bound::window(operations, round_trip_ns), packets.in_flight(found.channels, round_trip_ns)];
    for (model, bytes) in [(out, mean.request), (back, mean.reply)] {
        if let Some(bits) = model.payload_bits_per_s(bytes as u64) {
            let bits = bits * f64::from(found.channels);
            bounds.push(Bound::pipe(Binding::Line, bits, bytes as f64 * each, "the model's rate less its headers"));
        }
    }
    if out.transport == Transport::Datagram {
        // A packet is sent and its reply received on either side; the client's side is one node.
        let cost = |model: Model| 2.0 * each * model.cost.as_nanos() as f64;
        bounds.extend([Bound::cpu(1, cost(out)), Bound::cpu(found.channels, cost(back))]);
    }
    bounds.extend(found.rate_asked.filter(|_| found.test == Test::Open).map(Bound::schedule));
    limits::least(LimitKind::Model, bounds, payload)
}

const ASSUMES: &str = "the simulated network's settings, without jitter and loss";
