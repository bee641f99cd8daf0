use crate::options::{Far, Options};
use crate::{open, suite, theory};
use hodo_measure::limits::{Carrier, OnTheWire};
use hodo_measure::{Mode, Plan};
use hodo_spacewire::{gresb, ssdtp2};
use hodo_tester::{
    Description, Error, Opened, Preset, Protocol, Scenario, ServeSettings, Server, Settings, TestGroup, Uri,
};
use std::sync::atomic::AtomicBool;

/// SpaceWire over bridges, and simulated.
pub const SPACEWIRE: Spacewire = Spacewire;

/// Packets and RMAP over SSDTP2 and GRESB, and over a simulated link.
#[derive(Debug)]
pub struct Spacewire;

impl Protocol for Spacewire {
    fn description(&self) -> &'static Description {
        &suite::DESCRIPTION
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
        let options = Options::of(uri)?;
        let header = if uri.scheme == "gresb" { gresb::HEADER_LENGTH } else { ssdtp2::HEADER_LENGTH } as u64;
        let mut wire = OnTheWire::over_sizes(plan.size, |size| {
            let (out, back) = packets(&options, plan.mode, u64::from(size));
            let framed = |bytes: u64| if bytes == 0 { 0 } else { bytes + header };
            OnTheWire::single(Carrier::Tcp, u64::from(size), framed(out), framed(back))
        });
        wire.theory = options.line.map(|line| theory::theory(&line, &options, plan, uri.simulated));
        Ok(wire)
    }

    fn suite(&self, link: &Uri) -> &'static [TestGroup] {
        match link.option("far") {
            Some("rmap") => suite::RMAP,
            _ if link.simulated || ["far", "back", "rate"].iter().any(|name| link.option(name).is_some()) => {
                suite::LINE
            }
            _ => suite::DESCRIPTION.suite,
        }
    }

    fn modes(&self, link: &Uri) -> &'static [Mode] {
        match link.option("far") {
            Some("rmap") => &[Mode::Receive, Mode::Send],
            Some("echo") => &[Mode::Both],
            _ => suite::DESCRIPTION.modes,
        }
    }

    fn check(&self, link: &Uri, plan: &Plan) -> Result<(), Error> {
        let options = Options::of(link)?;
        let one = matches!(options.far, Far::Back(_)) || link.simulated;
        if plan.channels > 1 && (one || link.option("far") == Some("echo")) {
            return Err(Error::Usage(format!(
                "--channels {}: a port of a bridge serves one host; take 1",
                plan.channels
            )));
        }
        if plan.size.bounds().0 == 0 {
            return Err(Error::Usage("--sizes 0: a packet has an address, so that it takes at least 1".to_owned()));
        }
        let in_flight = u64::from(plan.window) * u64::from(plan.channels);
        if matches!(options.far, Far::Rmap(_)) && in_flight > 32_768 {
            return Err(Error::Usage(format!("--window {}: RMAP numbers at most 32768 transactions", plan.window)));
        }
        Ok(())
    }

    fn port(&self, uri: &Uri) -> Option<u16> {
        Some(if uri.scheme == "gresb" { gresb::PORT_BASE } else { ssdtp2::PORT })
    }

    fn remedy(&self, uri: &Uri) -> String {
        let served = if uri.scheme == "ssdtp2" { format!("`hodo serve {uri}` or ") } else { String::new() };
        format!(
            "start {served}`hodo spacewire bridge` there, with --listen for other hosts, and check that the port is right"
        )
    }

    fn far_end(&self, link: &Uri, _stages: bool) -> hodo_tester::FarEnd {
        hodo_tester::FarEnd::serve(Uri { options: Vec::new(), ..link.clone() })
    }

    fn demonstration(&self) -> &'static [Scenario] {
        suite::DEMONSTRATION
    }

    fn presets(&self, link: &Uri) -> &'static [Preset] {
        match link.option("far") {
            Some("rmap") => suite::RMAP_PRESETS,
            Some("echo") => suite::ECHO_PRESETS,
            _ => suite::PRESETS,
        }
    }

    fn served_options(&self) -> &'static str {
        suite::SERVED
    }
}

/// Returns the bytes of the packets of an operation there and back, with their paths.
fn packets(options: &Options, mode: Mode, size: u64) -> (u64, u64) {
    let (path, back) = (options.path.len() as u64, options.back_path.len() as u64);
    match (&options.far, mode) {
        (Far::Rmap(_), mode) => {
            let exchange = theory::transaction(mode, size, (path, back));
            (exchange.command, exchange.reply)
        }
        (_, Mode::Both) => (path + size, back + size),
        (_, Mode::Send) => (path + size, 0),
        (_, Mode::Receive) => (0, back + size),
    }
}
