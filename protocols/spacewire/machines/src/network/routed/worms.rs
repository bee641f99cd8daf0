//! Inputs of routers: headers, wormholes, and packets that are spilled.
use super::super::router::{Source, Worm};
use super::super::run::end_of_packet;
use super::super::wormhole::{COMMAND_MIN, Choice};
use super::super::{Observer, PortFaults};
use super::{Batch, Kind, NEVER, Offer, Room, Run};

impl<O: Observer> Batch<'_, O> {
    /// Puts N-chars behind those at an input.
    #[inline(always)]
    pub(super) fn arrive(&mut self, at: usize, router: usize, input: u8, run: Run) {
        let side = &mut self.sides[at];
        let is_first = side.runs.is_empty();
        side.runs.push_back(run);
        side.standing += run.count;
        if run.kind == Kind::Data {
            side.bytes.push(&self.bytes);
        }
        if let Some(to) = side.to {
            if is_first {
                self.feed(to, run.arrive);
            }
            return;
        }
        match self.network.routers[router].inputs[usize::from(input)].worm {
            Worm::Header if is_first => {
                side.look = run.arrive;
                self.reorder(at);
            }
            Worm::Spilling | Worm::Configuring if side.look == NEVER => {
                self.consume(at, run);
                self.reorder(at);
            }
            _ => {}
        }
    }

    /// Moves an input on as far as it can go now.
    pub(super) fn look(&mut self, at: usize) {
        let super::Owner::Router(router, input) = self.sides[at].owner else { return };
        loop {
            let Some(front) = self.sides[at].runs.front().copied() else { return };
            match self.network.routers[router].inputs[usize::from(input)].worm {
                Worm::Header if front.arrive > self.now => {
                    self.sides[at].look = front.arrive;
                    return;
                }
                Worm::Header => self.read_header(at, router, input, front),
                Worm::Waiting(_) => return,
                Worm::Routed(_) => {
                    if let Some(to) = self.sides[at].to {
                        self.feed(to, front.arrive);
                    }
                    return;
                }
                Worm::Spilling | Worm::Configuring => {
                    if !self.drop_packet(at, router, input) {
                        return;
                    }
                }
            }
        }
    }

    /// Lets an output look when the first N-char of its source is ready.
    #[inline]
    fn feed(&mut self, to: usize, arrive: u64) {
        let output = &self.sides[to];
        if output.idle {
            let sends = output.sends_at(Offer::Later(output.ready(arrive)), self.now);
            self.wake(to, sends);
        }
    }

    /// Gives an output to the packet at an input.
    fn join(&mut self, from: usize, router: usize, output: u8, priority: bool) {
        let super::Owner::Router(_, input) = self.sides[from].owner else { return };
        self.network.join(router, input, output, priority, self.now);
        self.joined(router, output);
        self.sides[from].moved = self.now;
    }

    /// Takes note of what feeds an output.
    pub(super) fn joined(&mut self, router: usize, number: u8) {
        let router = &self.network.routers[router];
        let output = &router.outputs[usize::from(number)];
        let Source::Input(input) = output.source else { return };
        let (Some(from), Some(to)) = (router.port(input), router.port(number)) else { return };
        let side = &mut self.sides[to];
        (side.from, side.switched, side.latency) = (Some(from), output.switched, output.latency);
        side.begun = output.begun;
        self.sides[from].to = Some(to);
    }

    fn read_header(&mut self, at: usize, router: usize, input: u8, front: Run) {
        let Kind::Data = front.kind else {
            self.pop(at);
            return self.count(at, |faults| faults.empty += 1);
        };
        let address = self.sides[at].bytes.as_slice()[0];
        if address == 0 {
            self.pop(at);
            self.set_worm(at, router, input, Worm::Configuring);
            return self.consume_all(at);
        }
        let Some(route) = self.network.routers[router].registers.route(address) else {
            return self.spill(at, router, input, |faults| faults.invalid_address += 1);
        };
        if route.delete_header {
            self.pop(at);
        }
        self.network.wait(router, input, route, self.now);
        self.sides[at].moved = self.now;
        match self.network.choose_output(router, route) {
            Choice::Output(output) => self.join(at, router, output, route.priority),
            Choice::Wait => {}
            Choice::Impossible => self.spill(at, router, input, |faults| faults.down += 1),
        }
    }

    fn set_worm(&mut self, at: usize, router: usize, input: u8, worm: Worm) {
        self.network.set_worm(router, input, worm, self.now);
        self.sides[at].moved = self.now;
    }

    /// Removes the first N-char at an input, now.
    fn pop(&mut self, at: usize) {
        self.sides[at].take(1);
        self.sides[at].moved = self.now;
        self.free(at, Room { at: self.now + 1, count: 1, spacing: 0 });
    }

    /// Removes N-chars that leave through an output one after another.
    #[inline(always)]
    pub(super) fn leave_input(&mut self, at: usize, count: u64, began: u64, spacing: u64) {
        let side = &mut self.sides[at];
        if let Some(bytes) = side.bytes.as_slice().get(..count as usize) {
            self.bytes.extend_from_slice(bytes);
        }
        side.take(count);
        side.moved = began + (count - 1) * spacing;
        self.free(at, Room { at: began + 1, count, spacing });
    }

    /// Makes room at an input, for which an FCT may be due.
    #[inline(always)]
    fn free(&mut self, at: usize, room: Room) {
        self.sides[at].make_room(room);
        let due = self.sides[at].due;
        self.wake(at, due);
    }

    /// Follows the end of a packet that leaves through an output now.
    pub(super) fn end_worm(&mut self, output: usize, router: usize, number: u8) {
        let Some(at) = self.sides[output].from.take() else { return };
        self.sides[output].begun = true;
        let super::Owner::Router(_, input) = self.sides[at].owner else { return };
        self.pop(at);
        self.sides[at].to = None;
        self.set_worm(at, router, input, Worm::Header);
        let this = &mut self.network.routers[router];
        this.outputs[usize::from(number)].source = Source::Free;
        if let Some((next, priority)) = this.arbitrate(number)
            && let Some(from) = this.port(next)
        {
            self.join(from, router, number, priority);
            if let Some(front) = self.sides[from].runs.front() {
                self.feed(output, front.arrive);
            }
        }
        self.look(at);
        self.reorder(at);
    }

    fn spill(&mut self, at: usize, router: usize, input: u8, count: impl FnOnce(&mut PortFaults)) {
        self.network.spill(router, input, count);
        self.consume_all(at);
    }

    fn count(&mut self, at: usize, count: impl FnOnce(&mut PortFaults)) {
        count(&mut self.network.ports[at].faults);
    }

    /// Makes room of all that is left of a packet at an input that drops or collects it, as it arrives.
    pub(super) fn consume_all(&mut self, at: usize) {
        for number in 0..self.sides[at].runs.len() {
            if self.sides[at].look != NEVER {
                return;
            }
            let run = self.sides[at].runs[number];
            self.consume(at, run);
        }
    }

    fn consume(&mut self, at: usize, run: Run) {
        let now = self.now;
        let arrived = run.arrived(now);
        if arrived > 0 {
            self.free(at, Room { at: now + 1, count: arrived, spacing: 0 });
        }
        if run.count > arrived {
            let next = run.arrive + arrived * run.length + 1;
            self.free(at, Room { at: next, count: run.count - arrived, spacing: run.length });
        }
        if let Kind::End(..) = run.kind {
            self.sides[at].look = run.arrive.max(now);
        }
    }

    /// Removes a packet that was spilled or collected, once its end has arrived. Returns `false` if it has not.
    fn drop_packet(&mut self, at: usize, router: usize, input: u8) -> bool {
        let side = &self.sides[at];
        let Some(end) = side.runs.iter().position(|run| matches!(run.kind, Kind::End(..))) else { return false };
        if side.runs[end].arrive > self.now {
            self.sides[at].look = side.runs[end].arrive;
            return false;
        }
        let spilling = self.network.routers[router].inputs[usize::from(input)].worm == Worm::Spilling;
        let bytes: u64 = side.runs.iter().take(end).map(|run| run.count).sum();
        if !spilling && self.network.routers[router].collected[usize::from(input)].len() + bytes as usize >= COMMAND_MIN
        {
            // It changes the network: the batch ends before.
            return false;
        }
        let Kind::End(code, _) = side.runs[end].kind else { return false };
        if !spilling {
            let bytes = &side.bytes.as_slice()[..bytes as usize];
            self.network.routers[router].collected[usize::from(input)].extend_from_slice(bytes);
        }
        self.sides[at].look = NEVER;
        for _ in 0..=end {
            let count = self.sides[at].runs.front().map_or(0, |run| run.count);
            self.sides[at].take(count);
        }
        self.set_worm(at, router, input, Worm::Header);
        if !spilling {
            self.network.collected(router, input, end_of_packet(code), self.now);
        }
        true
    }
}
