//! Whatever clients make a hub retain is charged to them: whoever has most is ended where it is too much, and whoever asks for little is served.
use crate::rack::chunk_of_packets;
use crate::rig::{MILLI, Rig, read, write};

use hodo_ipbus::hub::{Ended, HubConfig};
use hodo_ipbus::wire::hub::Code;
use hodo_ipbus::wire::{WORD, chunk};
use hodo_machine::{Allowance, Closed, Input, Machine, Peer};

const ALLOWED: u64 = 1 << 20;

/// Returns a hub that may retain little.
fn small() -> HubConfig {
    HubConfig { allowance: Allowance::of_bytes(ALLOWED), ..HubConfig::default() }
}

fn retained(rig: &Rig) -> u64 {
    rig.hub.charges().expect("a hub charges").bytes()
}

/// Returns a chunk of packets for the first board, each with 100 writes.
fn long(packets: usize) -> Vec<u8> {
    let mut packet = write(0, 7).request();
    packet.extend(packet[WORD..].repeat(99));
    chunk_of_packets((0..packets).map(|_| (0, packet.clone())))
}

fn ended(rig: &Rig) -> u64 {
    rig.hub.counters().ended[Ended::TooMuchMemory as usize]
}

#[test]
fn whoever_queues_most_is_ended_and_of_what_it_sent_only_what_is_in_flight_is_done() {
    let mut rig = Rig::new(2, small());
    let [good, other] = [rig.client(), rig.client()];
    assert_eq!(rig.exchange(good, &[read(1, 0)]), [Code::Done]);
    (0..20).for_each(|_| rig.handle(Input::Received(other, &long(3))));
    let greedy: Vec<Peer> = (0..3).map(|_| rig.client()).collect();
    for _ in 0..160 {
        for client in greedy.iter().filter(|client| !rig.closed.contains(client)).copied().collect::<Vec<Peer>>() {
            rig.handle(Input::Received(client, &long(3)));
        }
        assert!(retained(&rig) <= ALLOWED, "{}", retained(&rig));
    }
    assert!(ended(&rig) > 0 && ended(&rig) == rig.closed.len() as u64);
    assert!(!rig.closed.contains(&other) && !rig.closed.contains(&good), "they have less");
    rig.wait(100 * MILLI);
    assert_eq!(rig.exchange(good, &[read(1, 0)]), [Code::Done]);
    assert_eq!(rig.exchange(good, &[write(0, 8)]), [Code::Done]);
    // Each client that was ended had packets in flight, and no more of it is done.
    let left = (greedy.len() - rig.closed.len()) * 160 * 300 + 20 * 300;
    let done = rig.boards[0].written.iter().filter(|word| **word == 7).count();
    assert!((left..left + 100 * 16).contains(&done), "{done} of {left}");
    assert_eq!(rig.hub.held().0, 0);
    assert!(retained(&rig) < 5 * 4096, "{}: but for what is never charged anew", retained(&rig));
}

#[test]
fn chunks_that_do_not_end_are_charged() {
    let mut rig = Rig::new(1, small());
    let good = rig.client();
    assert_eq!(rig.exchange(good, &[read(0, 0)]), [Code::Done]);
    let unfinished = [&chunk::length(60_000)[..], &[0; 50_000]].concat();
    for _ in 0..40 {
        let client = rig.client();
        rig.handle(Input::Received(client, &unfinished));
        assert!(retained(&rig) <= ALLOWED);
    }
    assert!(ended(&rig) >= 19 && !rig.closed.contains(&good));
    assert_eq!(rig.exchange(good, &[read(0, 0)]), [Code::Done]);
}

#[test]
fn replies_that_are_not_read_are_charged() {
    let mut rig = Rig::new(1, small());
    let mut closed = 0;
    while ended(&rig) == 0 {
        let client = rig.client();
        rig.handle(Input::Blocked(client));
        let wishes: Vec<_> = (0..400).map(|_| crate::rack::Wish::new(0, crate::rack::Deed::Read(0, 255))).collect();
        wishes.chunks(3).for_each(|chunk| rig.ask(client, chunk));
        rig.wait(MILLI);
        closed += 1;
        assert!(retained(&rig) <= ALLOWED && closed < 10);
    }
    rig.wait(MILLI);
    assert!((2..5).contains(&closed), "{closed}");
}

#[test]
fn a_client_that_asks_for_little_does_not_wait_for_those_who_fill_the_queues() {
    for (packets, board_packets) in [(20, 1000), (1000, 20)] {
        let mut rig = Rig::new(2, HubConfig { packets, board_packets, client_packets: 100, ..HubConfig::default() });
        let [good, ..] = [rig.client(), rig.client()];
        assert_eq!(rig.exchange(good, &[read(0, 0), read(1, 0)]), [Code::Done; 2]);
        for _ in 0..5 {
            let greedy = rig.client();
            (0..90).for_each(|word| rig.ask(greedy, &[write(0, word)]));
        }
        let board = rig.wire.len();
        rig.ask(good, &[read(1, 1)]);
        assert_eq!(rig.wire.len(), board + 1, "the other board has it");
        rig.ask(good, &[read(0, 1)]);
        // The first board does its packets one by one, and takes turns.
        for _ in 0..60 {
            let (peer, datagram) = rig.wire.pop_front().expect("some are in flight");
            let number = rig.peers[&peer.0] as usize;
            let reply = rig.boards[number].answer(&datagram).expect("the board is well");
            rig.handle(Input::Received(peer, &reply));
        }
        assert_eq!(rig.codes(good, &[read(1, 1)]), [Code::Done]);
        assert_eq!(rig.codes(good, &[read(0, 1)]), [Code::Done]);
        assert!(rig.boards[0].written.len() < 80);
    }
}

#[test]
fn what_clients_that_are_gone_have_asked_for_is_charged_until_it_is_done() {
    let mut rig = Rig::new(1, small());
    let client = rig.client();
    assert_eq!(rig.exchange(client, &[read(0, 0)]), [Code::Done]);
    (0..50).for_each(|_| rig.handle(Input::Received(client, &long(3))));
    let before = retained(&rig);
    assert!(before > 150 * 1200);
    rig.handle(Input::Closed(client, Closed::Reset));
    assert!(retained(&rig).abs_diff(before) < 8192, "{} after {before}", retained(&rig));
    rig.wait(MILLI);
    assert_eq!((rig.boards[0].written.len(), retained(&rig)), (150 * 100, 0));
}

#[test]
fn clients_that_go_and_leave_much_behind_end_nobody_else() {
    let mut rig = Rig::new(1, small());
    let good = rig.client();
    assert_eq!(rig.exchange(good, &[read(0, 0)]), [Code::Done]);
    for _ in 0..10 {
        let client = rig.client();
        (0..100).for_each(|_| rig.handle(Input::Received(client, &long(3))));
        rig.handle(Input::Closed(client, Closed::Reset));
    }
    let other = rig.client();
    (0..20).for_each(|_| rig.handle(Input::Received(other, &long(3))));
    assert_eq!((ended(&rig), retained(&rig) <= ALLOWED), (0, true));
    rig.wait(MILLI);
    assert_eq!(rig.exchange(good, &[read(0, 0)]), [Code::Done]);
    assert_eq!(rig.hub.held().0, 0);
}
