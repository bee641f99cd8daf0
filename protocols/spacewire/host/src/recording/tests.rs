use super::*;
use crate::network::Plan;
use hodo_spacewire::network::{Network, NodeId};
use std::path::Path;

const PAIR: &str = r#"
[[node]]
name = "one"
discard = true
[[node]]
name = "other"
discard = true
[[link]]
between = ["one", "other"]
"#;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("hodo-recording-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a network that is recorded. Returns the records: the four bytes in front, and what follows them.
fn recorded(name: &str, text: &str, characters: bool, run: impl FnOnce(&mut Network<Recording>)) -> Vec<Record4> {
    let folder = folder(name);
    let file = folder.join("links.pcapng");
    let options = RecordOptions { file: file.clone(), size_max: 16 << 20, characters };
    let plan = Plan::parse("text", text, Path::new(".")).unwrap();
    let (trace, recording) = Recording::start(&options, &plan.names).unwrap();
    let mut network = plan.network.observed_by(recording);
    run(&mut network);
    drop(network);
    let counters = trace.finish();
    assert_eq!((counters.lost, counters.failed), (0, None));
    let records = blocks(&std::fs::read(&file).unwrap());
    assert_eq!(records.len() as u64, counters.packets);
    std::fs::remove_dir_all(folder).unwrap();
    records
}

type Record4 = ([u8; 4], Vec<u8>);

/// Reads the packets of a pcapng file.
fn blocks(mut bytes: &[u8]) -> Vec<Record4> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (kind, length) = (word(bytes, 0), word(bytes, 4) as usize);
        if kind == 1 {
            assert_eq!(word(bytes, 8), u32::from(USER0));
        }
        if kind == 6 {
            let data = &bytes[28..28 + word(bytes, 20) as usize];
            found.push((data[..4].try_into().unwrap(), data[4..].to_vec()));
        }
        bytes = &bytes[length..];
    }
    found
}

fn micros(n: u64) -> Picos {
    Picos::from_nanos(n * 1000)
}

fn nodes(network: &Network<Recording>) -> [NodeId; 2] {
    ["one", "other"].map(|name| network.node(name).unwrap())
}

#[test]
fn packets_and_time_codes_are_recorded_as_they_arrive() {
    let records = recorded("packets", PAIR, false, |network| {
        let [one, other] = nodes(network);
        network.run_until(micros(100));
        network.send(one, &[1, 2, 3], EndOfPacket::Eop).unwrap();
        network.send(one, &[9; 1000], EndOfPacket::Eep).unwrap();
        network.run_until(micros(200));
        network.time_code(other, 7).unwrap();
        network.send(other, &[5], EndOfPacket::Eop).unwrap();
        network.run_until(micros(300));
    });
    let expected = [
        ([0, PACKET, 0, 0], vec![1, 2, 3]),
        ([0, PACKET, 1, 0], vec![9; 1000]),
        ([0, TIME_CODE, NO_END, 1], vec![7]),
        ([0, PACKET, 0, 1], vec![5]),
    ];
    assert_eq!(records, expected);
}

#[test]
fn a_packet_that_a_failure_cuts_is_as_long_as_what_arrived() {
    let records = recorded("cut", PAIR, false, |network| {
        let [one, other] = nodes(network);
        network.run_until(micros(100));
        network.send(one, &[1; 2000], EndOfPacket::Eop).unwrap();
        network.inject_after(one, hodo_spacewire::end::Fault::Disconnect, 500).unwrap();
        network.run_until(micros(200));
        network.send(one, &[2; 20], EndOfPacket::Eop).unwrap();
        network.run_until(micros(400));
        assert_eq!(network.receive(other).unwrap().bytes.len(), 500);
    });
    let expected = [([0, PACKET, 1, 0], vec![1; 500]), ([0, PACKET, 0, 0], vec![2; 20])];
    assert_eq!(records, expected);
}

#[test]
fn bytes_that_errors_altered_are_recorded_as_they_arrive() {
    let noisy = format!("{PAIR}first = {{ bit_error_rate = 2e-3, seed = 5 }}\n");
    let mut received = Vec::new();
    let records = recorded("noise", &noisy, false, |network| {
        let [one, other] = nodes(network);
        for round in 1..=2000 {
            if network.queued(one).0 < 4 {
                network.send(one, &[round as u8; 40], EndOfPacket::Eop).unwrap();
            }
            network.run_until(micros(10 * round));
            while let Some(packet) = network.receive(other) {
                received.push((packet.bytes, packet.header.end));
            }
        }
    });
    let seen: Vec<_> = records
        .iter()
        .filter(|(header, _)| header[1] == PACKET && header[3] == 0)
        .map(|(header, data)| (data.clone(), if header[2] == 0 { EndOfPacket::Eop } else { EndOfPacket::Eep }))
        .collect();
    assert!(received.len() > 20);
    // The last one may have arrived after the host looked.
    assert_eq!(seen[..received.len()], received[..]);
    let same = |data: &[u8]| data.iter().all(|byte| *byte == data[0]);
    assert!(received.iter().any(|(data, _)| !data.is_empty() && !same(data)), "none was altered unseen");
}

#[test]
fn characters_are_shown_as_an_analyser_does() {
    let records = recorded("characters", PAIR, true, |network| {
        let [one, _] = nodes(network);
        network.run_until(micros(100));
        network.send(one, &[0xAA, 0xBB], EndOfPacket::Eop).unwrap();
        network.run_until(micros(110));
    });
    let of = |side: u8, what: u8| {
        let is_wanted = move |record: &&Record4| record.0 == [0, CHARACTERS, NO_END, side] && record.1[0] == what;
        records.iter().filter(is_wanted).map(|(_, data)| data[5..].to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(of(0, 1).concat(), [0xAA, 0xBB]);
    assert_eq!(of(0, 3).len(), 1);
    // Seven FCTs make the first 56 credits; three N-chars are no reason for another.
    assert_eq!((of(0, 2).len(), of(1, 2).len()), (7, 7));
    let states: Vec<String> = of(1, 7).into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
    assert_eq!(states, ["ErrorWait", "Started", "Connecting", "Run"]);
    let nulls: u64 = of(1, 0).iter().map(|count| u64::from_be_bytes(count[..].try_into().unwrap())).sum();
    assert!(nulls > 1000, "{nulls}");
}

#[test]
fn what_goes_on_for_ever_is_cut_at_the_bound() {
    let mut line = Line::default();
    line.push(&vec![1; KEPT]);
    line.push(&[2; 10]);
    line.push(&[3; 10]);
    assert_eq!(line.take(KEPT as u64 + 15).len(), KEPT);
    assert_eq!(line.take(5).len(), 0);
    line.push(&[4; 3]);
    assert_eq!(line.take(3), [4; 3]);
}
