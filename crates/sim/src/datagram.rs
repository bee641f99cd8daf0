use crate::connection::{End, Presence};
use crate::fabric::{Fabric, Letter};
use crate::parcel::Parcel;
use crate::schedule::Happening;
use hodo_machine::{Closed, Outbox, Peer};
use std::time::Duration;

/// A machine that sends this many datagrams without becoming idle is told to hold back until its processor has done
/// them, so that one which sends for as long as it may comes to an end.
const BURST: u32 = 256;

/// A datagram that its machine is about to be told of.
pub(crate) struct Claim {
    pub(crate) peer: Peer,
    /// The node that it came from, where the machine has not been told of the peer before.
    pub(crate) new_from: Option<u32>,
}

impl Fabric {
    /// Sends one datagram; answers whether the machine is to be told to hold back.
    pub(crate) fn send_datagram(&mut self, node: u32, end: End, outbox: &Outbox) -> bool {
        let at = self.charge(node);
        let Some(lane) = self.lane_of(end) else { return false };
        let fate = self.lanes[lane].datagram(at, outbox.len());
        let Some(connection) = self.connections.at(end) else { return false };
        let number = connection.flows[end.index()].next_number;
        connection.flows[end.index()].next_number += 1;
        for (arrives, copy) in [(fate.arrives, false), (fate.again, true)] {
            let Some(arrives) = arrives else { continue };
            connection.parcels += 1;
            let key = self.parcels.pack(end.far(), lane as u32, number, copy, outbox);
            if let Some(bit) = fate.flip {
                self.parcels.at(key).bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
            self.schedule.at(arrives, Happening::Parcel(key));
        }
        let desk = &mut self.desks[node as usize];
        desk.burst += 1;
        let flow = &mut connection.flows[end.index()];
        if desk.burst < BURST || flow.blocked {
            return false;
        }
        flow.blocked = true;
        self.schedule.at(at.max(self.now + Duration::from_nanos(1)), Happening::Drained(end));
        true
    }

    /// Tells a machine that was held back that it may send again.
    pub(crate) fn burst_over(&mut self, end: End) {
        let Some(connection) = self.connections.at(end) else { return };
        connection.flows[end.index()].blocked = false;
        let node = connection.nodes[end.index()];
        self.post(node, Letter::Drained(end));
    }

    /// Puts a datagram into the inbox of the node that it is for, if that has room.
    pub(crate) fn parcel_arrives(&mut self, key: u32) {
        let Parcel { to, lane, ref bytes, .. } = *self.parcels.at(key);
        let length = bytes.len() as u64;
        let Some(connection) = self.connections.at(to) else { return };
        let node = connection.nodes[to.index()];
        let desk = &mut self.desks[node as usize];
        if desk.inbox_bytes + length > desk.buffer_bytes {
            self.lanes[lane as usize].counters.overrun += 1;
            self.drop_parcel(key);
        } else {
            desk.inbox_bytes += length;
            self.post(node, Letter::Parcel(key));
        }
    }

    /// Finds the peer that a datagram from the inbox is from; answers nothing, and drops it, where there is none.
    pub(crate) fn claim(&mut self, node: u32, key: u32) -> Option<Claim> {
        let Parcel { to, lane, number, copy, ref bytes } = *self.parcels.at(key);
        let length = bytes.len() as u64;
        let desk = &mut self.desks[node as usize];
        desk.inbox_bytes -= length;
        let listening = desk.listening;
        let connection = self.connections.at(to)?;
        let (peer, new_from) = match (connection.presence[to.index()], to.side) {
            (Presence::There, _) => (connection.peers[to.index()], None),
            (Presence::Absent | Presence::Gone, 1) if listening => {
                let from = connection.nodes[0];
                (self.accept(to)?, Some(from))
            }
            _ => {
                self.lanes[lane as usize].counters.unclaimed += 1;
                self.refuse(to);
                self.drop_parcel(key);
                return None;
            }
        };
        let counters = &mut self.lanes[lane as usize].counters;
        counters.delivered += 1;
        counters.delivered_bytes += length;
        let flow = &mut self.connections.at(to)?.flows[to.far().index()];
        counters.reordered += u64::from(!copy && number < flow.delivered_below);
        flow.delivered_below = flow.delivered_below.max(number + 1);
        Some(Claim { peer, new_from })
    }

    /// Forgets a datagram that was handed over or that nobody wants.
    pub(crate) fn drop_parcel(&mut self, key: u32) {
        let to = self.parcels.at(key).to;
        self.parcels.discard(key);
        if let Some(connection) = self.connections.at(to) {
            connection.parcels -= 1;
            self.connections.free_if_forgotten(to);
        }
    }

    /// Tells a sender that nothing listens where it sends to, as ICMP does.
    fn refuse(&mut self, to: End) {
        let sender = to.far();
        if to.side == 1
            && let Some(back) = self.lane_of(to)
        {
            let at = self.now + self.lanes[back].network.delay;
            self.schedule.at(at, Happening::Failed(sender, Closed::Refused));
        }
    }
}
