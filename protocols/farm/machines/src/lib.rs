//! The event farm: sources send fragments, a builder makes events of them, a controller hands each event to one node,
//! and the node's answer is the control token that asks for the next event.
//!
//! Every hop is the same event link: who gives sends EVENT, who takes answers each with one TOKEN, which carries the
//! verdict and gives the credit back. Who gives keeps an event until its token has come, so that nothing is lost when
//! a taker dies. The wire is described in [`wire`].
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod builder;
pub mod controller;
mod dials;
pub mod emulation;
mod error;
mod greetings;
mod inbound;
mod ledger;
mod lines;
pub mod node;
mod pool;
mod recent;
#[cfg(test)]
mod rig;
mod sender;
pub mod source;
mod sums;
mod supply;
pub mod wire;

pub use builder::{Builder, BuilderConfig, Incomplete};
pub use controller::{Controller, ControllerConfig, Policy};
pub use error::Error;
pub use hodo_machine::Ranges;
pub use ledger::{Counts, Ledger, Standing};
pub use node::{Node, NodeConfig};
pub use source::{Source, SourceConfig};
pub use sums::{Content, Data, Likeness};
pub use supply::{EventData, Next, NoSupply, Supply};
