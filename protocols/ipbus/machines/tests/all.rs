//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod allocations;
mod chain;
mod client_allocations;
#[path = "../../../../crates/measure/tests/counting/mod.rs"]
mod counting;
mod crowd;
mod hub;
mod hub_allocations;
mod hub_backlog;
mod hub_beside_another;
mod hub_dead_boards;
mod hub_replies;
mod rack;
mod rig;
mod scene;
mod shared_board;
mod vectors;
