//! Both machines over the simulated network: whatever it does, every execution ends once, updates are in order and none is missing in
//! silence, and nobody who keeps the rules waits for others.

#[path = "../../../../crates/measure/tests/counting/mod.rs"]
mod counting;
mod simulated_chaos;
mod simulation;

use hodo_machine::{Address, Instant};
use hodo_pva::client::{Client, ClientConfig, Command, Event, Kind};
use hodo_pva::server::ServerConfig;
use hodo_sim::Transport;
use hodo_sim::conformance::{self, Bounds, Case, Crowd, Run};
use hodo_sim::cost::{Allowance, measure_by};
use simulation::{App, AppEvent, Source, answer, ends, in_order, operation};
use std::time::Duration;

const EXECUTIONS: u32 = 60;
/// The monitors: without a pipeline, and with one.
const MONITORS: [(u32, &str); 2] =
    [(EXECUTIONS, "record[queueSize=3]"), (EXECUTIONS + 1, "record[queueSize=5,pipeline=true]")];
const NAMES: [&str; 4] = ["box", "asked", "wave", "count"];
const TICK: Duration = Duration::from_micros(700);
const TICKS: u32 = 60;

fn commands(seed: u64) -> Vec<Command> {
    let open =
        |(channel, name): (u32, &&str)| Command::Open { channel, name: (*name).into(), server: Some(Address::Node(1)) };
    let mut all: Vec<Command> = (0..).zip(&NAMES).map(open).collect();
    for (operation, request) in MONITORS {
        let request = Box::new(request.parse().expect("a request"));
        all.push(Command::Prepare { operation, channel: 3, kind: Kind::Monitor, request });
        all.push(Command::Execute { operation });
    }
    all.extend((0..EXECUTIONS).flat_map(|number| operation(number, seed)));
    all
}

/// Tells whether all executions have ended, and the source has had its time.
fn finished(events: &[(Instant, AppEvent)]) -> bool {
    let all = ends(events.iter().map(|(_, told)| told), EXECUTIONS).is_ok_and(|count| count == EXECUTIONS as usize);
    all && events.last().is_some_and(|(at, _)| *at >= Instant::ZERO + TICKS * TICK)
}

fn check(run: &Run<AppEvent>) -> Result<(), String> {
    let told = || run.events.iter().map(|(_, told)| told);
    let count = ends(told(), EXECUTIONS)?;
    if count != EXECUTIONS as usize {
        return Err(format!("{count} of {EXECUTIONS} executions have ended"));
    }
    let updates = MONITORS.map(|(monitor, _)| in_order(told(), monitor));
    for updates in updates {
        let updates = updates?;
        if run.network == "delay=5us" && updates < TICKS as usize / 3 {
            return Err(format!("{updates} updates of {TICKS}"));
        }
    }
    Ok(())
}

#[test]
fn every_execution_ends_once_and_updates_are_in_order() {
    measure_by(counting::bytes_here);
    let case = Case {
        transport: Transport::Stream,
        client: &|seed| App::new(ClientConfig { seed, ..ClientConfig::default() }, EXECUTIONS),
        server: &|_| Source::new(ServerConfig::default(), Instant::ZERO, TICK, Instant::ZERO + TICKS * TICK, ""),
        answer,
        commands: &commands,
        finished: &finished,
        check: &check,
        bounds: Bounds { outstanding_bytes: 64 << 20, ..Bounds::default() },
    };
    case.conforms(conformance::seeds(4));
}

#[test]
fn nobody_who_keeps_the_rules_waits_for_others() {
    measure_by(counting::bytes_here);
    let open = |channel, name: &str| Command::Open { channel, name: name.into(), server: Some(Address::Node(0)) };
    let get = |tag, channel| {
        let (operation, kind) = (tag as u32, Kind::Get);
        [Command::Prepare { operation, channel, kind, request: Box::default() }, Command::Execute { operation }]
    };
    let crowd = Crowd {
        transport: Transport::Stream,
        server: &|world| {
            let site = world.add_site();
            world.set_opening(site.node, Transport::Stream);
            let source = Source::new(ServerConfig::default(), Instant::ZERO, TICK, Instant::ZERO, "");
            world.start_with(site, source, answer);
            assert_eq!(site.node, 0, "the clients look for it there");
            site.node
        },
        client: &|_, seed| Client::new(ClientConfig { seed, ..ClientConfig::default() }),
        operation: &|_, tag| (tag == 0).then(|| open(0, "box")).into_iter().chain(get(tag, 0)).collect(),
        greedy: &|_, tag| (tag == 1).then(|| open(1, "wave")).into_iter().chain(get(tag, 1)).collect(),
        is_done: |event| matches!(event, Event::Done { .. }),
        patience: Duration::from_millis(2),
        cost: Allowance::default(),
    };
    crowd.is_fair();
}
