//! The scheme of pvAccess links and their short standard suite.

use hodo_measure::{Mode, Test};
use hodo_tester::{Description, Figures, Preset, Scenario, TestGroup};

pub(crate) const PVA: Description = Description {
    name: "pva",
    schemes: &["pva"],
    about: "EPICS pvAccess: values of channels, read, written and subscribed to",
    modes: &[Mode::Receive, Mode::Send, Mode::Both],
    suite: &[
        TestGroup::new(Test::Latency, Mode::Receive, &[8], 1, 1),
        TestGroup::new(Test::Rate, Mode::Receive, &[80_000, 8_000_000], 1, 1),
        TestGroup::new(Test::Rate, Mode::Send, &[800_000], 1, 1),
        TestGroup::new(Test::Channels, Mode::Receive, &[8], 1, 1000),
        TestGroup::new(Test::Updates, Mode::Receive, &[8], 64, 100),
    ],
    size_max: 1 << 30,
    channels_max: 100_000,
    shares_connections: true,
    batch_max: 1,
    // Any server of the field is a far end, which greets nobody and counts nothing.
    own: false,
    is_at_path: false,
    has_one_thread: false,
    has_updates: true,
};

/// The suite of calls.
pub(crate) const CALLS: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Both, &[8], 1, 1),
    TestGroup::new(Test::Rate, Mode::Receive, &[80_000], 1, 1),
    TestGroup::new(Test::Rate, Mode::Send, &[80_000], 1, 1),
    TestGroup::new(Test::Channels, Mode::Both, &[8], 1, 1000),
];

/// The suite of connects, which have no payload.
pub(crate) const CONNECTS: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Receive, &[0], 1, 1),
    TestGroup::new(Test::Channels, Mode::Receive, &[0], 1, 10_000),
];

/// A get in its stages, calls and connects.
pub(crate) const DEMONSTRATION: &[Scenario] = &[
    Scenario { link: "pva", group: TestGroup::new(Test::Latency, Mode::Receive, &[800], 1, 1), stages: true },
    Scenario { link: "pva?operation=call", group: CALLS[0], stages: true },
    Scenario { link: "pva?operation=connect", group: CONNECTS[1], stages: false },
];

/// The sizes of the published study: 1 to 10,000,000 doubles.
const SIZES: &[u32] = &[8, 80, 800, 8_000, 80_000, 800_000, 8_000_000, 80_000_000];

/// The study of gets that was published for the C++ implementation: a get on each channel, and all answers awaited.
pub(crate) const PRESETS: &[Preset] = &[Preset::new(
    "epics-get",
    &[
        TestGroup::new(Test::Rate, Mode::Receive, SIZES, 1, 1),
        TestGroup::new(Test::Channels, Mode::Receive, SIZES.split_at(5).0, 1, 1000),
    ],
    &[
        Figures {
            setting: "one host, Core i7-3820",
            channels: 1,
            operations_per_s: &[
                (8, 15_086.0),
                (80, 15_103.0),
                (800, 15_500.0),
                (8_000, 11_927.0),
                (80_000, 6_744.0),
                (800_000, 1_780.0),
                (8_000_000, 235.9),
                (80_000_000, 31.38),
            ],
        },
        Figures {
            setting: "two hosts, 1 Gbit/s",
            channels: 1,
            operations_per_s: &[
                (8, 2_465.0),
                (80, 2_483.0),
                (800, 2_484.0),
                (8_000, 2_244.0),
                (80_000, 753.0),
                (800_000, 133.0),
                (8_000_000, 14.5),
                (80_000_000, 1.46),
            ],
        },
        Figures {
            setting: "one host, Core i7-3820",
            channels: 1000,
            operations_per_s: &[
                (8, 640_176.0),
                (80, 668_469.0),
                (800, 532_530.0),
                (8_000, 177_632.0),
                (80_000, 26_601.0),
            ],
        },
        Figures {
            setting: "two hosts, 1 Gbit/s",
            channels: 1000,
            operations_per_s: &[(8, 159_497.0), (80, 154_934.0), (800, 89_621.0), (8_000, 13_780.0), (80_000, 1_454.0)],
        },
    ],
)];
