//! pvAccess on a host: clients and servers for applications, the daemon, links for the tester.

pub mod parse;
pub mod serve;
pub mod server;
pub mod show;

/// Values, types, requests and machines.
pub use hodo_pva as machines;
pub use show::{Form, Show};
