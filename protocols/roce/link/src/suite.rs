//! The schemes of RDMA links and their short standard suites.

use hodo_measure::{Mode, Test};
use hodo_tester::{Description, TestGroup};

/// The scheme of adapters through libibverbs.
pub(crate) const VERBS: &str = "verbs";
/// The scheme of shared memory.
pub(crate) const SHM: &str = "shm";
/// The scheme of the software adapter.
pub(crate) const ROCE: &str = "roce";

pub(crate) const MODES: &[Mode] = &[Mode::Both, Mode::Send, Mode::Receive];

/// The suite of sends.
pub(crate) const SENDS: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Both, &[64, 4 << 10], 1, 1),
    TestGroup::new(Test::Rate, Mode::Send, &[64, 64 << 10], 64, 1),
    TestGroup::new(Test::Rate, Mode::Both, &[4 << 10], 64, 1),
    TestGroup::new(Test::Channels, Mode::Send, &[4 << 10], 16, 20),
];

/// The suite of writes.
pub(crate) const WRITES: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Both, &[64, 4 << 10], 1, 1),
    TestGroup::new(Test::Rate, Mode::Send, &[64, 4 << 10, 64 << 10], 64, 1),
    TestGroup::new(Test::Channels, Mode::Send, &[4 << 10], 16, 20),
];

/// The suite of reads.
pub(crate) const READS: &[TestGroup] = &[
    TestGroup::new(Test::Latency, Mode::Receive, &[64, 4 << 10], 1, 1),
    TestGroup::new(Test::Rate, Mode::Receive, &[4 << 10, 64 << 10], 16, 1),
    TestGroup::new(Test::Channels, Mode::Receive, &[4 << 10], 4, 20),
];

pub(crate) const DESCRIPTION: Description = Description {
    name: "roce",
    schemes: &[ROCE, VERBS, SHM],
    known_as: &["rdma", "ib", "rocev2", "infiniband"],
    about: "RDMA reliable connections: RoCEv2 in software, real adapters, shared memory",
    modes: MODES,
    suite: SENDS,
    size_max: 1 << 30,
    channels_max: 4096,
    shares_connections: true,
    batch_max: 1,
    // Both ends are of this program, but an adapter does not tell its stages.
    own: false,
    is_at_path: false,
    has_one_thread: true,
    has_updates: true,
};

/// The options of a far end, for the help of `serve`.
pub(crate) const SERVED_OPTIONS: &str = "\
RDMA: roce with the software adapter, verbs with a real one, shm in shared memory, as
  hodo serve roce://127.0.0.1:18515
  hodo serve 'verbs://0.0.0.0:18515?device=mlx5_0&port=1'
The port is the TCP port at which the ends meet.

  address=10.0.0.1          roce: address of the adapter [default: where it listens]
  udp-port=4791             roce: UDP port of the adapter [default: 4791, or any free one]
  device=mlx5_0, port=1     verbs: device and its port [default: the first]
  gid=3                     verbs: index of the port's global identifier";
