#![doc = include_str!("../README.md")]

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
