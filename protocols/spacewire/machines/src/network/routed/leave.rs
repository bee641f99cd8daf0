//! The end of a batch: the state that it leaves to the other engine.
use super::super::port::{Cargo, Flight, NEVER};
use super::super::router::{Input, Stored, Worm};
use super::super::{Network, Observer, Record};
use super::{Batch, Kind, Owner};
use crate::character::Code;
use crate::end::Counts;
use crate::time::Picos;

impl<O: Observer> Batch<'_, O> {
    /// Puts back on the line what has not arrived by the horizon, and gives every end what it sent and received.
    pub(super) fn leave(&mut self) {
        let links = core::mem::take(&mut self.links);
        let ends = || links.iter().flat_map(|first| [*first, *first + 1]);
        for at in ends() {
            match self.sides[at].owner {
                Owner::Node(node) => self.return_from_node(at, node),
                Owner::Router(router, input) => self.return_from_router(at, router, input),
            }
            self.return_fcts(at);
        }
        for at in ends() {
            self.end_idle_times(at);
        }
        for at in ends() {
            self.settle(at);
            self.order.set(at, NEVER);
            self.network.touch(at);
        }
        self.links = links;
    }

    fn return_from_node(&mut self, at: usize, node: usize) {
        let side = &mut self.sides[at];
        let incoming = &mut self.network.nodes[node].incoming;
        let line = &mut self.network.ports[at].inbound;
        while let Some(run) = side.runs.pop_back() {
            let arrived = run.arrived(self.horizon);
            let missing = run.count - arrived;
            if missing == 0 {
                break;
            }
            match run.kind {
                Kind::End(code, packet) => {
                    if packet > 0 {
                        incoming.reopen();
                    }
                    side.returned.count(code, 1);
                    line.push_front(flight(run.arrive, run.length, code));
                }
                Kind::Data => {
                    side.returned.data += missing;
                    for (number, byte) in incoming.take_back(missing as usize).into_iter().enumerate().rev() {
                        let arrive = run.arrive + (arrived + number as u64) * run.length;
                        line.push_front(flight(arrive, run.length, Code::Data(byte)));
                    }
                }
            }
        }
        side.open = incoming.open();
    }

    fn return_from_router(&mut self, at: usize, router: usize, input: u8) {
        let side = &mut self.sides[at];
        self.network.routers[router].inputs[usize::from(input)].moved = side.moved;
        self.network.routers[router].outputs[usize::from(input)].begun = side.begun;
        for run in side.runs.iter().rev() {
            let missing = run.count - run.arrived(self.horizon);
            if missing == 0 {
                break;
            }
            match run.kind {
                Kind::Data => side.open = side.open.map(|open| open - missing).filter(|open| *open > 0),
                Kind::End(_, packet) => side.open = Some(packet).filter(|packet| *packet > 0),
            }
        }
        let stored = &mut self.network.routers[router].inputs[usize::from(input)].stored;
        let line = &mut self.network.ports[at].inbound;
        while let Some(run) = side.runs.pop_front() {
            for number in 0..run.count {
                let code = match run.kind {
                    Kind::Data => {
                        let byte = side.bytes.as_slice()[0];
                        side.bytes.take(1);
                        Code::Data(byte)
                    }
                    Kind::End(code, _) => code,
                };
                let arrive = run.arrive + number * run.length;
                if arrive <= self.horizon {
                    stored.push_back(Stored { code, arrived: arrive, counts: true });
                } else {
                    side.returned.count(code, 1);
                    line.push_back(flight(arrive, run.length, code));
                }
            }
        }
        let filled = stored.len() as u16;
        self.network.ports[at].end.fill(filled);
    }

    /// FCTs go between the N-chars, in the order of their times.
    fn return_fcts(&mut self, at: usize) {
        let length = 4 * self.sides[at ^ 1].bit;
        let side = &mut self.sides[at];
        let line = &mut self.network.ports[at].inbound;
        while let Some(arrive) = side.fcts.pop_front() {
            if arrive <= self.horizon {
                side.received.fcts += 1;
                continue;
            }
            let behind = line.iter().position(|flight| flight.arrive > arrive).unwrap_or(line.len());
            line.insert(behind, flight(arrive, length, Code::Fct));
        }
    }

    /// Counts NULLs of transmitters that have a reason to look at their next boundary. A place that became free at the horizon is one
    /// right after it.
    fn end_idle_times(&mut self, at: usize) {
        if self.sides[at].idle && self.sides[at].wake <= self.horizon + 1 {
            let (count, began) = self.sides[at].end_idle();
            if count > 0 {
                let bit = Picos(self.sides[at].bit);
                self.record(began, at, Record::Nulls { count, bit });
            }
        }
    }

    fn settle(&mut self, at: usize) {
        while let Some(mark) = self.sides[at].marks.pop_front().filter(|mark| mark.at <= self.horizon) {
            let record = match mark.end {
                None => Record::PacketBegins,
                Some((length, end)) => Record::PacketEnds { length, end },
            };
            self.record(mark.at, at, record);
        }
        let (side, far) = (&self.sides[at], &self.sides[at ^ 1]);
        let received = Counts {
            fcts: side.received.fcts,
            data: side.received.data - side.returned.data,
            eops: side.received.eops - side.returned.eops,
            eeps: side.received.eeps - side.returned.eeps,
            ..far.sent
        };
        let port = &mut self.network.ports[at];
        port.end.progressed(&side.sent, &received, side.sending, side.open.is_some());
        port.arriving = side.open;
        port.transmitted(&side.sent, side.boundary, side.idle);
    }
}

impl<O: Observer> Network<O> {
    /// Lets all inputs of routers look at what a batch left there.
    pub(super) fn settle_inputs(&mut self, now: u64) {
        for router in 0..self.routers.len() {
            for input in 0..self.routers[router].inputs.len() as u8 {
                let this = &self.routers[router];
                let Input { stored, worm, .. } = &this.inputs[usize::from(input)];
                let has_to = match (stored.front(), worm) {
                    (None, _) | (_, Worm::Waiting(_)) => false,
                    // What is ready has been seen.
                    (Some(front), Worm::Routed(output)) => {
                        let to = &this.outputs[usize::from(*output)];
                        to.switched.max(front.arrived + to.latency) > now
                    }
                    (Some(_), Worm::Header | Worm::Spilling | Worm::Configuring) => true,
                };
                if has_to {
                    self.advance_input(router, input, now);
                }
            }
        }
        self.update();
    }
}

fn flight(arrive: u64, length: u64, code: Code) -> Flight {
    Flight { begin: arrive - length, arrive, cargo: Cargo::Code(code) }
}
