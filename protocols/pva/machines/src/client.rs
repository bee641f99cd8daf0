//! The client: channels on any number of servers, and operations that are set up once and executed again and again.
//!
//! All channels of a server share one connection, whether the application states the server or it is [searched](crate::discovery) for. A channel that is lost is opened again, its operations are set up again, and its monitors
//! start again with a whole value. An execution that was asked for and not sent waits for that; one that was sent has failed, since the
//! server may have done it.

mod command;
mod commands;
mod connection;
mod connections;
mod operation;
mod reply;
mod subscription;
mod tables;

use crate::data::{Plan, Value};
use crate::discovery::{Finder, FinderConfig};
use crate::session::SessionConfig;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use connection::Connection;
use core::time::Duration;
use hodo_machine::{Address, Ends, Input, Instant, Machine, Moment, Outbox, Output, Peer, Slab, Stamp, Stamps, Timers};
use operation::State;
use tables::{Step, Tables};

pub use command::{ArrayRequest, Command, Event, Failure, Kind, Lost, Update};

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Settings of each connection.
    pub session: SessionConfig,
    /// Channels that may be open. Their numbers are below it; 4,194,304 at most.
    pub channels_max: u32,
    /// Operations that there may be. Their numbers are below it; 4,194,304 at most.
    pub operations_max: u32,
    /// Updates that may wait for the application in one monitor.
    pub queue_max: u32,
    /// How long to wait before a server is tried again, at first and at most: each time twice as long, less up to a quarter.
    pub retry: (Duration, Duration),
    /// How long to wait before a channel is asked for again that its server has refused or closed, at first and at most.
    pub retry_refused: (Duration, Duration),
    /// How long a connection is kept that no channel needs.
    pub idle_timeout: Duration,
    /// Two clients with different seeds wait differently.
    pub seed: u64,
    /// How channels are searched for whose server is not stated.
    pub search: FinderConfig,
    /// Servers that are asked for channels over a connection which is kept.
    pub name_servers: Vec<Address>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        ClientConfig {
            session: SessionConfig::default(),
            channels_max: 1_000_000,
            operations_max: 1_000_000,
            queue_max: 10_000,
            retry: (Duration::from_millis(100), Duration::from_secs(1)),
            retry_refused: (Duration::from_millis(500), Duration::from_secs(30)),
            idle_timeout: Duration::from_secs(10),
            seed: 0,
            search: FinderConfig::default(),
            name_servers: Vec::new(),
        }
    }
}

/// The deadlines of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Timer {
    Connection(u32),
    Channel(u32),
}

/// A client of any number of servers.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    tables: Tables,
    connections: Slab<Option<Box<Connection>>>,
    addresses: BTreeMap<Address, u32>,
    to_open: VecDeque<u32>,
    opening: usize,
    closing: VecDeque<Peer>,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    timers: Timers<Timer>,
    /// How many seeds were used.
    seeds: u64,
    stamps: Stamps,
}

/// From its start until its request begins to be encoded.
pub const CALL: &str = "call";
/// From then on until the system call that writes the request: encoding it, and what leaves together with it.
pub const ENCODE: &str = "encode";
/// That system call, with all that it writes.
pub const SEND: &str = "send";
/// From then on until the reply is received: the network both ways, the server, and waking up.
pub const AWAY: &str = "wire and server";
/// From then on until its end is told: decoding the reply, and what was received together with it.
pub const DECODE: &str = "decode";

impl Client {
    /// Creates a client without channels.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let mut connections = Slab::default();
        // The number is that of the peer by which searches leave.
        let searching = connections.insert(None);
        let mut client = Client {
            tables: Tables::new(Finder::new(config.search.clone(), Peer(searching))),
            config,
            connections,
            addresses: BTreeMap::new(),
            to_open: VecDeque::new(),
            opening: 0,
            closing: VecDeque::new(),
            ready: VecDeque::new(),
            timers: Timers::default(),
            seeds: 0,
            stamps: Stamps::default(),
        };
        let mut name_servers = client.config.name_servers.clone();
        name_servers.sort();
        name_servers.dedup();
        for (number, address) in name_servers.into_iter().enumerate() {
            client.connect(address, Some(number));
        }
        client
    }

    /// Returns the part that searches, which has counters.
    #[must_use]
    pub const fn finder(&self) -> &Finder {
        &self.tables.finder
    }

    /// Returns the type of what an operation reads, or of what was described; `None` until it is set up.
    #[must_use]
    pub fn plan(&self, operation: u32) -> Option<&Arc<Plan>> {
        self.tables.operation(operation)?.plan.as_ref()
    }

    /// Returns the type of what an operation puts; `None` until it is set up.
    #[must_use]
    pub fn put_plan(&self, operation: u32) -> Option<&Arc<Plan>> {
        self.tables.operation(operation)?.put_plan.as_ref()
    }

    /// Returns what the last execution read or returned, or a monitor's value as of the last update that was taken. It stays until the
    /// next execution.
    #[must_use]
    pub fn value(&self, operation: u32) -> Option<&Value> {
        let operation = self.tables.operation(operation)?;
        match &operation.subscription {
            Some(subscription) => subscription.current().map(|update| update.value),
            None => operation.value.as_ref(),
        }
    }

    /// Returns the length of an array, as it was read last.
    #[must_use]
    pub fn length(&self, operation: u32) -> Option<u64> {
        self.tables.operation(operation).map(|operation| operation.length)
    }

    /// Returns a value to be put, of which nothing has changed: that of the last put, or a new one. `None` until the operation is set up.
    pub fn blank(&mut self, operation: u32) -> Option<Box<Value>> {
        let operation = self.tables.operation_at(operation)?;
        let plan = operation.put_plan.as_ref()?;
        let known = operation.blank.take().filter(|value| Arc::ptr_eq(value.plan(), plan));
        let mut value = known.unwrap_or_else(|| Box::new(Value::new(plan)));
        value.unmark();
        Some(value)
    }

    /// Tells whether an update of a monitor waits.
    #[must_use]
    pub fn has_update(&self, operation: u32) -> bool {
        let known = self.tables.operation(operation).and_then(|operation| operation.subscription.as_ref());
        known.is_some_and(|subscription| subscription.has_update())
    }

    /// Takes the next update of a monitor; `None` if none waits. With a pipeline the server may then send further ones.
    pub fn next_update(&mut self, operation: u32) -> Option<Update<'_>> {
        let known = self.tables.operation_at(operation)?;
        if !known.subscription.as_mut()?.advance() {
            return None;
        }
        if known.state == State::Ready && known.has_more() {
            self.queue(operation);
        }
        self.tables.operation(operation)?.subscription.as_ref()?.current()
    }

    /// Has the stages of an operation's next execution stamped. Their tag is the operation's number.
    pub fn follow(&mut self, operation: u32) {
        if let Some(operation) = self.tables.operation_at(operation) {
            operation.is_followed = true;
        }
    }

    /// Returns the stamps that were made.
    pub fn stamps(&mut self) -> &mut Stamps {
        &mut self.stamps
    }

    /// Tells whether a channel is open.
    #[must_use]
    pub fn is_open(&self, channel: u32) -> bool {
        self.tables.channel(channel).is_some_and(|channel| matches!(channel.step, Step::Open(_)))
    }

    /// Returns the server of a channel, if it is known.
    #[must_use]
    pub fn server(&self, channel: u32) -> Option<&Address> {
        self.connection_of(channel).map(|connection| &connection.address)
    }

    /// Returns why a channel's server has not been reached, if it was tried.
    #[must_use]
    pub fn trouble(&self, channel: u32) -> Option<&Lost> {
        self.connection_of(channel)?.trouble.as_ref()
    }

    fn connection_of(&self, channel: u32) -> Option<&Connection> {
        self.connections.get(self.tables.channel(channel)?.connection?)?.as_deref()
    }

    /// Puts an operation among those that have something to say, if its channel is open.
    #[inline]
    fn queue(&mut self, operation: u32) {
        let Some((connection, _)) = self.tables.route(operation) else { return };
        if let Some(Some(known)) = self.connections.at(connection)
            && let Some(link) = &mut known.link
        {
            link.talk.queue(operation, &mut self.tables);
            self.wake(connection);
        }
    }

    /// Returns the next connection that has something to send, if it has much.
    #[inline]
    fn with_much(&mut self) -> Option<u32> {
        let number = *self.ready.front()?;
        let connection = self.connections.at(number)?.as_ref()?;
        connection.link.as_ref().is_some_and(|link| link.has_much()).then_some(number)
    }

    /// Writes what a connection has to send, as far as its turn goes. Returns its peer if there is something.
    fn write(&mut self, now: Instant, number: u32, out: &mut Outbox) -> Option<Peer> {
        let connection = self.connections.at(number)?.as_mut()?;
        if !core::mem::take(&mut connection.is_queued) {
            return None;
        }
        let link = connection.link.as_mut()?;
        let has_more = link.talk.write(now, &mut self.tables, out);
        let has_bytes = !link.talk.session.writer.is_empty();
        link.talk.session.writer.flush(out);
        for (operation, begun) in link.talk.written.drain(..) {
            out.mark(CALL, operation.into(), Moment::At(begun));
            out.mark(ENCODE, operation.into(), Moment::Sending);
            out.mark(SEND, operation.into(), Moment::Sent);
        }
        if has_more {
            self.wake(number);
        }
        has_bytes.then_some(Peer(number))
    }
}

impl Machine for Client {
    type Command = Command;
    type Event = Event;

    #[inline]
    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        match input {
            Input::Received(Peer(number), bytes) => {
                self.read(now, number, |link, tables| link.received(now, bytes, tables));
            }
            Input::Command(command) => self.command(now, command),
            Input::Landed(Peer(number), count) => {
                self.read(now, number, |link, tables| link.landed(now, count, tables));
            }
            Input::Opened(peer, _) => self.opened(now, peer.0),
            Input::Closed(peer, why) => self.lose(now, peer.0, Lost::Closed(why)),
            Input::Blocked(peer) => self.block(peer.0, true),
            Input::Drained(peer) => self.block(peer.0, false),
            Input::Elapsed => {
                self.search_elapsed(now);
                while let Some(timer) = self.timers.pop_due(now) {
                    match timer {
                        Timer::Connection(number) => self.connection_elapsed(now, number),
                        Timer::Channel(number) => self.ask_again(now, number),
                    }
                }
            }
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        while let Some(found) = self.tables.finder.event() {
            self.found(found);
        }
        if let Some(number) = self.with_much() {
            self.ready.pop_front();
            if let Some(peer) = self.write(now, number, out) {
                out.urge();
                return Output::Send(peer);
            }
        }
        if let Some(event) = self.tables.next_event() {
            if let Event::Done { operation } = event
                && let Some(known) = self.tables.operation_at(operation)
                && core::mem::take(&mut known.is_followed)
            {
                out.mark(AWAY, operation.into(), Moment::At(now));
                out.mark(DECODE, operation.into(), Moment::At(out.now(now)));
            }
            return Output::Event(event);
        }
        if let Some(output) = self.tables.finder.poll(out) {
            return output;
        }
        if let Some(peer) = self.closing.pop_front() {
            return Output::Close(peer);
        }
        if let Some((number, address)) = self.next_to_open(now) {
            return Output::Open(Peer(number), address);
        }
        while let Some(number) = self.ready.pop_front() {
            if let Some(peer) = self.write(now, number, out) {
                return Output::Send(peer);
            }
            // A put of the wrong type has failed.
            if let Some(event) = self.tables.next_event() {
                return Output::Event(event);
            }
        }
        Output::Idle([self.timers.next(), self.tables.finder.deadline()].into_iter().flatten().min())
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.link(peer.0)?.landing()
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.stamps.keep(stamp);
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], _out: &mut Outbox) -> bool {
        self.tables.finder.datagram(now, ends, datagram);
        false
    }
}
