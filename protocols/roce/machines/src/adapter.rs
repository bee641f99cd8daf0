//! A channel adapter in software.

mod hosts;

use crate::memory::Memory;
use crate::queue_pair::{Next, QueuePair};
use crate::requester::Requester;
use crate::responder::Responder;
use crate::wire::{PARTITION_KEY, Packet};
use crate::{Access, Capacity, Completion, Connection, ReceiveRequest, SendRequest, State, VerbError};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer, Random, Slab, Timers};
use hosts::Hosts;

/// The bits of a queue pair's number that are its place in the table; the others are random, so that packets for one that was
/// destroyed do not reach the next one at its place.
const PLACE_BITS: u32 = 14;
/// The number of queue pairs that are at a place, one after the other, before a number returns.
const VARIANTS: u32 = 1 << (24 - PLACE_BITS);
/// The lowest number after the two that are reserved for management.
const RESERVED: u32 = 2;

/// The bounds of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterConfig {
    /// Queue pairs, at most 16,384.
    pub queue_pairs_max: u32,
    /// Source ports of far ends that are known at a time. One from which nothing has come for a while makes room for another.
    pub sources_max: usize,
    /// The bytes of each queue pair that may be in flight: they have to fit in the far end's socket buffer.
    pub window_bytes: u32,
    /// The memory of each queue pair's queues, in bytes.
    pub queue_bytes_max: u64,
    /// For keys, and for the numbers of queue pairs. On a network it has to be one that nobody can guess.
    pub seed: u64,
}

impl Default for AdapterConfig {
    fn default() -> Self {
        AdapterConfig {
            queue_pairs_max: 1 << PLACE_BITS,
            sources_max: 4096,
            window_bytes: 1 << 20,
            queue_bytes_max: 256 << 20,
            seed: 1,
        }
    }
}

/// A command of an application that goes through the adapter's driver; everything else is a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterCommand {
    /// Puts a queue pair into the error state, so that everything outstanding is flushed.
    Fail(u32),
}

/// The counters of a port: what happened to its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets sent.
    pub sent: u64,
    /// Packets received for a queue pair.
    pub received: u64,
    /// Datagrams that are no packet, or are for no queue pair of their sender.
    pub discarded: u64,
    /// Packets with a wrong CRC.
    pub wrong_icrc: u64,
    /// Requests sent again.
    pub retransmitted: u64,
    /// Requests received again.
    pub duplicates: u64,
    /// Requests received while one before them was missing.
    pub out_of_order: u64,
    /// Requests for which no receive had been posted.
    pub receiver_not_ready: u64,
    /// Acknowledgement timeouts.
    pub timeouts: u64,
    /// Negative acknowledgements sent, of requests out of order or refused.
    pub naks_sent: u64,
    /// Negative acknowledgements received.
    pub naks_received: u64,
    /// Acknowledgements received that say that the far end has posted no receive.
    pub far_receiver_not_ready: u64,
}

/// A channel adapter in software: memory regions, and queue pairs of the reliable-connection service.
///
/// Work requests go in through methods, as verbs have them; the driver carries them out in its next turn. Completions are
/// its events, in the order of each queue.
#[derive(Debug)]
pub struct Adapter {
    config: AdapterConfig,
    memory: Memory,
    pairs: Slab<Option<Box<QueuePair>>>,
    /// The bits in front of the place in the number of the last queue pair at each place.
    variants: Vec<u32>,
    hosts: Hosts,
    /// Queue pairs with something to send, in turn.
    listed: VecDeque<u32>,
    timers: Timers<u32>,
    completions: VecDeque<Completion>,
    random: Random,
    counters: Counters,
}

impl Adapter {
    /// Creates an adapter without queue pairs and regions.
    #[must_use]
    pub fn new(config: AdapterConfig) -> Self {
        Adapter {
            memory: Memory::new(config.seed),
            random: Random::for_purpose(config.seed, 2),
            hosts: Hosts::new(config.sources_max),
            config,
            pairs: Slab::default(),
            variants: Vec::new(),
            listed: VecDeque::new(),
            timers: Timers::default(),
            completions: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Registers bytes, of which the first one gets the virtual address `address`, or one that no other region has. Returns the
    /// key, local and remote, and the address.
    ///
    /// # Errors
    /// [`VerbError::Malformed`] if the rights do not go together, [`VerbError::OverBound`] if there are too many regions.
    pub fn register(&mut self, bytes: Vec<u8>, access: Access, address: Option<u64>) -> Result<(u32, u64), VerbError> {
        if !access.is_consistent() {
            return Err(VerbError::Malformed("remote write and atomic rights need the local right to write"));
        }
        self.memory.register(bytes, access, address).ok_or(VerbError::OverBound("regions"))
    }

    /// Ends the registration of a region, and returns its bytes; `None` if there is no such region.
    pub fn deregister(&mut self, key: u32) -> Option<Vec<u8>> {
        self.memory.deregister(key)
    }

    /// Returns the bytes of a region.
    #[must_use]
    pub fn region(&self, key: u32) -> Option<&[u8]> {
        self.memory.bytes(key)
    }

    /// Returns the bytes of a region, to be changed.
    pub fn region_mut(&mut self, key: u32) -> Option<&mut [u8]> {
        self.memory.bytes_mut(key)
    }

    /// Creates a queue pair, and returns its number.
    ///
    /// # Errors
    /// [`VerbError::OverBound`] if there are too many, or their queues would take too much memory.
    pub fn create(&mut self, capacity: &Capacity) -> Result<u32, VerbError> {
        let queues = Requester::size(capacity).saturating_add(Responder::size(capacity));
        if queues > self.config.queue_bytes_max {
            return Err(VerbError::OverBound("memory of a queue pair's queues"));
        }
        if self.pairs.len() >= self.config.queue_pairs_max.min(1 << PLACE_BITS) as usize {
            return Err(VerbError::OverBound("queue pairs"));
        }
        let place = self.pairs.insert(None);
        let number = self.next_number(place);
        self.pairs[place] = Some(Box::new(QueuePair::new(number, capacity)));
        Ok(number)
    }

    /// Returns the number of the next queue pair at a place: random at first, and then as long as possible none that was there.
    fn next_number(&mut self, place: u32) -> u32 {
        let variant = match self.variants.get(place as usize) {
            Some(last) => (last + 1) % VARIANTS,
            None => {
                self.variants.push(0);
                self.random.below(VARIANTS.into()) as u32
            }
        };
        // The lowest numbers are reserved.
        let variant = if variant << PLACE_BITS | place < RESERVED { 1 } else { variant };
        self.variants[place as usize] = variant;
        variant << PLACE_BITS | place
    }

    /// Connects a queue pair to its far end: it is ready to send, and to receive.
    ///
    /// # Errors
    /// [`VerbError::NoSuchQueuePair`], or [`VerbError::State`] if it is connected already.
    pub fn connect(&mut self, number: u32, connection: &Connection) -> Result<(), VerbError> {
        let pair = find(&mut self.pairs, number).ok_or(VerbError::NoSuchQueuePair(number))?;
        if pair.state != State::Init {
            return Err(VerbError::State(pair.state));
        }
        pair.connect(connection, self.config.window_bytes, self.hosts.join(&connection.address));
        Ok(())
    }

    /// Destroys a queue pair. Nothing more is told of its requests.
    pub fn destroy(&mut self, number: u32) {
        if find(&mut self.pairs, number).is_none() {
            return;
        }
        let place = number & ((1 << PLACE_BITS) - 1);
        self.timers.cancel(place);
        self.completions.retain(|completion| completion.queue_pair != number);
        self.pairs.release(place);
        let Some(pair) = self.pairs[place].take() else { return };
        pair.count(&mut self.counters);
        let waiting = pair.host.and_then(|host| self.hosts.waiting(host));
        for places in [Some(&mut self.listed), waiting].into_iter().flatten().filter(|_| pair.is_listed) {
            places.retain(|listed| *listed != place);
        }
        if let Some(host) = pair.host {
            self.hosts.leave(host);
        }
    }

    /// Posts a request to the send queue.
    ///
    /// # Errors
    /// Returns why it was refused; then nothing is sent.
    #[inline]
    pub fn post_send(&mut self, number: u32, request: &SendRequest<'_>) -> Result<(), VerbError> {
        let pair = find(&mut self.pairs, number).ok_or(VerbError::NoSuchQueuePair(number))?;
        pair.post_send(request, &self.memory)?;
        list(&mut self.listed, pair);
        Ok(())
    }

    /// Posts a request to the receive queue.
    ///
    /// # Errors
    /// Returns why it was refused.
    #[inline]
    pub fn post_receive(&mut self, number: u32, request: &ReceiveRequest<'_>) -> Result<(), VerbError> {
        let pair = find(&mut self.pairs, number).ok_or(VerbError::NoSuchQueuePair(number))?;
        pair.post_receive(request)?;
        if pair.state == State::Error {
            list(&mut self.listed, pair);
        }
        Ok(())
    }

    /// Returns the state of a queue pair.
    ///
    /// # Errors
    /// [`VerbError::NoSuchQueuePair`].
    pub fn state(&self, number: u32) -> Result<State, VerbError> {
        let pair = self.pairs.get(number & ((1 << PLACE_BITS) - 1)).and_then(Option::as_ref);
        pair.filter(|pair| pair.number == number).map(|pair| pair.state).ok_or(VerbError::NoSuchQueuePair(number))
    }

    /// Returns the counters of all queue pairs that are there, or were.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        for pair in self.pairs.iter().filter_map(|(_, pair)| pair.as_deref()) {
            pair.count(&mut counters);
        }
        counters
    }

    /// Takes a datagram of a peer.
    #[inline]
    fn received(&mut self, now: Instant, peer: Peer, datagram: &[u8]) {
        let Some(source) = self.hosts.source(peer) else { return };
        let Ok(packet) = Packet::decode(datagram) else {
            self.counters.discarded += 1;
            return;
        };
        if !source.flow.verify(datagram) {
            self.counters.wrong_icrc += 1;
            return;
        }
        let from = source.host;
        let is_of = |host: u32| host == from || self.hosts.are_one(host, from);
        let to = find(&mut self.pairs, packet.base.queue_pair).filter(|pair| pair.host.is_some_and(is_of));
        let is_of_partition = (packet.base.partition_key ^ PARTITION_KEY) & 0x7FFF == 0;
        let Some(pair) = to.filter(|_| is_of_partition) else {
            self.counters.discarded += 1;
            return;
        };
        self.counters.received += 1;
        pair.received(now, &packet, &mut self.memory, &mut self.completions);
        if pair.has_output(now) {
            list(&mut self.listed, pair);
        }
        arm(&mut self.timers, pair);
    }

    fn elapsed(&mut self, now: Instant) {
        while let Some(place) = self.timers.pop_due(now) {
            let Some(pair) = self.pairs.at(place).and_then(Option::as_deref_mut) else { continue };
            pair.armed = None;
            // A retry that cannot be sent is none: it is due once the host is free.
            if let Some(host) = pair.host.filter(|host| self.hosts.is_blocked(*host)) {
                pair.is_listed = pair.is_listed || self.hosts.wait(host, place);
                continue;
            }
            pair.elapsed(now, &mut self.completions);
            if pair.has_output(now) {
                list(&mut self.listed, pair);
            }
            arm(&mut self.timers, pair);
        }
    }

    /// Fails the queue pairs whose far end's host cannot be reached.
    fn closed(&mut self, peer: Peer, _why: Closed) {
        let Some(host) = self.hosts.lost(peer) else { return };
        for number in 0..=u32::MAX {
            let Some(pair) = self.pairs.at(number) else { break };
            if let Some(pair) = pair.as_deref_mut().filter(|pair| pair.host == Some(host)) {
                pair.fail(crate::Status::RetryExceeded, &mut self.completions);
            }
        }
        self.resume(host);
    }

    /// Lists the queue pairs that have waited for a host.
    fn resume(&mut self, host: u32) {
        if let Some(waiting) = self.hosts.waiting(host) {
            self.listed.append(waiting);
        }
    }

    /// Writes the next packet of the queue pairs that have something to send.
    #[inline]
    fn write_next(&mut self, now: Instant, out: &mut Outbox) -> Option<Peer> {
        while let Some(place) = self.listed.front().copied() {
            let Some(pair) = self.pairs.at(place).and_then(Option::as_deref_mut) else {
                self.listed.pop_front();
                continue;
            };
            let towards = pair.host.and_then(|host| self.hosts.towards(host));
            let next = match towards {
                Some((peer, flow)) => {
                    (pair.write_next(now, &self.memory, (flow, out), &mut self.completions), Some(peer))
                }
                None => {
                    pair.flush(&mut self.completions);
                    let host = pair.host.filter(|_| pair.has_output(now));
                    pair.is_listed = host.is_some_and(|host| self.hosts.wait(host, place));
                    self.listed.pop_front();
                    arm(&mut self.timers, pair);
                    continue;
                }
            };
            match next {
                (Next::Packet, peer) => {
                    self.counters.sent += 1;
                    arm(&mut self.timers, pair);
                    return peer;
                }
                (Next::TurnOver, _) => {
                    self.listed.rotate_left(1);
                }
                (Next::Nothing, _) => {
                    pair.is_listed = false;
                    self.listed.pop_front();
                    arm(&mut self.timers, pair);
                }
            }
        }
        None
    }
}

impl Machine for Adapter {
    type Command = AdapterCommand;
    type Event = Completion;

    #[inline]
    fn handle(&mut self, now: Instant, input: Input<'_, AdapterCommand>) {
        match input {
            Input::Received(peer, datagram) => self.received(now, peer, datagram),
            Input::Opened(peer, ends) => {
                if let Some(host) = self.hosts.opened(peer, ends) {
                    self.resume(host);
                }
            }
            Input::Closed(peer, why) => self.closed(peer, why),
            Input::Elapsed => self.elapsed(now),
            Input::Command(AdapterCommand::Fail(number)) => {
                if let Some(pair) = find(&mut self.pairs, number) {
                    pair.fail(crate::Status::Flushed, &mut self.completions);
                }
            }
            Input::Blocked(peer) => {
                self.hosts.set_blocked(peer, true);
            }
            Input::Drained(peer) => {
                if let Some(host) = self.hosts.set_blocked(peer, false) {
                    self.resume(host);
                }
            }
            Input::Landed(..) => {}
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Completion> {
        if let Some(completion) = self.completions.pop_front() {
            if self.completions.is_empty() && !self.listed.is_empty() {
                out.pause();
            }
            return Output::Event(completion);
        }
        if let Some(output) = self.hosts.output() {
            return output;
        }
        if let Some(peer) = self.write_next(now, out) {
            return Output::Send(peer);
        }
        if let Some(completion) = self.completions.pop_front() {
            return Output::Event(completion);
        }
        Output::Idle(self.timers.next())
    }

    fn admits(&mut self, _now: Instant, ends: &Ends, datagram: &[u8], _out: &mut Outbox) -> bool {
        let Ok(packet) = Packet::decode(datagram) else { return false };
        let Some(pair) = find(&mut self.pairs, packet.base.queue_pair) else { return false };
        pair.host.is_some_and(|host| self.hosts.admits(host, ends, datagram))
    }
}

impl Adapter {
    /// Returns where an address would be sent to.
    #[must_use]
    pub fn is_open(&self, address: &Address) -> bool {
        self.hosts.is_open(address)
    }
}

#[inline]
fn find(pairs: &mut Slab<Option<Box<QueuePair>>>, number: u32) -> Option<&mut QueuePair> {
    pairs.at(number & ((1 << PLACE_BITS) - 1))?.as_deref_mut().filter(|pair| pair.number == number)
}

#[inline]
fn list(listed: &mut VecDeque<u32>, pair: &mut QueuePair) {
    if !pair.is_listed {
        pair.is_listed = true;
        listed.push_back(pair.number & ((1 << PLACE_BITS) - 1));
    }
}

/// Arms the timer of a queue pair, unless it is armed for no later: one that is early is armed anew.
#[inline]
fn arm(timers: &mut Timers<u32>, pair: &mut QueuePair) {
    let Some(deadline) = pair.requester.deadline() else { return };
    if pair.armed.is_none_or(|armed| deadline < armed) {
        pair.armed = Some(deadline);
        timers.arm(pair.number & ((1 << PLACE_BITS) - 1), deadline);
    }
}
