//! The names of raw links and their short standard suites.

use hodo_measure::{Mode, Test};
use hodo_tester::{Description, Scenario, TestGroup};

pub(crate) const TCP: Description = streams("tcp", &["tcp"], "TCP: streams, requests, echoes, connections");
pub(crate) const UDP: Description = Description {
    suite: DATAGRAM_SUITE,
    size_max: 65_507,
    ..streams("udp", &["udp"], "UDP: datagrams, each accounted for")
};
pub(crate) const UNIX: Description =
    Description { is_at_path: true, ..streams("unix", &["unix"], "Unix stream sockets, on one host") };

/// A simulated link: the same machines in virtual time, over a network whose faults are known.
pub(crate) const SIMULATED: &[Scenario] = &[Scenario {
    link: "sim+udp://?delay=50us&rate=1G&seed=1",
    group: TestGroup::new(Test::Latency, Mode::Both, &[64, 1024], 1, 1),
    stages: false,
}];

const MODES: &[Mode] = &[Mode::Both, Mode::Send, Mode::Receive];

const STREAM_SUITE: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Both, &[64, 1024, 32 << 10], 1, 1),
    TestGroup::new(Test::Rate, Mode::Send, &[1 << 10, 32 << 10, 128 << 10], 64, 1),
    TestGroup::new(Test::Rate, Mode::Receive, &[32 << 10], 64, 1),
    TestGroup::new(Test::Rate, Mode::Both, &[64, 32 << 10], 64, 1),
    TestGroup::new(Test::Channels, Mode::Send, &[32 << 10], 16, 20),
];

const DATAGRAM_SUITE: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Both, &[64, 1024], 1, 1),
    TestGroup::new(Test::Rate, Mode::Send, &[64, 1024, 8192], 512, 1),
    TestGroup::new(Test::Rate, Mode::Receive, &[1024], 512, 1),
    TestGroup::new(Test::Rate, Mode::Both, &[64], 64, 1),
];

const fn streams(name: &'static str, schemes: &'static [&'static str], about: &'static str) -> Description {
    Description {
        name,
        schemes,
        known_as: &[],
        about,
        modes: MODES,
        suite: STREAM_SUITE,
        size_max: 1 << 30,
        channels_max: 20_000,
        shares_connections: false,
        batch_max: 1,
        own: true,
        is_at_path: false,
        has_one_thread: false,
        has_updates: true,
    }
}
