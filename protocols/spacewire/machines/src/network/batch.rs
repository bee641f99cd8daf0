//! A link between two nodes, in runs of bytes: the same codes at the same times as one by one.
//!
//! An end commits itself to a run up to the first boundary at which an FCT could be due. That is known from the N-chars that
//! the far end has committed itself to; where those are too few, it is bounded by the time that the missing ones take. The end
//! that is behind goes on first, so that what arrives before its next boundary is always known.
//!
//! Bytes are copied to the receive queue packet by packet, when the packet begins to leave; what has not arrived when the
//! batch ends is taken back and put on the line. Faults, bit errors, time-codes, hosts that do not take at once and full queues
//! are left to the other engine.
mod exchange;

use alloc::collections::VecDeque;

use super::node::Node;
use super::port::{Cargo, Flight, NEVER, Owner, Port};
use super::{EndOfPacket, Network, Observer};
use crate::character::Code;
use crate::end::{CREDIT_MAX, Counts};
use exchange::{Exchange, Kind, Run, Side};

/// Memory that is used again from call to call.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    sides: [Side; 2],
    /// Beginnings and ends of packets on their way, for the observer.
    marks: [VecDeque<Mark>; 2],
}

/// The arrival of the first character of a packet, or of its end.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: u64,
    end: Option<(u64, EndOfPacket)>,
}

impl<O: Observer> Network<O> {
    /// Lets a link between two nodes go on up to `until`, or to where it needs the other engine.
    pub(super) fn run_batch(&mut self, first: usize, until: u64) {
        let [one, other] = [&self.ports[first], &self.ports[first + 1]];
        let horizon = until.min(one.alarm.min(other.alarm).saturating_sub(1));
        let horizon = horizon.min(one.right_until()).min(other.right_until());
        let next = one.key().min(other.key()) >> 1;
        if next > horizon || !is_undisturbed::<O>(one) || !is_undisturbed::<O>(other) {
            return;
        }
        let (Owner::Node(a), Owner::Node(b)) = (one.owner, other.owner) else { return };
        let places = [self.place(first), self.place(first + 1)];
        let Ok(nodes) = self.nodes.get_disjoint_mut([a, b]) else { return };
        let fits = |from: usize, to: usize| {
            let next = nodes[from].outgoing.front().map_or(0, |(bytes, _)| bytes.len());
            nodes[to].takes_runs() && nodes[to].has_room(next)
        };
        if !fits(0, 1) || !fits(1, 0) {
            return;
        }
        let (ports, _) = self.ports[first..].split_at_mut(2);
        let Scratch { sides, marks } = &mut self.scratch;
        let mut exchange = Exchange { sides, marks, nodes, places, observer: &mut self.observer, horizon };
        for (at, port) in ports.iter_mut().enumerate() {
            enter(&mut exchange, at, port);
        }
        let known = exchange.run();
        exchange.flush(known);
        for (at, port) in ports.iter_mut().enumerate() {
            leave(&mut exchange, at, port, known);
        }
        for (at, port) in ports.iter_mut().enumerate() {
            settle(&exchange, at, port);
            exchange.marks[at].clear();
        }
    }
}

impl Node {
    /// Returns for how many bits of further N-chars the receive queue certainly has room, beside all that can be on its way.
    pub(super) fn room(&self) -> u64 {
        let credit = usize::from(CREDIT_MAX);
        // An N-char that has begun comes whole.
        let bytes = self.settings.bytes.saturating_sub(self.incoming.bytes() + credit + 1);
        // A packet has a byte at the least: an end without one is discarded. Of three more, one is open, one begins, and one has begun.
        let packets = self.settings.packets.saturating_sub(self.incoming.packets() + credit / 2 + 3);
        (bytes as u64).saturating_mul(10).min((packets as u64).saturating_mul(14))
    }

    /// Tells whether the receive queue certainly takes a packet of this length, beside all that can be on its way.
    fn has_room(&self, length: usize) -> bool {
        self.incoming.bytes() + length + usize::from(CREDIT_MAX) <= self.settings.bytes
            && self.incoming.packets() + usize::from(CREDIT_MAX) <= self.settings.packets
    }
}

pub(super) fn is_undisturbed<O: Observer>(port: &Port) -> bool {
    port.end.is_undisturbed()
        && port.on
        // Not with a code of the start-up still in progress.
        && port.bit_now == port.bit_run
        // With bit errors, an observer is told of every byte that arrives.
        && !(O::ACTIVE && port.flips.is_some())
        && port.after_nchars.is_none()
        && port.disconnect_at == NEVER
        && !port.escaped
        && !port.unbalanced
        && port.inbound.iter().all(|flight| match flight.cargo {
            Cargo::Code(code) => code == Code::Fct || code.is_nchar(),
            _ => false,
        })
}

/// Takes the state of an end over, with what is on its way there.
fn enter<O: Observer>(exchange: &mut Exchange<'_, O>, at: usize, port: &mut Port) {
    let need = exchange::need(port.end.promised(), port.end.settings().buffer);
    exchange.sides[at].reset(port.boundary, port.bit_run, port.cable, u64::from(port.end.credit()), need);
    while let Some(flight) = port.inbound.pop_front() {
        let Cargo::Code(code) = flight.cargo else { continue };
        let kind = match code {
            Code::Fct => {
                exchange.sides[at].fcts.push_back(flight.arrive);
                continue;
            }
            Code::Data(byte) => {
                exchange.arrives_first(at, flight.arrive);
                exchange.nodes[at].incoming.append(&[byte]);
                Kind::Data
            }
            code => exchange.end_in_flight(at, code, flight.arrive),
        };
        let side = &mut exchange.sides[at];
        side.received.count(code, 1);
        let length = flight.arrive - flight.begin;
        side.receive(Run { arrive: flight.arrive, count: 1, length, kind }, 0);
    }
}

/// Puts back on the line what has not arrived at `known`.
fn leave<O: Observer>(exchange: &mut Exchange<'_, O>, at: usize, port: &mut Port, known: u64) {
    let (far_rest, far_bit) = (exchange.sides[1 - at].rest as usize, exchange.sides[1 - at].bit);
    let incoming = &mut exchange.nodes[at].incoming;
    incoming.take_back(far_rest);
    let side = &mut exchange.sides[at];
    let line = &mut port.inbound;
    while let Some(run) = side.runs.pop_back() {
        let arrived = run.arrived(known);
        let missing = run.count - arrived;
        if missing == 0 {
            break;
        }
        let mut put = |number: u64, code: Code| {
            let arrive = run.arrive + number * run.length;
            side.returned.count(code, 1);
            line.push_front(Flight { begin: arrive - run.length, arrive, cargo: Cargo::Code(code) });
        };
        match run.kind {
            Kind::Empty(code) => put(0, code),
            Kind::End(code) => {
                incoming.reopen();
                put(0, code);
            }
            Kind::Data => {
                for (number, byte) in incoming.take_back(missing as usize).into_iter().enumerate().rev() {
                    put(arrived + number as u64, Code::Data(byte));
                }
            }
        }
    }
    // FCTs go between the N-chars, in the order of their times.
    while let Some(arrive) = side.fcts.pop_front() {
        if arrive <= known {
            side.received.fcts += 1;
            continue;
        }
        let behind = line.iter().position(|flight| flight.arrive > arrive).unwrap_or(line.len());
        let begin = arrive - 4 * far_bit;
        line.insert(behind, Flight { begin, arrive, cargo: Cargo::Code(Code::Fct) });
    }
    exchange.nodes[at].outgoing.sent(exchange.sides[at].left);
}

/// Gives an end what it sent and received.
fn settle<O: Observer>(exchange: &Exchange<'_, O>, at: usize, port: &mut Port) {
    let (side, far) = (&exchange.sides[at], &exchange.sides[1 - at]);
    let Side { received, returned, .. } = side;
    let received = Counts {
        fcts: received.fcts,
        data: far.sent.data + received.data - returned.data,
        eops: far.sent.eops + received.eops - returned.eops,
        eeps: far.sent.eeps + received.eeps - returned.eeps,
        ..far.sent
    };
    let open = exchange.nodes[at].incoming.open();
    port.end.progressed(&side.sent, &received, exchange.nodes[at].outgoing.begun(), open.is_some());
    port.arriving = open;
    port.transmitted(&side.sent, side.boundary, side.idle);
}
