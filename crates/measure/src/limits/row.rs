//! The limit of a measured row, for any protocol: its bounds, and the least of them.
//!
//! Everything comes from the row itself and from [`OnTheWire`]; no protocol is named here. Bare sockets are no bound: they are the limit
//! only of a row that has none, and then a comparison.

mod round_trip;

pub use round_trip::RoundTrip;

use super::binds::judged;
use super::{Bound, Messages, Model, OnTheWire, Packing, Path, Service, Theory, least};
use crate::units::text::{formula_rate, formula_time};
use crate::{Binding, Limit, LimitKind, Measurement, PlainLoop, Test};

/// On one host a window of which less than this share was used is no bound that says anything: operations wait elsewhere.
const FAR_OFF: f64 = 0.5;
/// A share of a bound over this one is a mistake, and not the last digit of a rate.
const OVER: f64 = 1.05;

/// The conditions that a row was measured under.
#[derive(Debug, Clone, Default)]
pub struct Conditions<'a> {
    /// The line, where its rate is known and the traffic takes it.
    pub line: Option<Path>,
    /// The lines that could be there, where a link leaves this host and the rate of its line is not known.
    pub lines: Vec<Path>,
    /// Whether the far end is on another host, or behind another interface of this one.
    pub is_away: bool,
    /// The simulated network, of a simulated link.
    pub model: Option<&'a Model>,
    /// The row's own round-trip, where more than one operation was in flight.
    pub round_trip: Option<RoundTrip>,
}

/// Returns the limit of a row and what binds it: its least bound or, where it has none, the plain loop that it is compared with. `None` if
/// there is neither.
#[must_use]
pub fn limit(
    found: &Measurement,
    wire: &OnTheWire,
    conditions: &Conditions<'_>,
    plain_loop: Option<&PlainLoop>,
) -> Option<Limit> {
    let is_far_off = |limit: &Limit| {
        limit.binds == Binding::Window
            && plain_loop.is_some()
            && share(found, limit).is_none_or(|share| share < FAR_OFF)
    };
    let bound = match bound(found, wire, conditions) {
        Some(limit) if is_far_off(&limit) => {
            let others = Conditions { round_trip: None, ..conditions.clone() };
            self::bound(found, wire, &others).filter(|limit| !is_far_off(limit))
        }
        bound => bound,
    };
    let limit = bound.or_else(|| plain_loop.map(|plain_loop| plain_loop.as_limit(Binding::Unknown)))?;
    Some(judged(limit, found, wire, &conditions.lines))
}

/// Returns the least bound of a row.
fn bound(found: &Measurement, wire: &OnTheWire, conditions: &Conditions<'_>) -> Option<Limit> {
    let lone = found.test == Test::Latency;
    match (&wire.theory, conditions.model, &conditions.line) {
        (Some(theory), ..) => theory.limit(found, wire, conditions),
        (None, Some(model), _) if lone => Some(model.latency_limit(wire)),
        (None, Some(model), _) => least(LimitKind::Model, model.bounds(found, wire), wire.payload_bytes),
        (None, None, path) if lone => lone_latency(found, wire, path.as_ref(), conditions.is_away),
        (None, None, _) => least(LimitKind::Line, bounds(found, wire, conditions), wire.payload_bytes),
    }
}

impl Theory {
    fn limit(&self, found: &Measurement, wire: &OnTheWire, conditions: &Conditions<'_>) -> Option<Limit> {
        let kind = if self.is_model { LimitKind::Model } else { LimitKind::Line };
        if found.test == Test::Latency {
            let (formula, assumes) = (self.latency_formula.clone(), self.assumes.clone());
            return Some(Limit::of_latency(kind, self.latency_ns, wire.payload_bytes, formula, assumes));
        }
        let round_trip = conditions.round_trip.as_ref().map_or(self.latency_ns, |round_trip| round_trip.ns);
        let mut bounds = self.bounds.clone();
        bounds.extend(found.in_flight().map(|in_flight| Bound::window(in_flight, round_trip)));
        bounds.extend(Bound::of_plan(found, wire.payload_bytes));
        least(kind, bounds, wire.payload_bytes)
    }
}

/// Returns achieved over a limit, of the figure that the test is about; 1 is as fast as the limit, for rates and times alike.
#[must_use]
pub fn share(found: &Measurement, limit: &Limit) -> Option<f64> {
    let operations = || Some(found.rate.operations_per_s.median / limit.operations_per_s?);
    let payload = || Some(found.rate.payload_bits_per_s.median / limit.payload_bits_per_s?);
    let time = || Some(limit.latency_ns? / found.latency_ns.as_ref()?.p50 as f64);
    let usable = |share: &f64| share.is_finite();
    match found.test {
        Test::Latency => time().filter(usable).or_else(operations),
        Test::Open => operations(),
        Test::Rate | Test::Random | Test::Channels | Test::Updates => payload().filter(usable).or_else(operations),
    }
    .filter(usable)
}

/// Returns a sentence for the verdict if a row has passed its bound, which nothing can pass.
#[must_use]
pub fn red_flag(limit: &Limit, share: f64) -> Option<String> {
    let percent = share * 100.0;
    let mistake = match limit.binds {
        Binding::Line => "the line is faster than was said, or the traffic does not take it",
        _ => "what it assumes is wrong, or something was not counted",
    };
    (limit.kind != LimitKind::PlainLoop && share > OVER).then(|| {
        format!(
            "RED FLAG: {percent:.0} % of the limit set by `{}`, which nothing can exceed; {mistake}",
            limit.binds.word()
        )
    })
}

/// Returns the bounds of a row on sockets.
fn bounds(found: &Measurement, wire: &OnTheWire, conditions: &Conditions<'_>) -> Vec<Bound> {
    let mut bounds = Vec::new();
    if let Some(path) = &conditions.line {
        let own = found.window == Some(1) && wire.is_one_message() && found.test != Test::Updates;
        let packing = if own { Packing::Own } else { Packing::Stream };
        bounds.push(Bound::line(path, &wire.cost(path, packing)));
    }
    if let Some(round_trip) = &conditions.round_trip
        && found.test != Test::Updates
        && found.in_flight() != Some(1)
    {
        bounds.extend(
            windows(found, wire, round_trip.ns).map(|bound| Bound { assumes: round_trip.source.clone(), ..bound }),
        );
    }
    bounds.extend(Bound::of_plan(found, wire.payload_bytes));
    bounds.extend(wire.service.as_ref().map(Service::bound));
    bounds
}

/// Returns the bounds of the window of operations and of that of messages, over the round-trip.
pub(super) fn windows(found: &Measurement, wire: &OnTheWire, round_trip_ns: f64) -> impl Iterator<Item = Bound> {
    let channels = u64::from(found.channels);
    let each = wire.messages_per_operation();
    let messages = wire.in_flight_max.map(|most| Bound::packets(most * channels, each, round_trip_ns));
    let window = found.in_flight().map(|in_flight| Bound::window(in_flight, round_trip_ns));
    [window, messages].into_iter().flatten()
}

/// Returns the limit of a lone operation: the time of its bits on the line, if that is known, and where the far end is away the shortest
/// round-trip of the row. `None` if neither is known.
fn lone_latency(found: &Measurement, wire: &OnTheWire, line: Option<&Path>, is_away: bool) -> Option<Limit> {
    let of_line = line.map(|path| line_latency(path, wire));
    let transport = found.tcp.as_ref().and_then(|tcp| Some((tcp.min_rtt_ns?, "kernel to kernel, by TCP here")));
    let fastest = || Some((found.latency_ns.as_ref()?.min, "the fastest of these operations"));
    let least = transport.or_else(fastest).filter(|(ns, _)| is_away && *ns > 0);
    let of_line_ns = of_line.as_ref().and_then(|limit| limit.latency_ns).unwrap_or(0.0);
    match (least, of_line) {
        (Some((ns, source)), line) if ns as f64 > of_line_ns => {
            let bits = line.map(|line| format!(", of which bits: {}", line.formula)).unwrap_or_default();
            let formula = format!("least round-trip {}{bits}", formula_time(ns as f64));
            Some(Limit::of_latency(LimitKind::Line, ns as f64, wire.payload_bytes, formula, source.into()))
        }
        (_, line) => line,
    }
}

/// Returns the limit of a lone operation on a line: the busier direction's messages one after the other, and the least
/// of the other.
fn line_latency(path: &Path, wire: &OnTheWire) -> Limit {
    let total = |bytes: fn(&Messages) -> u64| wire.messages.iter().map(|m| m.count * bytes(m)).sum::<u64>();
    let (out, back) = (total(|messages| messages.out_bytes), total(|messages| messages.back_bytes));
    let (first, last) = (wire.messages.first(), wire.messages.last());
    let (out, back) = if wire.is_one_message() {
        (out, back)
    } else if back >= out {
        (first.map_or(0, |messages| messages.out_bytes), back)
    } else {
        (out, last.map_or(0, |messages| messages.back_bytes))
    };
    path.latency_limit(wire.payload_bytes as u64, out, back, 0.0)
}

impl Service {
    /// Returns the bound that the resource sets.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let operations_per_s = f64::from(self.servers) * 1e9 / self.ns_per_operation;
        Bound {
            binds: Binding::FarEnd,
            operations_per_s,
            formula: format!("{} = {}", self.name, formula_rate(operations_per_s)),
            assumes: "the far end does one operation at a time in each".into(),
        }
    }
}

impl Measurement {
    /// Sets the limit, with the share of it that was reached, and the plain loop, with the achieved speed over its.
    pub fn set_limit(&mut self, limit: Option<Limit>, plain_loop: Option<PlainLoop>) {
        let is_bound = |limit: &&Limit| limit.kind != LimitKind::PlainLoop;
        self.share_of_limit = limit.as_ref().filter(is_bound).and_then(|limit| share(self, limit));
        self.times_plain_loop =
            plain_loop.as_ref().and_then(|plain_loop| share(self, &plain_loop.as_limit(Binding::Unknown)));
        (self.limit, self.plain_loop) = (limit, plain_loop);
    }
}

#[cfg(test)]
mod tests;
