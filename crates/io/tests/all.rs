//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod bell;
mod datagrams;
mod echo;
mod events;
mod forwarder;
mod gathered;
mod joint;
mod mixture;
mod no_room;
mod ports;
mod room;
mod shards;
mod stamps;
mod stopping;
mod streams;
mod tcp_counters;
mod together;
mod told;
mod turns;
mod woken;
