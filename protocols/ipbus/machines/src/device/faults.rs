use super::{Device, DeviceCommand, DeviceEvent};
use crate::wire::chunk::{self, Chunks};
use crate::wire::packet::{self, Kind, Packet};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;
use hodo_machine::{Input, Instant, Machine, Outbox, Output, Peer, Random, Transport};

/// How much later than the latest of the others a packet comes that is to be overtaken.
const OVERTAKEN: Duration = Duration::from_micros(100);
/// Bytes that may be on their way at most; beyond them packets are lost.
const HELD_BYTES_MAX: usize = 64 << 20;

/// Faults of a device on request. The same seed and the same packets at the same times go wrong the same way.
///
/// Bus errors are registers: [`Register::failing`](super::Register::failing).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faults {
    /// Faults of packets on their way to the device.
    pub request: Way,
    /// Faults of packets on their way back.
    pub reply: Way,
    /// The probability that a reply to a control packet of IPbus 2.0 has the number after its own.
    pub wrong_id: f64,
    /// The probability, for each packet, that it finds the device rebooting: it is lost, and the device has forgotten.
    pub reboot: f64,
    /// Times at which the device reboots.
    pub reboots: Vec<Instant>,
    /// Whether a reboot forgets what was written.
    pub clear_memory: bool,
    /// For everything drawn at random.
    pub seed: u64,
}

/// Faults of the packets of one direction, over streams too: there a chunk is a packet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Way {
    /// The probability that one is lost.
    pub loss: f64,
    /// The probability that one arrives twice.
    pub duplicate: f64,
    /// The probability that one is held back for so long that later ones overtake it.
    pub reorder: f64,
    /// How long one is on its way at the least.
    pub delay: Duration,
    /// Added to the delay, uniformly from 0 to this, for each packet by itself: datagrams may overtake each other, the
    /// packets of a stream do not.
    pub jitter: Duration,
    /// Times in which all are lost.
    pub partitions: Vec<Range<Instant>>,
}

/// How often a device went wrong: the truth to check others against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultCounters {
    /// Requests that were lost, those that met a reboot included.
    pub requests_lost: u64,
    /// Replies that were lost.
    pub replies_lost: u64,
    /// Packets that arrived twice, of either direction.
    pub duplicated: u64,
    /// Packets that were held back, of either direction.
    pub reordered: u64,
    /// Replies that had the wrong number.
    pub wrong_ids: u64,
    /// Reboots.
    pub reboots: u64,
}

/// A device with whom things go wrong.
#[derive(Debug)]
pub struct FaultyDevice {
    device: Device,
    faults: Faults,
    counters: FaultCounters,
    requests: Random,
    replies: Random,
    /// Reboots of the list that are past.
    rebooted: usize,
    sessions: BTreeMap<Peer, Session>,
    held: BTreeMap<(Instant, u64), Parcel>,
    held_bytes: usize,
    /// When the last packet of a stream arrives.
    latest: BTreeMap<(Peer, Toward), Instant>,
    /// How many were ever held: those of one instant keep their order.
    numbered: u64,
    out: Outbox,
    gathered: Vec<u8>,
}

/// Cuts both directions of a stream into packets.
#[derive(Debug)]
struct Session {
    requests: Chunks,
    replies: Chunks,
}

/// A packet on its way.
#[derive(Debug)]
struct Parcel {
    toward: Toward,
    peer: Peer,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Toward {
    Device,
    Peer,
}

impl FaultyDevice {
    /// Has these things go wrong with a device.
    #[must_use]
    pub fn new(device: Device, faults: Faults) -> Self {
        let mut faults = faults;
        faults.reboots.sort_unstable();
        FaultyDevice {
            device,
            counters: FaultCounters::default(),
            requests: Random::for_purpose(faults.seed, 0),
            replies: Random::for_purpose(faults.seed, 1),
            faults,
            rebooted: 0,
            sessions: BTreeMap::new(),
            held: BTreeMap::new(),
            held_bytes: 0,
            latest: BTreeMap::new(),
            numbered: 0,
            out: Outbox::new(),
            gathered: Vec::new(),
        }
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the faults so far.
    #[must_use]
    pub fn faults(&self) -> FaultCounters {
        self.counters
    }

    fn received(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        if self.device.transport() == Transport::Datagram {
            return self.request(now, peer, bytes);
        }
        let Some(mut session) = self.sessions.remove(&peer) else { return };
        let mut rest = bytes;
        loop {
            match session.requests.next(&mut rest) {
                Ok(Some(packet)) => self.request(now, peer, packet),
                Ok(None) => break,
                // The device is to see for itself.
                Err(_) => return self.device.handle(now, Input::Received(peer, &[0xFF; chunk::HEADER])),
            }
        }
        self.sessions.insert(peer, session);
    }

    fn request(&mut self, now: Instant, peer: Peer, packet: &[u8]) {
        if self.requests.chance(self.faults.reboot) {
            self.counters.requests_lost += 1;
            return self.reboot(now);
        }
        self.travel(now, Toward::Device, peer, packet);
    }

    fn reboot(&mut self, now: Instant) {
        self.counters.reboots += 1;
        let clear_memory = self.faults.clear_memory;
        self.device.handle(now, Input::Command(DeviceCommand::Reboot { clear_memory }));
    }

    fn reboot_when_due(&mut self, now: Instant) {
        while self.faults.reboots.get(self.rebooted).is_some_and(|at| *at <= now) {
            self.rebooted += 1;
            self.reboot(now);
        }
    }

    /// Takes the replies in the outbox, as packets.
    fn replied(&mut self, now: Instant, peer: Peer) {
        let mut bytes = core::mem::take(&mut self.gathered);
        bytes.clear();
        self.out.pieces().iter().for_each(|piece| bytes.extend_from_slice(self.out.bytes(piece)));
        self.out.clear();
        if self.device.transport() == Transport::Datagram {
            self.reply(now, peer, &bytes);
        } else if let Some(mut session) = self.sessions.remove(&peer) {
            let mut rest = bytes.as_slice();
            while let Ok(Some(packet)) = session.replies.next(&mut rest) {
                self.reply(now, peer, packet);
            }
            self.sessions.insert(peer, session);
        }
        self.gathered = bytes;
    }

    fn reply(&mut self, now: Instant, peer: Peer, packet: &[u8]) {
        if self.replies.chance(self.faults.wrong_id)
            && let Ok(Packet { header, order, body }) = Packet::decode(packet)
            && header.kind == Kind::Control
        {
            self.counters.wrong_ids += 1;
            let wrong = packet::Header { id: packet::following(header.id), ..header };
            let mut renamed = order.bytes_32(wrong.encode()).to_vec();
            renamed.extend_from_slice(body);
            return self.travel(now, Toward::Peer, peer, &renamed);
        }
        self.travel(now, Toward::Peer, peer, packet);
    }

    /// Sends a packet on its way, and draws what becomes of it.
    fn travel(&mut self, now: Instant, toward: Toward, peer: Peer, packet: &[u8]) {
        let (way, random, lost) = match toward {
            Toward::Device => (&self.faults.request, &mut self.requests, &mut self.counters.requests_lost),
            Toward::Peer => (&self.faults.reply, &mut self.replies, &mut self.counters.replies_lost),
        };
        let is_lost = random.chance(way.loss) || way.partitions.iter().any(|time| time.contains(&now));
        let copies = if random.chance(way.duplicate) { 2 } else { 1 };
        if is_lost || self.held_bytes > HELD_BYTES_MAX {
            *lost += 1;
            return;
        }
        self.counters.duplicated += copies - 1;
        for _ in 0..copies {
            let jitter = Duration::from_nanos(random.below(way.jitter.as_nanos() as u64 + 1));
            let mut at = now + way.delay + jitter;
            let bytes = match self.device.transport() {
                Transport::Datagram => packet.to_vec(),
                Transport::Stream => {
                    let latest = self.latest.entry((peer, toward)).or_insert(at);
                    at = at.max(*latest);
                    *latest = at;
                    framed(packet)
                }
            };
            if random.chance(way.reorder) {
                self.counters.reordered += 1;
                at = now + way.delay + way.jitter + OVERTAKEN;
            }
            self.held_bytes += bytes.len();
            self.held.insert((at, self.numbered), Parcel { toward, peer, bytes });
            self.numbered += 1;
        }
    }

    /// Takes the next packet that has arrived.
    fn arrived(&mut self, now: Instant) -> Option<Parcel> {
        let first = self.held.first_entry().filter(|first| first.key().0 <= now)?;
        let parcel = first.remove();
        self.held_bytes -= parcel.bytes.len();
        Some(parcel)
    }

    /// Loses what is on its way to and from a peer that is gone.
    fn forget(&mut self, peer: Peer) {
        self.sessions.remove(&peer);
        self.latest.retain(|(other, _), _| *other != peer);
        self.held.retain(|_, parcel| parcel.peer != peer);
        self.held_bytes = self.held.values().map(|parcel| parcel.bytes.len()).sum();
    }

    /// Returns when something happens next without an input.
    fn next_at(&self) -> Option<Instant> {
        let reboot = self.faults.reboots.get(self.rebooted).copied();
        self.held.keys().next().map(|(at, _)| *at).into_iter().chain(reboot).min()
    }
}

impl Machine for FaultyDevice {
    type Command = DeviceCommand;
    type Event = DeviceEvent;

    fn handle(&mut self, now: Instant, input: Input<'_, DeviceCommand>) {
        self.reboot_when_due(now);
        match input {
            Input::Received(peer, bytes) => return self.received(now, peer, bytes),
            Input::Opened(peer, _) => {
                self.forget(peer);
                let requests = Chunks::new(self.device.buffer_bytes());
                self.sessions.insert(peer, Session { requests, replies: Chunks::new(usize::MAX) });
            }
            Input::Closed(peer, _) => self.forget(peer),
            _ => {}
        }
        self.device.handle(now, input);
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<DeviceEvent> {
        self.reboot_when_due(now);
        loop {
            while let Some(Parcel { toward, peer, bytes }) = self.arrived(now) {
                if toward == Toward::Peer {
                    out.copy(&bytes);
                    return Output::Send(peer);
                }
                self.device.handle(now, Input::Received(peer, &bytes));
            }
            match self.device.poll(now, &mut self.out) {
                Output::Send(peer) => self.replied(now, peer),
                Output::Close(peer) => {
                    self.forget(peer);
                    return Output::Close(peer);
                }
                Output::Idle(deadline) => match self.next_at() {
                    Some(at) if at <= now => {}
                    at => return Output::Idle(at.into_iter().chain(deadline).min()),
                },
                other => return other,
            }
        }
    }
}

fn framed(packet: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(chunk::HEADER + packet.len());
    let begun = chunk::begin(&mut bytes);
    bytes.extend_from_slice(packet);
    chunk::end(&mut bytes, begun);
    bytes
}

#[cfg(test)]
mod tests;
