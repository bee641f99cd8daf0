use crate::Transport;
use crate::connection::End;
use crate::fabric::{Fabric, Letter};
use crate::lane::Transit;
use crate::schedule::Happening;
use hodo_machine::{Closed, Instant, Outbox};

/// A machine with more unsent bytes than this to one peer is told to hold back.
const UNSENT_MAX: usize = 256 << 10;
/// The most that is read at once.
const READ_MAX: usize = 256 << 10;
/// One read in so many is cut short at a random place, so that machines see streams cut anywhere.
const SHORT_READS: f64 = 1.0 / 8.0;

impl Fabric {
    /// Asks the far node for a connection.
    pub(crate) fn connect(&mut self, end: End) {
        let Some(lane) = self.lane_of(end) else { return };
        let give_up = self.now + self.lanes[lane].network.connect_timeout;
        match self.lanes[lane].segment(self.now, 0, give_up) {
            Transit::Arrives { at, .. } => self.schedule.at(at, Happening::Asked(end)),
            Transit::GivenUp(at) => self.schedule.at(at, Happening::Failed(end, Closed::TimedOut)),
        }
    }

    /// The wish to connect arrives at the far node.
    pub(crate) fn asked(&mut self, end: End) {
        let (Some(lane), Some(back)) = (self.lane_of(end), self.lane_of(end.far())) else { return };
        self.lanes[lane].counters.delivered += 1;
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        let node = connection.nodes[end.far().index()];
        if !self.desks[node as usize].listening {
            let at = self.now + self.lanes[back].network.delay;
            return self.schedule.at(at, Happening::Failed(end, Closed::Refused));
        }
        connection.flows[end.far().index()].open = true;
        self.accept(end.far());
        self.post(node, Letter::Opened(end.far()));
        let give_up = self.now + self.lanes[back].network.connect_timeout;
        match self.lanes[back].segment(self.now, 0, give_up) {
            Transit::Arrives { at, .. } => {
                if let Some(connection) = self.connections.at(end) {
                    connection.flows[end.far().index()].last_arrival = at;
                }
                self.schedule.at(at, Happening::Answered(end));
            }
            Transit::GivenUp(at) => self.schedule.at(at, Happening::Failed(end, Closed::TimedOut)),
        }
    }

    /// The answer to the wish to connect arrives back.
    pub(crate) fn answered(&mut self, end: End) {
        let Some(lane) = self.lane_of(end.far()) else { return };
        self.lanes[lane].counters.delivered += 1;
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        connection.flows[end.index()].open = true;
        let node = connection.nodes[end.index()];
        self.post(node, Letter::Opened(end));
        self.pump(end);
    }

    /// Takes in bytes that a machine wrote; answers whether the machine is to be told to hold back.
    pub(crate) fn write(&mut self, node: u32, end: End, outbox: &Outbox) -> bool {
        let done = self.charge(node);
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return false };
        let flow = &mut connection.flows[end.index()];
        flow.bytes.append(outbox);
        if !flow.dirty {
            flow.dirty = true;
            self.desks[node as usize].dirty.push(end);
        }
        if flow.unsent() <= UNSENT_MAX || flow.blocked {
            return false;
        }
        if done <= self.now {
            self.pump(end);
        }
        let Some(connection) = self.connections.at(end) else { return false };
        let flow = &mut connection.flows[end.index()];
        flow.blocked = flow.unsent() > UNSENT_MAX;
        flow.blocked
    }

    /// Offers what was written since the last flush to the wire, once the node's processor is done with it.
    pub(crate) fn flush(&mut self, node: u32) {
        let desk = &mut self.desks[node as usize];
        desk.burst = 0;
        let done = desk.busy;
        let mut dirty = std::mem::take(&mut desk.dirty);
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
        self.desks[node as usize].dirty = dirty;
    }

    /// Sends what may be sent of one end's bytes.
    pub(crate) fn pump(&mut self, end: End) {
        let Some(lane) = self.lane_of(end) else { return };
        loop {
            let Some(connection) = self.connections.at(end) else { return };
            let flow = &mut connection.flows[end.index()];
            if flow.unsent() == 0 || flow.waiting {
                break;
            }
            let room_at = self.lanes[lane].room_at(self.now);
            if room_at.is_some() || !self.lanes[lane].waiting.is_empty() {
                flow.waiting = true;
                self.wait_for_room(lane, end, room_at.unwrap_or(self.now));
                break;
            }
            if !self.send_segment(lane, end) {
                break;
            }
        }
        self.settle(lane, end);
    }

    /// A lane's queue has room: those that wait for it send a segment each, in turn.
    pub(crate) fn room(&mut self, lane: usize) {
        while let Some(end) = self.lanes[lane].waiting.front().copied() {
            if let Some(at) = self.lanes[lane].room_at(self.now) {
                return self.schedule.at(at, Happening::Room(lane as u32));
            }
            self.lanes[lane].waiting.pop_front();
            let sent = self.send_segment(lane, end);
            if let Some(connection) = self.connections.at(end) {
                let flow = &mut connection.flows[end.index()];
                flow.waiting = sent && flow.unsent() > 0;
                if flow.waiting {
                    self.lanes[lane].waiting.push_back(end);
                }
            }
            self.settle(lane, end);
        }
    }

    fn wait_for_room(&mut self, lane: usize, end: End, at: Instant) {
        // The first to wait sets the alarm; it is set again for as long as anyone waits.
        if self.lanes[lane].waiting.is_empty() {
            self.schedule.at(at, Happening::Room(lane as u32));
        }
        self.lanes[lane].waiting.push_back(end);
    }

    /// Sends one segment, if there are bytes to send and the reader has room for them.
    fn send_segment(&mut self, lane: usize, end: End) -> bool {
        let Some(connection) = self.connections.at(end) else { return false };
        let flow = &mut connection.flows[end.index()];
        let lane = &mut self.lanes[lane];
        let buffer_left = (lane.network.buffer_bytes as usize).saturating_sub(flow.ready + flow.flying);
        let count = flow.unsent().min(lane.model(Transport::Stream).payload_max as usize).min(buffer_left);
        if count == 0 || !flow.open {
            return false;
        }
        flow.flying += count;
        match lane.segment(self.now, count, Instant::MAX) {
            Transit::Arrives { at, cut } => {
                flow.last_arrival = flow.last_arrival.max(at);
                self.schedule.at(flow.last_arrival, Happening::Segment(end, count as u32));
                if cut {
                    self.schedule.at(flow.last_arrival, Happening::Cut(end));
                }
            }
            Transit::GivenUp(at) => {
                flow.open = false;
                self.schedule.at(at, Happening::Failed(end, Closed::TimedOut));
            }
        }
        true
    }

    /// When all is sent: tells a machine that was held back, and sends the mark of one that closed.
    fn settle(&mut self, lane: usize, end: End) {
        let Some(connection) = self.connections.at(end) else { return };
        let node = connection.nodes[end.index()];
        let flow = &mut connection.flows[end.index()];
        if flow.unsent() > 0 {
            return;
        }
        if flow.closing && flow.open {
            flow.open = false;
            match self.lanes[lane].segment(self.now, 0, Instant::MAX) {
                Transit::Arrives { at, .. } => {
                    self.schedule.at(at.max(flow.last_arrival), Happening::Finish(end));
                }
                Transit::GivenUp(at) => self.schedule.at(at, Happening::Failed(end, Closed::TimedOut)),
            }
        }
        if flow.blocked {
            flow.blocked = false;
            self.post(node, Letter::Drained(end));
        }
    }

    /// Bytes that this end wrote arrive at the far node.
    pub(crate) fn segment_arrives(&mut self, end: End, count: usize) {
        let Some(lane) = self.lane_of(end) else { return };
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        let counters = &mut self.lanes[lane].counters;
        counters.delivered += 1;
        counters.delivered_bytes += count as u64;
        let reader_is_there = connection.is_there(end.far());
        let node = connection.nodes[end.far().index()];
        let flow = &mut connection.flows[end.index()];
        flow.flying -= count;
        flow.ready += count;
        if !reader_is_there {
            flow.consume(count);
            self.pump(end);
        } else if !flow.posted {
            flow.posted = true;
            self.post(node, Letter::Readable(end.far()));
        }
    }

    /// How many bytes the machine at this end reads now.
    pub(crate) fn portion(&mut self, end: End) -> usize {
        let Some(connection) = self.connections.at(end) else { return 0 };
        let ready = connection.flows[end.far().index()].ready.min(READ_MAX);
        if ready > 1 && self.random.chance(SHORT_READS) {
            return 1 + self.random.below(ready as u64 - 1) as usize;
        }
        ready
    }

    /// The next bytes that the machine at this end reads.
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
            self.post(node, Letter::Readable(end));
        } else if flow.finished {
            self.post(node, Letter::Closed(end, Closed::Finished));
        }
        self.pump(end.far());
    }

    /// A machine closes a stream whose far end is there: what it wrote goes out first, what it has not read is dropped.
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

    /// The mark behind the last byte of this end arrives at the far node.
    pub(crate) fn finish_arrives(&mut self, end: End) {
        let Some(lane) = self.lane_of(end) else { return };
        self.lanes[lane].counters.delivered += 1;
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        let flow = &mut connection.flows[end.index()];
        flow.finished = true;
        if flow.ready == 0 {
            let node = connection.nodes[end.far().index()];
            self.post(node, Letter::Closed(end.far(), Closed::Finished));
        }
    }

    /// An end learns that its peer is out of reach.
    pub(crate) fn failed(&mut self, end: End, why: Closed) {
        match self.connections.of(end).map(|connection| connection.transport) {
            Some(Transport::Stream) => self.kill(end, why),
            Some(Transport::Datagram) => {
                if let Some(node) = self.connections.of(end).map(|connection| connection.nodes[end.index()]) {
                    self.post(node, Letter::Closed(end, why));
                }
            }
            None => {}
        }
    }

    /// Ends a connection at once, with all that it carries.
    pub(crate) fn kill(&mut self, end: End, why: Closed) {
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        connection.dead = true;
        connection.flows.iter_mut().for_each(crate::connection::Flow::stop);
        let nodes = connection.nodes;
        for end in [end, end.far()] {
            if self.peer(end).is_some() {
                self.post(nodes[end.index()], Letter::Closed(end, why));
            }
        }
        self.connections.free_if_forgotten(end);
    }

    /// Resets every stream.
    pub(crate) fn cut_all(&mut self) {
        for end in self.connections.live(Transport::Stream) {
            self.kill(end, Closed::Reset);
        }
    }
}
