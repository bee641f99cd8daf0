//! Plans and links that the tests of this crate share.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod served;

use hodo_catalog::{Error, Opened, Protocol, Settings, Uri, open, protocols};
use hodo_measure::{Mode, Plan, Test, Until};
use std::sync::atomic::AtomicBool;

pub const TESTS: [Test; 5] = [Test::Rate, Test::Latency, Test::Random, Test::Channels, Test::Open];
pub const MODES: [Mode; 3] = [Mode::Both, Mode::Send, Mode::Receive];

/// Returns a thousand operations of one size, one at a time, once.
pub fn plan(test: Test, mode: Mode, size: u32) -> Plan {
    Plan { test, until: Until::Count(1000), ..Plan::one(mode, size) }
}

/// Returns the protocols whose two ends are both of this program.
pub fn own() -> impl Iterator<Item = &'static dyn Protocol> {
    protocols().filter(|protocol| protocol.description().own)
}

pub fn uri(text: &str) -> Uri {
    hodo_catalog::uri(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Opens a link that nobody interrupts.
pub fn open_with(link: &Uri, settings: &Settings) -> Result<Opened, Error> {
    open(link, settings, &AtomicBool::new(false))
}

pub fn opened(link: &Uri, plan: &Plan) -> Opened {
    open_with(link, &Settings::of(plan)).unwrap_or_else(|error| panic!("{link}: {error}"))
}
