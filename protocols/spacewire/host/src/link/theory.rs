//! The limit of a link by the theory of its line.

use super::options::{Far, LineOptions, Options};
use hodo_measure::limits::Theory;
use hodo_measure::units::text::{formula_rate, formula_time};
use hodo_measure::{Mode, Plan};
use hodo_spacewire::formula::{self, CutThrough, Transaction};

/// Returns the limit of a plan over a line.
pub(super) fn theory(line: &LineOptions, options: &Options, plan: &Plan, is_model: bool) -> Theory {
    let (there, back) = paths(line, options, is_model);
    let (out, answer) = packets(options, plan, (there, back));
    let ways = [Way::of(line, out, answer, true), Way::of(line, answer, out, false)];
    let busier = ways.into_iter().flatten().reduce(|a, b| if b.per_s(line) < a.per_s(line) { b } else { a });
    let busier = busier.expect("an operation has a packet");
    let seconds: f64 = [out, answer].into_iter().flatten().map(|packet| through(line, packet)).sum();
    let latency_ns = seconds * 1e9;
    Theory {
        operations_per_s: busier.per_s(line),
        rate_formula: busier.formula(line),
        latency_ns,
        latency_formula: format!(
            "{} at {}: {}",
            [out, answer].into_iter().flatten().map(Packet::text).collect::<Vec<_>>().join(", then "),
            bit_rate(line.rate_bps),
            formula_time(latency_ns)
        ),
        assumes: assumptions(line, there.max(back)),
        is_model,
    }
}

/// Returns the transaction of an operation of `far=rmap`, with paths of so many bytes there and back.
pub(super) fn transaction(mode: Mode, length: u64, (there, back): (u64, u64)) -> Transaction {
    let alone = if mode == Mode::Receive { Transaction::read(length) } else { Transaction::write(length) };
    alone.through(there, back)
}

/// A packet of an operation as it leaves: its bytes on average, and how many of them are path.
#[derive(Debug, Clone, Copy)]
struct Packet {
    bytes: f64,
    path: u64,
}

impl Packet {
    fn text(self) -> String {
        let path = if self.path > 0 { format!(", {} of them path", self.path) } else { String::new() };
        format!("{:.0} B{path}", self.bytes)
    }
}

/// Returns the bytes of path in front of packets, there and back.
fn paths(line: &LineOptions, options: &Options, is_model: bool) -> (u64, u64) {
    if is_model {
        return (u64::from(line.routers), u64::from(line.routers));
    }
    (options.path.len() as u64, options.back_path.len() as u64)
}

/// Returns the packets of an operation, out and back.
fn packets(options: &Options, plan: &Plan, (there, back): (u64, u64)) -> (Option<Packet>, Option<Packet>) {
    let size = plan.size.mean();
    if let Far::Rmap(_) = options.far {
        let exchange = transaction(plan.mode, size.round() as u64, (there, back));
        let packet = |bytes: u64, path| Some(Packet { bytes: bytes as f64, path });
        return (packet(exchange.command, there), packet(exchange.reply, back));
    }
    let packet = |path: u64| Some(Packet { bytes: size + path as f64, path });
    match plan.mode {
        Mode::Both => (packet(there), packet(back)),
        Mode::Send => (packet(there), None),
        Mode::Receive => (None, packet(back)),
    }
}

/// One direction of the busiest link on the way of its packets.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Bits from the beginning of a packet to that of the next.
    bits: f64,
    /// Those of them during which a router switches.
    gap_bits: f64,
    has_fcts: bool,
    /// Whether time-codes go this way: those of the end that is measured from.
    has_time_codes: bool,
}

impl Way {
    /// Returns the direction that `packet` takes, beside `against` the other way for each, on the busiest link: the first one, with all of
    /// its path, or one behind a router, which has deleted a byte of it and lets a gap.
    fn of(line: &LineOptions, packet: Option<Packet>, against: Option<Packet>, is_out: bool) -> Option<Way> {
        let packet = packet?;
        let routers = u64::from(line.routers);
        let on = |link: u64| {
            let left = |packet: Packet, passed: u64| packet.bytes - packet.path.min(passed) as f64;
            let nchars_back = against.map_or(0.0, |against| left(against, routers - link) + 1.0);
            let sent = bits(left(packet, link)) + nchars_back / 2.0;
            let gap_bits =
                if link > 0 { CutThrough::SPW_10X.gap_bits_beside(line.rate_bps, sent, nchars_back) } else { 0.0 };
            Way { bits: sent + gap_bits, gap_bits, has_fcts: against.is_some(), has_time_codes: is_out }
        };
        (0..=routers).map(on).reduce(|a, b| if b.bits > a.bits { b } else { a })
    }

    /// Returns the most packets a second.
    fn per_s(self, line: &LineOptions) -> f64 {
        (line.rate_bps - self.taken(line)).max(1.0) / self.bits
    }

    /// Returns the rate that time-codes take.
    fn taken(self, line: &LineOptions) -> f64 {
        if self.has_time_codes { 14.0 * line.time_codes_per_s } else { 0.0 }
    }

    fn formula(self, line: &LineOptions) -> String {
        let (rate, taken) = (bit_rate(line.rate_bps), self.taken(line));
        let rate = if taken > 0.0 { format!("({rate} - {} for time-codes)", bit_rate(taken)) } else { rate };
        let fcts = if self.has_fcts { " and the FCTs for one" } else { "" };
        let gap = if self.gap_bits > 0.0 {
            format!(", {:.1} of them while a router switches", self.gap_bits)
        } else {
            String::new()
        };
        format!("{rate} / {:.1} bit a packet{fcts}{gap} = {}", self.bits, formula_rate(self.per_s(line)))
    }
}

fn bits(size: f64) -> f64 {
    let (none, one) = (formula::packet_bits(0) as f64, formula::packet_bits(1) as f64);
    none + size * (one - none)
}

/// Returns the least time of a packet through the routers, in seconds.
fn through(line: &LineOptions, packet: Packet) -> f64 {
    let LineOptions { rate_bps, cable_m, routers, .. } = *line;
    let delay = formula::latency_through(rate_bps, 0, 0.0, u64::from(routers), &CutThrough::SPW_10X)
        - formula::latency(rate_bps, u64::from(routers), 0.0);
    formula::latency(rate_bps, packet.bytes.round() as u64, cable_m * (f64::from(routers) + 1.0)) + delay
}

fn assumptions(line: &LineOptions, path: u64) -> String {
    let LineOptions { rate_bps, routers, cable_m, time_codes_per_s } = *line;
    let mut text = format!(
        "SpaceWire at {} (ECSS-E-ST-50-12C): 10 bit a byte, 4 bit an EOP, 4 bit an FCT for 8",
        bit_rate(rate_bps)
    );
    if routers > 0 || path > 0 {
        text += &format!("; {routers} routers like the SpW-10X, {path} bytes of path");
    }
    if cable_m > 0.0 {
        text += &format!("; {cable_m} m of cable a link");
    }
    if time_codes_per_s > 0.0 {
        text += &format!("; {time_codes_per_s} time-codes a second, sent from here");
    }
    text
}

fn bit_rate(bps: f64) -> String {
    format!("{} Mbit/s", (bps / 1e3).round() / 1e3)
}
