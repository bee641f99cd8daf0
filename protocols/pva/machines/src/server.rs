//! The server: channels with values, and the clients that read, write, subscribe to and call them.
//!
//! A channel's current value is kept here, so that gets and monitors are answered without asking anyone. What is put to a channel becomes
//! its value at once if it is [`Access::Mailbox`], and is the application's decision if it is [`Access::Handled`]. While a client does not
//! read, it is owed its replies, and updates of its subscriptions are merged; its requests are read on.

mod array;
mod changes;
mod client;
mod discovery;
mod operation;
mod operations;
mod rights;
mod source;
mod stages;
mod statistics;
mod subscription;

pub use rights::{AccessList, AccessRule, Claimant, Rights, Ruled, Rules};
pub use source::{Source, Sourced};
pub use stages::{DECODE, ENCODE, SEND, SOURCE, Stages};
pub use statistics::{ClientStatistics, Ended, ServerCounters};

use crate::Error;
use crate::data::{BitSet, Value};
use crate::session::SessionConfig;
use crate::wire::discovery::Guid;
use crate::wire::{Severity, Status};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use client::{Client, Turn};
use core::time::Duration;
use discovery::Discovery;
pub use discovery::{DiscoveryConfig, DiscoveryCounters, LONGER_MAX};
use hodo_machine::{Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer, Peers, Slab, Stamp, Timers};

/// How long a client has been silent, at least, that makes room for another one; and how long none is looked for after there was none.
const SILENT_MIN: Duration = Duration::from_secs(5);
const FULL: Duration = Duration::from_millis(100);

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Settings of each connection.
    pub session: SessionConfig,
    /// Channels that one client may have open.
    pub channels_max: usize,
    /// Operations that one client may have.
    pub operations_max: usize,
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
            queue_max: 1000,
            queued_bytes_max: 64 << 20,
            guid: [0; 12],
            source: Sourced::default(),
            rules: Ruled::default(),
            clients_max: 100_000,
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

/// A channel that is served.
#[derive(Debug)]
pub(crate) struct Channel {
    name: String,
    value: Value,
    access: Access,
    /// Subscribed clients, and their operations.
    subscribers: Slab<Option<(Peer, u32)>>,
    /// The clients that have it open, each with its number for it.
    opened_by: BTreeSet<(Peer, u32)>,
    /// Whether it was made for them, and goes with the last one.
    is_made: bool,
}

impl Channel {
    fn new(name: String, mut value: Value, access: Access, is_made: bool) -> Self {
        value.unmark();
        Channel { name, value, access, subscribers: Slab::default(), opened_by: BTreeSet::new(), is_made }
    }

    /// Removes a subscriber from its place.
    fn unsubscribe(&mut self, place: u32) {
        self.subscribers[place] = None;
        self.subscribers.release(place);
        if self.subscribers.is_empty() {
            self.subscribers = Slab::default();
        }
    }
}

/// The channels, and what clients cause beside their replies.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    channels: Slab<Option<Channel>>,
    names: BTreeMap<String, u32>,
    events: VecDeque<Event>,
    /// Clients and operations that wait for an answer of the application.
    calls: BTreeMap<u64, (Peer, u32)>,
    next_call: u64,
    /// The channel of a put of a client that is to be told to the subscribers.
    posted: Option<u32>,
    /// The fields that it has changed.
    posted_fields: BitSet,
    counters: ServerCounters,
    is_draining: bool,
    /// Requests that came since the last poll, of clients that are followed.
    arrived: Vec<(Peer, u32)>,
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
    selected: BitSet,
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
        Server {
            config,
            shared: Shared::default(),
            discovery,
            clients: Peers::default(),
            ready: VecDeque::new(),
            closing: VecDeque::new(),
            timers,
            full_until: Instant::ZERO,
            changed: BitSet::new(),
            selected: BitSet::new(),
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
                if let Some((peer, ioid)) = called
                    && let Some(client) = self.clients.at(peer)
                {
                    client.note(ioid, severity, text);
                    self.wake(peer);
                }
            }
            Command::Answer { call, result } => {
                let called = self.shared.calls.remove(&call);
                if let Some((peer, ioid)) = called
                    && let Some(client) = self.clients.at(peer)
                {
                    client.talk.answered(ioid, result);
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

    /// Hands what has changed of a channel to the subscriptions.
    fn tell(&mut self, number: u32, set: &BitSet, overrun: &BitSet) {
        let Server { config, shared, clients, ready, selected, .. } = self;
        let Shared { channels, counters, .. } = shared;
        let Some(Some(channel)) = channels.at(number) else { return };
        let Channel { value, subscribers, .. } = channel;
        for (peer, ioid) in subscribers.iter().filter_map(|(_, one)| *one) {
            let Some(client) = clients.at(peer) else { continue };
            let Some(outcome) = client.talk.update(ioid, value, set, overrun, selected, config.queued_bytes_max) else {
                continue;
            };
            counters.merged += u64::from(outcome.is_merged);
            if outcome.has_news && !core::mem::replace(&mut client.is_queued, true) {
                ready.push_back(peer);
            }
        }
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
        }
        self.timers.cancel(Timer::Silence(peer));
    }

    /// Closes the client that has been silent for longest, of those that have nothing open; returns whether there was one.
    fn make_room(&mut self, now: Instant) -> bool {
        if now < self.full_until {
            return false;
        }
        let silent = self.clients.iter().filter_map(|(peer, client)| Some((client.silent_since()?, peer)));
        let Some((_, peer)) = silent.min().filter(|(heard, _)| *heard + SILENT_MIN <= now) else {
            self.full_until = now + FULL;
            return false;
        };
        let max = self.config.clients_max as u64;
        if let Some(client) = self.clients.at(peer) {
            client.end_for(Error::OverLimit { what: "clients", count: max + 1, max });
        }
        self.forget(peer, None);
        self.closing.push_back(peer);
        true
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

impl Shared {
    pub(crate) fn channel(&self, number: u32) -> Option<&Channel> {
        self.channels.get(number)?.as_ref()
    }

    /// Takes over the changed fields of a value of the same type, and returns whether there are any; `changed` is then the set of them.
    fn merge(&mut self, number: u32, value: &Value, changed: &mut BitSet) -> bool {
        let Some(Some(channel)) = self.channels.at(number) else { return false };
        changed.assign(value.changed());
        value.plan().expand(changed);
        channel.value.take(value, changed) && !changed.is_empty()
    }

    /// Takes over what a client has put, whose value gets what was there.
    pub(crate) fn put(&mut self, number: u32, value: &mut Value) {
        let Some(Some(channel)) = self.channels.at(number) else { return };
        self.posted_fields.assign(value.changed());
        value.plan().expand(&mut self.posted_fields);
        if channel.value.exchange(value, &self.posted_fields) && !self.posted_fields.is_empty() {
            self.posted = Some(number);
        }
    }

    pub(crate) fn call(&mut self, peer: Peer, ioid: u32) -> u64 {
        let call = self.next_call;
        self.next_call += 1;
        self.calls.insert(call, (peer, ioid));
        call
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
                }
                peer
            }
            Input::Landed(peer, count) => {
                if let Some(client) = self.clients.at(peer) {
                    client.landed(now, count, &mut self.shared, &self.config);
                }
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
        if let Some(peer) = self.closing.pop_front() {
            self.forget(peer, None);
            return Output::Close(peer);
        }
        while let Some(peer) = self.ready.pop_front() {
            let Some(client) = self.clients.at(peer) else { continue };
            client.is_queued = false;
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

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        let (shared, config) = (&self.shared, &self.config);
        let has = |name: &[u8]| core::str::from_utf8(name).is_ok_and(|name| shared.has(name, config));
        self.discovery.datagram(now, ends, datagram, has, out);
        false
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
