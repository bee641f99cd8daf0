//! How virtual time goes on, and how nodes and directions differ.
use crate::common;

use common::{Ask, Caller, CallerEvent, Echo, PEER, at_us, ideal, run, sim};
use hodo_machine::{Address, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use hodo_sim::{Network, Sim, Transport};

const DATAGRAM: Transport = Transport::Datagram;

#[test]
fn a_look_takes_a_moment_so_that_looking_gets_on() {
    let mut sim = sim(DATAGRAM, &Network::default(), Echo::default());
    sim.command(Ask::Send(PEER, vec![1]));
    let (mut looks, mut received) = (0, false);
    while !received {
        looks += 1;
        sim.turn(Wait::Never, Instant::MAX, &mut |event| received |= matches!(event, CallerEvent::Received(..)))
            .unwrap();
    }
    assert!((90..120).contains(&looks), "{looks}");
    assert!((10_400..10_600).contains(&sim.now().as_nanos()), "{:?}", sim.now());
}

#[test]
fn a_turn_keeps_to_its_time() {
    let mut sim = sim(DATAGRAM, &ideal(5), Echo::default());
    sim.command(Ask::Send(PEER, vec![1]));
    sim.turn(Wait::Block, at_us(3), &mut |_| {}).unwrap();
    sim.turn(Wait::Block, at_us(3), &mut |event| panic!("{event:?}")).unwrap();
    assert_eq!(sim.now(), at_us(3));
    let mut told = Vec::new();
    sim.turn(Wait::Block, at_us(50), &mut |event| told.push(event)).unwrap();
    assert_eq!((sim.now(), told.len()), (at_us(10), 1));
    sim.turn(Wait::Block, at_us(50), &mut |event| panic!("{event:?}")).unwrap();
    assert_eq!(sim.now(), at_us(50));
}

/// Wants to be told at once, always.
struct Impatient {
    elapsed: u64,
}

impl Machine for Impatient {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        self.elapsed += u64::from(matches!(input, Input::Elapsed));
    }

    fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<()> {
        Output::Idle(Some(Instant::ZERO))
    }
}

#[test]
fn a_deadline_in_the_past_cannot_stop_time() {
    let (client, server) = (Impatient { elapsed: 0 }, Impatient { elapsed: 0 });
    let mut sim = Sim::pair(DATAGRAM, &ideal(5), client, server, |()| None);
    sim.turn(Wait::Block, at_us(1), &mut |()| {}).unwrap();
    assert_eq!((sim.now(), sim.machine().elapsed, sim.server(1).elapsed), (at_us(1), 1001, 1001));
}

#[test]
fn directions_differ_and_servers_have_lines_of_their_own() {
    let mut sim =
        Sim::new(DATAGRAM, (&ideal(1), &ideal(3)), Caller::default(), vec![Echo::default(), Echo::default()], Some);
    for (peer, node, count) in [(PEER, 1, 1), (Peer(1), 2, 2)] {
        sim.command(Ask::Open(peer, Address::Node(node)));
        (0..count).for_each(|_| sim.command(Ask::Send(peer, vec![7])));
    }
    let told = run(&mut sim);
    let received: Vec<_> = told.iter().filter(|(_, told)| matches!(told, CallerEvent::Received(..))).collect();
    assert!(received.len() == 3 && received.iter().all(|(at, _)| *at == at_us(4)), "{received:?}");
    assert_eq!((sim.counters(0, 1).delivered, sim.counters(0, 2).delivered, sim.counters(2, 0).delivered), (1, 2, 2));
}

#[test]
fn a_simulation_can_be_sent_to_a_thread() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&sim(DATAGRAM, &ideal(5), Echo::default()));
}
