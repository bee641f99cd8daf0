//! Properties over many seeds. `HODO_SPACEWIRE_SEEDS` says how many.
extern crate std;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use hodo_machine::Random;

use super::*;
use crate::character::Code;
use crate::end::Fault;

fn seeds(usual: u64) -> core::ops::Range<u64> {
    let asked = std::env::var("HODO_SPACEWIRE_SEEDS").ok().and_then(|text| text.parse().ok());
    0..asked.unwrap_or(usual)
}

/// Everything that happened, code by code: for each place what left, and what else there was.
#[derive(Debug, Default, PartialEq)]
struct Diary {
    left: BTreeMap<Place, Vec<(u64, Code)>>,
    events: BTreeMap<Place, Vec<(u64, String)>>,
}

impl Observer for Diary {
    fn record(&mut self, at: Picos, place: Place, record: Record<'_>) {
        let left = self.left.entry(place).or_default();
        match record {
            Record::Nulls { count, bit } => left.extend((0..count).map(|n| (at.0 + n * 8 * bit.0, Code::Null))),
            Record::Data { bytes, bit } => {
                left.extend((0..).zip(bytes).map(|(n, byte)| (at.0 + n * 10 * bit.0, Code::Data(*byte))));
            }
            Record::Code(code) => left.push((at.0, code)),
            other => self.events.entry(place).or_default().push((at.0, format!("{other:?}"))),
        }
    }
}

const RATES: [u64; 6] = [200_000_000, 100_000_000, 66_000_000, 10_000_000, 400_000_000, 50_000_000];
const FAULTS: [Fault; 5] = [Fault::Parity, Fault::Escape, Fault::Fct, Fault::WithoutCredit, Fault::Disconnect];

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize]
}

fn random_link(random: &mut Random) -> LinkSettings {
    let mut settings = LinkSettings {
        rates: [pick(random, &RATES), pick(random, &RATES)],
        cable: Picos(pick(random, &[0, 0, 5_000, 12_345, 100_000, 3_000_000])),
        ..LinkSettings::default()
    };
    if random.chance(0.5) {
        settings.rates[1] = settings.rates[0];
    }
    for end in &mut settings.ends {
        end.buffer = pick(random, &[56, 56, 56, 8, 13, 24, 64, 100]);
    }
    settings
}

fn random_length(random: &mut Random) -> usize {
    let most = pick(random, &[2, 20, 70, 600]);
    random.below(most) as usize
}

/// Plays one scenario, and returns all that happened.
fn play(seed: u64, engine: Engine) -> (Diary, Vec<Packet>, String) {
    let random = &mut Random::new(seed);
    let link = random_link(random);
    let node = |random: &mut Random| NodeSettings {
        packets: pick(random, &[10_000, 10_000, 60, 3]),
        bytes: pick(random, &[1 << 20, 1 << 20, 5_000, 700]),
        sink: if random.chance(0.9) { Sink::AtOnce } else { Sink::Rate(3_000_000) },
    };
    let nodes = [node(random), node(random)];
    let (mut network, one, other) = pair_with(link, nodes, engine, Diary::default());
    let (busy, faulty) = (random.unit(), random.chance(0.3));
    let mut packets = Vec::new();
    for number in 0..60 {
        for node in [one, other] {
            while random.chance(busy) {
                let end = if random.chance(0.05) { PacketEnd::Eep } else { PacketEnd::Eop };
                _ = network.send(node, &packet(number, random_length(random)), end);
            }
            if random.chance(0.05) {
                network.time_code(node, number as u8).unwrap();
            }
            if faulty && random.chance(0.03) {
                let at = network.now() + Picos(random.below(30_000_000));
                network.inject_at(node, pick(random, &FAULTS), at).unwrap();
            }
            if faulty && random.chance(0.02) {
                network.inject_after(node, pick(random, &FAULTS), random.below(100)).unwrap();
            }
        }
        let most = pick(random, &[10_000, 1_000_000, 20_000_000]);
        network.run_until(network.now() + Picos(random.below(most)));
        if random.chance(0.5) {
            packets.extend(receive_all(&mut network, one));
            packets.extend(receive_all(&mut network, other));
        }
    }
    let counts = [one, other].map(|node| (network.statistics(node).unwrap(), network.end(node).unwrap().credit()));
    // Idle NULLs have not been recorded yet.
    for node in [one, other] {
        network.wake_for_test(node);
    }
    (core::mem::take(network.observer()), packets, format!("{counts:?}"))
}

#[test]
fn both_engines_do_the_same_at_the_same_times() {
    for seed in seeds(400) {
        let (diary, packets, counts) = play(seed, Engine::Fast);
        let (expected, expected_packets, expected_counts) = play(seed, Engine::Reference);
        for (place, expected) in &expected.left {
            let left = &diary.left[place];
            if let Some(at) = (0..expected.len().max(left.len())).find(|at| left.get(*at) != expected.get(*at)) {
                let near = at.saturating_sub(4)..at + 2;
                let show = |codes: &[(u64, Code)]| format!("{:?}", codes.get(near.start..near.end.min(codes.len())));
                panic!("seed {seed}, {place:?}, code {at}: {}, not {}", show(left), show(expected));
            }
        }
        assert_eq!(diary.events, expected.events, "seed {seed}");
        let wrong = packets.iter().zip(&expected_packets).position(|(packet, expected)| packet != expected);
        assert_eq!(wrong.map(|at| (at, &packets[at], &expected_packets[at])), None, "seed {seed}");
        assert_eq!(packets.len(), expected_packets.len(), "seed {seed}");
        assert_eq!(counts, expected_counts, "seed {seed}");
    }
}
