//! The only place that names every protocol: from a URI to a link or a server.

mod boards;
mod deciders;
mod device;
mod error;
mod farm_limit;
mod farm_link;
mod farm_options;
mod ipbus_files;
mod ipbus_limit;
mod ipbus_link;
mod ipbus_session;
mod limit;
mod open;
mod raw;
mod readout;
mod serve;
mod simulated;
mod uri;

pub use error::Error;
pub use limit::{Floor, floor, limit};
pub use open::{Opened, Settings, open};
pub use serve::{ServeSettings, Server, serve};
pub use uri::Uri;

use hodo_measure::{Mode, Test};

/// IPbus for applications: a device's registers by address and by name, and the hub.
pub mod ipbus {
    pub use crate::ipbus_files::Files;
    pub use crate::ipbus_session::{
        Access, At, Brought, Doing, Failure, Queued, Session, SessionError, SessionSettings,
    };
    pub use hodo_ipbus::{Error, hub, window, wire};
    pub use hodo_uhal::{connections, files, finding, pattern, table, uri};
}

/// The event farm for applications.
pub mod farm {
    pub use crate::deciders::{Decider, Deciding, Decision, Notice, Undecided, decide, process_counters};
    pub use crate::farm_limit::{line_limit, on_the_stream};
    pub use crate::farm_options::{accept, spread};
    pub use crate::readout::{Given, NotTaken, ReadingOut, Readout};
    pub use hodo_farm::*;
}

/// A protocol of the catalog.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// Its name; alone it stands for a link over its first scheme.
    pub name: &'static str,
    /// The schemes of its URIs.
    pub schemes: &'static [&'static str],
    /// One line for people.
    pub about: &'static str,
    /// Which ways the payload of its operations may go, the most usual one first.
    pub modes: &'static [Mode],
    /// Its short standard suite: tests, modes, sizes.
    pub suite: &'static [Part],
    /// The largest size of an operation in bytes.
    pub size_max: u32,
    /// The most operations in a packet.
    pub batch_max: u32,
    /// Whether both of its ends are this program's: they greet, and the far end tells its counters, CPU and stages.
    pub own: bool,
}

/// One part of a protocol's standard suite.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The test.
    pub test: Test,
    /// Which way the payload goes.
    pub mode: Mode,
    /// The sizes, in turn.
    pub sizes: &'static [u32],
    /// Operations in flight per channel.
    pub window: u32,
    /// Channels.
    pub channels: u32,
}

/// Every protocol.
#[must_use]
pub fn protocols() -> &'static [Protocol] {
    PROTOCOLS
}

/// Every scheme that a URI may have.
pub(crate) fn schemes() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().flat_map(|protocol| protocol.schemes.iter().copied())
}

/// The protocol that a scheme belongs to.
#[must_use]
pub fn protocol_of(scheme: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.schemes.contains(&scheme))
}

const fn part(test: Test, mode: Mode, sizes: &'static [u32], window: u32, channels: u32) -> Part {
    Part { test, mode, sizes, window, channels }
}

const STREAM_SUITE: &[Part] = &[
    part(Test::Latency, Mode::Both, &[64, 1024, 32 << 10], 1, 1),
    part(Test::Rate, Mode::Send, &[1 << 10, 32 << 10, 128 << 10], 64, 1),
    part(Test::Rate, Mode::Receive, &[32 << 10], 64, 1),
    part(Test::Rate, Mode::Both, &[64, 32 << 10], 64, 1),
    part(Test::Channels, Mode::Send, &[32 << 10], 16, 20),
];

const DATAGRAM_SUITE: &[Part] = &[
    part(Test::Latency, Mode::Both, &[64, 1024], 1, 1),
    part(Test::Rate, Mode::Send, &[64, 1024, 8192], 512, 1),
    part(Test::Rate, Mode::Receive, &[1024], 512, 1),
    part(Test::Rate, Mode::Both, &[64], 64, 1),
];

const IPBUS_SUITE: &[Part] = &[
    part(Test::Latency, Mode::Receive, &[4], 1, 1),
    part(Test::Latency, Mode::Send, &[4], 1, 1),
    part(Test::Rate, Mode::Receive, &[4, 1 << 20], 16, 1),
    part(Test::Rate, Mode::Send, &[1 << 20], 16, 1),
    part(Test::Rate, Mode::Both, &[1 << 10], 16, 1),
    part(Test::Channels, Mode::Receive, &[4], 1, 8),
];

/// The published study's events, beside a small one.
const FARM_SUITE: &[Part] = &[
    part(Test::Latency, Mode::Send, &[64], 1, 1),
    part(Test::Rate, Mode::Send, &[32_000], 8, 1),
    part(Test::Channels, Mode::Send, &[32_000], 2, 20),
];

const MODES: &[Mode] = &[Mode::Both, Mode::Send, Mode::Receive];

const fn raw(name: &'static str, schemes: &'static [&'static str], about: &'static str) -> Protocol {
    Protocol { name, schemes, about, modes: MODES, suite: STREAM_SUITE, size_max: 1 << 30, batch_max: 1, own: true }
}

const PROTOCOLS: &[Protocol] = &[
    raw("tcp", &["tcp"], "TCP: streams, requests, echoes, connections"),
    Protocol { suite: DATAGRAM_SUITE, size_max: 65_507, ..raw("udp", &["udp"], "UDP: datagrams, each accounted for") },
    raw("unix", &["unix"], "Unix stream sockets, on one host"),
    Protocol {
        name: "ipbus",
        schemes: &["ipbusudp-2.0", "ipbustcp-2.0", "chtcp-2.0", "ipbusudp-1.3", "ipbustcp-1.3", "chtcp-1.3"],
        about: "IPbus: registers of electronics, read and written",
        modes: MODES,
        suite: IPBUS_SUITE,
        size_max: 10 << 20,
        batch_max: 1000,
        own: false,
    },
    Protocol {
        name: "farm",
        schemes: &["farm"],
        about: "the event farm: events to nodes, whose tokens ask for the next",
        modes: &[Mode::Send],
        suite: FARM_SUITE,
        size_max: 128 << 20,
        batch_max: 1,
        own: true,
    },
];
