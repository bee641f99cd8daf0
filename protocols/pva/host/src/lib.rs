//! pvAccess on a host: clients and servers for applications, the daemon, links for the tester.

pub mod client;
pub mod environment;
mod far_end;
mod link;
mod open;
pub mod parse;
mod protocol;
mod report;
pub mod serve;
pub mod server;
pub mod show;
mod suite;
mod wire;

pub use client::{Client, ClientError, ClientOptions};
/// Values, types, requests and machines.
pub use hodo_pva as machines;
pub use protocol::{PVA, Pva};
pub use show::{Form, Show};
