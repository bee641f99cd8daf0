//! Two small machines to try the network with: one that sends and counts what comes back, one that echoes.
#![allow(dead_code, reason = "each test file uses a part")]

use hodo_machine::{Address, Closed, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use hodo_sim::{Network, Sim, Transport};
use std::collections::VecDeque;
use std::time::Duration;

/// A command to a caller.
#[derive(Debug, Clone)]
pub enum Ask {
    /// Reach a node.
    Open(Peer, Address),
    /// Send these bytes.
    Send(Peer, Vec<u8>),
    /// Send this many bytes of [`pattern`], as fast as the stream takes them.
    Stream(Peer, u64),
    /// Be done with a peer.
    Close(Peer),
}

/// An event of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerEvent {
    Opened(Peer),
    Received(Peer, Vec<u8>),
    Closed(Peer, Closed),
}

/// Returns the byte at this place of every test stream.
pub fn pattern(place: u64) -> u8 {
    (place % 251) as u8 ^ (place / 251 % 256) as u8
}

/// Sends what it is asked to and tells what comes.
#[derive(Debug, Default)]
pub struct Caller {
    doing: VecDeque<Ask>,
    telling: VecDeque<CallerEvent>,
    /// The rest of a stream: the peer, the next place, the end.
    streaming: Option<(Peer, u64, u64)>,
    blocked: bool,
    pub drained: u32,
    /// Counts the bytes of streams against the pattern instead of telling them.
    pub counts: bool,
    pub counted: u64,
}

impl Caller {
    /// Counts what comes, and tells nothing of it.
    pub fn counting() -> Self {
        Caller { counts: true, ..Caller::default() }
    }
}

impl Machine for Caller {
    type Command = Ask;
    type Event = CallerEvent;

    fn handle(&mut self, _: Instant, input: Input<'_, Ask>) {
        match input {
            Input::Command(Ask::Stream(peer, count)) => self.streaming = Some((peer, 0, count)),
            Input::Command(ask) => self.doing.push_back(ask),
            Input::Opened(peer, _) => self.telling.push_back(CallerEvent::Opened(peer)),
            Input::Received(_, bytes) if self.counts => {
                for byte in bytes {
                    assert_eq!(*byte, pattern(self.counted), "at {}", self.counted);
                    self.counted += 1;
                }
            }
            Input::Received(peer, bytes) => self.telling.push_back(CallerEvent::Received(peer, bytes.to_vec())),
            Input::Closed(peer, why) => {
                self.streaming = None;
                self.telling.push_back(CallerEvent::Closed(peer, why));
            }
            Input::Blocked(_) => self.blocked = true,
            Input::Drained(_) => {
                assert!(self.blocked);
                self.blocked = false;
                self.drained += 1;
            }
            Input::Landed(..) | Input::Elapsed => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<CallerEvent> {
        if let Some(told) = self.telling.pop_front() {
            return Output::Event(told);
        }
        match self.doing.pop_front() {
            Some(Ask::Open(peer, address)) => return Output::Open(peer, address),
            Some(Ask::Send(peer, bytes)) => {
                out.copy(&bytes);
                return Output::Send(peer);
            }
            Some(Ask::Close(peer)) => return Output::Close(peer),
            Some(Ask::Stream(..)) | None => {}
        }
        let Some((peer, place, end)) = self.streaming.filter(|(_, place, end)| place < end && !self.blocked) else {
            return Output::Idle(None);
        };
        let next = (place + 10_000).min(end);
        out.copy(&(place..next).map(pattern).collect::<Vec<u8>>());
        self.streaming = Some((peer, next, end));
        Output::Send(peer)
    }
}

/// Sends back what it gets, unless it is silent; notes when what came.
#[derive(Debug, Default)]
pub struct Echo {
    replies: VecDeque<(Peer, Vec<u8>)>,
    landing: [u8; 32],
    silent: bool,
    /// Tells its application of the first byte of all that comes, and sends what that answers.
    asks: bool,
    events: VecDeque<(Peer, u8)>,
    pub arrivals: Vec<(Instant, Vec<u8>)>,
    pub opened: u32,
    /// The addresses that the peers came to.
    pub came_to: Vec<Address>,
    pub closed: Vec<Closed>,
    pub landed: u64,
    pub received: u64,
    blocked: bool,
}

impl Echo {
    /// Takes all in and sends nothing back.
    pub fn silent() -> Self {
        Echo { silent: true, ..Echo::default() }
    }

    /// Leaves the answers to its application.
    pub fn asking() -> Self {
        Echo { asks: true, ..Echo::default() }
    }

    fn take(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        if self.silent {
            self.arrivals.push((now, bytes[..bytes.len().min(8)].to_vec()));
        } else if self.asks {
            self.events.push_back((peer, bytes[0]));
        } else {
            self.replies.push_back((peer, bytes.to_vec()));
        }
    }
}

impl Machine for Echo {
    type Command = (Peer, u8);
    type Event = (Peer, u8);

    fn handle(&mut self, now: Instant, input: Input<'_, (Peer, u8)>) {
        match input {
            Input::Received(peer, bytes) => self.take(now, peer, bytes),
            Input::Landed(peer, count) => {
                self.landed += count as u64;
                let landing = self.landing;
                self.take(now, peer, &landing[..count]);
            }
            Input::Opened(peer, ends) => {
                assert!(peer.is_accepted() && ends.remote == Address::Node(0));
                self.opened += 1;
                self.came_to.push(ends.local.clone());
            }
            Input::Closed(_, why) => self.closed.push(why),
            Input::Command((peer, byte)) => self.replies.push_back((peer, vec![byte])),
            Input::Blocked(_) => self.blocked = true,
            Input::Drained(_) => self.blocked = false,
            Input::Elapsed => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<(Peer, u8)> {
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        match if self.blocked { None } else { self.replies.pop_front() } {
            Some((peer, bytes)) => {
                out.copy(&bytes);
                Output::Send(peer)
            }
            None => Output::Idle(None),
        }
    }

    fn landing(&mut self, _: Peer) -> Option<&mut [u8]> {
        Some(&mut self.landing)
    }
}

pub const PEER: Peer = Peer(0);

/// Returns a clean network without processor time.
pub fn ideal(delay_us: u64) -> Network {
    Network { delay: Duration::from_micros(delay_us), cost: Duration::ZERO, ..Network::default() }
}

pub fn sim(transport: Transport, network: &Network, server: Echo) -> Sim<Caller, Echo> {
    let mut sim = Sim::pair(transport, network, Caller::default(), server, Some);
    sim.command(Ask::Open(PEER, Address::Node(1)));
    sim
}

/// Runs until nothing is left to happen; returns the events, and when they came.
pub fn run<S>(sim: &mut Sim<Caller, S>) -> Vec<(Instant, CallerEvent)>
where
    S: Machine + Send + 'static,
    S::Event: Send,
{
    let mut all = Vec::new();
    loop {
        let mut told = Vec::new();
        let left = sim.turn(Wait::Block, Instant::MAX, &mut |event| told.push(event)).is_ok();
        all.extend(told.into_iter().map(|event| (sim.now(), event)));
        if !left {
            return all;
        }
    }
}

pub fn at_us(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}
