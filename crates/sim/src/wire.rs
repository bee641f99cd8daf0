use crate::connection::End;
use crate::{Counters, Model, Network, Random, Transport};
use hodo_machine::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// A segment is sent this often at most, as a kernel does, before its stream is given up.
pub(crate) const TRIES: u32 = 15;
/// Beside the round-trip, how long a sender waits before it sends a segment again.
const PATIENCE: Duration = Duration::from_millis(1);
/// That time doubles with each further loss, up to this.
const PATIENCE_MAX: Duration = Duration::from_secs(1);
/// A packet that is held back waits this much longer than any that is not.
const HOLD: Duration = Duration::from_micros(1);

/// The wire from one node to another.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) network: Network,
    datagrams: Model,
    streams: Model,
    pub(crate) counters: Counters,
    /// The writing ends that wait for room in the queue, in turn.
    pub(crate) waiting: VecDeque<End>,
    random: Random,
    /// When the last bit of all that was sent has left.
    free_at: Instant,
    /// The rest that rounding left of the last transmission time, in parts of a nanosecond: 1 / rate.
    carry: u64,
    /// How long until a lost segment is sent again.
    patience: Duration,
    /// How many of those who cut nodes off want all packets lost.
    pub(crate) down: u32,
}

/// The fate of a datagram.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    pub(crate) arrives: Option<Instant>,
    /// When a second copy arrives: after the first.
    pub(crate) again: Option<Instant>,
    /// The bit to be flipped.
    pub(crate) flip: Option<u64>,
}

/// The fate of a segment that is sent once.
#[derive(Debug)]
pub(crate) enum Passage {
    /// It arrives, and may take its stream with it.
    Arrives { at: Instant, cut: bool },
    /// It is lost, or damaged, after it has left at this time.
    Lost(Instant),
}

/// The fate of the request to connect, or of the answer to it, which is sent again until it arrives.
#[derive(Debug)]
pub(crate) enum Handshake {
    Arrives(Instant),
    /// The sender stops trying.
    GivenUp(Instant),
}

impl Wire {
    pub(crate) fn new(network: Network, number: u64, round_trip: Duration) -> Self {
        Wire {
            datagrams: network.model(Transport::Datagram),
            streams: network.model(Transport::Stream),
            random: Random::for_purpose(network.seed, number),
            counters: Counters::default(),
            waiting: VecDeque::new(),
            free_at: Instant::ZERO,
            carry: 0,
            patience: round_trip + PATIENCE,
            down: 0,
            network,
        }
    }

    /// Changes the network. What is drawn goes on where it was, unless the seed is another.
    pub(crate) fn set_network(&mut self, network: Network, number: u64) {
        if network.seed != self.network.seed {
            self.random = Random::for_purpose(network.seed, number);
        }
        self.datagrams = network.model(Transport::Datagram);
        self.streams = network.model(Transport::Stream);
        self.network = network;
    }

    /// Returns the longest time on the way of a packet that is not held back.
    pub(crate) fn longest(&self) -> Duration {
        self.network.delay + self.network.jitter
    }

    pub(crate) fn set_round_trip(&mut self, round_trip: Duration) {
        self.patience = round_trip + PATIENCE;
    }

    /// Returns the facts of what this transport carries here.
    pub(crate) const fn model(&self, transport: Transport) -> &Model {
        match transport {
            Transport::Datagram => &self.datagrams,
            Transport::Stream => &self.streams,
        }
    }

    /// Sends one datagram of this many bytes.
    pub(crate) fn datagram(&mut self, at: Instant, payload: usize) -> Fate {
        self.counters.sent += 1;
        self.counters.sent_bytes += payload as u64;
        let wire = self.wire_bytes(Transport::Datagram, payload);
        if payload > self.model(Transport::Datagram).payload_max as usize {
            self.counters.too_big += 1;
            return Fate::default();
        }
        if self.backlog(at) > 0 && self.backlog(at) + wire > self.network.queue_bytes {
            self.counters.queue_dropped += 1;
            return Fate::default();
        }
        let left = self.transmit(at, wire);
        if self.is_lost(left) {
            return Fate::default();
        }
        let arrives = left + self.journey();
        let mut fate = Fate { arrives: Some(arrives), ..Fate::default() };
        if self.random.chance(self.network.duplicate) {
            self.counters.duplicated += 1;
            fate.again = Some(arrives.max(left + self.journey()));
        }
        if payload > 0 && self.random.chance(self.network.corrupt) {
            self.counters.corrupted += 1;
            fate.flip = Some(self.random.below(payload as u64 * 8));
        }
        fate
    }

    /// Sends one segment of this many bytes; `again` where it was sent before.
    pub(crate) fn segment(&mut self, at: Instant, payload: usize, again: bool) -> Passage {
        if again {
            self.counters.retransmitted += 1;
        } else {
            self.counters.sent += 1;
            self.counters.sent_bytes += payload as u64;
        }
        let wire = self.wire_bytes(Transport::Stream, payload);
        let left = self.transmit(at, wire);
        if self.is_lost(left) || self.is_damaged() {
            return Passage::Lost(left);
        }
        if self.random.chance(self.network.duplicate) {
            self.counters.duplicated += 1;
            self.transmit(left, wire);
        }
        let at = left + self.journey();
        Passage::Arrives { at, cut: self.random.chance(self.network.cut) }
    }

    /// Returns how long after a segment has left it is sent again, where nobody learns earlier that it was lost.
    pub(crate) fn patience(&self, tries: u32) -> Duration {
        self.patience.saturating_mul(1 << tries.min(20)).min(PATIENCE_MAX.max(self.patience))
    }

    /// Sends a segment without bytes until it arrives, at most to `give_up`. The whole story is told at once.
    pub(crate) fn handshake(&mut self, at: Instant, give_up: Instant) -> Handshake {
        let mut left = at;
        for tries in 0..TRIES {
            match self.segment(left, 0, tries > 0) {
                Passage::Arrives { at, .. } => return Handshake::Arrives(at),
                Passage::Lost(at) => left = at + self.patience(tries),
            }
            if left > give_up {
                break;
            }
        }
        Handshake::GivenUp(left.min(give_up))
    }

    /// Sends an acknowledgement, which takes no room and is not counted; returns when it arrives.
    pub(crate) fn acknowledge(&mut self, at: Instant) -> Option<Instant> {
        (!self.loses(at)).then(|| at + self.journey())
    }

    /// Sends word that a connection is gone, once; returns when it arrives.
    pub(crate) fn reset(&mut self, at: Instant) -> Option<Instant> {
        (!self.is_lost(at)).then(|| at + self.journey())
    }

    /// Returns when the queue has room for another segment: `None` now, else then.
    pub(crate) fn room_at(&self, now: Instant) -> Option<Instant> {
        let backlog = self.backlog(now);
        if backlog <= self.network.queue_bytes {
            return None;
        }
        let rate = self.network.rate?;
        Some(now + Duration::from_nanos(((backlog - self.network.queue_bytes) * 8_000_000_000).div_ceil(rate)))
    }

    /// Bytes that wait for the wire, the one that is being sent included.
    fn backlog(&self, now: Instant) -> u64 {
        let rate = self.network.rate.unwrap_or(0);
        (u128::from(self.free_at.nanos_since(now)) * u128::from(rate) / 8_000_000_000) as u64
    }

    fn wire_bytes(&self, transport: Transport, payload: usize) -> u64 {
        payload as u64 + u64::from(self.model(transport).packet_overhead)
    }

    /// Puts a packet on the wire behind all others; returns when its last bit has left.
    fn transmit(&mut self, at: Instant, wire: u64) -> Instant {
        let Some(rate) = self.network.rate else {
            return at;
        };
        if self.free_at < at {
            (self.free_at, self.carry) = (at, 0);
        }
        let time = wire * 8_000_000_000 + self.carry;
        self.carry = time % rate;
        self.free_at = self.free_at + Duration::from_nanos(time / rate);
        self.free_at
    }

    fn loses(&mut self, left: Instant) -> bool {
        self.random.chance(self.network.loss)
            || self.down > 0
            || self.network.partitions.iter().any(|partition| partition.contains(&left))
    }

    fn is_lost(&mut self, left: Instant) -> bool {
        let lost = self.loses(left);
        self.counters.lost += u64::from(lost);
        lost
    }

    /// Returns whether a segment's checksum is wrong on arrival.
    fn is_damaged(&mut self) -> bool {
        let damaged = self.random.chance(self.network.corrupt);
        self.counters.corrupted += u64::from(damaged);
        damaged
    }

    /// Draws the time from the last bit on the wire to the arrival.
    fn journey(&mut self) -> Duration {
        let (delay, jitter) = (self.network.delay, self.network.jitter);
        let mut journey = delay;
        if jitter > Duration::ZERO {
            journey += Duration::from_nanos(self.random.below(jitter.as_nanos() as u64 + 1));
        }
        if self.random.chance(self.network.reorder) {
            journey += delay + jitter + HOLD;
        }
        journey
    }
}
