//! An adapter behind a port to which more comes than its far ends have sent, and which is full now and then.

use super::draw;
use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer, Random, Stamp};
use hodo_roce::{Adapter, AdapterCommand, Completion};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// Datagrams that are kept, to come again much later.
const KEPT: usize = 16;
/// Datagrams that come again at most: each request to read that does has many answers, of which each may bring another one.
const STALE_MAX: u32 = 200;

/// The faults of a port, with the probability of each for every datagram.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Bytes come that are no packet, or one with a wrong CRC.
    pub garbage: f64,
    /// A datagram comes again that came some time ago.
    pub stale: f64,
    /// The port is full, for up to [`Faults::full_for`].
    pub full: f64,
    pub full_for: Duration,
}

impl Faults {
    /// Draws the faults. Half of the ports have none.
    pub fn draw(random: &mut Random, round_trip: Duration) -> Faults {
        if random.chance(0.5) {
            return Faults::default();
        }
        let [garbage, stale] = [(); 2].map(|()| draw::one(random, &[0.0, 0.05, 0.3]));
        Faults { garbage, stale, full: draw::one(random, &[0.0, 0.02, 0.2]), full_for: 3 * round_trip }
    }
}

pub struct Port {
    adapter: Adapter,
    random: Random,
    faults: Faults,
    kept: Vec<(Peer, Vec<u8>)>,
    stale_left: u32,
    /// Peers that the adapter holds back from, and up to when.
    full: Vec<(Peer, Instant)>,
    /// Peers that the network has it hold back from.
    blocked: Vec<Peer>,
}

impl Port {
    pub fn new(adapter: Adapter, faults: Faults, seed: u64) -> Port {
        let random = Random::for_purpose(seed, 78);
        Port { adapter, random, faults, kept: Vec::new(), stale_left: STALE_MAX, full: Vec::new(), blocked: Vec::new() }
    }

    /// Hands on a datagram, and others before it.
    fn receive(&mut self, now: Instant, peer: Peer, datagram: &[u8]) {
        if self.random.chance(self.faults.garbage) {
            let bytes = self.spoil(datagram);
            self.adapter.handle(now, Input::Received(peer, &bytes));
        }
        if self.random.chance(self.faults.stale) && !self.kept.is_empty() && self.stale_left > 0 {
            self.stale_left -= 1;
            let number = self.random.below(self.kept.len() as u64) as usize;
            let (peer, bytes) = &self.kept[number];
            self.adapter.handle(now, Input::Received(*peer, bytes));
        }
        if self.faults.stale > 0.0 {
            self.keep(peer, datagram);
        }
        self.adapter.handle(now, Input::Received(peer, datagram));
    }

    fn keep(&mut self, peer: Peer, datagram: &[u8]) {
        let kept = (peer, datagram.to_vec());
        if self.kept.len() < KEPT {
            self.kept.push(kept);
        } else if self.random.chance(0.3) {
            let number = self.random.below(KEPT as u64) as usize;
            self.kept[number] = kept;
        }
    }

    /// Returns bytes that are like a datagram, more or less.
    fn spoil(&mut self, datagram: &[u8]) -> Vec<u8> {
        let random = &mut self.random;
        let mut below = |bound: usize| random.below(bound as u64 + 1) as usize;
        let mut bytes = datagram.to_vec();
        let at = below(bytes.len());
        let (start, end) = match below(3) {
            0 => {
                bytes.truncate(at);
                return bytes;
            }
            1 => (0, bytes.len()),
            2 => (at, (at + 1 + below(15)).min(bytes.len())),
            _ => {
                let length = bytes.len();
                bytes.resize(length + 1 + below(15), 0);
                (at, bytes.len())
            }
        };
        bytes[start..end].fill_with(|| below(255) as u8);
        bytes
    }

    /// Tells the adapter which peers are not full any more.
    fn drain(&mut self, now: Instant) {
        let Port { adapter, full, blocked, .. } = self;
        full.retain(|(peer, until)| {
            let is_full = now < *until;
            if !is_full && !blocked.contains(peer) {
                adapter.handle(now, Input::Drained(*peer));
            }
            is_full
        });
    }

    fn is_full(&self, peer: Peer) -> bool {
        self.full.iter().any(|(full, _)| *full == peer)
    }

    fn forget(&mut self, peer: Peer) {
        self.full.retain(|(full, _)| *full != peer);
        self.blocked.retain(|blocked| *blocked != peer);
        self.kept.retain(|(kept, _)| *kept != peer);
    }

    fn note_sent(&mut self, now: Instant, peer: Peer) {
        assert!(!self.is_full(peer) && !self.blocked.contains(&peer), "the adapter sends to a peer that is full");
        if self.random.chance(self.faults.full) {
            let span = draw::time(&mut self.random, self.faults.full_for);
            self.full.push((peer, now + span));
            self.adapter.handle(now, Input::Blocked(peer));
        }
    }
}

impl Machine for Port {
    type Command = AdapterCommand;
    type Event = Completion;

    fn handle(&mut self, now: Instant, input: Input<'_, AdapterCommand>) {
        self.drain(now);
        match input {
            Input::Received(peer, datagram) => return self.receive(now, peer, datagram),
            Input::Blocked(peer) => self.blocked.push(peer),
            Input::Drained(peer) => {
                self.blocked.retain(|blocked| *blocked != peer);
                if self.is_full(peer) {
                    return;
                }
            }
            Input::Opened(peer, _) | Input::Closed(peer, _) => self.forget(peer),
            Input::Landed(..) | Input::Command(_) | Input::Elapsed => {}
        }
        self.adapter.handle(now, input);
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Completion> {
        let output = self.adapter.poll(now, out);
        match output {
            Output::Send(peer) => self.note_sent(now, peer),
            Output::Close(peer) => self.forget(peer),
            Output::Idle(deadline) => {
                let drained = self.full.iter().map(|(_, until)| *until);
                return Output::Idle(drained.chain(deadline).min());
            }
            Output::Event(_) | Output::Open(..) => {}
        }
        output
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        self.adapter.admits(now, ends, datagram, out)
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.adapter.stamped(stamp);
    }
}

impl Deref for Port {
    type Target = Adapter;

    fn deref(&self) -> &Adapter {
        &self.adapter
    }
}

impl DerefMut for Port {
    fn deref_mut(&mut self) -> &mut Adapter {
        &mut self.adapter
    }
}
