//! The near end: operations on the registers of one device, concatenated into packets.
//!
//! | path | packets in flight | what is lost |
//! |---|---|---|
//! | UDP, version 2.0, with ids | as many as the device has buffers, 16 at most | is recovered: see [`Window`](crate::window::Window) |
//! | UDP, version 2.0, without ids | 16 | fails after the time-out, as with uHAL |
//! | UDP, version 2.0, shared with others | 16 | has ids where nobody else's packets have; else reads are sent again, all else fails |
//! | UDP, version 1.3 | 1 | reads are sent again, all else fails: see [`Single`](crate::single::Single) |
//! | TCP | 16 | nothing |
//! | through the hub | 60, three in a chunk | nothing between here and the hub; the hub recovers the rest |
//!
//! Operations end in the order in which they were asked for. Each ends once: done, or failed with its culprit. What is
//! failed for want of an answer may have been done; it is not done again.

mod block;
mod carrier;
mod clients;
mod composer;
mod flight;
mod packing;
mod plain;
mod queue;
mod shared;
mod stream;

pub use block::Block;
pub use clients::Clients;
pub use packing::{Room, packets};

use crate::Error;
use crate::window::WindowCounters;
use crate::wire::operation::Mode;
use crate::wire::{HUB_IN_FLIGHT, IN_FLIGHT, Order, PAYLOAD, Version, hub};
use alloc::vec::Vec;
use carrier::{Carrier, Move};
use composer::Composer;
use core::net::SocketAddrV4;
use core::time::Duration;
use flight::Flight;
use hodo_machine::{Address, Closed, Input, Instant, Machine, Moment, Outbox, Output, Peer, Stamp, Stamps};
use queue::Queue;

/// The stage of an operation from when it was asked for until its first packet is written.
pub const QUEUE: &str = "queue";
/// From then on until the system calls have returned.
pub const SEND: &str = "send";
/// From then on until all of it has been answered: the network both ways, the device, and the hub where there is one.
pub const AWAY: &str = "wire and device";

/// A client has one peer.
const PEER: Peer = Peer(0);
/// The least [`ClientConfig::payload_max`]: a transaction of any kind with a word or two fits.
const PAYLOAD_MIN: usize = 64;

/// The path between a client and its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// UDP.
    Udp {
        /// Whether packets have ids, so that what is lost is recovered. A device has one count of ids for all its
        /// clients, so only one of them may use it. Version 1.3 has no ids.
        reliable: bool,
    },
    /// UDP, to a device that others may be using. Harmless reads go without ids and are sent again when they are late. All
    /// else has ids where the device's status shows that nobody has sent it any, and otherwise fails when it is lost.
    SharedUdp,
    /// TCP.
    Tcp,
    /// TCP to a hub, which sends on to this device.
    Hub(SocketAddrV4),
}

impl Path {
    /// Tells whether packets are datagrams.
    #[must_use]
    pub const fn is_udp(&self) -> bool {
        matches!(self, Path::Udp { .. } | Path::SharedUdp)
    }
}

/// How a client talks to its device.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientConfig {
    /// The path to the device.
    pub path: Path,
    /// Which version of the protocol.
    pub version: Version,
    /// Where the device is, or the hub.
    pub address: Address,
    /// The byte order of requests. A device answers in either; this processor's own costs least.
    pub order: Order,
    /// Bytes of a request and of its reply at most; through the hub they include the hub's header of each.
    pub payload_max: usize,
    /// Packets in flight at most; a device's buffers bound it too.
    pub in_flight: usize,
    /// After how long without an answer it is given up.
    pub timeout: Duration,
    /// See [`WindowConfig::calm`](crate::window::WindowConfig::calm).
    pub calm: Duration,
    /// The seed of the numbers of transactions, by which another host's reply is told from one's own; `None` begins at 0.
    pub seed: Option<u64>,
}

impl ClientConfig {
    /// Creates the settings with which uHAL uses the same path, but with ids on UDP.
    #[must_use]
    pub fn new(path: Path, version: Version, address: Address) -> Self {
        let in_flight = match (version, path) {
            (Version::V1_3, Path::Udp { .. } | Path::SharedUdp) => 1,
            (_, Path::Hub(_)) => HUB_IN_FLIGHT,
            _ => IN_FLIGHT,
        };
        ClientConfig {
            path,
            version,
            address,
            order: Order::NATIVE,
            payload_max: PAYLOAD,
            in_flight,
            timeout: Duration::from_secs(1),
            calm: Duration::ZERO,
            seed: None,
        }
    }

    /// Returns the bytes that a packet and its reply may have, without the hub's headers.
    #[must_use]
    pub fn room(&self) -> Room {
        let payload = self.payload_max.max(PAYLOAD_MIN);
        match self.path {
            Path::Hub(_) => Room { request: payload - hub::REQUEST_HEADER, reply: payload - hub::REPLY_HEADER },
            _ => Room { request: payload, reply: payload },
        }
    }
}

/// A command of the application to a client. The tag comes back with the event; the application chooses it, and bounds
/// how much it asks for at once.
#[derive(Debug, Clone)]
pub enum Command {
    /// Read one word. Answered with [`Data::Word`].
    Read {
        /// The application's name for it.
        tag: u64,
        /// Where.
        address: u32,
    },
    /// Write one word.
    Write {
        /// The application's name for it.
        tag: u64,
        /// Where.
        address: u32,
        /// The word.
        word: u32,
    },
    /// Read words, over as many packets as it takes. Answered with [`Data::Block`].
    ReadBlock {
        /// The application's name for it.
        tag: u64,
        /// Over which addresses.
        mode: Mode,
        /// The first, or only, one.
        address: u32,
        /// How many.
        words: u32,
        /// Where to put them; its room is used again, so that nothing is allocated.
        into: Vec<u32>,
    },
    /// Write words, over as many packets as it takes.
    WriteBlock {
        /// The application's name for it.
        tag: u64,
        /// Over which addresses.
        mode: Mode,
        /// The first, or only, one.
        address: u32,
        /// The words.
        data: Block,
    },
    /// Make a word `word & and | or`. Answered with [`Data::Word`]: the one before, or with version 1.3 the one after.
    RmwBits {
        /// The application's name for it.
        tag: u64,
        /// Where.
        address: u32,
        /// Bits to be kept.
        and: u32,
        /// Bits to be set.
        or: u32,
    },
    /// Add to a word, going round. Answered as [`Command::RmwBits`].
    RmwSum {
        /// The application's name for it.
        tag: u64,
        /// Where.
        address: u32,
        /// The number that is added.
        addend: u32,
    },
    /// See to it that all that was asked is sent, also where it fills no packet: "dispatch".
    Flush,
}

/// The data that an operation brings back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Nothing: it wrote.
    Written,
    /// A word.
    Word(u32),
    /// The words of [`Command::ReadBlock`], in the room that it brought along.
    Block(Vec<u32>),
}

/// An event that a client reports to the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The device can be reached: it has told its next id, or the connection is there.
    Ready,
    /// The operation with this tag is done.
    Done {
        /// Which.
        tag: u64,
        /// The data that the operation brought back.
        data: Data,
    },
    /// The operation with this tag has failed.
    Failed {
        /// Which.
        tag: u64,
        /// The address that it failed at, or for.
        address: u32,
        /// Why.
        error: Error,
        /// The words that a FIFO read took out nevertheless, in order: nobody else will find them there. Empty for any other
        /// operation.
        taken: Vec<u32>,
    },
    /// The device cannot be reached: all that was asked has failed. The next command tries again.
    Down(Error),
}

/// The near end of IPbus: one device.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    link: Link,
    /// Whether [`Event::Ready`] has been told since the link was opened.
    ready: bool,
    /// The error to be reported once all that failed has been reported.
    down: Option<Error>,
    queue: Queue,
    composer: Composer,
    flight: Flight,
    carrier: Carrier,
    stamps: Stamps,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Closed,
    ToOpen,
    Opening(Instant),
    Open,
    ToClose,
}

impl Client {
    /// Creates a client that begins at once to reach its device.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let carrier = Carrier::new(&config);
        Client {
            link: Link::ToOpen,
            ready: false,
            down: None,
            queue: Queue::default(),
            composer: Composer::new(config.version, config.order),
            flight: Flight::new(&config, carrier.names_packets(), carrier.numbers_packets()),
            carrier,
            stamps: Stamps::default(),
            config,
        }
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counters(&self) -> WindowCounters {
        self.carrier.counters()
    }

    /// Operations that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.queue.len()
    }

    /// Returns which operations are stamped, and their stamps.
    pub fn stamps(&mut self) -> &mut Stamps {
        &mut self.stamps
    }

    fn command(&mut self, now: Instant, command: Command) {
        if matches!(command, Command::Flush) {
            return self.composer.flush(&mut self.queue);
        }
        self.queue.push(command);
        match self.link {
            Link::Closed => self.link = Link::ToOpen,
            Link::Open => self.carrier.open(now),
            _ => {}
        }
    }

    fn received(&mut self, now: Instant, bytes: &[u8]) {
        let Client { carrier, flight, queue, .. } = self;
        flight.expect(carrier.names_packets(), carrier.numbers_packets());
        let outcome = carrier.received(now, bytes, &mut |key, reply| match reply {
            Ok(answer) => flight.take(answer, queue),
            Err(error) => flight.fail(key, error, queue),
        });
        if let Err(error) = outcome {
            self.lose_link(now, error);
            self.link = Link::ToClose;
        }
    }

    fn closed(&mut self, now: Instant, why: Closed) {
        // A datagram socket is there at once; whether anybody listens shows only after the first question, which a client
        // without ids does not ask.
        let was_there = self.link == Link::Open && self.ready && self.carrier.names_packets();
        self.link = Link::Closed;
        if was_there {
            self.lose_link(now, Error::Closed(why));
        } else {
            self.give_up(now, Error::Closed(why));
        }
    }

    /// Fails what is in flight. What has not been sent may go over another connection.
    fn lose_link(&mut self, now: Instant, error: Error) {
        self.ready = false;
        self.carrier.reset(now);
        self.flight.fail_all(error, &mut self.queue);
        if self.link == Link::Closed && self.queue.has_open() {
            self.link = Link::ToOpen;
        }
    }

    /// Fails all that was asked: the device cannot be reached.
    fn give_up(&mut self, now: Instant, error: Error) {
        self.ready = false;
        self.carrier.reset(now);
        self.flight.fail_all(error, &mut self.queue);
        self.composer.restart();
        self.flight.forget_unsent(error, &mut self.queue);
        self.queue.fail_all(error);
        self.down = Some(error);
    }

    /// Puts operations into packets while the carrier takes some.
    #[inline]
    fn compose(&mut self, now: Instant, out: &mut Outbox) {
        while self.carrier.room() > 0 {
            let room = self.carrier.narrow(self.config.room());
            if !self.composer.compose(&mut self.queue, &mut self.flight, room) {
                return;
            }
            if self.stamps.sampling.is_on() {
                let begun = self.flight.begun(&mut self.queue).filter(|tag| self.stamps.sampling.takes(*tag));
                begun.for_each(|tag| mark_sending(tag, out));
            }
            let key = self.flight.send();
            self.carrier.push(now, key, self.composer.packet(), || self.flight.only_reads());
            self.composer.restart();
        }
    }

    /// Returns the next output about the link itself.
    fn tend_link(&mut self, now: Instant) -> Option<Output<Event>> {
        match self.link {
            Link::ToOpen => {
                self.link = Link::Opening(now);
                return Some(Output::Open(PEER, self.config.address.clone()));
            }
            Link::ToClose => {
                self.link = if self.queue.has_open() { Link::ToOpen } else { Link::Closed };
                return Some(Output::Close(PEER));
            }
            Link::Opening(since) if now >= since + self.config.timeout => {
                self.link = Link::Closed;
                self.give_up(now, Error::Closed(Closed::TimedOut));
                return Some(Output::Close(PEER));
            }
            _ => {}
        }
        if !self.ready && self.link == Link::Open && self.carrier.is_ready() {
            self.ready = true;
            return Some(Output::Event(Event::Ready));
        }
        None
    }
}

impl Machine for Client {
    type Command = Command;
    type Event = Event;

    #[inline]
    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        match input {
            Input::Received(PEER, bytes) if self.link == Link::Open => self.received(now, bytes),
            Input::Command(command) => self.command(now, command),
            Input::Opened(PEER, _) if matches!(self.link, Link::Opening(_)) => {
                self.link = Link::Open;
                // The connection before may have been closed while it was held back; nothing is told of it any more.
                self.carrier.set_blocked(false);
                self.carrier.open(now);
            }
            Input::Closed(PEER, why) if matches!(self.link, Link::Opening(_) | Link::Open) => self.closed(now, why),
            Input::Blocked(PEER) => self.carrier.set_blocked(true),
            Input::Drained(PEER) => self.carrier.set_blocked(false),
            _ => {}
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        loop {
            if let Some(event) = self.queue.next_event() {
                if let Event::Done { tag, .. } = event
                    && self.stamps.sampling.takes(tag)
                {
                    out.mark(AWAY, tag, Moment::At(now));
                }
                return Output::Event(event);
            }
            if let Some(error) = self.down.take() {
                return Output::Event(Event::Down(error));
            }
            if let Some(output) = self.tend_link(now) {
                return output;
            }
            match self.link {
                Link::Open => {}
                Link::Opening(since) => return Output::Idle(Some(since + self.config.timeout)),
                _ => return Output::Idle(None),
            }
            self.compose(now, out);
            match self.carrier.poll(now, out) {
                Move::Send => return Output::Send(PEER),
                Move::Failed { key, error } => {
                    self.flight.fail(key, error, &mut self.queue);
                }
                Move::Down(error) => {
                    self.give_up(now, error);
                    if !self.config.path.is_udp() {
                        self.link = Link::ToClose;
                    }
                }
                Move::Idle(deadline) if !self.queue.has_event() => return Output::Idle(deadline),
                Move::Idle(_) => {}
            }
        }
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.stamps.keep(stamp);
    }
}

fn mark_sending(tag: u64, out: &mut Outbox) {
    out.mark(QUEUE, tag, Moment::Sending);
    out.mark(SEND, tag, Moment::Sent);
}

#[cfg(test)]
mod tests;
