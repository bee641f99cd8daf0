//! The scheme of farms and their short standard suite.

use hodo_measure::{Mode, Test};
use hodo_tester::{Description, TestGroup};

/// The published study's events, beside a small one.
pub(crate) const FARM: Description = Description {
    name: "farm",
    schemes: &["farm"],
    known_as: &[],
    about: "the event farm: events to nodes, whose tokens ask for the next",
    modes: &[Mode::Send],
    suite: &[
        TestGroup::new(Test::Latency, Mode::Send, &[64], 1, 1),
        TestGroup::new(Test::Rate, Mode::Send, &[32_000], 8, 1),
        TestGroup::new(Test::Channels, Mode::Send, &[32_000], 2, 20),
    ],
    size_max: 128 << 20,
    channels_max: 20_000,
    shares_connections: false,
    batch_max: 1,
    own: true,
    is_at_path: false,
    has_one_thread: false,
    has_updates: false,
};

/// The options of the nodes of a farm, for the help of `serve`.
pub(crate) const SERVED_OPTIONS: &str = "\
The nodes of a farm, for `hodo bench farm://…` on another host, as
  hodo serve 'farm://:5502?accept=0.005&output=64K'

  accept=0.005              share of the events that are accepted, or every:200
  output=64K                bytes after the token of an accepted event
  time=exponential:1ms      duration of a decision";
