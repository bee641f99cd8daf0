//! A bridge: hosts over TCP on one side, the nodes of a simulated network on the other.
//!
//! A gate is a node of the network that hosts reach at TCP ports, with SSDTP2 or GRESB. A device is a node with an application of its own: a
//! memory behind an RMAP target, or an echo. The time of the network is that of the clock, or runs ahead of it while there is something to do.
//!
//! A gate has one host in each direction; the newest connection takes the place of an older one, whose end may not have been noticed.
//! Packets for a gate without a host are discarded and counted. A host that sends faster than the network takes is not read from, and one that does not read
//! holds back the network, as a slow receiver does.
mod device;
mod gate;
#[cfg(test)]
mod tests;

use crate::Picos;
use crate::network::{Network, NodeId, Observer};
use crate::rmap::TargetStatistics;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;
use device::Application;
pub use device::Device;
use gate::{Attached, Host, Side};
pub use gate::{Gate, GateCounters, GateProtocol};
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer, Peers};

/// How far the network runs at the least before devices answer what has arrived.
const QUANTUM: Picos = Picos::from_nanos(20_000);
/// How far the network runs in a turn, before hosts are looked at.
const TURN_TIME: Duration = Duration::from_micros(400);
const TURN: Picos = Picos::from_nanos(TURN_TIME.as_nanos() as u64);
/// Events due so soon are waited for without a sleep, as long as there are only so many packets.
const SOON: Duration = Duration::from_micros(60);
const QUIET: usize = 1;
/// Where there are more, those of a time in this range are passed on together: every time costs some system calls, and wakes the hosts.
const TOGETHER: Range<Duration> = Duration::from_micros(100)..Duration::from_micros(400);
/// Bytes at a gate beyond which its host is not read from until they are fewer: many small receives would cost more than a few large ones.
const SATED: Range<usize> = 8 << 10..16 << 10;
/// How many times as many where turns are late so often that queues would run dry before their hosts are read from.
const SATED_LATE: usize = 8;
/// Late turns are often when they are more than one in so many.
const LATE_ONE_IN: u32 = 128;
/// The pressure from which they count as often, and the highest, which so many turns in time take away.
const PRESSURE: Range<u32> = 4 * LATE_ONE_IN..8192;
/// How far the network may be behind the clock. What is beyond is given up, and counted.
const BEHIND_MAX: Duration = Duration::from_millis(20);
/// Bytes of frames that are put together for one host.
const FRAMES: usize = 64 << 10;
/// Events that wait for the application; later ones are dropped.
const EVENTS_MAX: usize = 1024;

/// The time of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pace {
    /// Nanosecond by nanosecond that of the clock.
    #[default]
    RealTime,
    /// As fast as it can be computed, and standing still while nothing is to happen.
    Free,
}

/// Bounds of lateness that are counted apart. A bridge in real time puts together what happens within up to 400 us.
pub const LATE: [Duration; 3] = [Duration::from_micros(500), Duration::from_millis(1), Duration::from_millis(10)];

/// How late a network in real time was: the jitter that it adds to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Turns in which something was due.
    pub turns: u64,
    /// The turns in which the first thing due was late by more than each of [`LATE`].
    pub over: [u64; LATE.len()],
    /// The most.
    pub max: Duration,
}

impl Lateness {
    fn note(&mut self, behind: Duration) {
        self.turns += 1;
        self.max = self.max.max(behind);
        for (over, bound) in self.over.iter_mut().zip(LATE) {
            *over += u64::from(behind > bound);
        }
    }
}

/// An event at a bridge, for its log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BridgeEvent {
    /// A host has connected to the gate with this number.
    Connected(usize, Ends),
    /// A host is gone, or has been replaced by a newer one.
    Disconnected(usize, Closed),
    /// A host sent a stream that cannot be understood, and was disconnected.
    Malformed(usize, MalformedStream),
    /// A connection came to a port of no gate.
    NoGate(Address),
}

/// The defect of a host's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedStream {
    /// It is not SSDTP2.
    #[error(transparent)]
    Ssdtp2(#[from] crate::ssdtp2::Malformed),
    /// It is not GRESB.
    #[error(transparent)]
    Gresb(#[from] crate::gresb::Malformed),
}

/// A bridge.
pub struct Bridge<O = ()> {
    network: Network<O>,
    pace: Pace,
    /// The instant of the network's origin.
    origin: Option<Instant>,
    shortfall: Duration,
    lateness: Lateness,
    /// A measure of how often turns are late: a late one adds [`LATE_ONE_IN`], and every turn takes one away.
    pressure: u32,
    gates: Vec<Attached>,
    hosts: Peers<Host>,
    devices: Vec<(NodeId, Application)>,
    to_close: VecDeque<Peer>,
    events: VecDeque<BridgeEvent>,
    /// The gate that is served next.
    next_gate: usize,
    /// Bytes of a packet, between the network and a frame.
    packet: Vec<u8>,
    frames: Vec<u8>,
}

impl<O: Observer> Bridge<O> {
    /// Creates a bridge in front of a network.
    #[must_use]
    pub fn new(mut network: Network<O>, pace: Pace, gates: Vec<Gate>, devices: Vec<(NodeId, Device)>) -> Self {
        devices.iter().for_each(|(node, _)| network.watch(*node));
        Bridge {
            network,
            pace,
            origin: None,
            shortfall: Duration::ZERO,
            lateness: Lateness::default(),
            pressure: 0,
            gates: gates.into_iter().map(Attached::new).collect(),
            hosts: Peers::default(),
            devices: devices.into_iter().map(|(node, device)| (node, Application::new(device))).collect(),
            to_close: VecDeque::new(),
            events: VecDeque::new(),
            next_gate: 0,
            packet: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Returns the network, to look at.
    #[must_use]
    pub fn network(&self) -> &Network<O> {
        &self.network
    }

    /// Returns the network, to change.
    pub fn network_mut(&mut self) -> &mut Network<O> {
        &mut self.network
    }

    /// Returns the time by which the network has fallen behind the clock for good, because the processor was too slow.
    #[must_use]
    pub fn shortfall(&self) -> Duration {
        self.shortfall
    }

    /// Returns how late the network was.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        self.lateness
    }

    /// Returns how many hosts are connected to each gate.
    pub fn hosts(&self) -> impl Iterator<Item = usize> + '_ {
        self.gates.iter().map(Attached::hosts)
    }

    /// Returns the counters of each gate.
    pub fn counters(&self) -> impl Iterator<Item = GateCounters> + '_ {
        self.gates.iter().map(|gate| gate.counters)
    }

    /// Returns the counters of the RMAP targets, by their nodes.
    pub fn targets(&self) -> impl Iterator<Item = (NodeId, &TargetStatistics)> {
        self.devices.iter().filter_map(|(node, application)| Some((*node, application.statistics()?)))
    }

    fn tell(&mut self, event: BridgeEvent) {
        if self.events.len() < EVENTS_MAX {
            self.events.push_back(event);
        }
    }

    fn connected(&mut self, peer: Peer, ends: &Ends) {
        let port = ends.local.ip().map(|local| local.port());
        let found = (0..).zip(&self.gates).find_map(|(number, gate)| Some((number, gate.gate.side_at(port?)?)));
        let Some((number, side)) = found else {
            self.to_close.push_back(peer);
            return self.tell(BridgeEvent::NoGate(ends.local.clone()));
        };
        let gate = &mut self.gates[number];
        self.hosts.insert(peer, Host::new(number, side, &gate.gate));
        for older in gate.attach(peer, side).into_iter().flatten() {
            self.hosts.remove(older);
            self.to_close.push_back(older);
            self.tell(BridgeEvent::Disconnected(number, Closed::OverBound));
        }
        self.tell(BridgeEvent::Connected(number, ends.clone()));
    }

    fn disconnected(&mut self, peer: Peer) -> Option<usize> {
        let host = self.hosts.remove(peer)?;
        self.gates[host.gate].detach(peer);
        Some(host.gate)
    }

    /// Takes bytes of a host, or what it has put where its packet belongs.
    fn take(&mut self, peer: Peer, bytes: Bytes<'_>) {
        let Bridge { hosts, gates, network, .. } = self;
        let Some(host) = hosts.at(peer) else { return };
        let gate = &mut gates[host.gate];
        let result = match bytes {
            Bytes::Received(mut bytes) => host.receive(&mut bytes, gate, network),
            Bytes::Landed(count) => {
                host.landed(count, gate, network);
                Ok(())
            }
        };
        if let Err(error) = result {
            self.to_close.push_back(peer);
            if let Some(gate) = self.disconnected(peer) {
                self.tell(BridgeEvent::Malformed(gate, error));
            }
        }
    }

    /// Lets the network go on towards the present, in steps between which devices answer.
    fn run(&mut self, now: Instant) {
        let next = self.network.next_event();
        let most = next.unwrap_or_default().max(self.network.now()) + TURN;
        let end = match (self.pace, next) {
            (Pace::RealTime, None) => self.present(now),
            (Pace::RealTime, Some(next)) => most.min(self.catch_up(now, next)),
            (Pace::Free, _) => most,
        };
        while self.network.now() < end {
            let Some(next) = self.network.next_event() else { break };
            if next > end && self.pace == Pace::RealTime {
                break;
            }
            let early = next.max(self.network.now() + QUANTUM);
            let has_to_look = self.devices.iter().any(|(node, device)| device.has_to_look(*node, &self.network));
            let step = if has_to_look { early } else { next.max(self.network.now() + TURN) };
            self.network.run_until_arrival(if self.pace == Pace::RealTime { step.min(end) } else { step }, early);
            self.answer();
        }
        if self.pace == Pace::RealTime {
            self.network.run_until(end);
            self.answer();
        }
    }

    /// Returns the network's time of an instant.
    fn present(&mut self, now: Instant) -> Picos {
        let origin = *self.origin.get_or_insert(now);
        Picos::from_nanos(now.nanos_since(origin))
    }

    /// Returns the network's time of an instant. If its next event is too late already, the network's time begins anew with it.
    fn catch_up(&mut self, now: Instant, next: Picos) -> Picos {
        let present = self.present(now);
        let behind = Duration::from_nanos(present.as_nanos().saturating_sub(next.as_nanos()));
        if next <= present {
            self.lateness.note(behind);
            let is_late = behind > LATE[0];
            self.pressure = (self.pressure + if is_late { LATE_ONE_IN } else { 0 }).min(PRESSURE.end).saturating_sub(1);
        }
        let given_up = behind.saturating_sub(BEHIND_MAX);
        if given_up.is_zero() {
            return present;
        }
        self.origin = self.origin.map(|origin| origin + given_up);
        self.shortfall += given_up;
        self.present(now)
    }

    /// Lets the devices answer what has arrived at them.
    fn answer(&mut self) {
        for (node, application) in &mut self.devices {
            application.answer(*node, &mut self.network, &mut self.packet);
        }
    }

    /// Returns when the network goes on.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let next = self.network.next_event()?;
        match (self.pace, self.origin) {
            (Pace::RealTime, Some(origin)) => {
                let due = origin + Duration::from_nanos(next.as_nanos() + 1);
                let is_soon = due <= now + SOON && self.is_quiet();
                Some(if is_soon || due + TURN_TIME <= now { now } else { due.max(now + self.together()) })
            }
            _ => Some(now),
        }
    }

    /// Returns the time whose packets are passed on together: half of that which the shortest queue of a gate lasts.
    fn together(&self) -> Duration {
        let backlogs =
            self.gates.iter().map(|gate| self.network.backlog(gate.gate.node)).filter(|time| *time > Picos::ZERO);
        let half = backlogs.min().map_or(TOGETHER.start, |time| Duration::from_nanos(time.as_nanos() / 2));
        half.clamp(TOGETHER.start, TOGETHER.end)
    }

    /// Finds out which hosts are not read from for a while, because what they have sent lasts for some time.
    fn sate(&mut self) {
        if self.pace == Pace::RealTime {
            let times = if self.pressure > PRESSURE.start { SATED_LATE } else { 1 };
            for gate in &mut self.gates {
                let (_, bytes) = self.network.queued(gate.gate.node);
                gate.is_sated = bytes > times * if gate.is_sated { SATED.start } else { SATED.end };
            }
        }
    }

    /// Returns whether packets are few, so that each of them is to be on time. Of many, those of a while are passed on together.
    fn is_quiet(&self) -> bool {
        self.gates.iter().map(|gate| self.network.queued(gate.gate.node).0).sum::<usize>() <= QUIET
    }

    /// Puts together frames for one host. Returns it, if there are any.
    fn serve(&mut self, out: &mut Outbox) -> Option<Peer> {
        for step in 0..self.gates.len() {
            let number = (self.next_gate + step) % self.gates.len();
            let gate = &mut self.gates[number];
            self.frames.clear();
            let receiver = gate.receiver().filter(|peer| self.hosts.get(*peer).is_some_and(|host| !host.is_blocked));
            if receiver.is_none() && gate.receiver().is_some() {
                continue;
            }
            gate.collect(&mut self.network, receiver.is_some(), FRAMES, &mut self.packet, &mut self.frames);
            if let Some(peer) = receiver
                && !self.frames.is_empty()
            {
                self.next_gate = number + 1;
                out.copy(&self.frames);
                return Some(peer);
            }
        }
        None
    }
}

/// Input of a host.
#[derive(Clone, Copy)]
enum Bytes<'a> {
    Received(&'a [u8]),
    Landed(usize),
}

impl<O: Observer> Machine for Bridge<O> {
    type Command = ();
    type Event = BridgeEvent;

    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        if self.pace == Pace::RealTime {
            // What comes now does not happen in the network's past.
            self.run(now);
        }
        match input {
            Input::Opened(peer, ends) => self.connected(peer, ends),
            Input::Received(peer, bytes) => self.take(peer, Bytes::Received(bytes)),
            Input::Landed(peer, count) => self.take(peer, Bytes::Landed(count)),
            Input::Closed(peer, why) => {
                if let Some(gate) = self.disconnected(peer) {
                    self.tell(BridgeEvent::Disconnected(gate, why));
                }
            }
            Input::Blocked(peer) | Input::Drained(peer) => {
                let is_blocked = matches!(input, Input::Blocked(_));
                if let Some(host) = self.hosts.at(peer) {
                    host.is_blocked = is_blocked;
                }
            }
            Input::Command(()) | Input::Elapsed => {}
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<BridgeEvent> {
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if let Some(peer) = self.to_close.pop_front() {
            return Output::Close(peer);
        }
        self.run(now);
        self.sate();
        match self.serve(out) {
            Some(peer) => Output::Send(peer),
            None => Output::Idle(self.deadline(now)),
        }
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.hosts.at(peer)?.landing()
    }

    fn has_room(&self, peer: Peer) -> bool {
        let Some(host) = self.hosts.get(peer) else { return true };
        let gate = &self.gates[host.gate];
        let has_room = || gate.gate.has_room(self.network.queued(gate.gate.node));
        host.side == Side::ToHost || !gate.is_sated && has_room()
    }
}
