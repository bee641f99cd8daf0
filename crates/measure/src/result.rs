//! The result contract, version 2: the document that `hodo bench --json` writes. Documents of version 1 are read too.

mod cpu;

pub use cpu::{Cpu, ProcessCpu, SimulationCost};

use crate::{Mode, Test, statistics};
use hodo_io::nic::Nic;
use serde::{Deserialize, Serialize};

/// The name and version of the document's form.
pub const SCHEMA: &str = "hodo.result/2";
/// The form of before, which lacks fields of this one and calls a baseline a `floor`. It can be read as this one.
pub const SCHEMA_1: &str = "hodo.result/1";

/// Everything one run of the tester found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The program that wrote the document.
    pub tool: Tool,
    /// The machine and settings of the run.
    pub environment: Environment,
    /// The measurements, in order.
    pub measurements: Vec<Measurement>,
}

/// The program that wrote a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// `hodo`.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// The commit that it was built from, where known.
    pub commit: Option<String>,
}

/// The machine and its settings. A fact that cannot be known is null, never guessed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Host name.
    pub host: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Processor model.
    pub cpu: Option<String>,
    /// Processors online.
    pub cores: Option<u32>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// TCP congestion control that the sockets used.
    pub congestion_control: Option<String>,
    /// MTU of the interface that the link leaves by.
    pub mtu: Option<u32>,
    /// That interface.
    pub nic: Option<Nic>,
    /// Where the two sides ran, as `here cpu 0, far end cpu 1`.
    pub placement: Option<String>,
    /// The clock that stamped everything.
    pub clock: Option<Clock>,
    /// The hypervisor, where there is one.
    pub hypervisor: Option<String>,
    /// The processor frequency governor.
    pub governor: Option<String>,
    /// When the run started, RFC 3339, UTC.
    pub started: Option<String>,
    /// The command line.
    pub arguments: Vec<String>,
    /// The far end's report of its side; null if it reports nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_end: Option<FarEndFacts>,
}

/// A far end's report of its side when it is greeted. A fact that it does not report is null.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FarEndFacts {
    /// How it waits: `block`, `spin` or `spin:50us`.
    pub wait: Option<String>,
    /// The processors that it is bound to, as `cpu 1`.
    pub placement: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// TCP congestion control of its sockets.
    pub congestion_control: Option<String>,
    /// The rate of the line in bits per second.
    pub line_bits_per_s: Option<u64>,
}

/// The clock that stamped everything.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Clock {
    /// The kernel's clock source.
    pub source: String,
    /// The cost of one reading.
    pub cost_ns: f64,
}

/// One measurement: the plan as run, what was found, and the limit beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The protocol's name in the catalog.
    pub protocol: String,
    /// The link's URI.
    pub link: String,
    /// The kind of test.
    pub test: Test,
    /// Which way the payload went.
    pub mode: Mode,
    /// Bytes of payload per operation; null where sizes were drawn.
    pub size_bytes: Option<u64>,
    /// The smallest size drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_min_bytes: Option<u64>,
    /// The largest size drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_max_bytes: Option<u64>,
    /// Operations in flight per channel.
    pub window: u32,
    /// Channels.
    pub channels: u32,
    /// Operations per packet.
    pub batch: u32,
    /// Operations per second asked for, of an open-loop test or of updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_asked: Option<f64>,
    /// How this side waited: `block`, `spin` or `spin:50us`.
    pub wait: String,
    /// The seed of everything drawn at random.
    pub seed: u64,
    /// Repeats of the counted part.
    pub repeats: u32,
    /// Operations completed in the counted time.
    pub operations: u64,
    /// Payload bytes of those.
    pub payload_bytes: u64,
    /// The counted time.
    pub elapsed_s: f64,
    /// How fast.
    pub rate: Rate,
    /// How long each operation took, or the age of each update; null where none completed.
    pub latency_ns: Option<Latency>,
    /// The CPU time that it cost.
    pub cpu: Cpu,
    /// The cost of computing a simulated link on this host, which its figures do not hold; absent of other links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationCost>,
    /// The time by which the far end fell behind the pace that it is to keep, in the counted time; absent if it keeps none, or does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall_s: Option<f64>,
    /// The report of this side's TCP on the counted time; null if the link is not TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpTimes>,
    /// Operations that did not arrive as sent, both directions.
    pub loss: Loss,
    /// How fast it could be; null where no limit is known.
    pub limit: Option<Limit>,
    /// Achieved over limit, of the figure that the test is about.
    pub share_of_limit: Option<f64>,
    /// Where the time went, where the protocol stamps it.
    pub stages: Vec<Stage>,
    /// The far end's clock beside ours, where times are counted from its stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_difference: Option<ClockDifference>,
    /// Whether the figures can be trusted.
    pub verdict: Verdict,
    /// The run over time, at most 200 entries.
    pub intervals: Vec<Interval>,
    /// The figures that a study published for the same plan, if this repeats one. They are another machine's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// The share of each node of a link that deals its operations over several; empty for other links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeShare>,
    /// The evenness of those shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
}

impl Measurement {
    /// Returns the sentence about a far end that did not keep its pace; `None` where it did, or does not say.
    #[must_use]
    pub fn shortfall_text(&self) -> Option<String> {
        let shortfall_s = self.shortfall_s.filter(|shortfall_s| *shortfall_s > 0.0)?;
        let percent = 100.0 * shortfall_s / self.elapsed_s;
        Some(format!(
            "the far end fell {shortfall_s:.3} s behind its pace ({percent:.1} % of the time): its processor was too slow, or taken away"
        ))
    }

    /// Returns the share of its schedule that was held; `None` without a schedule.
    #[must_use]
    pub fn schedule_held(&self) -> Option<f64> {
        self.rate_asked.map(|asked| self.rate.operations_per_s.median / asked)
    }
}

/// A figure that a study published. It is another machine's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The setting in which it was measured.
    pub setting: String,
    /// Operations per second.
    pub operations_per_s: f64,
}

/// The share of one node in the counted time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeShare {
    /// The number of the node.
    pub number: u32,
    /// Events that it answered.
    pub events: u64,
}

/// How evenly nodes were served.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Events of the node with the fewest, over those of the one with the most.
    pub min_over_max: f64,
    /// Jain's index: 1 for all alike, 1/n for all at one of n.
    pub jain: f64,
    /// The coefficient of variation.
    pub variation: f64,
    /// The length of the windows that `worst_window` is about.
    pub window_s: f64,
    /// The least `min_over_max` of any whole window; null where the run was shorter than one.
    pub worst_window: Option<f64>,
}

impl Fairness {
    /// Returns the fairness of these nodes; `None` if they served no events.
    #[must_use]
    pub fn of_nodes(nodes: &[NodeShare], window_s: f64, worst_window: Option<f64>) -> Option<Self> {
        let events: Vec<u64> = nodes.iter().map(|node| node.events).collect();
        Fairness::of(&events, window_s, worst_window)
    }

    /// Returns the fairness in words, for a verdict.
    #[must_use]
    pub fn text(&self) -> String {
        format!("shares of nodes {:.3} least over most, Jain's index {:.4}", self.min_over_max, self.jain)
    }

    /// Returns the fairness of these counts of events, one for each node; `None` if all are zero.
    #[must_use]
    pub fn of(events: &[u64], window_s: f64, worst_window: Option<f64>) -> Option<Self> {
        events.iter().find(|events| **events > 0)?;
        let events: Vec<f64> = events.iter().map(|events| *events as f64).collect();
        Some(Fairness {
            min_over_max: statistics::least_over_most(&events),
            jain: statistics::jain(&events),
            variation: statistics::coefficient_of_variation(&events),
            window_s,
            worst_window,
        })
    }
}

/// How fast.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rate {
    /// Operations per second.
    pub operations_per_s: Estimate,
    /// Payload bits per second.
    pub payload_bits_per_s: Estimate,
}

/// The median over the repeats with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The interval's lower end; null with too few repeats for the level.
    pub low: Option<f64>,
    /// The interval's upper end.
    pub high: Option<f64>,
    /// The interval's level in percent.
    pub confidence: Option<f64>,
    /// The best repeat.
    pub best: f64,
}

/// The distribution of the operations' times.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// The shortest.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// 90 % took no longer.
    pub p90: u64,
    /// 99 % took no longer.
    pub p99: u64,
    /// 99.9 % took no longer.
    pub p99_9: u64,
    /// The longest.
    pub max: u64,
    /// How many there are.
    pub count: u64,
    /// All of them: HdrHistogram V2 compressed, base64.
    pub histogram: String,
}

/// The report of this side's TCP on the counted time, over all its connections (Linux's `TCP_INFO`).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TcpTimes {
    /// Connections.
    pub connections: u32,
    /// Seconds in which data was on its way, summed over connections.
    pub busy_s: f64,
    /// Seconds in which the far end's receive window held data back: it did not read fast enough.
    pub receive_window_limited_s: f64,
    /// Seconds in which this side's send buffer was full.
    pub send_buffer_limited_s: f64,
    /// Connections whose last rate was limited by the application: it had nothing more to send.
    pub application_limited: u32,
    /// The shortest round-trip that any connection has seen, kernel to kernel.
    pub min_rtt_ns: Option<u64>,
}

impl TcpTimes {
    /// Returns the sum over these connections and others.
    #[must_use]
    pub fn and(self, other: TcpTimes) -> TcpTimes {
        TcpTimes {
            connections: self.connections + other.connections,
            busy_s: self.busy_s + other.busy_s,
            receive_window_limited_s: self.receive_window_limited_s + other.receive_window_limited_s,
            send_buffer_limited_s: self.send_buffer_limited_s + other.send_buffer_limited_s,
            application_limited: self.application_limited + other.application_limited,
            min_rtt_ns: self.min_rtt_ns.into_iter().chain(other.min_rtt_ns).min(),
        }
    }
}

/// Operations that did not arrive as sent, both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Loss {
    /// Never arrived.
    pub lost: u64,
    /// Arrived more than once.
    pub duplicated: u64,
    /// Arrived after one that was sent later.
    pub reordered: u64,
    /// Sent again, in packets of the transport below.
    pub retransmitted: u64,
    /// Refused by the far end, or by this side's kernel, which never sent them.
    pub refused: u64,
    /// Updates that the far end had and never sent, because this side was behind.
    #[serde(default)]
    pub overrun: u64,
    /// Packets of RDMA that arrived while one before them was missing, which a NAK answers.
    #[serde(default, skip_serializing_if = "is_none")]
    pub naks: u64,
    /// Packets of RDMA for which the receiver had posted no receive, which a NAK with the time to wait answers.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_ready: u64,
}

/// Returns whether a count that only RDMA has is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The bound that theory or a bare socket sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Payload bits per second.
    pub payload_bits_per_s: Option<f64>,
    /// Operations per second.
    pub operations_per_s: Option<f64>,
    /// The shortest time of an operation.
    pub latency_ns: Option<f64>,
    /// Where it comes from.
    pub kind: LimitKind,
    /// Which bound binds.
    pub binds: Binding,
    /// The computation, with the numbers put in.
    pub formula: String,
    /// The assumptions.
    pub assumes: String,
    /// How far the two measurements of a baseline, before and after, were apart, as a share of the better one.
    #[serde(default)]
    pub spread: Option<f64>,
    /// The observations where no bound was reached, and those of what binds beside the bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saw: Option<String>,
}

/// Where a limit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// The line's rate and the headers.
    Line,
    /// Bare sockets in the protocol's shape, measured before and after the row. Version 1 says `floor`.
    #[serde(alias = "floor")]
    Baseline,
    /// The simulated link's settings.
    Model,
}

/// Which bound binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Under 90 % of the least bound was reached, and nothing else was seen to bind.
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
            LimitKind::Baseline => "baseline",
            LimitKind::Model => "model",
        }
    }
}

/// Where the time went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The stage, in the protocol's own terms.
    pub name: String,
    /// Where it was stamped.
    pub side: Side,
    /// How many were stamped.
    pub count: u64,
    /// The mean; those of this side add up to the mean time of the operations that were stamped.
    pub mean_ns: f64,
    /// The median; null of what is left where no stamp is.
    pub p50_ns: Option<u64>,
    /// 99 % took no longer; null likewise.
    pub p99_ns: Option<u64>,
    /// The part of the mean time of an operation. Those of this side add up to 1; those of the far end to the share of the stage of
    /// this side that stands before them.
    pub share: f64,
}

/// The difference of the two sides' clocks, as it was measured over the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockDifference {
    /// How far the far end's clock is ahead of this side's.
    pub ahead_ns: i64,
    /// How far that may be wrong either way: half of the shortest round-trip, or 0 on one host. Times that are counted from the far end's
    /// stamps are off by as much.
    pub error_ns: u64,
}

/// Where a stage was stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// At this end of the link.
    Local,
    /// At its far end.
    Remote,
}

/// Whether the figures can be trusted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// In a word.
    pub state: State,
    /// In a sentence.
    pub text: String,
}

impl Verdict {
    /// Returns this verdict with the fairness of these nodes appended, if there are several.
    #[must_use]
    pub fn with(mut self, nodes: &[NodeShare]) -> Verdict {
        if nodes.len() > 1
            && let Some(fairness) = Fairness::of_nodes(nodes, 0.0, None)
        {
            self.text = format!("{}; {}", self.text, fairness.text());
        }
        self
    }
}

/// Whether the figures can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The rate was the same throughout.
    Stable,
    /// The rate had a slope: a longer run would find another figure.
    Drifting,
    /// The rate jumped between two levels.
    Bimodal,
    /// The rate varied too much to quote.
    Noisy,
    /// The schedule of an open loop or of updates was not held.
    Missed,
    /// The run was cut short; what had been measured is there.
    Interrupted,
    /// Nothing useful was measured.
    Failed,
}

impl State {
    /// All states, the best first.
    pub const ALL: [State; 7] = [
        State::Stable,
        State::Drifting,
        State::Bimodal,
        State::Noisy,
        State::Missed,
        State::Interrupted,
        State::Failed,
    ];

    /// Returns the state in a word, as in the document.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            State::Stable => "stable",
            State::Drifting => "drifting",
            State::Bimodal => "bimodal",
            State::Noisy => "noisy",
            State::Missed => "missed",
            State::Interrupted => "interrupted",
            State::Failed => "failed",
        }
    }
}

/// One piece of the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The piece's end, from the start of the counted time.
    pub t_s: f64,
    /// Operations completed in it.
    pub operations: u64,
    /// Payload bytes of those.
    pub payload_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the two extremes of the published 17-hour run, whose 20 nodes had from 9,168,862 to 10,709,545 events
    /// each.
    #[test]
    fn fairness_is_what_the_study_means_by_it() {
        let fairness = Fairness::of(&[9_168_862, 10_709_545], 10.0, None).unwrap();
        assert!((fairness.min_over_max - 0.856).abs() < 0.001, "{fairness:?}");
        assert!((Fairness::of(&[5, 5, 5], 10.0, None).unwrap().jain - 1.0).abs() < 1e-12);
        assert!((Fairness::of(&[9, 0, 0], 10.0, None).unwrap().jain - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(Fairness::of(&[], 10.0, None), None);
    }

    #[test]
    fn other_programs_are_named_over_a_twentieth_of_the_machine() {
        let told = |percent| Cpu { others_percent: percent, ..Cpu::default() }.others_text();
        assert_eq!([told(None), told(Some(4.9))], [None, None]);
        let text = "other programs took 31 % of the machine's CPU; end them for a figure to quote";
        assert_eq!(told(Some(31.4)).as_deref(), Some(text));
    }

    #[test]
    fn a_verdict_tells_how_even_several_nodes_were() {
        let told = |events: &[u64]| {
            let nodes: Vec<NodeShare> =
                (0..).zip(events).map(|(number, events)| NodeShare { number, events: *events }).collect();
            Verdict { state: State::Stable, text: "stable".into() }.with(&nodes).text
        };
        assert_eq!(told(&[99, 100]), "stable; shares of nodes 0.990 least over most, Jain's index 1.0000");
        assert_eq!([told(&[]), told(&[7]), told(&[0, 0])], ["stable", "stable", "stable"]);
    }
}
