use super::super::{DeviceConfig, Register, Registers};
use super::*;
use crate::wire::Version;
use alloc::vec;
use hodo_machine::Ends;

const PEER: Peer = Peer(Peer::FIRST_ACCEPTED);
const COUNTER: u32 = 3;

fn faulty(transport: Transport, faults: Faults) -> FaultyDevice {
    let registers = Registers::new([Register::word(COUNTER).counting()]).expect("it is one");
    let config = DeviceConfig { registers, ..DeviceConfig::new(transport, Version::V2_0) };
    let mut device = FaultyDevice::new(Device::new(config), faults);
    device.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(0, 1)));
    device
}

fn micros(count: u64) -> Instant {
    Instant::from_nanos(1000 * count)
}

/// Sends `count` requests, a microsecond apart, and returns the replies and their times, until a millisecond after.
fn asked(device: &mut FaultyDevice, transport: Transport, count: u64) -> Vec<(u64, Vec<u8>)> {
    let mut came = Vec::new();
    let mut out = Outbox::new();
    for now in 0..count + 1000 {
        if now < count {
            let mut packet = vec![0x20, 0, 0, 0xF0, 0x20, 0, 1, 0x0F];
            packet.extend_from_slice(&COUNTER.to_be_bytes());
            let bytes = if transport == Transport::Stream { framed(&packet) } else { packet };
            device.handle(micros(now), Input::Received(PEER, &bytes));
        } else {
            device.handle(micros(now), Input::Elapsed);
        }
        loop {
            match device.poll(micros(now), &mut out) {
                Output::Send(to) => {
                    assert_eq!(to, PEER);
                    came.push((now, out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect()));
                    out.clear();
                }
                Output::Idle(_) => break,
                other => panic!("{other:?}"),
            }
        }
    }
    came
}

fn values(came: &[(u64, Vec<u8>)]) -> Vec<u32> {
    let word = |bytes: &Vec<u8>| bytes.last_chunk().map(|word| u32::from_be_bytes(*word));
    came.iter().filter_map(|(_, bytes)| word(bytes)).collect()
}

#[test]
fn without_faults_it_is_the_device() {
    for transport in [Transport::Datagram, Transport::Stream] {
        let mut device = faulty(transport, Faults::default());
        let came = asked(&mut device, transport, 50);
        assert_eq!(values(&came), (0..50).collect::<Vec<_>>());
        assert!(came.iter().enumerate().all(|(index, (at, _))| index as u64 == *at), "at once");
        assert_eq!(device.faults(), FaultCounters::default());
    }
}

#[test]
fn what_is_lost_is_counted_on_its_way() {
    for transport in [Transport::Datagram, Transport::Stream] {
        let way = Way { loss: 0.25, ..Way::default() };
        let mut requests = faulty(transport, Faults { request: way.clone(), ..Faults::default() });
        let came = asked(&mut requests, transport, 400);
        let lost = requests.faults().requests_lost;
        assert!((70..130).contains(&lost) && came.len() as u64 == 400 - lost);
        assert_eq!(u64::from(requests.device().peek(COUNTER)), 400 - lost, "the device never saw them");
        let mut replies = faulty(transport, Faults { reply: way, ..Faults::default() });
        let came = asked(&mut replies, transport, 400);
        assert_eq!(came.len() as u64, 400 - replies.faults().replies_lost);
        assert_eq!(replies.device().peek(COUNTER), 400, "the device did them");
    }
}

#[test]
fn what_arrives_twice_is_done_or_answered_twice() {
    let way = Way { duplicate: 1.0, ..Way::default() };
    let both = Faults { request: way.clone(), reply: way, ..Faults::default() };
    let mut device = faulty(Transport::Datagram, both);
    assert_eq!(values(&asked(&mut device, Transport::Datagram, 2)), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(device.faults().duplicated, 2 + 4);
}

#[test]
fn what_is_held_back_is_overtaken() {
    let way = Way { reorder: 0.3, delay: Duration::from_micros(7), ..Way::default() };
    let mut device = faulty(Transport::Datagram, Faults { reply: way, ..Faults::default() });
    let came = asked(&mut device, Transport::Datagram, 300);
    assert_eq!(came.len(), 300);
    for ((at, _), value) in came.iter().zip(values(&came)) {
        let late = at - u64::from(value);
        assert!(late == 7 || late == 107, "{late} us");
    }
    assert_eq!(
        came.iter().zip(values(&came)).filter(|((at, _), value)| at - u64::from(*value) > 7).count() as u64,
        device.faults().reordered
    );
    assert!((60..120).contains(&device.faults().reordered));
}

#[test]
fn a_delay_and_its_jitter_have_bounds() {
    let way = Way { delay: Duration::from_micros(10), jitter: Duration::from_micros(5), ..Way::default() };
    let mut device = faulty(Transport::Datagram, Faults { request: way.clone(), reply: way, ..Faults::default() });
    let came = asked(&mut device, Transport::Datagram, 1);
    assert!((20..=31).contains(&came[0].0), "{}", came[0].0);
    let mut out = Outbox::new();
    device.handle(micros(2000), Input::Received(PEER, &[0x20, 0, 0, 0xF0]));
    let Output::Idle(Some(at)) = device.poll(micros(2000), &mut out) else { panic!("it is on its way") };
    assert!(at >= micros(2010) && at <= micros(2015));
    device.handle(micros(2001), Input::Closed(PEER, hodo_machine::Closed::Reset));
    assert!(matches!(device.poll(micros(2020), &mut out), Output::Idle(None)), "it went with its peer");
}

#[test]
fn the_packets_of_a_stream_do_not_overtake_each_other_by_jitter() {
    let way = Way { jitter: Duration::from_micros(50), ..Way::default() };
    let in_order = |transport| {
        let faults = Faults { request: way.clone(), reply: way.clone(), ..Faults::default() };
        let came = values(&asked(&mut faulty(transport, faults), transport, 200));
        assert_eq!(came.len(), 200);
        came.is_sorted()
    };
    assert!(in_order(Transport::Stream) && !in_order(Transport::Datagram));
}

#[test]
fn a_wrong_number_is_the_one_after() {
    let mut device = faulty(Transport::Datagram, Faults { wrong_id: 1.0, ..Faults::default() });
    let came = asked(&mut device, Transport::Datagram, 1);
    assert_eq!(came[0].1, [0x20, 0, 1, 0xF0, 0x20, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(device.faults().wrong_ids, 1);
}

#[test]
fn partitions_and_reboots_have_their_times() {
    let partitions = vec![micros(3)..micros(5)];
    let way = Way { partitions, ..Way::default() };
    let faults = Faults { request: way, reboots: vec![micros(8), micros(7)], clear_memory: true, ..Faults::default() };
    let mut device = faulty(Transport::Datagram, faults);
    let came = asked(&mut device, Transport::Datagram, 10);
    assert_eq!(came.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1, 2, 5, 6, 7, 8, 9]);
    assert_eq!(values(&came), [0, 1, 2, 3, 4, 0, 0, 1]);
    assert_eq!((device.faults().reboots, device.faults().requests_lost), (2, 2));
    let mut often = faulty(Transport::Datagram, Faults { reboot: 0.1, ..Faults::default() });
    let came = asked(&mut often, Transport::Datagram, 300);
    let FaultCounters { reboots, requests_lost, .. } = often.faults();
    assert!((10..60).contains(&reboots) && reboots == requests_lost && came.len() as u64 == 300 - reboots);
}

#[test]
fn the_same_seed_goes_wrong_the_same_way() {
    let way = Way {
        loss: 0.1,
        duplicate: 0.1,
        reorder: 0.1,
        delay: Duration::from_micros(3),
        jitter: Duration::from_micros(30),
        partitions: vec![],
    };
    let run = |seed| {
        let faults =
            Faults { request: way.clone(), reply: way.clone(), wrong_id: 0.1, reboot: 0.01, seed, ..Faults::default() };
        asked(&mut faulty(Transport::Datagram, faults), Transport::Datagram, 200)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_stream_that_makes_no_sense_ends_here_too() {
    let mut device = faulty(Transport::Stream, Faults::default());
    device.handle(Instant::ZERO, Input::Received(PEER, b"GET / HTTP/1.1"));
    let mut out = Outbox::new();
    assert!(matches!(device.poll(Instant::ZERO, &mut out), Output::Event(DeviceEvent::Misbehaved(PEER, _))));
    assert!(matches!(device.poll(Instant::ZERO, &mut out), Output::Close(PEER)));
}
