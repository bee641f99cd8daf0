//! A machine that sends back what it receives, and records it.
#![allow(dead_code, reason = "each test file uses a part")]

use hodo_io::{Endpoint, Sockets};
use hodo_machine::{Address, Driver, Ends, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

pub const TIMEOUT: Duration = Duration::from_secs(20);

/// An echo of each message to its peer, which records it.
#[derive(Default)]
pub struct Echo {
    pub to_open: VecDeque<(Peer, Address)>,
    pub to_send: VecDeque<(Peer, Vec<u8>)>,
    pub opened: Vec<(Peer, Ends)>,
    pub received: Vec<(Peer, Vec<u8>)>,
    pub is_silent: bool,
    /// Bytes behind each message that is sent back.
    pub signature: Vec<u8>,
}

impl Machine for Echo {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, ends) => self.opened.push((peer, ends.clone())),
            Input::Received(peer, bytes) => {
                self.received.push((peer, bytes.to_owned()));
                if !self.is_silent {
                    self.to_send.push_back((peer, [bytes, &self.signature[..]].concat()));
                }
            }
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if let Some((peer, address)) = self.to_open.pop_front() {
            return Output::Open(peer, address);
        }
        match self.to_send.pop_front() {
            Some((peer, bytes)) => {
                out.copy(&bytes);
                Output::Send(peer)
            }
            None => Output::Idle(None),
        }
    }
}

/// Returns a free port of the loopback.
pub fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Returns a socket for datagrams on the loopback.
pub fn udp() -> UdpSocket {
    let socket = UdpSocket::bind(anywhere()).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

/// Runs an endpoint until `has` is true of the machine.
pub fn drive(endpoint: &mut Endpoint<Echo, Sockets>, has: impl Fn(&Echo) -> bool) {
    let end = endpoint.last_turn() + TIMEOUT;
    while !has(endpoint.machine()) {
        assert!(endpoint.last_turn() < end, "{:?} {:?}", endpoint.machine().opened, endpoint.machine().received);
        endpoint.step(Wait::Block, end, &mut |()| {}).unwrap();
    }
}
