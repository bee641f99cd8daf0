//! The device over the simulated network: its rules for numbers, status and resending, and that a host which keeps to
//! them has everything done once, whatever the network does.

use crate::host;

use hodo_ipbus::device::{DeviceConfig, Faults, FaultyDevice};
use hodo_ipbus::wire::status::{Status, Traffic};
use hodo_ipbus::wire::{Order, Version, packet, status};
use hodo_ipbus::{Device, DeviceCommand};
use hodo_machine::{Driver, DriverError, Instant, Transport, Wait};
use hodo_sim::conformance::{NETWORKS, networks, seeds};
use hodo_sim::{Network, Sim};
use host::{Careful, Ended, Plain};
use std::time::Duration;

/// Packets of a careful host, each of which adds 1 to a word of its own.
const PACKETS: u32 = 40;
const END: Instant = Instant::from_nanos(120_000_000_000);

fn device() -> Device {
    Device::new(DeviceConfig::new(Transport::Datagram, Version::V2_0))
}

fn big(words: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Order::Big.append(words, &mut bytes);
    bytes
}

/// Sends packets to a device over a clean network, a millisecond apart, and answers what came back.
fn exchanged(packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, Sim<Plain, Device>) {
    let mut sim = Sim::pair(Transport::Datagram, &Network::default(), Plain::default(), device(), |_| None);
    let mut came = Vec::new();
    for packet in packets {
        sim.command(packet.clone());
        let until = sim.now() + Duration::from_millis(1);
        while sim.now() < until {
            sim.turn(Wait::Block, until, &mut |event| came.push(event)).expect("time goes on");
        }
    }
    (came, sim)
}

#[test]
fn a_resend_request_brings_the_stored_bytes() {
    let write = big(&[0x2000_01F0, 0x2000_015F, 0x40, 5]);
    let (came, sim) = exchanged(&[write, packet::resend(1).to_vec()]);
    let reply = big(&[0x2000_01F0, 0x2000_0150, 0]);
    assert_eq!(came, [reply.clone(), reply]);
    assert_eq!(sim.server(1).peek(0x40), 5, "it was done once");
}

#[test]
fn a_repeated_packet_is_dropped_and_shows_in_the_history() {
    let write = big(&[0x2000_01F0, 0x2000_015F, 0x40, 5]);
    let (came, sim) = exchanged(&[write.clone(), write, status::REQUEST.to_vec()]);
    assert_eq!(came.len(), 2, "one reply and the status");
    let status = Status::decode(&came[1]).expect("it is a status");
    let last: Vec<Traffic> = status.history[13..].iter().map(|event| event.traffic()).collect();
    assert_eq!(last, [Traffic::Reset, Traffic::Control, Traffic::Refused]);
    assert_eq!((status.next_id, sim.server(1).peek(0x40)), (2, 5));
}

#[test]
fn a_gap_in_the_numbers_stops_all_that_follow() {
    let packets: Vec<Vec<u8>> = [1, 3, 4, 2, 3].iter().map(|id| big(&[0x2000_00F0 | id << 8])).collect();
    let (came, _) = exchanged(&packets);
    assert_eq!(came, [1, 2, 3].map(|id| big(&[0x2000_00F0 | id << 8])));
}

#[test]
fn a_reboot_shows_as_the_first_number_and_an_empty_history() {
    let (_, mut sim) = exchanged(&[big(&[0x2000_01F0])]);
    sim.command_server(1, DeviceCommand::Reboot { clear_memory: true });
    let status = sim.server(1).status();
    assert_eq!((status.next_id, status.received), (1, [0; 4]));
    assert_eq!((status.history[14].traffic(), status.history[15].traffic()), (Traffic::Nothing, Traffic::Reset));
}

/// Runs a careful host against a device; an error says what was done more than once, or not at all.
fn is_done_once(network: &str, faults: &Faults, seed: u64) -> Result<(), String> {
    let (out, back) = networks(network, seed)?;
    let faulty = FaultyDevice::new(device(), Faults { seed, ..faults.clone() });
    let host = Careful::new((0..PACKETS).map(|word| vec![0x2000_015F, word, 1]).collect());
    let mut sim = Sim::new(Transport::Datagram, (&out, &back), host, vec![faulty], |_| None);
    let mut ends = Vec::new();
    while ends.len() < PACKETS as usize && sim.now() < END {
        match sim.turn(Wait::Block, END, &mut |end| ends.push(end)) {
            Ok(()) => {}
            Err(DriverError::NothingLeft) => break,
            Err(other) => return Err(other.to_string()),
        }
    }
    if ends.len() < PACKETS as usize {
        return Err(format!("only {} of {PACKETS} have ended", ends.len()));
    }
    let faulty = sim.server(1);
    for (word, end) in (0..).zip(&ends) {
        let times = faulty.device().peek(word);
        if times > 1 || (*end == Ended::Done && times == 0) {
            return Err(format!("packet {word} ended as {end:?}, and was done {times} times"));
        }
    }
    let unknown = ends.iter().filter(|end| **end == Ended::Unknown).count() as u64;
    let cut_off = network.contains("1000s");
    if !cut_off && unknown > faulty.faults().reboots {
        return Err(format!("{unknown} packets are unknown after {} reboots", faulty.faults().reboots));
    }
    Ok(())
}

fn are_done_once(faults: &Faults) {
    for network in whole() {
        for seed in seeds(20) {
            if let Err(what) = is_done_once(network, faults, seed) {
                panic!("over the network `{network}` with seed {seed}: {what}");
            }
        }
    }
}

/// Leaves out damage: a damaged datagram does not reach a device, because UDP has a checksum, which the simulated
/// network leaves out.
fn whole() -> impl Iterator<Item = &'static str> {
    NETWORKS.iter().copied().filter(|network| !network.contains("corrupt"))
}

#[test]
fn a_careful_host_has_everything_done_once() {
    are_done_once(&Faults::default());
}

#[test]
fn a_reboot_leaves_nothing_done_twice() {
    are_done_once(&Faults { reboot: 0.03, ..Faults::default() });
}
