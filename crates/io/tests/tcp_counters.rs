//! The counters of a TCP connection outlive it.

use crate::echo;

use echo::{Echo, TIMEOUT, anywhere};
use hodo_io::{Clock, SocketSettings, Sockets, TcpCounters, Transport};
use hodo_machine::{Address, Peer, Wait};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// More connections than a listener's queue has room for.
const MANY: usize = 5_000;

/// Connects to a listener until its queue is full: the next connection's first segment will be dropped.
fn fill(at: SocketAddr) -> Vec<TcpStream> {
    let mut connected = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&at, Duration::from_millis(20)) {
        connected.push(stream);
        assert!(connected.len() < MANY, "the queue of the listener has no end");
    }
    connected
}

/// Opens a connection, and closes it once it is there. Returns what TCP had counted then.
fn open_and_close(sockets: &mut Sockets, at: SocketAddr, before_it_is_there: impl FnOnce()) -> TcpCounters {
    let (clock, mut machine) = (Clock::start(), Echo::default());
    sockets.open(Peer(0), &Address::Tcp(at)).expect("a free socket");
    before_it_is_there();
    let end = clock.now() + TIMEOUT;
    while machine.opened.is_empty() {
        assert!(clock.now() < end, "not connected after {TIMEOUT:?}");
        sockets.receive(Wait::Block, end, &clock, &mut machine).expect("the sockets work");
    }
    let counters = sockets.tcp().expect("it is TCP");
    sockets.close(Peer(0));
    counters
}

#[test]
fn retransmissions_of_closed_connections_are_added() {
    let listener = TcpListener::bind(anywhere()).expect("loopback");
    let at = listener.local_addr().expect("an address");
    let mut sockets = Sockets::new(SocketSettings::default()).expect("a poller");
    assert_eq!(sockets.tcp(), None);
    for connection in 1..=2 {
        let queue = fill(at);
        let counters = open_and_close(&mut sockets, at, || {
            // There is room again; the first segment is sent once more after a second.
            (0..queue.len()).for_each(|_| drop(listener.accept().expect("it is in the queue")));
        });
        assert!(counters.connections == 1 && counters.retransmitted >= connection, "{counters:?}");
        let after = sockets.tcp().expect("what was closed was TCP");
        assert_eq!((after.connections, after.retransmitted), (0, counters.retransmitted));
        assert_eq!((after.min_rtt, sockets.retransmitted()), (counters.min_rtt, counters.retransmitted));
    }
}
