//! A simulated network as a limit sees it: plain figures for messages of the mean size, and the bounds that they set.

use super::row::windows;
use super::{Bound, OnTheWire, Service};
use crate::units::text::formula_time;
use crate::{Binding, Limit, LimitKind, Measurement, Test};

/// One direction of a simulated network.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelledWay {
    /// The shortest time from sending a mean message to its arrival, without processor time.
    pub transit_ns: f64,
    /// Processor time of sending or receiving one message.
    pub cost_ns: f64,
    /// The most bits per second in messages of the mean size that the wire takes; `None` without a rate.
    pub payload_bits_per_s: Option<f64>,
    /// The most bits per second that a stream's buffer allows over its delay; `None` for datagrams or without a delay.
    pub buffer_bits_per_s: Option<f64>,
    /// Processor time of a datagram at the end that sends this way; `None` for streams.
    pub datagram_cost_ns: Option<f64>,
    /// Processors at that end.
    pub processors: u32,
}

/// A simulated network, from its settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// From here to the far end.
    pub out: ModelledWay,
    /// From the far end to here.
    pub back: ModelledWay,
    /// Far ends, each with a line of its own.
    pub far_ends: u32,
}

const ASSUMES: &str = "the simulated network's settings, without jitter and loss";

impl Model {
    /// Returns the shortest time of a lone operation.
    pub(super) fn latency_limit(&self, wire: &OnTheWire) -> Limit {
        let formula = format!(
            "{} + {} of transit + {} of processing",
            formula_time(self.out.transit_ns),
            formula_time(self.back.transit_ns),
            formula_time(self.costs_ns())
        );
        let ns = self.round_trip_ns(wire);
        Limit::of_latency(LimitKind::Model, ns, wire.payload_bytes, formula, ASSUMES.into())
    }

    /// Returns the bounds that the model sets: its wire, its window over the round-trip, its processors, its streams'
    /// buffers.
    pub(super) fn bounds(&self, found: &Measurement, wire: &OnTheWire) -> Vec<Bound> {
        let mut bounds: Vec<Bound> = Vec::new();
        if found.test != Test::Updates {
            bounds.extend(windows(found, wire, self.round_trip_ns(wire)));
        }
        let (out, back) = (wire.out(), wire.back());
        for (modelled, way) in [(&self.out, out), (&self.back, back)] {
            if let Some(bits) = modelled.payload_bits_per_s {
                let bits = bits * f64::from(self.far_ends);
                bounds.push(Bound::pipe(Binding::Line, bits, way.bytes, "the model's rate less its headers"));
            }
            if let Some(bits) = modelled.buffer_bits_per_s {
                let bits = bits * f64::from(found.channels);
                let assumes = "the model's stream buffers over their delay";
                bounds.push(Bound::pipe(Binding::Window, bits, way.bytes, assumes));
            }
            if let Some(cost_ns) = modelled.datagram_cost_ns {
                bounds.push(Bound::cpu(modelled.processors, (out.messages + back.messages) * cost_ns));
            }
        }
        bounds.extend(wire.service.as_ref().map(Service::bound));
        bounds.extend(Bound::of_plan(found, wire.payload_bytes));
        bounds
    }

    fn costs_ns(&self) -> f64 {
        2.0 * (self.out.cost_ns + self.back.cost_ns)
    }

    fn round_trip_ns(&self, wire: &OnTheWire) -> f64 {
        let service_ns = wire.service.as_ref().map_or(0.0, |service| service.ns_per_operation);
        self.out.transit_ns + self.back.transit_ns + self.costs_ns() + service_ns
    }
}
