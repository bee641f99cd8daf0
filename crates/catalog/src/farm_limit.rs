//! What bounds the events of a farm beside the line: their headers, the tokens that come back, and the nodes' time.

use crate::Uri;
use crate::farm_options::{FarmOptions, SCHEME};
use hodo_farm::wire::{HEADER, TOKEN};
use hodo_measure::limits::{Bound, Ip, Line, Packing, Path, Transport, WireCost, least};
use hodo_measure::{Binding, Limit, LimitKind};

/// Bytes on the stream of an event of this size, and of its token with so much data behind it.
#[must_use]
pub const fn on_the_stream(size: u64, token_data: u64) -> (u64, u64) {
    (size + HEADER as u64, TOKEN as u64 + token_data)
}

/// The limit of a line, by its rate in bits per second and its MTU, for events of this size to nodes and for their tokens,
/// with so much data behind each on the average.
#[must_use]
pub fn line_limit((rate, mtu): (f64, u32), size: u64, token_data: u64) -> Option<Limit> {
    let path = Path::new(Line::new(rate, mtu), Ip::V4, Transport::Tcp { timestamps: true }).ok()?;
    let (event, token) = on_the_stream(size, token_data);
    let cost = path.cost(size, event, token, Packing::Stream);
    least(LimitKind::Line, vec![Bound::line(&path, &cost)], size as f64)
}

impl FarmOptions {
    /// Those of a farm's link that is open; nothing of others.
    pub(crate) fn of_opened(uri: &Uri) -> Option<FarmOptions> {
        let is_farm = uri.scheme == SCHEME;
        is_farm.then(|| FarmOptions::and_others(uri).ok().map(|(options, _)| options)).flatten()
    }

    /// Bytes on the stream of an event of this size, and of its token with the data that tokens bring on the average.
    pub(crate) fn messages(&self, size: u64) -> (u64, u64) {
        on_the_stream(size, self.output_mean().ceil() as u64)
    }

    /// What an event and its token cost the line, each way.
    pub(crate) fn cost(&self, path: &Path, size: u64, packing: Packing) -> WireCost {
        let (event, token) = self.messages(size);
        path.cost(size, event, token, packing)
    }

    /// The bound of nodes that take their time: each decides on one event after the other.
    pub(crate) fn decisions(&self, nodes: u32) -> Option<Bound> {
        let time_ns = self.time_mean_ns();
        (time_ns > 0.0).then(|| {
            let operations_per_s = f64::from(nodes) * 1e9 / time_ns;
            Bound {
                binds: Binding::Cpu,
                operations_per_s,
                formula: format!("{nodes} nodes / {:.3} us a decision = {operations_per_s:.0}/s", time_ns / 1e3),
                assumes: "a node decides on one event at a time".into(),
            }
        })
    }
}
