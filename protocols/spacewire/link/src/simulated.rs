mod memory;

use crate::options::{Far, LineOptions};
use crate::{ECHO, ONE_WAY, Pending, number, stamp};
use hodo_machine::{Instant, Wait};
use hodo_measure::{Completion, FarEnd, Link, LinkError, Mode, Operation, Outcome};
use hodo_spacewire::formula::{CABLE_S_PER_M, packet_bits};
use hodo_spacewire::network::{
    BitErrors, BuildError, Builder, LinkSettings, Network, NodeId, NodeSettings, RouterSettings,
};
use hodo_spacewire::{EndOfPacket, Picos};
use memory::{Answer, Memory};
use std::time::Duration;

/// The longest step between two looks at the nodes.
const STEP_MAX: u64 = 20_000_000;
/// The shortest one: nothing happens more often than a character ends.
const STEP_MIN: u64 = 100_000;
/// How long the links have to start.
const START: Picos = Picos::from_nanos(1_000_000);
/// The time after which an operation is lost of which nothing was seen.
const PATIENCE: u64 = 1_000_000_000_000;

/// Two nodes of a simulated network, in the time of the simulation.
pub(crate) struct SimulatedLink {
    network: Network,
    ends: [NodeId; 2],
    /// The path in front of packets of either node.
    paths: [Vec<u8>; 2],
    line: LineOptions,
    pending: [Pending; 3],
    /// Packets that wait for room at their node.
    waiting: [Vec<Vec<u8>>; 2],
    /// The memory at the other node, of `far=rmap`.
    memory: Option<Memory>,
    /// The time between two time-codes, and when the next is due.
    time_codes: Option<(u64, u64)>,
    time: u8,
    /// The bytes of the last packet.
    size: usize,
    /// When something arrived, or was begun, for the last time.
    alive: u64,
    buffer: Vec<u8>,
}

/// The operations that go one way, the other, and there and back.
const OUT: usize = 0;
const BACK: usize = 1;
const ROUND: usize = 2;

impl SimulatedLink {
    /// Creates a network and lets its links start.
    pub(crate) fn new(
        line: LineOptions,
        far: &Far,
        bit_errors: f64,
        seed: u64,
        in_flight: (usize, usize),
    ) -> Result<Self, BuildError> {
        let settings = NodeSettings {
            // The simulation goes in runs as long as there is certainly room.
            packets: 2 * in_flight.0 + 1024,
            bytes: (2 * in_flight.0 + 2) * (in_flight.1 + 32),
            ..NodeSettings::default()
        };
        let mut builder = Builder::new();
        let ends = [builder.node("one", settings.clone())?, builder.node("other", settings)?];
        let mut before = None;
        let mut link = LinkSettings {
            cable: Picos((line.cable_m * CABLE_S_PER_M * 1e12).round() as u64),
            any_rate: true,
            ..LinkSettings::at_rate(line.rate_bps.round() as u64)
        };
        let mut noise = |number: u64| {
            let errors = |way: u64| {
                (bit_errors > 0.0).then_some(BitErrors { rate: bit_errors, seed: seed ^ (2 * number + way) })
            };
            link.bit_errors = [errors(0), errors(1)];
            link.clone()
        };
        for number in 0..line.routers {
            let router = builder.router(&format!("router {}", number + 1), RouterSettings::default())?;
            match before {
                None => builder.link(ends[0], (router, 1), &noise(0))?,
                Some(before) => builder.link((before, 2), (router, 1), &noise(u64::from(number)))?,
            }
            before = Some(router);
        }
        match before {
            None => builder.link(ends[0], ends[1], &noise(0))?,
            Some(last) => builder.link((last, 2), ends[1], &noise(u64::from(line.routers)))?,
        }
        let mut network = builder.build()?;
        network.run_until(START);
        let hops = usize::from(line.routers);
        let period = (line.time_codes_per_s > 0.0).then(|| (1e12 / line.time_codes_per_s) as u64);
        let paths = [vec![2; hops], vec![1; hops]];
        let memory = match far {
            Far::Rmap(target) => Some(Memory::new(target, &paths, in_flight)),
            _ => None,
        };
        Ok(SimulatedLink {
            network,
            ends,
            paths,
            line,
            pending: Default::default(),
            waiting: Default::default(),
            memory,
            time_codes: period.map(|period| (period, START.0 + period)),
            time: 0,
            size: 1,
            alive: START.0,
            buffer: Vec::new(),
        })
    }

    /// Sends a packet from one node.
    fn send(&mut self, from: usize, address: u8, number: u32, size: u32) {
        let path = &self.paths[from];
        let mut packet = Vec::with_capacity(path.len() + size as usize);
        packet.extend_from_slice(path);
        packet.resize(path.len() + size as usize, 0);
        stamp(&mut packet[path.len()..], address, number);
        self.send_packet(from, packet);
    }

    fn send_packet(&mut self, from: usize, packet: Vec<u8>) {
        self.size = packet.len();
        if !self.waiting[from].is_empty() || self.network.send(self.ends[from], &packet, EndOfPacket::Eop).is_err() {
            self.waiting[from].push(packet);
        }
    }

    /// Sends what waited for room.
    fn send_waiting(&mut self) {
        for from in 0..2 {
            let network = &mut self.network;
            let node = self.ends[from];
            let taken =
                self.waiting[from].iter().take_while(|packet| network.send(node, packet, EndOfPacket::Eop).is_ok());
            let taken = taken.count();
            self.waiting[from].drain(..taken);
        }
    }

    /// Takes what has arrived.
    fn collect(&mut self, done: &mut Vec<Completion>) {
        for at in 0..2 {
            let node = self.ends[at];
            while let Some(code) = self.network.receive_time_code(node) {
                let _ = code;
            }
            loop {
                self.buffer.clear();
                let Some(header) = self.network.receive_into(node, &mut self.buffer) else { break };
                self.alive = self.network.now().0;
                if self.memory.is_some() {
                    self.answer(at, header.end, done);
                    continue;
                }
                if header.end == EndOfPacket::Eep {
                    continue;
                }
                let number = number(&self.buffer);
                match self.buffer.first() {
                    Some(&ECHO) if at == 1 => self.send(1, ECHO, number.unwrap_or(0), header.length as u32),
                    Some(&ECHO) => complete(&mut self.pending[ROUND], number, done),
                    Some(&ONE_WAY) => complete(&mut self.pending[if at == 1 { OUT } else { BACK }], number, done),
                    // Damaged on the way, beyond what parity sees.
                    _ => {}
                }
            }
        }
        self.send_waiting();
    }

    /// Takes a packet of RMAP: a command at the memory, or its reply.
    fn answer(&mut self, at: usize, end: EndOfPacket, done: &mut Vec<Completion>) {
        let now = self.now();
        let Some(memory) = &mut self.memory else { return };
        if at == 1 {
            let mut reply = Vec::new();
            memory.serve(&self.buffer, end, &mut reply);
            if !reply.is_empty() {
                self.send_packet(1, reply);
            }
            return;
        }
        match memory.receive(&self.buffer, end, now) {
            Some(Answer { number, succeeded: true }) => complete(&mut self.pending[ROUND], Some(number), done),
            Some(Answer { number, succeeded: false }) => refuse(&mut self.pending[ROUND], number, done),
            None => {}
        }
    }

    fn under_way(&self) -> usize {
        self.pending.iter().map(|pending| pending.tags.len()).sum()
    }

    /// Returns when the nodes are to be looked at next.
    fn next_look(&self) -> u64 {
        let now = self.network.now().0;
        let bits = packet_bits(self.size as u64) as f64;
        let packet = (bits / self.line.rate_bps * 1e12) as u64;
        if self.under_way() == 1 {
            // A lone one is seen when it arrives, to the character.
            let began = self.alive;
            let next = self.network.next_event().map_or(now + STEP_MAX, |next| next.0);
            return if now < began + packet { (began + packet).max(now + 1) } else { next.max(now + 1) };
        }
        now + (packet / 2).clamp(STEP_MIN, STEP_MAX)
    }

    fn tick(&mut self) {
        let Some((period, due)) = &mut self.time_codes else { return };
        if self.network.now().0 >= *due {
            *due += *period;
            self.time = (self.time + 1) & 63;
            // A link that is down has none; the next follows. A network has one node that sends them.
            let _ = self.network.time_code(self.ends[0], self.time);
        }
    }
}

fn complete(pending: &mut Pending, number: Option<u32>, done: &mut Vec<Completion>) {
    let mut lost = Vec::new();
    let tag = pending.take(number, |tag| lost.push(tag));
    done.extend(lost.into_iter().map(|tag| Completion { tag, outcome: Outcome::Lost }));
    done.extend(tag.map(|tag| Completion { tag, outcome: Outcome::Done }));
}

/// Ends an operation that was refused, and those before it.
fn refuse(pending: &mut Pending, number: u32, done: &mut Vec<Completion>) {
    let before = done.len();
    complete(pending, Some(number), done);
    if let Some(last) = done[before..].last_mut() {
        last.outcome = Outcome::Refused;
    }
}

impl Link for SimulatedLink {
    fn start(&mut self, operation: Operation) {
        let Operation { tag, size, mode, .. } = operation;
        // A packet without its address would go nowhere.
        let size = size.max(1);
        if self.under_way() == 0 {
            self.alive = self.network.now().0;
        }
        let now = self.now();
        if let Some(memory) = &mut self.memory {
            let number = self.pending[ROUND].push(tag);
            let mut command = Vec::new();
            memory.request(mode, size, number, now, &mut command);
            return self.send_packet(0, command);
        }
        let (kind, from, address) = match mode {
            Mode::Send => (OUT, 0, ONE_WAY),
            Mode::Receive => (BACK, 1, ONE_WAY),
            Mode::Both => (ROUND, 0, ECHO),
        };
        let number = self.pending[kind].push(tag);
        self.send(from, address, number, size);
    }

    fn poll(&mut self, _wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let before = done.len();
        let end = until.nanos_since(Instant::ZERO).saturating_mul(1000);
        loop {
            self.collect(done);
            if done.len() > before || self.network.now().0 >= end {
                return Ok(());
            }
            if self.under_way() > 0 && self.network.now().0 > self.alive + PATIENCE {
                let lost = self.pending.iter_mut().flat_map(|pending| std::iter::from_fn(|| pending.pop()));
                done.extend(lost.map(|tag| Completion { tag, outcome: Outcome::Lost }));
                continue;
            }
            let due = self.time_codes.map_or(u64::MAX, |(_, due)| due);
            let next = if self.under_way() == 0 { end } else { self.next_look() };
            self.network.run_until(Picos(next.min(due).min(end)));
            self.tick();
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.network.now().as_nanos())
    }

    fn far_end(&mut self, _until: Instant, _done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        Ok(None)
    }
}
