use super::*;
use hodo_roce::{Operation, ScatterEntry, Status};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};

/// Queue pairs of each end: more than there are source ports.
const PAIRS: usize = 12;
const LIMITS: Limits = Limits { send_depth: 4, receive_depth: 4, send_entries: 1, receive_entries: 1, inline_bytes: 0 };

fn device(sources: Option<u16>) -> SoftDevice {
    let address = Ipv4Addr::LOCALHOST.into();
    let settings = SoftSettings { address: SocketAddr::new(address, 0), sources, ..SoftSettings::at(address) };
    SoftDevice::open(settings, Clock::start()).unwrap()
}

fn entry(region: Region, index: usize, length: u32) -> ScatterEntry {
    ScatterEntry { address: region.address + 8192 * index as u64, length, key: region.local_key }
}

/// Connects queue pairs to a plain socket, and returns the source ports of what each of them sends.
fn sources(sources: Option<u16>) -> (SoftDevice, Vec<u16>) {
    let mut device = device(sources);
    let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    far.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    device.set_far_port(far.local_addr().unwrap().port());
    let region = device.register(8192, Access::LOCAL).unwrap();
    let ports = (0..PAIRS).map(|_| {
        let local = device.create(&LIMITS).unwrap();
        let gid = Gid::of(Ipv4Addr::LOCALHOST.into());
        let remote = AddressOfQueuePair { lid: 0, number: 0x77, psn: 1, gid };
        device.connect(&local, &remote, &Reliability { timeout: 0, ..Reliability::default() }).unwrap();
        let entries = [entry(region, 0, 8)];
        device.post_send(local.number, &SendRequest::new(1, Operation::Send, &entries)).unwrap();
        let now = device.now();
        device.poll(Wait::Never, now, &mut Vec::new()).unwrap();
        device.poll(Wait::Never, now, &mut Vec::new()).unwrap();
        far.recv_from(&mut [0; 256]).unwrap().1.port()
    });
    let ports = ports.collect();
    (device, ports)
}

#[test]
fn source_ports_differ_by_queue_pair() {
    let (device, ports) = sources(Some(4));
    assert_eq!(ports[0], device.address().port());
    assert_eq!(BTreeSet::from_iter(&ports).len(), 5, "{ports:?}");
    assert!(ports.iter().filter(|port| **port != ports[0]).all(|port| *port >= 0xC000), "{ports:?}");
    // One queue pair keeps to its port, and another in its turn has the same one.
    assert_eq!(ports[..5], ports[5..10]);
    // There is one way only on a host.
    let (device, ports) = sources(None);
    assert_eq!(BTreeSet::from_iter(ports), BTreeSet::from([device.address().port()]));
}

#[test]
fn messages_arrive_from_every_source_port() {
    messages_arrive(0);
}

#[test]
fn messages_arrive_where_the_first_queue_pair_has_another_port() {
    (1..5).for_each(messages_arrive);
}

/// Has two ends send messages over all queue pairs but the first ones of each, which are not connected.
fn messages_arrive(unconnected: usize) {
    let mut ends = [Some(4), Some(8)].map(device);
    for end in &mut ends {
        (0..unconnected).for_each(|_| _ = end.create(&LIMITS).unwrap());
    }
    let ports = ends.each_ref().map(|end| end.address().port());
    let regions = ends.each_mut().map(|end| end.register(8192 * PAIRS, Access::LOCAL).unwrap());
    ends[0].set_far_port(ports[1]);
    ends[1].set_far_port(ports[0]);
    let reliability = Reliability { timeout: 18, ..Reliability::default() };
    for index in 0..PAIRS {
        let pair = ends.each_mut().map(|end| end.create(&LIMITS).unwrap());
        for side in 0..2 {
            ends[side].connect(&pair[side], &pair[1 - side], &reliability).unwrap();
            let received = [entry(regions[side], index, 8192)];
            let receive = ReceiveRequest { id: 0, entries: &received };
            ends[side].post_receive(pair[side].number, &receive).unwrap();
        }
        for side in 0..2 {
            let sent = [entry(regions[side], index, 5000)];
            ends[side].post_send(pair[side].number, &SendRequest::new(1, Operation::Send, &sent)).unwrap();
        }
    }
    let mut completions = [Vec::new(), Vec::new()];
    let give_up = ends[0].now() + Duration::from_secs(60);
    while completions.iter().any(|completions| completions.len() < 2 * PAIRS) {
        for (end, completions) in ends.iter_mut().zip(&mut completions) {
            let now = end.now();
            assert!(now < give_up, "only {completions:?}");
            end.poll(Wait::Never, now, completions).unwrap();
        }
    }
    assert!(completions.iter().flatten().all(|completion| completion.status == Status::Success));
    for end in &ends {
        let Counters { wrong_icrc, discarded, .. } = end.counters();
        assert_eq!((wrong_icrc, discarded), (0, 0));
    }
}
