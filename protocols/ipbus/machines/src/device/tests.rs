use super::*;
use crate::wire::chunk::Chunks;
use crate::wire::{Order, PAYLOAD};
use hodo_machine::Ends;

const READ: [u32; 3] = [0x2000_00F0, 0x2000_010F, 7];

fn device(transport: Transport) -> Device {
    Device::new(DeviceConfig::new(transport, Version::V2_0))
}

fn peer(number: u32) -> Peer {
    Peer(Peer::FIRST_ACCEPTED + number)
}

fn open(device: &mut Device, number: u32) {
    device.handle(Instant::ZERO, Input::Opened(peer(number), &Ends::nodes(0, number)));
}

/// Returns the bytes of memory that are charged to peers.
fn retained(device: &Device) -> u64 {
    device.charges().expect("a device charges").bytes()
}

fn big(words: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Order::Big.append(words, &mut bytes);
    bytes
}

fn framed(packet: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let begun = chunk::begin(&mut bytes);
    bytes.extend_from_slice(packet);
    chunk::end(&mut bytes, begun);
    bytes
}

/// Polls the device until it is idle, and returns bytes for peers, and peers that are closed.
fn drained(device: &mut Device, now: Instant) -> (Vec<(Peer, Vec<u8>)>, Vec<Peer>) {
    let (mut sent, mut closed) = (Vec::new(), Vec::new());
    let mut out = Outbox::new();
    loop {
        match device.poll(now, &mut out) {
            Output::Send(peer) => {
                sent.push((peer, out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect()));
                out.clear();
            }
            Output::Close(peer) => closed.push(peer),
            Output::Event(_) => {}
            Output::Open(..) => panic!("a device opens nothing"),
            Output::Idle(_) => return (sent, closed),
        }
    }
}

#[test]
fn every_peer_gets_the_answers_to_its_own_packets() {
    let mut device = device(Transport::Datagram);
    for number in 0..3 {
        open(&mut device, number);
    }
    for number in [2, 0, 2, 1] {
        device.handle(Instant::ZERO, Input::Received(peer(number), &big(&READ)));
        device.handle(Instant::ZERO, Input::Received(peer(number), b"noise"));
    }
    let (sent, _) = drained(&mut device, Instant::ZERO);
    assert_eq!(sent.iter().map(|(peer, _)| peer.0 - Peer::FIRST_ACCEPTED).collect::<Vec<_>>(), [2, 0, 2, 1]);
    assert!(sent.iter().all(|(_, reply)| *reply == big(&[0x2000_00F0, 0x2000_0100, 0])));
}

/// Lets two peers take turns: the next number, the kept replies and the memory are the board's, not a client's.
#[test]
fn all_peers_see_one_board() {
    let mut device = device(Transport::Datagram);
    for number in 0..2 {
        open(&mut device, number);
    }
    device.handle(Instant::ZERO, Input::Received(peer(0), &big(&[0x2000_01F0, 0x2000_011F, 7, 5])));
    device.handle(Instant::ZERO, Input::Received(peer(1), &big(&[0x2000_01F0])));
    device.handle(Instant::ZERO, Input::Received(peer(1), &big(&[0x2000_01F2])));
    device.handle(Instant::ZERO, Input::Received(peer(1), &big(&READ)));
    let (sent, _) = drained(&mut device, Instant::ZERO);
    let written = big(&[0x2000_01F0, 0x2000_0110]);
    let read = big(&[0x2000_00F0, 0x2000_0100, 5]);
    assert_eq!(sent, [(peer(0), written.clone()), (peer(1), written), (peer(1), read)]);
    assert_eq!((device.peek(7), device.status().next_id, device.counters().refused), (5, 2, 1));
}

#[test]
fn a_stream_is_answered_chunk_by_chunk_however_it_is_cut() {
    let stream = [framed(&big(&READ)), framed(b"no packet"), framed(&[]), framed(&big(&[0x2000_00F0]))].concat();
    let expected = [framed(&big(&[0x2000_00F0, 0x2000_0100, 0])), framed(&big(&[0x2000_00F0]))].concat();
    for cut in 1..=stream.len() {
        let mut device = device(Transport::Stream);
        open(&mut device, 0);
        let mut answered = Vec::new();
        for part in stream.chunks(cut) {
            device.handle(Instant::ZERO, Input::Received(peer(0), part));
            answered.extend(drained(&mut device, Instant::ZERO).0.into_iter().flat_map(|(_, bytes)| bytes));
        }
        assert_eq!(answered, expected, "cut every {cut}");
        assert_eq!(device.counters().refused, 2);
    }
}

#[test]
fn a_chunk_over_the_bound_ends_its_peer_alone() {
    let mut device = device(Transport::Stream);
    open(&mut device, 0);
    open(&mut device, 1);
    let mixed = [framed(&big(&READ)), b"GET / HTTP/1.1".to_vec()].concat();
    device.handle(Instant::ZERO, Input::Received(peer(0), &mixed));
    device.handle(Instant::ZERO, Input::Received(peer(0), &framed(&big(&READ))));
    device.handle(Instant::ZERO, Input::Received(peer(1), &framed(&big(&READ))));
    let (sent, closed) = drained(&mut device, Instant::ZERO);
    assert_eq!((sent.len(), sent[0].0, closed), (1, peer(1), vec![peer(0)]));
    assert_eq!(device.peers(), 1);
}

/// Returns packets that have a chunk each, whose replies are as long as they can be.
fn long_reads(count: usize) -> Vec<u8> {
    let words = Version::V2_0.read_words(PAYLOAD) as u32;
    let (first, second) = (0xFF, words - 0xFF);
    framed(&big(&[0x2000_00F0, 0x2000_000F | first << 8, 0, 0x2001_000F | second << 8, 0])).repeat(count)
}

#[test]
fn a_peer_that_is_blocked_waits_alone_and_gets_everything_in_order() {
    let mut device = device(Transport::Stream);
    open(&mut device, 0);
    open(&mut device, 1);
    device.handle(Instant::ZERO, Input::Blocked(peer(0)));
    for _ in 0..4 {
        device.handle(Instant::ZERO, Input::Received(peer(0), &long_reads(100)));
        device.handle(Instant::ZERO, Input::Received(peer(1), &framed(&big(&READ))));
    }
    let (sent, _) = drained(&mut device, Instant::ZERO);
    assert!(sent.iter().all(|(to, _)| *to == peer(1)) && sent.len() == 4);
    assert!(retained(&device) >= 400 * (PAYLOAD + chunk::HEADER) as u64);
    device.handle(Instant::ZERO, Input::Drained(peer(0)));
    device.handle(Instant::ZERO, Input::Received(peer(0), &framed(&big(&[0x2000_00F0]))));
    let (sent, closed) = drained(&mut device, Instant::ZERO);
    assert!(sent.len() > 4 && sent.iter().all(|(to, bytes)| *to == peer(0) && bytes.len() <= BURST));
    let all: Vec<u8> = sent.into_iter().flat_map(|(_, bytes)| bytes).collect();
    let (mut chunks, mut rest, mut found) = (Chunks::new(PAYLOAD), all.as_slice(), Vec::new());
    while let Some(packet) = chunks.next(&mut rest).expect("they are chunks") {
        found.push(packet.len());
    }
    assert_eq!((found.len(), found[399], found[400]), (401, PAYLOAD, 4));
    assert_eq!((retained(&device), closed), (0, vec![]));
}

#[test]
fn a_peer_that_asks_and_does_not_read_is_ended() {
    let config = DeviceConfig::new(Transport::Stream, Version::V2_0);
    let mut device = Device::new(DeviceConfig { allowance: allowance(1 << 20), ..config });
    open(&mut device, 0);
    open(&mut device, 1);
    device.handle(Instant::ZERO, Input::Blocked(peer(0)));
    let mut closed = Vec::new();
    for _ in 0..30 {
        device.handle(Instant::ZERO, Input::Received(peer(0), &long_reads(10)));
        closed.extend(drained(&mut device, Instant::ZERO).1);
        assert!(retained(&device) <= 1 << 18);
    }
    assert_eq!((closed, retained(&device), device.counters().ended), (vec![peer(0)], 0, 1));
    device.handle(Instant::ZERO, Input::Received(peer(1), &long_reads(10)));
    assert_eq!(drained(&mut device, Instant::ZERO).0.len(), 1, "the others are served");
}

#[test]
fn datagrams_that_nobody_takes_away_are_bounded() {
    let config = DeviceConfig::new(Transport::Datagram, Version::V2_0);
    let mut device = Device::new(DeviceConfig { allowance: allowance(10_000), ..config });
    open(&mut device, 0);
    for _ in 0..100 {
        device.handle(Instant::ZERO, Input::Received(peer(0), &long_reads(1)[chunk::HEADER..]));
    }
    assert!(device.replies.len() <= 10_000);
    assert_eq!(device.counters().packets + device.counters().dropped, 100);
    let (sent, _) = drained(&mut device, Instant::ZERO);
    assert_eq!(sent.len() as u64, device.counters().packets);
}

#[test]
fn a_peer_over_datagrams_that_is_silent_is_forgotten() {
    let mut device = device(Transport::Datagram);
    open(&mut device, 0);
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    device.handle(at(30), Input::Opened(peer(1), &Ends::nodes(0, 1)));
    device.handle(at(40), Input::Received(peer(0), &big(&READ)));
    device.handle(at(95), Input::Elapsed);
    let (_, closed) = drained(&mut device, at(95));
    assert_eq!((closed, device.peers()), (vec![peer(1)], 1));
    let mut out = Outbox::new();
    assert!(matches!(device.poll(at(95), &mut out), Output::Idle(Some(next)) if next == at(100)));
    device.handle(at(100), Input::Elapsed);
    assert_eq!(drained(&mut device, at(100)).1, [peer(0)]);
    assert!(matches!(device.poll(at(100), &mut out), Output::Idle(None)));
}

#[test]
fn a_device_can_be_changed_from_inside() {
    let config = DeviceConfig::new(Transport::Datagram, Version::V2_0);
    let registers = Registers::new([Register::fifo(9, 2), Register::word(1).read_only()]).expect("they are apart");
    let mut device = Device::new(DeviceConfig { registers, ..config });
    for (address, word) in [(1, 5), (9, 6), (9, 7), (9, 8), (1 << 31, 9)] {
        device.handle(Instant::ZERO, Input::Command(DeviceCommand::Poke { address, word }));
    }
    assert_eq!((device.peek(1), device.peek(1 << 31), device.fifo(9).collect::<Vec<_>>()), (5, 9, vec![6, 7]));
    device.handle(Instant::ZERO, Input::Command(DeviceCommand::Reboot { clear_memory: true }));
    assert_eq!((device.peek(1), device.fifo(9).count()), (0, 0));
}

/// Has peers without a turn ask until they wait for this many bytes each.
fn wait_for(device: &mut Device, peers: core::ops::Range<u32>, bytes: usize) {
    for number in peers {
        open(device, number);
        device.handle(Instant::ZERO, Input::Blocked(peer(number)));
        device.handle(Instant::ZERO, Input::Received(peer(number), &long_reads(bytes / PAYLOAD)));
    }
}

#[test]
fn whoever_has_most_is_ended_and_not_whoever_asks_next() {
    let config = DeviceConfig::new(Transport::Stream, Version::V2_0);
    let mut device = Device::new(DeviceConfig { allowance: allowance(1 << 20), ..config });
    wait_for(&mut device, 0..1, 200_000);
    wait_for(&mut device, 1..10, 100_000);
    let (_, closed) = drained(&mut device, Instant::ZERO);
    assert_eq!(closed, [peer(0)]);
    assert!(retained(&device) <= 1 << 20);
    open(&mut device, 20);
    for _ in 0..100 {
        device.handle(Instant::ZERO, Input::Received(peer(20), &framed(&big(&READ))));
        let (sent, closed) = drained(&mut device, Instant::ZERO);
        assert_eq!((sent.len(), sent[0].0, closed), (1, peer(20), vec![]));
    }
}

#[test]
fn chunks_that_do_not_end_are_charged() {
    let config = DeviceConfig { buffer_bytes: 65_000, ..DeviceConfig::new(Transport::Stream, Version::V2_0) };
    let mut device = Device::new(DeviceConfig { allowance: allowance(1 << 20), ..config });
    let unfinished = &framed(&[0; 60_000])[..50_000];
    for number in 0..40 {
        open(&mut device, number);
        device.handle(Instant::ZERO, Input::Received(peer(number), unfinished));
        assert!(retained(&device) <= 1 << 20);
    }
    let (_, closed) = drained(&mut device, Instant::ZERO);
    assert!(closed.len() > 10 && device.peers() + closed.len() == 40);
}

#[test]
fn datagrams_in_the_name_of_21_000_peers_keep_nobody_out() {
    let config = DeviceConfig::new(Transport::Datagram, Version::V2_0);
    let mut device = Device::new(DeviceConfig { peers_max: 1000, ..config });
    let at = Instant::from_nanos;
    open(&mut device, 0);
    for number in 1..21_000 {
        let now = at(u64::from(number) * 1000);
        if number % 500 == 0 {
            device.handle(now, Input::Received(peer(0), &big(&READ)));
        }
        device.handle(now, Input::Opened(peer(number), &Ends::nodes(0, number)));
        device.handle(now, Input::Received(peer(number), &crate::wire::status::REQUEST));
        let (sent, closed) = drained(&mut device, now);
        assert!(sent.iter().any(|(to, _)| *to == peer(number)), "{number}");
        assert!(closed.len() <= 1 && !closed.contains(&peer(0)));
        assert!(device.peers() <= 1000);
    }
    assert_eq!(device.counters().displaced, 20_000);
    assert!(device.turns.len() < 3000 && retained(&device) == 0);
}

#[test]
fn a_new_stream_gets_the_place_of_one_that_is_idle() {
    let config = DeviceConfig::new(Transport::Stream, Version::V2_0);
    let mut device = Device::new(DeviceConfig { peers_max: 3, ..config });
    let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
    let come = |device: &mut Device, millis, number| {
        device.handle(at(millis), Input::Opened(peer(number), &Ends::nodes(0, number)));
        drained(device, at(millis)).1
    };
    for number in 0..3 {
        assert_eq!(come(&mut device, 0, number), []);
    }
    assert_eq!(come(&mut device, 1000, 3), [peer(3)], "nobody is idle for long enough");
    device.handle(at(9000), Input::Received(peer(0), &framed(&big(&READ))));
    assert_eq!(drained(&mut device, at(9000)).0.len(), 1);
    assert_eq!(come(&mut device, 11_000, 4), [peer(1)]);
    assert_eq!(come(&mut device, 11_001, 5), [peer(2)]);
    assert_eq!(come(&mut device, 11_002, 6), [peer(6)]);
    assert_eq!((device.counters().displaced, device.counters().refused_peers), (2, 2));
}

#[test]
fn datagrams_for_a_peer_that_is_held_back_stay_apart_and_the_oldest_are_dropped() {
    let config = DeviceConfig::new(Transport::Datagram, Version::V2_0);
    let mut device = Device::new(DeviceConfig { allowance: allowance(400_000), ..config });
    open(&mut device, 0);
    open(&mut device, 1);
    device.handle(Instant::ZERO, Input::Blocked(peer(0)));
    for number in 0..200_u32 {
        let packet =
            [big(&[0x2000_00F0, 0x2000_001F | 1 << 8, 1, number]), long_reads(1)[2 * chunk::HEADER..].to_vec()];
        device.handle(Instant::ZERO, Input::Received(peer(0), &packet.concat()));
        assert_eq!(drained(&mut device, Instant::ZERO).0, []);
        assert!(retained(&device) <= 100_000);
    }
    device.handle(Instant::ZERO, Input::Received(peer(1), &big(&READ)));
    assert_eq!(drained(&mut device, Instant::ZERO).0.len(), 1);
    device.handle(Instant::ZERO, Input::Drained(peer(0)));
    let (sent, closed) = drained(&mut device, Instant::ZERO);
    assert!(sent.iter().all(|(to, reply)| *to == peer(0) && reply.len() == sent[0].1.len() && reply.len() < 1500));
    assert!((20..70).contains(&sent.len()) && closed.is_empty(), "{}", sent.len());
    assert_eq!(sent.len() as u64 + device.counters().unsent, 200);
    assert_eq!(retained(&device), 0);
}
