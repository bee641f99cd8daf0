//! Plans, runs, statistics and limits: what is measured of a link, whatever its protocol.
//!
//! A [`Plan`] drives [`Link`]s; what comes out is a [`Measurement`]; a report is a function of measurements.

mod histogram;
pub mod limits;
mod link;
mod plan;
#[cfg(test)]
mod random;
mod result;
mod run;
mod sizes;
pub mod statistics;
mod step;
mod trend;
pub mod units;
mod verdict;

pub use histogram::{Histogram, HistogramError};
pub use hodo_io::nic::Nic;
pub use hodo_io::usage::Usage;
pub use link::{Completion, FarEnd, Link, LinkError, Operation, Outcome, Subscription};
pub use plan::{Mode, Plan, Repeats, Size, Test, Until};
pub use result::{
    Binding, Clock, ClockDifference, Cpu, Document, Environment, Estimate, Fairness, FarEndFacts, Interval, Latency,
    Limit, LimitKind, Loss, Measurement, NodeShare, ProcessCpu, Published, Rate, SCHEMA, SCHEMA_1, Side,
    SimulationCost, Stage, State, TcpTimes, Tool, Verdict,
};
pub use run::{Progress, Run, Unwatched, Watch, run};
pub use sizes::Sizes;
pub use verdict::{SCHEDULE_HELD, missed, verdict};
