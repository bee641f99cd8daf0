//! What runs at a host: one of the farm's machines with its application, or noise.

use bytes::Bytes;
use hodo_farm::builder::{self, Builder, FRAGMENT};
use hodo_farm::controller::{self, ControllerConfig};
use hodo_farm::node::{self, Node};
use hodo_farm::source::{self, Source, SourceConfig};
use hodo_farm::wire::Verdict;
use hodo_farm::{Controller, EventData, Ledger, Next, NoSupply, Ranges, Supply};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer, Random};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The verdict that every sane node gives.
pub fn expected(event: u64) -> Verdict {
    if event.is_multiple_of(3) { Verdict::Accepted } else { Verdict::Rejected }
}

/// The bytes of an event, or of a source's part of it: they follow from its run, its number and the source.
pub fn payload(run: u32, event: u64, source: u32) -> Bytes {
    let mut random = Random::for_purpose(event, u64::from(run) << 32 | u64::from(source));
    let size = if random.chance(0.1) { random.below(9000) } else { random.below(300) };
    (0..size).map(|_| random.bits() as u8).collect()
}

/// Whether these are the bytes of an event: of one source, or of the fragments that so many sources gave.
pub fn is_of(bytes: &[u8], run: u32, event: u64, built_of: Option<u32>, source: u32, partial: bool) -> bool {
    let Some(sources) = built_of else { return !partial && *bytes == payload(run, event, source)[..] };
    let (mut rest, mut numbers) = (bytes, Vec::new());
    while let Some((head, behind)) = rest.split_first_chunk::<FRAGMENT>() {
        let [a, b, c, d, length @ ..] = *head;
        let (number, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(length) as usize);
        if behind.get(..length) != Some(&payload(run, event, number)) {
            return false;
        }
        numbers.push(number);
        rest = &behind[length..];
    }
    let all: Vec<u32> = (0..sources).collect();
    rest.is_empty() && if partial { numbers.is_sorted() && numbers.len() < all.len() } else { numbers == all }
}

/// The events of a source that have no token yet, at times of their own.
pub struct Tape {
    pub run: u32,
    pub source: u32,
    pub numbers: VecDeque<u64>,
    pub gap: Duration,
    pub due: Instant,
}

impl Supply for Tape {
    fn next(&mut self, now: Instant) -> Next {
        let Some(number) = self.numbers.front().copied() else { return Next::Ended };
        if now < self.due {
            return Next::Later(self.due);
        }
        self.due = now + self.gap;
        self.numbers.pop_front();
        Next::Event(EventData { number, payload: payload(self.run, number, self.source), partial: false })
    }
}

/// What a source knows that outlives its process: the events that need no keeping any more.
#[derive(Clone)]
pub struct Memory {
    pub run: u32,
    pub number: u32,
    pub to: u32,
    pub numbers: Vec<u64>,
    pub answered: Ranges,
    pub gap: Duration,
    pub datagram: Option<u32>,
}

impl Memory {
    pub fn source(&self, now: Instant, instance: u64) -> Source<Tape> {
        let numbers = self.numbers.iter().copied().filter(|number| !self.answered.contains(*number)).collect();
        let tape = Tape { run: self.run, source: self.number, numbers, gap: self.gap, due: now };
        let config = SourceConfig {
            instance,
            datagram: self.datagram,
            ..SourceConfig::new(Address::Node(self.to), self.number, self.run)
        };
        Source::new(config, tape)
    }

    pub fn is_done(&self) -> bool {
        self.answered.count() == self.numbers.len() as u64
    }
}

/// The storage of a controller: what is in the log outlives it.
#[derive(Default)]
pub struct Storage {
    pub log: BTreeMap<(u32, u64), Verdict>,
    pub written: VecDeque<controller::Final>,
    pub committed: u64,
    pub is_full: bool,
    pub due: bool,
}

impl Storage {
    /// Commits the first of what is written.
    pub fn commit(&mut self, count: usize) {
        for last in self.written.drain(..count) {
            let before = self.log.insert((last.run, last.event), last.verdict);
            assert_eq!(before, None, "event {} of run {} is stored twice", last.event, last.run);
            self.committed += 1;
        }
    }

    /// The ledger of a controller that goes on.
    pub fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        for run in [1, 2] {
            for verdict in [Verdict::Accepted, Verdict::Rejected, Verdict::Quarantined, Verdict::Incomplete] {
                let events = self.log.iter().filter(|((of, _), is)| *of == run && **is == verdict);
                let ranges: Vec<_> = events.map(|((_, event), _)| *event..*event + 1).collect();
                ledger.recover(run, verdict, &ranges).expect("two runs");
            }
        }
        ledger
    }
}

pub enum Program {
    Source(Box<Source<Tape>>),
    Node(Box<Node>),
    Builder(Box<Builder>),
    Controller(Box<Controller<NoSupply>>),
    /// Says what it likes; greets as a node does, or not.
    Noise {
        opened: bool,
        greets: bool,
    },
}

/// What a program tells its application.
pub enum Told {
    Source(source::Event),
    Node(node::Event),
    Builder(builder::Event),
    Controller(controller::Event),
}

impl Program {
    pub fn controller(config: &ControllerConfig, ledger: Ledger) -> Self {
        Program::Controller(Box::new(Controller::new(config.clone(), NoSupply, ledger)))
    }

    pub fn tell(&mut self, now: Instant, input: &Input<'_, ()>) {
        match self {
            Program::Source(machine) => tell(&mut **machine, now, input),
            Program::Node(machine) => tell(&mut **machine, now, input),
            Program::Builder(machine) => tell(&mut **machine, now, input),
            Program::Controller(machine) => tell(&mut **machine, now, input),
            Program::Noise { .. } => {}
        }
    }

    pub fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Told> {
        match self {
            Program::Source(machine) => map(machine.poll(now, out), Told::Source),
            Program::Node(machine) => map(machine.poll(now, out), Told::Node),
            Program::Builder(machine) => map(machine.poll(now, out), Told::Builder),
            Program::Controller(machine) => map(machine.poll(now, out), Told::Controller),
            Program::Noise { opened, .. } if *opened => Output::Idle(None),
            Program::Noise { opened, .. } => {
                *opened = true;
                Output::Open(Peer(0), Address::Node(0))
            }
        }
    }

    pub fn listens(&self) -> bool {
        matches!(self, Program::Controller(_) | Program::Builder(_) | Program::Node(_))
    }

    pub fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        match self {
            Program::Source(machine) => machine.landing(peer),
            Program::Node(machine) => machine.landing(peer),
            Program::Builder(machine) => machine.landing(peer),
            Program::Controller(machine) => machine.landing(peer),
            Program::Noise { .. } => None,
        }
    }
}

fn tell<M: Machine>(machine: &mut M, now: Instant, input: &Input<'_, ()>) {
    if let Some(input) = input.without_command() {
        machine.handle(now, input);
    }
}

fn map<E>(output: Output<E>, told: impl Fn(E) -> Told) -> Output<Told> {
    match output {
        Output::Send(peer) => Output::Send(peer),
        Output::Event(event) => Output::Event(told(event)),
        Output::Open(peer, address) => Output::Open(peer, address),
        Output::Close(peer) => Output::Close(peer),
        Output::Idle(at) => Output::Idle(at),
    }
}
