//! Both machines over the simulated network: whatever it does, every operation is accounted for exactly once, and nobody who
//! keeps the rules waits for others.

#[path = "../../../../crates/measure/tests/counting/mod.rs"]
mod counting;

use core::time::Duration;
use hodo_machine::{Address, Bytes, Instant, Sampling};
use hodo_raw::{
    Client, ClientConfig, Command, Counters, Direction, Event, Server, ServerCommand, ServerConfig, ServerEvent,
    Transport,
};
use hodo_sim::conformance::{self, Bounds, Case, Crowd, Run};
use hodo_sim::cost::{Allowance, measure_by};
use std::collections::HashMap;

const CHANNELS: u32 = 3;
const OPERATIONS: u64 = 120;
const SIZES: [u32; 6] = [0, 1, 16, 64, 1000, 1400];

fn client(transport: Transport, reconnect: bool, sampling: Sampling) -> Client {
    let mut client = Client::new(ClientConfig {
        transport,
        address: Address::Node(1),
        channels: CHANNELS,
        size_max: 1 << 20,
        acknowledge_every: 4,
        unbounded: false,
        greeting_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        reconnect,
        check: false,
        is_group: false,
        payload: Bytes::new(),
    });
    client.stamps().sampling = sampling;
    client
}

fn server(transport: Transport) -> Server {
    Server::new(ServerConfig {
        transport,
        size_max: 1 << 20,
        pending_max: 1 << 12,
        greeting_timeout: Duration::from_secs(5),
        silence_timeout: Duration::from_secs(60),
        lease: Duration::from_secs(1),
        secret: [1, 2],
    })
}

fn answer(event: ServerEvent) -> Option<ServerCommand> {
    match event {
        ServerEvent::ReportAsked(peer) => Some(ServerCommand::Report { peer, process: Counters::default() }),
        ServerEvent::Misbehaved(..) => None,
    }
}

/// Returns a mixture of all directions and sizes; large ones only for streams, which are cut.
fn commands(seed: u64, transport: Transport, directions: &[Direction]) -> Vec<Command> {
    let mut all: Vec<Command> = (0..OPERATIONS)
        .map(|tag| {
            let pick = (tag * 7 + seed) as usize;
            let large = transport == Transport::Stream && tag % 10 == 0;
            Command::Operation {
                tag,
                channel: tag as u32 % CHANNELS,
                size: if large { 700_000 } else { SIZES[pick % SIZES.len()] },
                direction: directions[pick % directions.len()],
            }
        })
        .collect();
    // Updates go on beside the operations, and end before the last of them.
    let first_after = Duration::from_micros(seed % 100);
    let ask = |channel| Command::Subscribe { channel, size: 64, rate_micro: 5_000_000_000, first_after, queue: 4 };
    all.splice(0..0, (0..CHANNELS).map(ask));
    all.insert(all.len() / 2, Command::Unsubscribe);
    all.push(Command::Flush);
    all
}

const ALL: [Direction; 3] = [Direction::Both, Direction::Send, Direction::Receive];

fn ends(events: &[(Instant, Event)]) -> HashMap<u64, Vec<Event>> {
    let mut ends: HashMap<u64, Vec<Event>> = HashMap::new();
    for (_, event) in events {
        if let Event::Done(tag) | Event::Lost(tag) | Event::Recovered(tag) = event {
            ends.entry(*tag).or_default().push(*event);
        }
    }
    ends
}

/// Operations that have ended, or whose channel has: nothing more will be heard of them.
fn accounted_for(events: &[(Instant, Event)]) -> u64 {
    let ends = ends(events);
    let failed = events.iter().filter_map(|(_, event)| match event {
        Event::Failed { channel, .. } => Some(channel % CHANNELS),
        _ => None,
    });
    let failed: Vec<u32> = failed.collect();
    (0..OPERATIONS).filter(|tag| ends.contains_key(tag) || failed.contains(&(*tag as u32 % CHANNELS))).count() as u64
}

fn finished(events: &[(Instant, Event)]) -> bool {
    accounted_for(events) == OPERATIONS
}

fn each_ends_once(run: &Run<Event>) -> Result<(), String> {
    let ends = ends(&run.events);
    for (tag, events) in &ends {
        match events[..] {
            [Event::Done(_) | Event::Lost(_)] | [Event::Lost(_), Event::Recovered(_)] => {}
            _ => return Err(format!("operation {tag} ended as {events:?}")),
        }
    }
    match accounted_for(&run.events) {
        OPERATIONS => Ok(()),
        count => Err(format!("{count} of {OPERATIONS} operations are accounted for")),
    }
}

fn streams_lose_nothing(run: &Run<Event>) -> Result<(), String> {
    each_ends_once(run)?;
    match run.events.iter().find(|(_, event)| matches!(event, Event::Lost(_) | Event::Recovered(_))) {
        Some((_, event)) => Err(format!("a stream has no {event:?}")),
        None => Ok(()),
    }
}

fn conforms(transport: Transport, reconnect: bool, directions: &'static [Direction], seeds: u64) {
    measure_by(counting::bytes_here);
    let carrier = match transport {
        Transport::Stream => hodo_sim::Transport::Stream,
        Transport::Datagram => hodo_sim::Transport::Datagram,
    };
    let check: fn(&Run<Event>) -> Result<(), String> =
        if transport == Transport::Stream { streams_lose_nothing } else { each_ends_once };
    let case = Case {
        transport: carrier,
        client: &|seed| client(transport, reconnect, if seed % 2 == 0 { Sampling::NONE } else { Sampling::ALL }),
        server: &|_| server(transport),
        answer,
        commands: &|seed| commands(seed, transport, directions),
        finished: &finished,
        check: &check,
        bounds: Bounds { outstanding_bytes: 64 << 20, ..Bounds::default() },
    };
    case.conforms(conformance::seeds(seeds));
}

#[test]
fn streams_account_for_every_operation() {
    conforms(Transport::Stream, false, &ALL, 4);
}

#[test]
fn datagrams_account_for_every_operation() {
    conforms(Transport::Datagram, false, &ALL, 4);
}

#[test]
fn a_connection_for_each_operation() {
    conforms(Transport::Stream, true, &ALL, 2);
}

#[test]
fn nobody_who_keeps_the_rules_waits_for_others() {
    measure_by(counting::bytes_here);
    for (transport, carrier) in
        [(Transport::Stream, hodo_sim::Transport::Stream), (Transport::Datagram, hodo_sim::Transport::Datagram)]
    {
        let operation = |tag, size, direction| vec![Command::Operation { tag, channel: 0, size, direction }];
        let crowd = Crowd {
            transport: carrier,
            server: &|world| {
                let site = world.add_site();
                world.set_opening(site.node, carrier);
                world.start_with(site, server(transport), answer);
                site.node
            },
            client: &|node, _| {
                Client::new(ClientConfig {
                    transport,
                    address: Address::Node(node),
                    channels: 1,
                    size_max: 1 << 20,
                    acknowledge_every: 4,
                    unbounded: false,
                    greeting_timeout: Duration::from_secs(5),
                    timeout: Duration::from_secs(1),
                    reconnect: false,
                    check: false,
                    is_group: false,
                    payload: Bytes::new(),
                })
            },
            operation: &|_, tag| operation(tag, 64, Direction::Both),
            greedy: &|_, tag| match transport {
                Transport::Stream => operation(tag, 200_000, Direction::Receive),
                Transport::Datagram => operation(tag, 1000, Direction::Receive),
            },
            is_done: |event| matches!(event, Event::Done(_)),
            patience: Duration::from_millis(2),
            cost: Allowance::default(),
        };
        crowd.is_fair();
    }
}
