//! Links, nodes and wormhole routers in virtual time, exact to the character.
//!
//! A network is made with a [`Builder`] and driven by whoever owns it: [`Network::run_until`] lets time pass, and between two
//! calls packets go in ([`Network::send`]) and come out ([`Network::receive`]). Nothing here reads a clock.
//!
//! | part | file |
//! |---|---|
//! | one code after another: transmitters, arrivals, timers | `engine` |
//! | a link between two nodes, in runs of bytes | `batch` |
//! | all links of routers, in runs of N-chars | `routed` |
//! | hosts: queues, and how N-chars are taken | `node`, `queue` |
//! | routers: tables, wormholes, watchdogs | `router`, `wormhole` |
//! | their registers behind RMAP | `configuration` |
//! | circles of packets that wait for each other | `deadlock` |
//!
//! At one time, arrivals and timers go before the choices of transmitters, whose order does not matter: what one of them
//! frees or gives to another counts from the next picosecond on. An N-char is delivered with its last bit. A NULL counts as received
//! when the sender counts it: with the next other code, or when somebody looks.
mod batch;
mod build;
mod configuration;
mod deadlock;
mod engine;
mod error;
mod node;
mod observer;
mod port;
mod queue;
mod random_bits;
mod ring;
mod routed;
mod router;
mod run;
mod schedule;
mod settings;
#[cfg(test)]
mod tests;
mod wormhole;

use alloc::vec::Vec;
use core::fmt;

pub use build::Builder;
pub use configuration::{CONFIGURATION_KEY, ConfigurationPort, PortView, RouterView};
pub use deadlock::{Blocked, Deadlock, WaitsFor};
pub use error::{BuildError, SendError, UseError};
pub use observer::{Observer, Record};
pub use queue::{Packet, PacketHeader};
pub use random_bits::BitErrors;
pub use router::{Configuration, PortFaults, Registers, Route};
pub use settings::{
    CABLE_MAX, Clocks, Latency, LinkSettings, NodeSettings, RATE_MAX, RATE_MIN, RouterSettings, Sink, WhenDown,
};

use crate::EndOfPacket;
use crate::end::{End, Fault, Settings as EndSettings, Statistics};
use crate::time::Picos;
use node::Node;
use port::{NEVER, Planned, Port};
use router::Router;
use schedule::Schedule;

/// A node of one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) usize);

/// A router of one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouterId(pub(crate) usize);

/// Where one end of a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The link of a node.
    Node(NodeId),
    /// A port of a router, from 1.
    Router(RouterId, u8),
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

impl fmt::Display for RouterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "router {}", self.0)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Node(node) => node.fmt(f),
            Place::Router(router, port) => write!(f, "port {port} of {router}"),
        }
    }
}

impl From<NodeId> for Place {
    fn from(node: NodeId) -> Self {
        Place::Node(node)
    }
}

impl From<(RouterId, u8)> for Place {
    fn from((router, port): (RouterId, u8)) -> Self {
        Place::Router(router, port)
    }
}

/// How a network computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Engine {
    /// In runs of bytes where that gives the same as code by code.
    #[default]
    Fast,
    /// Code by code, as an oracle for the other.
    Reference,
}

/// Links, nodes and routers, and the time.
pub struct Network<O = ()> {
    now: u64,
    engine: Engine,
    /// Two for each link.
    ports: Vec<Port>,
    nodes: Vec<Node>,
    routers: Vec<Router>,
    /// First ends of the links between two nodes: nothing else in the network acts on them.
    isolated: Vec<usize>,
    /// The order of events of all other links.
    schedule: Schedule,
    next_check: u64,
    deadlock: Option<Deadlock>,
    observer: O,
    scratch: batch::Scratch,
    routed_scratch: routed::Scratch,
    /// Steps to go before the next batch of routed links is tried.
    pause: usize,
    /// From when on the arrival of a packet at a watched node ends the run, if it does.
    early: Option<u64>,
}

impl<O: Observer> Network<O> {
    /// Returns the time up to which everything has happened.
    #[must_use]
    pub fn now(&self) -> Picos {
        Picos(self.now)
    }

    /// Returns when something happens next, or `None` if nothing will without a call. Idle NULLs are no events.
    #[must_use]
    pub fn next_event(&self) -> Option<Picos> {
        let keys = self.ports.iter().map(Port::key);
        keys.min().filter(|key| *key != NEVER).map(|key| Picos(key >> 1))
    }

    /// Lets time pass. Everything up to and at `time` happens.
    pub fn run_until(&mut self, time: Picos) {
        if time.0 < self.now {
            return;
        }
        let until = self.run_routed(time.0);
        for at in 0..self.isolated.len() {
            self.run_link(self.isolated[at], until);
        }
        self.now = until;
    }

    /// Lets time pass up to `time`, or, from `early` on, to shortly after a packet has arrived at a node that is [watched](Self::watch):
    /// 160 bits of the fastest link that runs, at the most. Where such a node is linked to another node, time passes to `early`.
    pub fn run_until_arrival(&mut self, time: Picos, early: Picos) {
        let early = Picos(early.0.max(self.now + 1));
        let is_close = self.isolated.iter().any(|first| self.is_watched(*first) || self.is_watched(*first + 1));
        self.early = Some(early.0);
        self.run_until(if is_close { time.min(early) } else { time });
        self.early = None;
    }

    /// Has [`run_until_arrival`](Self::run_until_arrival) stop for packets that arrive at a node, from now on.
    pub fn watch(&mut self, node: NodeId) {
        if let Some(node) = self.nodes.get_mut(node.0) {
            node.is_watched = true;
        }
    }

    /// Returns whether a port is that of a watched node.
    fn is_watched(&self, port: usize) -> bool {
        matches!(self.ports[port].owner, port::Owner::Node(node) if self.nodes[node].is_watched)
    }

    /// Returns how many packets wait at watched nodes.
    fn packets_at_watched(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_watched).map(|node| node.incoming.packets()).sum()
    }

    /// Sends a packet from a node. It leaves as the link allows.
    ///
    /// # Errors
    /// If the node is unknown, or one of the bounds of its transmit queue is reached.
    pub fn send(&mut self, node: NodeId, bytes: &[u8], end: EndOfPacket) -> Result<(), SendError> {
        let sender = self.nodes.get_mut(node.0).ok_or(SendError::UnknownNode(node))?;
        sender.send(bytes, end)?;
        let port = sender.port;
        self.wake(port, self.now);
        self.update();
        Ok(())
    }

    /// Returns the next packet that arrived at a node.
    pub fn receive(&mut self, node: NodeId) -> Option<Packet> {
        let mut bytes = Vec::new();
        let header = self.receive_into(node, &mut bytes)?;
        Some(Packet { bytes, header })
    }

    /// Appends the next packet that arrived at a node to `bytes`, without an allocation if there is room.
    pub fn receive_into(&mut self, node: NodeId, bytes: &mut Vec<u8>) -> Option<PacketHeader> {
        let header = self.nodes.get_mut(node.0)?.incoming.pop(bytes)?;
        self.drain(node.0, self.now);
        self.update();
        Some(header)
    }

    /// Returns the next packet that arrived at a node, without taking it.
    #[must_use]
    pub fn peek(&self, node: NodeId) -> Option<(&[u8], PacketHeader)> {
        self.nodes.get(node.0)?.incoming.front()
    }

    /// Takes up to `n` N-chars from the receive buffer of a node that only takes when asked. Returns how many it took.
    pub fn take(&mut self, node: NodeId, n: usize) -> usize {
        let taken = if node.0 < self.nodes.len() { self.take_from(node.0, n, self.now) } else { 0 };
        self.update();
        taken
    }

    /// Returns packets and bytes that wait in the transmit queue of a node.
    #[must_use]
    pub fn queued(&self, node: NodeId) -> (usize, usize) {
        self.nodes.get(node.0).map_or((0, 0), |node| (node.outgoing.packets(), node.outgoing.bytes()))
    }

    /// Returns how long the link of a node takes for what waits in its transmit queue, if nothing holds it up.
    #[must_use]
    pub fn backlog(&self, node: NodeId) -> Picos {
        let (packets, bytes) = self.queued(node);
        let bit = self.nodes.get(node.0).map_or(0, |node| self.ports[node.port].bit_run);
        Picos((10 * bytes as u64 + 4 * packets as u64).saturating_mul(bit))
    }

    /// Sends a time-code from a node, before everything else that waits.
    ///
    /// # Errors
    /// If the node is unknown.
    pub fn time_code(&mut self, node: NodeId, code: u8) -> Result<(), UseError> {
        let port = self.nodes.get(node.0).ok_or(UseError::UnknownNode(node))?.port;
        self.ports[port].end.send_time_code(code);
        self.wake(port, self.now);
        self.update();
        Ok(())
    }

    /// Returns the next time-code that arrived at a node, with its time. The last 64 are kept.
    pub fn receive_time_code(&mut self, node: NodeId) -> Option<(Picos, u8)> {
        self.nodes.get_mut(node.0)?.time_codes.pop_front()
    }

    /// Sends a fault from an end at the next boundary in Run.
    ///
    /// # Errors
    /// If nothing is connected there.
    pub fn inject(&mut self, place: impl Into<Place>, fault: Fault) -> Result<(), UseError> {
        self.inject_at(place, fault, self.now())
    }

    /// Sends a fault from an end at the first boundary at or after `time`. It is lost if the link does not run then.
    ///
    /// # Errors
    /// If nothing is connected there, or 64 faults wait there already.
    pub fn inject_at(&mut self, place: impl Into<Place>, fault: Fault, time: Picos) -> Result<(), UseError> {
        self.plan(place.into(), Planned { at: time.0, fault, every: None })
    }

    /// Sends a fault from an end as [`inject_at`](Self::inject_at) does, and again after each `every`, which is at least a microsecond.
    ///
    /// # Errors
    /// If nothing is connected there, or 64 faults wait there already.
    pub fn inject_every(
        &mut self,
        place: impl Into<Place>,
        fault: Fault,
        time: Picos,
        every: Picos,
    ) -> Result<(), UseError> {
        let every = Some(every.0.max(1_000_000));
        self.plan(place.into(), Planned { at: time.0, fault, every })
    }

    fn plan(&mut self, place: Place, planned: Planned) -> Result<(), UseError> {
        let port = self.port(place)?;
        if self.ports[port].planned.len() >= 64 {
            return Err(UseError::TooManyFaults { place });
        }
        self.ports[port].plan(Planned { at: planned.at.max(self.now), ..planned });
        self.ports[port].set_alarm();
        if planned.at <= self.now {
            self.alarm(port, self.now);
        }
        self.touch(port);
        self.update();
        Ok(())
    }

    /// Sends a fault from an end after it sent another `n` N-chars.
    ///
    /// # Errors
    /// If nothing is connected there.
    pub fn inject_after(&mut self, place: impl Into<Place>, fault: Fault, n: u64) -> Result<(), UseError> {
        let port = self.port(place.into())?;
        if n == 0 {
            self.ports[port].inject(fault);
            self.wake(port, self.now);
        } else {
            self.ports[port].after_nchars = Some((n, fault));
        }
        self.update();
        Ok(())
    }

    /// Changes whether an end is disabled, or starts.
    ///
    /// # Errors
    /// If nothing is connected there.
    pub fn configure(
        &mut self,
        place: impl Into<Place>,
        change: impl FnOnce(&mut EndSettings),
    ) -> Result<(), UseError> {
        let port = self.port(place.into())?;
        self.configure_end(port, change, self.now);
        self.update();
        Ok(())
    }

    /// Returns one end of a link: its state, credit and settings.
    ///
    /// # Errors
    /// If nothing is connected there.
    pub fn end(&self, place: impl Into<Place>) -> Result<&End, UseError> {
        Ok(&self.ports[self.port(place.into())?].end)
    }

    /// Returns what an end has counted by now.
    ///
    /// # Errors
    /// If nothing is connected there.
    pub fn statistics(&self, place: impl Into<Place>) -> Result<Statistics, UseError> {
        let port = self.port(place.into())?;
        let mut statistics = *self.ports[port].end.statistics();
        statistics.sent.nulls += self.ports[port].idle_nulls(self.now);
        statistics.received.nulls += self.ports[port ^ 1].idle_nulls(self.now);
        Ok(statistics)
    }

    /// Returns what went wrong with packets at a port.
    ///
    /// # Errors
    /// If nothing is connected there.
    pub fn faults(&self, place: impl Into<Place>) -> Result<PortFaults, UseError> {
        Ok(self.ports[self.port(place.into())?].faults)
    }

    /// Returns how many characters bit errors altered unnoticed in what an end sent.
    ///
    /// # Errors
    /// If nothing is connected there.
    pub fn unnoticed(&self, place: impl Into<Place>) -> Result<u64, UseError> {
        Ok(self.ports[self.port(place.into())?].unnoticed)
    }

    /// Returns the table of a router, to read or change it.
    ///
    /// # Errors
    /// If the router is unknown.
    pub fn registers(&mut self, router: RouterId) -> Result<&mut Registers, UseError> {
        let known = self.routers.get_mut(router.0).ok_or(UseError::UnknownRouter(router))?;
        Ok(&mut known.registers)
    }

    /// Gives the packets for port 0 of a router to `configuration`.
    ///
    /// # Errors
    /// If the router is unknown.
    pub fn set_configuration(
        &mut self,
        router: RouterId,
        configuration: impl Configuration + 'static,
    ) -> Result<(), UseError> {
        let known = self.routers.get_mut(router.0).ok_or(UseError::UnknownRouter(router))?;
        known.configuration = Some(alloc::boxed::Box::new(configuration));
        Ok(())
    }

    /// Returns the node of this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(NodeId)
    }

    /// Returns the router of this name.
    #[must_use]
    pub fn router(&self, name: &str) -> Option<RouterId> {
        self.routers.iter().position(|router| router.name == name).map(RouterId)
    }

    /// Returns the network with another observer, from now on.
    #[must_use]
    pub fn observed_by<P: Observer>(self, observer: P) -> Network<P> {
        let Network { now, engine, ports, nodes, routers, isolated, schedule, next_check, deadlock, .. } = self;
        let (scratch, routed_scratch) = (self.scratch, self.routed_scratch);
        Network {
            now,
            engine,
            ports,
            nodes,
            routers,
            isolated,
            schedule,
            next_check,
            deadlock,
            observer,
            scratch,
            routed_scratch,
            pause: 0,
            early: None,
        }
    }

    /// Returns the observer, to look at.
    #[must_use]
    pub fn observed(&self) -> &O {
        &self.observer
    }

    /// Returns the observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn port(&self, place: Place) -> Result<usize, UseError> {
        let port = match place {
            Place::Node(node) => self.nodes.get(node.0).map(|node| node.port),
            Place::Router(router, port) => self.routers.get(router.0).and_then(|router| router.port(port)),
        };
        port.ok_or(UseError::NotConnected { place })
    }

    fn place(&self, port: usize) -> Place {
        match self.ports[port].owner {
            port::Owner::Node(node) => Place::Node(NodeId(node)),
            port::Owner::Router(router, number) => Place::Router(RouterId(router), number),
        }
    }
}
