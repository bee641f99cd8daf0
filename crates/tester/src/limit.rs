//! The surroundings of a row's limit: bare sockets in the shape of its operations, its line, its simulated network.
//!
//! The protocol describes an operation on the wire; everything here is the same for all protocols.

use crate::open::socket_settings;
use crate::simulated::streams_assume;
use crate::{Error, Line, Opened, Settings};
use hodo_io::floor::{Exchange, Floor as Bare, Found, Kind, Window};
use hodo_io::{PathOptions, SocketSettings, TcpCounters};
use hodo_measure::limits::{Carrier, Conditions, Ip, Model, ModelledWay, OnTheWire, Path, RoundTrip, Transport, Way};
use hodo_measure::{Limit, Measurement, PlainLoop, Plan, TcpTimes, Test, limits};
use std::net::SocketAddr;

/// Measures a plain loop of bare sockets on this machine with the same messages, window, wait and placement. Takes a twentieth of a second.
///
/// # Errors
/// [`Error::Failed`] if the sockets fail.
pub fn plain_loop(wire: &OnTheWire, settings: &Settings, plan: &Plan, far_cpus: &[usize]) -> Result<PlainLoop, Error> {
    let wire = &wire.as_handed_over();
    let shape = Shape::of(wire, settings, plan);
    let mut cpus = pairs(settings, far_cpus);
    // At loopback, whose sockets are bound to no other address or interface.
    let path = PathOptions { mss: settings.path.mss, ..PathOptions::default() };
    // What was asked for is of this side alone.
    let mut sides = (socket_settings(&Settings { pace: None, path, ..settings.clone() }), SocketSettings::default());
    if shape.from_far {
        // The payload comes from the far side.
        cpus.iter_mut().for_each(|(near, far)| std::mem::swap(near, far));
        std::mem::swap(&mut sides.0, &mut sides.1);
    }
    let (kind, (settings, far_settings)) = (kind(wire.carrier), sides);
    let bare = Bare { kind, exchange: shape.exchange, size: shape.size, wait: plan.wait, cpus, settings, far_settings };
    let mut found = measured(&bare)?;
    let mut text = shape.text;
    if let (Some(hop), Exchange::PingPong { .. }) = (&wire.behind, shape.exchange) {
        let (out, back) = (hop.out(wire.operations).mean_bytes(), hop.back(wire.operations).mean_bytes());
        let exchange = Exchange::PingPong { answer: back as usize };
        let hop_bare = Bare { kind: self::kind(hop.carrier), exchange, size: (out as usize).max(1), ..bare };
        found = in_turn(found, measured(&hop_bare)?);
        text = format!("{text}, and then {}", hop.name);
    }
    let operations_per_s = found.messages_per_s / shape.messages;
    Ok(PlainLoop {
        operations_per_s,
        payload_bits_per_s: 8.0 * wire.payload_bytes * operations_per_s,
        latency_ns: found.p50_ns,
        cost_ns: found.cost_ns.map(|cost_ns| cost_ns * shape.messages),
        looks: 1,
        spread: 0.0,
        shape: text,
    })
}

/// The sockets that a look opens at most, in as much time again as it measures.
const SOCKETS_MAX: u32 = 256;

/// Returns whether bare sockets can do what a plan does, in the time of a look.
#[must_use]
pub fn has_plain_loop(wire: &OnTheWire) -> bool {
    wire.theory.is_none() && wire.sockets <= SOCKETS_MAX
}

/// The exchange of bare sockets that stands for a plan.
struct Shape {
    exchange: Exchange,
    /// Bytes of a message.
    size: usize,
    /// Messages of an operation.
    messages: f64,
    /// Whether the side that sends is the far one.
    from_far: bool,
    text: String,
}

impl Shape {
    fn of(wire: &OnTheWire, settings: &Settings, plan: &Plan) -> Shape {
        let (out, back) = (wire.out(), wire.back());
        let bytes = |way: Way| (way.mean_bytes().round() as usize).max(1);
        let by = match wire.carrier {
            Carrier::Tcp => "by TCP",
            Carrier::Udp => "by UDP",
            Carrier::Unix => "by Unix sockets",
        };
        let in_flight = u64::from(plan.window) * u64::from(plan.channels);
        let lone = plan.test == Test::Latency || (in_flight == 1 && plan.test != Test::Updates);
        let answer = bytes(back);
        let text = format!("{} B out and {answer} B back {by}", bytes(out));
        let whole = |exchange, text| Shape { exchange, size: bytes(out), messages: 1.0, from_far: false, text };
        if settings.reconnect {
            return whole(Exchange::Connect { answer }, format!("a connection for {text}"));
        }
        if lone && wire.messages_per_operation() <= 1.0 {
            return whole(Exchange::PingPong { answer }, format!("one at a time, {text}"));
        }
        let threads = pairs(settings, &[]).len();
        let sockets = (wire.sockets as usize).div_ceil(threads);
        if plan.test == Test::Updates || plan.unbounded || out.messages == 0.0 || back.messages == 0.0 {
            let from_far = out.messages == 0.0;
            let way = if from_far { back } else { out };
            let text = match sockets {
                1 => format!("{} B one way {by}", bytes(way)),
                _ => format!("{} B one way on each of {} sockets {by}", bytes(way), wire.sockets),
            };
            let (exchange, size) = (Exchange::OneWay { sockets }, bytes(way));
            return Shape { exchange, size, messages: way.messages, from_far, text };
        }
        let operations = if plan.test == Test::Latency { 1 } else { in_flight };
        let messages = operations as f64 * wire.messages_per_operation();
        let bound = wire.in_flight_max.map_or(f64::INFINITY, |most| (most * u64::from(plan.channels)) as f64);
        let messages = (messages.min(bound) / (threads * sockets) as f64).max(1.0);
        // An answer to each message, or one answer to a group of them, or a group of answers to one.
        let (group, answers) = match (out.messages / back.messages, back.messages / out.messages) {
            (outs, _) if outs >= 2.0 => (outs.round() as usize, 1),
            (_, backs) if backs >= 2.0 => (1, backs.round() as usize),
            _ => (1, 1),
        };
        let groups = (messages / group.max(answers) as f64).ceil().max(1.0) as usize;
        let exchange = Exchange::Windowed(Window { sockets, groups, messages: group, answers, answer });
        let text = match sockets {
            1 => format!("{:.0} in flight, {text}", messages.ceil()),
            _ => format!("{:.0} in flight on each of {} sockets, {text}", messages.ceil(), wire.sockets),
        };
        Shape { exchange, size: bytes(out), messages: out.messages, from_far: false, text }
    }
}

const fn kind(carrier: Carrier) -> Kind {
    match carrier {
        Carrier::Tcp => Kind::Tcp,
        Carrier::Udp => Kind::Udp,
        Carrier::Unix => Kind::Unix,
    }
}

/// Combines the findings of two exchanges that follow one another.
fn in_turn(one: Found, other: Found) -> Found {
    let sum = |one: Option<f64>, other: Option<f64>| one.zip(other).map(|(one, other)| one + other);
    Found {
        messages_per_s: (one.messages_per_s.recip() + other.messages_per_s.recip()).recip(),
        p50_ns: sum(one.p50_ns, other.p50_ns),
        cost_ns: sum(one.cost_ns, other.cost_ns),
    }
}

fn measured(bare: &Bare) -> Result<Found, Error> {
    bare.measure().map_err(|error| Error::Failed(format!("measuring the plain loop of bare sockets: {error}")))
}

/// Returns the processors of the near and the far threads.
fn pairs(settings: &Settings, far_cpus: &[usize]) -> Vec<(Option<usize>, Option<usize>)> {
    let threads = if settings.channels == 1 { 1 } else { settings.cpus.len().clamp(1, settings.channels as usize) };
    let far = |index: usize| far_cpus.get(index % far_cpus.len().max(1)).copied();
    (0..threads).map(|index| (settings.cpus.get(index).copied(), far(index))).collect()
}

/// The rates of Ethernet in bits per second, of IEEE 802.3.
const ETHERNET: [f64; 10] = [10e6, 100e6, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 50e9, 100e9];

/// Returns the limit of a measurement: its least bound, of which that of the line is one where its rate is known, and the plain loop where
/// there is none.
#[must_use]
pub fn limit(
    wire: &OnTheWire,
    opened: &Opened,
    line: Line,
    plain_loop: Option<&PlainLoop>,
    round_trip: Option<RoundTrip>,
    found: &Measurement,
) -> Option<Limit> {
    let model = opened.model.map(|model| modelled(wire, model, opened.far_ends));
    let is_away = opened.model.is_none() && !opened.is_here();
    let has_line = wire.carrier != Carrier::Unix && opened.model.is_none();
    let mtu = found
        .connection
        .as_ref()
        .and_then(|connection| connection.mss_asked)
        .map_or(line.mtu, |mss| mtu_of(mss, opened).min(line.mtu));
    let path = |rate: f64| path(wire.carrier == Carrier::Udp, opened.remote, rate, mtu);
    let conditions = Conditions {
        line: line.rate.filter(|_| has_line).and_then(path),
        lines: if line.rate.is_none() && has_line && is_away {
            ETHERNET.into_iter().filter_map(path).collect()
        } else {
            Vec::new()
        },
        is_away,
        model: model.as_ref(),
        round_trip,
    };
    let mut limit = limits::limit(found, wire, &conditions, plain_loop)?;
    if let Some(model) = opened.model {
        limit.assumes.push_str(&streams_assume(model));
    }
    Some(limit)
}

/// Returns the bytes of an IP packet with a segment of this size, which counts the options of TCP.
fn mtu_of(mss: u32, opened: &Opened) -> u32 {
    const TCP_HEADER: u32 = 20;
    mss + TCP_HEADER + if opened.remote.is_some_and(|remote| remote.is_ipv6()) { 40 } else { 20 }
}

fn path(datagrams: bool, remote: Option<SocketAddr>, rate: f64, mtu: u32) -> Option<Path> {
    let ip = if remote.is_some_and(|remote| remote.is_ipv6()) { Ip::V6 } else { Ip::V4 };
    let transport = if datagrams { Transport::Udp } else { Transport::Tcp { timestamps: true } };
    Path::new(limits::Line::new(rate, mtu), ip, transport).ok()
}

/// Returns the simulated network as messages of the mean size find it.
fn modelled(wire: &OnTheWire, (out, back): (hodo_sim::Model, hodo_sim::Model), far_ends: u32) -> Model {
    let way = |model: hodo_sim::Model, way: Way, processors: u32| {
        let bytes = way.mean_bytes().round() as u64;
        let is_stream = model.transport == hodo_sim::Transport::Stream;
        let cost_ns = model.cost.as_nanos() as f64;
        ModelledWay {
            transit_ns: model.transit(bytes).as_nanos() as f64,
            cost_ns,
            payload_bits_per_s: model.payload_bits_per_s(bytes.max(1)),
            buffer_bits_per_s: model.buffer_bits_per_s().filter(|_| is_stream),
            datagram_cost_ns: (!is_stream).then_some(cost_ns),
            processors,
        }
    };
    Model { out: way(out, wire.out(), 1), back: way(back, wire.back(), far_ends), far_ends }
}

/// Returns the counters of TCP as a result has them.
pub(crate) fn tcp_times(counters: TcpCounters) -> TcpTimes {
    TcpTimes {
        connections: counters.connections,
        busy_s: counters.busy.as_secs_f64(),
        receive_window_limited_s: counters.receive_window_limited.as_secs_f64(),
        send_buffer_limited_s: counters.send_buffer_limited.as_secs_f64(),
        application_limited: counters.application_limited,
        min_rtt_ns: counters.min_rtt.map(|rtt| rtt.as_nanos() as u64),
        rtt_ns: counters.rtt.map(|rtt| rtt.as_nanos() as u64),
        congestion_window: counters.congestion_window,
        send_buffer_bytes: counters.send_buffer,
        segments: counters.segments,
        retransmitted: counters.retransmitted,
        spurious: counters.spurious,
        out_of_order: counters.out_of_order,
        timeouts: counters.timeouts,
    }
}
