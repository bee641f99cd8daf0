//! One code after another: transmitters, arrivals and timers.
use super::deadlock::CHECK_INTERVAL;
use super::port::{Cargo, Flight, NEVER, Owner, Planned};
use super::random_bits::Outcome;
use super::{EndOfPacket, Engine, Network, Observer, Record};
use crate::character::{Character, Code};
use crate::end::{Arrival, Failure, Fault, LinkError, Received, Sent, Settings as EndSettings, State};
use crate::time::Picos;

/// Steps for each port between two looks at whether all links of routers are undisturbed: such a look takes less time for a port than a
/// step.
const STEPS_WITHOUT_BATCH: usize = 4;

impl<O: Observer> Network<O> {
    /// Runs a link between two nodes.
    pub(super) fn run_link(&mut self, first: usize, until: u64) {
        loop {
            if self.engine == Engine::Fast {
                self.run_batch(first, until);
            }
            let keys = [self.ports[first].key(), self.ports[first + 1].key()];
            let at = usize::from(keys[1] < keys[0]);
            if keys[at] >> 1 > until || keys[at] == NEVER {
                return;
            }
            self.step(first + at, keys[at]);
        }
    }

    /// Runs all links that a router is on. Returns up to when: `until`, or an arrival that is to end the run.
    pub(super) fn run_routed(&mut self, mut until: u64) -> u64 {
        let happens = |network: &Self, until| network.schedule.first().filter(|(key, _)| key >> 1 <= until);
        let mut reached = 0;
        let waiting = if self.early.is_some() { self.packets_at_watched() } else { 0 };
        if happens(self, until).is_some() && self.next_check == NEVER && self.packets_wait() {
            self.next_check = self.now + CHECK_INTERVAL.0;
        }
        loop {
            if self.engine == Engine::Fast && happens(self, until).is_some() {
                // Links that do not run take no part in a batch, and come after it.
                reached = reached.max(self.try_routed_batch(until).unwrap_or(0));
                until = self.end_early(until, reached, waiting);
            }
            let Some((key, port)) = happens(self, until) else { break };
            if key >> 1 >= self.next_check {
                self.check_deadlock(self.next_check);
            }
            self.step(port, key);
            self.update();
            reached = reached.max(key >> 1);
            // A node receives with its own port's steps only.
            if self.is_watched(port) {
                until = self.end_early(until, reached, waiting);
            }
        }
        // When nothing happens any more, there is no need to wait for the next look, nor for another.
        let is_still = self.next_check != NEVER && self.schedule.first().is_none();
        if is_still {
            self.check_deadlock(until);
        } else if self.next_check <= until {
            self.check_deadlock(self.next_check);
        }
        if is_still {
            self.next_check = NEVER;
        }
        until
    }

    /// Returns when a run ends that has reached a time: at `until`, or sooner if more packets than before wait at watched nodes.
    #[inline]
    fn end_early(&self, until: u64, reached: u64, waiting: usize) -> u64 {
        match self.early {
            Some(early) if self.packets_at_watched() > waiting => until.min(reached.max(early)),
            _ => until,
        }
    }

    /// Goes on in a batch where that is possible, and returns up to when. After a failure some steps go one by one.
    fn try_routed_batch(&mut self, until: u64) -> Option<u64> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let reached = self.run_routed_batch(until);
        if reached.is_none() {
            self.pause = STEPS_WITHOUT_BATCH * self.ports.len();
        }
        reached
    }

    fn step(&mut self, port: usize, key: u64) {
        let now = key >> 1;
        if key & 1 == 1 {
            self.transmit(port, now);
        } else {
            self.event(port, now);
        }
        self.touch(port);
    }

    /// Takes note that the next event of a port, or of its peer, may have changed.
    #[inline]
    pub(super) fn touch(&mut self, port: usize) {
        if !self.ports[port].routed {
            return;
        }
        for port in [port, port ^ 1] {
            if !core::mem::replace(&mut self.ports[port].touched, true) {
                self.schedule.touch(port);
            }
        }
    }

    /// Brings the order of events up to date.
    pub(super) fn update(&mut self) {
        while let Some(port) = self.schedule.changed() {
            self.ports[port].touched = false;
            self.schedule.set(port, self.ports[port].key());
        }
    }

    fn event(&mut self, port: usize, now: u64) {
        let this = &mut self.ports[port];
        if this.inbound.front().is_some_and(|flight| flight.arrive <= now) {
            self.arrive(port, now);
        } else if this.disconnect_at <= now {
            this.disconnect_at = NEVER;
            // Without a transition since the receiver listens there is nothing to miss.
            if this.listening_since + crate::end::DISCONNECTED.0 <= now {
                self.accept(port, Arrival::Error(LinkError::Disconnect), now);
            }
        } else if this.alarm <= now {
            self.alarm(port, now);
        } else {
            let before = this.end.state();
            match this.end.elapsed(Picos(now)) {
                Some(failure) => self.failed(port, before, failure, now),
                None => self.changed(port, before, now),
            }
        }
    }

    /// Handles what is due at a port beside arrivals and the state machine.
    pub(super) fn alarm(&mut self, port: usize, now: u64) {
        let this = &mut self.ports[port];
        while let Some(planned) = this.planned.front().copied().filter(|planned| planned.at <= now) {
            this.planned.pop_front();
            if let Some(every) = planned.every {
                this.plan(Planned { at: planned.at + every, ..planned });
            }
            if this.runs() {
                this.inject(planned.fault);
            }
        }
        if let Some((_, code)) = this.time_code.take_if(|(at, _)| *at <= now)
            && this.runs()
        {
            this.end.send_time_code(code);
        }
        if this.ready_at <= now {
            this.ready_at = NEVER;
        }
        if this.sink_at <= now {
            this.sink_at = NEVER;
            self.sink(port, now);
        }
        if self.ports[port].watchdog_at <= now {
            self.ports[port].watchdog_at = NEVER;
            self.watchdog(port, now);
        }
        self.ports[port].set_alarm();
        self.wake(port, now);
    }

    /// Ends the idle time of a transmitter: at its next boundary it chooses again.
    #[inline]
    pub(super) fn wake(&mut self, port: usize, now: u64) {
        if self.ports[port].idle {
            self.end_idle(port, now);
        }
    }

    fn end_idle(&mut self, port: usize, now: u64) {
        let this = &mut self.ports[port];
        let count = this.nulls_before(now);
        this.idle = false;
        self.count_nulls(port, count);
        self.ports[port].transmit_at = self.ports[port].boundary;
        self.touch(port);
    }

    /// Counts NULLs that an idle transmitter sent.
    pub(super) fn count_nulls(&mut self, port: usize, count: u64) {
        if count == 0 {
            return;
        }
        let this = &mut self.ports[port];
        let (began, bit) = (this.boundary, this.bit_now);
        this.boundary += count * 8 * bit;
        this.end.sent_nulls(count);
        if let Some(flips) = &mut this.flips {
            flips.skip(count * 8);
        }
        self.ports[port ^ 1].end.received_nulls(count);
        self.record(began, port, Record::Nulls { count, bit: Picos(bit) });
    }

    /// Chooses and sends the next code.
    fn transmit(&mut self, port: usize, now: u64) {
        self.wake(port, now);
        let offered = self.offered(port, now);
        let this = &mut self.ports[port];
        let (before, bit) = (this.end.state(), this.bit());
        let sent = this.choose(offered, now);
        let code = match (sent, offered) {
            (Sent::Off, _) | (Sent::Offered, None) => return self.stop(port, now),
            (Sent::Code(code) | Sent::Fault(_, code), _) | (Sent::Offered, Some(code)) => code,
        };
        this.bit_now = bit;
        this.boundary = now + u64::from(code.bits()) * bit;
        this.transmit_at = this.boundary;
        match sent {
            Sent::Fault(fault, _) => self.send_fault(port, fault, code, now),
            _ => self.send_code(port, code, now),
        }
        if sent == Sent::Offered {
            self.count_down(port);
            self.consume(port, code, now);
        } else if code == Code::Null && before == State::Run && self.ports[port ^ 1].runs() {
            self.rest(port);
            if self.ports[port].left_at == now {
                // The place counts from the next moment on.
                self.wake(port, now + 1);
            }
        }
        self.changed(port, before, now);
    }

    /// Lets a transmitter with nothing but NULLs to send be idle, until a bit error if there are any.
    fn rest(&mut self, port: usize) {
        let this = &mut self.ports[port];
        this.idle = true;
        this.transmit_at = this.wrong_null_at();
    }

    fn count_down(&mut self, port: usize) {
        let this = &mut self.ports[port];
        let Some((n, fault)) = this.after_nchars.take() else { return };
        if n > 1 {
            this.after_nchars = Some((n - 1, fault));
        } else {
            this.inject(fault);
        }
    }

    /// Turns off a transmitter that is on.
    fn stop(&mut self, port: usize, now: u64) {
        let this = &mut self.ports[port];
        this.transmit_at = NEVER;
        if core::mem::replace(&mut this.on, false) {
            let last = this.last_transition(now.saturating_sub(1));
            self.ports[port ^ 1].expect_disconnect(last);
        }
        self.touch(port);
    }

    fn send_fault(&mut self, port: usize, fault: Fault, code: Code, now: u64) {
        let bit = self.ports[port].bit_now;
        match fault {
            Fault::Parity => self.put(port, Cargo::Error(LinkError::Parity), now, now + 2 * bit),
            Fault::Escape => self.put(port, Cargo::Error(LinkError::Escape), now, now + 8 * bit),
            _ => self.send_code(port, code, now),
        }
        self.record(now, port, Record::Fault(fault));
    }

    fn send_code(&mut self, port: usize, code: Code, now: u64) {
        if self.ports[port].flips.is_some() {
            self.send_with_errors(port, code, now);
        } else {
            self.send_right(port, code, now);
        }
        if O::ACTIVE {
            match code {
                Code::Data(byte) => {
                    let bit = Picos(self.ports[port].bit_now);
                    self.record(now, port, Record::Data { bytes: &[byte], bit });
                }
                code => self.record(now, port, Record::Code(code)),
            }
        }
    }

    fn send_right(&mut self, port: usize, code: Code, now: u64) {
        if code == Code::Null && self.ports[port].runs() && self.ports[port ^ 1].runs() {
            self.ports[port ^ 1].end.received_nulls(1);
        } else {
            self.put(port, Cargo::Code(code), now, self.ports[port].boundary);
        }
    }

    fn send_with_errors(&mut self, port: usize, code: Code, now: u64) {
        let bit = self.ports[port].bit_now;
        let Some(flips) = &mut self.ports[port].flips else { return };
        let (first, second) = code.characters();
        let first = first.map(|first| (first, flips.pass(first)));
        let outcome = flips.pass(second);
        if first.is_none_or(|(_, outcome)| outcome == Outcome::Right) && outcome == Outcome::Right {
            return self.send_right(port, code, now);
        }
        let mut begin = now;
        for (character, outcome) in first.into_iter().chain([(second, outcome)]) {
            let end = begin + u64::from(character.bits()) * bit;
            match outcome {
                Outcome::Right => self.put(port, Cargo::Character(character), begin, end),
                Outcome::Altered(other) => {
                    self.ports[port].unnoticed += 1;
                    // Where an FCT or the end of a packet came or went, the two ends count the credit differently.
                    self.ports[port].unbalanced |= !matches!(character, Character::Data(_));
                    self.put(port, Cargo::Character(other), begin, end);
                }
                Outcome::Error(bits) => {
                    return self.put(port, Cargo::Error(LinkError::Parity), begin, end + bits * bit);
                }
            }
            begin = end;
        }
    }

    /// Puts something on the line.
    fn put(&mut self, port: usize, cargo: Cargo, begin: u64, end: u64) {
        let cable = self.ports[port].cable;
        let inbound = &mut self.ports[port ^ 1].inbound;
        let behind = inbound.back().map_or(0, |flight| flight.arrive);
        inbound.push_back(Flight { begin: begin + cable, arrive: (end + cable).max(behind), cargo });
    }

    fn arrive(&mut self, port: usize, now: u64) {
        let this = &mut self.ports[port];
        let Some(flight) = this.inbound.pop_front() else { return };
        // A receiver that began to listen in the middle of a code does not understand it.
        if flight.begin < this.listening_since {
            return;
        }
        let arrival = match flight.cargo {
            Cargo::Code(code) if !this.escaped => Some(Arrival::Code(code)),
            Cargo::Error(error) => Some(Arrival::Error(error)),
            Cargo::Character(character) => assemble(&mut this.escaped, character),
            Cargo::Code(code) => {
                let (first, second) = code.characters();
                assemble(&mut this.escaped, first.unwrap_or(second))
            }
        };
        if let Some(arrival) = arrival {
            self.accept(port, arrival, now);
        }
    }

    /// Gives an end what its receiver made of the line.
    fn accept(&mut self, port: usize, arrival: Arrival, now: u64) {
        let this = &mut self.ports[port];
        let before = this.end.state();
        match this.end.receive(arrival, Picos(now)) {
            Received::Failed(failure) => self.failed(port, before, failure, now),
            Received::Nchar(code) => {
                self.deliver(port, code, now);
                // An FCT may be due: the far end has used credit, and the host may have taken the N-char.
                self.wake(port, now);
            }
            Received::TimeCode(code) => {
                self.record(now, port, Record::TimeCode(code));
                match self.ports[port].owner {
                    Owner::Node(node) => self.nodes[node].time_code(code, now),
                    Owner::Router(router, number) => self.forward_time_code(router, number, code, now),
                }
            }
            Received::Nothing => {
                self.changed(port, before, now);
                if arrival == Arrival::Code(Code::Fct) {
                    self.wake(port, now);
                }
            }
        }
    }

    fn deliver(&mut self, port: usize, code: Code, now: u64) {
        let this = &mut self.ports[port];
        let begins = this.arriving.is_none();
        let length = this.arriving.unwrap_or(0);
        let end = match code {
            Code::Eop => Some(EndOfPacket::Eop),
            Code::Eep => Some(EndOfPacket::Eep),
            _ => None,
        };
        this.arriving = if end.is_some() { None } else { Some(length + 1) };
        if begins {
            self.record(now, port, Record::PacketBegins);
        }
        if let Code::Data(byte) = code
            && self.ports[port ^ 1].flips.is_some()
        {
            self.record(now, port, Record::Received(byte));
        }
        if let Some(end) = end {
            self.record(now, port, Record::PacketEnds { length, end });
        }
        match self.ports[port].owner {
            Owner::Node(node) => self.deliver_to_node(node, code, true, now),
            Owner::Router(router, number) => self.deliver_to_router(router, number, code, true, now),
        }
    }

    /// Does what a link that went down leaves to do.
    pub(super) fn failed(&mut self, port: usize, before: State, failure: Failure, now: u64) {
        let this = &mut self.ports[port];
        if this.on {
            if this.idle {
                // As any other code, a NULL counts when it has begun.
                let begun = this.nulls_before(now);
                self.count_nulls(port, begun);
            }
            let this = &mut self.ports[port];
            this.on = false;
            let (last, cable) = (this.last_transition(now), this.cable);
            let peer = &mut self.ports[port ^ 1];
            while peer.inbound.back().is_some_and(|flight| flight.arrive > now + cable) {
                peer.inbound.pop_back();
            }
            peer.expect_disconnect(last);
        }
        let this = &mut self.ports[port];
        (this.idle, this.transmit_at, this.escaped, this.unbalanced) = (false, NEVER, false, false);
        let arriving = this.arriving.take();
        self.record(now, port, Record::Failed(failure));
        self.changed(port, before, now);
        self.wake(port ^ 1, now);
        self.touch(port);
        if failure.cut_receiving {
            self.record(now, port, Record::PacketEnds { length: arriving.unwrap_or(0), end: EndOfPacket::Eep });
        }
        match self.ports[port].owner {
            Owner::Node(node) => {
                if failure.cut_receiving {
                    self.deliver_to_node(node, Code::Eep, false, now);
                }
                if failure.cut_sending {
                    self.nodes[node].outgoing.finish();
                    self.ports[port].faults.cut += 1;
                }
            }
            Owner::Router(router, number) => {
                if failure.cut_receiving {
                    self.deliver_to_router(router, number, Code::Eep, false, now);
                }
                self.output_failed(router, number, failure.cut_sending, now);
            }
        }
    }

    /// Follows a change of an end's state.
    fn changed(&mut self, port: usize, before: State, now: u64) {
        let this = &mut self.ports[port];
        let state = this.end.state();
        if state == before {
            return;
        }
        if state == State::ErrorWait {
            this.listening_since = now;
        }
        if this.end.transmits() && !this.on {
            (this.on, this.boundary, this.transmit_at) = (true, now, now);
        }
        self.touch(port);
        self.record(now, port, Record::State(state));
        if let (State::Run, Owner::Router(router, number)) = (state, self.ports[port].owner) {
            self.output_started(router, number, now);
        }
    }

    pub(super) fn configure_end(&mut self, port: usize, change: impl FnOnce(&mut EndSettings), now: u64) {
        let this = &mut self.ports[port];
        let before = this.end.state();
        let buffer = this.end.settings().buffer;
        let keep_buffer = |settings: &mut EndSettings| {
            change(settings);
            // Places that have been promised cannot be taken back.
            settings.buffer = buffer;
        };
        match this.end.configure(keep_buffer, Picos(now)) {
            Some(failure) => self.failed(port, before, failure, now),
            None => self.changed(port, before, now),
        }
        self.touch(port);
    }

    /// Returns the next N-char that there is to send.
    fn offered(&self, port: usize, now: u64) -> Option<Code> {
        match self.ports[port].owner {
            Owner::Node(node) => self.nodes[node].offered(),
            Owner::Router(router, number) => self.routers[router].offered(number, now),
        }
    }

    /// Removes the N-char that was offered.
    fn consume(&mut self, port: usize, code: Code, now: u64) {
        match self.ports[port].owner {
            Owner::Node(node) => match code {
                Code::Data(_) => self.nodes[node].outgoing.sent(1),
                _ => self.nodes[node].outgoing.finish(),
            },
            Owner::Router(router, number) => self.forwarded(router, number, code, now),
        }
    }

    pub(super) fn record(&mut self, at: u64, port: usize, record: Record<'_>) {
        if O::ACTIVE {
            let place = self.place(port);
            self.observer.record(Picos(at), place, record);
        }
    }
}

/// Puts a character together with an ESC before it.
fn assemble(escaped: &mut bool, character: Character) -> Option<Arrival> {
    let code = match (core::mem::replace(escaped, character == Character::Esc && !*escaped), character) {
        (false, Character::Esc) => return None,
        (false, Character::Fct) => Code::Fct,
        (false, Character::Eop) => Code::Eop,
        (false, Character::Eep) => Code::Eep,
        (false, Character::Data(byte)) => Code::Data(byte),
        (true, Character::Fct) => Code::Null,
        (true, Character::Data(byte)) => Code::TimeCode(byte),
        (true, _) => return Some(Arrival::Error(LinkError::Escape)),
    };
    Some(Arrival::Code(code))
}
