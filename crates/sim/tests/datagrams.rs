//! Datagrams over the simulated network: what is configured is what happens.
use crate::common;

use common::{Ask, Caller, CallerEvent, Echo, PEER, at_us, ideal, run, sim};
use hodo_machine::{Address, Closed, Driver, Ends, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use hodo_sim::{Counters, Network, Sim, Transport};
use std::time::Duration;

const DATAGRAM: Transport = Transport::Datagram;

/// Sends so many numbered datagrams of this size, one each `gap`, to a silent server.
fn blast(network: &Network, count: u64, size: usize, gap: Duration) -> (Vec<(Instant, u64)>, Counters) {
    let mut sim = sim(DATAGRAM, network, Echo::silent());
    for number in 0..count {
        let mut bytes = vec![0; size];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        sim.command(Ask::Send(PEER, bytes));
        let due = Instant::ZERO + gap * (number as u32 + 1);
        while sim.now() < due {
            sim.turn(Wait::Block, due, &mut |_| {}).unwrap();
        }
    }
    run(&mut sim);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let arrivals = sim.server(1).arrivals.iter().map(|(at, bytes)| (*at, number(bytes))).collect();
    let counters = sim.counters(0, 1);
    let Counters { sent, duplicated, delivered, lost, queue_dropped, too_big, overrun, unclaimed, .. } = counters;
    assert_eq!(sent + duplicated, delivered + lost + queue_dropped + too_big + overrun + unclaimed);
    assert_eq!((sent, sim.outstanding_bytes()), (count, 0));
    (arrivals, counters)
}

fn spaced(network: &Network, count: u64) -> (Vec<(Instant, u64)>, Counters) {
    blast(network, count, 16, Duration::from_micros(1))
}

/// Asserts that a share of 20,000 is within five standard deviations of the probability.
fn assert_share(found: u64, probability: f64) {
    let (count, mean) = (20_000.0, 20_000.0 * probability);
    let bound = 5.0 * (count * probability * (1.0 - probability)).sqrt();
    assert!((found as f64 - mean).abs() < bound, "{found} of {count}, {mean} +- {bound} expected");
}

#[test]
fn a_round_trip_takes_two_delays_and_four_messages_of_processor_time() {
    for (cost_ns, expected_ns) in [(0, 14_000), (100, 14_400)] {
        let network = Network { cost: Duration::from_nanos(cost_ns), ..ideal(7) };
        let mut sim = sim(DATAGRAM, &network, Echo::default());
        sim.command(Ask::Send(PEER, vec![1, 2, 3]));
        let told = run(&mut sim);
        assert_eq!(told[0].1, CallerEvent::Opened(PEER));
        assert_eq!(told[1], (Instant::from_nanos(expected_ns), CallerEvent::Received(PEER, vec![1, 2, 3])));
        assert_eq!((told.len(), sim.server(1).opened), (2, 1));
    }
}

#[test]
fn the_servers_application_answers() {
    let mut sim = sim(DATAGRAM, &ideal(1), Echo::asking());
    sim.command(Ask::Send(PEER, vec![42, 2, 3]));
    assert_eq!(run(&mut sim)[1].1, CallerEvent::Received(PEER, vec![42]));
    sim.command_server(1, (Peer(Peer::FIRST_ACCEPTED), 43));
    assert_eq!(run(&mut sim)[0].1, CallerEvent::Received(PEER, vec![43]));
}

#[test]
fn jitter_is_uniform_above_the_delay() {
    let network = Network { jitter: Duration::from_micros(4), ..ideal(5) };
    let (arrivals, counters) = spaced(&network, 20_000);
    let delay = |(at, number): &(Instant, u64)| at.as_nanos() - number * 1000;
    let delays: Vec<u64> = arrivals.iter().map(delay).collect();
    assert!(delays.iter().all(|delay| (5_000..=9_000).contains(delay)));
    let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
    assert!((mean - 7_000.0).abs() < 50.0, "{mean}");
    assert!(counters.reordered > 1000, "jitter over the spacing lets datagrams overtake: {counters:?}");
}

#[test]
fn faults_come_as_often_as_asked() {
    let (_, lossy) = spaced(&Network { loss: 0.2, ..ideal(5) }, 20_000);
    assert_share(lossy.lost, 0.2);
    let (arrivals, doubling) = spaced(&Network { duplicate: 0.1, ..ideal(5) }, 20_000);
    assert_share(doubling.duplicated, 0.1);
    assert_eq!((arrivals.len() as u64, doubling.reordered), (20_000 + doubling.duplicated, 0));
    let (_, corrupt) = spaced(&Network { corrupt: 0.05, ..ideal(5) }, 20_000);
    assert_share(corrupt.corrupted, 0.05);
    let (arrivals, reordering) = spaced(&Network { reorder: 0.01, ..ideal(5) }, 20_000);
    let held = arrivals.iter().filter(|(at, number)| at.as_nanos() > number * 1000 + 5_000).count() as u64;
    assert_share(held, 0.01);
    // One that is held back for 6 us lets six that are not pass, so it counts.
    let mut late = 0;
    let mut highest = 0;
    for (_, number) in &arrivals {
        late += u64::from(*number < highest);
        highest = highest.max(*number);
    }
    assert_eq!(reordering.reordered, late);
    assert!(late >= held * 9 / 10, "{late} of {held}");
}

#[test]
fn corruption_flips_one_bit() {
    let mut sim = sim(DATAGRAM, &Network { corrupt: 1.0, ..ideal(1) }, Echo::silent());
    sim.command(Ask::Send(PEER, vec![0; 8]));
    run(&mut sim);
    let bits: u32 = sim.server(1).arrivals[0].1.iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(bits, 1);
}

#[test]
fn the_rate_and_the_queue_are_kept() {
    let gigabit = Network { rate: Some(1_000_000_000), queue_bytes: 20_000, overhead_bytes: 38, ..ideal(5) };
    // 1000 + 28 + 38 bytes take 8.528 us each; one comes each 4 us, so about half are dropped once the queue is full.
    let (arrivals, counters) = blast(&gigabit, 10_000, 1000, Duration::from_micros(4));
    let span = arrivals.last().unwrap().0 - arrivals[0].0;
    let expected = Duration::from_nanos((counters.delivered - 1) * 8_528);
    assert_eq!(span, expected);
    assert!((4_680..4_720).contains(&counters.delivered), "{counters:?}");
    assert_eq!(counters.queue_dropped, 10_000 - counters.delivered);
    let longest = arrivals.iter().map(|(at, number)| at.as_nanos() - number * 4_000).max().unwrap();
    assert!((150_000..5_000 + 20_000 * 8 + 1).contains(&longest), "a full queue is 160 us long: {longest}");
}

#[test]
fn what_is_over_the_mtu_is_dropped_and_counted() {
    let ethernet = Network { mtu: Some(1500), ..ideal(5) };
    assert_eq!(blast(&ethernet, 10, 1472, Duration::ZERO).1.delivered, 10);
    assert_eq!(blast(&ethernet, 10, 1473, Duration::ZERO).1.too_big, 10);
    assert_eq!(blast(&ideal(5), 1, 65_507, Duration::ZERO).1.delivered, 1);
    assert_eq!(blast(&ideal(5), 1, 65_508, Duration::ZERO).1.too_big, 1);
}

#[test]
fn a_partition_loses_all_that_is_sent_in_it() {
    let network = Network { partitions: vec![at_us(100)..at_us(200)], ..ideal(5) };
    let (arrivals, counters) = spaced(&network, 300);
    assert_eq!(counters.lost, 100);
    assert!(arrivals.iter().all(|(_, number)| !(100..200).contains(number)));
}

#[test]
fn a_slow_receiver_overruns_its_buffer() {
    let (out, mut back) = (ideal(5), ideal(5));
    // The server's processor takes 2 us a datagram; one comes each us.
    back.cost = Duration::from_micros(2);
    let mut sim = Sim::new(
        DATAGRAM,
        (&Network { buffer_bytes: 64 << 10, ..out }, &back),
        Caller::default(),
        vec![Echo::silent()],
        Some,
    );
    sim.command(Ask::Open(PEER, Address::Node(1)));
    for number in 1..=1000 {
        sim.command(Ask::Send(PEER, vec![0; 1024]));
        sim.turn(Wait::Block, at_us(number), &mut |_| {}).unwrap();
    }
    run(&mut sim);
    let counters = sim.counters(0, 1);
    // Half of 1000 are handled while they come, and 64 wait at the end.
    assert!((560..=568).contains(&counters.delivered), "{counters:?}");
    assert_eq!(counters.overrun, 1000 - counters.delivered);
}

#[test]
fn a_node_that_does_not_listen_refuses_and_others_are_unreachable() {
    let mut sim = sim(DATAGRAM, &ideal(5), Echo::default());
    sim.set_listening(1, false);
    sim.command(Ask::Send(PEER, vec![1]));
    sim.command(Ask::Open(Peer(1), Address::Node(9)));
    let told = run(&mut sim);
    assert!(told.contains(&(at_us(10), CallerEvent::Closed(PEER, Closed::Refused))), "{told:?}");
    assert!(told.contains(&(at_us(0), CallerEvent::Closed(Peer(1), Closed::Unreachable))), "{told:?}");
    assert_eq!(sim.counters(0, 1).unclaimed, 1);
    sim.set_listening(1, true);
    sim.command(Ask::Open(PEER, Address::Node(1)));
    sim.command(Ask::Send(PEER, vec![7]));
    assert_eq!(run(&mut sim).last().unwrap().1, CallerEvent::Received(PEER, vec![7]));
}

#[test]
fn a_datagram_arrives_although_its_sender_closed_and_the_answer_finds_nobody() {
    let mut sim = sim(DATAGRAM, &ideal(5), Echo::default());
    sim.command(Ask::Send(PEER, vec![1]));
    sim.command(Ask::Close(PEER));
    run(&mut sim);
    assert_eq!((sim.server(1).received, sim.counters(1, 0).unclaimed), (1, 1));
}

#[test]
fn a_burst_without_end_is_held_back() {
    let mut sim = sim(DATAGRAM, &Network::default(), Echo::silent());
    for _ in 0..100_000 {
        sim.command(Ask::Send(PEER, vec![0; 100]));
    }
    run(&mut sim);
    assert_eq!(sim.counters(0, 1).delivered, 100_000);
    assert!(sim.machine().drained >= 1);
}

#[test]
fn one_seed_is_one_story() {
    let story = |seed| {
        let micros = Duration::from_micros;
        let network =
            Network { jitter: micros(9), loss: 0.1, duplicate: 0.1, reorder: 0.1, seed, ..Network::default() };
        let mut sim = sim(DATAGRAM, &network, Echo::default());
        sim.set_tracing();
        for number in 0..200 {
            sim.command(Ask::Send(PEER, vec![number; 20]));
        }
        (run(&mut sim), sim.trace(), sim.now())
    };
    assert_eq!(story(3), story(3));
    assert_ne!(story(3).1, story(4).1);
}

/// Takes senders of a proof as peers, and answers others with as many bytes as their first one says.
#[derive(Default)]
struct Doubtful {
    opened: u32,
    received: u32,
}

impl Machine for Doubtful {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(..) => self.opened += 1,
            Input::Received(..) => self.received += 1,
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<()> {
        Output::Idle(None)
    }

    fn admits(&mut self, _: Instant, _: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        out.copy(&vec![0; usize::from(datagram[0])]);
        datagram == b"proof"
    }
}

#[test]
fn a_stranger_takes_no_place_and_gets_no_more_than_it_sent() {
    let mut sim = Sim::new(DATAGRAM, (&ideal(3), &ideal(3)), Caller::default(), vec![Doubtful::default()], |()| None);
    sim.command(Ask::Open(PEER, Address::Node(1)));
    run(&mut sim);
    for (message, answered) in [(vec![0, 9], 0), (vec![2, 9], 2), (vec![3, 9], 0), (vec![255], 0)] {
        let before = sim.counters(1, 0);
        sim.command(Ask::Send(PEER, message));
        run(&mut sim);
        let after = sim.counters(1, 0);
        assert_eq!(
            (after.sent - before.sent, after.delivered_bytes - before.delivered_bytes),
            (u64::from(answered > 0), answered)
        );
    }
    assert_eq!((sim.server(1).opened, sim.server(1).received), (0, 0));
    let before = sim.counters(1, 0).sent;
    sim.command(Ask::Send(PEER, b"proof".to_vec()));
    run(&mut sim);
    assert_eq!((sim.server(1).opened, sim.server(1).received, sim.counters(1, 0).sent - before), (1, 1, 0));
}
