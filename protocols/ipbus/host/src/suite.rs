//! The schemes of IPbus links and their short standard suite.

use hodo_measure::{Mode, Test};
use hodo_tester::{Description, TestGroup};

pub(crate) const IPBUS: Description = Description {
    name: "ipbus",
    schemes: &["ipbusudp-2.0", "ipbustcp-2.0", "chtcp-2.0", "ipbusudp-1.3", "ipbustcp-1.3", "chtcp-1.3"],
    about: "IPbus: registers of electronics, read and written",
    modes: &[Mode::Both, Mode::Send, Mode::Receive],
    suite: &[
        TestGroup::new(Test::Latency, Mode::Receive, &[4], 1, 1),
        TestGroup::new(Test::Latency, Mode::Send, &[4], 1, 1),
        TestGroup::new(Test::Rate, Mode::Receive, &[4, 1 << 20], 16, 1),
        TestGroup::new(Test::Rate, Mode::Send, &[1 << 20], 16, 1),
        TestGroup::new(Test::Rate, Mode::Both, &[1 << 10], 16, 1),
        TestGroup::new(Test::Channels, Mode::Receive, &[4], 1, 8),
    ],
    size_max: 10 << 20,
    batch_max: 1000,
    own: false,
    is_at_path: false,
    has_one_thread: true,
    has_updates: false,
};
