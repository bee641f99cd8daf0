//! The only place that names every protocol: from a URI to a link or a server.

mod error;
mod limit;
mod open;
mod raw;
mod serve;
mod simulated;
mod uri;

pub use error::Error;
pub use limit::{Floor, floor, limit};
pub use open::{Opened, Settings, open};
pub use serve::{ServeSettings, Server, serve};
pub use uri::Uri;

use hodo_measure::{Mode, Test};

/// A protocol of the catalog.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// Its name, which is also its URI's scheme.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Its short standard suite: tests, modes, sizes.
    pub suite: &'static [Part],
    /// The largest size of an operation in bytes.
    pub size_max: u32,
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

const PROTOCOLS: &[Protocol] = &[
    Protocol {
        name: "tcp",
        about: "TCP: streams, requests, echoes, connections",
        suite: STREAM_SUITE,
        size_max: 1 << 30,
    },
    Protocol { name: "udp", about: "UDP: datagrams, each accounted for", suite: DATAGRAM_SUITE, size_max: 65_507 },
    Protocol { name: "unix", about: "Unix stream sockets, on one host", suite: STREAM_SUITE, size_max: 1 << 30 },
];
