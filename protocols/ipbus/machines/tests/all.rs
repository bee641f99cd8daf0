//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod chain;
mod hub;
mod hub_backlog;
mod hub_beside_another;
mod hub_dead_boards;
mod hub_replies;
mod rack;
mod rig;
mod scene;
mod shared_board;
mod vectors;
