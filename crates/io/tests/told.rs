//! A server that ends has told its attendant everything that its machine knew, and sent what it had to send, however much that is.

use crate::echo;

use echo::{TIMEOUT, anywhere};
use hodo_io::{Attendant, ServeOptions, Server, Stop};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer};
use std::cell::Cell;
use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
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

/// A machine that greets whoever connects, and has many messages for it once it is to stop.
#[derive(Default)]
struct Owing {
    to: Option<Peer>,
    messages: u32,
    is_blocked: bool,
}

/// More messages than one peer is sent in a round.
const MESSAGES: u32 = 5000;

impl Machine for Owing {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) => (self.to, self.messages) = (Some(peer), 1),
            Input::Blocked(_) => self.is_blocked = true,
            Input::Drained(_) => self.is_blocked = false,
            Input::Command(()) => self.messages = MESSAGES,
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        match self.to {
            Some(peer) if self.messages > 0 && !self.is_blocked => {
                self.messages -= 1;
                out.copy(b"x");
                Output::Send(peer)
            }
            _ => Output::Idle(None),
        }
    }
}

/// Leaves it to the server to send what its machine has.
struct Sending;

impl Attendant for Sending {
    type Machine = Owing;

    fn told(&mut self, (): ()) -> Option<()> {
        None
    }

    fn drain(&mut self) -> Option<()> {
        Some(())
    }
}

#[test]
fn one_that_is_drained_has_sent_everything() {
    let server =
        Server::bind(&Address::Tcp(anywhere()), ServeOptions::default()).expect("a free port").with_drain(LONG);
    let Address::Tcp(at) = server.address().clone() else { panic!("it is TCP") };
    let stop = Stop::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.attend(|_| (Owing::default(), Sending), &stop));
        let mut client = TcpStream::connect(at).expect("it listens");
        client.set_read_timeout(Some(TIMEOUT)).expect("an option");
        let greeted = client.read_exact(&mut [0]);
        stop.store(true, Ordering::Relaxed);
        greeted.expect("it greets");
        let mut received = Vec::new();
        client.read_to_end(&mut received).expect("it ends in order");
        assert_eq!(received.len(), MESSAGES as usize);
        serving.join().expect("no panic").expect("it ends in order");
    });
}
