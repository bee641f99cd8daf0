//! Random networks, attributes of connections, and times.

use hodo_machine::{Address, Instant, Random};
use hodo_roce::wire::rnr_span;
use hodo_roce::{AckTimeout, Capacity, Connection, Mtu, Psn};
use hodo_sim::Network;
use std::time::Duration;

/// Round trips within which everything is posted.
pub const SPAN: u32 = 20;

/// Draws one of these.
pub fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// Draws a time up to this one, exclusive.
pub fn time(random: &mut Random, most: Duration) -> Duration {
    Duration::from_nanos(random.below(most.as_nanos() as u64))
}

/// Draws a network. Half of them are clean but for one thing.
pub fn network(random: &mut Random, seed: u64) -> Network {
    let delay = Duration::from_nanos(one(random, &[500, 5_000, 50_000, 500_000]));
    let mut network = Network { delay, seed, cost: Duration::ZERO, ..Network::default() };
    let only = random.chance(0.5).then(|| random.below(8));
    let mut has = |number: u64| only.map_or_else(|| random.chance(0.4), |only| only == number);
    let spoilt: [bool; 8] = std::array::from_fn(|number| has(number as u64));
    let [loss, duplicate, reorder, corrupt, jitter, rate, cost, partition] = spoilt;
    if loss {
        network.loss = one(random, &[0.01, 0.05, 0.1, 0.2, 0.3]);
    }
    if duplicate {
        network.duplicate = one(random, &[0.05, 0.3]);
    }
    if reorder {
        network.reorder = one(random, &[0.05, 0.3]);
    }
    if corrupt {
        network.corrupt = one(random, &[0.02, 0.1]);
    }
    if jitter {
        network.jitter = time(random, 3 * delay);
    }
    if rate {
        network.rate = Some(one(random, &[100_000_000, 1_000_000_000, 10_000_000_000]));
        network.queue_bytes = one(random, &[8 << 10, 64 << 10, 1 << 20]);
        network.overhead_bytes = 66;
    }
    if cost {
        network.cost = Duration::from_nanos(one(random, &[100, 1_000, 5_000]));
        network.buffer_bytes = one(random, &[16 << 10, 64 << 10, 1 << 20]);
    }
    if partition {
        let first = Instant::ZERO + time(random, 20 * delay);
        network.partitions.push(first..first + time(random, 50 * delay));
    }
    network
}

/// Returns the longest that a packet and its acknowledgement may take over such a network while nothing else is lost.
pub fn round_trip(network: &Network) -> Duration {
    let waiting = network.rate.map_or(0, |rate| (network.queue_bytes + 4200) * 8_000_000_000 / rate);
    2 * (network.delay + network.jitter + Duration::from_nanos(waiting)) + 40 * network.cost
}

/// The attributes of both ends of a connection that have to go together, or set the pace.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub mtu: Mtu,
    pub round_trip: Duration,
    /// Reads and atomic operations in flight in each direction.
    pub reads: [u8; 2],
    pub psns: [Psn; 2],
    /// Whether losses and receivers that are not ready are retried for as long as it takes.
    pub is_patient: bool,
}

impl Pace {
    pub fn new(random: &mut Random, network: &Network, is_patient: bool) -> Pace {
        let first = |random: &mut Random| {
            let near_the_wrap = random.chance(0.7);
            Psn::new(if near_the_wrap { 0xFF_FFFF - random.below(100) as u32 } else { random.bits() as u32 })
        };
        Pace {
            mtu: one(random, &Mtu::ALL),
            round_trip: round_trip(network).max(Duration::from_micros(2)),
            reads: [one(random, &[1, 2, 4, 16]), one(random, &[1, 2, 4, 16])],
            psns: [first(random), first(random)],
            is_patient,
        }
    }

    /// Draws the attributes of one end.
    pub fn connection(&self, random: &mut Random, side: usize, node: u32, queue_pair: u32) -> Connection {
        let usual = self.round_trip;
        // Timeouts that are too short are as well for nothing as they are harmless.
        let fixed = usual.mul_f64(one(random, &[0.3, 1.1, 2.0, 8.0]));
        let timeout = if random.chance(0.5) { AckTimeout::Fixed(fixed) } else { AckTimeout::Measured(usual / 4) };
        let few = |random: &mut Random| one(random, &[0, 1, 2, 3]);
        Connection {
            address: Address::Node(node),
            queue_pair,
            receive_psn: self.psns[1 - side],
            send_psn: self.psns[side],
            mtu: self.mtu,
            timeout,
            retries: if self.is_patient { u8::MAX } else { few(random) },
            receiver_not_ready_retries: if self.is_patient { 7 } else { few(random) },
            receiver_not_ready_timer: self.not_ready_timer(random),
            reads: self.reads[side],
            reads_served: self.reads[1 - side],
        }
    }
}

impl Pace {
    /// Draws the code of a time that is over some hundred times, at most, until the last receive is posted.
    fn not_ready_timer(&self, random: &mut Random) -> u8 {
        let is_long_enough = |code: &u8| 100 * rnr_span(*code) >= SPAN * self.round_trip;
        let least = (1..32).find(is_long_enough).unwrap_or(31);
        if random.chance(0.02) { 0 } else { (least + random.below(12) as u8).min(31) }
    }
}

/// Draws the depths of a queue pair.
pub fn capacity(random: &mut Random) -> Capacity {
    Capacity {
        send_depth: one(random, &[1, 2, 4, 16, 64]),
        receive_depth: one(random, &[1, 2, 8, 64]),
        send_entries: 4,
        receive_entries: 4,
        inline_bytes: 256,
    }
}

/// Draws the length of a message: most are about a few packets long, and a few up to 70 KB.
pub fn length(random: &mut Random, mtu: Mtu, large: f64) -> usize {
    let mtu = mtu.bytes() as usize;
    if random.chance(large) {
        return random.below(70_000) as usize;
    }
    match random.below(6) {
        0 => 0,
        1 => 1 + random.below(16) as usize,
        2 => mtu - 1 + random.below(3) as usize,
        3 => 2 * mtu - 1 + random.below(3) as usize,
        4 => random.below(mtu as u64) as usize,
        _ => random.below(5 * mtu as u64) as usize,
    }
}
