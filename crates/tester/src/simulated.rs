//! Links over the simulated network.

use crate::{Error, Opened, ServeSettings, Settings, Uri};
use hodo_io::PathOptions;
use hodo_machine::{Transport, Wait};
use hodo_measure::Link;
use hodo_sim::{Model, Network};

/// The node that the first server stands at.
pub const SERVER_NODE: u32 = 1;

/// Returns an open simulated link to this many far ends, each with a line of its own.
#[must_use]
pub fn simulated(link: Box<dyn Link + Send>, model: (Model, Model), far_ends: u32) -> Opened {
    let congestion = congestion(model).map(|name| format!("{name} (simulated)"));
    Opened { congestion, model: Some(model), far_ends, ..Opened::new(vec![link]) }
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
        wait: Wait::Adaptive,
        congestion: None,
        path: PathOptions::default(),
        socket_buffer: None,
        payload: None,
        size_max: settings.size_max,
        peers_max: settings.channels as usize,
    }
}

/// Returns the networks out and back that options describe, where the URI has them.
///
/// # Errors
/// [`Error::Usage`] if the URI names a host, or an option is wrong.
pub fn networks(uri: &Uri, options: &[(String, String)], settings: &Settings) -> Result<(Network, Network), Error> {
    uri.without_host()?;
    let (mut out, mut back) = Network::both_ways(options).map_err(|error| Error::Usage(format!("`{uri}`: {error}")))?;
    if !options.iter().any(|(name, _)| name.ends_with("seed")) {
        (out.seed, back.seed) = (settings.seed, settings.seed);
    }
    Ok((out, back))
}
