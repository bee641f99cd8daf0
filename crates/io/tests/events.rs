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

/// A machine with an event for each 64 bytes, which comes before anything that it sends.
struct Counter {
    to_open: Option<Address>,
    events: usize,
    says: bool,
}

impl Machine for Counter {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Received(_, bytes) => self.events += bytes.len().div_ceil(64),
            Input::Command(()) => self.says = true,
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if let Some(address) = self.to_open.take() {
            return Output::Open(PEER, address);
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
    let mut endpoint =
        Endpoint::new(Counter { to_open: Some(address), events: 0, says: false }, sockets, Clock::start());
    let until = endpoint.now() + Duration::from_secs(10);
    let taken = Cell::new(0);
    let mut take = |()| {
        taken.set(taken.get() + 1);
        let from = Time::now();
        while from.elapsed() < TAKEN_IN {}
    };
    while endpoint.now() < until && !flood.is_finished() {
        endpoint.turn(Wait::Block, until, &mut take).unwrap();
        assert_eq!(endpoint.machine().events, 0, "events are left over from a turn");
        if taken.get() > 10_000 {
            endpoint.command(());
        }
    }
    assert!(flood.is_finished(), "nothing was sent after {} events", taken.get());
    assert_eq!(&flood.join().unwrap(), b"enough");
}
