//! The limit of a link by the theory of its line.

use crate::options::{Far, LineOptions, Options};
use hodo_measure::limits::{Bound, Theory};
use hodo_measure::units::text::{formula_rate, formula_time};
use hodo_measure::{Binding, Mode, Plan};
use hodo_spacewire::end::CREDIT_MAX;
use hodo_spacewire::formula::{self, CutThrough, Transaction};

/// Returns the limit of a plan over a line.
pub(crate) fn theory(line: &LineOptions, options: &Options, plan: &Plan, is_model: bool) -> Theory {
    let (there, back) = paths(line, options, is_model);
    let (out, answer) = packets(options, plan, (there, back));
    let ways = [ways(line, out, answer, true), ways(line, answer, out, false)].concat();
    let assumes = assumptions(line, there.max(back));
    let busiest = least(&ways, |way| way.per_s(line));
    let mut bounds = vec![busiest.bound(line, assumes.clone())];
    let scarcest = least(&ways, |way| way.credit_per_s(line));
    // The formula of the window holds where the line is the wider one.
    if scarcest.credit_per_s(line) < busiest.per_s(line) {
        bounds.push(scarcest.credit_bound(line, assumes.clone()));
    }
    let lone = Lone::of(line, &[out, answer], is_model);
    let latency_ns = lone.seconds * 1e9;
    Theory {
        bounds,
        latency_ns,
        latency_formula: format!(
            "{} at {}, {}: {}",
            [out, answer].into_iter().flatten().map(Packet::text).collect::<Vec<_>>().join(", then "),
            bit_rate(line.rate_bps),
            lone.beside,
            formula_time(latency_ns)
        ),
        assumes,
        is_model,
    }
}

/// Returns the transaction of an operation of `far=rmap`, with paths of so many bytes there and back.
pub(crate) fn transaction(mode: Mode, length: u64, (there, back): (u64, u64)) -> Transaction {
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

/// One direction of a link on the way of its packets.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Bits from the beginning of a packet to that of the next.
    bits: f64,
    /// Those of them during which a router switches.
    gap_bits: f64,
    /// N-chars of a packet.
    nchars: f64,
    has_fcts: bool,
    /// Whether time-codes go this way: those of the end that is measured from.
    has_time_codes: bool,
    /// The delay of the router that takes the packets, in seconds: N-chars keep their place there until it is over.
    router_s: f64,
}

/// Returns the links that `packet` takes, in its direction, beside `against` the other way for each: the first one with all of its path, and
/// those behind routers, each of which has deleted a byte of it and lets a gap.
fn ways(line: &LineOptions, packet: Option<Packet>, against: Option<Packet>, is_out: bool) -> Vec<Way> {
    let Some(packet) = packet else { return Vec::new() };
    let routers = u64::from(line.routers);
    let router = CutThrough::SPW_10X;
    let on = |link: u64| {
        let left = |packet: Packet, passed: u64| packet.bytes - packet.path.min(passed) as f64;
        let nchars_back = against.map_or(0.0, |against| left(against, routers - link) + 1.0);
        let sent = bits(left(packet, link)) + nchars_back / 2.0;
        let gap_bits = if link > 0 { router.gap_bits_beside(line.rate_bps, sent, nchars_back) } else { 0.0 };
        Way {
            bits: sent + gap_bits,
            gap_bits,
            nchars: left(packet, link) + 1.0,
            has_fcts: against.is_some(),
            has_time_codes: is_out,
            router_s: if link < routers { router.through(line.rate_bps) } else { 0.0 },
        }
    };
    (0..=routers).map(on).collect()
}

/// Returns the way with the least of something.
fn least(ways: &[Way], of: impl Fn(&Way) -> f64) -> Way {
    let least = ways.iter().copied().reduce(|a, b| if of(&b) < of(&a) { b } else { a });
    least.expect("an operation has a packet")
}

impl Way {
    /// Returns the most packets a second.
    fn per_s(self, line: &LineOptions) -> f64 {
        (line.rate_bps - self.taken(line)).max(1.0) / self.bits
    }

    /// Returns the rate that time-codes take.
    fn taken(self, line: &LineOptions) -> f64 {
        if self.has_time_codes { 14.0 * line.time_codes_per_s } else { 0.0 }
    }

    /// Returns the most packets a second that credit allows.
    fn credit_per_s(self, line: &LineOptions) -> f64 {
        let rate_bps = (line.rate_bps - self.taken(line)).max(1.0);
        formula::credit_packets(rate_bps, self.bits - self.gap_bits, self.nchars, CREDIT_MAX, self.loop_s(line))
    }

    /// Returns the time from the end of eight N-chars to the use of the FCT for them.
    fn loop_s(self, line: &LineOptions) -> f64 {
        formula::credit_loop(line.rate_bps, line.cable_m, self.has_fcts) + self.router_s
    }

    fn credit_bound(self, line: &LineOptions, assumes: String) -> Bound {
        let operations_per_s = self.credit_per_s(line);
        let cycle_ns = f64::from(CREDIT_MAX) / self.nchars / operations_per_s * 1e9;
        let loop_ns = self.loop_s(line) * 1e9;
        Bound {
            binds: Binding::Window,
            operations_per_s,
            formula: format!(
                "{CREDIT_MAX} N-chars of credit / {:.0} a packet / {} ({} for 8 N-chars, {} until their FCT is back) = {}",
                self.nchars,
                formula_time(cycle_ns),
                formula_time(cycle_ns - loop_ns),
                formula_time(loop_ns),
                formula_rate(operations_per_s)
            ),
            assumes,
        }
    }

    fn bound(self, line: &LineOptions, assumes: String) -> Bound {
        let (binds, operations_per_s) = (Binding::Line, self.per_s(line));
        Bound { binds, operations_per_s, formula: self.formula(line), assumes }
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

/// The least time of a lone operation.
struct Lone {
    seconds: f64,
    /// The words for what it holds beside the bits of its packets.
    beside: String,
}

impl Lone {
    /// Adds up the packets of an operation, each of which is taken once the parity bit behind it is there.
    ///
    /// The NULL that an operation waits for is known of a simulated link alone, where the next one starts at the very moment at which
    /// the last one ends; through routers, and there and back, it may be none.
    fn of(line: &LineOptions, packets: &[Option<Packet>; 2], is_model: bool) -> Lone {
        let all = || packets.iter().flatten();
        let confirmed_s = formula::confirmation(line.rate_bps);
        let seconds: f64 = all().map(|packet| through(line, *packet) + confirmed_s).sum();
        let is_known = is_model && all().count() == 1 && line.routers == 0 && line.time_codes_per_s == 0.0;
        let null_s = if is_known { formula::rest_of_null(line.rate_bps, line.cable_m) } else { 0.0 };
        let null_bits = null_s * line.rate_bps;
        let null = if null_bits > 0.0 { format!("{null_bits:.0} bit of a NULL before it, ") } else { String::new() };
        let confirming = confirmed_s * line.rate_bps;
        Lone { seconds: seconds + null_s, beside: format!("{null}{confirming:.0} bit behind each that confirm it") }
    }
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
