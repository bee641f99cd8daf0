#![doc = include_str!("../README.md")]

#[cfg(feature = "daemon")]
pub mod bridge;
pub mod describe;
mod names;
#[cfg(feature = "daemon")]
pub mod network;
pub mod port;
pub mod recording;
pub mod session;

pub use hodo_machine::{Closed, Wait};
/// Links, nodes, routers, RMAP and the protocols of bridges, as machines.
pub use hodo_spacewire as machines;
pub use names::Names;
