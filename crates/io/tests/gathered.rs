//! A large message whose sender stops in the middle of it: what has come is passed on, and the rest when it comes.

use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::{Address, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const TOTAL: usize = 24 << 20;
/// The bytes after which the sender waits until all that it sent have been passed on.
const STOPS: [usize; 5] = [16 << 20, (16 << 20) + 100_000, (16 << 20) + 100_001, (20 << 20) + 1, TOTAL];

/// A machine that takes one message, straight into its place.
struct Taker {
    to_open: VecDeque<(Peer, Address)>,
    place: Vec<u8>,
    taken: usize,
    turns: usize,
}

impl Machine for Taker {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Landed(Peer(0), count) => {
                self.taken += count;
                self.turns += 1;
            }
            Input::Received(..) => panic!("there is nothing behind the message"),
            Input::Closed(_, why) => panic!("{why}"),
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<()> {
        self.to_open.pop_front().map_or(Output::Idle(None), |(peer, address)| Output::Open(peer, address))
    }

    fn landing(&mut self, _: Peer) -> Option<&mut [u8]> {
        Some(&mut self.place[self.taken..]).filter(|place| !place.is_empty())
    }
}

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

#[test]
fn a_message_that_stops_halfway_is_passed_on_as_far_as_it_came() {
    let cases =
        [(Wait::Block, 1), (Wait::Block, 2), (Wait::SpinThenBlock(Duration::from_micros(20)), 2), (Wait::Spin, 1)];
    for (wait, peers) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = Address::Tcp(listener.local_addr().expect("it is bound"));
        let taken = AtomicUsize::new(0);
        let taker = Taker {
            to_open: (0..peers).map(|peer| (Peer(peer), at.clone())).collect(),
            place: vec![255; TOTAL],
            taken: 0,
            turns: 0,
        };
        let sockets = Sockets::new(SocketSettings::default()).expect("descriptors are left");
        let mut endpoint = Endpoint::new(taker, sockets, Clock::start());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut streams: Vec<_> = (0..peers).map(|_| listener.accept().expect("it connects").0).collect();
                let bytes: Vec<u8> = (0..TOTAL).map(byte).collect();
                let mut sent = 0;
                for stop in STOPS {
                    streams[0].write_all(&bytes[sent..stop]).expect("it is read");
                    sent = stop;
                    let began = std::time::Instant::now();
                    while taken.load(SeqCst) < stop {
                        assert!(began.elapsed() < Duration::from_secs(20), "{wait}: {} of {stop}", taken.load(SeqCst));
                        std::thread::yield_now();
                    }
                }
            });
            let end = endpoint.now() + Duration::from_secs(60);
            while endpoint.machine().taken < TOTAL {
                assert!(endpoint.now() < end, "{wait}, {peers} peers: {} have come", endpoint.machine().taken);
                endpoint.turn(wait, end, &mut |()| {}).expect("it waits");
                taken.store(endpoint.machine().taken, SeqCst);
            }
        });
        let machine = endpoint.machine();
        assert!(machine.place.iter().enumerate().all(|(at, found)| *found == byte(at)), "{wait}");
        println!("{wait}, {peers} peers: {} receives", machine.turns);
    }
}
