//! Which limit belongs to a measurement?

use crate::open::socket_settings;
use crate::simulated::limit_of_messages;
use crate::{Error, Opened, Settings, Uri};
use hodo_io::floor::{Exchange, Floor as Bare, Found, Kind};
use hodo_measure::limits::{self, Bound, Ip, Line, Packing, Path, Transport, WireCost};
use hodo_measure::{Binding, Limit, LimitKind, Measurement, Mode, Plan, Test};
use hodo_sim::Model;
use std::net::SocketAddr;

/// Operations whose bytes on the wire are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The direction of the payload.
    pub mode: Mode,
    /// The payload in bytes, on average.
    pub size: u32,
    /// Operations in a packet.
    pub batch: u32,
}

/// What an operation of a link puts on the wire.
pub trait OnTheWire {
    /// Returns the sockets that carry it.
    fn kind(&self) -> Kind;

    /// Returns the bytes out and back of an operation with this payload.
    fn messages(&self, payload: u64) -> (u64, u64);

    /// Returns what an operation with this payload costs the line. `packing` holds for messages of their own.
    fn cost(&self, path: &Path, payload: u64, packing: Packing) -> WireCost {
        let (out, back) = self.messages(payload);
        path.cost(payload, out, back, packing)
    }

    /// Returns the shortest time of an operation over a line.
    fn latency(&self, path: &Path, payload: u64) -> Limit {
        let (out, back) = self.messages(payload);
        path.latency_limit(payload, out, back, 0.0)
    }

    /// Returns the protocol's own bounds, beside the window's: of packets in flight where the round-trip is known, of the
    /// far ends' time.
    fn bounds(&self, _channels: u32, _round_trip_ns: Option<f64>) -> Vec<Bound> {
        Vec::new()
    }

    /// Returns how long the far end works on an operation by its own settings, on average.
    fn far_end_time_ns(&self) -> f64 {
        0.0
    }

    /// Returns what the floor leaves unsaid, to be added to what it assumes.
    fn floor_assumes(&self) -> &'static str {
        ""
    }

    /// Measures bare sockets with the same sizes and window.
    ///
    /// # Errors
    /// [`Error::Failed`] if the sockets fail.
    fn floor(&self, settings: &Settings, plan: &Plan, far_cpus: &[usize]) -> Result<Floor, Error> {
        floor_of_messages(self, settings, plan, far_cpus)
    }

    /// Returns the limit that the simulated network sets.
    fn limit_of_model(&self, model: (Model, Model), found: &Measurement, payload: f64) -> Option<Limit> {
        limit_of_messages(self, model, found, payload)
    }
}

/// Sizes that stand for all those drawn uniformly: the mean over them is within 1 % of the mean over all.
const SAMPLES: u64 = 64;

/// What bare sockets do in the same run, with the same sizes, wait and placement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Operations per second.
    pub operations_per_s: f64,
    /// The median time of an operation, of one at a time.
    pub latency_ns: Option<f64>,
    /// CPU time of the busier side for an operation.
    pub cost_ns: Option<f64>,
}

/// Measures what bare sockets do for the same plan, on this machine, in about a fifth of a second; `None` for a simulated
/// link.
///
/// # Errors
/// [`Error::Usage`] if the URI is wrong, [`Error::Failed`] if the sockets fail.
pub fn floor(uri: &Uri, settings: &Settings, plan: &Plan, far_cpus: &[usize]) -> Result<Option<Floor>, Error> {
    if uri.simulated {
        return Ok(None);
    }
    let operation = Operation { mode: plan.mode, size: plan.size.mean() as u32, batch: plan.batch };
    uri.protocol.on_the_wire(uri, operation)?.floor(settings, plan, far_cpus).map(Some)
}

/// Measures bare sockets that exchange one message each way for an operation.
fn floor_of_messages(
    wire: &(impl OnTheWire + ?Sized),
    settings: &Settings,
    plan: &Plan,
    far_cpus: &[usize],
) -> Result<Floor, Error> {
    // One pair of threads has several channels' windows in flight; a lone operation waits for its answer in every mode.
    let in_flight = u64::from(plan.window) * u64::from(plan.channels);
    let (out, answer) = wire.messages((plan.size.mean() as u64).max(1));
    let (out, answer) = (out as usize, answer as usize);
    let larger = out.max(answer);
    let mut cpus = pairs(settings, far_cpus);
    let (size, exchange) = match plan.mode {
        _ if settings.reconnect => (out, Exchange::Connect { answer }),
        _ if plan.test == Test::Latency || in_flight == 1 => (out, Exchange::PingPong { answer }),
        Mode::Both => (larger, Exchange::Echo { window: in_flight.div_ceil(cpus.len() as u64) as usize }),
        Mode::Send | Mode::Receive => (larger, Exchange::OneWay),
    };
    if answer > out && exchange == Exchange::OneWay {
        // The payload comes from the far side.
        cpus.iter_mut().for_each(|(near, far)| std::mem::swap(near, far));
    }
    let bare = Bare { kind: wire.kind(), exchange, size, wait: plan.wait, cpus, settings: socket_settings(settings) };
    let Found { messages_per_s, p50_ns, cost_ns } = measured(&bare)?;
    Ok(Floor { operations_per_s: messages_per_s, latency_ns: p50_ns, cost_ns })
}

/// Returns one exchange and then the other as one.
#[must_use]
pub fn in_turn(one: Found, other: Found) -> Found {
    let sum = |one: Option<f64>, other: Option<f64>| one.zip(other).map(|(one, other)| one + other);
    Found {
        messages_per_s: (one.messages_per_s.recip() + other.messages_per_s.recip()).recip(),
        p50_ns: sum(one.p50_ns, other.p50_ns),
        cost_ns: sum(one.cost_ns, other.cost_ns),
    }
}

/// Measures bare sockets.
///
/// # Errors
/// [`Error::Failed`] if the sockets fail.
pub fn measured(bare: &Bare) -> Result<Found, Error> {
    bare.measure().map_err(|error| Error::Failed(format!("measuring the floor on bare sockets: {error}")))
}

/// Returns the processors of the near and the far threads.
#[must_use]
pub fn pairs(settings: &Settings, far_cpus: &[usize]) -> Vec<(Option<usize>, Option<usize>)> {
    let threads = if settings.channels == 1 { 1 } else { settings.cpus.len().clamp(1, settings.channels as usize) };
    let far = |index: usize| far_cpus.get(index % far_cpus.len().max(1)).copied();
    (0..threads).map(|index| (settings.cpus.get(index).copied(), far(index))).collect()
}

/// The limit of a measurement: of the line where its rate is known, of bare sockets where there is no line, of the
/// model for a simulated link.
///
/// `line` is rate in bits per second and MTU. Beside it `floor` says what an operation costs a core: what bare sockets
/// need for it and not what we do, so that the limit does not move with our own cost. `round_trip_ns` is the time of a
/// single small operation, where it has been measured: with it the window's bound is known.
#[must_use]
pub fn limit(
    uri: &Uri,
    opened: &Opened,
    line: Option<(f64, u32)>,
    floor: Option<Floor>,
    round_trip_ns: Option<f64>,
    found: &Measurement,
) -> Option<Limit> {
    let payload = payload_per_operation(found);
    let in_flight = u64::from(found.window) * u64::from(found.channels);
    let operation = Operation { mode: found.mode, size: payload as u32, batch: found.batch };
    let wire = uri.protocol.on_the_wire(uri, operation).ok()?;
    let wire = wire.as_ref();
    if let Some(model) = opened.model {
        return wire.limit_of_model(model, found, payload);
    }
    let bounds = |first: Bound| {
        let mut bounds = vec![first];
        let round_trip_ns = round_trip_ns.filter(|_| found.test != Test::Latency);
        bounds.extend(round_trip_ns.map(|round_trip| Bound::window(in_flight, round_trip)));
        bounds.extend(wire.bounds(found.channels, round_trip_ns));
        bounds.extend(found.rate_asked.filter(|_| found.test == Test::Open).map(Bound::schedule));
        bounds
    };
    match (line, floor) {
        (Some((rate, mtu)), _) if wire.kind() != Kind::Unix => {
            let path = path(wire.kind() == Kind::Udp, opened.remote, rate, mtu)?;
            if found.test == Test::Latency {
                return Some(wire.latency(&path, payload as u64));
            }
            let mut bounds = bounds(Bound::line(&path, &cost(wire, &path, found)?));
            // One at a time leaves each core idle while the other side has it.
            let cost_ns = floor.and_then(|floor| floor.cost_ns).filter(|_| in_flight > 1);
            bounds.extend(cost_ns.map(|cost_ns| processors(opened, cost_ns)));
            limits::least(LimitKind::Line, bounds, payload)
        }
        (_, Some(floor)) => {
            let binds = if floor.latency_ns.is_some() { Binding::RoundTrip } else { Binding::Cpu };
            let mut bare = Limit::of_baseline(floor.operations_per_s, floor.latency_ns, payload, binds);
            if floor.latency_ns.is_some() {
                bare.assumes.push_str(wire.floor_assumes());
            }
            if found.test == Test::Open || !wire.bounds(1, None).is_empty() {
                let bare = Bound {
                    binds,
                    operations_per_s: floor.operations_per_s,
                    formula: bare.formula,
                    assumes: bare.assumes,
                };
                return limits::least(LimitKind::Baseline, bounds(bare), payload);
            }
            Some(bare)
        }
        _ => None,
    }
}

/// What the cores that drive the link could do if each did no more than bare sockets have to.
fn processors(opened: &Opened, cost_ns: f64) -> Bound {
    Bound {
        assumes: "bare sockets over this host's loopback, measured in this run; the far end has as many cores as good"
            .into(),
        ..Bound::cpu(opened.links.len() as u32, cost_ns)
    }
}

/// Payload bytes that one operation counts.
fn payload_per_operation(found: &Measurement) -> f64 {
    match (found.size_bytes, found.size_min_bytes, found.size_max_bytes) {
        (Some(size), ..) => size as f64,
        (None, Some(min), Some(max)) => f64::midpoint(min as f64, max as f64),
        _ => 0.0,
    }
}

fn path(datagrams: bool, remote: Option<SocketAddr>, rate: f64, mtu: u32) -> Option<Path> {
    let ip = if remote.is_some_and(|remote| remote.is_ipv6()) { Ip::V6 } else { Ip::V4 };
    let transport = if datagrams { Transport::Udp } else { Transport::Tcp { timestamps: true } };
    Path::new(Line::new(rate, mtu), ip, transport).ok()
}

/// Returns what an operation costs the line: the mean over the sizes drawn.
fn cost(wire: &dyn OnTheWire, path: &Path, found: &Measurement) -> Option<WireCost> {
    let single = found.test == Test::Latency || (found.window == 1 && found.mode == Mode::Both);
    let packing = if wire.kind() == Kind::Udp || single { Packing::Own } else { Packing::Stream };
    let of = |size: u64| wire.cost(path, size, packing);
    match (found.size_bytes, found.size_min_bytes, found.size_max_bytes) {
        (Some(size), ..) => Some(of(size)),
        (None, Some(min), Some(max)) => {
            WireCost::mean((0..=SAMPLES).map(|step| of(min + (max - min) * step / SAMPLES)))
        }
        _ => None,
    }
}
