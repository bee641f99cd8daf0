//! A machine on its own, with peers that say what a test wants.

use crate::inbound::{Inbound, Intake, Message};
use crate::pool::Pool;
use crate::wire::{Header, Hello, Kind, Role, Token, Verdict};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt::Debug;
use core::time::Duration;
use hodo_machine::{Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer};

const INTAKE: Intake = Intake { event_max: 1 << 20, data_max: 1 << 20, keep: true };

pub(crate) struct Rig<M: Machine> {
    pub(crate) machine: M,
    pub(crate) now: Instant,
    pub(crate) events: VecDeque<M::Event>,
    /// Peers that the machine wants to reach, and those that it has closed.
    pub(crate) opens: Vec<Peer>,
    pub(crate) closed: Vec<Peer>,
    out: Outbox,
    inbound: BTreeMap<Peer, Inbound>,
    received: BTreeMap<Peer, Vec<Message>>,
    deadline: Option<Instant>,
}

impl<M: Machine> Rig<M>
where
    M::Event: Debug,
{
    pub(crate) fn new(machine: M) -> Self {
        let mut rig = Rig {
            machine,
            now: Instant::ZERO,
            events: VecDeque::new(),
            opens: Vec::new(),
            closed: Vec::new(),
            out: Outbox::new(),
            inbound: BTreeMap::new(),
            received: BTreeMap::new(),
            deadline: None,
        };
        rig.poll();
        rig
    }

    pub(crate) fn handle(&mut self, input: Input<'_, M::Command>) {
        self.machine.handle(self.now, input);
        self.poll();
    }

    pub(crate) fn poll(&mut self) {
        for _ in 0..100_000 {
            match self.machine.poll(self.now, &mut self.out) {
                Output::Send(peer) => {
                    let pieces = self.out.pieces().iter();
                    let bytes: Vec<u8> = pieces.flat_map(|piece| self.out.bytes(piece).to_vec()).collect();
                    self.out.clear();
                    let inbound = self.inbound.get_mut(&peer).expect("bytes only for a peer that is there");
                    let (mut rest, mut pool) = (&bytes[..], Pool::default());
                    while let Some(message) = inbound.next(&mut rest, &INTAKE, &mut pool).expect("it keeps the rules") {
                        self.received.entry(peer).or_default().push(message);
                    }
                }
                Output::Event(event) => self.events.push_back(event),
                Output::Open(peer, _) => {
                    assert!(!self.inbound.contains_key(&peer) && !self.opens.contains(&peer), "{peer:?} is open");
                    self.opens.push(peer);
                }
                Output::Close(peer) => {
                    self.inbound.remove(&peer).expect("closed once");
                    self.closed.push(peer);
                }
                Output::Idle(deadline) => {
                    self.deadline = deadline;
                    return;
                }
            }
        }
        panic!("it does not come to rest");
    }

    /// Connects a peer, or reaches one that was asked for.
    pub(crate) fn open(&mut self, peer: Peer) {
        self.opens.retain(|other| *other != peer);
        self.inbound.insert(peer, Inbound::default());
        self.received.remove(&peer);
        self.handle(Input::Opened(peer, &Ends::nodes(0, 1)));
    }

    pub(crate) fn close(&mut self, peer: Peer) {
        self.inbound.remove(&peer);
        self.handle(Input::Closed(peer, Closed::Reset));
    }

    pub(crate) fn is_open(&self, peer: Peer) -> bool {
        self.inbound.contains_key(&peer)
    }

    pub(crate) fn say(&mut self, peer: Peer, bytes: &[u8]) {
        if self.is_open(peer) {
            self.handle(Input::Received(peer, bytes));
        }
    }

    /// Returns what a peer has received since the last call.
    pub(crate) fn take(&mut self, peer: Peer) -> Vec<Message> {
        self.received.remove(&peer).unwrap_or_default()
    }

    /// Returns the numbers of the events among it.
    pub(crate) fn given(&mut self, peer: Peer) -> Vec<u64> {
        let messages = self.take(peer);
        let events = messages.iter().filter_map(|message| match message {
            Message::Event { event, .. } => Some(*event),
            _ => None,
        });
        events.collect()
    }

    /// Returns the tokens among it.
    pub(crate) fn tokens(&mut self, peer: Peer) -> Vec<Token> {
        let messages = self.take(peer);
        let tokens = messages.iter().filter_map(|message| match message {
            Message::Token(token, _) => Some(*token),
            _ => None,
        });
        tokens.collect()
    }

    pub(crate) fn drain_events(&mut self) -> Vec<M::Event> {
        self.events.drain(..).collect()
    }

    /// Lets time go on by `span`, with every deadline in it. Peers that are named answer pings.
    pub(crate) fn wait(&mut self, span: Duration, alive: &[Peer]) {
        let until = self.now + span;
        let mut turns = 0;
        while let Some(deadline) = self.deadline.filter(|deadline| *deadline <= until) {
            turns = if deadline <= self.now { turns + 1 } else { 0 };
            assert!(turns < 100, "its deadline stays at {deadline:?}");
            self.now = self.now.max(deadline);
            self.handle(Input::Elapsed);
            for peer in alive {
                let pings: Vec<u64> = self.received.get(peer).into_iter().flatten().filter_map(ping).collect();
                if let Some(received) = self.received.get_mut(peer) {
                    received.retain(|message| ping(message).is_none());
                }
                for value in pings {
                    self.say(*peer, &Header::new(Kind::Pong, 0, value).encode());
                }
            }
        }
        self.now = until;
    }
}

fn ping(message: &Message) -> Option<u64> {
    match message {
        Message::Ping(value) => Some(*value),
        _ => None,
    }
}

pub(crate) const fn accepted(number: u32) -> Peer {
    Peer(Peer::FIRST_ACCEPTED + number)
}

pub(crate) fn hello(role: Role, number: u32, credits: u32) -> Hello {
    Hello { role, flags: 0, number, credits, window: 0, event_max: 1 << 20, weight: 1, instance: 1, resumes: None }
}

pub(crate) fn plain(kind: Kind, value: u64) -> Vec<u8> {
    Header::new(kind, 0, value).encode().to_vec()
}

pub(crate) fn event(number: u64, payload: &[u8]) -> Vec<u8> {
    message(Kind::Event, number, payload)
}

pub(crate) fn message(kind: Kind, number: u64, payload: &[u8]) -> Vec<u8> {
    [&Header::new(kind, payload.len() as u32, number).encode()[..], payload].concat()
}

pub(crate) fn token(event: u64, verdict: Verdict) -> Vec<u8> {
    token_of(1, event, verdict).encode().to_vec()
}

pub(crate) const fn token_of(run: u32, event: u64, verdict: Verdict) -> Token {
    Token { event, verdict, credits: 1, flags: 0, run, waited_us: 0, decided_us: 0, length: 0 }
}
