//! Whole buffers from the only peer are all taken in before they are answered.

use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::{Address, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

const BYTES: usize = 3500;
const AT_ONCE: usize = 1000;
const TIMEOUT: Duration = Duration::from_secs(20);

/// A machine that records how many bytes it receives between two polls.
struct Noting {
    to_open: Option<SocketAddr>,
    inputs: Vec<usize>,
    turns: Vec<Vec<usize>>,
}

impl Machine for Noting {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        if let Input::Received(_, bytes) = input {
            self.inputs.push(bytes.len());
        }
    }

    fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<()> {
        if let Some(address) = self.to_open.take() {
            return Output::Open(Peer(0), Address::Tcp(address));
        }
        if !self.inputs.is_empty() {
            self.turns.push(std::mem::take(&mut self.inputs));
        }
        Output::Idle(None)
    }
}

fn turns(together: usize, wait: Wait) -> Vec<Vec<usize>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let machine = Noting { to_open: listener.local_addr().ok(), inputs: Vec::new(), turns: Vec::new() };
    let settings = SocketSettings { at_once: AT_ONCE, together, ..SocketSettings::default() };
    let clock = Clock::start();
    let mut endpoint = Endpoint::new(machine, Sockets::new(settings).unwrap(), clock);
    endpoint.step(Wait::Never, clock.now(), &mut |()| {}).unwrap();
    // One segment on loopback: all of it comes at once.
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(&[7; BYTES]).unwrap();
    let end = clock.now() + TIMEOUT;
    while endpoint.machine().turns.iter().flatten().sum::<usize>() < BYTES {
        assert!(clock.now() < end, "{:?}", endpoint.machine().turns);
        endpoint.step(wait, end, &mut |()| {}).unwrap();
    }
    endpoint.machine().turns.clone()
}

#[test]
fn whole_buffers_are_taken_in_together() {
    for wait in [Wait::Block, Wait::Spin] {
        assert_eq!(turns(4 * AT_ONCE, wait), [vec![1000, 1000, 1000, 500]]);
    }
}

#[test]
fn not_more_than_was_asked_for() {
    assert_eq!(turns(2 * AT_ONCE, Wait::Block), [vec![1000, 1000], vec![1000, 500]]);
    assert_eq!(turns(AT_ONCE, Wait::Block), [vec![1000], vec![1000], vec![1000], vec![500]]);
}
