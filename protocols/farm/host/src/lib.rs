//! The event farm for programs: nodes whose decisions the program takes, and sources whose events it reads out.
//!
//! With feature `daemon` also the parts of a farm: `controller` takes events in, hands each to one node, stores what is accepted
//! and tells the source only after the commit; `builder` makes events of fragments; `operator` reads the status of both and
//! gives orders.

#[cfg(feature = "daemon")]
pub mod builder;
#[cfg(feature = "daemon")]
pub mod controller;
mod deciders;
#[cfg(feature = "daemon")]
mod error;
#[cfg(feature = "daemon")]
pub mod node;
#[cfg(feature = "daemon")]
pub mod operator;
#[cfg(feature = "daemon")]
pub mod process;
#[cfg(feature = "daemon")]
pub mod programs;
mod readout;
#[cfg(feature = "daemon")]
pub mod replay;
#[cfg(feature = "daemon")]
pub mod run;
#[cfg(feature = "daemon")]
pub mod source;
#[cfg(feature = "daemon")]
pub mod view;

pub use deciders::{Decider, Deciding, Decision, Notice, Undecided, decide, process_counters};
#[cfg(feature = "daemon")]
pub use error::Error;
pub use hodo_farm as machines;
pub use hodo_io::{ServeOptions, SocketSettings, Stop};
pub use hodo_machine::{Address, Bytes, Wait};
pub use readout::{NotTaken, ReadingOut, Readout, ReadoutCounters};
