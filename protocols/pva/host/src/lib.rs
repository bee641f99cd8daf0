//! pvAccess on a host: clients and servers for applications, the daemon, links for the tester.

pub mod server;

/// Values, types, requests and machines.
pub use hodo_pva as machines;
