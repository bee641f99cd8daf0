//! A day's worth of foreign UDP traffic in a minute leaves neither side with more memory, and gets few answers.

use crate::counting;

use counting::bytes_here;
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Random};
use hodo_pva::discovery::{FinderConfig, LOCAL_GROUP, Searcher, SearcherCommand};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, DiscoveryConfig, Server, ServerConfig};
use hodo_pva::wire::Side;
use hodo_pva::wire::discovery::{Beacon, REPLY_REQUIRED, ResponseFront, SearchFront, UNICAST};
use hodo_pva::{Order, Scalar, Value, Writer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Four datagrams a second for a day, as on a busy subnet.
const DATAGRAMS: u64 = 4 * 86_400;
const GROUP: Address = Address::UdpFrom(40_000, SocketAddr::new(IpAddr::V4(LOCAL_GROUP), 5076));

/// Writes a datagram of some kind: other protocols', searches of others, answers and beacons of anybody, and damaged ones.
fn foreign(random: &mut Random, into: &mut Vec<u8>) {
    let mut writer = Writer::new(if random.chance(0.5) { Side::Client } else { Side::Server }, Order::Big);
    let address = IpAddr::V4(Ipv4Addr::from_bits(if random.chance(0.5) { 0 } else { random.bits() as u32 }));
    let (sequence, port) = (random.bits() as u32, random.bits() as u16);
    let mut guid = [0; 12];
    guid.fill_with(|| random.bits() as u8);
    match random.below(5) {
        0 => {
            let name = format!("somewhere:{}", random.below(1000));
            let flags = random.bits() as u8 & (REPLY_REQUIRED | UNICAST);
            let names = (0..random.below(20) as u32).map(|cid| (cid, name.as_bytes())).collect::<Vec<_>>();
            SearchFront { sequence, flags, address, port, protocols: &["tcp"] }.encode(names.into_iter(), &mut writer);
        }
        1 => {
            let front = ResponseFront { guid, sequence, address, port, protocol: "tcp", found: true };
            front.encode((0..random.below(50) as u32).collect::<Vec<_>>().into_iter(), &mut writer);
        }
        2 => {
            let beacon =
                Beacon { guid, flags: 0, sequence: 1, changes: 0, address, port, protocol: b"tcp", state: None };
            beacon.encode(&mut writer);
        }
        _ => writer.bytes(&[0xCA, 2, 0x80][..random.below(4) as usize]),
    }
    into.clear();
    writer.move_to(into);
    if random.chance(0.5) {
        into.extend((0..random.below(200)).map(|_| random.bits() as u8));
    }
    if random.chance(0.3) && !into.is_empty() {
        let at = random.below(into.len() as u64) as usize;
        into[at] = random.bits() as u8;
    }
}

/// Hands a datagram to a machine and carries out what it wants; returns the bytes that it sends.
fn hand<M: Machine>(machine: &mut M, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> u64 {
    assert!(!machine.admits(now, ends, datagram, out));
    let mut sent = out.len() as u64;
    out.clear();
    loop {
        match machine.poll(now, out) {
            Output::Send(_) => {
                sent += out.len() as u64;
                out.clear();
            }
            Output::Idle(Some(next)) if next <= now => machine.handle(now, Input::Elapsed),
            Output::Idle(_) => return sent,
            _ => {}
        }
    }
}

#[test]
fn a_day_of_foreign_traffic_in_a_minute_costs_no_memory_and_few_answers() {
    let discovery = DiscoveryConfig { from: 5076, group: Some(GROUP), ..DiscoveryConfig::default() };
    let mut server = Server::new(ServerConfig { discovery, ..ServerConfig::default() });
    server.serve("ours".into(), Value::of(Normative::scalar(Scalar::F64).build()), Access::ReadOnly);
    let mut client = Searcher::new(FinderConfig { group: Some(GROUP), beacons_max: 1000, ..FinderConfig::default() });
    let start = Instant::from_nanos(100_000_000_000);
    let search = SearcherCommand::Search { number: 7, name: "absent".into(), all: false };
    client.handle(start, Input::Command(search));
    let (mut random, mut datagram, mut out) = (Random::new(11), Vec::new(), Outbox::new());
    let (mut came, mut went, mut live) = (0, 0, 0);
    for number in 0..DATAGRAMS {
        let now = start + Duration::from_nanos(number * 60_000_000_000 / DATAGRAMS);
        foreign(&mut random, &mut datagram);
        let sender = Ipv4Addr::from_bits(random.bits() as u32);
        let to = if random.chance(0.1) { LOCAL_GROUP } else { Ipv4Addr::new(10, 0, 0, 1) };
        let ends = Ends::new(Address::Udp((to, 5076).into()), Address::Udp((sender, random.bits() as u16).into()));
        came += datagram.len() as u64;
        went += hand(&mut server, now, &ends, &datagram, &mut out);
        hand(&mut client, now, &ends, &datagram, &mut out);
        if number == DATAGRAMS / 10 {
            live = bytes_here().0;
        }
    }
    let grown = bytes_here().0 - live;
    assert!(grown.abs() < 64 << 10, "{grown} bytes more than after a tenth of it");
    assert!(went < came, "{went} bytes for {came}");
    let counters = server.discovery();
    assert!(counters.foreign > DATAGRAMS / 4 && counters.searches > DATAGRAMS / 20, "{counters:?}");
    assert_eq!(client.finder().servers(), 1000);
}
