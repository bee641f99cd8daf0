//! Programs at the nodes: the farm's machines with their applications, or noise.

use bytes::Bytes;
use hodo_farm::builder::{Builder, FRAGMENT};
use hodo_farm::controller::{self, Owner};
use hodo_farm::node::Node;
use hodo_farm::source::{Source, SourceConfig};
use hodo_farm::wire::Verdict;
use hodo_farm::{Content, Controller, EventData, Ledger, Likeness, Next, NoSupply, Ranges, Supply};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer, Random};
use hodo_sim::Site;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Returns the verdict that every sane node gives.
pub fn expected(event: u64) -> Verdict {
    if event.is_multiple_of(3) { Verdict::Accepted } else { Verdict::Rejected }
}

/// Returns the bytes of an event, or of a source's part of it: they follow from its run, its number and the source.
pub fn payload(run: u32, event: u64, source: u32) -> Bytes {
    let mut random = Random::for_purpose(event, u64::from(run) << 32 | u64::from(source));
    let size = if random.chance(0.1) { random.below(9000) } else { random.below(300) };
    (0..size).map(|_| random.bits() as u8).collect()
}

/// Returns the other data that a source gives under the number of an event of its own.
pub fn other(run: u32, event: u64, source: u32) -> Bytes {
    format!("other data of run {run}, event {event}, source {source}.").into()
}

/// Returns whether these are the bytes of an event: of one source, or of the fragments that so many sources gave.
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
    /// Each number, and whether it is given with other data.
    pub numbers: VecDeque<(u64, bool)>,
    pub gap: Duration,
    pub due: Instant,
}

impl Supply for Tape {
    fn next(&mut self, now: Instant) -> Next {
        let Some((number, is_other)) = self.numbers.front().copied() else { return Next::Ended };
        if now < self.due {
            return Next::Later(self.due);
        }
        self.due = now + self.gap;
        self.numbers.pop_front();
        let made = if is_other { other } else { payload };
        Next::Event(EventData { number, payload: made(self.run, number, self.source), partial: false })
    }
}

/// A source's memory that outlives its process: the events that need no keeping any more.
#[derive(Clone)]
pub struct Memory {
    pub run: u32,
    pub number: u32,
    pub to: u32,
    pub numbers: Vec<u64>,
    pub answered: Ranges,
    /// Numbers that it gives with other data, too, and those of them that were answered.
    pub doubled: Ranges,
    pub answered_doubles: Ranges,
    pub gap: Duration,
    pub datagram: Option<u32>,
}

impl Memory {
    pub fn source(&self, now: Instant, instance: u64) -> Source<Tape> {
        let left = |number: &u64| {
            let doubles = self.doubled.contains(*number) && !self.answered_doubles.contains(*number);
            let given = [(!self.answered.contains(*number), false), (doubles, true)]
                .map(|(is_left, is_other)| is_left.then_some((*number, is_other)));
            given.into_iter().flatten()
        };
        let numbers = self.numbers.iter().flat_map(left).collect();
        let tape = Tape { run: self.run, source: self.number, numbers, gap: self.gap, due: now };
        let config = SourceConfig {
            instance,
            datagram: self.datagram,
            ..SourceConfig::new(Address::Node(self.to), self.number, self.run)
        };
        Source::new(config, tape)
    }

    pub fn is_done(&self) -> bool {
        self.answered.count() == self.numbers.len() as u64 && self.answered_doubles == self.doubled
    }
}

/// The storage of a controller: what is in the log outlives it.
#[derive(Default)]
pub struct Storage {
    pub log: BTreeMap<(u32, u64), Verdict>,
    pub contents: BTreeMap<(u32, u64), Content>,
    /// Events that lack fragments.
    pub partial: BTreeSet<(u32, u64)>,
    /// Events under whose numbers other data are in quarantine.
    pub conflicts: BTreeSet<(u32, u64)>,
    pub written: VecDeque<controller::Final>,
    pub committed: u64,
    pub is_full: bool,
    pub due: bool,
    /// The bytes that a ledger has for checksums.
    pub memory: usize,
}

impl Storage {
    /// Commits the first of what is written, and compares what the controller could not.
    pub fn commit(&mut self, count: usize) -> Vec<Likeness> {
        let mut compared = Vec::new();
        for last in self.written.drain(..count) {
            if last.owner != Owner::Itself {
                let known = self.contents.get(&(last.run, last.event)).copied().unwrap_or(Content::Unknown);
                let likeness = if last.owner == Owner::Other { Likeness::Other } else { last.compared(known) };
                if likeness == Likeness::Other {
                    self.conflicts.insert((last.run, last.event));
                }
                compared.extend((last.owner != Owner::Other).then_some(likeness));
                self.committed += 1;
                continue;
            }
            self.contents.insert((last.run, last.event), last.content);
            let before = self.log.insert((last.run, last.event), last.verdict);
            assert_eq!(before, None, "event {} of run {} is stored twice", last.event, last.run);
            self.committed += 1;
        }
        compared
    }

    /// Returns the ledger of a controller that goes on.
    pub fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::with_memory(self.memory);
        for run in [1, 2] {
            for verdict in [Verdict::Accepted, Verdict::Rejected, Verdict::Quarantined, Verdict::Incomplete] {
                let events = self.log.iter().filter(|((of, _), is)| *of == run && **is == verdict);
                let ranges: Vec<_> = events.map(|((_, event), _)| *event..*event + 1).collect();
                ledger.recover(run, verdict, &ranges).expect("two runs");
            }
        }
        for ((run, event), content) in &self.contents {
            ledger.recover_content(*run, *event, *content);
        }
        ledger
    }
}

/// Reaches the controller and says what it is told to.
#[derive(Default)]
pub struct Noise {
    opened: bool,
    is_there: bool,
    saying: VecDeque<Vec<u8>>,
}

impl Machine for Noise {
    type Command = Vec<u8>;
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, Vec<u8>>) {
        match input {
            Input::Command(bytes) if self.is_there => self.saying.push_back(bytes),
            Input::Opened(..) => self.is_there = true,
            Input::Closed(..) => self.is_there = false,
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if !std::mem::replace(&mut self.opened, true) {
            return Output::Open(Peer(0), Address::Node(0));
        }
        match self.saying.pop_front() {
            Some(bytes) => {
                out.copy(&bytes);
                Output::Send(Peer(0))
            }
            None => Output::Idle(None),
        }
    }
}

/// Programs at the nodes: the farm's machines with their applications, or noise.
#[derive(Clone, Copy)]
pub enum Place {
    Source(Site<Source<Tape>>),
    Node(Site<Node>),
    Builder(Site<Builder>),
    Controller(Site<Controller<NoSupply>>),
    Noise(Site<Noise>),
}
