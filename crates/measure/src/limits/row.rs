//! The limit of a measured row, for any protocol: its bounds, the least of them, and what binds.
//!
//! Everything comes from the row itself and from [`OnTheWire`]; no protocol is named here. A bound binds only where the
//! row reached 90 % of it. Where it did not, and no processor and no far end was seen to hold it back, the row says
//! `unknown` and what was seen.

use super::{Bound, Carrier, Messages, Model, OnTheWire, Packing, Path, Service, Theory, least};
use crate::units::text::{formula_rate, formula_time};
use crate::{Binding, Limit, LimitKind, Measurement, Test};

/// A bound binds where at least this share of it was reached.
pub const REACHED: f64 = 0.9;
/// A processor is nearly full from here on.
const FULL_PERCENT: f64 = 90.0;
/// The far end's window binds where it held data back for this share of the time.
const HELD_BACK: f64 = 0.5;
/// Ticks of the processors' counters are 10 ms: over less time than this their load is not known.
const COUNTED_MIN_S: f64 = 0.2;
/// A share of a line over this one is a mistake and not the last digit of a rate.
const OVER_THE_LINE: f64 = 1.005;
/// Bare sockets that a row passed by more than this had a bad moment, or do less than the link.
const BEATEN: f64 = 1.25;

/// The performance of bare sockets before and after a row, in the shape of its operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// Operations per second: the better of the two.
    pub operations_per_s: f64,
    /// The median time of an operation, of one at a time: the shorter of the two.
    pub latency_ns: Option<f64>,
    /// CPU time of the busier side for an operation: the lesser of the two.
    pub cost_ns: Option<f64>,
    /// How far the two were apart, as a share of the better one.
    pub spread: f64,
    /// The exchange in words: `16 in flight of 20 B out and 1400 B back, by UDP`.
    pub shape: String,
}

impl Baseline {
    /// Returns two measurements of the same exchange as one: the better of each figure, and how far they were apart.
    #[must_use]
    pub fn with(self, other: &Baseline) -> Baseline {
        let lesser = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::min);
        let (a, b) = match (self.latency_ns, other.latency_ns) {
            (Some(a), Some(b)) => (a.recip(), b.recip()),
            _ => (self.operations_per_s, other.operations_per_s),
        };
        Baseline {
            operations_per_s: self.operations_per_s.max(other.operations_per_s),
            latency_ns: lesser(self.latency_ns, other.latency_ns),
            cost_ns: lesser(self.cost_ns, other.cost_ns),
            spread: if a.max(b) > 0.0 { (a - b).abs() / a.max(b) } else { 0.0 },
            shape: self.shape,
        }
    }

    /// Returns the bound of a rate.
    fn bound(&self, is_lone: bool) -> Bound {
        Bound {
            binds: if is_lone { Binding::RoundTrip } else { Binding::Unknown },
            operations_per_s: self.operations_per_s,
            formula: self.formula(),
            assumes: "bare sockets, measured before and after with the same wait and placement".into(),
        }
    }

    fn formula(&self) -> String {
        let what = match self.latency_ns {
            Some(ns) => format!("{} each", formula_time(ns)),
            None => formula_rate(self.operations_per_s),
        };
        format!("bare sockets, {}: {what}, {:.0} % apart before and after", self.shape, self.spread * 100.0)
    }
}

/// The round-trip of the row's own operations.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTrip {
    /// How long it takes.
    pub ns: f64,
    /// Where it was seen: `p50 of these operations one at a time, before and after: 31.0 us, 32.5 us`.
    pub source: String,
}

/// The conditions that a row was measured under.
#[derive(Debug, Clone, Default)]
pub struct Conditions<'a> {
    /// The line, where its rate is known and the traffic takes it.
    pub line: Option<Path>,
    /// The simulated network, of a simulated link.
    pub model: Option<&'a Model>,
    /// Bare sockets: on one host a bound; beside a line only their cost counts.
    pub baseline: Option<&'a Baseline>,
    /// The row's own round-trip, where more than one operation was in flight.
    pub round_trip: Option<RoundTrip>,
    /// Threads that drive the link here.
    pub cores: u32,
}

/// Returns the limit of a row and the bound that binds; `None` if no bound is known.
#[must_use]
pub fn limit(found: &Measurement, wire: &OnTheWire, conditions: &Conditions<'_>) -> Option<Limit> {
    let lone = found.test == Test::Latency;
    if let Some(theory) = &wire.theory {
        return Some(judged(theory.limit(found, wire, conditions)?, found, wire));
    }
    let limit = match (conditions.model, &conditions.line, conditions.baseline) {
        (Some(model), ..) if lone => model.latency_limit(wire),
        (Some(model), ..) => least(LimitKind::Model, model.bounds(found, wire), wire.payload_bytes)?,
        (None, Some(path), _) if lone => line_latency(path, wire),
        (None, None, Some(bare)) if lone => of_baseline(bare, wire.payload_bytes, Binding::RoundTrip),
        (None, line, baseline) => {
            let kind = if line.is_some() { LimitKind::Line } else { LimitKind::Baseline };
            let bounds = bounds(found, wire, conditions);
            let limit = least(kind, bounds, wire.payload_bytes)?;
            Limit { spread: baseline.filter(|_| line.is_none()).map(|baseline| baseline.spread), ..limit }
        }
    };
    Some(judged(limit, found, wire))
}

impl Theory {
    fn limit(&self, found: &Measurement, wire: &OnTheWire, conditions: &Conditions<'_>) -> Option<Limit> {
        let kind = if self.is_model { LimitKind::Model } else { LimitKind::Line };
        if found.test == Test::Latency {
            let (formula, assumes) = (self.latency_formula.clone(), self.assumes.clone());
            return Some(Limit::of_latency(kind, self.latency_ns, wire.payload_bytes, formula, assumes));
        }
        let in_flight = u64::from(found.window) * u64::from(found.channels);
        let round_trip = conditions.round_trip.as_ref().map_or(self.latency_ns, |round_trip| round_trip.ns);
        let mut bounds = self.bounds.clone();
        bounds.push(Bound::window(in_flight, round_trip));
        if let (Test::Open | Test::Updates, Some(rate)) = (found.test, found.rate_asked) {
            bounds.push(Bound::schedule(rate));
        }
        least(kind, bounds, wire.payload_bytes)
    }
}

/// Returns achieved over limit, of the figure that the test is about; 1 is the best for rates and times alike.
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

/// Returns a sentence for the verdict if a row has passed the bound of its line, which nothing can pass. What the processors' bound
/// beside a line says was measured on bare sockets, which can be passed.
#[must_use]
pub fn red_flag(limit: &Limit, share: f64) -> Option<String> {
    let percent = share * 100.0;
    let is_of_line = limit.kind == LimitKind::Line && matches!(limit.binds, Binding::Line | Binding::RoundTrip);
    (is_of_line && share > OVER_THE_LINE).then(|| {
        format!(
            "RED FLAG: {percent:.0} % of the line's limit, which nothing can pass; the line is faster than was said, or \
             the traffic does not take it"
        )
    })
}

/// Returns whether a row has passed its baseline of bare sockets by so much that these say nothing of what is possible.
#[must_use]
pub fn is_beaten(limit: &Limit, share: f64) -> bool {
    limit.kind == LimitKind::Baseline && share > BEATEN
}

/// Returns a sentence for the verdict if a row has [beaten](is_beaten) its baseline.
#[must_use]
pub fn beaten_text(limit: &Limit, share: f64) -> Option<String> {
    is_beaten(limit, share).then(|| {
        format!(
            "{share:.1} times the baseline: bare sockets in a plain loop did less, so they are no bound of this link"
        )
    })
}

/// Returns the bounds of a row on sockets.
fn bounds(found: &Measurement, wire: &OnTheWire, conditions: &Conditions<'_>) -> Vec<Bound> {
    let in_flight = u64::from(found.window) * u64::from(found.channels);
    let mut bounds = Vec::new();
    if let Some(path) = &conditions.line {
        let own = found.window == 1 && wire.is_one_message() && found.test != Test::Updates;
        let packing = if own { Packing::Own } else { Packing::Stream };
        bounds.push(Bound::line(path, &wire.cost(path, packing)));
    }
    if let Some(round_trip) = &conditions.round_trip
        && found.test != Test::Updates
        && in_flight > 1
    {
        bounds.extend(
            windows(found, wire, round_trip.ns).map(|bound| Bound { assumes: round_trip.source.clone(), ..bound }),
        );
    }
    if let (Test::Open | Test::Updates, Some(rate)) = (found.test, found.rate_asked) {
        bounds.push(Bound::schedule(rate));
    }
    bounds.extend(wire.service.as_ref().map(Service::bound));
    if let Some(bare) = conditions.baseline {
        let measured = match (&conditions.line, bare.cost_ns) {
            // One at a time leaves each core idle while the other side has it.
            (Some(_), Some(cost_ns)) if in_flight > 1 || found.test == Test::Updates => Some(Bound {
                assumes: "bare sockets over this host's loopback; the far end has as many cores as good".into(),
                ..Bound::cpu(conditions.cores.max(1), cost_ns)
            }),
            (None, _) => Some(bare.bound(in_flight == 1 && found.test != Test::Updates)),
            _ => None,
        };
        let reached = found.rate.operations_per_s.median;
        let is_beaten = |bound: &Bound| reached > BEATEN * bound.operations_per_s;
        // What is computed is an upper bound, and says more than bare sockets that were beaten: a line at any share, else what was reached.
        let another_counts =
            conditions.line.is_some() || bounds.iter().any(|bound| reached >= REACHED * bound.operations_per_s);
        bounds.extend(measured.filter(|bound| !(another_counts && is_beaten(bound))));
    }
    bounds
}

/// Returns the bounds of the window of operations and of that of messages, over the round-trip.
pub(super) fn windows(found: &Measurement, wire: &OnTheWire, round_trip_ns: f64) -> impl Iterator<Item = Bound> {
    let channels = u64::from(found.channels);
    let each = wire.messages_per_operation();
    let messages = wire.in_flight_max.map(|most| Bound::packets(most * channels, each, round_trip_ns));
    [Some(Bound::window(u64::from(found.window) * channels, round_trip_ns)), messages].into_iter().flatten()
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

fn of_baseline(bare: &Baseline, payload_bytes: f64, binds: Binding) -> Limit {
    let mut limit = Limit::of_baseline(bare.operations_per_s, bare.latency_ns, payload_bytes, binds);
    limit.formula = bare.formula();
    limit.spread = Some(bare.spread);
    limit
}

/// Says what binds, by what the row reached and by what was seen beside it.
fn judged(mut limit: Limit, found: &Measurement, wire: &OnTheWire) -> Limit {
    let reached = share(found, &limit).unwrap_or(0.0);
    let least = limit.binds;
    let mut saw = vec![format!("{:.0} % of {}", reached * 100.0, bound_name(&limit))];
    let processors = Processors::of(found);
    saw.extend(processors.text());
    saw.extend(tcp_text(found));
    limit.binds = match least {
        Binding::Cpu if reached >= REACHED && !processors.is_full() => Binding::Unknown,
        _ if limit.kind == LimitKind::Model => {
            if reached >= REACHED {
                least
            } else {
                Binding::Unknown
            }
        }
        _ if reached >= REACHED && least != Binding::Unknown => least,
        _ if held_back(found, wire) => Binding::FarEnd,
        _ if processors.is_full() => Binding::Cpu,
        _ => Binding::Unknown,
    };
    limit.saw = Some(saw.join("; "));
    limit
}

fn bound_name(limit: &Limit) -> String {
    match (limit.kind, limit.binds) {
        (LimitKind::Baseline, Binding::RoundTrip | Binding::Unknown | Binding::Cpu) => "the baseline".into(),
        (_, binds) => format!("the bound of `{}`", binds.word()),
    }
}

/// Returns whether the far end's receive window held this side's data back for most of the time.
fn held_back(found: &Measurement, wire: &OnTheWire) -> bool {
    let Some(tcp) = &found.tcp else { return false };
    let in_all = found.elapsed_s * f64::from(tcp.connections.max(1));
    wire.carrier == Carrier::Tcp && in_all > 0.0 && tcp.receive_window_limited_s > HELD_BACK * in_all
}

fn tcp_text(found: &Measurement) -> Option<String> {
    let tcp = found.tcp.as_ref()?;
    let in_all = found.elapsed_s * f64::from(tcp.connections.max(1));
    let percent = |seconds: f64| if in_all > 0.0 { (100.0 * seconds / in_all).min(100.0) } else { 0.0 };
    let least = tcp.min_rtt_ns.map(|ns| format!(", least round-trip {}", formula_time(ns as f64))).unwrap_or_default();
    Some(format!(
        "TCP here: data on its way {:.0} % of the time, held by the far end's window {:.0} %, by this side's buffer \
         {:.0} %{least}",
        percent(tcp.busy_s),
        percent(tcp.receive_window_limited_s),
        percent(tcp.send_buffer_limited_s),
    ))
}

/// How busy the processors were, where that says anything: a side that polls is always busy.
struct Processors {
    busiest_percent: Option<f64>,
    /// The time of both ends' processes, where it is known: the rest is the work of others.
    own_percent: Option<f64>,
    polling: bool,
}

impl Processors {
    fn of(found: &Measurement) -> Processors {
        let known = found.elapsed_s >= COUNTED_MIN_S;
        let own = [found.cpu.local, found.cpu.remote].into_iter().flatten().map(|process| process.percent);
        Processors {
            busiest_percent: found.cpu.busiest_percent.filter(|_| known),
            own_percent: own.reduce(|one, other| one + other),
            polling: found.wait != "block",
        }
    }

    fn is_full(&self) -> bool {
        !self.polling && !self.is_of_others() && self.busiest_percent.is_some_and(|percent| percent >= FULL_PERCENT)
    }

    /// Returns whether most of what the busiest processor did was for neither end.
    fn is_of_others(&self) -> bool {
        self.own_percent.zip(self.busiest_percent).is_some_and(|(own, busiest)| own < busiest / 2.0)
    }

    fn text(&self) -> Option<String> {
        let percent = self.busiest_percent?;
        let but = if self.polling {
            ", which says nothing where a side polls"
        } else if self.is_of_others() {
            ", mostly for others"
        } else {
            ""
        };
        Some(format!("the busiest processor {percent:.0} % busy{but}"))
    }
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

impl Model {
    /// Returns the shortest time of a lone operation.
    fn latency_limit(&self, wire: &OnTheWire) -> Limit {
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
    fn bounds(&self, found: &Measurement, wire: &OnTheWire) -> Vec<Bound> {
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
        if let (Test::Open | Test::Updates, Some(rate)) = (found.test, found.rate_asked) {
            bounds.push(Bound::schedule(rate));
        }
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

const ASSUMES: &str = "the simulated network's settings, without jitter and loss";

impl RoundTrip {
    /// Returns the round-trip of the row's operations one at a time, before and after it.
    ///
    /// If the row has passed the bound that this round-trip sets, the latter was taken at a bad moment. Then the result
    /// is the shortest round-trip that the row's own TCP has seen or, where that is not known or does not fit either,
    /// the time of the fastest of the row's operations. `None` if no time fits.
    #[must_use]
    pub fn of_row(found: &Measurement, wire: &OnTheWire, alone_ns: &[f64]) -> Option<RoundTrip> {
        let fits = |ns: f64| {
            let least = windows(found, wire, ns).map(|bound| bound.operations_per_s).fold(f64::INFINITY, f64::min);
            found.rate.operations_per_s.median <= least / REACHED
        };
        let texts = || alone_ns.iter().map(|ns| formula_time(*ns)).collect::<Vec<_>>().join(", ");
        let alone = alone_ns.iter().copied().filter(|ns| *ns > 0.0).reduce(f64::min);
        if let Some(ns) = alone.filter(|ns| fits(*ns)) {
            let source = format!("p50 of these operations one at a time, before and after: {}", texts());
            return Some(RoundTrip { ns, source });
        }
        let transport = found.tcp.as_ref().and_then(|tcp| tcp.min_rtt_ns);
        let fastest = found.latency_ns.as_ref().map(|latency| latency.min);
        [(transport, "the shortest that this row's TCP has seen"), (fastest, "the fastest of this row's operations")]
            .into_iter()
            .filter_map(|(ns, source)| Some(RoundTrip { ns: ns? as f64, source: source.into() }))
            .find(|round_trip| round_trip.ns > 0.0 && fits(round_trip.ns))
    }
}

#[cfg(test)]
mod tests;
