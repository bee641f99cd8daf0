//! Raw links for the tester: TCP, UDP and Unix streams, and their far end.

mod facts;
mod group;
mod link;
mod open;
mod suite;
mod wire;

#[cfg(test)]
mod tests;

use hodo_machine::Transport;
use hodo_measure::Plan;
use hodo_measure::limits::OnTheWire;
use hodo_tester::{Description, Error, Opened, Protocol, Scenario, ServeSettings, Server, Settings, Uri};
use std::sync::atomic::AtomicBool;

/// Streams, requests, echoes and connections over TCP.
pub const TCP: Raw = Raw(&suite::TCP);
/// Datagrams over UDP, each accounted for.
pub const UDP: Raw = Raw(&suite::UDP);
/// Unix stream sockets, on one host.
pub const UNIX: Raw = Raw(&suite::UNIX);

/// Raw messages over one of the three transports.
#[derive(Debug)]
pub struct Raw(&'static Description);

/// Buffers of many TCP streams on one host: what is under way stays in the caches, which is worth a third of the rate at
/// 128 KiB. A single stream gains nothing by it, and a link with a real round-trip needs more.
const MANY_STREAMS_BUFFER: usize = 256 << 10;

impl Protocol for Raw {
    fn description(&self) -> &'static Description {
        self.0
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
        Ok(wire::on_the_wire(uri, plan))
    }

    fn port(&self, uri: &Uri) -> Option<u16> {
        (uri.scheme != suite::UNIX.name).then_some(open::DEFAULT_PORT)
    }

    fn demonstration(&self) -> &'static [Scenario] {
        if self.0.name == suite::UDP.name { suite::SIMULATED } else { &[] }
    }

    fn has_content(&self) -> bool {
        true
    }

    fn check(&self, link: &Uri, plan: &Plan) -> Result<(), Error> {
        group::check(link, plan)
    }

    fn has_unbounded(&self, link: &Uri) -> bool {
        transport(link) == Transport::Datagram
    }

    fn socket_buffer(&self, channels: u32) -> Option<usize> {
        (self.0.name == suite::TCP.name && channels > 1).then_some(MANY_STREAMS_BUFFER)
    }
}

/// Returns the transport of a scheme.
fn transport(uri: &Uri) -> Transport {
    if uri.scheme == suite::UDP.name { Transport::Datagram } else { Transport::Stream }
}
