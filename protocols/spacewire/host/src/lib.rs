//! SpaceWire on a host: networks from files, the bridge, clients of bridges, links for the tester.

pub mod bridge;
pub mod describe;
mod link;
pub mod network;
pub mod port;
pub mod recording;
pub mod session;

pub use link::{SPACEWIRE, Spacewire};

/// Links, nodes, routers, RMAP and the protocols of bridges, as machines.
pub use hodo_spacewire as machines;
