//! The schemes of IPbus links and their short standard suite.

use hodo_measure::{Mode, Test};
use hodo_tester::{Description, Scenario, TestGroup};

/// IPbus through a hub with a device behind it: how much of the time is the hub's?
pub(crate) const DEMONSTRATION: &[Scenario] = &[
    Scenario { link: "chtcp-2.0", group: TestGroup::new(Test::Latency, Mode::Receive, &[4], 1, 1), stages: true },
    Scenario { link: "chtcp-2.0", group: TestGroup::new(Test::Rate, Mode::Receive, &[1 << 20], 16, 1), stages: false },
];

pub(crate) const IPBUS: Description = Description {
    name: "ipbus",
    schemes: &["ipbusudp-2.0", "ipbustcp-2.0", "chtcp-2.0", "ipbusudp-1.3", "ipbustcp-1.3", "chtcp-1.3"],
    known_as: &[],
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
    channels_max: 20_000,
    shares_connections: false,
    batch_max: 1000,
    own: false,
    is_at_path: false,
    has_one_thread: true,
    has_updates: false,
};

/// The options of a device, for the help of `serve`.
pub(crate) const SERVED_OPTIONS: &str = "\
IPbus devices in software: ipbusudp-2.0, ipbustcp-2.0, ipbusudp-1.3 and ipbustcp-1.3, as
  hodo serve ipbusudp-2.0://127.0.0.1:50001
  hodo serve 'ipbusudp-2.0://127.0.0.1:50001?table=board.xml&loss=0.01&seed=3'

  table=FILE                the address table that gives it its registers
  others=memory             how all other addresses behave: memory, error or timeout
  boards=8                  number of devices, on consecutive ports from that of the URI on
  buffers=16                number of replies that are kept, and of packets in flight
  buffer_bytes=2040         size of a packet; memory=64M limits all that is written
  configuration=0xA,0xB     words of the configuration space
  loss, duplicate, reorder  probabilities; out.… for requests only, back.… for replies only
  delay, jitter, partition  times, likewise
  bus_error=0x10-0x1F       addresses at which the bus reports an error; bus_timeout likewise
  wrong_id=0.01             probability of a reply with a wrong packet number
  reboot=1s,2s              times of reboots, or a probability per packet; reboot_memory=keep|clear
  seed=3                    seed of everything that is drawn at random";
