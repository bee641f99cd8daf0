//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

#[path = "../../machines/tests/any/mod.rs"]
mod any;
mod client;
mod client_chaos;
mod context;
mod discovery;
mod images;
mod listing;
mod parse;
mod server;
mod show;
mod talk;
