//! The server: channels with values, and the clients that read, write, subscribe to and call them.
//!
//! A channel's current value is kept here, so that gets and monitors are answered without asking anyone. What is put to a channel becomes
//! its value at once if it is [`Access::Mailbox`], and is the application's decision if it is [`Access::Handled`]. While a client does not
//! read, it is owed its replies, and updates of its subscriptions are merged; its requests are read on.

mod array;
mod changes;
mod channel;
mod client;
mod discovery;
mod operation;
mod operations;
mod rights;
mod room;
mod source;
mod stages;
mod statistics;
mod subscription;
mod values;

pub use rights::{AccessList, AccessRule, Claimant, Rights, Ruled, Rules};
pub use source::{Source, Sourced};
pub use stages::{DECODE, ENCODE, SEND, SOURCE, Stages};
pub use statistics::{ClientStatistics, Ended, ServerCounters};

use crate::data::{BitSet, Value};
use crate::session::SessionConfig;
use crate::wire::discovery::Guid;
use crate::wire::{Severity, Status};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use channel::Channel;
use client::{Client, Turn};
use discovery::Discovery;
pub use discovery::{DiscoveryConfig, DiscoveryCounters, LONGER_MAX};
use hodo_machine::{
    Allowance, Charges, Closed, Ends, Input, Instant, Machine, Outbox, Output, Over, Peer, Peers, Pool, Slab, Stamp,
    Timers,
};
use room::Called;
use subscription::Excerpt;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Settings of each connection.
    pub session: SessionConfig,
    /// Channels that one client may have open.
    pub channels_max: usize,
    /// Operations that one client may have.
    pub operations_max: usize,
    /// Subscriptions that one client may have to one channel: each change of the channel is work for every one of them.
    pub subscriptions_max: u32,
    /// Subscriptions that all clients of one host may have to one channel.
    pub host_subscriptions_max: u32,
    /// Updates that may wait for one subscription.
    pub queue_max: u32,
    /// Bytes of updates that may wait for one client in all its subscriptions; beyond, one waits in each.
    pub queued_bytes_max: usize,
    /// Identity of the server, another one each time it starts.
    pub guid: Guid,
    /// Where channels come from that are not served yet.
    pub source: Sourced,
    /// The rules about who may do what.
    pub rules: Ruled,
    /// Clients that may be connected. One more takes the place of one that has been silent and has nothing open, or is closed.
    pub clients_max: usize,
    /// The memory that may be retained for clients, by this server and those that share its pool.
    pub allowance: Allowance,
    /// The memory that is retained by all of these, and by the source of channels.
    pub pool: Pool,
    /// Name of a channel that is not searched for, because every server may have it; empty for none.
    pub own_channel: String,
    /// Settings of searches that come as datagrams, and of beacons.
    pub discovery: DiscoveryConfig,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            session: SessionConfig::default(),
            channels_max: 100_000,
            operations_max: 100_000,
            subscriptions_max: 1000,
            host_subscriptions_max: 10_000,
            queue_max: 1000,
            queued_bytes_max: 64 << 20,
            guid: [0; 12],
            source: Sourced::default(),
            rules: Ruled::default(),
            clients_max: 100_000,
            allowance: Allowance::DEFAULT,
            pool: Pool::default(),
            own_channel: String::new(),
            discovery: DiscoveryConfig::default(),
        }
    }
}

/// The one who decides about what is put to a channel, and answers calls of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nobody: it can only be read.
    ReadOnly,
    /// This server: what is put becomes the value. It cannot be called.
    Mailbox,
    /// The application, which answers each [`Event::Put`] and [`Event::Call`].
    Handled,
}

/// A command of the application to a server.
#[derive(Debug)]
pub enum Command {
    /// Serve a channel of this name, in place of one that there may be.
    Serve {
        /// Name of the channel.
        name: String,
        /// The value, whose type is the channel's.
        value: Box<Value>,
        /// The one who decides about what is put.
        access: Access,
    },
    /// Serve this channel no more: its clients are told.
    Remove {
        /// Name of the channel.
        name: String,
    },
    /// Go by these rules from now on. Who loses a right to an open channel is told that the channel is gone, and may open it again.
    Rule(Ruled),
    /// Take over the changed fields of a value of the channel's type, and tell the subscribers.
    Post {
        /// Name of the channel.
        name: String,
        /// The value.
        value: Box<Value>,
    },
    /// Send what [`Server::post`] has left to send. A driver that was asleep notices it by this command.
    Publish,
    /// Accept no more puts and calls, because the server is to stop.
    Drain,
    /// Send a text for people about a put or a call that is not answered yet.
    Note {
        /// Number of the event.
        call: u64,
        /// How bad it is.
        severity: Severity,
        /// The text.
        text: String,
    },
    /// Answer an [`Event::Put`] or an [`Event::Call`].
    Answer {
        /// Number of the event.
        call: u64,
        /// The value that a call returns, or nothing; or why it is refused.
        result: Result<Option<Box<Value>>, Status>,
    },
}

/// An event that a server reports to the application.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// A client puts the changed fields of a value. To be answered.
    Put {
        /// Number of the event.
        call: u64,
        /// The client: [`Server::client`].
        peer: Peer,
        /// Number of the channel, as [`Server::serve`] returned it.
        channel: u32,
        /// The value; only its changed fields were put.
        value: Box<Value>,
    },
    /// A client calls a channel. To be answered.
    Call {
        /// Number of the event.
        call: u64,
        /// The client: [`Server::client`].
        peer: Peer,
        /// Number of the channel, as [`Server::serve`] returned it.
        channel: u32,
        /// The argument, or nothing.
        argument: Option<Box<Value>>,
    },
    /// A client is connected and has made its claim.
    Connected(Peer, Box<ClientStatistics>),
    /// A client is gone.
    Disconnected(Peer, Box<ClientStatistics>, Ended),
}

/// The channels, and what clients cause beside their replies.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    channels: Slab<Option<Channel>>,
    names: BTreeMap<String, u32>,
    events: VecDeque<Event>,
    /// Clients and operations that wait for an answer of the application.
    calls: BTreeMap<u64, Called>,
    next_call: u64,
    /// The channel of a put of a client that is to be told to the subscribers.
    posted: Option<u32>,
    /// The fields that it has changed.
    posted_fields: BitSet,
    counters: ServerCounters,
    is_draining: bool,
    /// The memory that is retained for clients, and the one to close if it is too much.
    charges: Charges,
    over: Option<Over>,
    /// Bytes of what was put to channels that are made for clients.
    made_bytes: u64,
    /// Whether a channel was made, or put to that was made, since the memory of these was checked.
    has_made: bool,
    /// Bytes for a channel that was not made, because they would be too much.
    refused_bytes: u64,
    /// Requests that came since the last poll, of clients that are followed.
    arrived: Vec<(Peer, u32)>,
}

/// A change of a channel, for its subscriptions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    set: &'a BitSet,
    /// Fields that overwrote others which no subscriber was told.
    overrun: &'a BitSet,
    /// Bytes of updates that may wait for one client.
    held_max: usize,
}

/// A server, for any number of clients.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    shared: Shared,
    discovery: Discovery,
    clients: Peers<Client>,
    ready: VecDeque<Peer>,
    closing: VecDeque<Peer>,
    timers: Timers<Timer>,
    /// When to look again for a client that makes room for another one.
    full_until: Instant,
    /// Sets that keep their room.
    changed: BitSet,
    excerpt: Excerpt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Timer {
    /// A client may have been silent for too long.
    Silence(Peer),
    /// The next beacon is due.
    Beacon,
}

impl Server {
    /// Creates a server without channels.
    #[must_use]
    pub fn new(config: ServerConfig) -> Self {
        let discovery = Discovery::new(config.guid, config.discovery.clone());
        let mut timers = Timers::default();
        timers.set(Timer::Beacon, discovery.has_beacons().then_some(Instant::ZERO));
        let charges = Charges::new(config.allowance, config.pool.clone());
        Server {
            config,
            shared: Shared { charges, ..Shared::default() },
            discovery,
            clients: Peers::default(),
            ready: VecDeque::new(),
            closing: VecDeque::new(),
            timers,
            full_until: Instant::ZERO,
            changed: BitSet::new(),
            excerpt: Excerpt::default(),
        }
    }

    /// Returns what was counted of searches in datagrams, and of beacons.
    #[must_use]
    pub const fn discovery(&self) -> DiscoveryCounters {
        self.discovery.counters()
    }

    /// Returns the current value of a channel.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.shared.channel(*self.shared.names.get(name)?).map(|channel| &channel.value)
    }

    /// Returns the number of the channel of this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        self.shared.names.get(name).copied()
    }

    /// Returns the name of a channel.
    #[must_use]
    pub fn name(&self, channel: u32) -> Option<&str> {
        self.shared.channel(channel).map(|channel| channel.name.as_str())
    }

    /// Notes that all requests that came are decoded.
    #[cold]
    fn decoded(&mut self, at: Instant) {
        for (peer, ioid) in self.shared.arrived.drain(..) {
            if let Some(client) = self.clients.at(peer) {
                client.decoded(ioid, at);
            }
        }
    }

    /// Follows from now on how long the replies to a client take, or no longer.
    pub fn follow(&mut self, peer: Peer, is_followed: bool) {
        if let Some(client) = self.clients.at(peer) {
            client.follow(is_followed);
        }
    }

    /// Returns how long the replies to a client took, if they are followed.
    #[must_use]
    pub fn stages(&self, peer: Peer) -> Option<&Stages> {
        self.clients.get(peer)?.stages()
    }

    /// Returns how many updates of a channel each running subscriber takes at once, without one that waits or is merged; `None` if there
    /// is no such subscriber.
    #[must_use]
    pub fn room(&self, channel: u32) -> Option<u32> {
        let subscribers = self.shared.channel(channel)?.subscribers.iter().filter_map(|(_, one)| *one);
        subscribers.filter_map(|(peer, ioid)| self.clients.get(peer)?.room(ioid)).min()
    }

    /// Serves a channel of this name, in place of one that there may be, and returns its number.
    pub fn serve(&mut self, name: String, value: Value, access: Access) -> u32 {
        self.remove(&name);
        let number = self.shared.channels.insert(Some(Channel::new(name.clone(), value, access, false)));
        self.shared.names.insert(name, number);
        self.discovery.changed();
        number
    }

    /// Takes over the changed fields of a value of the channel's type, for all subscribers. `overrun` names those fields that
    /// overwrote others which no subscriber was told.
    ///
    /// A driver that waits learns of it by [`Command::Publish`].
    pub fn post(&mut self, channel: u32, value: &Value, overrun: &BitSet) {
        let mut changed = core::mem::take(&mut self.changed);
        if self.shared.merge(channel, value, &mut changed) {
            self.tell(channel, &changed, overrun);
        }
        self.changed = changed;
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Serve { name, value, access } => _ = self.serve(name, *value, access),
            Command::Remove { name } => self.remove(&name),
            Command::Rule(rules) => self.rule(rules),
            Command::Post { name, value } => {
                if let Some(number) = self.shared.names.get(&name).copied() {
                    self.post(number, &value, &BitSet::new());
                }
            }
            Command::Publish => {}
            Command::Drain => self.shared.is_draining = true,
            Command::Note { call, severity, text } => {
                let called = self.shared.calls.get(&call).copied();
                if let Some(Called { peer, ioid: Some(ioid), .. }) = called
                    && let Some(client) = self.clients.at(peer)
                {
                    client.note(ioid, severity, text);
                    self.wake(peer);
                }
            }
            Command::Answer { call, result } => {
                if let Some(Called { peer, ioid, .. }) = self.settle(call)
                    && let Some(client) = self.clients.at(peer)
                {
                    if let Some(ioid) = ioid {
                        client.talk.answered(ioid, result);
                    }
                    self.wake(peer);
                }
            }
        }
    }

    /// Hands what a client has put to the subscriptions.
    fn tell_subscribers(&mut self) {
        if let Some(number) = self.shared.posted.take() {
            let fields = core::mem::take(&mut self.shared.posted_fields);
            self.tell(number, &fields, &BitSet::new());
            self.shared.posted_fields = fields;
        }
    }

    /// Hands what has changed of a channel to the subscriptions. Where a client would have too much by it, the one with most is closed first.
    fn tell(&mut self, number: u32, set: &BitSet, overrun: &BitSet) {
        let change = Change { set, overrun, held_max: self.config.queued_bytes_max };
        let mut place = 0;
        while let Some(over) = self.tell_from(&mut place, number, change) {
            self.shared.over = Some(over);
            self.relieve();
        }
        self.excerpt.shared = None;
    }

    /// Hands what has changed to the subscriptions from a place on. Returns the client to close before the one at that place is told.
    fn tell_from(&mut self, place: &mut u32, number: u32, change: Change<'_>) -> Option<Over> {
        let Server { shared, clients, ready, excerpt, .. } = self;
        let Shared { channels, counters, charges, .. } = shared;
        let Some(Some(channel)) = channels.at(number) else { return None };
        let Channel { value, subscribers, .. } = channel;
        while let Some(subscriber) = subscribers.get(*place) {
            if let Some((peer, ioid)) = *subscriber
                && let Some(client) = clients.at(peer)
            {
                match client.talk.update(ioid, value, change, excerpt, charges) {
                    Err(over) => return Some(over),
                    Ok(None) => {}
                    Ok(Some(outcome)) => {
                        counters.merged += u64::from(outcome.is_merged);
                        if outcome.has_news && !core::mem::replace(&mut client.is_queued, true) {
                            ready.push_back(peer);
                        }
                    }
                }
            }
            *place += 1;
        }
        None
    }

    fn wake(&mut self, peer: Peer) {
        let Some(client) = self.clients.at(peer) else { return };
        if !core::mem::replace(&mut client.is_queued, true) {
            self.ready.push_back(peer);
        }
    }

    fn forget(&mut self, peer: Peer, why: Option<Closed>) {
        if let Some(mut client) = self.clients.remove(peer) {
            client.end(why, &mut self.shared);
            self.shared.charges.close(peer);
        }
        self.timers.cancel(Timer::Silence(peer));
    }

    fn elapsed(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Silence(peer) => {
                    let Some(client) = self.clients.at(peer) else { continue };
                    client.elapsed(now);
                    self.timers.set(timer, client.deadline());
                    self.wake(peer);
                }
                Timer::Beacon => self.timers.arm(timer, self.discovery.beacon(now)),
            }
        }
    }
}

impl Machine for Server {
    type Command = Command;
    type Event = Event;

    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        let peer = match input {
            Input::Command(command) => return self.command(command),
            Input::Elapsed => return self.elapsed(now),
            Input::Opened(peer, ends) if peer.is_accepted() => {
                if self.clients.len() >= self.config.clients_max && !self.make_room(now) {
                    return self.closing.push_back(peer);
                }
                self.clients.insert(peer, Client::new(peer, ends, &self.config, now));
                self.shared.charges.open(peer, &ends.remote);
                peer
            }
            // A datagram's way out, which is closed as soon as it is sent.
            Input::Opened(..) => return,
            Input::Closed(peer, why) => return self.forget(peer, Some(why)),
            Input::Blocked(peer) => {
                if let Some(client) = self.clients.at(peer) {
                    client.is_blocked = true;
                }
                return;
            }
            Input::Drained(peer) => {
                if let Some(client) = self.clients.at(peer) {
                    client.is_blocked = false;
                }
                peer
            }
            Input::Received(peer, bytes) => {
                let mut rest = bytes;
                // Subscribers are told of each put before the next one.
                while let Some(client) = self.clients.at(peer)
                    && client.received(now, &mut rest, &mut self.shared, &self.config)
                {
                    self.tell_subscribers();
                    self.relieve();
                }
                peer
            }
            Input::Landed(peer, count) => {
                if let Some(client) = self.clients.at(peer) {
                    client.landed(now, count, &mut self.shared, &self.config);
                }
                self.relieve();
                peer
            }
        };
        self.tell_subscribers();
        if let Some(client) = self.clients.at(peer) {
            self.timers.set(Timer::Silence(peer), client.deadline());
        }
        self.wake(peer);
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        if !self.shared.arrived.is_empty() {
            self.decoded(out.now(now));
        }
        if let Some(event) = self.shared.events.pop_front() {
            return Output::Event(event);
        }
        if let Some(closed) = self.close_next() {
            return closed;
        }
        while let Some(peer) = self.ready.pop_front() {
            let Some(client) = self.clients.at(peer) else { continue };
            client.is_queued = false;
            if let Some(over) = client.charge(&mut self.shared.charges) {
                self.shared.over = Some(over);
                self.relieve();
                self.wake(peer);
                match self.close_next() {
                    Some(closed) => return closed,
                    None => continue,
                }
            }
            let turn = client.write(now, &mut self.shared, out);
            let (is_over, has_bytes) = (client.is_over, !client.is_empty());
            client.flush(now, peer, out);
            if turn != Turn::Last {
                self.wake(peer);
            }
            if turn == Turn::Many {
                // The client works on them meanwhile.
                out.urge();
            }
            match (has_bytes, is_over) {
                (true, true) => self.closing.push_back(peer),
                (true, false) => {}
                (false, true) => {
                    self.forget(peer, None);
                    return Output::Close(peer);
                }
                (false, false) => continue,
            }
            return Output::Send(peer);
        }
        if let Some(output) = self.discovery.poll(out) {
            return output;
        }
        Output::Idle(self.timers.next())
    }

    /// Tells whether values are on their way to the peer, which may be as long as an image. What the application has not answered to is not
    /// waited for: a client that was killed has ended what it sends, too.
    fn owes(&self, peer: Peer) -> bool {
        self.clients.get(peer).is_some_and(Client::is_owed)
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        let (shared, config) = (&self.shared, &self.config);
        let has = |name: &[u8]| core::str::from_utf8(name).is_ok_and(|name| shared.has(name, config));
        self.discovery.datagram(now, ends, datagram, has, out);
        false
    }

    fn charges(&self) -> Option<&Charges> {
        Some(&self.shared.charges)
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.clients.at(peer)?.landing()
    }

    fn stamped(&mut self, stamp: Stamp) {
        if let Some(client) = self.clients.at(Peer(stamp.tag as u32)) {
            client.stamped(stamp);
        }
    }
}
