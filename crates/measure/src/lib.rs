//! Plans, runs, statistics and limits: what is measured of a link, whatever its protocol.
//!
//! A [`Plan`] drives [`Link`]s; what comes out is a [`Measurement`]; a report is a function of measurements.

mod histogram;
pub mod limits;
mod link;
mod plan;
#[cfg(test)]
mod random;
mod requirement;
mod result;
mod run;
mod sizes;
pub mod statistics;
mod step;
mod trend;
mod verdict;

pub use histogram::{Histogram, HistogramError};
pub use hodo_io::nic::Nic;
pub use hodo_io::usage::Usage;
pub use hodo_units as units;
pub use link::{Completion, FarEnd, Link, LinkError, Operation, Outcome, ReportWait, Subscription};
pub use plan::{Mode, Plan, Repeats, Size, Test, Until};
pub use requirement::{Quantile, Requirement};
pub use result::{
    Beside, Binding, Clock, ClockDifference, Confidence, Connection, Cpu, Diagnosis, Document, Environment, Estimate,
    Experiment, Fairness, FarEndFacts, FarIntervals, Interval, Latency, Limit, LimitKind, LoadPoint, Loss, Measurement,
    NodeShare, OLDER_SCHEMAS, Observed, PlainLoop, ProcessCpu, Published, PublishedFigure, Rate, Receiver, SCHEMA,
    Sent, Side, SimulationCost, Slo, Stage, Stall, State, TcpTimes, Tool, Verdict, Whose,
};
pub use run::{Counters, Progress, Run, Snapshot, SnapshotSettings, Unwatched, Watch, run};
pub use sizes::Sizes;
pub use verdict::{SCHEDULE_HELD, missed, stalled, stalls_between, verdict};
