//! pvAccess for the tester: links, their far end, the suite, and what they take on the wire.

mod call;
mod far_end;
mod link;
mod open;
mod operation;
mod protocol;
mod report;
mod suite;
mod wire;

pub use protocol::{PVA, Pva};
