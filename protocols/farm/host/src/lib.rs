//! The event farm on a host: the daemons of its parts, and programs around them.
//!
//! [`controller`] takes events in, hands each to one node, stores what is accepted and tells the source only after the
//! commit; [`builder`] makes events of fragments. [`operator`] reads the status of both and gives orders.

pub mod builder;
pub mod controller;
mod error;
pub mod operator;
pub mod process;
pub mod replay;
pub mod report;
pub mod source;
pub mod view;

pub use error::Error;
