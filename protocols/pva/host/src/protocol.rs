//! The interface between pvAccess and the tester.

use crate::{open, suite, wire};
use hodo_measure::Plan;
use hodo_measure::limits::OnTheWire;
use hodo_tester::{Description, Error, Opened, Preset, Protocol, ServeSettings, Server, Settings, Uri};
use std::sync::atomic::AtomicBool;

/// Values of channels, read, written and subscribed to.
pub const PVA: Pva = Pva;

/// EPICS pvAccess over TCP.
#[derive(Debug)]
pub struct Pva;

impl Protocol for Pva {
    fn description(&self) -> &'static Description {
        &suite::PVA
    }

    fn open(&self, uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
        open::open(uri, settings, stop)
    }

    fn simulate(&self, uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
        open::simulate(uri, settings, stop)
    }

    fn serve(&self, uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
        open::serve(uri, settings)
    }

    fn on_the_wire(&self, _uri: &Uri, plan: &Plan) -> Result<OnTheWire, Error> {
        Ok(wire::on_the_wire(plan))
    }

    fn presets(&self) -> &'static [Preset] {
        suite::PRESETS
    }

    fn remedy(&self, uri: &Uri) -> String {
        format!("is the server running, and is that its TCP port? `hodo serve {uri}` starts one to measure")
    }
}
