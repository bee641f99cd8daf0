//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod allocations;
mod any;
mod client;
mod client_allocations;
mod client_cuts;
mod client_peers;
mod client_script;
#[path = "../../../../crates/measure/tests/counting/mod.rs"]
mod counting;
mod differential;
mod discovery_client;
mod discovery_flood;
mod discovery_server;
mod golden;
mod golden_messages;
mod golden_values;
mod hostile;
mod properties;
mod rig;
mod server;
mod server_arrays;
mod server_operations;
mod server_rights;
mod server_unknown;
mod session;
mod simulated_search;
mod values;
