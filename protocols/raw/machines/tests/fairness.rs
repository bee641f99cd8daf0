//! A server's memory is bounded for all its peers together; who takes the most of it is who pays.

use core::time::Duration;
use hodo_machine::{Address, Bytes, Driver, Instant, Wait};
use hodo_raw::{Client, ClientConfig, Command, Direction, Error, Event, Server, ServerConfig, ServerEvent, Transport};
use hodo_sim::{Network, Sim};
use std::sync::{Arc, Mutex};

const SIZE_MAX: u32 = 1 << 20;
const PENDING_MAX: usize = 1 << 10;

/// Links a client with `channels` channels to a server, on a line that takes 8 ms for the largest operation; returns
/// also the errors of the clients that the server ended.
fn link(channels: u32) -> (Sim<Client, Server>, Arc<Mutex<Vec<Error>>>) {
    let client = Client::new(ClientConfig {
        transport: Transport::Stream,
        address: Address::Node(1),
        channels,
        size_max: SIZE_MAX,
        acknowledge_every: 4,
        unbounded: false,
        greeting_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        reconnect: false,
        check: false,
        is_group: false,
        payload: Bytes::new(),
    });
    let server = Server::new(ServerConfig {
        transport: Transport::Stream,
        size_max: SIZE_MAX,
        pending_max: PENDING_MAX,
        greeting_timeout: Duration::from_secs(5),
        silence_timeout: Duration::from_secs(60),
        lease: Duration::from_secs(1),
        secret: [1, 2],
    });
    let ended = Arc::new(Mutex::new(Vec::new()));
    let noted = ended.clone();
    let network = Network { rate: Some(1_000_000_000), ..Network::default() };
    let sim = Sim::pair(hodo_sim::Transport::Stream, &network, client, server, move |event| {
        if let ServerEvent::Misbehaved(_, error) = event {
            noted.lock().unwrap().push(error);
        }
        None
    });
    (sim, ended)
}

/// Returns the client's events of the next `millis` milliseconds.
fn run(sim: &mut Sim<Client, Server>, millis: u64) -> Vec<Event> {
    let until = sim.now() + Duration::from_millis(millis);
    let mut told = Vec::new();
    while sim.now() < until {
        sim.turn(Wait::Block, until, &mut |event| told.push(event)).unwrap();
    }
    told
}

/// Requests far more than the line carries. Neighbours differ in size, so that each is a request of its own.
fn ask_without_end(sim: &mut Sim<Client, Server>, channel: u32, count: u64) {
    for tag in 0..count {
        let size = SIZE_MAX - (tag % 2) as u32;
        sim.command(Command::Operation { tag, channel, size, direction: Direction::Receive });
    }
}

fn failed(told: &[Event]) -> Vec<u32> {
    let failed = told.iter().filter_map(|event| match event {
        Event::Failed { channel, .. } => Some(*channel),
        _ => None,
    });
    failed.collect()
}

#[test]
fn greedy_peers_do_not_take_the_room_of_a_modest_one() {
    const GREEDY: u32 = 2;
    let (mut sim, _) = link(GREEDY + 1);
    run(&mut sim, 1);
    for channel in 0..GREEDY {
        // Nearly half of the room each: together they leave room for sixteen.
        ask_without_end(&mut sim, channel, PENDING_MAX as u64 / 2 - 8);
    }
    let mut told = run(&mut sim, 20);
    for tag in 0..100 {
        sim.command(Command::Operation { tag: 1_000_000 + tag, channel: GREEDY, size: 64, direction: Direction::Both });
    }
    told.extend(run(&mut sim, 100));
    assert!(!failed(&told).contains(&GREEDY), "the modest one was ended: {:?}", failed(&told));
    assert_eq!(failed(&told).len(), 1, "one greedy peer makes room for the others");
    let done = told.iter().filter(|event| matches!(event, Event::Done(1_000_000..))).count();
    assert_eq!(done, 100);
}

#[test]
fn a_single_peer_has_all_the_room_and_no_more() {
    let (mut sim, ended) = link(1);
    run(&mut sim, 1);
    ask_without_end(&mut sim, 0, PENDING_MAX as u64);
    assert_eq!(failed(&run(&mut sim, 20)), []);
    ask_without_end(&mut sim, 0, 100);
    assert_eq!(failed(&run(&mut sim, 20)), [0]);
    assert_eq!(*ended.lock().unwrap(), [Error::TooMany { max: PENDING_MAX }]);
    assert!(sim.now() < Instant::ZERO + Duration::from_secs(1));
}
