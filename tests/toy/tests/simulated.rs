//! The machines of the toy conform over every network, and no client waits for others.

#[path = "../../../crates/measure/tests/counting/mod.rs"]
mod counting;

use hodo_machine::{Address, Transport};
use hodo_sim::conformance::{self, Bounds, Case, Crowd};
use hodo_sim::cost::{Allowance, measure_by};
use hodo_toy::machines::{Client, Event, Request, Server};
use std::time::Duration;

const REQUESTS: u64 = 30;

#[test]
fn requests_are_done_in_order_or_the_connection_ends() {
    measure_by(counting::bytes_here);
    let case = Case {
        transport: Transport::Stream,
        client: &|_| Client::new(Address::Node(1)),
        server: &|_| Server::default(),
        answer: Some,
        commands: &|_| (0..REQUESTS).map(|tag| Request { tag, size: tag as u32 * 37 }).collect(),
        finished: &|events| events.iter().any(|(_, event)| matches!(event, Event::Closed(_) | Event::Done(29))),
        check: &|run| {
            let done =
                run.events.iter().filter_map(|(_, event)| if let Event::Done(tag) = event { Some(*tag) } else { None });
            if done.eq(0..REQUESTS)
                || run.events.iter().any(|(_, event)| matches!(event, Event::Closed(_)))
                || run.nothing_left
            {
                Ok(())
            } else {
                Err(format!("{:?}", run.events))
            }
        },
        bounds: Bounds::default(),
    };
    case.conforms(conformance::seeds(2));
}

#[test]
fn no_client_waits_for_others() {
    measure_by(counting::bytes_here);
    let crowd = Crowd {
        transport: Transport::Stream,
        server: &|world| {
            let site = world.add_site();
            world.start_with(site, Server::default(), Some);
            site.node
        },
        client: &|node, _| Client::new(Address::Node(node)),
        operation: &|_, tag| vec![Request { tag, size: 64 }],
        greedy: &|_, tag| vec![Request { tag, size: 100_000 }],
        is_done: |event| matches!(event, Event::Done(_)),
        patience: Duration::from_millis(1),
        cost: Allowance::default(),
    };
    crowd.is_fair();
}
