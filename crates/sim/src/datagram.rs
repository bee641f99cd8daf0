use crate::connection::{End, Presence};
use crate::fabric::{Fabric, Notice};
use crate::host::Power;
use crate::schedule::Happening;
use hodo_machine::{Closed, Ends, Instant, Outbox, Peer, Slab};
use std::time::Duration;

/// A machine that sends this many datagrams without becoming idle is told to hold back until its processor has done
/// them, so that one which sends for as long as it may comes to an end.
const BURST: u32 = 256;

/// A datagram that its machine is about to be told of.
pub(crate) struct Claim {
    pub(crate) peer: Peer,
    /// The ends, where the machine has not been told of the peer before.
    pub(crate) opened: Option<Ends>,
}

impl Fabric {
    /// Sends one datagram and returns whether the machine is to be told to hold back.
    pub(crate) fn send_datagram(&mut self, node: u32, end: End, outbox: &Outbox) -> bool {
        let at = self.charge(node);
        self.transmit(end, at, outbox);
        self.hold_back(node, end, at)
    }

    /// Puts one datagram on the wire.
    fn transmit(&mut self, end: End, at: Instant, outbox: &Outbox) {
        let Some(wire) = self.wire_of(end) else { return };
        let fate = self.wires[wire].datagram(at, outbox.len());
        let Some(connection) = self.connections.at(end) else { return };
        let number = connection.flows[end.index()].next_number;
        connection.flows[end.index()].next_number += 1;
        for (arrives, copy) in [(fate.arrives, false), (fate.again, true)] {
            let Some(arrives) = arrives else { continue };
            connection.datagrams += 1;
            let key = self.datagrams.pack(end.far(), wire as u32, number, copy, outbox);
            if let Some(bit) = fate.flip {
                self.datagrams.at(key).bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
            self.schedule.at(arrives, Happening::Datagram(key));
        }
    }

    /// Returns whether the machine is to be told to hold back, because it has sent a whole burst.
    fn hold_back(&mut self, node: u32, end: End, at: Instant) -> bool {
        let Some(connection) = self.connections.at(end) else { return false };
        let host = &mut self.hosts[node as usize];
        host.burst += 1;
        let flow = &mut connection.flows[end.index()];
        if host.burst < BURST || flow.blocked {
            return false;
        }
        flow.blocked = true;
        self.schedule.at(at.max(self.now + Duration::from_nanos(1)), Happening::Drained(end));
        true
    }

    /// Sends one datagram to every other member of a group; returns whether the machine is to be told to hold back.
    pub(crate) fn send_to_group(&mut self, node: u32, end: End, group: u32, outbox: &Outbox) -> bool {
        let at = self.charge(node);
        for to in (0..self.hosts.len() as u32).filter(|to| *to != node) {
            if self.is_member(to, group) {
                let branch = self.branch(node, group, to);
                self.transmit(branch, at, outbox);
            }
        }
        self.hold_back(node, end, at)
    }

    /// Returns the connection from a node to one member of a group, which is made where there is none.
    fn branch(&mut self, node: u32, group: u32, to: u32) -> End {
        let known = self.hosts[node as usize].branches.get(&(group, to)).copied();
        if let Some(end) = known.filter(|end| self.connections.of(*end).is_some()) {
            return end;
        }
        let end = self.connections.branch(node, group, to);
        self.hosts[node as usize].branches.insert((group, to), end);
        end
    }

    /// Tells a machine that was held back that it may send again.
    pub(crate) fn burst_over(&mut self, end: End) {
        let Some(connection) = self.connections.at(end) else { return };
        connection.flows[end.index()].blocked = false;
        let node = connection.nodes[end.index()];
        self.post(node, Notice::Drained(end));
    }

    /// Puts a datagram into the inbox of the node that it is for, if that has room.
    pub(crate) fn datagram_arrives(&mut self, key: u32) {
        let Datagram { to, wire, ref bytes, .. } = *self.datagrams.at(key);
        let length = bytes.len() as u64;
        let Some(connection) = self.connections.at(to) else { return };
        let node = connection.nodes[to.index()];
        let host = &mut self.hosts[node as usize];
        if host.power != Power::Running {
            let refuses = host.power == Power::Idle;
            self.wires[wire as usize].counters.unclaimed += 1;
            if refuses {
                self.refuse(to);
            }
            self.drop_datagram(key);
        } else if host.inbox_bytes + length > host.buffer_bytes {
            self.wires[wire as usize].counters.overrun += 1;
            self.drop_datagram(key);
        } else {
            host.inbox_bytes += length;
            self.post(node, Notice::Datagram(key));
        }
    }

    /// Returns the end that a datagram from the inbox came to, and its ends, if the machine may take its sender as a new peer.
    pub(crate) fn stranger(&mut self, node: u32, key: u32) -> Option<(End, Ends)> {
        let to = self.datagrams.at(key).to;
        let takes = Fabric::takes_datagrams(&self.connections, &self.hosts[node as usize], to);
        let is_peer = self.connections.of(to)?.presence[to.index()] == Presence::There;
        if takes && !is_peer { Some((to, self.ends(to)?)) } else { None }
    }

    /// Forgets a datagram whose sender its machine does not take, and sends the reply unless it is longer.
    pub(crate) fn turn_away(&mut self, node: u32, key: u32, to: End, reply: &Outbox) {
        let Datagram { wire, ref bytes, .. } = *self.datagrams.at(key);
        let length = bytes.len();
        self.hosts[node as usize].inbox_bytes -= length as u64;
        let counters = &mut self.wires[wire as usize].counters;
        counters.delivered += 1;
        counters.delivered_bytes += length as u64;
        if !reply.is_empty() && reply.len() <= length {
            let at = self.charge(node);
            self.transmit(to, at, reply);
        }
        self.drop_datagram(key);
    }

    /// Returns the peer that a datagram from the inbox is from; drops the datagram where there is none.
    pub(crate) fn claim(&mut self, node: u32, key: u32) -> Option<Claim> {
        let Datagram { to, wire, number, copy, ref bytes } = *self.datagrams.at(key);
        let length = bytes.len() as u64;
        let host = &mut self.hosts[node as usize];
        host.inbox_bytes -= length;
        let takes_strangers = Fabric::takes_datagrams(&self.connections, host, to);
        let connection = self.connections.at(to)?;
        let (peer, is_new) = match connection.presence[to.index()] {
            Presence::There => (connection.peers[to.index()], false),
            Presence::Absent | Presence::Gone if takes_strangers => (self.accept(to)?, true),
            _ => {
                self.wires[wire as usize].counters.unclaimed += 1;
                self.refuse(to);
                self.drop_datagram(key);
                return None;
            }
        };
        let counters = &mut self.wires[wire as usize].counters;
        counters.delivered += 1;
        counters.delivered_bytes += length;
        let flow = &mut self.connections.at(to)?.flows[to.far().index()];
        counters.reordered += u64::from(!copy && number < flow.delivered_below);
        flow.delivered_below = flow.delivered_below.max(number + 1);
        let opened = if is_new { self.ends(to) } else { None };
        Some(Claim { peer, opened })
    }

    /// Forgets a datagram that was handed over or that nobody wants.
    pub(crate) fn drop_datagram(&mut self, key: u32) {
        let to = self.datagrams.at(key).to;
        self.datagrams.discard(key);
        if let Some(connection) = self.connections.at(to) {
            connection.datagrams -= 1;
            self.connections.free_if_forgotten(to);
        }
    }

    /// Tells a sender that nothing listens where it sends to, as ICMP does.
    fn refuse(&mut self, to: End) {
        let sender = to.far();
        let is_alone = self.connections.of(to).is_some_and(|connection| connection.branch.is_none());
        if to.side == 1
            && is_alone
            && let Some(back) = self.wire_of(to)
        {
            let at = self.now + self.wires[back].network.delay;
            self.schedule.at(at, Happening::Failed(sender, Closed::Refused));
        }
    }
}

/// A datagram on its way.
#[derive(Debug)]
pub(crate) struct Datagram {
    /// The end that it is for.
    pub(crate) to: End,
    /// The wire that carries it.
    pub(crate) wire: u32,
    /// The place in the order of sending over the connection.
    pub(crate) number: u64,
    /// Whether the network made it as a second copy.
    pub(crate) copy: bool,
    pub(crate) bytes: Vec<u8>,
}

/// The datagrams on their way, under keys; their buffers are used again.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    slab: Slab<Datagram>,
    bytes: usize,
}

impl Datagrams {
    /// Keeps a datagram's bytes and returns its key.
    pub(crate) fn pack(&mut self, to: End, wire: u32, number: u64, copy: bool, outbox: &Outbox) -> u32 {
        self.bytes += outbox.len();
        let key = self.slab.take(|| Datagram { to, wire, number, copy, bytes: Vec::new() });
        let datagram = &mut self.slab[key];
        let mut buffer = std::mem::take(&mut datagram.bytes);
        buffer.clear();
        for piece in outbox.pieces() {
            buffer.extend_from_slice(outbox.bytes(piece));
        }
        *datagram = Datagram { to, wire, number, copy, bytes: buffer };
        key
    }

    pub(crate) fn at(&mut self, key: u32) -> &mut Datagram {
        &mut self.slab[key]
    }

    /// Forgets a datagram and keeps its buffer.
    pub(crate) fn discard(&mut self, key: u32) {
        self.bytes -= self.slab[key].bytes.len();
        self.slab.release(key);
    }

    /// Bytes on their way.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}
