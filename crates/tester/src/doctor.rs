//! The costs of this host, of its interfaces and of the path to a far end.
//!
//! [`examine`] reads and measures the facts; [`judge`] turns them into a report, and is a pure function. A finding names evidence, price
//! and remedy. What could not be read is reported as unknown.

mod examine;
mod facts;
mod judge;
mod report;

pub use examine::examine;
pub use facts::{Facts, FarProcess, InterfaceFacts, Operations, PathFacts, TcpRates, Watched};
pub use judge::judge;
pub use report::{Answer, Basis, Finding, Kind, Outcome, Price, Report, Topic};
