//! IPbus for the tester: links, devices in software, the suite, and what they take on the wire.

mod boards;
mod device;
mod far_end;
mod hub_stages;
mod limit;
mod link;
mod open;
mod suite;

use hodo_ipbus::wire::{DEVICE_PORT, HUB_PORT};
use hodo_measure::Plan;
use hodo_measure::limits::OnTheWire;
use hodo_tester::{Description, Error, FarEnd, Opened, Protocol, Scenario, ServeSettings, Server, Settings, Uri};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

/// Registers of electronics, read and written.
pub const IPBUS: Ipbus = Ipbus;

/// IPbus 2.0 and 1.3: over UDP, over TCP, and through a hub.
#[derive(Debug)]
pub struct Ipbus;

impl Protocol for Ipbus {
    fn description(&self) -> &'static Description {
        &suite::IPBUS
    }

    fn open(&self, uri: &Uri, settings: &Settings, _stop: &AtomicBool) -> Result<Opened, Error> {
        open::open(uri, settings)
    }

    fn simulate(&self, uri: &Uri, settings: &Settings, _stop: &AtomicBool) -> Result<Opened, Error> {
        open::simulate(uri, settings)
    }

    fn serve(&self, uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
        open::serve(uri, settings)
    }

    fn on_the_wire(&self, uri: &Uri, plan: &Plan) -> Result<OnTheWire, Error> {
        limit::on_the_wire(uri, plan)
    }

    fn port(&self, uri: &Uri) -> Option<u16> {
        Some(if boards::is_through_hub(uri) { HUB_PORT } else { DEVICE_PORT })
    }

    fn remedy(&self, uri: &Uri) -> String {
        far_end::remedy(uri)
    }

    fn of_link(&self, uri: &Uri) -> Uri {
        far_end::of_link(uri)
    }

    fn far_end(&self, link: &Uri, stages: bool) -> FarEnd {
        far_end::far_end(link, stages)
    }

    fn link_to(&self, named: &Uri, said: &[String], behind: Option<&Uri>) -> Result<Uri, Error> {
        far_end::link_to(named, said, behind)
    }

    fn demonstration(&self) -> &'static [Scenario] {
        suite::DEMONSTRATION
    }

    fn served_options(&self) -> &'static str {
        suite::SERVED_OPTIONS
    }

    fn far_ends(&self, uri: &Uri) -> u32 {
        far_end::count(uri)
    }

    fn add_stages(&self, uri: &Uri, opened: &mut Opened, pages: Option<SocketAddr>) -> Result<(), String> {
        if boards::is_through_hub(uri) { hub_stages::add(opened, pages) } else { Ok(()) }
    }
}
