//! A transport whose partial sends, resets and input come from a seed, in the time of a script.

use crate::backlog::{Backlog, SLICES};
use crate::fairness::{Round, Share};
use crate::transport::Batch;
use crate::{Clock, Transport, clock};
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Peer, Random, Wait};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::time::Duration;

/// The unsent bytes to a peer after which its machine is told to hold back.
const BACKLOG_MAX: usize = 64 << 10;
/// The bytes of one message at most.
pub(super) const MESSAGE_MAX: usize = 20_000;
/// The bytes after which the pattern of a connection begins again.
const PERIOD: usize = 8191;

/// Returns bytes of the pattern that every connection carries, from a place in it.
pub(super) fn pattern(place: u64, count: usize) -> &'static [u8] {
    static PATTERN: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let whole =
        PATTERN.get_or_init(|| (0..PERIOD + MESSAGE_MAX).map(|place| (place % PERIOD * 31 / 8) as u8).collect());
    &whole[(place % PERIOD as u64) as usize..][..count]
}

/// One connection as the script has it.
#[derive(Default)]
struct Line {
    /// Which of the connections to this peer it is, from 1.
    number: u32,
    /// The bytes that have arrived.
    arrived: u64,
    backlog: Backlog,
    share: Share,
}

impl Line {
    /// Takes bytes that arrive, which have to be the next ones of the pattern.
    fn arrive(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (next, rest) = bytes.split_at(bytes.len().min(MESSAGE_MAX));
            assert!(next == pattern(self.arrived, next.len()), "at {} of connection {}", self.arrived, self.number);
            self.arrived += next.len() as u64;
            bytes = rest;
        }
    }

    /// Lets some of the backlog go out.
    fn drain(&mut self, random: &mut Random) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let count = self.backlog.slices(&mut slices);
        let mut bytes = slices[..count].iter().map(|slice| &slice[..]).collect::<Vec<_>>().concat();
        if random.chance(0.5) {
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
        }
        self.backlog.sent(bytes.len());
        self.arrive(&bytes);
    }
}

/// The transport of a seed.
pub(super) struct Script {
    random: Random,
    /// How often a peer takes a part only of what is sent to it.
    partial: f64,
    /// How often input is followed by a reset; with none, a peer that is held back for ever stays so.
    reset: f64,
    lines: BTreeMap<Peer, Line>,
    /// The number of connections to each peer so far.
    numbers: BTreeMap<Peer, u32>,
    to_open: VecDeque<Peer>,
    round: Round,
    /// Connections that the machine has closed and that have bytes left to go out.
    closing: Vec<(Peer, Line)>,
    /// The bytes that have arrived over each connection that the machine has closed.
    pub(super) arrived: BTreeMap<(Peer, u32), u64>,
    /// The bytes sent since the last receive, and the most of it.
    sent: usize,
    pub(super) sent_max: usize,
    /// The end of the last receive, and the longest time to the next one.
    received: Instant,
    pub(super) unheard_max: Duration,
    /// An error with which the next send fails.
    pub(super) fails: Option<i32>,
}

impl Script {
    pub(super) fn new(seed: u64) -> Self {
        Script {
            random: Random::new(seed),
            partial: [0.0, 0.02, 0.5][(seed % 3) as usize],
            reset: [0.0, 0.02][(seed / 3 % 2) as usize],
            lines: BTreeMap::new(),
            numbers: BTreeMap::new(),
            to_open: VecDeque::new(),
            round: Round::default(),
            closing: Vec::new(),
            arrived: BTreeMap::new(),
            sent: 0,
            sent_max: 0,
            received: clock::scripted(),
            unheard_max: Duration::ZERO,
            fails: None,
        }
    }

    /// Returns whether all that was sent has arrived.
    pub(super) fn is_quiet(&self) -> bool {
        self.lines.is_empty() && self.closing.is_empty()
    }

    /// Lets backlogs drain; returns the peers that may be sent more.
    fn drain(&mut self) -> Vec<Peer> {
        let random = &mut self.random;
        for (peer, mut line) in std::mem::take(&mut self.closing) {
            line.drain(random);
            match line.backlog.is_empty() {
                true => drop(self.arrived.insert((peer, line.number), line.arrived)),
                false => self.closing.push((peer, line)),
            }
        }
        let mut free = Vec::new();
        for (peer, line) in &mut self.lines {
            if !line.backlog.is_empty() && random.chance(0.7) {
                line.drain(random);
                if line.backlog.is_empty() && line.share.drained() {
                    free.push(*peer);
                }
            }
        }
        free
    }
}

impl Transport for Script {
    fn open(&mut self, peer: Peer, _: &Address) -> Result<(), Closed> {
        let number = self.numbers.entry(peer).or_default();
        *number += 1;
        if self.random.chance(0.1) {
            return Err(Closed::Refused);
        }
        let before = self.lines.insert(peer, Line { number: *number, ..Line::default() });
        assert!(before.is_none(), "the machine closes a peer before it opens it again");
        self.to_open.push_back(peer);
        Ok(())
    }

    fn close(&mut self, peer: Peer) {
        self.round.forget(peer);
        let line = self.lines.remove(&peer).expect("the machine closes what is there");
        self.closing.push((peer, line));
    }

    fn send(&mut self, batch: &Batch, out: &mut Outbox) -> io::Result<()> {
        if let Some(errno) = self.fails.take() {
            return Err(io::Error::from_raw_os_error(errno));
        }
        self.sent += out.len();
        for run in batch.runs() {
            let line = self.lines.get_mut(&run.peer).expect("the machine sends to peers that are there");
            let pieces = &out.pieces()[run.pieces.clone()];
            let bytes = pieces.iter().map(|piece| out.bytes(piece)).collect::<Vec<_>>().concat();
            let taken = match line.backlog.is_empty() {
                true if !self.random.chance(self.partial) => bytes.len(),
                true => self.random.below(bytes.len() as u64 + 1) as usize,
                false => 0,
            };
            line.arrive(&bytes[..taken]);
            if taken < bytes.len() {
                line.backlog.keep(out, pieces, taken);
            }
            let is_full = line.backlog.len() > BACKLOG_MAX;
            self.round.sent(run.peer, &mut line.share, (bytes.len(), run.messages.len()), is_full);
        }
        Ok(())
    }

    fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) -> bool {
        self.round.announce(now, machine)
    }

    fn has_held(&self) -> bool {
        self.round.has_held()
    }

    fn release<M: Machine>(&mut self, now: Instant, machine: &mut M) {
        let lines = &mut self.lines;
        self.round.release(now, machine, |peer| lines.get_mut(&peer).is_some_and(|line| line.share.released()));
    }

    fn receive<M: Machine>(
        &mut self,
        wait: Wait,
        until: Instant,
        _: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        self.sent_max = self.sent_max.max(std::mem::take(&mut self.sent));
        self.unheard_max = self.unheard_max.max(clock::scripted() - self.received);
        if wait != Wait::Never {
            let slept = clock::scripted() + Duration::from_nanos(self.random.below(400_000));
            clock::script(slept.min(until).max(clock::scripted()));
        }
        let (now, mut any) = (clock::scripted(), false);
        for peer in self.drain() {
            any = true;
            machine.handle(now, Input::Drained(peer));
        }
        if self.random.chance(0.5)
            && let Some(peer) = self.to_open.pop_front()
            && self.lines.contains_key(&peer)
        {
            any = true;
            machine.handle(now, Input::Opened(peer, &Ends::nodes(0, peer.0)));
        }
        let there: Vec<Peer> = self.lines.keys().copied().filter(|peer| !self.to_open.contains(peer)).collect();
        if let Some(peer) = there.get(self.random.below(8) as usize) {
            any = true;
            machine.handle(now, Input::Received(*peer, b"input"));
            if self.random.chance(self.reset) {
                self.lines.remove(peer);
                machine.handle(now, Input::Closed(*peer, Closed::Reset));
            }
        }
        self.received = now;
        Ok(any.then_some(now))
    }
}
