//! A server that ends has told its attendant everything that its machine knew, however much that is.

use hodo_io::{Attendant, ServeOptions, Server, Stop};
use hodo_machine::{Input, Instant, Machine, Outbox, Output};
use std::cell::Cell;
use std::time::Duration;

/// Far more events than are told in one turn.
const EVENTS: u32 = 1000;

/// A machine that has much to tell at once, as when all answers come in one packet.
#[derive(Default)]
struct Burst(u32);

impl Machine for Burst {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        if let Input::Command(()) = input {
            self.0 = EVENTS;
        }
    }

    fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<()> {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                Output::Event(())
            }
            None => Output::Idle(None),
        }
    }
}

/// Counts events, and has the machine begin when it is looked in for the first time.
struct Counting<'a> {
    told: &'a Cell<u32>,
    has_begun: bool,
    is_drained: bool,
    is_over: bool,
}

impl Attendant for Counting<'_> {
    type Machine = Burst;

    fn told(&mut self, (): ()) -> Option<()> {
        self.told.set(self.told.get() + 1);
        None
    }

    fn look_in(&mut self, _: Instant, _: &Burst) -> Option<()> {
        (!std::mem::replace(&mut self.has_begun, true)).then_some(())
    }

    fn is_over(&self, _: &Burst) -> bool {
        self.is_over && self.told.get() > 0
    }

    fn is_drained(&self, _: &Burst) -> bool {
        self.is_drained
    }
}

/// Serves until the end, and returns how many events were told.
fn served(drain: Duration, stop: bool, is_drained: bool, is_over: bool) -> u32 {
    let told = Cell::new(0);
    let attendant = Counting { told: &told, has_begun: false, is_drained, is_over };
    let server = Server::new(ServeOptions::default()).with_drain(drain);
    server.attend_here(|| (Burst::default(), attendant), &Stop::new(stop)).expect("it ends in order");
    told.get()
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn one_that_is_drained_has_told_everything() {
    assert_eq!(served(LONG, true, true, false), EVENTS);
}

#[test]
fn one_whose_time_is_over_has_told_everything() {
    assert_eq!(served(Duration::ZERO, true, false, false), EVENTS);
}

#[test]
fn one_that_ends_by_itself_has_told_everything() {
    assert_eq!(served(LONG, false, false, true), EVENTS);
}
