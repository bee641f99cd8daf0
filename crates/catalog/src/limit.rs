use crate::open::socket_settings;
use crate::{Error, Opened, Settings, Uri, simulated};
use hodo_io::floor::{Exchange, Floor as Bare, Kind};
use hodo_measure::limits::{self, Bound, Ip, Line, Packing, Path, Transport, WireCost};
use hodo_measure::{Binding, Limit, LimitKind, Measurement, Mode, Plan, Test};
use std::net::SocketAddr;

/// Sizes that stand for all those drawn uniformly: the mean over them is within 1 % of the mean over all.
const SAMPLES: u64 = 64;

/// What bare sockets do in the same run, with the same sizes, wait and placement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Operations per second.
    pub operations_per_s: f64,
    /// The median time of an operation, of one at a time.
    pub latency_ns: Option<f64>,
}

/// Measures what bare sockets do for the same plan, on this machine, in about a fifth of a second.
pub fn floor(uri: &Uri, settings: &Settings, plan: &Plan, far_cpus: &[usize]) -> Result<Option<Floor>, Error> {
    if uri.simulated || settings.reconnect {
        return Ok(None);
    }
    let kind = match uri.scheme {
        "tcp" => Kind::Tcp,
        "udp" => Kind::Udp,
        _ => Kind::Unix,
    };
    let one_at_a_time =
        plan.test == Test::Latency || (plan.window == 1 && plan.channels == 1 && plan.mode == Mode::Both);
    let exchange = match plan.mode {
        Mode::Both if one_at_a_time => Exchange::PingPong,
        Mode::Both => Exchange::Echo { window: plan.window as usize },
        Mode::Send | Mode::Receive => Exchange::OneWay,
    };
    let bare = Bare {
        kind,
        exchange,
        size: (plan.size.mean() as usize).max(1),
        wait: plan.wait,
        cpus: pairs(settings, far_cpus, plan.mode),
        settings: socket_settings(settings),
    };
    let found =
        bare.measure().map_err(|error| Error::Failed(format!("measuring the floor on bare sockets: {error}")))?;
    Ok(Some(Floor { operations_per_s: found.messages_per_s, latency_ns: found.p50_ns }))
}

/// Processors of the near and the far threads; the payload comes from the far side in [`Mode::Receive`].
fn pairs(settings: &Settings, far_cpus: &[usize], mode: Mode) -> Vec<(Option<usize>, Option<usize>)> {
    let threads = if settings.channels == 1 { 1 } else { settings.cpus.len().clamp(1, settings.channels as usize) };
    (0..threads)
        .map(|index| (settings.cpus.get(index).copied(), far_cpus.get(index % far_cpus.len().max(1)).copied()))
        .map(|(near, far)| if mode == Mode::Receive { (far, near) } else { (near, far) })
        .collect()
}

/// The limit of a measurement: of the line where its rate is known, of bare sockets where there is no line, of the
/// model for a simulated link.
///
/// `line` is rate in bits per second and MTU. `round_trip_ns` is the time of a single small operation, where it has been
/// measured: with it the window's bound is known.
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
    if let Some(model) = opened.model {
        return simulated::limit(model, found, payload);
    }
    let bounds = |first: Bound| {
        let mut bounds = vec![first];
        if let Some(round_trip) = round_trip_ns.filter(|_| found.test != Test::Latency) {
            bounds.push(Bound::window(u64::from(found.window) * u64::from(found.channels), round_trip));
        }
        if found.test == Test::Open
            && let Some(rate) = found.rate_asked
        {
            bounds.push(Bound::schedule(rate));
        }
        bounds
    };
    match (line, floor) {
        (Some((rate, mtu)), _) if uri.scheme != "unix" => {
            let path = path(uri, opened.remote, rate, mtu)?;
            let cost = cost(&path, uri, found)?;
            if found.test == Test::Latency {
                return Some(path.latency_limit(payload as u64, out_bytes(found), back_bytes(found), 0.0));
            }
            limits::least(LimitKind::Line, bounds(Bound::line(&path, &cost)), payload)
        }
        (_, Some(floor)) => {
            let binds = if floor.latency_ns.is_some() { Binding::RoundTrip } else { Binding::Cpu };
            let bare = Limit::of_floor(floor.operations_per_s, floor.latency_ns, payload, binds);
            if found.test == Test::Open {
                let bare = Bound {
                    binds,
                    operations_per_s: floor.operations_per_s,
                    formula: bare.formula,
                    assumes: bare.assumes,
                };
                return limits::least(LimitKind::Floor, bounds(bare), payload);
            }
            Some(bare)
        }
        _ => None,
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

fn path(uri: &Uri, remote: Option<SocketAddr>, rate: f64, mtu: u32) -> Option<Path> {
    let ip = if remote.is_some_and(|remote| remote.is_ipv6()) { Ip::V6 } else { Ip::V4 };
    let transport = if uri.scheme == "udp" { Transport::Udp } else { Transport::Tcp { timestamps: true } };
    Path::new(Line::new(rate, mtu), ip, transport).ok()
}

/// What an operation costs the line: the mean over the sizes drawn.
fn cost(path: &Path, uri: &Uri, found: &Measurement) -> Option<WireCost> {
    let single = found.test == Test::Latency || (found.window == 1 && found.mode == Mode::Both);
    let packing = if uri.scheme == "udp" || single { Packing::Own } else { Packing::Stream };
    let of = |size: u64| {
        let message = size.max(u64::from(hodo_raw::wire::HEADER as u32));
        let (out, back) = match found.mode {
            Mode::Both => (message, message),
            Mode::Send => (message, 0),
            Mode::Receive => (0, message),
        };
        path.cost(size, out, back, packing)
    };
    match (found.size_bytes, found.size_min_bytes, found.size_max_bytes) {
        (Some(size), ..) => Some(of(size)),
        (None, Some(min), Some(max)) => {
            WireCost::mean((0..=SAMPLES).map(|step| of(min + (max - min) * step / SAMPLES)))
        }
        _ => None,
    }
}

fn out_bytes(found: &Measurement) -> u64 {
    message_bytes(found, found.mode != Mode::Receive)
}

fn back_bytes(found: &Measurement) -> u64 {
    message_bytes(found, found.mode != Mode::Send)
}

/// A message carries the payload, or is a bare header: what asks for a payload, or acknowledges it.
fn message_bytes(found: &Measurement, with_payload: bool) -> u64 {
    let header = hodo_raw::wire::HEADER as u64;
    if with_payload { (payload_per_operation(found) as u64).max(header) } else { header }
}
