//! The result contract, version 3: the document that `hodo bench --json` writes. Documents of versions 1 and 2 are read too.

mod beside;
mod connection;
mod cpu;
mod diagnosis;
mod fairness;
mod limit;
mod slo;
mod stall;
mod verdict;

pub use beside::Beside;
pub use connection::Connection;
pub use cpu::{Cpu, ProcessCpu, SimulationCost};
pub use diagnosis::{Confidence, Diagnosis, Experiment};
pub use fairness::{Fairness, NodeShare};
pub use limit::{Binding, Limit, LimitKind, PlainLoop};
pub use slo::{LoadPoint, Slo};
pub use stall::{Observed, Stall, Whose};
pub use verdict::{State, Verdict};

use crate::{Mode, Test};
use hodo_io::nic::Nic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name and version of the document's form.
pub const SCHEMA: &str = "hodo.result/3";
/// The earlier forms, which can be read as this one.
pub const OLDER_SCHEMAS: [&str; 2] = ["hodo.result/1", "hodo.result/2"];

/// Everything one run of the tester found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// The version of the format: [`SCHEMA`].
    pub schema: String,
    /// The program that wrote the document.
    pub tool: Tool,
    /// The machine and settings of the run.
    pub environment: Environment,
    /// The measurements, in order.
    pub measurements: Vec<Measurement>,
    /// The bottleneck of the link, where that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
    /// The highest rate that holds some conditions, where that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
}

/// The program that wrote a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `hodo`.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// The last commit that changed its sources, with `-dirty` where they had changes that were not committed. Null
    /// where it was built without git.
    pub commit: Option<String>,
}

/// The machine and its settings. A fact that cannot be known is null, never guessed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
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
    /// The scheduling class of this side's threads, as `SCHED_OTHER` or `SCHED_FIFO 10`.
    #[serde(default)]
    pub scheduling: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FarEndFacts {
    /// How it waits: `adaptive`, `block`, `spin` or `spin:50us`.
    pub wait: Option<String>,
    /// The processors that it is bound to, as `cpu 1`.
    pub placement: Option<String>,
    /// The scheduling class of its threads, as `SCHED_OTHER` or `SCHED_FIFO 10`.
    #[serde(default)]
    pub scheduling: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// TCP congestion control of its sockets.
    pub congestion_control: Option<String>,
    /// The rate of the line in bits per second.
    pub line_bits_per_s: Option<u64>,
}

/// The clock that stamped everything.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// The kernel's clock source.
    pub source: String,
    /// The cost of one reading.
    pub cost_ns: f64,
}

/// One measurement: the plan as run, what was found, and the limit beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Operations in flight per channel; null where nothing bounds them.
    pub window: Option<u32>,
    /// Channels.
    pub channels: u32,
    /// Operations per packet.
    pub batch: u32,
    /// Whether all channels filled their windows, and again when everything in them had ended; absent where each operation that ended was
    /// replaced at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rounds: bool,
    /// Operations per second asked for, of an open-loop test or of updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_asked: Option<f64>,
    /// The most payload bits per second requested for a closed loop, on all channels; absent without a pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace_asked: Option<f64>,
    /// The median of the operations in flight on all channels, if answers open the window (datagrams); else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_median: Option<u64>,
    /// The row that was measured at the same time; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// The options of the link's sockets and the segments of its TCP; absent where there is nothing to say of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// How this side waited: `adaptive`, `block`, `spin` or `spin:50us`.
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
    /// The operations sent, where no window holds them back, so that the far end may receive fewer; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
    /// How long each operation took, or the age of each update; null where none completed, or no window held them back.
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
    /// Achieved over limit, of the figure that the test is about; null against a plain loop, which is no bound.
    pub share_of_limit: Option<f64>,
    /// Achieved over the plain loop of bare sockets, of the same figure; null where there is none.
    #[serde(default)]
    pub times_plain_loop: Option<f64>,
    /// The plain loop; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_loop: Option<PlainLoop>,
    /// Where the time went, where the protocol stamps it.
    pub stages: Vec<Stage>,
    /// The far end's clock beside ours, where times are counted from its stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_difference: Option<ClockDifference>,
    /// Whether the figures can be trusted.
    pub verdict: Verdict,
    /// The observations of this host in the counted time; absent of a simulated link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// Silences that the test cannot explain, in the order of time; of very many the longest.
    #[serde(default)]
    pub stalls: Vec<Stall>,
    /// The run over time: what completed in each of at most 200 pieces.
    pub intervals: Vec<Interval>,
    /// The arrivals at the far end likewise, where it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_intervals: Option<FarIntervals>,
    /// The figures that a study published for the same plan, if this repeats one. They are another machine's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// The share of each node of a link that deals its operations over several; empty for other links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeShare>,
    /// The receivers of a multicast group, each with what it got; empty for other links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receivers: Vec<Receiver>,
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

    /// Returns whether the link ran over the simulated network.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.link.starts_with("sim+")
    }

    /// Returns the operations in flight on all channels together; `None` where nothing bounds them.
    #[must_use]
    pub fn in_flight(&self) -> Option<u64> {
        Some(u64::from(self.window?) * u64::from(self.channels))
    }

    /// Returns the share of its schedule that was held; `None` without a schedule. Operations that a stall made late were not in time,
    /// though they came.
    #[must_use]
    pub fn schedule_held(&self) -> Option<f64> {
        let late: u64 = self.stalls.iter().map(|stall| stall.operations_late).sum();
        let in_time = self.operations.saturating_sub(late) as f64 / self.operations.max(1) as f64;
        self.rate_asked.map(|asked| in_time * self.rate.operations_per_s.median / asked)
    }
}

/// A figure that a study published. It is another machine's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// The setting in which it was measured.
    pub setting: String,
    /// The figure.
    #[serde(flatten)]
    pub figure: PublishedFigure,
    /// The study's words about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

/// The kinds of figures that studies publish, with their values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PublishedFigure {
    /// Operations per second.
    OperationsPerS(f64),
    /// Payload bits per second.
    PayloadBitsPerS(f64),
    /// The time that no operation exceeded.
    LatencyMaxNs(f64),
}

/// How fast.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Operations per second.
    pub operations_per_s: Estimate,
    /// Payload bits per second.
    pub payload_bits_per_s: Estimate,
}

/// The operations that this side sent in the counted time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// The number.
    pub operations: u64,
    /// Operations per second.
    pub operations_per_s: f64,
    /// Payload bits per second.
    pub payload_bits_per_s: f64,
}

impl Sent {
    /// Returns what so many operations of this size are in this time.
    #[must_use]
    pub fn of(operations: u64, size_bytes: f64, elapsed_s: f64) -> Sent {
        let operations_per_s = operations as f64 / elapsed_s.max(f64::MIN_POSITIVE);
        Sent { operations, operations_per_s, payload_bits_per_s: 8.0 * size_bytes * operations_per_s }
    }
}

/// The median over the repeats with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
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
    /// The longest smoothed round-trip of any connection at the end of the counted time.
    #[serde(default)]
    pub rtt_ns: Option<u64>,
    /// The congestion windows in segments at the end of the counted time, summed over connections.
    #[serde(default)]
    pub congestion_window: u64,
    /// The send buffers at the end of the counted time, as the kernel has them, summed over connections.
    #[serde(default)]
    pub send_buffer_bytes: u64,
    /// Segments with data sent, those sent again included.
    #[serde(default)]
    pub segments: u64,
    /// Segments sent again.
    #[serde(default)]
    pub retransmitted: u64,
    /// Segments sent again that had arrived already, as the far end said (DSACK): they show no loss.
    #[serde(default)]
    pub spurious: u64,
    /// Packets received out of order: others were lost on their way here, or overtaken.
    #[serde(default)]
    pub out_of_order: u64,
    /// Retransmission timeouts.
    #[serde(default)]
    pub timeouts: u64,
}

impl TcpTimes {
    /// Returns what these connections did since an earlier report.
    #[must_use]
    pub fn since(self, earlier: &TcpTimes) -> TcpTimes {
        TcpTimes {
            busy_s: (self.busy_s - earlier.busy_s).max(0.0),
            receive_window_limited_s: (self.receive_window_limited_s - earlier.receive_window_limited_s).max(0.0),
            send_buffer_limited_s: (self.send_buffer_limited_s - earlier.send_buffer_limited_s).max(0.0),
            segments: self.segments.saturating_sub(earlier.segments),
            retransmitted: self.retransmitted.saturating_sub(earlier.retransmitted),
            spurious: self.spurious.saturating_sub(earlier.spurious),
            out_of_order: self.out_of_order.saturating_sub(earlier.out_of_order),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            ..self
        }
    }

    /// Returns the report on a time and on one before it, of the same connections.
    #[must_use]
    pub fn following(self, earlier: TcpTimes) -> TcpTimes {
        let (sum, now) = (self.and(earlier), self);
        TcpTimes {
            connections: now.connections,
            application_limited: now.application_limited,
            min_rtt_ns: now.min_rtt_ns,
            rtt_ns: now.rtt_ns,
            congestion_window: now.congestion_window,
            send_buffer_bytes: now.send_buffer_bytes,
            ..sum
        }
    }

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
            rtt_ns: self.rtt_ns.max(other.rtt_ns),
            congestion_window: self.congestion_window + other.congestion_window,
            send_buffer_bytes: self.send_buffer_bytes + other.send_buffer_bytes,
            segments: self.segments + other.segments,
            retransmitted: self.retransmitted + other.retransmitted,
            spurious: self.spurious + other.spurious,
            out_of_order: self.out_of_order + other.out_of_order,
            timeouts: self.timeouts + other.timeouts,
        }
    }
}

/// A receiver of a multicast group, and what it got of all that was sent, before the counted time, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receiver {
    /// Where it is.
    pub address: String,
    /// The operations that it has received.
    pub received: u64,
    /// The operations that it has not received.
    pub lost: u64,
}

/// Operations that did not arrive as sent, both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
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
    /// Payloads that came, and not as they were sent; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<u64>,
}

/// Returns whether a count that only RDMA has is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Where the time went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockDifference {
    /// How far the far end's clock is ahead of this side's.
    pub ahead_ns: i64,
    /// How far that may be wrong either way: half of the shortest round-trip, or 0 on one host. Times that are counted from the far end's
    /// stamps are off by as much.
    pub error_ns: u64,
}

/// Where a stage was stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// At this end of the link.
    Local,
    /// At its far end.
    Remote,
}

/// The operations that the far end received in each piece of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FarIntervals {
    /// How far its clock may be off from this side's, in either direction, after the correction.
    pub error_ns: u64,
    /// How far its clock is ahead of this side's: the correction that has been made.
    pub ahead_ns: i64,
    /// The pieces, on this side's clock.
    pub intervals: Vec<Interval>,
}

/// One piece of the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The piece's end, from the start of the counted time.
    pub t_s: f64,
    /// Operations completed in it.
    pub operations: u64,
    /// Payload bytes of those.
    pub payload_bytes: u64,
}
