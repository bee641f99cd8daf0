use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer, Stamp};
use hodo_sim::cost::{Allowance, Cost};

/// A machine that panics once it is idle and has cost more than its allowance: for targets that have a script of their own.
pub(crate) struct Metered<M> {
    machine: M,
    cost: Cost,
    allowance: Allowance,
}

impl<M> Metered<M> {
    pub(crate) fn new(machine: M) -> Self {
        Metered::within(Allowance::default(), machine)
    }

    pub(crate) fn within(allowance: Allowance, machine: M) -> Self {
        Metered { machine, cost: Cost::default(), allowance }
    }

    /// Returns the machine, whose methods an application calls.
    pub(crate) fn machine(&mut self) -> &mut M {
        &mut self.machine
    }
}

impl<M: Machine> Machine for Metered<M> {
    type Command = M::Command;
    type Event = M::Event;

    fn handle(&mut self, now: Instant, input: Input<'_, M::Command>) {
        let Metered { machine, cost, .. } = self;
        cost.inputs += 1;
        match &input {
            Input::Opened(peer, _) => cost.opened(*peer, true),
            Input::Received(peer, bytes) => cost.received(*peer, bytes.len()),
            Input::Landed(peer, count) => cost.received(*peer, *count),
            Input::Closed(peer, _) => cost.closed(*peer),
            Input::Blocked(_) | Input::Drained(_) | Input::Command(_) | Input::Elapsed => {}
        }
        cost.of(|| machine.handle(now, input));
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<M::Event> {
        let Metered { machine, cost, allowance } = self;
        let output = cost.of(|| machine.poll(now, out));
        match &output {
            Output::Send(peer) => cost.sent(*peer, out.len()),
            Output::Close(peer) => cost.closed(*peer),
            Output::Event(_) | Output::Open(..) => {}
            Output::Idle(_) => {
                if let Err(over) = cost.check(allowance) {
                    panic!("{over}");
                }
                return output;
            }
        }
        cost.outputs += 1;
        output
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        let Metered { machine, cost, .. } = self;
        cost.of(|| machine.landing(peer))
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        let Metered { machine, cost, .. } = self;
        cost.of(|| machine.admits(now, ends, datagram, out))
    }

    fn has_room(&self, peer: Peer) -> bool {
        self.machine.has_room(peer)
    }

    fn stamped(&mut self, stamp: Stamp) {
        let Metered { machine, cost, .. } = self;
        cost.of(|| machine.stamped(stamp));
    }
}
