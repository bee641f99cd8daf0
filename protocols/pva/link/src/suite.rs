//! The scheme of pvAccess links and their short standard suite.

use hodo_measure::{Mode, Test};
use hodo_tester::{Description, Figures, Preset, Scenario, TestGroup};

pub(crate) const PVA: Description = Description {
    name: "pva",
    schemes: &["pva"],
    known_as: &["epics", "pvaccess"],
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

/// The sizes that the study has of many channels.
const SIZES_OF_MANY: &[u32] = SIZES.split_at(5).0;
/// The study's name.
const STUDY: &str = "epics-get";

/// The study of gets that was published for the C++ implementation: a get on each channel, and when all are answered the next. Last, without
/// figures of the study, what the tester does without rounds: the next get of a channel as soon as its last one is answered.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        STUDY,
        &[
            TestGroup::new(Test::Rate, Mode::Receive, SIZES, 1, 1),
            TestGroup::new(Test::Channels, Mode::Receive, SIZES_OF_MANY, 1, 1000).in_rounds(),
        ],
        &[
            figures(ONE_HOST, 1, ONE_HERE),
            figures(TWO_HOSTS, 1, ONE_THERE),
            figures(ONE_HOST, 1000, MANY_HERE),
            figures(TWO_HOSTS, 1000, MANY_THERE),
        ],
    ),
    Preset::new(STUDY, &[TestGroup::new(Test::Channels, Mode::Receive, SIZES_OF_MANY, 1, 1000)], &[]),
];

const ONE_HOST: &str = "one host, Core i7-3820";
const TWO_HOSTS: &str = "two hosts, 1 Gbit/s";

/// Gets a second of one channel.
const ONE_HERE: &[(u32, f64)] = &[
    (8, 15_086.0),
    (80, 15_103.0),
    (800, 15_500.0),
    (8_000, 11_927.0),
    (80_000, 6_744.0),
    (800_000, 1_780.0),
    (8_000_000, 235.9),
    (80_000_000, 31.38),
];
const ONE_THERE: &[(u32, f64)] = &[
    (8, 2_465.0),
    (80, 2_483.0),
    (800, 2_484.0),
    (8_000, 2_244.0),
    (80_000, 753.0),
    (800_000, 133.0),
    (8_000_000, 14.5),
    (80_000_000, 1.46),
];

/// Gets a second of 1000 channels.
const MANY_HERE: &[(u32, f64)] =
    &[(8, 640_176.0), (80, 668_469.0), (800, 532_530.0), (8_000, 177_632.0), (80_000, 26_601.0)];
const MANY_THERE: &[(u32, f64)] =
    &[(8, 159_497.0), (80, 154_934.0), (800, 89_621.0), (8_000, 13_780.0), (80_000, 1_454.0)];

const fn figures(setting: &'static str, channels: u32, operations_per_s: &'static [(u32, f64)]) -> Figures {
    Figures { setting, channels, operations_per_s, facts: &[] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_measure::{Plan, Size};

    #[test]
    fn the_study_stands_beside_rounds_and_not_beside_the_sliding_window() {
        let plan = |channels, rounds| Plan {
            test: if channels > 1 { Test::Channels } else { Test::Rate },
            channels,
            rounds,
            size: Size::Fixed(8),
            ..Plan::one(Mode::Receive, 8)
        };
        let figures = |plan: &Plan| PRESETS.iter().map(|part| part.published(plan).len()).sum::<usize>();
        assert_eq!(figures(&plan(1, false)), 2);
        assert_eq!(figures(&plan(1000, true)), 2);
        assert_eq!(figures(&plan(1000, false)), 0);
    }
}
