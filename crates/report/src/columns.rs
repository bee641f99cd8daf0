//! The columns of a table of measurements, for the terminal and for the page.

use crate::figure::{self, Figure};
use crate::layout::{Align, Cell, Column, Tone, clean};
use crate::sparkline::sparkline;
use crate::units::{self, UNKNOWN};
use hodo_measure::{Estimate, Latency, Loss, Measurement, State, Test};

/// The head of the column with the rate over the run, which the page draws instead.
pub(crate) const OVER_TIME: [&str; 2] = ["", "over time"];

/// The head of the column with the share of the limit, which the page draws as well.
pub(crate) const OF_LIMIT: [&str; 2] = ["of", "limit"];

/// The head of the column with the verdict, which the page has further in front.
pub(crate) const VERDICT: [&str; 2] = ["", "verdict"];

/// The head of the column with the payload rate.
pub(crate) const PAYLOAD_RATE: [&str; 2] = ["payload", "rate"];

/// Returns the columns in reading order; the lowest `keep` goes first where the terminal is narrow: CPU before all others, the limit,
/// what binds and the verdict hardly ever.
pub(crate) fn columns(group: &[&Measurement]) -> Vec<Column> {
    let Some(first) = group.first() else { return Vec::new() };
    let about_latency = Figure::of(first) == Figure::Latency;
    let is_in_operations = Figure::of(first) == Figure::OperationRate;
    let operations_lead = about_latency || is_in_operations;
    let waits_differ = group.iter().any(|m| m.wait != first.wait);
    let any_beside = group.iter().any(|m| m.beside.is_some());
    let any_loss = group.iter().any(|m| m.loss.lost > 0);
    let column = |head, align, keep, cell: &dyn Fn(&Measurement) -> Cell| Column {
        head,
        align,
        keep,
        cells: group.iter().map(|m| cell(m)).collect(),
    };
    let (left, right) = (Align::Left, Align::Right);
    vec![
        column(["", "mode"], left, 99, &|m| figure::mode_text(m.mode).into()),
        column(["", "size"], right, 99, &|m| Cell { sort: figure::mean_size(m), ..figure::size_text(m).into() }),
        column(["window", "×chan."], right, 88, &|m| {
            let in_flight = m.in_flight().map(|in_flight| in_flight as f64);
            Cell { sort: in_flight, ..figure::window_text(m).into() }
        }),
        column(["", "waits"], left, 84, &|m| if waits_differ { clean(&m.wait) } else { String::new() }.into()),
        column(["", "beside"], left, 85, &|m| {
            let other = figure::beside_text(m).or_else(|| any_beside.then(|| "nothing".to_owned()));
            other.unwrap_or_default().into()
        }),
        column(["rate", "asked"], right, 85, &|m| Cell {
            sort: m.rate_asked,
            ..m.rate_asked.map_or_else(String::new, units::operations_per_s).into()
        }),
        column(["", "rate"], right, if is_in_operations { 97 } else { 50 }, &|m| {
            figure_cell(Figure::OperationRate.value(m), units::operations_per_s)
        }),
        column(PAYLOAD_RATE, right, if is_in_operations { 50 } else { 97 }, &|m| {
            figure_cell(Figure::PayloadRate.value(m), units::bits_per_s)
        }),
        column(["payload", "sent"], right, 89, &sent),
        column(["", "±"], right, 60, &|m| {
            let estimate = if operations_lead { &m.rate.operations_per_s } else { &m.rate.payload_bits_per_s };
            figure_cell(figure::half_width(estimate), |half| format!("{:.1} %", half * 100.0))
        }),
        column(["time", "1/rate"], right, 71, &|m| {
            // The others have a schedule, or one operation at a time.
            let is_full = matches!(m.test, Test::Rate | Test::Random | Test::Channels);
            figure_cell(figure::spacing_ns(m).filter(|_| is_full), units::time_ns)
        }),
        column(["time", "p50"], right, if about_latency { 96 } else { 86 }, &|m| time(m, |latency| latency.p50)),
        column(["time", "p99"], right, 70, &|m| time(m, |latency| latency.p99)),
        column(["CPU %", "here"], right, 12, &|m| whole(m.cpu.local.map(|process| process.percent))),
        column(["CPU %", "far"], right, 11, &|m| whole(m.cpu.remote.map(|process| process.percent))),
        column(["CPU %", "all"], right, 10, &|m| whole(m.cpu.machine_percent)),
        column(["host", "× real"], right, 38, &|m| {
            figure_cell(m.simulation.map(|cost| cost.times_real_time), |times| units::digits(times, 2))
        }),
        column(["host", "CPU/op."], right, 37, &|m| {
            figure_cell(m.simulation.and_then(|cost| cost.local_ns_per_operation), units::time_ns)
        }),
        column(["", "limit"], right, 95, &|m| Cell {
            sort: m.limit.as_ref().and_then(|limit| limit.payload_bits_per_s),
            ..figure::limit_text(m).unwrap_or_else(|| UNKNOWN.into()).into()
        }),
        column(["limit", "by"], left, 40, &|m| m.limit.as_ref().map_or(UNKNOWN, |limit| limit.source()).into()),
        column(OF_LIMIT, right, 87, &|m| figure_cell(figure::timed(m, m.share_of_limit), whole_percent)),
        column(["× plain", "loop"], right, 39, &|m| {
            figure_cell(figure::timed(m, m.times_plain_loop), |times| format!("{times:.2}"))
        }),
        column(["what", "binds"], left, 94, &binds),
        column(["", "lost"], right, if any_loss { 65 } else { 15 }, &|m| Cell {
            text: units::count(m.loss.lost),
            tone: if m.loss.lost > 0 { Tone::Bad } else { Tone::Plain },
            sort: Some(m.loss.lost as f64),
        }),
        column(OVER_TIME, left, 30, &|m| curve(m, 10).into()),
        column(VERDICT, left, 98, &|m| Cell {
            tone: tone_of(m.verdict.state, Loss::default()),
            ..m.verdict.state.word().into()
        }),
    ]
}

/// Returns the tone of a verdict, which a loss makes doubtful.
pub(crate) fn tone_of(state: State, loss: Loss) -> Tone {
    match state {
        State::Interrupted | State::Failed => Tone::Bad,
        State::Stable if loss == Loss::default() => Tone::Good,
        _ => Tone::Doubtful,
    }
}

fn figure_cell(value: Option<f64>, text: impl Fn(f64) -> String) -> Cell {
    let known = value.filter(|value| value.is_finite());
    Cell { sort: known, ..known.map_or_else(|| UNKNOWN.into(), text).into() }
}

fn time(m: &Measurement, pick: impl Fn(&Latency) -> u64) -> Cell {
    figure_cell(m.latency_ns.as_ref().map(|latency| pick(latency) as f64), units::time_ns)
}

fn sent(m: &Measurement) -> Cell {
    let sent = m.sent.map(|sent| figure_cell(Some(sent.payload_bits_per_s), units::bits_per_s));
    sent.unwrap_or_else(|| String::new().into())
}

fn binds(m: &Measurement) -> Cell {
    let limit = m.limit.as_ref().filter(|_| figure::is_timed(m));
    limit.map_or(UNKNOWN, |limit| limit.binds.word()).into()
}

fn whole(value: Option<f64>) -> Cell {
    figure_cell(value, |value| format!("{value:.0}"))
}

/// Returns a share as a percentage without decimals.
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Returns half the confidence interval of an estimate as `±0.8 %`; empty if there is none.
pub(crate) fn interval_text(estimate: &Estimate) -> String {
    figure::half_width(estimate).map_or_else(String::new, |half| format!("±{:.1} %", half * 100.0))
}

/// Returns the rate over the run as a line of at most `width` characters.
pub(crate) fn curve(m: &Measurement, width: usize) -> String {
    let rates: Vec<f64> = figure::interval_rates(m).into_iter().map(|(_, rate)| rate).collect();
    sparkline(&rates, width)
}

/// Returns what did not arrive as it was sent, in words.
pub(crate) fn losses(m: &Measurement) -> String {
    let Loss { lost, duplicated, reordered, retransmitted, refused, overrun, naks, not_ready, damaged } = m.loss;
    let attempted = m.operations + lost + refused;
    let named = [(lost, "lost"), (refused, "refused"), (duplicated, "duplicated"), (reordered, "out of order")];
    let of_operations: Vec<String> = named
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| {
            let share = units::percent(*number as f64 / attempted.max(1) as f64);
            format!("{} {what} ({share})", units::count(*number))
        })
        .collect();
    let mut parts = Vec::new();
    if !of_operations.is_empty() {
        parts.push(format!("of {} operations, {}", units::count(attempted), of_operations.join(", ")));
    }
    if overrun > 0 {
        parts.push(format!("{} updates skipped by the far end, because this side was behind", units::count(overrun)));
    }
    for (number, what) in [
        (retransmitted, "packets sent again"),
        (naks, "packets behind a missing one (NAK)"),
        (not_ready, "packets before their receive was posted (RNR NAK)"),
        (damaged.unwrap_or(0), "payloads otherwise than sent"),
    ] {
        if number > 0 {
            parts.push(format!("{} {what}", units::count(number)));
        }
    }
    parts.extend(m.receivers.iter().filter(|one| one.lost > 0 && m.receivers.len() > 1).map(|one| {
        let share = one.lost as f64 / (one.received + one.lost) as f64;
        format!("{} of all that was sent missed by {} ({})", units::count(one.lost), one.address, units::percent(share))
    }));
    parts.join("; ")
}
