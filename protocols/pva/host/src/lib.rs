//! pvAccess on a host: clients and servers for applications, the daemon, links for the tester.

mod call;
pub mod client;
pub mod context;
pub mod environment;
mod far_end;
pub mod image;
mod link;
mod open;
mod operation;
mod orders;
pub mod parse;
mod protocol;
pub mod record;
pub mod replay;
mod report;
pub mod serve;
pub mod server;
pub mod show;
mod suite;
mod wire;

pub use client::{Client, ClientError, ClientOptions};
pub use context::{Context, ContextOptions};
/// Values, types, requests and machines.
pub use hodo_pva as machines;
pub use protocol::{PVA, Pva};
pub use show::{Form, Show};
