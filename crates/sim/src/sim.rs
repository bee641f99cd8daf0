use crate::fabric::{Call, Fabric};
use crate::node::Node;
use crate::{Counters, Model, Network, Transport};
use hodo_machine::{Driver, DriverError, Input, Instant, Machine, Wait};
use std::cell::Cell;
use std::time::Duration;

/// Time that a look with [`Wait::Never`] takes when it finds nothing, so that a caller who only looks gets on.
const LOOK: Duration = Duration::from_nanos(100);

/// What a server's application answers to its machine's events.
type Answer<S> = Box<dyn FnMut(<S as Machine>::Event) -> Option<<S as Machine>::Command> + Send>;

/// A client machine, at node 0, and server machines, at nodes 1 and up, over a simulated network in virtual time.
///
/// As a [`Driver`] it is the client's: commands go to the client and its events are told. Every pair of nodes has a
/// line of its own in each direction. Servers accept whatever connects; the client does not, unless told to.
///
/// Each message that a node sends or receives occupies its one processor for the network's `cost`; what arrives
/// meanwhile waits. [`Driver::turn`] returns once an event was told, so that time does not run ahead of the caller.
pub struct Sim<C: Machine, S: Machine> {
    fabric: Fabric,
    client: Node<C>,
    servers: Vec<Node<S>>,
    answer: Answer<S>,
    models: (Model, Model),
}

impl<C: Machine, S: Machine> Sim<C, S> {
    /// One client and one server over a network that is the same in both directions.
    pub fn pair(
        transport: Transport,
        network: &Network,
        client: C,
        server: S,
        answer: impl FnMut(S::Event) -> Option<S::Command> + Send + 'static,
    ) -> Self {
        Self::new(transport, (network, network), client, vec![server], answer)
    }

    /// One client and several servers; the client sends over the first network and receives over the second.
    ///
    /// The servers' events go to `answer`, the application's part of a server.
    pub fn new(
        transport: Transport,
        (out, back): (&Network, &Network),
        client: C,
        servers: Vec<S>,
        answer: impl FnMut(S::Event) -> Option<S::Command> + Send + 'static,
    ) -> Self {
        let mut sim = Sim {
            fabric: Fabric::new(transport, out, back, 1 + servers.len() as u32),
            client: Node::new(0, client),
            servers: (1..).zip(servers).map(|(id, server)| Node::new(id, server)).collect(),
            answer: Box::new(answer),
            models: (out.model(transport), back.model(transport)),
        };
        for server in &mut sim.servers {
            server.carry_out(&mut sim.fabric, &mut sim.answer);
        }
        sim
    }

    /// The client.
    pub const fn machine(&self) -> &C {
        &self.client.machine
    }

    /// The server at this node, from 1.
    ///
    /// # Panics
    /// Where there is no such server.
    pub fn server(&self, node: u32) -> &S {
        &self.servers[node as usize - 1].machine
    }

    /// Hands a command to the server at this node, as its application would.
    ///
    /// # Panics
    /// Where there is no such server.
    pub fn command_server(&mut self, node: u32, command: S::Command) {
        let server = &mut self.servers[node as usize - 1];
        server.machine.handle(self.fabric.now, Input::Command(command));
        server.carry_out(&mut self.fabric, &mut self.answer);
    }

    /// What happened to the packets from one node to another.
    ///
    /// # Panics
    /// Where there is no such node.
    #[must_use]
    pub fn counters(&self, from: u32, to: u32) -> Counters {
        assert!(to as usize <= self.servers.len(), "there is no node {to}");
        self.fabric.lanes[self.fabric.lane_between(from, to)].counters
    }

    /// The facts of the network out and back, from which the link's limit follows.
    #[must_use]
    pub const fn model(&self) -> (Model, Model) {
        self.models
    }

    /// Whether a node accepts what connects to it. At first servers do and the client does not.
    pub fn set_listening(&mut self, node: u32, listening: bool) {
        self.fabric.desks[node as usize].listening = listening;
    }

    /// Says what the connections are that a node opens from now on: a hub is connected to by streams, and reaches others
    /// by datagrams.
    pub fn set_opening(&mut self, node: u32, transport: Transport) {
        self.fabric.desks[node as usize].opens = transport;
    }

    /// Bytes of payload that the network holds.
    #[must_use]
    pub fn outstanding_bytes(&self) -> usize {
        self.fabric.outstanding_bytes()
    }

    /// When the next thing happens; a deadline that has been moved counts where it was.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.fabric.next_at()
    }

    /// How many things have happened.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.fabric.steps
    }

    /// Starts to fold all that machines are told into a hash, which costs time for each byte.
    pub fn set_tracing(&mut self) {
        self.fabric.set_tracing();
    }

    /// The hash of all that machines were told: equal for equal runs.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.fabric.trace()
    }

    /// Lets everything happen that is due before `until`, or at it too.
    fn run(&mut self, until: Instant, inclusive: bool, told: &mut dyn FnMut(C::Event) -> Option<C::Command>) {
        while self.fabric.next_at().is_some_and(|at| at < until || inclusive && at == until) {
            self.step(told);
        }
    }

    fn step(&mut self, told: &mut dyn FnMut(C::Event) -> Option<C::Command>) {
        match self.fabric.advance() {
            Some(Call::Work(0)) => self.client.work(&mut self.fabric, told),
            Some(Call::Work(node)) => self.servers[node as usize - 1].work(&mut self.fabric, &mut self.answer),
            Some(Call::Elapsed(0)) => self.client.elapse(&mut self.fabric, told),
            Some(Call::Elapsed(node)) => self.servers[node as usize - 1].elapse(&mut self.fabric, &mut self.answer),
            None => {}
        }
    }

    /// Lets the world go on while the client's processor is busy with what it was just asked to do.
    fn busy(&mut self, told: &mut dyn FnMut(C::Event) -> Option<C::Command>) {
        let busy = self.fabric.desks[0].busy;
        if busy > self.fabric.now {
            self.run(busy, false, told);
            self.fabric.now = self.fabric.now.max(busy);
        }
    }
}

impl<C: Machine, S: Machine> Driver for Sim<C, S> {
    type Machine = C;

    fn machine_mut(&mut self) -> &mut C {
        &mut self.client.machine
    }

    fn command(&mut self, command: C::Command) {
        self.client.machine.handle(self.fabric.now, Input::Command(command));
    }

    fn turn(&mut self, wait: Wait, until: Instant, told: &mut dyn FnMut(C::Event)) -> Result<(), DriverError> {
        let heard = Cell::new(false);
        let steps = self.fabric.steps;
        let before = self.fabric.now;
        let mut tell = |event| {
            heard.set(true);
            told(event);
            None
        };
        self.client.carry_out(&mut self.fabric, &mut tell);
        self.busy(&mut tell);
        if wait == Wait::Never {
            self.run(self.fabric.now, true, &mut tell);
            if self.fabric.steps == steps && self.fabric.now == before && !heard.get() {
                let looked = before.max(until.min(before + LOOK));
                self.run(looked, true, &mut tell);
                self.fabric.now = self.fabric.now.max(looked);
            }
            return Ok(());
        }
        while !heard.get() {
            match self.fabric.next_at() {
                Some(at) if at <= until.max(self.fabric.now) => {
                    self.step(&mut tell);
                }
                _ if until == Instant::MAX => return Err(DriverError::NothingLeft),
                _ => {
                    self.fabric.now = self.fabric.now.max(until);
                    break;
                }
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.fabric.now
    }
}
