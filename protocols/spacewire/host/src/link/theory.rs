//! The limit of a link by the theory of its line.

use super::options::{Far, LineOptions, Options};
use hodo_measure::limits::Theory;
use hodo_measure::units::text::{formula_rate, formula_time};
use hodo_measure::{Mode, Plan};
use hodo_spacewire::formula::{self, CutThrough, Load, Transaction};

/// Returns the limit of a plan over a line.
pub(super) fn theory(line: &LineOptions, options: &Options, plan: &Plan, is_model: bool) -> Theory {
    let size = plan.size.mean();
    let (there, back) = paths(line, options, is_model);
    let time_codes = formula::Load { reverse_nchars_per_s: 0.0, time_codes_per_s: line.time_codes_per_s };
    let assumes = assumptions(line, there.max(back));
    let of_packets = |bits: f64, name: &str| {
        let rate = left(line, time_codes) / bits;
        (
            rate,
            format!(
                "({} - {} for time-codes) / {bits:.1} bit a packet{name} = {}",
                bit_rate(line.rate_bps),
                bit_rate(taken(line)),
                formula_rate(rate)
            ),
        )
    };
    let (operations_per_s, rate_formula, latency_ns) = match (&options.far, plan.mode) {
        (Far::Rmap(_), mode) => {
            let length = size.round() as u64;
            let exchange = if mode == Mode::Receive { Transaction::read(length) } else { Transaction::write(length) };
            let exchange = Transaction { command: exchange.command + there, reply: exchange.reply + back };
            let rate = exchange.pipelined(left(line, time_codes));
            let latency = through(line, exchange.command - there, there) + through(line, exchange.reply - back, back);
            let formula = format!(
                "{} / the busier of {} and {} B with their FCTs = {}",
                bit_rate(left(line, time_codes)),
                exchange.command,
                exchange.reply,
                formula_rate(rate)
            );
            (rate, formula, latency * 1e9)
        }
        (_, Mode::Both) => {
            // FCTs for the other way's N-chars are in it. Either way may be the busier one.
            let bits = busiest(line, size, (there, back), true).max(busiest(line, size, (back, there), true));
            let (rate, text) = of_packets(bits, " and the FCTs for one");
            let whole = size.round() as u64;
            (rate, text, (through(line, whole, there) + through(line, whole, back)) * 1e9)
        }
        (_, mode) => {
            let path = if mode == Mode::Receive { back } else { there };
            let (rate, text) = of_packets(busiest(line, size, (path, 0), false), "");
            (rate, text, through(line, size.round() as u64, path) * 1e9)
        }
    };
    let latency_formula = format!(
        "{size:.0} B and {} of path at {}: {}",
        there.max(back),
        bit_rate(line.rate_bps),
        formula_time(latency_ns)
    );
    Theory { operations_per_s, rate_formula, latency_ns, latency_formula, assumes, is_model }
}

/// Returns the bytes of path in front of packets, there and back.
fn paths(line: &LineOptions, options: &Options, is_model: bool) -> (u64, u64) {
    if is_model {
        return (u64::from(line.routers), u64::from(line.routers));
    }
    (options.path.len() as u64, options.back_path.len() as u64)
}

/// Returns the bits that a packet takes of the busiest link on its way: the first one, with all of its path, or one behind a router, which
/// has deleted a byte of it and lets a gap. `path` is that there and that of packets back, for which FCTs go there if `is_both`.
fn busiest(line: &LineOptions, size: f64, path: (u64, u64), is_both: bool) -> f64 {
    let routers = u64::from(line.routers);
    let on = |link: u64| {
        let gap = if link > 0 { formula::CutThrough::SPW_10X.gap_bits(line.rate_bps) } else { 0.0 };
        let (there, back) = (path.0.saturating_sub(link), path.1.saturating_sub(routers - link));
        let fcts = if is_both { (size + back as f64 + 1.0) / 2.0 } else { 0.0 };
        bits(size + there as f64) + gap + fcts
    };
    (0..=routers).map(on).fold(0.0, f64::max)
}

fn bits(size: f64) -> f64 {
    let (none, one) = (formula::packet_bits(0) as f64, formula::packet_bits(1) as f64);
    none + size * (one - none)
}

/// Returns the rate that time-codes leave.
fn left(line: &LineOptions, load: Load) -> f64 {
    debug_assert!(load.reverse_nchars_per_s == 0.0, "FCTs are counted with the packets");
    (line.rate_bps - taken(line)).max(1.0)
}

/// Returns the rate that time-codes take.
fn taken(line: &LineOptions) -> f64 {
    14.0 * line.time_codes_per_s
}

/// Returns the least time through the routers, in seconds.
fn through(line: &LineOptions, size: u64, path: u64) -> f64 {
    let LineOptions { rate_bps, cable_m, routers, .. } = *line;
    let delay = formula::latency_through(rate_bps, 0, 0.0, u64::from(routers), &CutThrough::SPW_10X)
        - formula::latency(rate_bps, u64::from(routers), 0.0);
    formula::latency(rate_bps, size + path, cable_m * (f64::from(routers) + 1.0)) + delay
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
        text += &format!("; {time_codes_per_s} time-codes a second");
    }
    text
}

fn bit_rate(bps: f64) -> String {
    format!("{} Mbit/s", (bps / 1e3).round() / 1e3)
}
