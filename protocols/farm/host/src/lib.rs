//! The event farm on a host: links for the tester, the daemons of its parts, and programs around them.
//!
//! [`controller`] takes events in, hands each to one node, stores what is accepted and tells the source only after the
//! commit; [`builder`] makes events of fragments. [`operator`] reads the status of both and gives orders.

pub mod bench;
pub mod builder;
pub mod controller;
mod deciders;
mod error;
mod limit;
mod link;
pub mod node;
mod open;
pub mod operator;
mod options;
pub mod process;
pub mod programs;
mod readout;
pub mod replay;
pub mod report;
pub mod run;
pub mod source;
mod suite;
pub mod view;

pub use deciders::{Decider, Deciding, Decision, Notice, Undecided, decide, process_counters};
pub use error::Error;
pub use hodo_farm as machines;
pub use limit::{line_limit, on_the_stream};
pub use options::{accept, spread};
pub use readout::{NotTaken, ReadingOut, Readout, ReadoutCounters};

use hodo_measure::Plan;
use hodo_measure::limits::OnTheWire;
use hodo_tester::{Description, Opened, Protocol, ServeSettings, Server, Settings, Uri};
use options::FarmOptions;
use std::sync::atomic::AtomicBool;

/// Events to nodes, whose tokens ask for the next.
pub const FARM: Farm = Farm;

/// The event farm.
#[derive(Debug)]
pub struct Farm;

impl Protocol for Farm {
    fn description(&self) -> &'static Description {
        &suite::FARM
    }

    fn open(&self, uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, hodo_tester::Error> {
        open::open(uri, settings, stop)
    }

    fn simulate(&self, uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, hodo_tester::Error> {
        open::simulate(uri, settings, stop)
    }

    fn serve(&self, uri: &Uri, settings: &ServeSettings) -> Result<Server, hodo_tester::Error> {
        open::serve(uri, settings)
    }

    fn on_the_wire(&self, uri: &Uri, plan: &Plan) -> Result<OnTheWire, hodo_tester::Error> {
        Ok(FarmOptions::and_others(uri)?.0.on_the_wire(plan))
    }

    fn served_options(&self) -> &'static str {
        suite::SERVED_OPTIONS
    }

    fn far_ends(&self, uri: &Uri) -> u32 {
        uri.authority.split(',').count() as u32
    }
}
