//! Sockets, threads, clocks and processor placement: the endpoint that runs a machine on a real transport.

pub mod host;
pub mod nic;
pub mod usage;
