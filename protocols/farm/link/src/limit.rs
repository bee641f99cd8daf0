//! The bounds on the events of a farm beside the line: their headers, the tokens that come back, and the nodes' time.

use crate::options::FarmOptions;
use hodo_farm::wire::{HEADER, TOKEN};
use hodo_measure::limits::{Bound, Carrier, Ip, Line, OnTheWire, Packing, Path, Service, Transport, least};
use hodo_measure::{Limit, LimitKind, Plan};

/// Returns the bytes on the stream of an event of this size, and of its token with `token_data` bytes behind it.
#[must_use]
pub const fn on_the_stream(size: u64, token_data: u64) -> (u64, u64) {
    (size + HEADER as u64, TOKEN as u64 + token_data)
}

/// Returns the limit of a line, by its rate in bits per second and its MTU, for events of this size to nodes and for
/// their tokens, with `token_data` bytes behind each on the average.
#[must_use]
pub fn line_limit((rate, mtu): (f64, u32), size: u64, token_data: u64) -> Option<Limit> {
    let path = Path::new(Line::new(rate, mtu), Ip::V4, Transport::Tcp { timestamps: true }).ok()?;
    let (event, token) = on_the_stream(size, token_data);
    let cost = path.cost(size, event, token, Packing::Stream);
    least(LimitKind::Line, vec![Bound::line(&path, &cost)], size as f64)
}

impl FarmOptions {
    /// Returns an event and its token with the data that tokens bring on average, and the time of nodes that take theirs.
    pub(crate) fn on_the_wire(&self, plan: &Plan) -> OnTheWire {
        let time_ns = self.time_mean_ns();
        let service = (time_ns > 0.0).then(|| Service {
            ns_per_operation: time_ns,
            servers: plan.channels,
            name: format!("{} nodes / {:.3} us a decision", plan.channels, time_ns / 1e3),
        });
        OnTheWire::over_sizes(plan.size, |size| {
            let (event, token) = on_the_stream(u64::from(size), self.output_mean().ceil() as u64);
            OnTheWire { service: service.clone(), ..OnTheWire::single(Carrier::Tcp, u64::from(size), event, token) }
        })
    }
}
