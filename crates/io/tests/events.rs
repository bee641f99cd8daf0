//! Events that come faster than they are taken hold up neither what the machine sends nor its memory.

use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::{Address, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant as Time};

const PEER: Peer = Peer(0);
/// How long the application takes for one event: far longer than its bytes take to be received.
const TAKEN_IN: Duration = Duration::from_micros(20);

/// A machine with an event for each 64 bytes, which comes before anything that it sends unless that is urgent.
#[derive(Default)]
struct Counter {
    to_open: Option<Address>,
    events: usize,
    says: bool,
    is_urgent: bool,
}

impl Machine for Counter {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Received(_, bytes) => {
                assert_eq!(self.events, 0, "more is received before all events are taken");
                self.events += bytes.len().div_ceil(64);
            }
            Input::Command(()) => self.says = true,
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if let Some(address) = self.to_open.take() {
            return Output::Open(PEER, address);
        }
        if self.is_urgent && std::mem::take(&mut self.says) {
            out.copy(b"enough");
            out.urge();
            return Output::Send(PEER);
        }
        if self.events > 0 {
            self.events -= 1;
            return Output::Event(());
        }
        if std::mem::take(&mut self.says) {
            out.copy(b"enough");
            return Output::Send(PEER);
        }
        Output::Idle(None)
    }
}

#[test]
fn all_are_delivered_before_more_is_received() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let flood = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut back = stream.try_clone().unwrap();
        let sender = std::thread::spawn(move || while stream.write_all(&[0; 1 << 16]).is_ok() {});
        let mut said = [0; 6];
        back.read_exact(&mut said).unwrap();
        back.shutdown(std::net::Shutdown::Both).unwrap();
        sender.join().unwrap();
        said
    });
    let sockets = Sockets::new(SocketSettings::default()).unwrap();
    let counter = Counter { to_open: Some(address), ..Counter::default() };
    let mut endpoint = Endpoint::new(counter, sockets, Clock::start());
    let until = endpoint.now() + Duration::from_secs(10);
    let taken = Cell::new(0);
    let mut take = |()| {
        taken.set(taken.get() + 1);
        let from = Time::now();
        while from.elapsed() < TAKEN_IN {}
    };
    while endpoint.now() < until && !flood.is_finished() {
        endpoint.turn(Wait::Block, until, &mut take).unwrap();
        if taken.get() > 10_000 {
            endpoint.command(());
        }
    }
    assert!(flood.is_finished(), "nothing was sent after {} events", taken.get());
    assert_eq!(&flood.join().unwrap(), b"enough");
}

#[test]
fn what_the_application_asks_for_leaves_before_all_events_are_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let counter = Counter { to_open: Some(address), is_urgent: true, ..Counter::default() };
    let mut endpoint = Endpoint::new(counter, Sockets::new(SocketSettings::default()).unwrap(), Clock::start());
    let until = endpoint.now() + Duration::from_secs(10);
    endpoint.turn(Wait::Never, until, &mut |()| {}).unwrap();
    let mut peer = listener.accept().unwrap().0;
    peer.set_nonblocking(true).unwrap();
    peer.write_all(&[0; 64 * 1000]).unwrap();
    let (mut told, mut heard) = (0, 0);
    while told < 1000 {
        assert!(endpoint.now() < until, "{told} events");
        let before = told;
        endpoint.turn(Wait::Block, until, &mut |()| told += 1).unwrap();
        assert!(told - before <= 128, "{} events in one turn", told - before);
        if told > before {
            endpoint.command(());
        }
        // What was asked for after the turn before has come, while events are left.
        let mut words = [0; 6];
        if endpoint.machine().events > 0 && peer.read(&mut words).is_ok_and(|count| count == 6) {
            heard += 1;
        }
    }
    assert!(heard > 0, "nothing was sent among the events");
}
