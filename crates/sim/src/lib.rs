//! A network in virtual time: machines meet over delay, loss, reordering, rate and partition, all from one seed.
//!
//! A [`World`] holds any machines at any nodes, each pair of which has a [`Network`] of its own for each way; [`Sim`] is a
//! world of one client machine and its servers, as a driver of the client. Nothing here reads a clock: time jumps from
//! one thing that happens to the next, so a second of traffic takes as long as its messages take to compute, and the
//! same seed gives the same bytes at the same times.
//!
//! What is left out on purpose: bytes of acknowledgements on the wire, segments of one stream that overtake each other,
//! and sharing of one line by several pairs of nodes.
#![forbid(unsafe_code)]

pub mod conformance;
mod congestion;
mod connect;
mod connection;
pub mod cost;
mod counters;
mod datagram;
mod disk;
mod fabric;
mod host;
mod network;
pub mod options;
mod program;
mod recovery;
mod schedule;
mod sender;
mod sim;
mod stream;
mod wire;
mod world;

pub use congestion::Congestion;
pub use counters::Counters;
pub use disk::{Disk, DiskFaults, DiskFile};
pub use hodo_machine::{Random, Transport};
pub use network::{DATAGRAM_HEADERS, Model, Network, STREAM_HEADERS};
pub use options::OptionError;
pub use sim::Sim;
pub use world::{BROADCAST, Death, FIRST_GROUP, Site, Stream, World};
