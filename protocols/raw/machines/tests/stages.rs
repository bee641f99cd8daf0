//! The stages of an operation over a network whose truth is known, to the nanosecond.

use core::time::Duration;
use hodo_machine::{Address, Bytes, Driver, Instant, Sampling, Stamp, Wait};
use hodo_raw::stages::{AWAY, QUEUE, SEND};
use hodo_raw::{
    Client, ClientConfig, Command, Counters, Direction, Event, Server, ServerCommand, ServerConfig, ServerEvent,
    Transport,
};
use hodo_sim::{Network, Sim};

const DELAY_NS: u64 = 5_000;
const COST_NS: u64 = 100;

type Pair = Sim<Client, Server>;

fn pair(transport: Transport, sampling: Sampling) -> Pair {
    let second = Duration::from_secs(1);
    let mut client = Client::new(ClientConfig {
        transport,
        address: Address::Node(1),
        channels: 1,
        size_max: 1 << 20,
        acknowledge_every: 1,
        unbounded: false,
        greeting_timeout: second,
        timeout: second,
        reconnect: false,
        check: false,
        is_group: false,
        payload: Bytes::new(),
    });
    client.stamps().sampling = sampling;
    let server = Server::new(ServerConfig {
        transport,
        size_max: 1 << 20,
        pending_max: 1000,
        greeting_timeout: second,
        silence_timeout: second,
        lease: second,
        secret: [1, 2],
    });
    let network =
        Network { delay: Duration::from_nanos(DELAY_NS), cost: Duration::from_nanos(COST_NS), ..Network::default() };
    let carrier = match transport {
        Transport::Stream => hodo_sim::Transport::Stream,
        Transport::Datagram => hodo_sim::Transport::Datagram,
    };
    let answer = |event| match event {
        ServerEvent::ReportAsked(peer) => Some(ServerCommand::Report { peer, process: Counters::default() }),
        ServerEvent::Misbehaved(..) => None,
    };
    let mut sim = Sim::pair(carrier, &network, client, server, answer);
    until(&mut sim, |event| matches!(event, Event::Ready { .. }));
    sim
}

/// Lets time go on until the client's application is told of this.
fn until(sim: &mut Pair, wanted: impl Fn(&Event) -> bool) {
    let (end, mut seen) = (sim.now() + Duration::from_secs(1), false);
    while !seen {
        assert!(sim.now() < end, "nothing comes");
        sim.turn(Wait::Block, end, &mut |event| seen |= wanted(&event)).expect("time goes on");
    }
}

/// Stamps of operations of this direction, one after the other; when each was started and was done.
fn stamped(sim: &mut Pair, direction: Direction, tags: u64) -> Vec<(Instant, Vec<Stamp>, Instant)> {
    let mut all = Vec::new();
    for tag in 0..tags {
        let (start, mut stamps) = (sim.now(), Vec::new());
        sim.command(Command::Operation { tag, channel: 0, size: 64, direction });
        until(sim, |event| *event == Event::Done(tag));
        sim.machine_mut().stamps().hand_over(&mut stamps);
        all.push((start, stamps, sim.now()));
    }
    all
}

fn report(sim: &mut Pair) -> Vec<(&'static str, u64, u64)> {
    sim.command(Command::Report);
    until(sim, |event| matches!(event, Event::Report { .. }));
    sim.machine_mut().far_stages().iter().map(|(stage, spans)| (stage, spans.count(), spans.sum_ns())).collect()
}

const DIRECTIONS: [Direction; 3] = [Direction::Both, Direction::Send, Direction::Receive];

#[test]
fn the_stages_of_an_operation_are_its_time() {
    for transport in [Transport::Stream, Transport::Datagram] {
        for direction in DIRECTIONS {
            let mut sim = pair(transport, Sampling::ALL);
            for (tag, (start, stamps, done)) in (0..).zip(stamped(&mut sim, direction, 20)) {
                let at = |nanos| start + Duration::from_nanos(nanos);
                // The client's processor sends and receives, and so does the server's; a stream is cut now and then.
                let back = 2 * DELAY_NS + 4 * COST_NS;
                let cuts = done.nanos_since(at(back)) / COST_NS;
                assert!(cuts == 0 || transport == Transport::Stream && cuts <= 2, "{cuts} reads more");
                let expected = [(QUEUE, 0), (SEND, COST_NS), (AWAY, back + cuts * COST_NS)];
                let expected = expected.map(|(stage, nanos)| Stamp { stage, tag, at: at(nanos) });
                assert_eq!(stamps, expected, "{transport:?} {direction:?}");
                assert_eq!(done, stamps[2].at);
            }
        }
    }
}

#[test]
fn the_far_end_tells_of_its_stages_from_the_first_report_on() {
    for transport in [Transport::Stream, Transport::Datagram] {
        for direction in DIRECTIONS {
            let mut sim = pair(transport, Sampling::ALL);
            stamped(&mut sim, direction, 5);
            assert_eq!(report(&mut sim), [(QUEUE, 0, 0), (SEND, 0, 0)], "{direction:?}");
            stamped(&mut sim, direction, 7);
            for _ in 0..2 {
                assert_eq!(report(&mut sim), [(QUEUE, 7, 0), (SEND, 7, 7 * COST_NS)], "{direction:?}");
            }
        }
    }
}

#[test]
fn nothing_is_stamped_unless_it_is_wanted() {
    let mut sim = pair(Transport::Stream, Sampling::NONE);
    assert!(stamped(&mut sim, Direction::Both, 3).iter().all(|(_, stamps, _)| stamps.is_empty()));
    report(&mut sim);
    stamped(&mut sim, Direction::Both, 3);
    assert_eq!(report(&mut sim), [(QUEUE, 0, 0), (SEND, 0, 0)]);
}

#[test]
fn one_operation_in_a_power_of_two_is_enough() {
    let mut sim = pair(Transport::Datagram, Sampling::ending_in_zeros(2));
    let counts: Vec<usize> = stamped(&mut sim, Direction::Both, 8).iter().map(|(_, stamps, _)| stamps.len()).collect();
    assert_eq!(counts, [3, 0, 0, 0, 3, 0, 0, 0]);
}
