use super::super::{Basis, Finding, Kind, PathFacts, Price};
use super::{ASSUMED_LINE, Answer, Facts, Topic, fine, found, unknown};
use hodo_io::probe::Occupancy;
use hodo_measure::limits::Carrier;
use hodo_measure::units::text::{bits_per_s, bytes, percent, time_ns};
use std::time::Duration;

/// The default of `net.core.rmem_max` in kernels without other settings.
const REQUESTABLE: u64 = 212_992;
/// The largest buffers to which TCP grows in kernels without other settings: receive and send.
const GROWN: (u64, u64) = (6 << 20, 4 << 20);
/// A larger buffer than this holds no stream over loopback back: its window is under half of it.
const BINDING: u64 = 1 << 20;
/// A smaller loss is within the spread of short looks.
const LOSS_LEAST: f64 = 0.15;
/// With longer pauses, short looks compare pauses.
const PAUSE_MOST: Duration = Duration::from_millis(20);
/// The round-trip that is assumed where none was measured.
const ROUND_TRIP: Duration = Duration::from_millis(1);
/// The round-trip of a path that is long for its congestion control: across a country.
const LONG: Duration = Duration::from_millis(20);
/// Bytes of payload of a full segment.
const SEGMENT: f64 = 1448.0;
/// Bytes of memory that the kernel counts for a full packet in a buffer.
const PACKET_MEMORY: f64 = 2304.0;
/// Bytes on the line of a full Ethernet frame.
const FRAME: f64 = 1538.0;

/// Judges the limits of socket buffers.
pub(super) fn socket_limits(facts: &Facts) -> Vec<Answer> {
    let of_tcp = (facts.carrier() != Some(Carrier::Udp)).then(|| tcp_buffers(facts));
    of_tcp.into_iter().chain([requested_buffers(facts)]).collect()
}

fn tcp_buffers(facts: &Facts) -> Answer {
    let topic = Topic::SocketLimits;
    let limits = &facts.limits;
    let Some((receive_limit, send_limit)) = limits.tcp_receive.zip(limits.tcp_send) else {
        return unknown(topic, "tcp", "net.ipv4.tcp_rmem and tcp_wmem cannot be read");
    };
    let on_path = facts.path.as_ref().filter(|path| !path.route.is_local).and_then(PathFacts::exchange);
    let round_trip = on_path.unwrap_or(ROUND_TRIP);
    let (attainable, whose) = facts.attainable();
    // About half of a receive buffer is payload, the rest is the memory of packets that are not full.
    let window = send_limit.min(receive_limit / 2);
    let bound = 8.0 * window as f64 / round_trip.as_secs_f64().max(1e-6);
    let derived = 1.0 - bound / attainable;
    let measured = facts.tcp.system.zip(facts.tcp.large_buffers).map(|(system, large)| 1.0 - system / large);
    let is_small = receive_limit < BINDING || send_limit < BINDING;
    let measured = measured.filter(|share| is_small && *share >= LOSS_LEAST && facts.is_quiet());
    let sizes =
        format!("TCP's buffers grow to {} for receive and {} for send", bytes(receive_limit), bytes(send_limit));
    if measured.is_none() && derived < LOSS_LEAST {
        return fine(topic, "tcp", sizes);
    }
    let when = match on_path {
        Some(_) => format!("over the {} of this path", time_ns(round_trip.as_nanos() as f64)),
        None => format!("over a path of {}", time_ns(round_trip.as_nanos() as f64)),
    };
    let evidence = format!("{sizes} (net.ipv4.tcp_rmem, tcp_wmem): a window of about {}", bytes(window));
    let (share, basis, text) = match (measured, facts.tcp.system.zip(facts.tcp.large_buffers)) {
        (Some(share), Some((system, large))) if share >= derived => {
            let text = format!(
                "{} of the rate: TCP over loopback has {} with these, {} with large ones",
                percent(share),
                bits_per_s(system),
                bits_per_s(large)
            );
            (share, Basis::Measured, text)
        }
        _ => {
            let text = format!(
                "{} of the rate: a window each round-trip is {} {when}, of {whose} {}",
                percent(derived),
                bits_per_s(bound),
                bits_per_s(attainable)
            );
            (derived, Basis::Derived, text)
        }
    };
    let needed = (attainable * round_trip.as_secs_f64() / 8.0) as u64;
    let (receive, send) = (GROWN.0.max(2 * needed).next_power_of_two(), GROWN.1.max(needed).next_power_of_two());
    let remedy = format!("sysctl -w net.ipv4.tcp_rmem='4096 131072 {receive}' net.ipv4.tcp_wmem='4096 16384 {send}'");
    let price = Price::of_rate(share, basis, text);
    // Nobody set the kernel's own defaults, and whether they bind is known only with the line.
    let is_set = receive_limit < GROWN.0 || send_limit < GROWN.1 || facts.line().is_some();
    let kind = if is_set { Kind::Fault } else { Kind::Cost };
    found(topic, "tcp", Finding { kind, evidence, price, remedy })
}

fn requested_buffers(facts: &Facts) -> Answer {
    let topic = Topic::SocketLimits;
    let Some((receive, send)) = facts.limits.receive.zip(facts.limits.send) else {
        return unknown(topic, "requested", "net.core.rmem_max and wmem_max cannot be read in this namespace");
    };
    let sizes = format!("a program may request {} for receive and {} for send", bytes(receive), bytes(send));
    let least = receive.min(send);
    if least >= REQUESTABLE {
        return fine(topic, "requested", sizes);
    }
    let packets = receive as f64 / PACKET_MEMORY;
    let fills = Duration::from_secs_f64(packets * 8.0 * FRAME / facts.line().unwrap_or(ASSUMED_LINE));
    let evidence = format!(
        "{sizes} (net.core.rmem_max, wmem_max): {packets:.0} full packets, {} at {}{}",
        time_ns(fills.as_nanos() as f64),
        bits_per_s(facts.line().unwrap_or(ASSUMED_LINE)),
        if facts.line().is_some() { "" } else { " (assumed)" }
    );
    let share = 1.0 - least as f64 / REQUESTABLE as f64;
    let text = format!("{} of a burst that the kernel's own default of {} takes", percent(share), bytes(REQUESTABLE));
    let remedy = "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304".to_owned();
    let price = Price::of_rate(share, Basis::Derived, text);
    found(topic, "requested", Finding { kind: Kind::Fault, evidence, price, remedy })
}

impl Facts {
    /// Returns the transport of the link, if one is examined.
    fn carrier(&self) -> Option<Carrier> {
        self.path.as_ref().and_then(|path| path.carrier)
    }

    /// Returns whether a short look at a rate means something: nobody stopped this process or had its processors.
    pub(super) fn is_quiet(&self) -> bool {
        let was_stopped = self.watched.throttling.as_ref().is_some_and(|each| each.throttled_periods > 0);
        let is_free = |each: &Occupancy| each.share > 0.8 && each.longest_pause < PAUSE_MOST;
        !was_stopped && self.occupancy.iter().all(is_free)
    }
}

/// Returns why a congestion control does not fit as the system's choice, and the share of the rate that it gives away.
fn unfit(name: &str) -> Option<(&'static str, f64)> {
    match name {
        // A window that falls to a half and grows back by a packet each round-trip is on average at three quarters.
        "reno" => Some(("after a loss it grows back by one packet each round-trip", 0.25)),
        "vegas" | "nv" | "cdg" => {
            Some(("it takes a longer round-trip for a full line, and gives way to every other stream", 0.5))
        }
        "lp" => Some(("it gives way to every other stream on purpose", 0.5)),
        "dctcp" => Some(("without switches that mark packets it sees losses too late", 0.5)),
        _ => None,
    }
}

/// Judges the congestion control of new connections.
pub(super) fn congestion_control(facts: &Facts) -> Vec<Answer> {
    let topic = Topic::CongestionControl;
    let Some(name) = facts.host.congestion_control.as_deref() else {
        return vec![unknown(topic, "", "the kernel does not report it")];
    };
    if matches!(facts.carrier(), Some(Carrier::Udp | Carrier::Unix)) {
        return vec![fine(topic, "", format!("{name}; the link is not over TCP"))];
    }
    let others = &facts.host.congestion_controls;
    let better = ["cubic", "bbr"].into_iter().find(|each| *each != name && others.iter().any(|other| other == each));
    let remedy = match better {
        Some(better) => format!(
            "sysctl -w net.ipv4.tcp_congestion_control={better}   # or for one run: hodo bench --congestion {better}"
        ),
        None => "modprobe tcp_cubic; sysctl -w net.ipv4.tcp_congestion_control=cubic".to_owned(),
    };
    if let Some((why, share)) = unfit(name) {
        return vec![found(topic, "", unfit_finding(facts, name, (why, share), remedy))];
    }
    let compared = facts.tcp.system.zip(facts.tcp.other_control.as_ref()).filter(|_| facts.is_quiet());
    let Some((system, (other, rate))) = compared.filter(|(system, (_, rate))| 1.0 - system / rate >= LOSS_LEAST) else {
        return vec![fine(topic, "", name)];
    };
    let share = 1.0 - system / rate;
    let evidence = format!(
        "new connections use {name}; TCP over loopback has {} with it, {} with {other}",
        bits_per_s(system),
        bits_per_s(*rate)
    );
    let text = format!("{} of the rate where processors bind, as within one room", percent(share));
    let price = Price::of_rate(share, Basis::Measured, text);
    // It was chosen for paths on which it gains.
    vec![found(topic, "", Finding { kind: Kind::Cost, evidence, price, remedy })]
}

fn unfit_finding(facts: &Facts, name: &str, (why, share): (&str, f64), remedy: String) -> Finding {
    let on_path = facts.path.as_ref().filter(|path| !path.route.is_local).and_then(PathFacts::exchange);
    let long = on_path.unwrap_or(LONG).max(LONG);
    let line = facts.line().unwrap_or(ASSUMED_LINE);
    let recovery = |span: Duration| {
        let packets = line * span.as_secs_f64() / (8.0 * SEGMENT);
        Duration::from_secs_f64(packets / 2.0 * span.as_secs_f64())
    };
    let short = on_path.filter(|span| *span < long).map(|span| {
        let (span_text, time) = (time_ns(span.as_nanos() as f64), time_ns(recovery(span).as_nanos() as f64));
        format!("; it refills this path of {span_text} in {time}, and longer ones much later")
    });
    let evidence = format!("new connections use {name}: {why}{}", short.unwrap_or_default());
    let text = format!(
        "{} of the rate over a path of {} at {}, where one loss takes {} to grow back",
        percent(share),
        time_ns(long.as_nanos() as f64),
        bits_per_s(line),
        time_ns(recovery(long).as_nanos() as f64)
    );
    Finding { kind: Kind::Fault, evidence, price: Price::of_rate(share, Basis::Derived, text), remedy }
}
