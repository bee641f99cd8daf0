//! The limit of a measurement, and the plain loop of bare sockets that it is compared with.

use crate::units::text::{formula_rate, formula_time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bound that theory sets; where there is none, the plain loop of bare sockets, which is a comparison and no bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Payload bits per second.
    pub payload_bits_per_s: Option<f64>,
    /// Operations per second.
    pub operations_per_s: Option<f64>,
    /// The shortest time of an operation.
    pub latency_ns: Option<f64>,
    /// Where it comes from.
    pub kind: LimitKind,
    /// The least of the bounds; absent where there is none, and in documents that did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<Binding>,
    /// Which bound binds.
    pub binds: Binding,
    /// The computation, with the numbers put in.
    pub formula: String,
    /// The assumptions.
    pub assumes: String,
    /// The difference of the best and the worst look at a plain loop, as a share of the best; null for a bound.
    #[serde(default)]
    pub spread: Option<f64>,
    /// The observations where no bound was reached, and those of what binds beside the bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saw: Option<String>,
}

/// Where a limit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Bounds that are computed: the line's rate and the headers, the window over the round-trip, the schedule, the far end's own
    /// time.
    Line,
    /// Bare sockets in the row's shape, measured around the row: a comparison, no bound. Version 1 says `floor`, version 2 `baseline`.
    #[serde(alias = "floor", alias = "baseline")]
    PlainLoop,
    /// The simulated link's settings.
    Model,
}

/// Which bound binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    /// Line rate times payload share.
    Line,
    /// Window over round-trip.
    Window,
    /// The rate that was asked for.
    Schedule,
    /// The processors: cost per operation.
    Cpu,
    /// The bus between memory and adapter.
    Bus,
    /// The round-trip itself.
    RoundTrip,
    /// The far end: its own time for an operation, or its reading.
    #[serde(rename = "far_end")]
    FarEnd,
    /// Losses, which make the sender slow down or repeat.
    Loss,
    /// A socket buffer, or a queue that is too short.
    Buffer,
    /// The processor time that a control group allows.
    Quota,
    /// Other programs, or other machines on the same hardware, which had the processors.
    Others,
    /// Under 90 % of the least bound was reached, and no observation explains it.
    Unknown,
}

impl Binding {
    /// Returns the bound's name, as in the document.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Binding::Line => "line",
            Binding::Window => "window",
            Binding::Schedule => "schedule",
            Binding::Cpu => "cpu",
            Binding::Bus => "bus",
            Binding::RoundTrip => "roundtrip",
            Binding::FarEnd => "far_end",
            Binding::Loss => "loss",
            Binding::Buffer => "buffer",
            Binding::Quota => "quota",
            Binding::Others => "others",
            Binding::Unknown => "unknown",
        }
    }
}

impl LimitKind {
    /// Returns the kind in a word, as in the document.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            LimitKind::Line => "line",
            LimitKind::PlainLoop => "plain_loop",
            LimitKind::Model => "model",
        }
    }

    /// Returns the kind for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            LimitKind::PlainLoop => "plain loop",
            LimitKind::Line | LimitKind::Model => self.word(),
        }
    }
}

impl Limit {
    /// Returns where the limit comes from, for people: of several bounds, the least.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        match (self.kind, self.least) {
            (LimitKind::Line, Some(least)) => least.word(),
            (kind, _) => kind.text(),
        }
    }
}

/// Bare sockets in the shape of a row: its packets, window and sockets, with the same wait and placement. They promise nothing, so they
/// are what the protocol's own work can be compared with, and no bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlainLoop {
    /// Operations per second: the best look.
    pub operations_per_s: f64,
    /// Payload bits per second of those.
    pub payload_bits_per_s: f64,
    /// The median time of an operation, of one at a time: the shortest.
    pub latency_ns: Option<f64>,
    /// CPU time of the busier side for an operation: the least.
    pub cost_ns: Option<f64>,
    /// Looks, before, between and after the repeats.
    pub looks: u32,
    /// The difference of the best and the worst look, as a share of the best.
    pub spread: f64,
    /// The exchange in words: `16 in flight of 20 B out and 1400 B back, by UDP`.
    pub shape: String,
}

impl PlainLoop {
    /// Returns several looks at the same exchange as one: the best of each figure, and how far apart they were.
    #[must_use]
    pub fn of_looks(looks: &[PlainLoop]) -> Option<PlainLoop> {
        let first = looks.first()?;
        let least = |of: fn(&PlainLoop) -> Option<f64>| looks.iter().filter_map(of).reduce(f64::min);
        let most = |of: fn(&PlainLoop) -> f64| looks.iter().map(of).fold(0.0, f64::max);
        let speeds: Vec<f64> =
            looks.iter().map(|look| look.latency_ns.map_or(look.operations_per_s, f64::recip)).collect();
        let (best, worst) =
            (speeds.iter().copied().fold(0.0, f64::max), speeds.iter().copied().fold(f64::MAX, f64::min));
        Some(PlainLoop {
            operations_per_s: most(|look| look.operations_per_s),
            payload_bits_per_s: most(|look| look.payload_bits_per_s),
            latency_ns: least(|look| look.latency_ns),
            cost_ns: least(|look| look.cost_ns),
            looks: looks.len() as u32,
            spread: if best > 0.0 { (best - worst) / best } else { 0.0 },
            shape: first.shape.clone(),
        })
    }

    /// Returns the plain loop as the limit of a row that has no bound.
    #[must_use]
    pub fn as_limit(&self, binds: Binding) -> Limit {
        let what = self.latency_ns.map_or_else(
            || formula_rate(self.operations_per_s),
            |latency_ns| format!("{} each", formula_time(latency_ns)),
        );
        Limit {
            payload_bits_per_s: Some(self.payload_bits_per_s),
            operations_per_s: Some(self.operations_per_s),
            latency_ns: self.latency_ns,
            kind: LimitKind::PlainLoop,
            least: None,
            binds,
            formula: format!(
                "bare sockets, {}: {what}, {} looks {:.0} % apart",
                self.shape,
                self.looks,
                100.0 * self.spread
            ),
            assumes: "measured around the row with the same wait and placement: a comparison, and no bound".into(),
            spread: Some(self.spread),
            saw: None,
        }
    }
}
