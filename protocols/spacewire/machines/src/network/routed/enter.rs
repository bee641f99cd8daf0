//! The beginning of a batch: whether there can be one, how long, and the state that it takes over.
use core::ops::Range;

use super::super::batch::is_undisturbed;
use super::super::deadlock::CHECK_INTERVAL;
use super::super::port::{Cargo, Port, SECOND};
use super::super::router::{Router, Worm};
use super::super::{Network, Observer};
use super::{Batch, Kind, NEVER, Owner, Room, Run, Side};
use crate::character::Code;
use crate::end::{CREDIT_MAX, CREDIT_OF_FCT, START_UP_RATE, State};

/// A batch that is shorter costs more than it saves.
const SPAN_MIN: u64 = 500_000;

impl<O: Observer> Network<O> {
    /// Returns from when to when all links of routers run undisturbed, if that is worth a batch, and which links those are.
    pub(super) fn batch_span(&self, until: u64, links: &mut alloc::vec::Vec<usize>) -> Option<Range<u64>> {
        links.clear();
        let mut horizon = until.min(self.next_check.saturating_sub(1));
        // A batch ends before a watchdog that is armed in it looks, and a look for circles.
        let (mut first, mut patience) = (NEVER, CHECK_INTERVAL.0);
        for link in (0..self.ports.len()).step_by(2).filter(|link| self.ports[*link].routed) {
            let pair = [&self.ports[link], &self.ports[link + 1]];
            if !pair.into_iter().any(Port::runs) {
                if pair.into_iter().any(|port| self.is_used(port)) {
                    return None;
                }
                horizon = horizon.min(runs_at_least(pair).saturating_sub(1));
                continue;
            }
            if !pair.into_iter().all(|port| is_undisturbed::<O>(port) && self.is_simple(port)) {
                return None;
            }
            for port in pair {
                horizon = horizon.min(port.alarm_but_ready().saturating_sub(1)).min(port.right_until());
                first = first.min(port.key() >> 1);
                patience = patience.min(port.watchdog);
            }
            links.push(link);
        }
        if first > horizon {
            return None;
        }
        for link in links.iter().flat_map(|link| [*link, *link + 1]) {
            if let Owner::Node(node) = self.ports[link].owner {
                let span = self.nodes[node].room().saturating_mul(self.ports[link ^ 1].bit_run);
                horizon = horizon.min(first.saturating_add(span));
            }
        }
        horizon = horizon.min(first.saturating_add(patience - 1));
        let routers_ready = self.routers.iter().all(Router::is_simple);
        (routers_ready && first + SPAN_MIN <= horizon).then_some(first..horizon)
    }

    /// Tells whether packets have to do with an end that does not run.
    fn is_used(&self, port: &Port) -> bool {
        let Owner::Router(router, input) = port.owner else { return false };
        let router = &self.routers[router];
        let input = &router.inputs[usize::from(input)];
        router.settings.start_on_request
            || !input.stored.is_empty()
            || !matches!(input.worm, Worm::Header | Worm::Spilling)
    }

    /// Tells whether what an end receives needs nothing but room, and knows how much of it there is.
    fn is_simple(&self, port: &Port) -> bool {
        match port.owner {
            Owner::Node(node) => self.nodes[node].takes_runs(),
            Owner::Router(router, input) => {
                let input = &self.routers[router].inputs[usize::from(input)];
                port.end.settings().buffer <= CREDIT_MAX
                    && input.worm != Worm::Configuring
                    && (input.worm != Worm::Spilling || input.stored.is_empty())
                    && input.stored.iter().all(|stored| stored.counts)
                    && !input.holds_command()
            }
        }
    }
}

/// Returns the earliest time at which a link that does not run can do so.
fn runs_at_least(pair: [&Port; 2]) -> u64 {
    let is_off = |port: &Port| {
        let down = matches!(port.end.state(), State::ErrorReset | State::ErrorWait | State::Ready);
        down && port.end.settings().disabled
    };
    if pair.into_iter().any(is_off) {
        return NEVER;
    }
    let next = pair[0].key().min(pair[1].key());
    let fct = 4 * SECOND / START_UP_RATE;
    // Before the first FCT has come, one has still to be sent.
    let has_fct = pair.into_iter().any(|port| port.end.state() == State::Connecting);
    if next == NEVER { NEVER } else { (next >> 1) + if has_fct { 0 } else { fct } }
}

impl<O: Observer> Batch<'_, O> {
    /// Takes over the state of all ends, with what is on its way.
    pub(super) fn enter(&mut self) {
        let ports = self.network.ports.len();
        self.sides.resize_with(ports, Side::default);
        if self.order.players() < ports {
            self.order = super::Schedule::new(ports);
        }
        let links = core::mem::take(&mut self.links);
        let ends = || links.iter().flat_map(|first| [*first, *first + 1]);
        for at in ends() {
            self.take_over(at);
        }
        for at in ends() {
            if let Owner::Router(router, number) = self.sides[at].owner {
                self.joined(router, number);
            }
        }
        for at in ends() {
            self.take_stored(at);
            self.take_line(at);
        }
        for at in ends() {
            if self.sides[at].idle {
                self.find_reasons(at);
            }
            self.reorder(at);
        }
        self.links = links;
    }

    fn take_over(&mut self, at: usize) {
        let port = &mut self.network.ports[at];
        let side = &mut self.sides[at];
        side.reset();
        (side.owner, side.bit, side.cable) = (port.owner, port.bit_run, port.cable);
        (side.boundary, side.idle) = (port.boundary, port.idle);
        side.credit = u64::from(port.end.credit());
        let taken = port.end.promised() + port.end.filled() + CREDIT_OF_FCT;
        side.need = i64::from(taken) - i64::from(port.end.settings().buffer.min(CREDIT_MAX));
        if port.left_at >= self.now && port.left_at != NEVER {
            side.need += i64::from(port.left);
        }
        side.due = if side.need <= 0 { 0 } else { NEVER };
        side.open = port.arriving;
        side.sending = port.end.sends_packet();
        if let Owner::Router(router, input) = port.owner {
            side.moved = self.network.routers[router].inputs[usize::from(input)].moved;
            let switch = self.network.routers[router].settings.latency.switch.0;
            side.step = (10 * side.bit).min(switch.max(4 * side.bit));
            if port.left_at >= self.now && port.left_at != NEVER {
                side.make_room(Room { at: port.left_at + 1, count: u64::from(port.left), spacing: 0 });
            }
            port.ready_at = NEVER;
            port.set_alarm();
        }
    }

    fn take_stored(&mut self, at: usize) {
        let Owner::Router(router, input) = self.sides[at].owner else { return };
        let length = 10 * self.sides[at ^ 1].bit;
        let side = &mut self.sides[at];
        // The packet that the last N-char belongs to is open; those before it have ended.
        side.standing = self.network.routers[router].inputs[usize::from(input)].stored.len() as u64;
        while let Some(stored) = self.network.routers[router].inputs[usize::from(input)].stored.pop_front() {
            match stored.code {
                Code::Data(byte) => {
                    side.bytes.push(&[byte]);
                    match side.runs.back_mut() {
                        Some(run) if run.kind == Kind::Data && run.last() + run.length == stored.arrived => {
                            run.count += 1;
                        }
                        _ => side.runs.push_back(Run { arrive: stored.arrived, count: 1, length, kind: Kind::Data }),
                    }
                }
                code => {
                    side.runs.push_back(Run { arrive: stored.arrived, count: 1, length, kind: Kind::End(code, 0) });
                }
            }
        }
    }

    fn take_line(&mut self, at: usize) {
        while let Some(flight) = self.network.ports[at].inbound.pop_front() {
            let Cargo::Code(code) = flight.cargo else { continue };
            let (arrive, length) = (flight.arrive, flight.arrive - flight.begin);
            let kind = match code {
                Code::Fct => {
                    self.sides[at].fcts.push_back(arrive);
                    continue;
                }
                Code::Data(byte) => {
                    self.bytes.clear();
                    self.bytes.push(byte);
                    Kind::Data
                }
                code => Kind::End(code, 0),
            };
            self.receive(at, Run { arrive, count: 1, length, kind });
        }
        // What waits at an input whose worm ended with the last batch.
        if matches!(self.sides[at].owner, Owner::Router(..)) {
            self.look_later(at);
        }
    }

    /// Lets an input that has not read its first N-char look at it when it arrives.
    fn look_later(&mut self, at: usize) {
        let Owner::Router(router, input) = self.sides[at].owner else { return };
        let worm = self.network.routers[router].inputs[usize::from(input)].worm;
        if let (Worm::Header, Some(front)) = (worm, self.sides[at].runs.front()) {
            self.sides[at].look = front.arrive.max(self.now);
        }
    }

    /// Finds when an idle transmitter has something to send.
    fn find_reasons(&mut self, at: usize) {
        let offer = self.offer(at, self.now);
        let side = &mut self.sides[at];
        (side.wake, side.resume) = (NEVER, NEVER);
        side.wake_at(side.due.min(side.sends_at(offer, self.now)).max(self.now));
    }
}
