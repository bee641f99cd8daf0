//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod board;
mod boards;
mod daemon;
mod lossy;
#[path = "../../../../crates/catalog/tests/plans/mod.rs"]
mod plans;
mod session;
