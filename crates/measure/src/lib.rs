//! Plans, runs, statistics and limits: what is measured of a link, whatever its protocol.
//!
//! A [`Plan`] drives [`Link`]s; what comes out is a [`Measurement`]; a report is a function of measurements.

pub mod limits;
mod link;
mod plan;
mod result;

pub use link::{Completion, FarEnd, Link, LinkError, Operation, Outcome, Usage};
pub use plan::{Mode, Plan, Repeats, Size, Test, Until};
pub use result::{
    Binding, Clock, Cpu, Document, Environment, Estimate, Interval, Latency, Limit, LimitKind, Loss, Measurement, Nic,
    ProcessCpu, Rate, SCHEMA, Stage, State, Tool, Verdict,
};
