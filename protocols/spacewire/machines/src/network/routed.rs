//! All links that a router is on, in runs of N-chars: the same codes at the same times as one by one.
//!
//! The transmitter whose next boundary is the earliest goes first. It commits itself to a run of data up to the first boundary at which an
//! FCT could be due: that follows from the N-chars that others have committed themselves to, or from how soon they can send more. An
//! idle transmitter commits itself to nothing, and is woken by what is committed elsewhere. Inputs of routers look at headers and
//! ends of packets at their times, before the choices of transmitters at the same time.
//!
//! A batch begins while all links that run are undisturbed, and ends before the next alarm or bit error, and soon after a packet for a
//! configuration port. Errors, faults, time-codes and hosts that do not take at once are left to the other engine.
mod enter;
mod leave;
mod side;
mod worms;

use alloc::vec::Vec;

use super::node::Node;
use super::port::{NEVER, Owner};
use super::run::end_of_packet;
use super::schedule::Schedule;
use super::{EndOfPacket, Network, Observer, Record};
use crate::character::Code;
use crate::time::Picos;
use side::{Kind, Room, Run, Side};

/// Bits of the fastest link that a commitment may lie ahead: less than the shortest command takes to arrive at a configuration port.
const AHEAD: u64 = 160;

/// Memory that is used again from batch to batch.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    sides: Vec<Side>,
    /// The order in which they are looked at.
    order: Schedule,
    /// The links that take part, by their first ends.
    links: Vec<usize>,
    bytes: Vec<u8>,
}

/// The arrival of the first character of a packet, or of its end.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: u64,
    end: Option<(u64, EndOfPacket)>,
}

/// The links of a network's routers while they run undisturbed.
struct Batch<'a, O> {
    network: &'a mut Network<O>,
    sides: Vec<Side>,
    order: Schedule,
    links: Vec<usize>,
    /// The bytes of the run that is sent.
    bytes: Vec<u8>,
    now: u64,
    /// Nothing that begins later is committed, and nothing later is looked at.
    horizon: u64,
    ahead: u64,
}

/// An N-char that a transmitter can send, or why there is none.
#[derive(Debug, Clone, Copy)]
enum Offer {
    Nothing,
    /// There will be one at this time.
    Later(u64),
    /// This many bytes of data.
    Data(u64),
    End(Code),
}

impl<O: Observer> Network<O> {
    /// Lets all links of routers go on, to `until` or to where they need the other engine. Returns up to when, or `None` if that is now.
    pub(super) fn run_routed_batch(&mut self, until: u64) -> Option<u64> {
        let mut links = core::mem::take(&mut self.routed_scratch.links);
        let Some(span) = self.batch_span(until, &mut links) else {
            self.routed_scratch.links = links;
            return None;
        };
        let Scratch { sides, order, bytes, .. } = core::mem::take(&mut self.routed_scratch);
        let bit_min = links.iter().map(|first| self.ports[*first].bit_run.min(self.ports[*first + 1].bit_run)).min();
        let bit_min = bit_min.unwrap_or(1);
        let (now, horizon, ahead) = (span.start, span.end, AHEAD * bit_min);
        let mut batch = Batch { network: self, sides, order, links, bytes, now, horizon, ahead };
        batch.enter();
        batch.run();
        batch.leave();
        let Batch { sides, order, links, bytes, horizon, .. } = batch;
        self.routed_scratch = Scratch { sides, order, links, bytes };
        self.settle_inputs(horizon);
        Some(horizon)
    }
}

impl<O: Observer> Batch<'_, O> {
    fn run(&mut self) {
        while let Some((key, at)) = self.order.first() {
            let now = key >> 1;
            if now > self.horizon {
                return;
            }
            self.now = now;
            if key & 1 == 0 {
                self.sides[at].look = NEVER;
                self.look(at);
            } else {
                self.turn(at);
            }
            self.reorder(at);
        }
    }

    /// Brings the place of an end in the order up to date.
    #[inline]
    fn reorder(&mut self, at: usize) {
        self.order.set(at, self.sides[at].key());
    }

    /// Lets an idle transmitter look at `time`.
    #[inline]
    fn wake(&mut self, at: usize, time: u64) {
        if self.sides[at].wake_at(time) {
            self.reorder(at);
        }
    }

    /// Lets a transmitter go on, as far as it is certain what it sends.
    fn turn(&mut self, at: usize) {
        let limit = self.horizon.min(self.now + self.ahead);
        if self.sides[at].idle {
            let (count, began) = self.sides[at].end_idle();
            if count > 0 {
                let bit = Picos(self.sides[at].bit);
                self.record(began, at, Record::Nulls { count, bit });
            }
        }
        // All that is before now is known.
        let mut is_now = true;
        loop {
            let side = &mut self.sides[at];
            let begins = side.boundary;
            side.absorb(begins);
            if side.due <= begins {
                self.send_fct(at);
            } else {
                let offer = self.offer(at, begins);
                if self.sides[at].credit == 0 || matches!(offer, Offer::Nothing | Offer::Later(_)) {
                    return self.rest(at, offer, is_now);
                }
                let bound = self.due_at_least(at);
                if !is_now && bound <= begins {
                    return;
                }
                if let Offer::Data(available) = offer {
                    self.send_data(at, available, limit.min(bound - 1));
                } else if let Offer::End(code) = offer {
                    // The end of a packet gives its output to another one: in the order of time.
                    if !is_now && matches!(self.sides[at].owner, Owner::Router(..)) {
                        return;
                    }
                    self.send_end(at, code);
                }
            }
            if self.sides[at].boundary > limit {
                return;
            }
            is_now = false;
        }
    }

    /// Returns the next N-char that there is to send at `begins`.
    #[inline]
    fn offer(&self, at: usize, begins: u64) -> Offer {
        match self.sides[at].owner {
            Owner::Node(node) => match self.network.nodes[node].outgoing.front() {
                None => Offer::Nothing,
                Some((bytes, _)) if !bytes.is_empty() => Offer::Data(bytes.len() as u64),
                Some((_, EndOfPacket::Eop)) => Offer::End(Code::Eop),
                Some((_, EndOfPacket::Eep)) => Offer::End(Code::Eep),
            },
            Owner::Router(..) => {
                let side = &self.sides[at];
                let Some(run) = side.from.and_then(|from| self.sides[from].runs.front()) else {
                    return Offer::Nothing;
                };
                let ready = side.ready(run.arrive);
                match run.kind {
                    _ if ready > begins => Offer::Later(ready),
                    Kind::End(code, _) => Offer::End(code),
                    Kind::Data => {
                        let length = 10 * side.bit;
                        // A faster output overtakes the input.
                        let count = match run.length.checked_sub(length) {
                            None | Some(0) => run.count,
                            Some(gain) => run.count.min((begins - ready) / gain + 1),
                        };
                        Offer::Data(count)
                    }
                }
            }
        }
    }

    /// Returns the earliest time at which an FCT could be due.
    fn due_at_least(&self, at: usize) -> u64 {
        let side = &self.sides[at];
        if side.due != NEVER {
            return side.due;
        }
        // One comes at once, the others after it.
        let more = side.need.max(1) as u64 - 1;
        match side.owner {
            Owner::Node(_) => self.arrives_at_least(at, more),
            // As many as are missing here have to arrive first.
            Owner::Router(..) if more >= side.standing => {
                self.arrives_at_least(at, more - side.standing).saturating_add(1)
            }
            Owner::Router(..) => {
                let (Some(to), Some(front)) = (side.to, side.runs.front()) else { return self.now + 1 };
                let to = &self.sides[to];
                let data: u64 =
                    side.runs.iter().take(4).take_while(|run| run.kind == Kind::Data).map(|run| run.count).sum();
                let starts = to.boundary.max(self.now).max(to.ready(front.arrive));
                starts + 10 * data.min(more) * to.bit + 1
            }
        }
    }

    /// Returns the earliest time at which an N-char arrives that has not left yet, behind `more` others.
    fn arrives_at_least(&self, at: usize, more: u64) -> u64 {
        let far = &self.sides[at ^ 1];
        let starts = far.boundary.max(self.now);
        let span = match far.owner {
            Owner::Node(node) => {
                let Some((bytes, _)) = self.network.nodes[node].outgoing.front() else { return NEVER };
                let data = more.min(bytes.len() as u64);
                // Each N-char has four bits at the least.
                (10 * data + 4 * (more - data)) * far.bit
            }
            Owner::Router(..) => more * far.step,
        };
        starts + span + 4 * far.bit + far.cable
    }

    #[inline]
    fn send_fct(&mut self, at: usize) {
        let side = &mut self.sides[at];
        let began = side.boundary;
        side.boundary += 4 * side.bit;
        side.sent.fcts += 1;
        side.promise();
        let arrive = side.boundary + side.cable;
        let far = &mut self.sides[at ^ 1];
        far.fcts.push_back(arrive);
        if far.credit == 0 {
            self.wake(at ^ 1, arrive);
        }
        self.record(began, at, Record::Code(Code::Fct));
    }

    /// Sends data, at least one byte, that begins by `last`.
    #[inline]
    fn send_data(&mut self, at: usize, available: u64, last: u64) {
        let side = &mut self.sides[at];
        let (began, length) = (side.boundary, 10 * side.bit);
        let wanted = available.min(side.credit);
        let span = last.saturating_sub(began);
        // A division takes longer than all the rest.
        let count = if span >= (wanted - 1) * length { wanted } else { span / length + 1 };
        side.boundary += count * length;
        side.credit -= count;
        side.sent.data += count;
        side.sending = true;
        let arrive = began + length + side.cable;
        let bit = Picos(side.bit);
        self.bytes.clear();
        match side.owner {
            Owner::Node(node) => {
                let outgoing = &mut self.network.nodes[node].outgoing;
                if let Some((bytes, _)) = outgoing.front() {
                    self.bytes.extend_from_slice(&bytes[..count as usize]);
                }
                outgoing.sent(count as usize);
            }
            Owner::Router(..) => {
                side.begun = true;
                if let Some(from) = side.from {
                    self.leave_input(from, count, began, length);
                }
            }
        }
        if O::ACTIVE {
            let place = self.network.place(at);
            self.network.observer.record(Picos(began), place, Record::Data { bytes: &self.bytes, bit });
        }
        self.receive(at ^ 1, Run { arrive, count, length, kind: Kind::Data });
    }

    fn send_end(&mut self, at: usize, code: Code) {
        let side = &mut self.sides[at];
        let (began, length) = (side.boundary, 4 * side.bit);
        side.boundary += length;
        side.credit -= 1;
        side.sent.count(code, 1);
        side.sending = false;
        let arrive = side.boundary + side.cable;
        self.record(began, at, Record::Code(code));
        let owner = self.sides[at].owner;
        if let Owner::Node(node) = owner {
            self.network.nodes[node].outgoing.finish();
        }
        self.receive(at ^ 1, Run { arrive, count: 1, length, kind: Kind::End(code, 0) });
        if let Owner::Router(router, output) = owner {
            self.end_worm(at, router, output);
        }
    }

    /// Sends NULLs until there is something else. Only the one that begins now is certain.
    fn rest(&mut self, at: usize, offer: Offer, is_now: bool) {
        let side = &mut self.sides[at];
        let (began, bit) = (side.boundary, Picos(side.bit));
        if is_now {
            side.boundary += 8 * side.bit;
            side.sent.nulls += 1;
        }
        side.idle = true;
        (side.wake, side.resume) = (NEVER, NEVER);
        side.wake_at(side.due.min(side.sends_at(offer, began)));
        if is_now {
            self.record(began, at, Record::Nulls { count: 1, bit });
        }
    }

    /// Takes N-chars that are on their way to an end. The bytes of data are in `bytes`.
    // In a function of its own the run goes through memory, which takes longer than all the rest.
    #[inline(always)]
    fn receive(&mut self, at: usize, run: Run) {
        let Run { arrive, count, length, .. } = run;
        let side = &mut self.sides[at];
        let run = match run.kind {
            Kind::Data => {
                side.received.data += count;
                if side.open.is_none() {
                    side.mark::<O>(arrive, None);
                    if self.bytes.first() == Some(&0) && matches!(side.owner, Owner::Router(..)) {
                        // A command for the configuration port changes the network: the batch ends before it can be whole.
                        self.horizon = self.horizon.min(arrive + self.ahead - 1);
                    }
                }
                side.open = Some(side.open.unwrap_or(0) + count);
                run
            }
            Kind::End(code, _) => {
                side.received.count(code, 1);
                if side.open.is_none() {
                    side.mark::<O>(arrive, None);
                }
                let packet = side.open.take().unwrap_or(0);
                side.mark::<O>(arrive, Some((packet, end_of_packet(code))));
                Run { kind: Kind::End(code, packet), ..run }
            }
        };
        match side.owner {
            Owner::Node(node) => {
                while side.runs.front().is_some_and(|first| first.last() < self.now) {
                    side.runs.pop_front();
                }
                side.runs.push_back(run);
                let Node { incoming, is_watched, .. } = &mut self.network.nodes[node];
                match run.kind {
                    Kind::Data => {
                        incoming.begin(Picos(arrive));
                        incoming.append(&self.bytes);
                    }
                    // An end with nothing before it is an empty packet, and discarded.
                    Kind::End(code, _) if incoming.is_open() => {
                        incoming.end(end_of_packet(code), Picos(arrive));
                        if *is_watched && let Some(early) = self.network.early {
                            // Others may have committed themselves up to so far ahead.
                            self.horizon = self.horizon.min(arrive.max(early).max(self.now + self.ahead));
                        }
                    }
                    Kind::End(..) => {}
                }
                side.make_room(Room { at: arrive, count, spacing: length });
                let due = side.due;
                self.wake(at, due);
            }
            Owner::Router(router, input) => self.arrive(at, router, input, run),
        }
    }

    fn record(&mut self, time: u64, at: usize, record: Record<'_>) {
        self.network.record(time, at, record);
    }
}

impl Side {
    fn mark<O: Observer>(&mut self, at: u64, end: Option<(u64, EndOfPacket)>) {
        if O::ACTIVE {
            self.marks.push_back(Mark { at, end });
        }
    }
}
