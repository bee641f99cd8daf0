//! The same machines over the simulated network.

use crate::open::{Opened, Settings, cannot, check_size};
use crate::raw::{self, RawLink, client_config, server_config};
use crate::{Error, ServeSettings, Uri};
use hodo_machine::{Address, Wait};
use hodo_measure::limits::{self, Bound};
use hodo_measure::{Binding, Limit, LimitKind, Measurement, Mode, Test};
use hodo_raw::{Client, Counters, Server, ServerCommand, ServerEvent};
use hodo_sim::{Model, Network, Sim, Transport};

#[cfg(test)]
mod tests;

/// The node that the server stands at.
const SERVER: u32 = 1;

/// Opens a link over the network that the URI's options describe.
pub(crate) fn open(uri: &Uri, settings: &Settings) -> Result<Opened, Error> {
    let link = link(uri, settings)?;
    let model = link.driver().model();
    let links: Vec<Box<dyn hodo_measure::Link + Send>> = vec![Box::new(link)];
    Ok(Opened { links, cpus: vec![None], congestion: None, local: None, remote: None, model: Some(model) })
}

fn link(uri: &Uri, settings: &Settings) -> Result<RawLink<Sim<Client, Server>>, Error> {
    if !uri.authority.is_empty() || !uri.path.is_empty() {
        return Err(Error::Usage(format!(
            "`{uri}` names a host; a simulated link has none: sim+{}://?delay=…",
            uri.scheme
        )));
    }
    let (mut out, mut back) =
        Network::both_ways(&uri.options).map_err(|error| Error::Usage(format!("`{uri}`: {error}")))?;
    if !uri.options.iter().any(|(name, _)| name.ends_with("seed")) {
        (out.seed, back.seed) = (settings.seed, settings.seed);
    }
    let (transport, messages) = match uri.scheme {
        "udp" => (Transport::Datagram, hodo_raw::Transport::Datagram),
        _ => (Transport::Stream, hodo_raw::Transport::Stream),
    };
    let client = Client::new(client_config(settings, messages, Address::Node(SERVER), settings.channels));
    let server = Server::new(server_config(&far_end(settings), messages));
    let sim = Sim::new(transport, (&out, &back), client, vec![server], answer);
    let noticed = |sim: &Sim<Client, Server>| raw::noticed(sim.machine());
    let link = RawLink::open(sim, noticed, settings.channels, settings.timeout).map_err(|error| cannot(uri, &error))?;
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
pub(crate) fn limit((out, back): (Model, Model), found: &Measurement, payload: f64) -> Option<Limit> {
    let header = hodo_raw::wire::HEADER as u64;
    let message = (payload as u64).max(header);
    let (there, here) = match found.mode {
        Mode::Both => (message, message),
        Mode::Send => (message, header),
        Mode::Receive => (header, message),
    };
    let costs = 2 * (out.cost + back.cost);
    let round_trip_ns = (out.transit(there) + back.transit(here) + costs).as_nanos() as f64;
    if found.test == Test::Latency {
        let formula =
            format!("{:?} + {:?} of transit + {costs:?} of processing", out.transit(there), back.transit(here));
        return Some(Limit::of_latency(LimitKind::Model, round_trip_ns, payload, formula, ASSUMES.into()));
    }
    let mut bounds = vec![Bound::window(u64::from(found.window) * u64::from(found.channels), round_trip_ns)];
    for (model, size, counts) in [(out, there, found.mode != Mode::Receive), (back, here, found.mode != Mode::Send)] {
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

const ASSUMES: &str = "the simulated network's settings, without jitter and loss";
