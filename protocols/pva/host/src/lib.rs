//! pvAccess on a host: clients and servers for applications, the daemon, links for the tester.

/// Values, types, requests and machines.
pub use hodo_pva as machines;
