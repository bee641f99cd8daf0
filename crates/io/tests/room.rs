//! A server takes no more connections than it has places for: a machine that closes others for new ones refuses none, and
//! where it keeps those that it has, the newest are turned away.

use crate::stopping;

use hodo_io::{ServeOptions, Server, SocketSettings, Stop};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use stopping::Stopping;

/// An echo for so many peers. One more takes the place of the oldest.
struct Places {
    most: usize,
    peers: VecDeque<Peer>,
    outputs: VecDeque<(Peer, Vec<u8>)>,
}

impl Machine for Places {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) => self.peers.push_back(peer),
            Input::Closed(peer, _) => self.peers.retain(|other| *other != peer),
            Input::Received(peer, bytes) => self.outputs.push_back((peer, bytes.to_vec())),
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if self.peers.len() > self.most
            && let Some(oldest) = self.peers.pop_front()
        {
            self.outputs.retain(|(peer, _)| *peer != oldest);
            return Output::Close(oldest);
        }
        let Some((peer, bytes)) = self.outputs.pop_front() else { return Output::Idle(None) };
        out.copy(&bytes);
        Output::Send(peer)
    }
}

/// Runs a test beside a server whose machines have so many places each, and sockets for so many peers together. The first
/// connections have come before it looks.
fn with_server(
    threads: usize,
    places: usize,
    peers_max: usize,
    first: usize,
    test: impl FnOnce(&[TcpStream], &dyn Fn() -> TcpStream, &AtomicU64),
) {
    let settings = SocketSettings { peers_max, ..SocketSettings::default() };
    let options = ServeOptions { threads, settings, ..ServeOptions::default() };
    let server = Server::bind(&Address::Tcp(([127, 0, 0, 1], 0).into()), options).expect("a free port");
    let (address, turned_away) = (server.address().ip().expect("an address"), server.turned_away());
    let stop = Stop::new(false);
    let connect = || {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream
    };
    let streams: Vec<TcpStream> = (0..first).map(|_| connect()).collect();
    std::thread::scope(|scope| {
        let _stopping = Stopping(&stop);
        scope.spawn(|| {
            let make = || Places { most: places, peers: VecDeque::new(), outputs: VecDeque::new() };
            server.run(make, |()| None, &stop).expect("it serves");
        });
        test(&streams, &connect, &turned_away);
    });
}

/// Returns whether a client is served; otherwise it is closed, and not left hanging.
fn is_served(mut stream: &TcpStream) -> bool {
    let mut reply = [0; 4];
    stream.write_all(b"here").is_ok() && matches!(stream.read(&mut reply), Ok(4))
}

#[test]
fn a_machine_that_makes_room_refuses_none() {
    for (threads, peers_max) in [(1, 8), (2, 16)] {
        with_server(threads, 4, peers_max, 300, |streams, connect, turned_away| {
            assert!(is_served(&streams[299]), "the last that came before, with {threads} threads");
            for _ in 0..20 {
                assert!(is_served(&connect()), "{threads} threads");
            }
            assert_eq!(turned_away.load(Relaxed), 0, "{threads} threads");
        });
    }
}

#[test]
fn those_for_whom_there_is_no_room_are_turned_away_and_counted() {
    for threads in [1, 2] {
        with_server(threads, usize::MAX, 4, 10, |streams, connect, turned_away| {
            let served: Vec<&TcpStream> = streams.iter().filter(|stream| is_served(stream)).collect();
            assert_eq!((served.len(), turned_away.load(Relaxed)), (4, 6), "{threads} threads");
            assert!(!is_served(&connect()) && turned_away.load(Relaxed) == 7, "it stays full");
            served[0].shutdown(std::net::Shutdown::Both).expect("it is open");
            let is_taken = (0..1000).any(|_| is_served(&connect()));
            assert!(is_taken, "there is room again, with {threads} threads");
        });
    }
}
