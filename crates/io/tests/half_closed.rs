//! Far ends that end what they send, and read on: they get what they are owed, and all of it.

use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::{Address, Closed, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

const PEER: Peer = Peer(0);
/// More than the kernel keeps.
const MUCH: usize = 32 << 20;

/// A machine that answers a request some time later, with so many bytes.
struct Late {
    to_open: Option<Address>,
    after: Duration,
    bytes: usize,
    due: Option<Instant>,
    blocked: bool,
    closed: Vec<Closed>,
}

impl Machine for Late {
    type Command = ();
    type Event = ();

    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Received(..) => self.due = Some(now + self.after),
            Input::Blocked(_) => self.blocked = true,
            Input::Drained(_) => self.blocked = false,
            Input::Closed(_, why) => self.closed.push(why),
            _ => {}
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<()> {
        if let Some(address) = self.to_open.take() {
            return Output::Open(PEER, address);
        }
        match self.due {
            Some(due) if now < due => Output::Idle(Some(due)),
            Some(_) if self.bytes > 0 && !self.blocked => {
                let count = self.bytes.min(1 << 20);
                self.bytes -= count;
                out.copy(&vec![7; count]);
                Output::Send(PEER)
            }
            _ => Output::Idle(None),
        }
    }

    fn owes(&self, _: Peer) -> bool {
        self.due.is_some() && self.bytes > 0
    }
}

/// Has a far end ask, end what it sends, and read to the end. Returns how many bytes it got, and how the machine was told of its end.
fn answered(after: Duration, bytes: usize, wait: Wait) -> (usize, Vec<Closed>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = Address::Tcp(listener.local_addr().expect("it is bound"));
    let reader: JoinHandle<usize> = std::thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().expect("it connects");
        stream.write_all(b"a request").expect("it is taken");
        stream.shutdown(Shutdown::Write).expect("it is open");
        std::thread::sleep(Duration::from_millis(20));
        let mut got = Vec::new();
        stream.read_to_end(&mut got).expect("it ends in order");
        got.len()
    });
    let late = Late { to_open: Some(at), after, bytes, due: None, blocked: false, closed: Vec::new() };
    let sockets = Sockets::new(SocketSettings::default()).expect("descriptors are left");
    let mut endpoint = Endpoint::new(late, sockets, Clock::start());
    let mut turns = 0;
    while !reader.is_finished() {
        let until = endpoint.last_turn() + Duration::from_millis(20);
        endpoint.step(wait, until, &mut |()| {}).expect("the system works");
        turns += 1;
        assert!(turns < 20_000 || wait != Wait::Block, "it waits, and does not look again and again");
    }
    (reader.join().expect("it does not panic"), endpoint.machine().closed.clone())
}

#[test]
fn a_far_end_that_has_ended_what_it_sends_gets_all_that_it_is_owed() {
    for wait in [Wait::Block, Wait::Adaptive] {
        for after in [Duration::ZERO, Duration::from_millis(50)] {
            for bytes in [1, 28, MUCH] {
                let (got, closed) = answered(after, bytes, wait);
                assert_eq!((got, &closed[..]), (bytes, &[Closed::Finished][..]), "{wait}, {after:?}, {bytes} bytes");
            }
        }
    }
}
