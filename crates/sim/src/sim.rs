use crate::cost::Allowance;
use crate::world::Site;
use crate::{Counters, Model, Network, Transport, World};
use hodo_machine::{Driver, DriverError, Instant, Machine, Wait};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time that a look with [`Wait::Never`] takes when it finds nothing, so that a caller who only looks gets on.
const LOOK: Duration = Duration::from_nanos(100);

/// A [`World`] with one client machine, at node 0, and server machines, at nodes 1 and up.
///
/// As a [`Driver`] it is the client's: commands go to the client and its events are told. Every pair of nodes has a
/// line of its own in each direction. Servers accept whatever connects; the client does not, unless told to.
///
/// Each message that a node sends or receives occupies its one processor for the network's `cost`; what arrives
/// meanwhile waits. [`Driver::turn`] returns once an event was told, so that time does not run ahead of the caller.
pub struct Sim<C: Machine, S: Machine> {
    world: World,
    client: Site<C>,
    servers: Vec<Site<S>>,
    models: (Model, Model),
}

impl<C, S> Sim<C, S>
where
    C: Machine + Send + 'static,
    C::Event: Send,
    S: Machine + Send + 'static,
    S::Event: Send,
{
    /// Creates one client and one server over a network that is the same in both directions.
    pub fn pair(
        transport: Transport,
        network: &Network,
        client: C,
        server: S,
        answer: impl FnMut(S::Event) -> Option<S::Command> + Send + 'static,
    ) -> Self {
        Self::new(transport, (network, network), client, vec![server], answer)
    }

    /// Creates one client and several servers; the client sends over the first network and receives over the second.
    ///
    /// The servers' events go to `answer`, the application's part of a server.
    pub fn new(
        transport: Transport,
        (out, back): (&Network, &Network),
        client: C,
        servers: Vec<S>,
        answer: impl FnMut(S::Event) -> Option<S::Command> + Send + 'static,
    ) -> Self {
        let mut world = World::over(out, back, 1 + servers.len() as u64);
        let client = world.add(client);
        world.set_listening(client.node, false);
        world.set_opening(client.node, transport);
        let answer = Arc::new(Mutex::new(answer));
        let mut sites = Vec::new();
        for server in servers {
            let (site, answer) = (world.add_site(), answer.clone());
            world.set_opening(site.node, transport);
            world.start_with(site, server, move |event| {
                (answer.lock().expect("an application that panicked ends its test"))(event)
            });
            sites.push(site);
        }
        sites.iter().for_each(|site| {
            world.carry_out(site.node);
        });
        Sim { world, client, servers: sites, models: (out.model(transport), back.model(transport)) }
    }

    /// Returns the server at this node, from 1.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn server(&self, node: u32) -> &S {
        self.world.machine(self.servers[node as usize - 1]).expect("a server runs as long as the simulation")
    }

    /// Hands a command to the server at this node, as its application would.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn command_server(&mut self, node: u32, command: S::Command) {
        let site = self.servers[node as usize - 1];
        self.world.command(site, command);
        self.world.carry_out(site.node);
    }

    /// Returns the counts of packets from one node to another.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn counters(&self, from: u32, to: u32) -> Counters {
        assert!(to as usize <= self.servers.len(), "there is no node {to}");
        self.world.counters(self.models.0.transport, from, to)
    }

    /// Returns the number of segments that the client's streams have sent again.
    #[must_use]
    pub fn retransmitted(&self) -> u64 {
        let to = self.servers.iter().map(|server| self.world.counters(Transport::Stream, 0, server.node));
        to.map(|counters| counters.retransmitted).sum()
    }

    /// Returns the facts of the network out and back, from which the link's limit follows.
    #[must_use]
    pub const fn model(&self) -> (Model, Model) {
        self.models
    }

    /// Sets whether a node accepts what connects to it. At first servers do and the client does not.
    pub fn set_listening(&mut self, node: u32, listening: bool) {
        self.world.set_listening(node, listening);
    }

    /// Holds the machine at a node to an allowance: a run in which it costs more panics.
    pub fn set_allowance(&mut self, node: u32, allowance: Allowance) {
        self.world.set_allowance(node, allowance);
    }

    /// Sets the transport of what a node opens from now on: a hub is connected to by streams, and reaches others by
    /// datagrams.
    pub fn set_opening(&mut self, node: u32, transport: Transport) {
        self.world.set_opening(node, transport);
    }

    /// Bytes of payload that the network holds.
    #[must_use]
    pub fn outstanding_bytes(&self) -> usize {
        self.world.outstanding_bytes()
    }

    /// Returns when the next thing happens; a deadline that has been moved counts where it was.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.world.fabric.next_at()
    }

    /// Returns how many things have happened.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.world.steps()
    }

    /// Starts to fold all that machines are told into a hash, which costs time for each byte.
    pub fn set_tracing(&mut self) {
        self.world.set_tracing();
    }

    /// Returns the hash of all that machines were told: equal for equal runs.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.world.trace()
    }

    /// Tells the client's events, and carries out all that is to be done at this instant; returns whether there was one.
    fn tell(&mut self, told: &mut dyn FnMut(C::Event)) -> bool {
        let mut heard = false;
        loop {
            while let Some(event) = self.world.take_event(self.client) {
                heard = true;
                told(event);
            }
            if self.world.finish().is_none() {
                return heard;
            }
        }
    }

    fn step(&mut self, told: &mut dyn FnMut(C::Event)) -> bool {
        self.world.step();
        self.tell(told)
    }

    /// Lets everything happen that is due before `until`, or at it too; returns whether the client had an event.
    fn run(&mut self, until: Instant, inclusive: bool, told: &mut dyn FnMut(C::Event)) -> bool {
        let mut heard = false;
        while self.next_at().is_some_and(|at| at < until || inclusive && at == until) {
            heard |= self.step(told);
        }
        heard
    }

    /// Lets the world go on while the client's processor is busy with what it was just asked to do.
    fn busy(&mut self, told: &mut dyn FnMut(C::Event)) -> bool {
        let busy = self.world.fabric.hosts[0].busy;
        if busy <= self.now() {
            return false;
        }
        let heard = self.run(busy, false, told);
        self.pass(busy);
        heard
    }

    fn pass(&mut self, until: Instant) {
        self.world.fabric.now = self.world.fabric.now.max(until);
    }
}

impl<C, S> Driver for Sim<C, S>
where
    C: Machine + Send + 'static,
    C::Event: Send,
    S: Machine + Send + 'static,
    S::Event: Send,
{
    type Machine = C;

    fn machine(&self) -> &C {
        self.world.machine(self.client).expect("the client runs as long as the simulation")
    }

    fn machine_mut(&mut self) -> &mut C {
        self.world.machine_mut(self.client).expect("the client runs as long as the simulation")
    }

    fn command(&mut self, command: C::Command) {
        self.world.command(self.client, command);
    }

    fn turn(&mut self, wait: Wait, until: Instant, told: &mut dyn FnMut(C::Event)) -> Result<(), DriverError> {
        let (steps, before) = (self.steps(), self.now());
        // The caller may have set the machine up without a command.
        self.world.continue_later(self.client.node);
        let mut heard = self.tell(told);
        heard |= self.busy(told);
        if wait == Wait::Never {
            heard |= self.run(self.now(), true, told);
            if self.steps() == steps && self.now() == before && !heard {
                let looked = before.max(until.min(before + LOOK));
                self.run(looked, true, told);
                self.pass(looked);
            }
            return Ok(());
        }
        while !heard {
            match self.next_at() {
                Some(at) if at <= until.max(self.now()) => heard = self.step(told),
                _ if until == Instant::MAX => return Err(DriverError::NothingLeft),
                _ => {
                    self.pass(until);
                    break;
                }
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.world.now()
    }
}
