//! Links over the simulated network, and the limit of its model.

use crate::{Error, OnTheWire, Opened, ServeSettings, Settings, Uri};
use hodo_machine::Wait;
use hodo_measure::limits::{self, Bound};
use hodo_measure::{Binding, Limit, LimitKind, Link, Measurement, Mode, Test};
use hodo_sim::{Model, Network, Transport};

/// The node that the first server stands at.
pub const SERVER_NODE: u32 = 1;

/// What a limit of the model takes for granted.
pub const MODEL_ASSUMES: &str = "the simulated network's settings, without jitter and loss";

/// Returns an open simulated link.
#[must_use]
pub fn simulated(link: Box<dyn Link + Send>, model: (Model, Model)) -> Opened {
    let (cpus, links) = (vec![None], vec![link]);
    let congestion = congestion(model).map(|name| format!("{name} (simulated)"));
    Opened { links, cpus, congestion, local: None, remote: None, model: Some(model) }
}

/// Returns the congestion controls of a model's streams out and back, `None` for datagrams.
fn congestion((out, back): (Model, Model)) -> Option<String> {
    let same = out.congestion == back.congestion;
    (out.transport == Transport::Stream).then(|| {
        if same { out.congestion.to_string() } else { format!("{} out, {} back", out.congestion, back.congestion) }
    })
}

/// Returns what a row says of the congestion control of its simulated streams.
pub(crate) fn streams_assume(model: (Model, Model)) -> String {
    let Some(names) = congestion(model) else { return String::new() };
    let bytes = model.0.payload_max;
    format!("; the congestion control that was simulated is {names}, with segments of {bytes} bytes")
}

/// Returns the settings of a simulated far end.
#[must_use]
pub fn simulated_far_end(settings: &Settings) -> ServeSettings {
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

/// Returns the networks out and back that options describe, where the URI has them.
///
/// # Errors
/// [`Error::Usage`] if the URI names a host, or an option is wrong.
pub fn networks(uri: &Uri, options: &[(String, String)], settings: &Settings) -> Result<(Network, Network), Error> {
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

/// Returns the limit that the model sets to operations of one message each way: its wire, its window over the round-trip,
/// its processors, its stream's buffer.
pub(crate) fn limit_of_messages(
    wire: &(impl OnTheWire + ?Sized),
    (out, back): (Model, Model),
    found: &Measurement,
    payload: f64,
) -> Option<Limit> {
    let (there, here) = wire.messages(payload as u64);
    let costs = 2 * (out.cost + back.cost);
    let decision_ns = wire.far_end_time_ns();
    let round_trip_ns = (out.transit(there) + back.transit(here) + costs).as_nanos() as f64 + decision_ns;
    if found.test == Test::Latency {
        let formula =
            format!("{:?} + {:?} of transit + {costs:?} of processing", out.transit(there), back.transit(here));
        return Some(Limit::of_latency(LimitKind::Model, round_trip_ns, payload, formula, MODEL_ASSUMES.into()));
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
    bounds.extend(wire.bounds(found.channels, Some(round_trip_ns)));
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
