//! The schemes of SpaceWire links, their short standard suite, and the published tester's three tests.

use hodo_measure::{Mode, PublishedFigure, Test};
use hodo_tester::{Description, Fact, Figures, Preset, Scenario, TestGroup};

pub(crate) const DESCRIPTION: Description = Description {
    name: "spacewire",
    schemes: &["ssdtp2", "gresb", "spw"],
    known_as: &[],
    about: "SpaceWire: packets and RMAP over bridges (ssdtp2, gresb), and over a simulated link (spw+sim)",
    modes: &[Mode::Both, Mode::Send, Mode::Receive],
    suite: SUITE,
    size_max: 16 << 20,
    channels_max: 64,
    shares_connections: false,
    batch_max: 1,
    own: false,
    is_at_path: false,
    has_one_thread: true,
    has_updates: false,
};

const SUITE: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Both, &[60], 1, 1),
    TestGroup::new(Test::Rate, Mode::Send, &[60, 1024, 65_536], 1024, 1),
    TestGroup::new(Test::Rate, Mode::Receive, &[60, 1024], 1024, 1),
    TestGroup::new(Test::Rate, Mode::Both, &[60], 1024, 1),
];

/// Reads and writes of RMAP: 4 bytes as registers are polled, and blocks.
pub(crate) const RMAP: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Receive, &[4], 1, 1),
    TestGroup::new(Test::Latency, Mode::Send, &[4], 1, 1),
    TestGroup::new(Test::Rate, Mode::Receive, &[4, 4096], 64, 1),
    TestGroup::new(Test::Rate, Mode::Send, &[4, 4096], 64, 1),
];

/// A line, or a simulated one.
pub(crate) const LINE: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Both, &[8, 1024], 1, 1),
    TestGroup::new(Test::Rate, Mode::Send, &[1, 60, 1024], 64, 1),
    TestGroup::new(Test::Rate, Mode::Both, &[1, 60, 1024], 64, 1),
];

/// Sizes of the sweeps.
const SIZES: &[u32] = &[1, 2, 4, 8, 16, 32, 60, 128, 256, 512, 1024, 4096, 16_384];
/// The smallest sizes of the random test, which are drawn up to the largest of them.
const RANDOM: &[u32] = &[16, 2048, 4096, 8192, 12_288, 16_384];

/// The study's name.
const STUDY: &str = "star-tester";

/// The tests of the performance tester of STAR-Dundee: largest rate over sizes, random sizes, both sent, received, and both ways; latency from
/// one port to the other.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        STUDY,
        &[
            TestGroup::new(Test::Rate, Mode::Send, SIZES, 64, 1),
            TestGroup::new(Test::Rate, Mode::Receive, SIZES, 64, 1),
        ],
        &[published(ONE_WAY)],
    ),
    Preset::new(
        STUDY,
        &[
            TestGroup::new(Test::Rate, Mode::Both, SIZES, 64, 1),
            TestGroup::new(Test::Random, Mode::Send, RANDOM, 64, 1),
            TestGroup::new(Test::Random, Mode::Receive, RANDOM, 64, 1),
            TestGroup::new(Test::Random, Mode::Both, RANDOM, 64, 1),
        ],
        &[],
    ),
    Preset::new(STUDY, &[TestGroup::new(Test::Latency, Mode::Send, SIZES, 1, 1)], &[published(LATENCY)]),
];

/// The published facts about the largest rate in one direction.
const ONE_WAY: &[Fact] = &[
    Fact {
        sizes: (1, 1),
        figure: PublishedFigure::PayloadBitsPerS(200e6 * 8.0 / 14.0),
        remark: "14 bits for a byte alone",
    },
    Fact { sizes: (2, 59), figure: MOST, remark: "at most" },
    Fact { sizes: (60, u32::MAX), figure: MOST, remark: "close to that from 60 bytes on" },
];
const MOST: PublishedFigure = PublishedFigure::PayloadBitsPerS(160e6);
const LATENCY: &[Fact] =
    &[Fact { sizes: (1, u32::MAX), figure: PublishedFigure::LatencyMaxNs(100e3), remark: "one way, port to port" }];

const fn published(facts: &'static [Fact]) -> Figures {
    Figures { setting: "200 Mbit/s, a PCI Mk2 in a Core 2 Duo E7500", channels: 1, operations_per_s: &[], facts }
}

/// The three tests where everything comes back: there and back only.
pub(crate) const ECHO_PRESETS: &[Preset] = &[Preset::new(
    STUDY,
    &[
        TestGroup::new(Test::Rate, Mode::Both, SIZES, 64, 1),
        TestGroup::new(Test::Random, Mode::Both, RANDOM, 64, 1),
        TestGroup::new(Test::Latency, Mode::Both, SIZES, 1, 1),
    ],
    &[],
)];

/// The three tests of a memory: reads and writes.
pub(crate) const RMAP_PRESETS: &[Preset] = &[Preset::new(
    STUDY,
    &[
        TestGroup::new(Test::Rate, Mode::Receive, SIZES, 64, 1),
        TestGroup::new(Test::Rate, Mode::Send, SIZES, 64, 1),
        TestGroup::new(Test::Random, Mode::Receive, RANDOM, 64, 1),
        TestGroup::new(Test::Random, Mode::Send, RANDOM, 64, 1),
        TestGroup::new(Test::Latency, Mode::Receive, SIZES, 1, 1),
        TestGroup::new(Test::Latency, Mode::Send, SIZES, 1, 1),
    ],
    &[],
)];

/// Packets between two processes, and a simulated link through two routers.
pub(crate) const DEMONSTRATION: &[Scenario] = &[
    Scenario {
        link: "sim+spw://?routers=2",
        group: TestGroup::new(Test::Latency, Mode::Send, &[1024], 1, 1),
        stages: false,
    },
    Scenario { link: "sim+spw://", group: TestGroup::new(Test::Rate, Mode::Both, &[60], 64, 1), stages: false },
];

/// The options of what is served, for the help of `serve`.
pub(crate) const SERVED: &str = "\
SpaceWire: a box that speaks SSDTP2, as
  hodo serve ssdtp2://127.0.0.1:10030
which counts packets for logical address 32, sends back those for 33, sends as many of
any length as one for 34 asks for, and has 16 MiB of memory behind RMAP at 254.
`hodo spacewire bridge` serves a whole simulated network.";
