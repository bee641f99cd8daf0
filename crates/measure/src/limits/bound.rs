//! The one law: `rate <= min(window / round-trip, line rate x payload share, one core / cost per operation)`.

use super::{Path, WireCost, format_rate};
use crate::units::text::{formula_bytes, formula_rate, formula_ratio, formula_time};
use crate::{Binding, Limit, LimitKind, Measurement, Test};

/// One upper bound on operations per second, and how it was computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The resource that sets the bound.
    pub binds: Binding,
    /// The bound, in operations per second.
    pub operations_per_s: f64,
    /// The computation, with the numbers put in.
    pub formula: String,
    /// The assumptions.
    pub assumes: String,
}

impl Bound {
    /// Returns the bound that the line sets: `rate / (8 x byte times of one operation in the busier direction)`.
    #[must_use]
    pub fn line(path: &Path, cost: &WireCost) -> Bound {
        let bytes = cost.busier_bytes();
        let operations_per_s = per_second(path.line().rate_bits_per_s / 8.0, bytes);
        // With payload both ways it counts twice against the time of one direction: no share of a line.
        let share = cost.payload_bytes / bytes;
        let share_text = if share <= 1.0 { format!(", share {share:.4}") } else { String::new() };
        Bound {
            binds: Binding::Line,
            operations_per_s,
            formula: format!(
                "{} / (8 x {} B on the line for {} B of payload{share_text}) = {}",
                format_rate(path.line().rate_bits_per_s),
                formula_bytes(bytes),
                formula_bytes(cost.payload_bytes),
                formula_rate(operations_per_s),
            ),
            assumes: path.describe(),
        }
    }

    /// Returns the bound that the window sets: `operations in flight / round-trip`. With one in flight, the round-trip
    /// itself binds.
    #[must_use]
    pub fn window(in_flight: u64, round_trip_ns: f64) -> Bound {
        let operations_per_s = per_second(in_flight as f64 * 1e9, round_trip_ns);
        Bound {
            binds: if in_flight <= 1 { Binding::RoundTrip } else { Binding::Window },
            operations_per_s,
            formula: format!(
                "{in_flight} in flight / {} round-trip = {}",
                formula_time(round_trip_ns),
                formula_rate(operations_per_s),
            ),
            assumes: "the round-trip of a single operation".into(),
        }
    }

    /// Returns the bound that the window sets for a protocol whose operations are cut into packets, or share them:
    /// `packets in flight / (packets of an operation x round-trip)`.
    #[must_use]
    pub fn packets(in_flight: u64, packets_per_operation: f64, round_trip_ns: f64) -> Bound {
        let operations_per_s = per_second(in_flight as f64 * 1e9, packets_per_operation * round_trip_ns);
        Bound {
            binds: if in_flight <= 1 { Binding::RoundTrip } else { Binding::Window },
            operations_per_s,
            formula: format!(
                "{in_flight} packets in flight / ({} an operation x {} round-trip) = {}",
                formula_ratio(packets_per_operation),
                formula_time(round_trip_ns),
                formula_rate(operations_per_s),
            ),
            assumes: "the round-trip of a single operation".into(),
        }
    }

    /// Returns the bound that the processors set: `cores / cost of one operation`.
    #[must_use]
    pub fn cpu(cores: u32, ns_per_operation: f64) -> Bound {
        let operations_per_s = per_second(f64::from(cores) * 1e9, ns_per_operation);
        let noun = if cores == 1 { "core" } else { "cores" };
        Bound {
            binds: Binding::Cpu,
            operations_per_s,
            formula: format!(
                "{cores} {noun} / {} per operation = {}",
                formula_time(ns_per_operation),
                formula_rate(operations_per_s),
            ),
            assumes: "the cost per operation that was measured at full load".into(),
        }
    }

    /// Returns the bound that the processors set where each operation's bytes are also copied `copies` times at a rate:
    /// `cores / (cost + copies x bytes / rate)`.
    #[must_use]
    pub fn copies(cores: u32, ns_per_operation: f64, copies: u32, bytes: f64, rate_bits_per_s: f64) -> Bound {
        let copying_ns = f64::from(copies) * bytes * 8e9 / rate_bits_per_s;
        let noun = if copies == 1 { "copy" } else { "copies" };
        let bound = Bound::cpu(cores, ns_per_operation + copying_ns);
        Bound {
            formula: format!(
                "{}, of which {copies} {noun} of {} B at {} take {}",
                bound.formula,
                formula_bytes(bytes),
                format_rate(rate_bits_per_s),
                formula_time(copying_ns)
            ),
            assumes: "the cost and the rate that were told".into(),
            ..bound
        }
    }

    /// Returns the bound that the schedule of an open-loop test sets: no more operations are started.
    #[must_use]
    pub fn schedule(operations_per_s: f64) -> Bound {
        Bound {
            binds: Binding::Schedule,
            operations_per_s,
            formula: format!("{} asked for", formula_rate(operations_per_s)),
            assumes: "operations start on time".into(),
        }
    }

    /// Returns the bound that the schedule or the pace of a row sets, if it has one.
    #[must_use]
    pub fn of_plan(found: &Measurement, payload_bytes: f64) -> Option<Bound> {
        match found.test {
            Test::Open | Test::Updates => found.rate_asked.map(Bound::schedule),
            test => found.pace_asked.filter(|_| test.is_closed_loop()).map(|pace| {
                Bound::pipe(Binding::Schedule, pace, payload_bytes, "operations start at the pace requested")
            }),
        }
    }

    /// Returns the bound that a pipe sets that carries `bytes` per operation at a rate, whatever it is: `rate / (8 x
    /// bytes)`.
    #[must_use]
    pub fn pipe(binds: Binding, rate_bits_per_s: f64, bytes: f64, assumes: &str) -> Bound {
        let operations_per_s = per_second(rate_bits_per_s / 8.0, bytes);
        Bound {
            binds,
            operations_per_s,
            formula: format!(
                "{} / (8 x {} B) = {}",
                format_rate(rate_bits_per_s),
                formula_bytes(bytes),
                formula_rate(operations_per_s),
            ),
            assumes: assumes.into(),
        }
    }

    /// Returns the bound of each of several flows that share this one evenly.
    #[must_use]
    pub fn shared_by(self, flows: u32) -> Bound {
        let operations_per_s = self.operations_per_s / f64::from(flows.max(1));
        Bound {
            operations_per_s,
            formula: format!("({}) / {flows} flows = {}", self.formula, formula_rate(operations_per_s)),
            assumes: format!("{}; flows share evenly", self.assumes),
            ..self
        }
    }
}

/// Returns the limit that several bounds set together: the least of them binds, and the others are named beside it.
///
/// Returns `None` without a bound, or if every bound is infinite.
#[must_use]
pub fn least(kind: LimitKind, mut bounds: Vec<Bound>, payload_bytes: f64) -> Option<Limit> {
    bounds.retain(|bound| bound.operations_per_s.is_finite());
    bounds.sort_by(|a, b| a.operations_per_s.total_cmp(&b.operations_per_s));
    bounds.dedup_by(|a, b| a.formula == b.formula);
    let binding = bounds.first()?;
    let formula = bounds
        .iter()
        .map(|bound| format!("{}: {}", bound.binds.word(), bound.formula))
        .collect::<Vec<_>>()
        .join(" <= ");
    Some(Limit {
        payload_bits_per_s: Some(binding.operations_per_s * payload_bytes * 8.0),
        operations_per_s: Some(binding.operations_per_s),
        latency_ns: None,
        kind,
        least: Some(binding.binds),
        binds: binding.binds,
        formula,
        assumes: binding.assumes.clone(),
        spread: None,
        saw: None,
    })
}

impl Limit {
    /// Returns the limit whose only bound is the shortest time of one operation: `1 / latency` operations per second,
    /// one at a time.
    #[must_use]
    pub fn of_latency(kind: LimitKind, latency_ns: f64, payload_bytes: f64, formula: String, assumes: String) -> Limit {
        let operations_per_s = per_second(1e9, latency_ns);
        Limit {
            payload_bits_per_s: finite(operations_per_s * payload_bytes * 8.0),
            operations_per_s: finite(operations_per_s),
            latency_ns: Some(latency_ns),
            kind,
            least: Some(Binding::RoundTrip),
            binds: Binding::RoundTrip,
            formula,
            assumes,
            spread: None,
            saw: None,
        }
    }
}

/// Returns the amount per second over the amount per operation: infinite where an operation needs none, which sets no
/// bound.
fn per_second(amount_per_s: f64, per_operation: f64) -> f64 {
    if per_operation > 0.0 { amount_per_s / per_operation } else { f64::INFINITY }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
