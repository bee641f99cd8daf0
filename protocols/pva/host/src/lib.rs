//! pvAccess on a host: clients and servers for applications, the daemon, links for the tester.

pub mod environment;
mod far_end;
mod link;
mod open;
pub mod parse;
mod protocol;
pub mod server;
pub mod show;
mod suite;
mod wire;

/// Values, types, requests and machines.
pub use hodo_pva as machines;
pub use protocol::{PVA, Pva};
pub use show::{Form, Show};
