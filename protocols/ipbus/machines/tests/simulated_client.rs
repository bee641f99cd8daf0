//! A client and a device over the simulated network: whatever it does, every operation is done exactly once or reported
//! failed, and order is kept.

use core::time::Duration;
use hodo_ipbus::device::{Register, Registers};
use hodo_ipbus::window::WindowCounters;
use hodo_ipbus::wire::Version;
use hodo_ipbus::wire::operation::Mode;
use hodo_ipbus::{Block, Client, ClientConfig, Command, Data, Device, DeviceCommand, DeviceConfig, Error, Event, Path};
use hodo_machine::{Address, Driver, Instant, Random, Transport, Wait};
use hodo_sim::conformance::{networks, seeds};
use hodo_sim::{Congestion, Sim};
use std::collections::BTreeMap;

/// A FIFO that keeps what was written to it: which operations the device did, in order.
const LOG: u32 = 0x1000;
const COUNTER: u32 = 0x2000;
/// Where the block of an operation is written to: so many words for each.
const BLOCKS: u32 = 0x10_0000;
const BLOCK: u32 = 0x1000;
const OPERATIONS: u64 = 60;

struct Scenario {
    path: Path,
    version: Version,
    network: &'static str,
    reboots: u64,
    buffers: u32,
}

impl Scenario {
    fn streams(version: Version, network: &'static str) -> Scenario {
        Scenario { path: Path::Tcp, version, ..Scenario::udp(network) }
    }

    fn without_ids(version: Version, network: &'static str) -> Scenario {
        Scenario { path: Path::Udp { reliable: false }, version, ..Scenario::udp(network) }
    }
}

#[derive(Default)]
struct Outcome {
    /// The end of each operation, in the order in which the ends were reported.
    ends: Vec<(u64, Result<Data, Error>)>,
    down: Vec<Error>,
    log: Vec<u32>,
    counter: u32,
    blocks: BTreeMap<u64, Vec<u32>>,
    counters: WindowCounters,
}

impl Scenario {
    fn udp(network: &'static str) -> Scenario {
        Scenario { path: Path::Udp { reliable: true }, version: Version::V2_0, network, reboots: 0, buffers: 16 }
    }

    fn sim(&self, seed: u64) -> Sim<Client, Device> {
        let transport = if matches!(self.path, Path::Udp { .. }) { Transport::Datagram } else { Transport::Stream };
        let registers = Registers::new([Register::fifo(LOG, 1 << 16)]).expect("they do not overlap");
        let device = DeviceConfig { registers, buffers: self.buffers, ..DeviceConfig::new(transport, self.version) };
        let client = ClientConfig::new(self.path, self.version, Address::Node(1));
        let client = ClientConfig { timeout: Duration::from_secs(5), ..client };
        let (mut out, mut back) = networks(self.network, seed).expect("the options are right");
        // With congestion control, a loss of a third keeps a stream silent for longer than its client waits.
        (out.congestion, back.congestion) = (Congestion::None, Congestion::None);
        Sim::new(transport, (&out, &back), Client::new(client), vec![Device::new(device)], |_| None)
    }

    fn run(&self, seed: u64) -> Outcome {
        let mut sim = self.sim(seed);
        let mut random = Random::for_purpose(seed, 99);
        let mut outcome = Outcome::default();
        let mut reboots = self.reboots;
        for tag in 0..OPERATIONS {
            sim.command(operation(tag, seed, &mut outcome.blocks));
            if random.chance(0.3) {
                sim.command(Command::Flush);
            }
            if random.chance(0.5) {
                let until = sim.now() + Duration::from_nanos(random.below(300_000));
                turn(&mut sim, until, &mut outcome);
            }
            if reboots > 0 && random.chance(self.reboots as f64 / OPERATIONS as f64) {
                reboots -= 1;
                sim.command_server(1, DeviceCommand::Reboot { clear_memory: false });
            }
        }
        sim.command(Command::Flush);
        let end = sim.now() + Duration::from_secs(600);
        while outcome.ends.len() < OPERATIONS as usize {
            turn(&mut sim, end, &mut outcome);
            assert!(sim.now() < end, "seed {seed}: {} operations have ended", outcome.ends.len());
        }
        assert_eq!(sim.machine().outstanding(), 0);
        outcome.log = sim.server(1).fifo(LOG).collect();
        outcome.counter = sim.server(1).peek(COUNTER);
        outcome.counters = sim.machine().counters();
        outcome
    }
}

fn turn(sim: &mut Sim<Client, Device>, until: Instant, outcome: &mut Outcome) {
    let _ = sim.turn(Wait::Block, until, &mut |event| match event {
        Event::Done { tag, data } => outcome.ends.push((tag, Ok(data))),
        Event::Failed { tag, error, .. } => outcome.ends.push((tag, Err(error))),
        Event::Down(error) => outcome.down.push(error),
        Event::Ready => {}
    });
    assert!(sim.outstanding_bytes() < 400_000, "{} bytes are on their way", sim.outstanding_bytes());
}

/// Returns the kind of the operation with this number.
const fn kind(tag: u64, seed: u64) -> u64 {
    (tag * 7 + seed) % 6
}

fn operation(tag: u64, seed: u64, blocks: &mut BTreeMap<u64, Vec<u32>>) -> Command {
    let address = BLOCKS + tag as u32 * BLOCK;
    match kind(tag, seed) {
        0 | 1 => Command::WriteBlock { tag, mode: Mode::Fifo, address: LOG, data: Block::from(vec![tag as u32]) },
        2 => {
            let words = [1, 20, 400, 1000][(tag + seed) as usize / 6 % 4];
            let data: Vec<u32> = (0..words).map(|word| word * 7 + tag as u32).collect();
            blocks.insert(tag, data.clone());
            Command::WriteBlock { tag, mode: Mode::Incrementing, address, data: data.into() }
        }
        3 => match blocks.last_key_value() {
            Some((&of, data)) => Command::ReadBlock {
                tag,
                mode: Mode::Incrementing,
                address: BLOCKS + of as u32 * BLOCK,
                words: data.len() as u32,
                into: Vec::new(),
            },
            None => Command::Read { tag, address },
        },
        4 => Command::RmwSum { tag, address: COUNTER, addend: 1 },
        _ => Command::Write { tag, address, word: tag as u32 },
    }
}

impl Outcome {
    /// Checks the rules that hold in every run.
    fn check(&self, seed: u64) {
        let tags: Vec<u64> = self.ends.iter().map(|(tag, _)| *tag).collect();
        assert_eq!(tags, (0..OPERATIONS).collect::<Vec<_>>(), "seed {seed}: each ends once, in order");
        assert!(self.log.is_sorted_by(|a, b| a < b), "seed {seed}: out of order, or twice: {:?}", self.log);
        let (mut written, mut counts, mut sums) = (None, Vec::new(), 0);
        for (tag, end) in &self.ends {
            sums += u32::from(kind(*tag, seed) == 4);
            match (kind(*tag, seed), end) {
                (0 | 1, Ok(_)) => assert!(self.log.contains(&(*tag as u32)), "seed {seed}: {tag} was not done"),
                (2, _) => written = end.is_ok().then(|| &self.blocks[tag]),
                (3, Ok(Data::Block(words))) => {
                    let as_written = written.is_none_or(|data| data == words);
                    assert!(as_written, "seed {seed}: {tag} did not read what was written");
                }
                (4, Ok(Data::Word(before))) => counts.push(*before),
                _ => {}
            }
        }
        assert!(counts.is_sorted_by(|a, b| a < b), "seed {seed}: {counts:?}");
        assert!((counts.len() as u32..=sums).contains(&self.counter), "seed {seed}: {} of {sums}", self.counter);
    }

    fn failed(&self) -> Vec<Error> {
        self.ends.iter().filter_map(|(_, end)| end.as_ref().err().copied()).collect()
    }
}

const LOSSY: &[&str] = &[
    "delay=20us",
    "delay=20us&loss=0.01",
    "delay=50us&loss=0.1&jitter=50us",
    "delay=20us&loss=0.3",
    "delay=20us&duplicate=0.3",
    "delay=20us&reorder=0.3",
    "delay=100us&jitter=100us&loss=0.1&duplicate=0.1&reorder=0.1",
    "delay=20us&loss=0.3&duplicate=0.3&reorder=0.2&jitter=100us",
    "delay=50us&out.loss=0.3",
    "delay=50us&back.loss=0.3",
    "delay=10ms&loss=0.05&jitter=5ms",
    "delay=20us&rate=1G&queue=1M&mtu=1500",
];

fn network(seed: u64) -> &'static str {
    LOSSY[seed as usize % LOSSY.len()]
}

#[test]
fn nothing_is_lost_and_nothing_done_twice_over_datagrams() {
    let mut all = WindowCounters::default();
    for seed in seeds(1_200) {
        let scenario = Scenario { buffers: [16, 4, 5][seed as usize % 3], ..Scenario::udp(network(seed)) };
        let outcome = scenario.run(seed);
        outcome.check(seed);
        assert_eq!(outcome.failed(), [], "seed {seed} over {}", scenario.network);
        assert_eq!(outcome.down, []);
        all += outcome.counters;
    }
    assert!(all.requests_lost > 200 && all.replies_lost > 200 && all.strays > 200, "{all:?}");
}

/// Delays the first status: while the round-trip is not known, several are asked for before it comes.
#[test]
fn a_status_of_long_ago_is_not_taken_for_a_restart() {
    let scenario = Scenario { buffers: 4, ..Scenario::udp("delay=10ms&loss=0.05&jitter=5ms") };
    let outcome = scenario.run(7126);
    outcome.check(7126);
    assert_eq!((outcome.failed(), outcome.down), (vec![], vec![]));
}

#[test]
fn a_reboot_is_reported_and_never_replayed_into() {
    let mut restarted = 0;
    for seed in seeds(800) {
        let scenario = Scenario { reboots: 1 + seed % 3, ..Scenario::udp(network(seed)) };
        let outcome = scenario.run(seed);
        outcome.check(seed);
        let failed = outcome.failed();
        assert!(failed.iter().all(|error| *error == Error::Restarted), "seed {seed}: {failed:?}");
        restarted += failed.len();
    }
    assert!(restarted > 200, "{restarted}");
}

#[test]
fn streams_lose_nothing() {
    for seed in seeds(80) {
        let version = [Version::V2_0, Version::V1_3][seed as usize % 2];
        let outcome = Scenario::streams(version, network(seed / 2)).run(seed);
        outcome.check(seed);
        assert_eq!((outcome.failed(), outcome.down), (vec![], vec![]), "seed {seed}");
    }
}

#[test]
fn a_stream_that_is_cut_fails_what_is_in_flight_and_is_opened_again() {
    let mut cut = 0;
    for seed in seeds(80) {
        let version = [Version::V2_0, Version::V1_3][seed as usize % 2];
        let outcome = Scenario::streams(version, "delay=20us&cut=0.05").run(seed);
        outcome.check(seed);
        let failed = outcome.failed();
        assert!(failed.iter().all(|error| matches!(error, Error::Closed(_))), "seed {seed}: {failed:?}");
        cut += failed.len();
    }
    assert!(cut > 20, "{cut}");
}

/// Loses packets without ids, which is reported; in version 1.3 reads are tried again.
#[test]
fn without_ids_what_is_lost_is_reported() {
    let mut failed = 0;
    for seed in seeds(40) {
        let version = [Version::V2_0, Version::V1_3][seed as usize % 2];
        let outcome = Scenario::without_ids(version, "delay=20us&loss=0.03").run(seed);
        outcome.check(seed);
        let errors = outcome.failed();
        assert!(errors.iter().all(|error| *error == Error::NoAnswer), "seed {seed}: {errors:?}");
        failed += errors.len();
    }
    assert!(failed > 100, "{failed}");
}
