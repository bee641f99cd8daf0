use crate::boards::Boards;
use crate::farm_options::FarmOptions;
use crate::ipbus_limit::Packets;
use crate::open::socket_settings;
use crate::{Error, Opened, Settings, Uri, simulated};
use hodo_io::floor::{Exchange, Floor as Bare, Found, Kind};
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
    /// CPU time of the busier side for an operation.
    pub cost_ns: Option<f64>,
}

/// Measures what bare sockets do for the same plan, on this machine, in about a fifth of a second.
pub fn floor(uri: &Uri, settings: &Settings, plan: &Plan, far_cpus: &[usize]) -> Result<Option<Floor>, Error> {
    if uri.simulated {
        return Ok(None);
    }
    if let Some(boards) = Boards::of(uri)? {
        return floor_of_boards(&boards, settings, plan, far_cpus).map(Some);
    }
    let kind = match uri.scheme {
        "tcp" | "farm" => Kind::Tcp,
        "udp" => Kind::Udp,
        _ => Kind::Unix,
    };
    // One pair of threads has several channels' windows in flight; a lone operation waits for its answer in every mode.
    let in_flight = u64::from(plan.window) * u64::from(plan.channels);
    let size = (plan.size.mean() as usize).max(1);
    let farm = FarmOptions::of_opened(uri);
    let (out, answer) = messages(farm.as_ref(), plan.mode, size);
    let size = if farm.is_some() { out.max(answer) } else { size };
    let mut cpus = pairs(settings, far_cpus);
    let (size, exchange) = match plan.mode {
        _ if settings.reconnect => (out, Exchange::Connect { answer }),
        _ if plan.test == Test::Latency || in_flight == 1 => (out, Exchange::PingPong { answer }),
        Mode::Both => (size, Exchange::Echo { window: in_flight.div_ceil(cpus.len() as u64) as usize }),
        Mode::Send | Mode::Receive => (size, Exchange::OneWay),
    };
    let from_far = plan.mode == Mode::Receive || (farm.is_some() && answer > out);
    if from_far && exchange == Exchange::OneWay {
        // The payload comes from the far side.
        cpus.iter_mut().for_each(|(near, far)| std::mem::swap(near, far));
    }
    let bare = Bare { kind, exchange, size, wait: plan.wait, cpus, settings: socket_settings(settings) };
    let Found { messages_per_s, p50_ns, cost_ns } = measured(&bare)?;
    Ok(Some(Floor { operations_per_s: messages_per_s, latency_ns: p50_ns, cost_ns }))
}

/// The same for IPbus: messages of the size of its packets, as many as its operations take.
fn floor_of_boards(boards: &Boards, settings: &Settings, plan: &Plan, far_cpus: &[usize]) -> Result<Floor, Error> {
    let packets = Packets::new(boards, plan.mode, plan.size.mean() as u32, plan.batch);
    let single = plan.test == Test::Latency;
    let operations = if single { 1 } else { u64::from(plan.window) * u64::from(plan.channels) };
    let mut cpus = pairs(settings, far_cpus);
    let each = operations.div_ceil(cpus.len() as u64) as f64 * packets.per_operation();
    let (kind, size, exchange, from_far) = packets.bare(each.ceil() as u64);
    if from_far {
        cpus.iter_mut().for_each(|(near, far)| std::mem::swap(near, far));
    }
    let bare = Bare { kind, exchange, size, wait: plan.wait, cpus, settings: socket_settings(settings) };
    let mut found = measured(&bare)?;
    if matches!(exchange, Exchange::PingPong { .. })
        && let Some((size, exchange)) = packets.bare_behind_hub()
    {
        found = in_turn(found, measured(&Bare { kind: Kind::Udp, exchange, size, ..bare })?);
    }
    let Found { messages_per_s, p50_ns, cost_ns } = found;
    let share = packets.per_operation();
    let latency_ns = p50_ns.filter(|_| matches!(exchange, Exchange::PingPong { .. }));
    Ok(Floor { operations_per_s: messages_per_s / share, latency_ns, cost_ns: cost_ns.map(|cost| cost * share) })
}

/// One exchange and then the other.
fn in_turn(one: Found, other: Found) -> Found {
    let sum = |one: Option<f64>, other: Option<f64>| one.zip(other).map(|(one, other)| one + other);
    Found {
        messages_per_s: (one.messages_per_s.recip() + other.messages_per_s.recip()).recip(),
        p50_ns: sum(one.p50_ns, other.p50_ns),
        cost_ns: sum(one.cost_ns, other.cost_ns),
    }
}

fn measured(bare: &Bare) -> Result<Found, Error> {
    bare.measure().map_err(|error| Error::Failed(format!("measuring the floor on bare sockets: {error}")))
}

/// Bytes out and back of an operation of this size: a message that carries no payload is a bare header.
fn messages(farm: Option<&FarmOptions>, mode: Mode, size: usize) -> (usize, usize) {
    if let Some((event, token)) = farm.map(|farm| farm.messages(size as u64)) {
        return (event as usize, token as usize);
    }
    let header = hodo_raw::wire::HEADER;
    let message = size.max(header);
    match mode {
        Mode::Both => (message, message),
        Mode::Send => (message, header),
        Mode::Receive => (header, message),
    }
}

/// Processors of the near and the far threads.
fn pairs(settings: &Settings, far_cpus: &[usize]) -> Vec<(Option<usize>, Option<usize>)> {
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
    let boards = opened.boards.as_ref();
    let packets = boards.map(|boards| Packets::new(boards, found.mode, payload as u32, found.batch));
    let farm = FarmOptions::of_opened(uri);
    if let Some(model) = opened.model {
        return simulated::limit(model, (packets.as_ref(), farm.as_ref()), found, payload);
    }
    let bounds = |first: Bound| {
        let mut bounds = vec![first];
        if let Some(round_trip) = round_trip_ns.filter(|_| found.test != Test::Latency) {
            bounds.push(Bound::window(in_flight, round_trip));
            bounds.extend(packets.as_ref().map(|packets| packets.in_flight(found.channels, round_trip)));
        }
        if found.test == Test::Open
            && let Some(rate) = found.rate_asked
        {
            bounds.push(Bound::schedule(rate));
        }
        bounds.extend(farm.as_ref().and_then(|farm| farm.decisions(found.channels)));
        bounds
    };
    match (line, floor) {
        (Some((rate, mtu)), _) if uri.scheme != "unix" => {
            let datagrams = uri.scheme == "udp" || boards.is_some_and(Boards::is_datagrams);
            let path = path(datagrams, opened.remote, rate, mtu)?;
            let cost = match &packets {
                Some(packets) if found.test == Test::Latency => return Some(packets.latency(&path)),
                Some(packets) => packets.cost(&path),
                None => cost(&path, datagrams, farm.as_ref(), found)?,
            };
            if found.test == Test::Latency {
                let (out, back) = messages(farm.as_ref(), found.mode, payload as usize);
                return Some(path.latency_limit(payload as u64, out as u64, back as u64, 0.0));
            }
            let mut bounds = bounds(Bound::line(&path, &cost));
            // One at a time leaves each core idle while the other side has it.
            let cost_ns = floor.and_then(|floor| floor.cost_ns).filter(|_| in_flight > 1);
            bounds.extend(cost_ns.map(|cost_ns| processors(opened, cost_ns)));
            limits::least(LimitKind::Line, bounds, payload)
        }
        (_, Some(floor)) => {
            let binds = if floor.latency_ns.is_some() { Binding::RoundTrip } else { Binding::Cpu };
            let mut bare = Limit::of_baseline(floor.operations_per_s, floor.latency_ns, payload, binds);
            if floor.latency_ns.is_some() && packets.as_ref().is_some_and(|packets| packets.bare_behind_hub().is_some())
            {
                bare.assumes.push_str(": by TCP to the hub, and then by UDP to the board");
            }
            if found.test == Test::Open || farm.as_ref().is_some_and(|farm| farm.decisions(1).is_some()) {
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

/// What an operation costs the line: the mean over the sizes drawn.
fn cost(path: &Path, datagrams: bool, farm: Option<&FarmOptions>, found: &Measurement) -> Option<WireCost> {
    let single = found.test == Test::Latency || (found.window == 1 && found.mode == Mode::Both);
    let packing = if datagrams || single { Packing::Own } else { Packing::Stream };
    let of = |size: u64| {
        if let Some(farm) = farm {
            return farm.cost(path, size, packing);
        }
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
