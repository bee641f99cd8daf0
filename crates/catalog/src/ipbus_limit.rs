//! What an operation of an IPbus link puts on the way, packet by packet: the ground of its limits.

use crate::boards::Boards;
use crate::ipbus_link::words;
use hodo_io::floor::{Exchange, Kind as Sockets};
use hodo_ipbus::client::{Room, packets};
use hodo_ipbus::wire::operation::Mode as Access;
use hodo_ipbus::wire::transaction::Kind;
use hodo_ipbus::wire::{chunk, hub};
use hodo_ipbus::{ClientConfig, Path as Way};
use hodo_measure::limits::{Bound, Packing, Path, WireCost};
use hodo_measure::{Limit, Mode};

/// The packets of so many operations that are flushed together, and their replies, with the headers of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Packets {
    config: ClientConfig,
    mode: Mode,
    operations: u32,
    size: u32,
    access: Access,
}

impl Packets {
    pub(crate) fn new(boards: &Boards, mode: Mode, size: u32, batch: u32) -> Self {
        let (config, access) = (boards.typical(), boards.access());
        Packets { config, mode, operations: batch.max(1), size, access }
    }

    fn iter(&self) -> impl Iterator<Item = Room> + '_ {
        let (read, write) = match self.access {
            Access::Fifo => (Kind::FifoRead, Kind::FifoWrite),
            _ => (Kind::Read, Kind::Write),
        };
        let write = (self.mode != Mode::Receive).then_some((write, words(self.size)));
        let read = (self.mode != Mode::Send).then_some((read, words(self.size)));
        let operations = (0..self.operations).flat_map(move |_| write.into_iter().chain(read));
        let (out, back) = match self.config.path {
            Way::Udp { .. } => (0, 0),
            Way::Tcp => (chunk::HEADER, chunk::HEADER),
            Way::Hub(_) => (hub::REQUEST_HEADER, hub::REPLY_HEADER),
        };
        packets(self.config.version, self.config.room(), operations)
            .map(move |packet| Room { request: packet.request + out, reply: packet.reply + back })
    }

    /// Packets for one operation.
    pub(crate) fn per_operation(&self) -> f64 {
        self.iter().count() as f64 / f64::from(self.operations)
    }

    fn total(&self) -> Room {
        self.iter().fold(Room { request: 0, reply: 0 }, |sum, packet| Room {
            request: sum.request + packet.request,
            reply: sum.reply + packet.reply,
        })
    }

    /// A packet and its reply, on average.
    pub(crate) fn mean(&self) -> Room {
        let (total, count) = (self.total(), self.iter().count().max(1));
        Room { request: total.request / count, reply: total.reply / count }
    }

    /// What one operation costs the line.
    pub(crate) fn cost(&self, path: &Path) -> WireCost {
        let is_datagrams = matches!(self.config.path, Way::Udp { .. });
        let packing = if is_datagrams { Packing::Own } else { Packing::Stream };
        let each = |packet: Room| path.cost(0, packet.request as u64, packet.reply as u64, packing);
        let all = WireCost::total(self.iter().map(each));
        let share = f64::from(self.operations).recip();
        WireCost {
            payload_bytes: f64::from(self.size),
            out_bytes: all.out_bytes * share,
            back_bytes: all.back_bytes * share,
        }
    }

    /// The shortest time of operations one at a time: what the busier direction carries, and the least of the other.
    pub(crate) fn latency(&self, path: &Path) -> Limit {
        let total = self.total();
        let (first, last) = (self.iter().next(), self.iter().last());
        let (out, back) = if total.reply >= total.request {
            (first.map_or(0, |packet| packet.request), total.reply)
        } else {
            (total.request, last.map_or(0, |packet| packet.reply))
        };
        path.latency_limit(u64::from(self.size), out as u64, back as u64, 0.0)
    }

    /// The bound of the packets that may be in flight on so many channels.
    pub(crate) fn in_flight(&self, channels: u32, round_trip_ns: f64) -> Bound {
        let in_flight = self.config.in_flight as u64 * u64::from(channels);
        Bound::packets(in_flight, self.per_operation(), round_trip_ns)
    }

    /// What bare sockets are to do in its place, with so many packets in flight: the bytes of a message, the exchange,
    /// and whether the messages come from the far side.
    pub(crate) fn bare(&self, in_flight: u64) -> (Sockets, usize, Exchange, bool) {
        let sockets = if matches!(self.config.path, Way::Udp { .. }) { Sockets::Udp } else { Sockets::Tcp };
        let packet = self.iter().next().unwrap_or(Room { request: 1, reply: 1 });
        let in_flight = in_flight.min(self.config.in_flight as u64);
        if in_flight <= 1 && self.iter().nth(1).is_none() {
            return (sockets, packet.request, Exchange::PingPong { answer: packet.reply }, false);
        }
        // A long block is a flow of full packets one way; what asks for them, or acknowledges them, is small.
        let (larger, smaller) = (packet.request.max(packet.reply), packet.request.min(packet.reply));
        if larger > 4 * smaller {
            return (sockets, larger, Exchange::OneWay, packet.reply > packet.request);
        }
        (sockets, larger.midpoint(smaller), Exchange::Echo { window: in_flight.max(1) as usize }, false)
    }

    /// What bare sockets are to do in the hub's place, between it and the board, for a lone packet.
    pub(crate) fn bare_behind_hub(&self) -> Option<(usize, Exchange)> {
        let packet = self.iter().next().filter(|_| matches!(self.config.path, Way::Hub(_)))?;
        let answer = packet.reply.saturating_sub(hub::REPLY_HEADER);
        Some((packet.request.saturating_sub(hub::REQUEST_HEADER), Exchange::PingPong { answer }))
    }
}
