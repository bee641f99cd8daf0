//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod common;
mod conformance;
mod congestion;
mod cost;
#[path = "../../measure/tests/counting/mod.rs"]
mod counting;
mod datagrams;
mod joint;
mod sinner;
mod streams;
mod time;
mod world;
