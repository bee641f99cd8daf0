//! A multicast group: what is sent to it arrives at every server that has joined it. Each of these receivers greets, acknowledges and
//! reports by itself, over a channel of its own.

use crate::client::{ClientConfig, Event, Queues};
use crate::session::datagram;
use crate::wire::{FLAG_ACKNOWLEDGE, Header, Kind, decode_greeting};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hodo_machine::{Address, Instant, Outbox, Peer};

/// The peer that stands for the whole group.
pub(crate) const GROUP: Peer = Peer(0);
/// Stands for the group among the numbers of its channels.
pub(crate) const NUMBER: u32 = u32::MAX;

/// A group: the operations that are to be sent to it, and its receivers.
#[derive(Debug)]
pub(crate) struct Group {
    address: Address,
    size_max: u32,
    acknowledge_every: u32,
    wanted: usize,
    /// The receivers, by the number of their channel.
    receivers: Vec<(Peer, Address)>,
    /// When the group was greeted first.
    since: Option<Instant>,
    greet: bool,
    is_open: bool,
    pub(crate) blocked: bool,
    queued: VecDeque<(u64, u32)>,
    sent: u64,
    unacknowledged: u32,
    /// The operations that have arrived at every receiver.
    arrived: u64,
}

impl Group {
    /// Returns the group that a configuration names, if it names one.
    pub(crate) fn of(config: &ClientConfig) -> Option<Group> {
        config.is_group.then(|| Group {
            address: config.address.clone(),
            size_max: config.size_max,
            acknowledge_every: config.acknowledge_every.max(1),
            wanted: config.channels as usize,
            receivers: Vec::new(),
            since: None,
            greet: false,
            is_open: false,
            blocked: false,
            queued: VecDeque::new(),
            sent: 0,
            unacknowledged: 0,
            arrived: 0,
        })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns where its receivers are, by the number of their channel.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = &Address> {
        self.receivers.iter().map(|(_, address)| address)
    }

    /// Returns the number of the channel to a receiver.
    pub(crate) fn number_of(&self, peer: Peer) -> Option<u32> {
        self.receivers.iter().position(|(known, _)| *known == peer).map(|number| number as u32)
    }

    /// Returns the receiver at the other end of a channel.
    pub(crate) fn peer_of(&self, number: u32) -> Option<Peer> {
        self.receivers.get(number as usize).map(|(peer, _)| *peer)
    }

    /// Returns whether all have answered.
    pub(crate) fn is_complete(&self) -> bool {
        self.receivers.len() >= self.wanted
    }

    /// Returns how many have answered, and how many should.
    pub(crate) fn found(&self) -> (u32, u32) {
        (self.receivers.len() as u32, self.wanted as u32)
    }

    /// Begins, now that the driver reaches the group.
    pub(crate) fn opened(&mut self, now: Instant) {
        (self.is_open, self.blocked) = (true, false);
        self.greet(now);
    }

    /// Sends nothing more: the driver does not reach the group any longer.
    pub(crate) fn closed(&mut self) {
        self.is_open = false;
    }

    /// Greets once more. Returns when the first greeting was.
    pub(crate) fn greet(&mut self, now: Instant) -> Instant {
        self.greet = true;
        *self.since.get_or_insert(now)
    }

    /// Returns whether the sender of this datagram is one more receiver, as the answer to the greeting says.
    pub(crate) fn admits(&self, bytes: &[u8]) -> bool {
        let Ok((header, body)) = datagram(bytes, self.size_max) else { return false };
        !self.is_complete() && header.kind == Kind::Welcome && decode_greeting(body).is_ok()
    }

    /// Adds a receiver. Returns the number of its channel.
    pub(crate) fn add(&mut self, peer: Peer, address: &Address) -> Option<u32> {
        if self.is_complete() {
            return None;
        }
        self.receivers.push((peer, address.clone()));
        Some(self.receivers.len() as u32 - 1)
    }

    pub(crate) fn queue(&mut self, tag: u64, size: u32) {
        self.queued.push_back((tag, size));
    }

    /// Forgets what has not been sent.
    pub(crate) fn withdraw(&mut self, events: &mut VecDeque<Event>) {
        events.extend(self.queued.drain(..).map(|(tag, _)| Event::Withdrawn(tag)));
    }

    /// Returns how many more have arrived at every receiver, if these have.
    pub(crate) fn arrived(&mut self, everywhere: u64) -> Option<Event> {
        let count = everywhere.checked_sub(self.arrived).filter(|count| *count > 0)?;
        self.arrived = everywhere;
        Some(Event::Arrived { channel: 0, count })
    }

    /// Writes the next datagram to all: the greeting, or an operation. Returns its kind.
    pub(crate) fn write(
        &mut self,
        hello: impl FnOnce(&mut Outbox),
        check: bool,
        queues: &mut Queues,
        out: &mut Outbox,
    ) -> Written {
        if self.blocked || !self.is_open {
            return Written::Nothing;
        }
        if core::mem::take(&mut self.greet) {
            hello(out);
            return Written::Greeting;
        }
        let Some((tag, size)) = self.queued.pop_front() else { return Written::Nothing };
        let mut header = Header::new(Kind::Send, size, self.sent);
        self.sent += 1;
        self.unacknowledged += 1;
        if self.unacknowledged >= self.acknowledge_every || self.queued.is_empty() {
            self.unacknowledged = 0;
            header.flags = FLAG_ACKNOWLEDGE;
        }
        queues.payload.message(&header, check, out);
        queues.events.push_back(Event::Sent(tag));
        Written::Operation
    }
}

/// The kind of datagram that was written to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Nothing,
    Greeting,
    Operation,
}
