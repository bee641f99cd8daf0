use crate::Transport;
use crate::connection::{End, Presence, Segment};
use crate::fabric::{Fabric, Notice};
use crate::schedule::Happening;
use crate::wire::{Passage, TRIES};
use crate::world::Death;
use hodo_machine::{Closed, Instant, Outbox};
use std::time::Duration;

/// The most that is read at once.
const READ_MAX: usize = 256 << 10;
/// One read in so many is cut short at a random place, so that machines see streams cut anywhere.
const SHORT_READS: f64 = 1.0 / 8.0;

impl Fabric {
    /// Takes in bytes that a machine wrote; returns whether the machine is to be told to hold back.
    pub(crate) fn write(&mut self, node: u32, end: End, outbox: &Outbox) -> bool {
        let done = self.charge(node);
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return false };
        let flow = &mut connection.flows[end.index()];
        flow.bytes.append(outbox);
        if !flow.dirty {
            flow.dirty = true;
            self.hosts[node as usize].dirty.push(end);
        }
        let backlog = self.hosts[node as usize].backlog;
        if flow.unsent() <= backlog || flow.blocked {
            return false;
        }
        if done <= self.now {
            self.pump(end);
        }
        let Some(connection) = self.connections.at(end) else { return false };
        let flow = &mut connection.flows[end.index()];
        flow.blocked = flow.unsent() > backlog;
        flow.blocked
    }

    /// Offers what was written since the last flush to the wire, once the node's processor is done with it.
    pub(crate) fn flush(&mut self, node: u32) {
        let host = &mut self.hosts[node as usize];
        host.burst = 0;
        let done = host.busy;
        let mut dirty = std::mem::take(&mut host.dirty);
        for end in dirty.drain(..) {
            if let Some(connection) = self.connections.at(end) {
                connection.flows[end.index()].dirty = false;
            }
            if done > self.now {
                self.schedule.at(done, Happening::Pump(end));
            } else {
                self.pump(end);
            }
        }
        // Pumping writes nothing new: only the vector's room goes back.
        self.hosts[node as usize].dirty = dirty;
    }

    /// Sends what may be sent of one end's bytes.
    pub(crate) fn pump(&mut self, end: End) {
        let Some(wire) = self.wire_of(end) else { return };
        self.send_lost(end);
        loop {
            let Some(connection) = self.connections.at(end) else { return };
            let flow = &mut connection.flows[end.index()];
            if flow.unsent() == 0 || flow.waiting {
                break;
            }
            let room_at = self.wires[wire].room_at(self.now);
            if room_at.is_some() || !self.wires[wire].waiting.is_empty() {
                flow.waiting = true;
                self.wait_for_room(wire, end, room_at.unwrap_or(self.now));
                break;
            }
            if !self.send_segment(wire, end) {
                break;
            }
        }
        self.settle(end);
    }

    /// Lets those who wait for room in a wire's queue send a segment each, in turn.
    pub(crate) fn room(&mut self, wire: usize) {
        while let Some(end) = self.wires[wire].waiting.front().copied() {
            if let Some(at) = self.wires[wire].room_at(self.now) {
                return self.schedule.at(at, Happening::Room(wire as u32));
            }
            self.wires[wire].waiting.pop_front();
            let sent = self.send_segment(wire, end);
            if let Some(connection) = self.connections.at(end) {
                let flow = &mut connection.flows[end.index()];
                flow.waiting = sent && flow.unsent() > 0;
                if flow.waiting {
                    self.wires[wire].waiting.push_back(end);
                }
            }
            self.settle(end);
        }
    }

    fn wait_for_room(&mut self, wire: usize, end: End, at: Instant) {
        // The first to wait sets the alarm; it is set again for as long as anyone waits.
        if self.wires[wire].waiting.is_empty() {
            self.schedule.at(at, Happening::Room(wire as u32));
        }
        self.wires[wire].waiting.push_back(end);
    }

    /// Sends one segment, if there are bytes to send and the reader has room for them.
    fn send_segment(&mut self, wire: usize, end: End) -> bool {
        let Some(connection) = self.connections.at(end) else { return false };
        let flow = &mut connection.flows[end.index()];
        let wire = &mut self.wires[wire];
        let buffer_left = (wire.network.buffer_bytes as usize).saturating_sub(flow.ready + flow.flying);
        let count = flow.unsent().min(wire.model(Transport::Stream).payload_max as usize).min(buffer_left);
        if count == 0 || !flow.open {
            return false;
        }
        let segment = wire.model(Transport::Stream).payload_max as usize;
        let worthwhile = segment.min(flow.unsent()).min(wire.network.buffer_bytes as usize / 2);
        if let Some(sender) = &mut flow.sender {
            sender.is_limited = !sender.may_send(count);
            // No small segments because the reader has just made a little room (RFC 1122, 4.2.3.4).
            if sender.is_limited || count < worthwhile {
                return false;
            }
        }
        let segment = Segment { length: count as u32, arrived: false, last: false, tries: 0 };
        self.transmit_segment(end, segment);
        true
    }

    /// Puts a new segment on the wire.
    fn transmit_segment(&mut self, end: End, segment: Segment) {
        let Some(connection) = self.connections.at(end) else { return };
        let flow = &mut connection.flows[end.index()];
        flow.flying += segment.length as usize;
        flow.segments.push_back(segment);
        let number = flow.first.wrapping_add(flow.segments.len() as u32 - 1);
        self.pass(end, number, false);
    }

    /// Sends a segment once; where it does not arrive, it will be sent again.
    pub(crate) fn pass(&mut self, end: End, number: u32, again: bool) {
        let (Some(wire), now) = (self.wire_of(end), self.now) else { return };
        let Some(connection) = self.connections.at(end) else { return };
        let is_heard = !connection.gone[end.far().index()];
        let flow = &mut connection.flows[end.index()];
        let Some(segment) = flow.segment(number).copied() else { return };
        let bytes = segment.length as usize;
        let transmission = flow.sender.as_mut().map(|sender| sender.send(number, bytes, now, !again));
        match self.wires[wire].segment(now, bytes, again) {
            Passage::Arrives { at, cut } if is_heard => {
                // None overtakes those before it, unless it is sent again without anybody having asked.
                let at = if again && transmission.is_none() { at } else { at.max(flow.last_arrival) };
                flow.last_arrival = flow.last_arrival.max(at);
                self.schedule.at(at, Happening::Segment(end, number, transmission.unwrap_or_default()));
                if cut {
                    self.schedule.at(at, Happening::Cut(end));
                }
            }
            Passage::Arrives { at: left, .. } | Passage::Lost(left) => self.missed(end, number, left),
        }
    }

    /// Handles the loss of a segment: its sender will notice, or send it again after a while.
    fn missed(&mut self, end: End, number: u32, left: Instant) {
        let Some(wire) = self.wire_of(end) else { return };
        let Some(connection) = self.connections.at(end) else { return };
        let flow = &mut connection.flows[end.index()];
        if let Some(sender) = &mut flow.sender {
            sender.in_doubt = true;
            return self.await_answers(end);
        }
        let Some(segment) = flow.segment(number) else { return };
        let at = left + self.wires[wire].patience(segment.tries);
        self.schedule.at(at, Happening::Resend(end, number));
    }

    /// Sends a segment again, unless that was done too often.
    pub(crate) fn resend(&mut self, end: End, number: u32) {
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        if connection.gone[end.index()] {
            return connection.flows[end.index()].drop_flying();
        }
        let Some(segment) = connection.flows[end.index()].segment(number) else { return };
        segment.tries += 1;
        if segment.tries < TRIES {
            self.pass(end, number, true);
        } else {
            self.reset(end, Closed::TimedOut);
        }
    }

    /// Tells a machine that was held back, and sends the mark of one that closed, when all is sent.
    fn settle(&mut self, end: End) {
        self.await_answers(end);
        let Some(connection) = self.connections.at(end) else { return };
        let node = connection.nodes[end.index()];
        let flow = &mut connection.flows[end.index()];
        if flow.unsent() > 0 {
            return;
        }
        let finishes = flow.closing && flow.open;
        let drained = std::mem::take(&mut flow.blocked);
        flow.open &= !finishes;
        if finishes {
            self.transmit_segment(end, Segment { length: 0, arrived: false, last: true, tries: 0 });
        }
        if drained {
            self.post(node, Notice::Drained(end));
        }
    }

    /// Handles a segment that this end sent, which has arrived at the far node.
    pub(crate) fn segment_arrives(&mut self, end: End, number: u32, transmission: u64) {
        let (Some(wire), now) = (self.wire_of(end), self.now) else { return };
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        let (is_heard, reader_is_there) = (!connection.gone[end.far().index()], connection.is_there(end.far()));
        let node = connection.nodes[end.far().index()];
        let flow = &mut connection.flows[end.index()];
        if !is_heard {
            return self.missed(end, number, now);
        }
        let Some(segment) = flow.segment(number).filter(|segment| !segment.arrived) else {
            // It came before, and its acknowledgement was lost.
            return self.acknowledge(end, transmission);
        };
        segment.arrived = true;
        let counters = &mut self.wires[wire].counters;
        counters.delivered += 1;
        counters.delivered_bytes += u64::from(segment.length);
        let finished = flow.take_arrived();
        if flow.ready > 0 && !reader_is_there {
            flow.consume(flow.ready);
            self.pump(end);
        } else if flow.ready > 0 && !flow.posted {
            flow.posted = true;
            self.post(node, Notice::Readable(end.far()));
        } else if finished && flow.ready == 0 {
            self.post(node, Notice::Closed(end.far(), Closed::Finished));
        }
        self.acknowledge(end, transmission);
    }

    /// Returns how many bytes the machine at this end reads now.
    pub(crate) fn portion(&mut self, end: End) -> usize {
        let Some(connection) = self.connections.at(end) else { return 0 };
        let ready = connection.flows[end.far().index()].ready.min(READ_MAX);
        if ready > 1 && self.random.chance(SHORT_READS) {
            return 1 + self.random.below(ready as u64 - 1) as usize;
        }
        ready
    }

    /// Returns the next bytes that the machine at this end reads.
    pub(crate) fn front(&self, end: End, count: usize) -> &[u8] {
        self.connections.of(end).map_or(&[], |connection| connection.flows[end.far().index()].bytes.front(count))
    }

    /// Says that the machine at this end has read so many bytes; tells it of the rest, or of the end.
    pub(crate) fn consumed(&mut self, end: End, count: usize) {
        let Some(connection) = self.connections.at(end) else { return };
        let node = connection.nodes[end.index()];
        let flow = &mut connection.flows[end.far().index()];
        flow.consume(count);
        flow.posted = flow.ready > 0;
        if flow.posted {
            self.post(node, Notice::Readable(end));
        } else if flow.finished {
            self.post(node, Notice::Closed(end, Closed::Finished));
        }
        self.pump(end.far());
    }

    /// Closes a stream whose far end is there: written bytes go out first, unread bytes are dropped.
    pub(crate) fn finish(&mut self, end: End) {
        let Some(connection) = self.connections.at(end) else { return };
        let unread = &mut connection.flows[end.far().index()];
        unread.consume(unread.ready);
        let flow = &mut connection.flows[end.index()];
        flow.closing = true;
        if !flow.dirty {
            self.pump(end);
        }
    }

    /// Tells an end that its peer is out of reach.
    pub(crate) fn failed(&mut self, end: End, why: Closed) {
        match self.connections.of(end).map(|connection| connection.transport) {
            Some(Transport::Stream) => self.reset(end, why),
            Some(Transport::Datagram) => {
                if let Some(node) = self.connections.of(end).map(|connection| connection.nodes[end.index()]) {
                    self.post(node, Notice::Closed(end, why));
                }
            }
            None => {}
        }
    }

    /// Ends a connection at once, with all that it carries.
    pub(crate) fn reset(&mut self, end: End, why: Closed) {
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        connection.dead = true;
        connection.flows.iter_mut().for_each(crate::connection::Flow::stop);
        let nodes = connection.nodes;
        for end in [end, end.far()] {
            if self.peer(end).is_some() {
                self.post(nodes[end.index()], Notice::Closed(end, why));
            }
        }
        self.connections.free_if_forgotten(end);
    }

    /// Ends a stream at once, with all that it carries; each end is told within this time.
    pub(crate) fn break_stream(&mut self, end: End, within: Duration) {
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        connection.dead = true;
        connection.flows.iter_mut().for_each(crate::connection::Flow::stop);
        for end in [end, end.far()] {
            let at = self.now + Duration::from_nanos(self.random.below(within.as_nanos() as u64 + 1));
            self.schedule.at(at, Happening::Broken(end));
        }
    }

    /// Tells an end that its stream was reset.
    pub(crate) fn broken(&mut self, end: End) {
        if self.peer(end).is_some()
            && let Some(node) = self.connections.of(end).map(|connection| connection.nodes[end.index()])
        {
            self.post(node, Notice::Closed(end, Closed::Reset));
        }
    }

    /// Ends this end of a connection because the machine there has ended.
    pub(crate) fn abandon(&mut self, end: End, death: Death) {
        let (wire, now) = (self.wire_of(end), self.now);
        let Some(connection) = self.connections.at(end) else { return };
        connection.presence[end.index()] = Presence::Gone;
        if connection.transport == Transport::Stream && !connection.dead {
            connection.flows[end.index()].drop_unsent();
            connection.gone[end.index()] = death == Death::Silent;
            if death == Death::Reset
                && let Some(at) = wire.and_then(|wire| self.wires[wire].reset(now))
            {
                self.schedule.at(at, Happening::Failed(end.far(), Closed::Reset));
            }
        }
        self.connections.free_if_forgotten(end);
    }

    /// Resets every stream that a wire carries.
    pub(crate) fn cut_wire(&mut self, wire: usize) {
        for end in self.connections.live(Transport::Stream) {
            if self.wire_of(end) == Some(wire) || self.wire_of(end.far()) == Some(wire) {
                self.reset(end, Closed::Reset);
            }
        }
    }
}
