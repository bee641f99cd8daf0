//! The round-trip of a row's own operations.

use super::windows;
use crate::Measurement;
use crate::limits::OnTheWire;
use crate::units::text::formula_time;

/// A rate may pass the bound of a round-trip by this much, because both are measured.
const MAY_PASS: f64 = 1.05;

/// The round-trip of the row's own operations.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTrip {
    /// How long it takes.
    pub ns: f64,
    /// Where it was seen: `p50 of these operations one at a time, before and after: 31.0 us, 32.5 us`.
    pub source: String,
}

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
            found.rate.operations_per_s.median <= MAY_PASS * least
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
