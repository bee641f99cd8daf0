use crate::Error;
use crate::channel::{Channel, REPEATS, State};
use crate::group::{GROUP, Group, NUMBER, Written};
use crate::payload::Payload;
use crate::stages::{AWAY, FarStages};
use crate::wire::updates::Subscribe;
use crate::wire::{Counters, Direction};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Add;
use core::time::Duration;
use hodo_machine::{
    Address, Bytes, Closed, Ends, Input, Instant, Machine, Moment, Outbox, Output, Peer, Stamp, Stamps, Timers,
    Transport,
};

/// Connections that are being opened at once: below the usual bound of a listener's queue.
const OPENING_MAX: usize = 256;

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Streams or datagrams.
    pub transport: Transport,
    /// Where the server is, or the group of servers.
    pub address: Address,
    /// Whether the address is of a multicast group, of whose servers each has a channel. Operations of [`Direction::Send`] go to all of them
    /// at once, and none is waited for: it needs datagrams, [`unbounded`](Self::unbounded), and a driver whose peers reach the group, and
    /// are reached, through one port.
    pub is_group: bool,
    /// Channels, each a connection of its own; of a group the servers that have to answer.
    pub channels: u32,
    /// The largest operation in bytes.
    pub size_max: u32,
    /// After how many operations of [`Direction::Send`] an acknowledgement is asked for.
    pub acknowledge_every: u32,
    /// Whether operations of [`Direction::Send`] over UDP end as soon as they are sent. The server's count, which each acknowledgement
    /// carries, tells how many arrive.
    pub unbounded: bool,
    /// How long connecting and greeting may take together.
    pub greeting_timeout: Duration,
    /// How long an operation over UDP may go unanswered before it is given up.
    pub timeout: Duration,
    /// Every operation on a connection of its own, opened before it and closed after it.
    pub reconnect: bool,
    /// Whether payloads end with a checksum, which the receiving side looks at: both ways.
    pub check: bool,
    /// The bytes that operations carry, one after the other and again from the beginning; empty for the client's own.
    pub payload: Bytes,
}

/// A command of the application to a client.
#[derive(Debug, Clone, Copy)]
pub enum Command {
    /// Do this.
    Operation {
        /// The application's name for it.
        tag: u64,
        /// Over which channel.
        channel: u32,
        /// Bytes of payload.
        size: u32,
        /// Which way it goes.
        direction: Direction,
    },
    /// Forget the operations that have not been sent; [`Event::Withdrawn`] answers for each.
    Withdraw,
    /// See to it that everything in flight is acknowledged without a further operation.
    Flush,
    /// Send updates over this channel.
    Subscribe {
        /// Which channel.
        channel: u32,
        /// Bytes of each update.
        size: u32,
        /// Updates in a million seconds; 0 for as fast as the server can.
        rate_micro: u64,
        /// From the beginning of the subscription to its first update.
        first_after: Duration,
        /// Updates that may wait at the server; with one more the oldest is skipped.
        queue: u32,
    },
    /// Send no more updates, on every channel. [`Event::Unsubscribed`] answers for each that had a subscription.
    Unsubscribe,
    /// Ask the server for its counters, on every channel.
    Report,
    /// Nothing more is to be done: let the server forget the channels, which over UDP it cannot see by itself.
    Leave,
}

/// An event that a client reports to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The server has greeted this channel; its largest operation in bytes.
    Ready {
        /// Which channel.
        channel: u32,
        /// The server's bound.
        size_max: u32,
    },
    /// The operation with this tag is done.
    Done(u64),
    /// The operation with this tag is given up.
    Lost(u64),
    /// The operation with this tag was given up, and has arrived after all.
    Recovered(u64),
    /// The operation with this tag is sent, and nothing more is heard of it by itself: [`ClientConfig::unbounded`].
    Sent(u64),
    /// More of those have arrived.
    Arrived {
        /// Over which channel.
        channel: u32,
        /// How many.
        count: u64,
    },
    /// The operation with this tag was not sent, after [`Command::Withdraw`].
    Withdrawn(u64),
    /// An update has arrived.
    Update {
        /// Over which channel.
        channel: u32,
        /// Nanoseconds since it was due, or sent where the subscription has no rate.
        took_ns: u64,
    },
    /// No more updates come over this channel.
    Unsubscribed {
        /// Which channel.
        channel: u32,
    },
    /// The answer to [`Command::Report`] for one channel.
    Report {
        /// Which channel.
        channel: u32,
        /// The counters of the server.
        counters: Counters,
        /// The client's payloads that were not as it had sent them, where they are checked.
        damaged: Option<u64>,
    },
    /// A channel has come to its end.
    Failed {
        /// Which channel.
        channel: u32,
        /// Why.
        error: Error,
    },
}

/// Irregular answers and updates, counted over all channels of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Noticed {
    /// Duplicate answers.
    pub duplicated: u64,
    /// Overtaken answers.
    pub reordered: u64,
    /// Updates that were sent and have not come.
    pub lost: u64,
    /// Updates that the server skipped, because this side was behind.
    pub overrun: u64,
    /// Payloads that are not as they were sent, where they are checked.
    pub damaged: u64,
}

impl Add for Noticed {
    type Output = Noticed;
    fn add(self, other: Noticed) -> Noticed {
        Noticed {
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            lost: self.lost + other.lost,
            overrun: self.overrun + other.overrun,
            damaged: self.damaged + other.damaged,
        }
    }
}

/// The near end of raw links: many channels to one server.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    channels: Vec<Channel>,
    group: Option<Group>,
    queues: Queues,
    opening: usize,
    to_open: VecDeque<u32>,
    opens_group: bool,
    /// When something may have taken too long, by channel.
    timers: Timers<u32>,
}

/// Queues towards the driver and the application that all channels share.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(crate) events: VecDeque<Event>,
    pub(crate) ready: VecDeque<u32>,
    pub(crate) closing: VecDeque<Peer>,
    pub(crate) noticed: Noticed,
    pub(crate) stamps: Stamps,
    pub(crate) far_stages: FarStages,
    pub(crate) far_facts: Vec<u8>,
    /// When a part of a payload, or an acknowledgement, last arrived on a stream.
    pub(crate) progress: Instant,
    pub(crate) payload: Payload,
    pub(crate) sink: Vec<u8>,
}

impl Client {
    /// Creates a client that begins to open its channels at once.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let connections = config.channels * if config.reconnect { 2 } else { 1 };
        Client {
            channels: (0..connections).map(|number| Channel::new(number, &config)).collect(),
            to_open: (0..if config.is_group { 0 } else { config.channels }).collect(),
            group: Group::of(&config),
            opens_group: config.is_group,
            queues: Queues {
                events: VecDeque::new(),
                ready: VecDeque::new(),
                closing: VecDeque::new(),
                noticed: Noticed::default(),
                stamps: Stamps::default(),
                far_stages: FarStages::default(),
                far_facts: Vec::new(),
                progress: Instant::ZERO,
                payload: Payload::of(config.payload.clone()),
                sink: Vec::new(),
            },
            opening: 0,
            timers: Timers::default(),
            config,
        }
    }

    /// Returns whether its channels are streams or datagrams.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.config.transport
    }

    /// Returns where the servers of a group are that have answered, by the number of their channel; none without a group.
    pub fn receivers(&self) -> impl Iterator<Item = &Address> {
        self.group.iter().flat_map(Group::receivers)
    }

    /// Returns the irregular answers and updates so far.
    #[must_use]
    pub fn noticed(&self) -> Noticed {
        self.channels.iter().map(Channel::noticed).fold(self.queues.noticed, Noticed::add)
    }

    /// Returns the facts that the server told in its greeting; empty if it told none.
    #[must_use]
    pub fn far_facts(&self) -> &[u8] {
        &self.queues.far_facts
    }

    /// Returns when a part of an operation last arrived on a stream, here or as the server says: one that takes long is on its way.
    #[must_use]
    pub fn progress(&self) -> Instant {
        self.queues.progress
    }

    /// Returns which operations are stamped, and their stamps. While any are stamped, the server is asked for its
    /// stages too.
    pub fn stamps(&mut self) -> &mut Stamps {
        &mut self.queues.stamps
    }

    /// Returns how many nanoseconds the far end's clock is ahead, and how far that may be wrong; of several subscriptions the least sure,
    /// `None` without any.
    #[must_use]
    pub fn far_clock(&self) -> Option<(i64, u64)> {
        self.channels.iter().filter_map(Channel::far_clock).max_by_key(|clock| clock.1)
    }

    /// Returns the stages of the server, of all channels that have answered the last [`Command::Report`].
    #[must_use]
    pub fn far_stages(&self) -> &FarStages {
        &self.queues.far_stages
    }

    fn command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Operation { tag, channel, size, direction } => {
                if let Some(group) = &mut self.group {
                    return group.queue(tag, size);
                }
                let number = if self.config.reconnect { channel + self.config.channels } else { channel };
                let Some(channel) = self.channels.get_mut(number as usize) else { return };
                channel.queue(tag, size, direction, &mut self.queues);
                self.open_single(number);
                if self.config.transport == Transport::Datagram {
                    self.timers.arm_by(number, now + self.config.timeout);
                }
            }
            Command::Subscribe { channel: number, size, rate_micro, first_after, queue } => {
                let Some(channel) = self.channels.get_mut(number as usize) else { return };
                let first_after_ns = first_after.as_nanos() as u64;
                let ask = Subscribe { rate_micro, first_after_ns, size, queue, ..Subscribe::default() };
                channel.subscribe(ask, &mut self.queues);
                self.timers.arm_by(number, now + self.config.timeout / REPEATS);
            }
            Command::Unsubscribe => {
                for (number, channel) in (0..self.config.channels).zip(&mut self.channels) {
                    channel.unsubscribe(&mut self.queues);
                    self.timers.arm_by(number, now + self.config.timeout / REPEATS);
                }
            }
            Command::Withdraw => {
                if let Some(group) = &mut self.group {
                    group.withdraw(&mut self.queues.events);
                }
                for channel in &mut self.channels {
                    channel.withdraw(&mut self.queues);
                }
            }
            Command::Flush => {
                for channel in &mut self.channels {
                    channel.flush(&mut self.queues);
                }
            }
            Command::Leave => {
                for channel in &mut self.channels {
                    channel.leave(&mut self.queues);
                }
            }
            Command::Report => {
                self.queues.far_stages = FarStages::default();
                for (number, channel) in (0..self.config.channels).zip(&mut self.channels) {
                    channel.ask_report(&mut self.queues);
                    if self.config.transport == Transport::Datagram {
                        self.timers.arm_by(number, now + self.config.timeout / REPEATS);
                    }
                }
            }
        }
    }

    fn opened(&mut self, now: Instant, peer: Peer, ends: &Ends) {
        if let Some(group) = &mut self.group {
            if peer == GROUP {
                group.opened(now);
                self.timers.arm_by(NUMBER, now + self.config.timeout / REPEATS);
            } else if let Some(number) = group.add(peer, &ends.remote) {
                self.channels[number as usize].opened(now, &mut self.queues);
                self.timers.arm_by(number, now + self.config.timeout / REPEATS);
            }
            return;
        }
        self.opening = self.opening.saturating_sub(1);
        if let Some(channel) = self.channels.get_mut(peer.0 as usize) {
            channel.opened(now, &mut self.queues);
        }
    }

    fn with(&mut self, peer: Peer, act: impl FnOnce(&mut Channel, &mut Queues) -> Result<(), Error>) {
        let Some(number) = self.number_of(peer) else { return };
        let Some(channel) = self.channels.get_mut(number as usize) else { return };
        if matches!(channel.state, State::Failed | State::Left) {
            return;
        }
        if let Err(error) = act(channel, &mut self.queues) {
            if channel.state == State::Opening {
                self.opening = self.opening.saturating_sub(1);
            }
            channel.fail(error, peer, &mut self.queues);
            self.timers.cancel(number);
        }
    }

    /// Returns the number of the channel to a peer.
    #[inline]
    fn number_of(&self, peer: Peer) -> Option<u32> {
        self.group.as_ref().map_or(Some(peer.0), |group| group.number_of(peer))
    }

    /// Returns the peer at the other end of a channel.
    #[inline]
    fn peer_of(&self, number: u32) -> Peer {
        self.group.as_ref().and_then(|group| group.peer_of(number)).unwrap_or(Peer(number))
    }

    /// Greets a group again, as long as receivers are missing.
    fn greet_again(&mut self, now: Instant) {
        let Some(group) = self.group.as_mut().filter(|group| !group.is_complete()) else { return };
        if now - group.greet(now) < self.config.greeting_timeout {
            return self.timers.arm_by(NUMBER, now + self.config.timeout / REPEATS);
        }
        let (found, wanted) = group.found();
        self.queues.events.push_back(Event::Failed { channel: 0, error: Error::Receivers { found, wanted } });
    }

    /// Writes the next datagram to a group. Returns whether there was one.
    fn write_to_group(&mut self, out: &mut Outbox) -> bool {
        let Client { group: Some(group), channels, queues, config, .. } = self else { return false };
        let Some(first) = channels.first() else { return false };
        match group.write(|out| first.hello(out), config.check, queues, out) {
            Written::Nothing => return false,
            Written::Greeting => {}
            Written::Operation => channels.iter_mut().for_each(Channel::sent_to_all),
        }
        true
    }

    /// Arms the timer for an operation over UDP that the last datagram shows to be overtaken.
    #[inline]
    fn check_overtaken(&mut self, peer: Peer) {
        if self.config.transport == Transport::Datagram
            && let Some(number) = self.number_of(peer)
            && let Some(at) = self.channels.get(number as usize).and_then(Channel::overtaken_at)
        {
            self.timers.arm_by(number, at);
        }
    }

    fn open_single(&mut self, number: u32) {
        if let Some(channel) = self.channels.get_mut(number as usize)
            && channel.wants_opening()
        {
            channel.state = State::Opening;
            self.to_open.push_back(number);
        }
    }

    /// Looks at a channel's greeting, report and, over UDP, operations that have waited for too long.
    fn elapsed(&mut self, now: Instant, number: u32) {
        if number == NUMBER {
            return self.greet_again(now);
        }
        self.with(self.peer_of(number), |channel, queues| channel.check(now, queues));
        let next = self.channels.get(number as usize).and_then(|channel| channel.next_check(now));
        self.timers.set(number, next);
    }
}

impl Machine for Client {
    type Command = Command;
    type Event = Event;

    #[inline]
    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        match input {
            Input::Received(peer, bytes) => {
                self.with(peer, |channel, queues| channel.received(now, bytes, queues));
                self.check_overtaken(peer);
                if self.config.reconnect {
                    self.open_single(peer.0);
                }
            }
            Input::Landed(peer, count) => {
                self.with(peer, |channel, queues| channel.landed(now, count, queues));
                if self.config.reconnect {
                    self.open_single(peer.0);
                }
            }
            Input::Command(command) => self.command(now, command),
            Input::Opened(peer, ends) => self.opened(now, peer, ends),
            Input::Closed(peer, why) => match &mut self.group {
                Some(group) if peer == GROUP => {
                    group.closed();
                    self.queues.events.push_back(Event::Failed { channel: 0, error: Error::Closed(why) });
                }
                _ => self.with(peer, |_, _| Err(Error::Closed(why))),
            },
            Input::Blocked(peer) => match &mut self.group {
                Some(group) if peer == GROUP => group.blocked = true,
                _ => self.with(peer, |channel, _| {
                    channel.blocked = true;
                    Ok(())
                }),
            },
            Input::Drained(peer) => match &mut self.group {
                Some(group) if peer == GROUP => group.blocked = false,
                _ => self.with(peer, |channel, queues| {
                    channel.blocked = false;
                    channel.wake(queues);
                    Ok(())
                }),
            },
            Input::Elapsed => {
                while let Some(number) = self.timers.pop_due(now) {
                    self.elapsed(now, number);
                }
            }
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        while let Some(event) = self.queues.events.pop_front() {
            if let (Event::Arrived { .. }, Some(group)) = (event, &mut self.group) {
                let everywhere = self.channels.iter().map(Channel::arrived).min().unwrap_or(0);
                match group.arrived(everywhere) {
                    Some(event) => return Output::Event(event),
                    None => continue,
                }
            }
            if let Event::Done(tag) = event
                && self.queues.stamps.sampling.takes(tag)
            {
                out.mark(AWAY, tag, Moment::At(now));
            }
            return Output::Event(event);
        }
        if let Some(peer) = self.queues.closing.pop_front() {
            return Output::Close(peer);
        }
        if let Some(group) = &self.group
            && core::mem::take(&mut self.opens_group)
        {
            return Output::Open(GROUP, group.address().clone());
        }
        if self.opening < OPENING_MAX
            && let Some(number) = self.to_open.pop_front()
        {
            self.opening += 1;
            self.channels[number as usize].opening(now);
            self.timers.arm_by(number, now + self.config.timeout / REPEATS);
            return Output::Open(Peer(number), self.config.address.clone());
        }
        while let Some(&number) = self.queues.ready.front() {
            let before = out.len();
            let channel = &mut self.channels[number as usize];
            if !channel.write(now, &mut self.queues, out) {
                self.queues.ready.pop_front();
                channel.in_ready = false;
            }
            if out.len() > before {
                return Output::Send(self.peer_of(number));
            }
        }
        if self.group.is_some() && self.write_to_group(out) {
            return Output::Send(GROUP);
        }
        Output::Idle(self.timers.next())
    }

    #[inline]
    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.channels.get(peer.0 as usize)?.landing(&mut self.queues.sink)
    }

    fn admits(&mut self, _: Instant, _: &Ends, datagram: &[u8], _: &mut Outbox) -> bool {
        self.group.as_ref().is_none_or(|group| group.admits(datagram))
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.queues.stamps.keep(stamp);
    }
}

impl From<Closed> for Error {
    fn from(why: Closed) -> Self {
        Error::Closed(why)
    }
}
