//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod any;
mod client;
mod client_cuts;
mod client_peers;
mod client_script;
mod differential;
mod discovery_client;
mod discovery_server;
mod golden;
mod golden_messages;
mod golden_values;
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
