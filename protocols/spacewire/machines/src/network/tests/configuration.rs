//! The configuration port: registers over RMAP.
use super::routers::{four, star};
use super::*;
use crate::end::Fault;
use crate::rmap::{Crc, Destination, Initiator, InitiatorSettings, Request, Status};
use alloc::vec;
use hodo_machine::Instant;

/// Carries out a command from a node at the configuration port of its router. Returns the data of the reply, or the status.
fn ask(network: &mut Network, from: NodeId, key: u8, request: &Request<'_>) -> Result<Vec<u8>, Status> {
    let mut initiator = Initiator::new(InitiatorSettings::default());
    let to = Destination { path: vec![0], key, crc: Crc::Standard, ..Destination::default() };
    let mut packet = Vec::new();
    initiator.send(request, &to, 7, Instant::ZERO, &mut packet).unwrap();
    network.send(from, &packet, EndOfPacket::Eop).unwrap();
    network.run_until(network.now() + micros(200));
    let reply = network.receive(from).expect("a reply");
    let completion = initiator.receive(&reply.bytes, reply.header.end).unwrap();
    match completion.result {
        Ok(data) => Ok(data.to_vec()),
        Err(crate::rmap::Failure::Refused(status)) => Err(status),
        Err(other) => panic!("{other}"),
    }
}

fn read(network: &mut Network, from: NodeId, address: u64) -> u32 {
    let request = Request::Read { address, length: 4, increment: true };
    let data = ask(network, from, CONFIGURATION_KEY, &request).unwrap();
    u32::from_be_bytes(data.try_into().unwrap())
}

fn write(network: &mut Network, from: NodeId, address: u64, value: u32) -> Result<Vec<u8>, Status> {
    let data = value.to_be_bytes();
    let request = Request::Write { address, data: &data, increment: true, verify: true, reply: true };
    ask(network, from, CONFIGURATION_KEY, &request)
}

fn configured() -> (Network, RouterId, Vec<NodeId>) {
    let (mut network, router, nodes) = star(four());
    network.set_configuration(router, ConfigurationPort::new(CONFIGURATION_KEY)).unwrap();
    (network, router, nodes)
}

#[test]
fn ports_and_the_network_are_read() {
    let (mut network, _, nodes) = configured();
    // A router, asked from port 3, with ports 1 to 4 running.
    assert_eq!(read(&mut network, nodes[2], 256), 1 | 3 << 4 | 0b1_1110 << 8);
    // Running, state 5, starting by itself and with the far end; its own command is no connection of an output.
    assert_eq!(read(&mut network, nodes[0], 2), 1 << 29 | 31 << 24 | 0b11 << 12 | 1 << 11 | 5 << 8);
    let all = Request::Read { address: 32, length: 4 * (254 - 32 + 1), increment: true };
    let table = ask(&mut network, nodes[0], CONFIGURATION_KEY, &all).unwrap();
    assert!(table.chunks(4).all(|entry| entry == [0x80, 0, 0, 0]), "no route stands");
}

#[test]
fn a_route_that_is_written_is_taken() {
    let (mut network, router, nodes) = configured();
    write(&mut network, nodes[0], 100, 1 << 29 | 1 << 4 | 1 << 3).unwrap();
    assert_eq!(read(&mut network, nodes[0], 100), 1 << 29 | 1 << 4 | 1 << 3);
    let route = network.registers(router).unwrap().route(100).unwrap();
    assert_eq!(route, Route { outputs: 0b1_1000, delete_header: true, priority: false });
    network.send(nodes[1], &[100, 5], EndOfPacket::Eop).unwrap();
    network.run_until(network.now() + micros(50));
    assert_eq!(network.receive(nodes[2]).unwrap().bytes, [5]);
    write(&mut network, nodes[0], 100, 1 << 31 | 1 << 3).unwrap();
    assert_eq!(network.registers(router).unwrap().route(100), None);
}

#[test]
fn errors_stay_until_they_are_forgotten() {
    let (mut network, router, nodes) = configured();
    network.send(nodes[1], &[77, 1], EndOfPacket::Eop).unwrap();
    network.inject(nodes[3], Fault::Parity).unwrap();
    network.run_until(network.now() + micros(100));
    assert_eq!(read(&mut network, nodes[0], 259), 1 << 2 | 1 << 4);
    assert_eq!(read(&mut network, nodes[0], 2) & 0xFF, 0b11);
    assert_eq!(read(&mut network, nodes[0], 4) & 0xFF, 0b1_0001);
    write(&mut network, nodes[0], 259, 1 << 2).unwrap();
    assert_eq!(read(&mut network, nodes[0], 259), 1 << 4);
    assert_eq!(network.faults((router, 2)).unwrap().invalid_address, 1, "the counts themselves stay");
}

#[test]
fn a_link_is_disabled_and_starts_again() {
    let (mut network, router, nodes) = configured();
    write(&mut network, nodes[0], 2, 1 << 14).unwrap();
    assert!(network.end((router, 2)).unwrap().settings().disabled);
    assert_ne!(read(&mut network, nodes[0], 2) >> 8 & 7, 5);
    assert_eq!(read(&mut network, nodes[0], 256) >> 8, 0b1_1010);
    write(&mut network, nodes[0], 2, 1 << 12).unwrap();
    assert_eq!(read(&mut network, nodes[0], 2) >> 8 & 0xF, 0b1101);
}

#[test]
fn a_port_that_disables_itself_takes_its_reply_along() {
    let (mut network, router, nodes) = configured();
    let data = (1u32 << 14).to_be_bytes();
    let request = Request::Write { address: 1, data: &data, increment: true, verify: false, reply: true };
    let mut initiator = Initiator::new(InitiatorSettings::default());
    let to = Destination { path: vec![0], key: CONFIGURATION_KEY, ..Destination::default() };
    let mut packet = Vec::new();
    initiator.send(&request, &to, 7, Instant::ZERO, &mut packet).unwrap();
    network.send(nodes[0], &packet, EndOfPacket::Eop).unwrap();
    network.run_until(network.now() + micros(500));
    assert_eq!(network.receive(nodes[0]), None);
    assert!(network.end((router, 1)).unwrap().settings().disabled);
    // The other ports reach the registers as before.
    assert_eq!(read(&mut network, nodes[1], 256) >> 8, 0b1_1100);
}

#[test]
fn what_no_register_allows_is_refused() {
    let (mut network, _, nodes) = configured();
    let refused = Err(Status::NotAuthorised);
    for address in [0, 256, 260] {
        assert_eq!(write(&mut network, nodes[0], address, 1), refused, "{address} is for reading");
    }
    for address in [5, 31, 255, 258, 266, 1 << 33] {
        assert_eq!(write(&mut network, nodes[0], address, 1), refused, "{address}");
    }
    for (address, length) in [(1, 2), (1, 6), (3, 12), (1, 0), (254, 8)] {
        let request = Request::Read { address, length, increment: true };
        assert_eq!(ask(&mut network, nodes[0], CONFIGURATION_KEY, &request), refused, "{length} bytes at {address}");
    }
    let one = Request::Read { address: 1, length: 4, increment: true };
    assert_eq!(ask(&mut network, nodes[0], 0, &one), Err(Status::InvalidKey));
    assert_eq!(read(&mut network, nodes[0], 0), 1 | 1 << 14 | 1 << 4);
}

#[test]
fn the_key_and_the_identity_are_kept_and_the_time_is_told() {
    let (mut network, _, nodes) = configured();
    write(&mut network, nodes[0], 257, 0xCAFE_F00D).unwrap();
    assert_eq!(read(&mut network, nodes[1], 257), 0xCAFE_F00D);
    network.time_code(nodes[1], 1).unwrap();
    assert_eq!(read(&mut network, nodes[0], 260), 1);
    let mask = Request::ReadModifyWrite { address: 265, data: &[0, 0, 0, 0x55], mask: &[0, 0, 0, 0xFF] };
    assert_eq!(ask(&mut network, nodes[0], CONFIGURATION_KEY, &mask).unwrap(), [0, 0, 0, 0x20]);
    let one = Request::Read { address: 265, length: 4, increment: true };
    assert_eq!(ask(&mut network, nodes[0], CONFIGURATION_KEY, &one), Err(Status::InvalidKey));
    assert_eq!(ask(&mut network, nodes[0], 0x55, &one).unwrap(), [0, 0, 0, 0x55]);
}
