//! The event farm for the tester: links to its nodes, the benchmark of whole farms, and a run as a measurement.

pub mod bench;
mod limit;
mod link;
mod open;
mod options;
pub mod report;
mod suite;

pub use limit::{line_limit, on_the_stream};
pub use options::{accept, spread};

use hodo_farm::wire::NODES_PORT;
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

    fn port(&self, _uri: &Uri) -> Option<u16> {
        Some(NODES_PORT)
    }

    fn served_options(&self) -> &'static str {
        suite::SERVED_OPTIONS
    }

    fn far_ends(&self, uri: &Uri) -> u32 {
        uri.authority.split(',').count() as u32
    }
}
