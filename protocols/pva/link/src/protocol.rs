//! The interface between pvAccess and the tester.

use crate::operation::Kind;
use crate::{open, suite, wire};
use hodo_measure::Plan;
use hodo_measure::limits::OnTheWire;
use hodo_pva::wire::SERVER_PORT;
use hodo_tester::{
    Description, Error, FarEnd, Opened, Preset, Protocol, Scenario, ServeSettings, Server, Settings, TestGroup, Uri,
};
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

    fn on_the_wire(&self, uri: &Uri, plan: &Plan) -> Result<OnTheWire, Error> {
        let (kind, _) = Kind::and_others(uri)?;
        Ok(wire::on_the_wire(kind, plan))
    }

    fn suite(&self, link: &Uri) -> &'static [TestGroup] {
        Kind::and_others(link).map_or(suite::PVA.suite, |(kind, _)| kind.suite())
    }

    fn check(&self, link: &Uri, plan: &Plan) -> Result<(), Error> {
        open::check(link, plan)
    }

    fn far_end(&self, link: &Uri, _stages: bool) -> FarEnd {
        // What an operation is, is nothing that the far end has to know.
        FarEnd::serve(link.with_options(|_| false))
    }

    fn demonstration(&self) -> &'static [Scenario] {
        suite::DEMONSTRATION
    }

    fn presets(&self, link: &Uri) -> &'static [Preset] {
        // The study is of gets.
        if matches!(Kind::and_others(link), Ok((Kind::Value, _))) { suite::PRESETS } else { &[] }
    }

    fn port(&self, _uri: &Uri) -> Option<u16> {
        Some(SERVER_PORT)
    }

    fn remedy(&self, uri: &Uri) -> String {
        format!("is the server running, and is that its TCP port? `hodo serve {uri}` starts one to measure")
    }
}
