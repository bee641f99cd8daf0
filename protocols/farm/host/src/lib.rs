//! The event farm on a host: links for the tester, and programs that decide on its events or supply them.

mod deciders;
mod limit;
mod link;
mod open;
mod options;
mod readout;
mod suite;

pub use deciders::{Decider, Deciding, Decision, Notice, Undecided, decide, process_counters};
pub use hodo_farm::*;
pub use limit::{line_limit, on_the_stream};
pub use options::{accept, spread};
pub use readout::{Given, NotTaken, ReadingOut, Readout};

use hodo_tester::{Description, OnTheWire, Opened, Operation, Protocol, ServeSettings, Server, Settings, Uri};
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

    fn on_the_wire(&self, uri: &Uri, _operation: Operation) -> Result<Box<dyn OnTheWire>, hodo_tester::Error> {
        Ok(Box::new(FarmOptions::and_others(uri)?.0))
    }

    fn far_ends(&self, uri: &Uri) -> u32 {
        uri.authority.split(',').count() as u32
    }
}
