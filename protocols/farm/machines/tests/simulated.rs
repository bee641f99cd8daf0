//! A controller and nodes over the simulated network: whatever it does, every event has exactly one verdict, and no source
//! waits for others.

mod chaos;
#[path = "../../../../crates/measure/tests/counting/mod.rs"]
mod counting;
mod late;

use bytes::Bytes;
use core::time::Duration;
use hodo_farm::controller::{Command, Event, Final};
use hodo_farm::emulation::{Accept, Decisions, Spread};
use hodo_farm::node::{self, Decide};
use hodo_farm::source::{Command as Give, Event as Given};
use hodo_farm::wire::Verdict;
use hodo_farm::{Controller, ControllerConfig, Ledger, NoSupply, Node, NodeConfig, Policy, Source, SourceConfig};
use hodo_machine::{Address, Instant};
use hodo_sim::conformance::{self, Bounds, Case, Crowd, Run};
use hodo_sim::cost::{Allowance, measure_by};
use std::collections::BTreeMap;

const NODES: usize = 3;
const EVENTS: u64 = 100;

fn controller(seed: u64) -> Controller<NoSupply> {
    let config = ControllerConfig {
        policy: Policy::ALL[seed as usize % 4],
        nodes: vec![Address::Node(1); NODES],
        event_max: 1 << 20,
        ..ControllerConfig::default()
    };
    Controller::new(config, NoSupply, Ledger::default())
}

fn node(seed: u64) -> Node {
    let output = Bytes::from_static(&[7; 50_000]);
    let time = if seed.is_multiple_of(2) { Spread::Fixed(0) } else { Spread::Exponential(1e5) };
    Node::new(NodeConfig {
        controllers: Vec::new(),
        number: 0,
        credits: 4,
        weight: 1,
        event_max: 1 << 20,
        decide: Decide::Emulated(Decisions { accept: Accept::Every(10), output, time, seed }),
        silence: Duration::from_millis(600),
        instance: 0,
    })
}

/// Returns small events and a few of 200 kB.
fn commands(seed: u64) -> Vec<Command> {
    let size = |number: u64| if (number + seed).is_multiple_of(20) { 200_000 } else { (number * 37) as usize % 3000 };
    (0..EVENTS)
        .map(|number| Command::Event { number, payload: vec![number as u8; size(number)].into(), stamped: false })
        .collect()
}

fn verdicts(events: &[(Instant, Event)]) -> BTreeMap<u64, Vec<Verdict>> {
    let mut verdicts: BTreeMap<u64, Vec<Verdict>> = BTreeMap::new();
    for (_, event) in events {
        if let Event::Verdict(Final { event, verdict, .. }) = event {
            verdicts.entry(*event).or_default().push(*verdict);
        }
    }
    verdicts
}

fn each_has_one(run: &Run<Event>, allowed: impl Fn(u64, Verdict) -> bool) -> Result<(), String> {
    let verdicts = verdicts(&run.events);
    for (event, verdicts) in &verdicts {
        match verdicts[..] {
            [verdict] if allowed(*event, verdict) => {}
            _ => return Err(format!("event {event} is {verdicts:?}")),
        }
    }
    Ok(())
}

fn check(run: &Run<Event>) -> Result<(), String> {
    let sane = |event: u64| if event.is_multiple_of(10) { Verdict::Accepted } else { Verdict::Rejected };
    // A connection that is cut again and again cannot be told from nodes that die over an event.
    each_has_one(run, |event, verdict| verdict == sane(event) || verdict == Verdict::Quarantined)?;
    match verdicts(&run.events).len() as u64 {
        EVENTS => Ok(()),
        count => Err(format!("{count} of {EVENTS} events have their verdict")),
    }
}

/// Nodes decide by themselves.
#[expect(clippy::needless_pass_by_value)]
fn answer(event: node::Event) -> Option<node::Command> {
    match event {
        node::Event::ReportAsked(peer, value) => {
            Some(node::Command::Report { peer, value, process: hodo_farm::controller::FarCounters::default() })
        }
        _ => None,
    }
}

#[test]
fn every_event_has_one_verdict_over_any_network() {
    measure_by(counting::bytes_here);
    let finished = |events: &[(Instant, Event)]| verdicts(events).len() as u64 == EVENTS;
    let case = Case {
        transport: hodo_sim::Transport::Stream,
        client: &controller,
        server: &node,
        answer,
        commands: &commands,
        finished: &finished,
        check: &check,
        bounds: Bounds { outstanding_bytes: 64 << 20, time: Duration::from_secs(2000), ..Bounds::default() },
    };
    case.conforms(conformance::seeds(4));
}

#[test]
fn no_source_waits_for_others() {
    measure_by(counting::bytes_here);
    let give = |source: u64, number: u64, size| {
        vec![Give::Event { number: number * 100 + source, payload: vec![7; size].into() }]
    };
    let crowd = Crowd {
        transport: hodo_sim::Transport::Stream,
        server: &|world| {
            let (controller, nodes) = (world.add_site(), [(); NODES].map(|()| world.add_site()));
            let addresses = nodes.iter().map(|site| Address::Node(site.node)).collect();
            let config = ControllerConfig { nodes: addresses, event_max: 1 << 20, ..ControllerConfig::default() };
            nodes.iter().for_each(|site| world.start_with(*site, node(0), answer));
            world.start_with(controller, Controller::new(config, NoSupply, Ledger::default()), |_| None);
            controller.node
        },
        client: &|node, number| Source::new(SourceConfig::new(Address::Node(node), number as u32, 1), NoSupply),
        operation: &|source, number| give(source, number, 1000),
        greedy: &|source, number| give(source, number, 100_000),
        is_done: |event| matches!(event, Given::Answered { .. }),
        patience: Duration::from_millis(10),
        cost: Allowance::default(),
    };
    crowd.is_fair();
}
