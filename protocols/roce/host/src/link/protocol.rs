//! The interface between RDMA and the tester.

use super::options::{Kind, LinkOptions, is_verbs, of_far_end};
use super::{open, study, suite, wire};
use crate::{SoftDevice, VerbsDevice};
use hodo_measure::limits::OnTheWire;
use hodo_measure::{Mode, Plan};
use hodo_tester::{
    Description, Error, FarEnd, Opened, Preset, Protocol, ServeSettings, Server, Settings, TestGroup, Uri,
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
        if is_verbs(uri) {
            open::open::<VerbsDevice>(uri, settings, stop)
        } else {
            open::open::<SoftDevice>(uri, settings, stop)
        }
    }

    fn simulate(&self, uri: &Uri, _settings: &Settings, _stop: &AtomicBool) -> Result<Opened, Error> {
        Err(Error::Usage(format!(
            "`{uri}`: RDMA links are not simulated; write {}://host, or {} alone",
            uri.scheme, uri.scheme
        )))
    }

    fn serve(&self, uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
        if is_verbs(uri) { open::serve::<VerbsDevice>(uri, settings) } else { open::serve::<SoftDevice>(uri, settings) }
    }

    fn on_the_wire(&self, uri: &Uri, plan: &Plan) -> Result<OnTheWire, Error> {
        Ok(wire::on_the_wire(&LinkOptions::of(uri)?, plan))
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
            Ok(_) if link.wants_far_end() && !is_verbs(link) => study::STUDY_OF_ONE_HOST,
            _ => study::STUDY,
        }
    }

    fn remedy(&self, uri: &Uri) -> String {
        format!("start `hodo serve {uri}` there; the port is that of TCP")
    }

    fn served_options(&self) -> &'static str {
        suite::SERVED_OPTIONS
    }
}
