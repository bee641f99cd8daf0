//! The interface between RDMA and the tester.

use crate::options::{Kind, LinkOptions, of_far_end};
use crate::{open, study, suite, wire};
use hodo_measure::limits::{Carrier, OnTheWire};
use hodo_measure::{Mode, Plan};
use hodo_roce_host::exchange::PORT;
use hodo_roce_host::{SharedMemoryDevice, SoftDevice, VerbsDevice};
use hodo_tester::{
    Description, Error, FarEnd, Opened, PathSupport, Preset, Protocol, ServeSettings, Server, Settings, TestGroup, Uri,
};
use std::sync::atomic::AtomicBool;

/// Messages, writes and reads of queue pairs, over the software adapter and real ones.
pub const ROCE: Rdma = Rdma;

/// RDMA reliable connections.
#[derive(Debug)]
pub struct Rdma;

impl Protocol for Rdma {
    fn description(&self) -> &'static Description {
        &suite::DESCRIPTION
    }

    fn open(&self, uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
        match uri.scheme {
            suite::VERBS => open::open::<VerbsDevice>(uri, settings, stop),
            suite::SHM => open::open::<SharedMemoryDevice>(uri, settings, stop),
            _ => open::open::<SoftDevice>(uri, settings, stop),
        }
    }

    fn simulate(&self, uri: &Uri, _settings: &Settings, _stop: &AtomicBool) -> Result<Opened, Error> {
        Err(Error::Usage(format!(
            "`{uri}`: RDMA links are not simulated; write {}://host, or {} alone",
            uri.scheme, uri.scheme
        )))
    }

    fn serve(&self, uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
        match uri.scheme {
            suite::VERBS => open::serve::<VerbsDevice>(uri, settings),
            suite::SHM => open::serve::<SharedMemoryDevice>(uri, settings),
            _ => open::serve::<SoftDevice>(uri, settings),
        }
    }

    fn on_the_wire(&self, uri: &Uri, plan: &Plan) -> Result<OnTheWire, Error> {
        let wire = wire::on_the_wire(&LinkOptions::of(uri)?, plan);
        // Shared memory has no line; what stands beside it is the other way between two processes of one host.
        Ok(if uri.scheme == suite::SHM { OnTheWire { carrier: Carrier::Unix, ..wire } } else { wire })
    }

    fn suite(&self, link: &Uri) -> &'static [TestGroup] {
        LinkOptions::of(link).map_or(suite::SENDS, |options| options.kind.suite())
    }

    fn modes(&self, link: &Uri) -> &'static [Mode] {
        LinkOptions::of(link).map_or(suite::MODES, |options| options.kind.modes())
    }

    fn check(&self, link: &Uri, plan: &Plan) -> Result<(), Error> {
        open::check(link, plan)
    }

    fn far_end(&self, link: &Uri, _stages: bool) -> FarEnd {
        FarEnd::serve(of_far_end(link))
    }

    fn presets(&self, link: &Uri) -> &'static [Preset] {
        match LinkOptions::of(link) {
            // The study is of sends.
            Ok(options) if options.kind != Kind::Send => &[],
            // An adapter has the ports that its link names.
            Ok(_) if link.wants_far_end() && link.scheme == suite::ROCE => study::STUDY_OF_ONE_HOST,
            _ => study::STUDY,
        }
    }

    fn path_support(&self, link: &Uri) -> PathSupport {
        if link.scheme == suite::ROCE { PathSupport::Marks } else { PathSupport::None }
    }

    fn port(&self, _uri: &Uri) -> Option<u16> {
        Some(PORT)
    }

    fn remedy(&self, uri: &Uri) -> String {
        format!("start `hodo serve {uri}` there; the port is that of TCP")
    }

    fn served_options(&self) -> &'static str {
        suite::SERVED_OPTIONS
    }
}
