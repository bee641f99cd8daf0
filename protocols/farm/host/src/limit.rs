//! What bounds the events of a farm beside the line: their headers, the tokens that come back, and the nodes' time.

use crate::options::FarmOptions;
use hodo_farm::wire::{HEADER, TOKEN};
use hodo_io::floor::Kind;
use hodo_measure::limits::{Bound, Ip, Line, Packing, Path, Transport, least};
use hodo_measure::{Binding, Limit, LimitKind};
use hodo_tester::OnTheWire;

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

impl OnTheWire for FarmOptions {
    fn kind(&self) -> Kind {
        Kind::Tcp
    }

    /// Returns the bytes of an event, and of its token with the data that tokens bring on average.
    fn messages(&self, payload: u64) -> (u64, u64) {
        on_the_stream(payload, self.output_mean().ceil() as u64)
    }

    /// Returns the bound of nodes that take their time: each decides on one event after the other.
    fn bounds(&self, channels: u32, _round_trip_ns: Option<f64>) -> Vec<Bound> {
        let time_ns = self.time_mean_ns();
        if time_ns <= 0.0 {
            return Vec::new();
        }
        let operations_per_s = f64::from(channels) * 1e9 / time_ns;
        vec![Bound {
            binds: Binding::Cpu,
            operations_per_s,
            formula: format!("{channels} nodes / {:.3} us a decision = {operations_per_s:.0}/s", time_ns / 1e3),
            assumes: "a node decides on one event at a time".into(),
        }]
    }

    fn far_end_time_ns(&self) -> f64 {
        self.time_mean_ns()
    }
}
