//! pvAccess on a host: clients and servers for applications, the daemon, links for the tester.

pub mod client;
pub mod environment;
pub mod parse;
pub mod serve;
pub mod server;
pub mod show;

pub use client::{Client, ClientError, ClientOptions};
/// Values, types, requests and machines.
pub use hodo_pva as machines;
pub use show::{Form, Show};
