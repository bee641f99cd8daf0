//! Replays every corpus, then mutates it from a seed. No clock: the same inputs on every machine.

mod bounds;
#[path = "../../crates/measure/tests/counting/mod.rs"]
mod counting;
#[path = "../../crates/sim/tests/sinner/mod.rs"]
mod sinner;

use hodo_fuzz::{TARGETS, Target};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Mutants per target, where `HODO_FUZZ_EXECUTIONS` does not say.
const EXECUTIONS: u64 = 20_000;
/// The longest mutant in bytes.
const LENGTH_MAX: usize = 4096;

/// One test for each target, so that they run side by side and a finding has a name.
macro_rules! replayed {
    ($($name:ident)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            replay(hodo_fuzz::target(stringify!($name)).expect("it is in TARGETS"));
        })*
    };
}

replayed!(
    frames cursor raw_wire raw_client raw_server ipbus_packet ipbus_legacy ipbus_hub ipbus_device ipbus_client
    ipbus_hub_machine farm_wire farm_controller farm_node farm_source farm_builder pva_value pva_stream pva_request pva_server pva_client
    pva_datagram pva_image roce_wire roce_adapter
    spacewire_streams spacewire_packets spacewire_client spacewire_far_end spacewire_bridge spacewire_network http uri address_table connections device_uri store_segment store_verdicts result_json
);

fn replay(target: &Target) {
    hodo_sim::cost::measure_by(counting::bytes_here);
    let executions = std::env::var("HODO_FUZZ_EXECUTIONS").map_or(EXECUTIONS, |text| {
        text.parse().unwrap_or_else(|_| panic!("HODO_FUZZ_EXECUTIONS={text}: give a number of executions"))
    });
    let corpus = corpus(target);
    for (path, input) in &corpus {
        try_one(target, input, &path.display().to_string());
    }
    let inputs: Vec<&[u8]> = corpus.iter().map(|(_, input)| input.as_slice()).collect();
    let mut random = Random(0x686f_646f);
    for number in 0..executions / target.slowness {
        let mutant = mutate(&inputs, &mut random);
        try_one(target, &mutant, &format!("mutant {number}"));
    }
}

#[test]
fn every_target_is_replayed_and_every_corpus_has_a_target() {
    for Target { name, .. } in TARGETS {
        assert!(REPLAYED.contains(name), "`{name}` is not in `replayed!`");
    }
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).expect("corpus/ is there").flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(hodo_fuzz::target(&name).is_some(), "corpus/{name} belongs to no target");
    }
}

fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}: seed it", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    assert!(!paths.is_empty(), "{} is empty: seed it", folder.display());
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(&path).expect("a listed file can be read"))).collect()
}

/// Runs one input, and says which it was where it is a finding.
fn try_one(target: &Target, input: &[u8], from: &str) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = target.name;
        panic!("{name}: {from} is a finding; keep it: echo {hex} | xxd -r -p > fuzz/corpus/{name}/<what it shows>");
    }
}

/// Returns one of the inputs with one to four changes.
fn mutate(inputs: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut bytes = inputs[random.below(inputs.len())].to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(8)).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => bytes.insert(at, random.next() as u8),
            3 if at < end => drop(bytes.drain(at..end)),
            4 if at < end => bytes.extend_from_within(at..end),
            5 => bytes.truncate(at),
            _ => {
                let other = inputs[random.below(inputs.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
            }
        }
    }
    bytes.truncate(LENGTH_MAX);
    bytes
}

/// The splitmix64 sequence.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}
