//! What an operation of an IPbus link puts on the way, packet by packet: the ground of its limits.

use crate::boards::Boards;
use crate::link::words;
use hodo_io::floor::{Exchange, Floor as Bare, Found, Kind as Sockets};
use hodo_ipbus::client::{Room, packets};
use hodo_ipbus::wire::operation::Mode as Access;
use hodo_ipbus::wire::transaction::Kind;
use hodo_ipbus::wire::{chunk, hub};
use hodo_ipbus::{ClientConfig, Path as Way};
use hodo_measure::limits::{self, Bound, Packing, Path, WireCost};
use hodo_measure::{Binding, Limit, LimitKind, Measurement, Mode, Plan, Test};
use hodo_sim::{Model, Transport};
use hodo_tester::{
    Error, Floor, MODEL_ASSUMES, OnTheWire, Operation, Settings, Uri, in_turn, measured, pairs, socket_settings,
};

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
    /// Reads what a URI says of them.
    ///
    /// # Errors
    /// [`Error::Usage`] if the URI is wrong.
    pub(crate) fn of(uri: &Uri, operation: Operation) -> Result<Self, Error> {
        let boards = if uri.simulated { Boards::simulated(uri, 1)?.0 } else { Boards::of(uri)? };
        let Operation { mode, size, batch } = operation;
        let (config, access) = (boards.typical(), boards.access());
        Ok(Packets { config, mode, operations: batch.max(1), size, access })
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
    fn per_operation(&self) -> f64 {
        self.iter().count() as f64 / f64::from(self.operations)
    }

    fn total(&self) -> Room {
        self.iter().fold(Room { request: 0, reply: 0 }, |sum, packet| Room {
            request: sum.request + packet.request,
            reply: sum.reply + packet.reply,
        })
    }

    /// A packet and its reply, on average.
    fn mean(&self) -> Room {
        let (total, count) = (self.total(), self.iter().count().max(1));
        Room { request: total.request / count, reply: total.reply / count }
    }

    /// What one operation costs the line.
    fn cost_of_packets(&self, path: &Path) -> WireCost {
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
    fn latency_of_packets(&self, path: &Path) -> Limit {
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
    fn in_flight(&self, channels: u32, round_trip_ns: f64) -> Bound {
        let in_flight = self.config.in_flight as u64 * u64::from(channels);
        Bound::packets(in_flight, self.per_operation(), round_trip_ns)
    }

    /// What bare sockets are to do in its place, with so many packets in flight: the bytes of a message, the exchange,
    /// and whether the messages come from the far side.
    fn bare(&self, in_flight: u64) -> (Sockets, usize, Exchange, bool) {
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
    fn bare_behind_hub(&self) -> Option<(usize, Exchange)> {
        let packet = self.iter().next().filter(|_| matches!(self.config.path, Way::Hub(_)))?;
        let answer = packet.reply.saturating_sub(hub::REPLY_HEADER);
        Some((packet.request.saturating_sub(hub::REQUEST_HEADER), Exchange::PingPong { answer }))
    }
}

impl OnTheWire for Packets {
    fn kind(&self) -> Sockets {
        if matches!(self.config.path, Way::Udp { .. }) { Sockets::Udp } else { Sockets::Tcp }
    }

    fn messages(&self, _payload: u64) -> (u64, u64) {
        let total = self.total();
        (total.request as u64, total.reply as u64)
    }

    fn cost(&self, path: &Path, _payload: u64, _packing: Packing) -> WireCost {
        self.cost_of_packets(path)
    }

    fn latency(&self, path: &Path, _payload: u64) -> Limit {
        self.latency_of_packets(path)
    }

    fn bounds(&self, channels: u32, round_trip_ns: Option<f64>) -> Vec<Bound> {
        round_trip_ns.map(|round_trip| self.in_flight(channels, round_trip)).into_iter().collect()
    }

    fn floor_assumes(&self) -> &'static str {
        if self.bare_behind_hub().is_some() { ": by TCP to the hub, and then by UDP to the board" } else { "" }
    }

    /// Measures messages of the size of its packets, as many as its operations take.
    fn floor(&self, settings: &Settings, plan: &Plan, far_cpus: &[usize]) -> Result<Floor, Error> {
        let single = plan.test == Test::Latency;
        let operations = if single { 1 } else { u64::from(plan.window) * u64::from(plan.channels) };
        let mut cpus = pairs(settings, far_cpus);
        let each = operations.div_ceil(cpus.len() as u64) as f64 * self.per_operation();
        let (kind, size, exchange, from_far) = self.bare(each.ceil() as u64);
        if from_far {
            cpus.iter_mut().for_each(|(near, far)| std::mem::swap(near, far));
        }
        let bare = Bare { kind, exchange, size, wait: plan.wait, cpus, settings: socket_settings(settings) };
        let mut found = measured(&bare)?;
        if matches!(exchange, Exchange::PingPong { .. })
            && let Some((size, exchange)) = self.bare_behind_hub()
        {
            found = in_turn(found, measured(&Bare { kind: Sockets::Udp, exchange, size, ..bare })?);
        }
        let Found { messages_per_s, p50_ns, cost_ns } = found;
        let share = self.per_operation();
        let latency_ns = p50_ns.filter(|_| matches!(exchange, Exchange::PingPong { .. }));
        Ok(Floor { operations_per_s: messages_per_s / share, latency_ns, cost_ns: cost_ns.map(|cost| cost * share) })
    }

    /// Each packet is a message, and has its reply: an operation is cut into packets, or shares them.
    fn limit_of_model(&self, (out, back): (Model, Model), found: &Measurement, payload: f64) -> Option<Limit> {
        let (mean, each) = (self.mean(), self.per_operation());
        let costs = 2 * (out.cost + back.cost);
        let transit = (out.transit(mean.request as u64), back.transit(mean.reply as u64));
        let round_trip_ns = (transit.0 + transit.1 + costs).as_nanos() as f64;
        if found.test == Test::Latency {
            let formula = format!("{:?} + {:?} of transit + {costs:?} of processing", transit.0, transit.1);
            return Some(Limit::of_latency(LimitKind::Model, round_trip_ns, payload, formula, MODEL_ASSUMES.into()));
        }
        let operations = u64::from(found.window) * u64::from(found.channels);
        let mut bounds = vec![Bound::window(operations, round_trip_ns), self.in_flight(found.channels, round_trip_ns)];
        for (model, bytes) in [(out, mean.request), (back, mean.reply)] {
            if let Some(bits) = model.payload_bits_per_s(bytes as u64) {
                let bits = bits * f64::from(found.channels);
                bounds.push(Bound::pipe(Binding::Line, bits, bytes as f64 * each, "the model's rate less its headers"));
            }
        }
        if out.transport == Transport::Datagram {
            // A packet is sent and its reply received on either side; the client's side is one node.
            let cost = |model: Model| 2.0 * each * model.cost.as_nanos() as f64;
            bounds.extend([Bound::cpu(1, cost(out)), Bound::cpu(found.channels, cost(back))]);
        }
        bounds.extend(found.rate_asked.filter(|_| found.test == Test::Open).map(Bound::schedule));
        limits::least(LimitKind::Model, bounds, payload)
    }
}
