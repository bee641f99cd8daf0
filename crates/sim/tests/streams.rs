//! Streams over the simulated network: bytes in order under everything, and what faults cost.
use crate::common;

use common::{Ask, Caller, CallerEvent, Echo, PEER, at_us, ideal, run, sim};
use hodo_machine::{Address, Closed, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use hodo_sim::{Congestion, Network, STREAM_HEADERS, Sim, Transport};
use std::time::Duration;

const STREAM: Transport = Transport::Stream;

/// Streams so many bytes there and back; returns when the last was back.
fn echo(network: &Network, count: u64) -> (Instant, hodo_sim::Sim<common::Caller, Echo>) {
    let mut sim = sim(STREAM, network, Echo::default());
    sim.machine_mut().counts = true;
    sim.command(Ask::Stream(PEER, count));
    let told = run(&mut sim);
    assert_eq!(told.len(), 1, "{:?}", &told[1..]);
    assert_eq!(told[0].1, CallerEvent::Opened(PEER));
    assert_eq!((sim.machine().counted, sim.server(1).received, sim.outstanding_bytes()), (count, count, 0));
    (sim.now(), sim)
}

#[test]
fn connecting_takes_a_round_trip_and_so_does_an_exchange() {
    let mut sim = sim(STREAM, &ideal(7), Echo::asking());
    assert_eq!(run(&mut sim), [(at_us(14), CallerEvent::Opened(PEER))]);
    sim.command(Ask::Send(PEER, vec![9]));
    assert_eq!(run(&mut sim), [(at_us(28), CallerEvent::Received(PEER, vec![9]))]);
}

#[test]
fn bytes_keep_their_order_under_everything() {
    let micros = Duration::from_micros;
    let networks = [
        ideal(5),
        Network::default(),
        Network { jitter: micros(50), ..ideal(5) },
        Network { loss: 0.3, ..ideal(5) },
        Network { duplicate: 0.3, reorder: 0.3, corrupt: 0.1, loss: 0.1, jitter: micros(9), ..ideal(5) },
        Network { rate: Some(10_000_000_000), mtu: Some(1500), queue_bytes: 1, ..ideal(5) },
        Network { buffer_bytes: 64 << 10, ..Network::default() },
        Network { partitions: vec![at_us(30)..at_us(3000)], ..ideal(5) },
    ];
    for network in networks {
        for seed in 0..4 {
            let (_, sim) = echo(&Network { seed, ..network.clone() }, 1_000_000);
            let landed = sim.server(1).landed;
            assert!(landed > 0 && landed < 1_000_000, "landings are used sometimes: {landed}");
        }
    }
}

#[test]
fn the_rate_is_kept_to_the_byte() {
    let network = Network { rate: Some(1_000_000_000), mtu: Some(1500), overhead_bytes: 38, ..ideal(50) };
    let mut sim = sim(STREAM, &network, Echo::silent());
    // The machine writes 10,000 bytes at once, but the stream makes full segments of all that it has written.
    sim.command(Ask::Stream(PEER, 1448 * 10_000));
    run(&mut sim);
    let arrivals = &sim.server(1).arrivals;
    let counters = sim.counters(0, 1);
    let wire = counters.sent_bytes + counters.sent * u64::from(STREAM_HEADERS + 38);
    let handshake = 2 * (50_000 + 90 * 8);
    assert_eq!(arrivals.last().unwrap().0.as_nanos(), handshake + (wire - 90) * 8 + 50_000);
    let seconds = (arrivals.last().unwrap().0.as_nanos() - handshake) as f64 / 1e9;
    let rate = sim.server(1).received as f64 * 8.0 / seconds;
    let limit = sim.model().0.payload_bits_per_s(1).unwrap();
    assert!(rate < limit && rate > 0.99 * limit, "{rate} of {limit}");
    assert!(sim.machine().drained > 10, "the queue pushes back");
}

#[test]
fn two_streams_share_a_line_evenly() {
    let network = Network { rate: Some(1_000_000_000), mtu: Some(1500), queue_bytes: 10_000, ..ideal(5) };
    let mut sim = sim(STREAM, &network, Echo::silent());
    sim.command(Ask::Open(Peer(1), Address::Node(1)));
    sim.command(Ask::Send(PEER, vec![1; 200_000]));
    sim.command(Ask::Send(Peer(1), vec![2; 200_000]));
    run(&mut sim);
    let half = &sim.server(1).arrivals[..sim.server(1).arrivals.len() / 2];
    let ones = half.iter().filter(|(_, bytes)| bytes[0] == 1).count();
    assert!((half.len() * 4 / 10..half.len() * 6 / 10).contains(&ones), "{ones} of {}", half.len());
}

#[test]
fn a_lost_segment_comes_late_and_holds_up_the_rest() {
    // Without congestion control after the round-trip and a millisecond; with it after the least timeout.
    assert_eq!(late(Congestion::None), at_us(100 + 10 + 1000 + 5));
    assert!((at_us(200_000)..at_us(200_200)).contains(&late(Congestion::Cubic)));
}

/// Returns when a segment that was lost arrives.
fn late(congestion: Congestion) -> Instant {
    let network = Network { partitions: vec![at_us(100)..at_us(101)], congestion, ..ideal(5) };
    let mut sim = sim(STREAM, &network, Echo::silent());
    let _ = run(&mut sim);
    sim.turn(Wait::Block, at_us(100), &mut |_| {}).unwrap();
    sim.command(Ask::Send(PEER, vec![1]));
    sim.turn(Wait::Block, at_us(102), &mut |_| {}).unwrap();
    sim.command(Ask::Send(PEER, vec![2]));
    run(&mut sim);
    let bytes: Vec<u8> = sim.server(1).arrivals.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    assert_eq!(bytes, [1, 2]);
    assert_eq!((sim.counters(0, 1).lost, sim.counters(0, 1).retransmitted), (1, 1));
    sim.server(1).arrivals[0].0
}

#[test]
fn a_cut_resets_both_sides_and_one_may_connect_again() {
    let mut sim = sim(STREAM, &Network { cuts: vec![at_us(100)], ..ideal(5) }, Echo::default());
    let told = run(&mut sim);
    assert_eq!(told[1], (at_us(100), CallerEvent::Closed(PEER, Closed::Reset)));
    assert_eq!(sim.server(1).closed, [Closed::Reset]);
    sim.command(Ask::Send(PEER, vec![1]));
    sim.command(Ask::Open(PEER, Address::Node(1)));
    sim.command(Ask::Send(PEER, vec![2]));
    assert_eq!(run(&mut sim).last().unwrap().1, CallerEvent::Received(PEER, vec![2]));
    assert_eq!((sim.server(1).opened, sim.server(1).received), (2, 1));
}

#[test]
fn segments_cut_their_stream_as_often_as_asked() {
    let mut reset = 0;
    for seed in 0..400 {
        let mut sim = sim(STREAM, &Network { cut: 0.25, seed, ..ideal(5) }, Echo::silent());
        sim.command(Ask::Send(PEER, vec![1]));
        reset += run(&mut sim).iter().filter(|(_, told)| *told == CallerEvent::Closed(PEER, Closed::Reset)).count();
        assert_eq!(sim.outstanding_bytes(), 0);
    }
    assert!((60..140).contains(&reset), "{reset}");
}

#[test]
fn closing_sends_what_was_written_and_the_far_end_learns_of_it() {
    let mut sim = sim(STREAM, &Network::default(), Echo::default());
    let _ = run(&mut sim);
    for _ in 0..100 {
        sim.command(Ask::Send(PEER, vec![5; 9999]));
    }
    sim.command(Ask::Close(PEER));
    assert_eq!(run(&mut sim), []);
    assert_eq!(sim.server(1).received, 999_900);
    assert_eq!(sim.server(1).closed, [Closed::Finished]);
    assert_eq!(sim.outstanding_bytes(), 0);
}

#[test]
fn connecting_fails_as_it_should() {
    let partition = vec![Instant::ZERO..at_us(10_000_000)];
    let unreachable = Network { partitions: partition, connect_timeout: Duration::from_millis(30), ..ideal(5) };
    let told = run(&mut sim(STREAM, &unreachable, Echo::default()));
    assert_eq!(told, [(at_us(30_000), CallerEvent::Closed(PEER, Closed::TimedOut))]);

    let mut sim = sim(STREAM, &ideal(5), Echo::default());
    sim.set_listening(1, false);
    sim.command(Ask::Open(Peer(1), Address::Path("/nowhere".to_owned())));
    let told = run(&mut sim);
    assert!(told.contains(&(at_us(10), CallerEvent::Closed(PEER, Closed::Refused))), "{told:?}");
    assert!(told.contains(&(at_us(0), CallerEvent::Closed(Peer(1), Closed::Unreachable))), "{told:?}");
}

#[test]
fn a_stream_into_a_partition_times_out_at_both_ends() {
    times_out(Congestion::None, 1..20);
    times_out(Congestion::Cubic, 100..1000);
}

/// Checks that a stream gives up after its fifteenth attempt, which takes so many seconds.
fn times_out(congestion: Congestion, seconds: std::ops::Range<u64>) {
    let network = Network { partitions: vec![at_us(100)..at_us(1_000_000_000)], congestion, ..ideal(5) };
    let mut sim = sim(STREAM, &network, Echo::default());
    let _ = run(&mut sim);
    sim.turn(Wait::Block, at_us(100), &mut |_| {}).unwrap();
    sim.command(Ask::Send(PEER, vec![1]));
    let told = run(&mut sim);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1, CallerEvent::Closed(PEER, Closed::TimedOut));
    assert!(seconds.contains(&(told[0].0.as_nanos() / 1_000_000_000)), "{:?}", told[0].0);
    assert_eq!(sim.server(1).closed, [Closed::TimedOut]);
}

#[test]
fn one_seed_is_one_story() {
    let story = |seed| {
        let network = Network { jitter: Duration::from_micros(9), loss: 0.1, seed, ..Network::default() };
        let mut sim = sim(STREAM, &network, Echo::default());
        sim.set_tracing();
        sim.command(Ask::Stream(PEER, 300_000));
        (run(&mut sim), sim.trace(), sim.now())
    };
    assert_eq!(story(3), story(3));
    assert_ne!(story(3).1, story(4).1);
}

#[test]
fn ten_thousand_connections_come_and_go() {
    let mut sim = sim(STREAM, &Network::default(), Echo::default());
    for number in 1..10_000 {
        sim.command(Ask::Open(Peer(number), Address::Node(1)));
        sim.command(Ask::Send(Peer(number), vec![1; 10]));
    }
    let told = run(&mut sim);
    let received =
        told.iter().filter_map(|(_, told)| if let CallerEvent::Received(_, bytes) = told { Some(bytes) } else { None });
    assert_eq!(received.map(Vec::len).sum::<usize>(), 99_990);
    for number in 0..10_000 {
        sim.command(Ask::Close(Peer(number)));
    }
    assert_eq!(run(&mut sim), []);
    assert_eq!((sim.server(1).closed.len(), sim.outstanding_bytes()), (10_000, 0));
}

/// A machine that has room for some more bytes every millisecond, until all have come.
#[derive(Default)]
struct Sipper {
    kept: u64,
    kept_max: u64,
    received: u64,
    total: u64,
    due: Option<Instant>,
}

impl Sipper {
    const ROOM: u64 = 10_000;
}

impl Machine for Sipper {
    type Command = ();
    type Event = ();

    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Received(_, bytes) => {
                assert!(self.kept < Self::ROOM, "bytes came without room");
                self.kept += bytes.len() as u64;
                self.received += bytes.len() as u64;
                self.kept_max = self.kept_max.max(self.kept);
            }
            Input::Opened(..) => self.due = Some(now),
            Input::Elapsed => self.kept = 0,
            _ => {}
        }
        if self.due.is_some_and(|due| due <= now) {
            self.due = (self.received < self.total).then(|| now + Duration::from_millis(1));
        }
    }

    fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<()> {
        Output::Idle(self.due)
    }

    fn has_room(&self, _: Peer) -> bool {
        self.kept < Self::ROOM
    }
}

#[test]
fn a_machine_without_room_is_sent_no_more_than_the_stream_holds() {
    for seed in 0..20 {
        let total = 2_000_000;
        let network = Network { seed, loss: 0.01 * (seed % 3) as f64, buffer_bytes: 64 << 10, ..ideal(5) };
        let sipper = Sipper { total, ..Sipper::default() };
        let mut sim = Sim::pair(STREAM, &network, Caller::default(), sipper, |()| None);
        sim.command(Ask::Open(PEER, Address::Node(1)));
        sim.command(Ask::Stream(PEER, total));
        run(&mut sim);
        let sipper = sim.server(1);
        assert_eq!((sipper.received, sim.outstanding_bytes()), (total, 0));
        assert!(sipper.kept_max < Sipper::ROOM + (64 << 10), "{} bytes at once", sipper.kept_max);
        assert!(sim.now() > at_us(1_000 * total / (Sipper::ROOM + (64 << 10))), "{:?}", sim.now());
    }
}
