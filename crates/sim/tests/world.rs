//! A world of machines of several types, to which things happen.
use crate::common;

use common::{Ask, Caller, CallerEvent, Echo, PEER, at_us, ideal};
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_sim::{BROADCAST, Death, FIRST_GROUP, Network, Site, Transport, World};
use std::time::Duration;

/// Runs until nothing is left to happen by then; returns what this caller was told.
fn told_until(world: &mut World, site: Site<Caller>, until: Instant) -> Vec<CallerEvent> {
    let mut told = Vec::new();
    while world.turn(until).is_some() {
        told.extend(std::iter::from_fn(|| world.take_event(site)));
    }
    told
}

fn told(world: &mut World, site: Site<Caller>) -> Vec<CallerEvent> {
    told_until(world, site, Instant::MAX)
}

fn open(world: &mut World, site: Site<Caller>, peer: Peer, to: u32) {
    world.command(site, Ask::Open(peer, Address::Node(to)));
    let _ = world.turn(world.now());
}

/// Takes in whatever comes, and counts; is told each microsecond that time has passed.
#[derive(Default)]
struct Clockwork {
    elapsed: u64,
    received: u64,
    due: Option<Instant>,
}

impl Machine for Clockwork {
    type Command = ();
    type Event = ();

    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Elapsed => {
                self.elapsed += 1;
                self.due = Some(now + Duration::from_micros(1));
            }
            Input::Received(..) => self.received += 1,
            _ => {}
        }
    }

    fn poll(&mut self, now: Instant, _: &mut Outbox) -> Output<()> {
        Output::Idle(Some(*self.due.get_or_insert(now)))
    }
}

#[test]
fn machines_of_any_types_meet_and_one_node_speaks_streams_and_datagrams() {
    let mut world = World::new(&ideal(5));
    let [first, second] = [(); 2].map(|()| world.add(Caller::default()));
    let clockwork = world.add(Clockwork::default());
    open(&mut world, first, PEER, second.node);
    assert_eq!(told_until(&mut world, first, at_us(20)), [CallerEvent::Opened(PEER)]);
    world.set_opening(first.node, Transport::Datagram);
    open(&mut world, first, Peer(1), clockwork.node);
    world.set_opening(second.node, Transport::Datagram);
    open(&mut world, second, PEER, first.node);
    let accepted = Peer(Peer::FIRST_ACCEPTED);
    for (site, peer) in [(first, PEER), (second, accepted), (first, Peer(1)), (second, PEER)] {
        world.command(site, Ask::Send(peer, vec![1, 2]));
    }
    let told = told_until(&mut world, first, at_us(100));
    let received = |told: &[CallerEvent]| told.iter().filter(|told| matches!(told, CallerEvent::Received(..))).count();
    // A stream that it opened, and a datagram of a stranger.
    assert_eq!(received(&told), 2, "{told:?}");
    assert!(told.contains(&CallerEvent::Opened(accepted)), "{told:?}");
    assert_eq!(world.machine(clockwork).unwrap().received, 1);
    assert!(world.machine(clockwork).unwrap().elapsed > 90);
}

#[test]
fn time_is_kept_where_messages_never_stop() {
    let mut world = World::new(&Network { cost: Duration::from_nanos(700), ..ideal(5) });
    let clockwork = world.add(Clockwork::default());
    let sites = [(); 4].map(|()| world.add(Caller::default()));
    for site in sites {
        world.set_opening(site.node, Transport::Datagram);
        open(&mut world, site, PEER, clockwork.node);
        for _ in 0..1000 {
            world.command(site, Ask::Send(PEER, vec![0; 10]));
        }
    }
    while world.turn(at_us(500)).is_some() {
        sites.iter().for_each(|site| while world.take_event(*site).is_some() {});
    }
    let machine = world.machine(clockwork).unwrap();
    assert!(machine.received > 600 && machine.elapsed > 300, "{} {}", machine.received, machine.elapsed);
}

#[test]
fn a_broadcast_reaches_all_and_a_group_its_members_who_know_where_it_came_to_and_answer() {
    let mut world = World::new(&ideal(5));
    let caller = world.add(Caller::default());
    world.set_opening(caller.node, Transport::Datagram);
    let echoes = [(); 3].map(|()| world.add(Echo::default()));
    world.join(echoes[1].node, FIRST_GROUP);
    for (peer, group) in [(PEER, BROADCAST), (Peer(1), FIRST_GROUP)] {
        open(&mut world, caller, peer, group);
        world.command(caller, Ask::Send(peer, vec![peer.0 as u8]));
        world.command(caller, Ask::Send(peer, vec![peer.0 as u8]));
    }
    let told = told(&mut world, caller);
    let count = |echo: Site<Echo>| world.machine(echo).unwrap().received;
    assert_eq!(echoes.map(count), [2, 4, 2]);
    let addresses = |echo: Site<Echo>| world.machine(echo).unwrap().came_to.clone();
    let (all, group) = (Address::Node(BROADCAST), Address::Node(FIRST_GROUP));
    assert_eq!(echoes.map(addresses), [vec![all.clone()], vec![all.clone(), group], vec![all]]);
    // Each of those that answer becomes a peer of its own, for each address that it answers from.
    let opened = told.iter().filter(|told| matches!(told, CallerEvent::Opened(peer) if peer.is_accepted())).count();
    let answers =
        told.iter().filter(|told| matches!(told, CallerEvent::Received(peer, _) if peer.is_accepted())).count();
    assert_eq!((opened, answers), (4, 8), "{told:?}");
}

#[test]
fn a_killed_process_resets_its_streams_and_refuses_new_ones_until_it_starts_again() {
    let mut world = World::new(&ideal(5));
    let (caller, echo) = (world.add(Caller::default()), world.add(Echo::default()));
    open(&mut world, caller, PEER, echo.node);
    told(&mut world, caller);
    world.command(caller, Ask::Send(PEER, vec![1; 10]));
    let soon = world.now() + Duration::from_micros(7);
    assert_eq!(told_until(&mut world, caller, soon), []);
    world.kill(echo.node, Death::Reset);
    assert!(!world.is_running(echo.node) && world.machine(echo).is_none());
    // What it has sent arrives before the end does.
    assert_eq!(
        told(&mut world, caller),
        [CallerEvent::Received(PEER, vec![1; 10]), CallerEvent::Closed(PEER, Closed::Reset)]
    );
    open(&mut world, caller, PEER, echo.node);
    assert_eq!(told(&mut world, caller), [CallerEvent::Closed(PEER, Closed::Refused)]);
    world.start(echo, Echo::default());
    open(&mut world, caller, PEER, echo.node);
    world.command(caller, Ask::Send(PEER, vec![2]));
    assert_eq!(told(&mut world, caller), [CallerEvent::Opened(PEER), CallerEvent::Received(PEER, vec![2])]);
    assert_eq!(world.machine(echo).unwrap().opened, 1);
    assert_eq!(world.outstanding_bytes(), 0);
}

#[test]
fn nobody_learns_of_a_host_that_is_gone_but_by_what_is_never_answered() {
    let mut world = World::new(&ideal(5));
    let (caller, echo) = (world.add(Caller::default()), world.add(Echo::default()));
    open(&mut world, caller, PEER, echo.node);
    told(&mut world, caller);
    world.kill(echo.node, Death::Silent);
    assert_eq!(told(&mut world, caller), []);
    open(&mut world, caller, Peer(1), echo.node);
    assert_eq!(told(&mut world, caller), [CallerEvent::Closed(Peer(1), Closed::TimedOut)]);
    world.start(echo, Echo::default());
    world.command(caller, Ask::Send(PEER, vec![1]));
    let before = world.now();
    assert_eq!(told(&mut world, caller), [CallerEvent::Closed(PEER, Closed::TimedOut)]);
    assert!(world.now() - before > Duration::from_secs(1));
    assert_eq!((world.machine(echo).unwrap().received, world.outstanding_bytes()), (0, 0));
}

#[test]
fn a_stopped_machine_goes_on_with_what_it_has_missed() {
    let mut world = World::new(&ideal(5));
    let (caller, echo) = (world.add(Caller::default()), world.add(Echo::default()));
    let clockwork = world.add(Clockwork::default());
    world.turn(at_us(10));
    world.stop(echo.node);
    world.stop(clockwork.node);
    open(&mut world, caller, PEER, echo.node);
    // Its system accepts.
    assert_eq!(told_until(&mut world, caller, at_us(100)), [CallerEvent::Opened(PEER)]);
    world.command(caller, Ask::Send(PEER, vec![1]));
    assert_eq!(told_until(&mut world, caller, at_us(1000)), []);
    let elapsed = world.machine(clockwork).unwrap().elapsed;
    assert!((9..=12).contains(&elapsed) && world.machine(echo).unwrap().opened == 0, "{elapsed}");
    world.resume(echo.node);
    world.resume(clockwork.node);
    assert_eq!(told_until(&mut world, caller, at_us(1100)), [CallerEvent::Received(PEER, vec![1])]);
    assert!((elapsed + 90..elapsed + 110).contains(&world.machine(clockwork).unwrap().elapsed));
}

#[test]
fn who_is_cut_off_is_heard_again_afterwards() {
    let mut world = World::new(&ideal(5));
    let (caller, echo) = (world.add(Caller::default()), world.add(Echo::default()));
    open(&mut world, caller, PEER, echo.node);
    told(&mut world, caller);
    world.cut_off(echo.node, true);
    world.command(caller, Ask::Send(PEER, vec![1]));
    assert_eq!(told_until(&mut world, caller, at_us(100_000)), []);
    world.cut_off(echo.node, false);
    assert_eq!(told(&mut world, caller), [CallerEvent::Received(PEER, vec![1])]);
}

#[test]
fn directions_and_transports_have_networks_of_their_own() {
    let mut world = World::new(&ideal(5));
    let (caller, echo) = (world.add(Caller::default()), world.add(Echo::default()));
    world.set_network(echo.node, caller.node, &ideal(50));
    world.set_network_of(Transport::Datagram, caller.node, echo.node, &ideal(500));
    open(&mut world, caller, PEER, echo.node);
    assert_eq!((told(&mut world, caller), world.now()), (vec![CallerEvent::Opened(PEER)], at_us(55)));
    world.set_opening(caller.node, Transport::Datagram);
    open(&mut world, caller, Peer(1), echo.node);
    world.command(caller, Ask::Send(Peer(1), vec![1]));
    told(&mut world, caller);
    assert_eq!(world.now(), at_us(55 + 550));
    assert_eq!(world.counters(Transport::Datagram, caller.node, echo.node).delivered, 1);
    assert_eq!(world.counters(Transport::Stream, caller.node, echo.node).delivered, 1);
}

#[test]
fn a_stream_can_be_reset_from_outside() {
    let mut world = World::new(&ideal(5));
    let (caller, echo) = (world.add(Caller::default()), world.add(Echo::default()));
    open(&mut world, caller, PEER, echo.node);
    told(&mut world, caller);
    let streams = world.streams();
    assert_eq!(streams[0].nodes, [caller.node, echo.node]);
    world.reset(streams[0], Duration::from_micros(3));
    assert_eq!(told(&mut world, caller), [CallerEvent::Closed(PEER, Closed::Reset)]);
    assert_eq!((world.machine(echo).unwrap().closed.as_slice(), world.streams().len()), (&[Closed::Reset][..], 0));
}

/// Compares runs in which machines are late, killed and started again.
#[test]
fn one_seed_is_one_story() {
    let story = |seed| {
        let mut world = World::new(&Network { loss: 0.1, seed, ..Network::default() });
        world.set_tracing();
        let (caller, echo) = (world.add(Caller::default()), world.add(Echo::default()));
        world.set_late(echo.node, 0.5, Duration::from_micros(300));
        for round in 0..20 {
            open(&mut world, caller, Peer(round), echo.node);
            world.command(caller, Ask::Send(Peer(round), vec![1; 1000]));
            told_until(&mut world, caller, at_us(u64::from(round) * 1000));
            if round % 5 == 0 {
                world.kill(echo.node, if round % 2 == 0 { Death::Reset } else { Death::Silent });
                world.start(echo, Echo::default());
            }
        }
        told(&mut world, caller);
        (world.trace(), world.now(), world.outstanding_bytes())
    };
    assert_eq!(story(3), story(3));
    assert_ne!(story(3).0, story(4).0);
    assert_eq!(story(3).2, 0);
}
