//! In steady state a client allocates nothing for a get, a put and an update.

use crate::counting;
use crate::rig;

use counting::allocations_here;
use hodo_machine::{Input, Instant, Machine, Outbox, Output, Peer};
use hodo_pva::Client;
use hodo_pva::client::{Command, Event, Kind};
use rig::{Far, Served};

/// Polls the client until it is idle; returns its last event.
fn drained(client: &mut Client, out: &mut Outbox) -> Option<Event> {
    let mut last = None;
    loop {
        match client.poll(Instant::ZERO, out) {
            Output::Event(event) => last = Some(event),
            Output::Idle(_) => return last,
            _ => {}
        }
    }
}

/// Repeats a command of the client, with the reply that the server gave the first time.
fn repeat(rig: &mut Served, command: impl Fn(&mut Client) -> Command, event: &Event) {
    let mut out = Outbox::new();
    let first = command(&mut rig.client);
    rig.command(first);
    assert_eq!(drained(&mut rig.client, &mut out), None);
    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
    rig.far[0].received(rig.now, Peer::accepted(1), &bytes);
    let (_, reply) = rig.far[0].say(rig.now).expect("a reply");
    rig.client.handle(Instant::ZERO, Input::Received(Peer(1), &reply));
    assert_eq!(drained(&mut rig.client, &mut out).as_ref(), Some(event));
    let mut round = || {
        out.clear();
        let command = command(&mut rig.client);
        rig.client.handle(Instant::ZERO, Input::Command(command));
        assert_eq!(drained(&mut rig.client, &mut out), None);
        assert_eq!(out.len(), bytes.len());
        rig.client.handle(Instant::ZERO, Input::Received(Peer(1), &reply));
        assert_eq!(drained(&mut rig.client, &mut out).as_ref(), Some(event));
    };
    (0..10).for_each(|_| round());
    let before = allocations_here();
    (0..1000).for_each(|_| round());
    assert_eq!(allocations_here() - before, 0, "{event:?}");
}

#[test]
fn gets_and_puts_in_steady_state_allocate_nothing() {
    let mut rig = Served::pair();
    rig.open(0, "box", 1);
    rig.prepare(1, 0, Kind::Get, "");
    rig.prepare(2, 0, Kind::Put, "");
    rig.told();
    repeat(&mut rig, |_| Command::Execute { operation: 1 }, &Event::Done { operation: 1 });
    let put = |client: &mut Client| {
        let mut value = client.blank(2).expect("it is set up");
        value.set("value", 3.5).expect("it fits");
        Command::Put { operation: 2, value }
    };
    repeat(&mut rig, put, &Event::Done { operation: 2 });
}

#[test]
fn updates_in_steady_state_allocate_nothing() {
    const EACH_TIME: u32 = 7;
    let mut rig = Served::pair();
    rig.open(0, "box", 1);
    rig.prepare(1, 0, Kind::Monitor, "record[queueSize=10]");
    rig.execute(1);
    rig.updates(1);
    let mut updates = Vec::new();
    for number in 0..EACH_TIME {
        rig.post_only("box", number.into());
        updates.extend(rig.far[0].say(rig.now).expect("an update").1);
    }
    let mut out = Outbox::new();
    let mut round = || {
        rig.client.handle(Instant::ZERO, Input::Received(Peer(1), &updates));
        assert_eq!(drained(&mut rig.client, &mut out), Some(Event::Updates { operation: 1 }));
        let mut count = 0;
        while rig.client.next_update(1).is_some() {
            count += 1;
        }
        assert_eq!(count, EACH_TIME);
    };
    (0..10).for_each(|_| round());
    let before = allocations_here();
    (0..1000).for_each(|_| round());
    assert_eq!(allocations_here() - before, 0);
}
