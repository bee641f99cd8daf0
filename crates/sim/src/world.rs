use crate::cost::{Allowance, Cost};
use crate::fabric::{Call, Fabric, Notice};
use crate::host::Power;
use crate::program::{Application, Program, Running};
use crate::{Counters, Network, Transport};
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// The address of every other node: what is sent there, as datagrams, reaches all of them.
pub const BROADCAST: u32 = u32::MAX;
/// The addresses of groups that nodes join begin here.
pub const FIRST_GROUP: u32 = 1 << 31;
/// Separates the wires of one node from those of the next in the numbers that seed them.
const STRIDE: u64 = 1 << 32;
/// How often a place that a machine offers to receive into is used.
const LANDINGS: f64 = 0.5;
/// A machine that has more than this to do at one instant has lost its way.
const OUTPUTS_MAX: u32 = 1 << 20;

/// A node at which machines of one type run, one after the other.
pub struct Site<M> {
    /// The node's number, as in [`Address::Node`](hodo_machine::Address::Node).
    pub node: u32,
    machine: PhantomData<fn() -> M>,
}

impl<M> Clone for Site<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Site<M> {}

impl<M> fmt::Debug for Site<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.node)
    }
}

/// How a machine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The process ends: the system resets its connections, and refuses new ones until another machine starts.
    Reset,
    /// The host ends: nothing answers, and nobody learns of the end of a connection, even when another machine starts.
    Silent,
}

/// A stream between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The node that opened it, and the node that accepted it.
    pub nodes: [u32; 2],
    pub(crate) end: crate::connection::End,
}

/// Any machines at any nodes, over a simulated network in virtual time.
///
/// Each pair of nodes has wires of its own, one for each direction, which all transports share unless
/// [`World::set_network_of`] parts them. A node's machine may open and accept streams and datagrams. Nothing happens
/// but in [`World::turn`], which returns as soon as a machine has an event for its application; the caller looks at
/// it, commands, kills or starts what it likes, and turns again. The same seed and the same calls give the same run.
pub struct World {
    pub(crate) fabric: Fabric,
    places: Vec<Place>,
    /// Nodes whose machines have more to do at this instant.
    unfinished: VecDeque<u32>,
    outbox: Outbox,
}

/// A node's place for a machine.
#[derive(Default)]
struct Place {
    program: Option<Box<dyn Program>>,
    /// Outputs since the machine was last idle.
    outputs: u32,
    cost: Cost,
    /// The most that the machine may cost, if it is held to it.
    allowance: Option<Allowance>,
    /// Strangers that were answered without becoming peers.
    answered: HashSet<Address>,
}

impl World {
    /// Creates a world without nodes, in which every wire is this network until set otherwise.
    #[must_use]
    pub fn new(network: &Network) -> Self {
        World::over(network, network, STRIDE)
    }

    pub(crate) fn over(out: &Network, back: &Network, stride: u64) -> Self {
        World {
            fabric: Fabric::new(out, back, stride),
            places: Vec::new(),
            unfinished: VecDeque::new(),
            outbox: Outbox::new(),
        }
    }

    /// Adds a node at which nothing runs yet.
    pub fn add_site<M: Machine>(&mut self) -> Site<M> {
        self.places.push(Place::default());
        Site { node: self.fabric.add_host(), machine: PhantomData }
    }

    /// Adds a node and starts a machine there, whose events are kept for [`World::take_event`].
    pub fn add<M>(&mut self, machine: M) -> Site<M>
    where
        M: Machine + Send + 'static,
        M::Event: Send,
    {
        let site = self.add_site();
        self.start(site, machine);
        site
    }

    /// Starts a machine at a node where none runs.
    ///
    /// # Panics
    /// If one runs there.
    pub fn start<M>(&mut self, site: Site<M>, machine: M)
    where
        M: Machine + Send + 'static,
        M::Event: Send,
    {
        self.run_program(site.node, machine, None);
    }

    /// Starts a machine whose application answers its events at once.
    ///
    /// # Panics
    /// If one runs there.
    pub fn start_with<M>(
        &mut self,
        site: Site<M>,
        machine: M,
        application: impl FnMut(M::Event) -> Option<M::Command> + Send + 'static,
    ) where
        M: Machine + Send + 'static,
        M::Event: Send,
    {
        self.run_program(site.node, machine, Some(Box::new(application)));
    }

    fn run_program<M>(&mut self, node: u32, machine: M, application: Option<Application<M>>)
    where
        M: Machine + Send + 'static,
        M::Event: Send,
    {
        assert!(!self.is_running(node), "a machine runs at node {node}");
        let program = Running { machine, events: VecDeque::new(), application };
        self.places[node as usize].program = Some(Box::new(program));
        self.fabric.hosts[node as usize].power = Power::Running;
        self.continue_later(node);
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns whether a machine runs at this node, stopped or not.
    #[must_use]
    pub fn is_running(&self, node: u32) -> bool {
        self.places[node as usize].program.is_some()
    }

    /// Returns the machine at this node, while one runs there.
    #[must_use]
    pub fn machine<M: Machine + 'static>(&self, site: Site<M>) -> Option<&M> {
        let program = self.places[site.node as usize].program.as_ref()?;
        program.as_any().downcast_ref::<Running<M>>().map(|running| &running.machine)
    }

    /// Returns the machine at this node, to be asked and set up.
    pub fn machine_mut<M: Machine + 'static>(&mut self, site: Site<M>) -> Option<&mut M> {
        self.running(site).map(|running| &mut running.machine)
    }

    /// Hands a command to the machine at this node; the next turn carries out what comes of it. Returns `false` if none
    /// runs there.
    pub fn command<M: Machine + 'static>(&mut self, site: Site<M>, command: M::Command) -> bool {
        let now = self.fabric.now;
        let mut cost = std::mem::take(&mut self.places[site.node as usize].cost);
        let running = self.running(site);
        let runs = running.is_some();
        if let Some(running) = running {
            cost.inputs += 1;
            cost.of(|| running.machine.handle(now, Input::Command(command)));
        }
        self.places[site.node as usize].cost = cost;
        if !runs {
            return false;
        }
        self.continue_later(site.node);
        true
    }

    /// Takes the oldest event that the machine at this node has for its application.
    pub fn take_event<M: Machine + 'static>(&mut self, site: Site<M>) -> Option<M::Event> {
        self.running(site)?.events.pop_front()
    }

    fn running<M: Machine + 'static>(&mut self, site: Site<M>) -> Option<&mut Running<M>> {
        let program = self.places[site.node as usize].program.as_mut()?;
        program.as_any_mut().downcast_mut::<Running<M>>()
    }

    /// Ends the machine at a node. What it has sent is on its way; what it has not is gone.
    pub fn kill(&mut self, node: u32, death: Death) {
        let allowance = self.places[node as usize].allowance;
        self.places[node as usize] = Place { allowance, ..Place::default() };
        self.unfinished.retain(|unfinished| *unfinished != node);
        self.fabric.end_host(node, death);
    }

    /// Stops a machine, as SIGSTOP does: it is told nothing and does nothing, while its system accepts connections and
    /// keeps what arrives.
    pub fn stop(&mut self, node: u32) {
        self.fabric.stop(node);
    }

    /// Lets a stopped machine go on.
    pub fn resume(&mut self, node: u32) {
        self.fabric.resume(node);
    }

    /// Loses every packet between a node and all others, until told otherwise.
    pub fn cut_off(&mut self, node: u32, is_cut: bool) {
        for other in (0..self.places.len() as u32).filter(|other| *other != node) {
            self.part(node, other, is_cut);
        }
    }

    /// Loses every packet between two nodes, until told otherwise.
    pub fn part(&mut self, node: u32, other: u32, is_cut: bool) {
        for (from, to) in [(node, other), (other, node)] {
            for wire in self.fabric.wires_between(from, to) {
                let down = &mut self.fabric.wires[wire].down;
                *down = if is_cut { *down + 1 } else { down.saturating_sub(1) };
            }
        }
    }

    /// Returns the streams whose ends both know of them.
    #[must_use]
    pub fn streams(&self) -> Vec<Stream> {
        let live = self.fabric.connections.live(Transport::Stream).into_iter();
        let known = live.filter(|end| self.fabric.peer(*end).is_some() && self.fabric.peer(end.far()).is_some());
        let stream = |end| Some(Stream { nodes: self.fabric.connections.of(end)?.nodes, end });
        known.filter_map(stream).collect()
    }

    /// Resets a stream: what is on its way is gone, and each end is told within this time, by itself.
    pub fn reset(&mut self, stream: Stream, within: Duration) {
        self.fabric.break_stream(stream.end, within);
    }

    /// Sets the network from one node to another, for all transports.
    pub fn set_network(&mut self, from: u32, to: u32, network: &Network) {
        self.fabric.set_network(from, to, None, network);
    }

    /// Sets the network from one node to another for one transport, which has a wire of its own from then on.
    pub fn set_network_of(&mut self, transport: Transport, from: u32, to: u32, network: &Network) {
        self.fabric.set_network(from, to, Some(transport), network);
    }

    /// Sets what each message costs a node's processor, and the bytes of datagrams that may wait there.
    pub fn set_host(&mut self, node: u32, cost: Duration, buffer_bytes: u64) {
        let host = &mut self.fabric.hosts[node as usize];
        (host.cost, host.buffer_bytes) = (cost, buffer_bytes);
    }

    /// Sets how many bytes a node's machine may have unsent to one peer before it is told to hold back.
    pub fn set_backlog(&mut self, node: u32, bytes: usize) {
        self.fabric.hosts[node as usize].backlog = bytes;
    }

    /// Holds the machines at a node to an allowance: a run in which one costs more panics.
    pub fn set_allowance(&mut self, node: u32, allowance: Allowance) {
        self.places[node as usize].allowance = Some(allowance);
    }

    /// Lets a node be late: with this probability its machine is polled later, by up to this much, with all that came
    /// meanwhile.
    pub fn set_late(&mut self, node: u32, probability: f64, most: Duration) {
        self.fabric.hosts[node as usize].late = (probability, most);
    }

    /// Sets whether a node accepts what connects to it; at first it does.
    pub fn set_listening(&mut self, node: u32, listening: bool) {
        self.fabric.hosts[node as usize].listening = listening;
    }

    /// Sets the transport of what a node's machine opens from now on; at first streams.
    pub fn set_opening(&mut self, node: u32, transport: Transport) {
        self.fabric.hosts[node as usize].opens = transport;
    }

    /// Makes a node a member of a group, whose address is [`FIRST_GROUP`] or above.
    pub fn join(&mut self, node: u32, group: u32) {
        assert!((FIRST_GROUP..BROADCAST).contains(&group), "{group} is not a group");
        self.fabric.join(node, group);
    }

    /// Returns whether a machine has this peer.
    #[must_use]
    pub fn has_peer(&self, node: u32, peer: Peer) -> bool {
        self.fabric.hosts[node as usize].peers.contains_key(&peer.0)
    }

    /// Returns the time now.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.fabric.now
    }

    /// Returns when the next thing happens; a deadline that has been moved counts where it was.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        if self.unfinished.is_empty() { self.fabric.next_at() } else { Some(self.fabric.now) }
    }

    /// Returns how many things have happened.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.fabric.steps
    }

    /// Returns the counts of packets from one node to another.
    #[must_use]
    pub fn counters(&self, transport: Transport, from: u32, to: u32) -> Counters {
        self.fabric.wires[self.fabric.wire_between(transport, from, to)].counters
    }

    /// Bytes of payload that the network holds.
    #[must_use]
    pub fn outstanding_bytes(&self) -> usize {
        self.fabric.outstanding_bytes()
    }

    /// Starts to fold all that machines are told into a hash, which costs time for each byte.
    pub fn set_tracing(&mut self) {
        self.fabric.set_tracing();
    }

    /// Returns the hash of all that machines were told: equal for equal runs.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.fabric.trace()
    }

    /// Lets things happen up to `until`, and returns the node of the first machine that has an event.
    ///
    /// `None` says that it is `until` now; or, for [`Instant::MAX`], that nothing is left to happen.
    pub fn turn(&mut self, until: Instant) -> Option<u32> {
        loop {
            if let Some(node) = self.finish() {
                return Some(node);
            }
            match self.fabric.next_at() {
                Some(at) if at <= until.max(self.fabric.now) => {
                    if let Some(node) = self.step() {
                        return Some(node);
                    }
                }
                _ => {
                    if until < Instant::MAX {
                        self.fabric.now = self.fabric.now.max(until);
                    }
                    return None;
                }
            }
        }
    }

    /// Lets the next thing happen; returns the node whose machine has an event.
    pub(crate) fn step(&mut self) -> Option<u32> {
        match self.fabric.advance()? {
            Call::Work(node) => {
                self.tell(node);
                if self.fabric.take_overdue(node) {
                    self.handle(node, &Input::Elapsed);
                }
                if self.fabric.is_polled_later(node) {
                    self.fabric.notice_done(node);
                    return None;
                }
                self.carry_out(node)
            }
            Call::Elapsed(node) => {
                self.handle(node, &Input::Elapsed);
                self.carry_out(node)
            }
            Call::Poll(node) => self.carry_out(node),
        }
    }

    /// Goes on with machines that were interrupted by an event, or commanded; returns the node of one that has an event.
    pub(crate) fn finish(&mut self) -> Option<u32> {
        for _ in 0..self.unfinished.len() {
            let node = self.unfinished.pop_front()?;
            if self.fabric.hosts[node as usize].stopped {
                self.unfinished.push_back(node);
            } else if self.carry_out(node).is_some() {
                return Some(node);
            }
        }
        None
    }

    /// Has a machine that was set up without a command polled in the next turn.
    pub fn continue_later(&mut self, node: u32) {
        if !self.unfinished.contains(&node) {
            self.unfinished.push_back(node);
        }
    }

    /// Carries out what a machine wants until it is idle, or has an event.
    pub(crate) fn carry_out(&mut self, node: u32) -> Option<u32> {
        let (now, fabric) = (self.fabric.now, &mut self.fabric);
        let Place { program, outputs, cost, allowance, .. } = &mut self.places[node as usize];
        let program = program.as_mut()?;
        loop {
            *outputs += 1;
            assert!(
                *outputs <= OUTPUTS_MAX,
                "the machine at node {node} does not become idle: {OUTPUTS_MAX} outputs at {now:?}"
            );
            let output = cost.of(|| program.poll(now, &mut self.outbox));
            cost.outputs += u64::from(!matches!(output, Output::Idle(_)));
            match output {
                Output::Send(peer) => {
                    let sending = fabric.free_at(node);
                    let blocked = fabric.send(node, peer, &self.outbox);
                    cost.sent(peer, self.outbox.len());
                    cost.of(|| self.outbox.clear());
                    stamp(&mut **program, &mut self.outbox, sending, fabric.free_at(node));
                    if blocked {
                        cost.inputs += 1;
                        cost.of(|| program.handle(now, &Input::Blocked(peer)));
                    }
                }
                Output::Event(()) if program.has_events() => {
                    self.continue_later(node);
                    return Some(node);
                }
                Output::Event(()) => {}
                Output::Open(peer, address) => fabric.open(node, peer, &address),
                Output::Close(peer) => {
                    cost.closed(peer);
                    fabric.close(node, peer);
                }
                Output::Idle(deadline) => {
                    stamp(&mut **program, &mut self.outbox, now, now);
                    *outputs = 0;
                    if let Some(Err(over)) = allowance.as_ref().map(|allowance| cost.check(allowance)) {
                        panic!("the machine at node {node} costs too much: {over}");
                    }
                    fabric.flush(node);
                    for end in fabric.take_unread(node) {
                        match fabric.peer(end) {
                            Some(peer) if !program.has_room(peer) => fabric.leave_unread(node, end),
                            _ => fabric.announce_again(node, end),
                        }
                    }
                    fabric.set_deadline(node, deadline);
                    fabric.notice_done(node);
                    return None;
                }
            }
        }
    }

    fn handle(&mut self, node: u32, input: &Input<'_, std::convert::Infallible>) {
        let Place { program: Some(program), cost, .. } = &mut self.places[node as usize] else { return };
        cost.inputs += 1;
        match *input {
            Input::Received(peer, bytes) => cost.received(peer, bytes.len()),
            Input::Closed(peer, _) => cost.closed(peer),
            _ => {}
        }
        cost.of(|| program.handle(self.fabric.now, input));
    }

    /// Tells a machine of a peer, whose address is proven by a connection, by having been asked, or by an answer that it got.
    fn tell_opened(&mut self, node: u32, peer: Peer, ends: &Ends, by_datagram: bool) {
        let place = &mut self.places[node as usize];
        let is_proven = !by_datagram || !peer.is_accepted() || place.answered.contains(&ends.remote);
        place.cost.opened(peer, is_proven);
        self.fabric.note(node, "opened", peer, &[]);
        self.handle(node, &Input::Opened(peer, ends));
    }

    /// Tells a machine of the next notice in its inbox.
    fn tell(&mut self, node: u32) {
        match self.fabric.take_notice(node) {
            Some(Notice::Datagram(key)) => self.receive(node, key),
            Some(Notice::Readable(end)) => self.read(node, end),
            Some(Notice::Opened(end)) => {
                if let (Some(peer), Some(ends)) = (self.fabric.peer(end), self.fabric.ends(end)) {
                    self.tell_opened(node, peer, &ends, false);
                }
            }
            Some(Notice::Closed(end, why)) => {
                if let Some(peer) = self.fabric.forget(end) {
                    self.fabric.note(node, "closed", peer, &[]);
                    self.handle(node, &Input::Closed(peer, why));
                }
            }
            Some(Notice::Drained(end)) => {
                if let Some(peer) = self.fabric.peer(end) {
                    self.fabric.note(node, "drained", peer, &[]);
                    self.handle(node, &Input::Drained(peer));
                }
            }
            None => {}
        }
    }

    fn receive(&mut self, node: u32, key: u32) {
        if let Some((end, ends)) = self.fabric.stranger(node, key)
            && let Place { program: Some(program), cost, allowance, answered, .. } = &mut self.places[node as usize]
        {
            let (now, bytes) = (self.fabric.now, &self.fabric.datagrams.at(key).bytes);
            if !cost.of(|| program.admits(now, &ends, bytes, &mut self.outbox)) {
                let (came, went) = (bytes.len(), self.outbox.len());
                assert!(
                    allowance.is_none() || went <= came,
                    "the machine at node {node} answers {came} bytes of a stranger with {went}"
                );
                if went > 0 {
                    answered.insert(ends.remote);
                }
                self.fabric.turn_away(node, key, end, &self.outbox);
                self.outbox.clear();
                return;
            }
            self.outbox.clear();
        }
        let Some(claim) = self.fabric.claim(node, key) else { return };
        if let Some(ends) = claim.opened {
            self.tell_opened(node, claim.peer, &ends, true);
        }
        // Taken out for the call, so that noting it can borrow the rest.
        let bytes = std::mem::take(&mut self.fabric.datagrams.at(key).bytes);
        self.fabric.note(node, "received", claim.peer, &bytes);
        self.handle(node, &Input::Received(claim.peer, &bytes));
        self.fabric.datagrams.at(key).bytes = bytes;
        self.fabric.drop_datagram(key);
    }

    fn read(&mut self, node: u32, end: crate::connection::End) {
        let Place { program: Some(program), cost, .. } = &mut self.places[node as usize] else { return };
        let Some(peer) = self.fabric.peer(end) else { return };
        let fabric = &mut self.fabric;
        if !program.has_room(peer) {
            return fabric.leave_unread(node, end);
        }
        let mut count = fabric.portion(end);
        if count == 0 {
            return;
        }
        let lands = fabric.random.chance(LANDINGS);
        let place = if lands { cost.of(|| program.landing(peer).filter(|place| !place.is_empty())) } else { None };
        if let Some(place) = place {
            count = count.min(place.len());
            place[..count].copy_from_slice(fabric.front(end, count));
            cost.of(|| program.handle(fabric.now, &Input::Landed(peer, count)));
        } else {
            cost.of(|| program.handle(fabric.now, &Input::Received(peer, fabric.front(end, count))));
        }
        cost.inputs += 1;
        cost.received(peer, count);
        fabric.note_read(node, peer, end, count);
        fabric.consumed(end, count);
    }
}

/// Stamps the marks made since the last time; the processor was busy with the bytes that belong to them from one of
/// these times to the other.
fn stamp(program: &mut dyn Program, outbox: &mut Outbox, sending: Instant, sent: Instant) {
    for mark in outbox.drain_marks() {
        program.stamped(mark.stamp(sending, sent));
    }
}
