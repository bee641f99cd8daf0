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
    assert_eq!(device.held_bytes, 400 * (PAYLOAD + chunk::HEADER));
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
    assert_eq!((device.held_bytes, closed), (0, vec![]));
}

#[test]
fn a_peer_that_asks_and_does_not_read_is_ended() {
    let config = DeviceConfig::new(Transport::Stream, Version::V2_0);
    let mut device = Device::new(DeviceConfig { unsent_bytes_max: 1 << 20, ..config });
    open(&mut device, 0);
    open(&mut device, 1);
    device.handle(Instant::ZERO, Input::Blocked(peer(0)));
    let mut closed = Vec::new();
    for _ in 0..30 {
        device.handle(Instant::ZERO, Input::Received(peer(0), &long_reads(10)));
        closed.extend(drained(&mut device, Instant::ZERO).1);
        assert!(device.held_bytes <= 1 << 18);
    }
    assert_eq!((closed, device.held_bytes), (vec![peer(0)], 0));
    device.handle(Instant::ZERO, Input::Received(peer(1), &long_reads(10)));
    assert_eq!(drained(&mut device, Instant::ZERO).0.len(), 1, "the others are served");
}

#[test]
fn datagrams_that_nobody_takes_away_are_bounded() {
    let config = DeviceConfig::new(Transport::Datagram, Version::V2_0);
    let mut device = Device::new(DeviceConfig { unsent_bytes_max: 10_000, ..config });
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
