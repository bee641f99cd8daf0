//! Packets on their way through a router: each holds its output from its first character to its end.
use super::port::NEVER;
use super::router::{PORTS, Route, Source, Stored, Worm};
use super::run::end_of_packet;
use super::{EndOfPacket, Network, Observer, PortView, WhenDown};
use crate::character::Code;

/// Bytes of a packet for the configuration port that are kept. A longer one is cut.
const CONFIGURATION_BYTES: usize = 65_536;

/// Bytes of the shortest RMAP command. Nothing shorter has a reply, or an effect on the links.
pub(super) const COMMAND_MIN: usize = 16;

/// The output that a packet gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Output(u8),
    Wait,
    Impossible,
}

/// Whether an input got an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Made,
    Waits,
    Impossible,
}

impl<O: Observer> Network<O> {
    /// Puts an N-char into the receive buffer of an input.
    pub(super) fn deliver_to_router(&mut self, router: usize, input: u8, code: Code, counts: bool, now: u64) {
        let stored = &mut self.routers[router].inputs[usize::from(input)].stored;
        let waits = !stored.is_empty();
        stored.push_back(Stored { code, arrived: now, counts });
        if !waits {
            self.advance_input(router, input, now);
        }
    }

    /// Moves an input on as far as it can go now.
    pub(super) fn advance_input(&mut self, router: usize, input: u8, now: u64) {
        loop {
            let this = &self.routers[router].inputs[usize::from(input)];
            let Some(front) = this.stored.front().copied() else {
                return if input == 0 && this.worm == Worm::Header {
                    self.load_reply(router, now);
                };
            };
            match this.worm {
                Worm::Header => self.read_header(router, input, front.code, now),
                Worm::Waiting(route) => match self.connect(router, input, route, now) {
                    Connection::Made => {}
                    Connection::Waits => return,
                    Connection::Impossible => self.spill(router, input, |faults| faults.down += 1),
                },
                Worm::Routed(output) => {
                    let to = &self.routers[router].outputs[usize::from(output)];
                    return self.ready_at(router, output, to.switched.max(front.arrived + to.latency), now);
                }
                Worm::Spilling => {
                    if !matches!(self.pop(router, input, now).code, Code::Data(_)) {
                        self.set_worm(router, input, Worm::Header, now);
                    }
                }
                Worm::Configuring => self.collect(router, input, now),
            }
        }
    }

    fn read_header(&mut self, router: usize, input: u8, code: Code, now: u64) {
        let Code::Data(address) = code else {
            self.pop(router, input, now);
            return self.count(router, input, |faults| faults.empty += 1);
        };
        if address == 0 && input != 0 {
            self.pop(router, input, now);
            return self.set_worm(router, input, Worm::Configuring, now);
        }
        match self.routers[router].registers.route(address) {
            Some(route) if input != 0 => {
                if route.delete_header {
                    self.pop(router, input, now);
                }
                self.wait(router, input, route, now);
            }
            _ => self.spill(router, input, |faults| faults.invalid_address += 1),
        }
        // A packet may have ended with its header.
        self.advance_if_waiting(router, input, now);
    }

    /// Lets an input wait for an output, with the watchdog looking.
    pub(super) fn wait(&mut self, router: usize, input: u8, route: Route, now: u64) {
        self.set_worm(router, input, Worm::Waiting(route), now);
        self.routers[router].waiting |= 1 << input;
        if self.next_check == NEVER {
            self.next_check = now + super::deadlock::CHECK_INTERVAL.0;
        }
        if let Some(port) = self.routers[router].port(input) {
            let this = &mut self.ports[port];
            if this.watchdog != NEVER {
                this.watchdog_at = now + this.watchdog;
                this.set_alarm();
                self.touch(port);
            }
        }
    }

    /// Looks for an output for a packet whose deleted header was all that has arrived.
    fn advance_if_waiting(&mut self, router: usize, input: u8, now: u64) {
        let this = &self.routers[router].inputs[usize::from(input)];
        if let Worm::Waiting(route) = this.worm
            && this.stored.is_empty()
            && self.connect(router, input, route, now) == Connection::Impossible
        {
            self.spill(router, input, |faults| faults.down += 1);
        }
    }

    fn connect(&mut self, router: usize, input: u8, route: Route, now: u64) -> Connection {
        if self.routers[router].settings.start_on_request {
            self.start_outputs(router, route, now);
        }
        match self.choose_output(router, route) {
            Choice::Output(output) => {
                self.join(router, input, output, route.priority, now);
                Connection::Made
            }
            Choice::Wait => Connection::Waits,
            Choice::Impossible => Connection::Impossible,
        }
    }

    /// Chooses one of the outputs of a route.
    pub(super) fn choose_output(&self, router: usize, route: Route) -> Choice {
        let this = &self.routers[router];
        let (on_request, when_down) = (this.settings.start_on_request, this.settings.when_down);
        let mut may_wait = false;
        for (output, port) in route.numbers().filter_map(|output| Some((output, this.port(output)?))) {
            if self.ports[port].runs() {
                may_wait = true;
                if this.outputs[usize::from(output)].source == Source::Free {
                    return Choice::Output(output);
                }
            } else {
                may_wait |= when_down == WhenDown::Wait || on_request && !self.ports[port].end.settings().disabled;
            }
        }
        if may_wait { Choice::Wait } else { Choice::Impossible }
    }

    /// Starts the links of a route that do not run, up to the first one that a packet can take.
    fn start_outputs(&mut self, router: usize, route: Route, now: u64) {
        for output in route.numbers() {
            let Some(port) = self.routers[router].port(output) else { continue };
            let settings = self.ports[port].end.settings();
            if self.ports[port].runs() {
                if self.routers[router].outputs[usize::from(output)].source == Source::Free {
                    return;
                }
            } else if !settings.disabled && !settings.link_start {
                self.configure_end(port, |settings| settings.link_start = true, now);
            }
        }
    }

    pub(super) fn join(&mut self, router: usize, input: u8, output: u8, priority: bool, now: u64) {
        let this = &mut self.routers[router];
        let latency = this.settings.latency;
        // Not at the same time: the order of choices at one time would matter.
        let switched = now + latency.switch.0.max(1);
        let bit = |port: Option<usize>| port.map(|port| self.ports[port].bit_run);
        let through = match (bit(this.port(input)), bit(this.port(output))) {
            (Some(bit_in), Some(bit_out)) => latency.switch.0 + latency.after_last_bit(latency.data, bit_in, bit_out),
            // Replies of the configuration port are there.
            _ => 0,
        };
        let to = &mut this.outputs[usize::from(output)];
        (to.source, to.switched, to.latency, to.begun) = (Source::Input(input), switched, through, false);
        to.last[usize::from(priority)] = input;
        this.waiting &= !(1 << input);
        self.set_worm(router, input, Worm::Routed(output), now);
    }

    /// Lets an output look when an N-char is ready.
    fn ready_at(&mut self, router: usize, output: u8, at: u64, now: u64) {
        let Some(port) = self.routers[router].port(output) else { return };
        if at <= now {
            return self.wake(port, now);
        }
        // An output in the middle of a character looks by itself at the end of it.
        if !self.ports[port].idle && at <= self.ports[port].transmit_at && self.ports[port].runs() {
            return;
        }
        self.ports[port].ready_at = at;
        self.ports[port].set_alarm();
        self.touch(port);
    }

    /// Takes note that an output sent what it was offered.
    pub(super) fn forwarded(&mut self, router: usize, output: u8, code: Code, now: u64) {
        let this = &mut self.routers[router].outputs[usize::from(output)];
        this.begun = true;
        let ends = !matches!(code, Code::Data(_));
        let Source::Input(input) = this.source else {
            return self.release(router, output, now);
        };
        self.pop(router, input, now);
        if ends {
            self.set_worm(router, input, Worm::Header, now);
            self.release(router, output, now);
        }
        self.advance_input(router, input, now);
    }

    /// Gives an output to the next packet that waits for it.
    fn release(&mut self, router: usize, output: u8, now: u64) {
        let this = &mut self.routers[router];
        this.outputs[usize::from(output)].source = Source::Free;
        let runs = this.port(output).is_some_and(|port| self.ports[port].runs());
        if let Some((input, priority)) = this.arbitrate(output).filter(|_| runs) {
            self.join(router, input, output, priority, now);
            self.advance_input(router, input, now);
        }
    }

    /// Follows a link that started.
    pub(super) fn output_started(&mut self, router: usize, output: u8, now: u64) {
        match self.routers[router].outputs[usize::from(output)].source {
            Source::Free => self.release(router, output, now),
            Source::Input(input) => self.advance_input(router, input, now),
            Source::Ending => {}
        }
    }

    /// Follows a link that went down.
    pub(super) fn output_failed(&mut self, router: usize, output: u8, cut: bool, now: u64) {
        let wait = self.routers[router].settings.when_down == WhenDown::Wait;
        if let Some(port) = self.routers[router].port(output) {
            self.ports[port].ready_at = NEVER;
            self.ports[port].set_alarm();
        }
        let this = &mut self.routers[router].outputs[usize::from(output)];
        match this.source {
            // The far end has ended the packet itself.
            Source::Ending => this.source = Source::Free,
            Source::Input(input) if cut || !wait => {
                this.source = Source::Free;
                let count = |faults: &mut super::PortFaults| if cut { faults.cut += 1 } else { faults.down += 1 };
                self.spill(router, input, count);
                self.advance_input(router, input, now);
            }
            Source::Input(_) | Source::Free => {}
        }
        for input in
            (0..32u8).filter(|input| self.routers[router].waiting & (1 << input) != 0).collect::<super::Vec<_>>()
        {
            if self.routers[router].inputs[usize::from(input)].stored.is_empty() {
                self.advance_if_waiting(router, input, now);
            } else {
                self.advance_input(router, input, now);
            }
        }
    }

    /// Cuts a packet that has not moved for too long.
    pub(super) fn watchdog(&mut self, port: usize, now: u64) {
        let super::port::Owner::Router(router, input) = self.ports[port].owner else { return };
        let this = &mut self.routers[router];
        let worm = this.inputs[usize::from(input)].worm;
        let due = this.inputs[usize::from(input)].moved + self.ports[port].watchdog;
        if !matches!(worm, Worm::Waiting(_) | Worm::Routed(_)) {
            return;
        }
        if due > now {
            self.ports[port].watchdog_at = due;
            return;
        }
        self.spill(router, input, |faults| faults.watchdog += 1);
        if let Worm::Routed(output) = worm {
            let to = &mut self.routers[router].outputs[usize::from(output)];
            if to.begun {
                to.source = Source::Ending;
                self.ready_at(router, output, now, now);
            } else {
                self.release(router, output, now);
            }
        }
        self.advance_input(router, input, now);
    }

    /// Forwards a time-code through all other ports, if it is the one after the last.
    pub(super) fn forward_time_code(&mut self, router: usize, input: u8, code: u8, now: u64) {
        let this = &mut self.routers[router];
        let follows = (this.time + 1) & 63 == code & 63;
        this.time = code & 63;
        if !follows {
            return self.count(router, input, |faults| faults.time_codes += 1);
        }
        let (links, latency) = (this.links, this.settings.latency);
        let bit_in = links[usize::from(input)].map_or(0, |port| self.ports[port].bit());
        for (number, port) in links.into_iter().enumerate() {
            let Some(port) = port.filter(|port| number != usize::from(input) && self.ports[*port].runs()) else {
                continue;
            };
            let this = &mut self.ports[port];
            this.time_code = Some((now + latency.after_last_bit(latency.time_code, bit_in, this.bit()), code));
            this.set_alarm();
            self.touch(port);
        }
    }

    fn collect(&mut self, router: usize, input: u8, now: u64) {
        let end = match self.pop(router, input, now).code {
            Code::Data(byte) => {
                let collected = &mut self.routers[router].collected[usize::from(input)];
                if collected.len() < CONFIGURATION_BYTES {
                    collected.push(byte);
                }
                return;
            }
            code => end_of_packet(code),
        };
        self.set_worm(router, input, Worm::Header, now);
        self.collected(router, input, end, now);
    }

    /// Carries out what a packet for the configuration port asks for.
    pub(super) fn collected(&mut self, router: usize, input: u8, end: EndOfPacket, now: u64) {
        let this = &mut self.routers[router];
        let packet = core::mem::take(&mut this.collected[usize::from(input)]);
        let Some(mut configuration) = this.configuration.take() else {
            return self.count(router, input, |faults| faults.invalid_address += 1);
        };
        let ports = self.port_views(router);
        let this = &mut self.routers[router];
        let mut view = super::RouterView { ports, time: this.time, registers: &mut this.registers };
        let reply = configuration.answer(input, &packet, end, &mut view);
        let wanted = view.ports;
        this.configuration = Some(configuration);
        if packet.len() < COMMAND_MIN {
            return;
        }
        if !reply.is_empty() && !this.reply(input, reply) {
            self.count(router, input, |faults| faults.replies_lost += 1);
        }
        self.control_ports(router, &ports, &wanted, now);
        if self.routers[router].inputs[0].worm == Worm::Header {
            self.load_reply(router, now);
        }
    }

    /// Returns the links of a router as its configuration port sees them.
    fn port_views(&self, router: usize) -> [Option<PortView>; PORTS] {
        let this = &self.routers[router];
        core::array::from_fn(|number| {
            let port = &self.ports[this.links[number]?];
            let source = match this.outputs[number].source {
                Source::Input(input) => Some(input),
                Source::Free | Source::Ending => None,
            };
            let settings = port.end.settings();
            Some(PortView {
                state: port.end.state(),
                errors: port.end.statistics().errors,
                faults: port.faults,
                source,
                link_start: settings.link_start,
                auto_start: settings.auto_start,
                disabled: settings.disabled,
            })
        })
    }

    /// Starts and stops links as the configuration port was told.
    fn control_ports(
        &mut self,
        router: usize,
        before: &[Option<PortView>; PORTS],
        wanted: &[Option<PortView>; PORTS],
        now: u64,
    ) {
        for number in 1..PORTS {
            let (Some(port), Some(wanted)) = (self.routers[router].links[number], wanted[number]) else { continue };
            if before[number] != Some(wanted) {
                let change = |settings: &mut crate::end::Settings| {
                    settings.link_start = wanted.link_start;
                    settings.auto_start = wanted.auto_start;
                    settings.disabled = wanted.disabled;
                };
                self.configure_end(port, change, now);
            }
        }
    }

    /// Puts the next reply of the configuration port in front of its output.
    fn load_reply(&mut self, router: usize, now: u64) {
        let this = &mut self.routers[router];
        let Some((output, reply)) = this.replies.pop_front() else { return };
        let codes = reply.into_iter().map(Code::Data).chain([Code::Eop]);
        this.inputs[0].stored.extend(codes.map(|code| Stored { code, arrived: now, counts: false }));
        self.wait(router, 0, Route::to(output), now);
        self.advance_input(router, 0, now);
    }

    pub(super) fn spill(&mut self, router: usize, input: u8, count: impl FnOnce(&mut super::PortFaults)) {
        let this = &mut self.routers[router];
        this.waiting &= !(1 << input);
        this.inputs[usize::from(input)].worm = Worm::Spilling;
        self.count(router, input, count);
    }

    pub(super) fn set_worm(&mut self, router: usize, input: u8, worm: Worm, now: u64) {
        let this = &mut self.routers[router].inputs[usize::from(input)];
        (this.worm, this.moved) = (worm, now);
    }

    /// Removes the front of an input's buffer, which makes room for the far end.
    fn pop(&mut self, router: usize, input: u8, now: u64) -> Stored {
        let this = &mut self.routers[router].inputs[usize::from(input)];
        this.moved = now;
        let stored = this.stored.pop_front().expect("whoever removes has looked at the front");
        if let Some(port) = self.routers[router].port(input) {
            self.ports[port].leaves(u16::from(stored.counts), now);
            self.wake(port, now);
        }
        stored
    }

    fn count(&mut self, router: usize, input: u8, count: impl FnOnce(&mut super::PortFaults)) {
        if let Some(port) = self.routers[router].port(input) {
            count(&mut self.ports[port].faults);
        }
    }
}
