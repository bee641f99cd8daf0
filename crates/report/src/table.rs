//! The table for people at a terminal.

use crate::figure::{self, Figure};
use crate::layout::{Align, Cell, Column, Tone, clean, fit, render_with, wrap};
use crate::sparkline::sparkline;
use crate::stages;
use crate::units::{self, UNKNOWN};
use hodo_measure::{Estimate, Loss, Measurement, State};

/// How a table is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal. Under 60, lines grow beyond it.
    pub width: usize,
    /// Whether to colour with ANSI escapes.
    pub color: bool,
}

/// The table: a block for every link and test, a row for every measurement, and under it what needs an explanation.
#[must_use]
pub fn table(measurements: &[Measurement], style: Style) -> String {
    let blocks: Vec<String> = figure::groups(measurements).iter().map(|group| block(group, style)).collect();
    blocks.join("\n")
}

/// A measurement in one line, for progress while others still run.
#[must_use]
pub fn line(m: &Measurement) -> String {
    let mut parts = vec![
        format!("{} {} {}", clean(&figure::protocol_text(m)), m.test, m.mode),
        figure::size_text(m),
        figure::window_text(m),
        main_figure(m),
    ];
    if let (Some(latency), Figure::PayloadRate | Figure::OperationRate) = (&m.latency_ns, Figure::of(m)) {
        parts.push(format!("p50 {}", units::time_ns(latency.p50 as f64)));
    }
    if let (Some(share), Some(limit)) = (m.share_of_limit.filter(|share| share.is_finite()), &m.limit) {
        parts.push(format!("{} of {}", whole_percent(share), limit.kind.word()));
    }
    if m.loss.lost > 0 {
        parts.push(format!("{} lost", units::count(m.loss.lost)));
    }
    parts.push(curve(m, 16));
    parts.push(m.verdict.state.word().into());
    parts.retain(|part| !part.is_empty());
    parts.join("  ")
}

/// Sentences for what a row cannot say: why its verdict is not stable, and what did not arrive as sent.
#[must_use]
pub fn explain(m: &Measurement) -> Vec<String> {
    let row = format!("{} {}, window {}", m.mode, figure::size_text(m), figure::window_text(m));
    let mut sentences = Vec::new();
    if m.verdict.state != State::Stable {
        sentences.push(format!("{row}: {}", figure::verdict_text(m)));
    }
    if m.verdict.state == State::Stable && figure::is_over_the_line(m) {
        sentences.push(format!("{row}: {}", figure::verdict_text(m)));
    }
    if m.loss != Loss::default() {
        sentences.push(format!("{row}: {}", losses(m)));
    }
    sentences
}

fn main_figure(m: &Measurement) -> String {
    let figure = Figure::of(m);
    let value = figure.value(m).map_or_else(|| UNKNOWN.into(), |value| figure.text(value));
    let (value, estimate) = match figure {
        Figure::PayloadRate => (value, &m.rate.payload_bits_per_s),
        Figure::OperationRate => (value, &m.rate.operations_per_s),
        Figure::Latency => return format!("p50 {value}  {}", units::operations_per_s(m.rate.operations_per_s.median)),
    };
    format!("{value} {}", interval_text(estimate)).trim_end().to_owned()
}

fn losses(m: &Measurement) -> String {
    let Loss { lost, duplicated, reordered, retransmitted, refused, overrun } = m.loss;
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
    if retransmitted > 0 {
        parts.push(format!("{} packets sent again", units::count(retransmitted)));
    }
    parts.join("; ")
}

fn block(group: &[&Measurement], style: Style) -> String {
    let first = group[0];
    let title =
        format!("{}, {}: {}", clean(&figure::protocol_text(first)), first.test, figure::test_meaning(first.test));
    let link = clean(&first.link);
    let beside = title.chars().count() + 2 + link.chars().count() <= style.width;
    let mut text = Tone::Title.paint(&title, style.color);
    text.push_str(if beside { "  " } else { "\n" });
    text.push_str(&Tone::Quiet.paint(&link, style.color));
    text.push('\n');
    let (columns, mut under) = (fit(columns(group), style.width), stages::lines(group, style.color));
    for (lines, m) in under.iter_mut().zip(group) {
        lines.extend(shares(m).map(|text| format!("    {}\n", Tone::Quiet.paint(&text, style.color))));
    }
    text.push_str(&render_with(&columns, &under, style.color));
    for measurement in group {
        for sentence in explain(measurement) {
            let lines = wrap(&sentence, style.width.saturating_sub(4).max(40));
            let indented = lines.join("\n    ");
            text.push_str(&tone_of(measurement.verdict.state, measurement.loss).paint("  ! ", style.color));
            text.push_str(&indented);
            text.push('\n');
        }
    }
    text
}

/// How even the nodes of a farm were, where there are several.
fn shares(m: &Measurement) -> Option<String> {
    m.fairness.filter(|_| m.nodes.len() > 1).map(|fairness| fairness.text())
}

/// The columns in reading order; the lowest `keep` goes first where the terminal is narrow.
fn columns(group: &[&Measurement]) -> Vec<Column> {
    let about_latency = Figure::of(group[0]) == Figure::Latency;
    let operations_lead = about_latency || Figure::of(group[0]) == Figure::OperationRate;
    let waits_differ = group.iter().any(|m| m.wait != group[0].wait);
    let any_loss = group.iter().any(|m| m.loss.lost > 0);
    let column = |head, align, keep, cell: &dyn Fn(&Measurement) -> Cell| Column {
        head,
        align,
        keep,
        cells: group.iter().map(|m| cell(m)).collect(),
    };
    let right = Align::Right;
    vec![
        column(["", "mode"], Align::Left, 99, &|m| figure::mode_text(m.mode).into()),
        column(["", "size"], right, 99, &|m| figure::size_text(m).into()),
        column(["window", "×chan."], right, 98, &|m| figure::window_text(m).into()),
        column(["", "waits"], Align::Left, 96, &|m| if waits_differ { clean(&m.wait) } else { String::new() }.into()),
        column(["rate", "asked"], right, 94, &|m| {
            m.rate_asked.map_or_else(String::new, units::operations_per_s).into()
        }),
        column(["", "rate"], right, if operations_lead { 90 } else { 20 }, &|m| {
            units::operations_per_s(m.rate.operations_per_s.median).into()
        }),
        column(["payload", "rate"], right, if operations_lead { 20 } else { 90 }, &|m| {
            units::bits_per_s(m.rate.payload_bits_per_s.median).into()
        }),
        column(["", "±"], right, 55, &|m| {
            interval_cell(if operations_lead { &m.rate.operations_per_s } else { &m.rate.payload_bits_per_s })
        }),
        column(["time", "p50"], right, 95, &|m| time(m, |latency| latency.p50)),
        column(["time", "p99"], right, 60, &|m| time(m, |latency| latency.p99)),
        column(["CPU %", "here"], right, 75, &|m| whole(m.cpu.local.map(|process| process.percent))),
        column(["CPU %", "far"], right, 74, &|m| whole(m.cpu.remote.map(|process| process.percent))),
        column(["CPU %", "all"], right, 10, &|m| whole(m.cpu.machine_percent)),
        column(["", "limit"], right, 50, &|m| figure::limit_text(m).unwrap_or_else(|| UNKNOWN.into()).into()),
        column(["limit", "by"], Align::Left, 30, &|m| {
            m.limit.as_ref().map_or(UNKNOWN, |limit| limit.kind.word()).into()
        }),
        column(["of", "limit"], right, 80, &|m| {
            m.share_of_limit.filter(|share| share.is_finite()).map_or(UNKNOWN.into(), whole_percent).into()
        }),
        column(["what", "binds"], Align::Left, 40, &|m| {
            m.limit.as_ref().map_or(UNKNOWN, |limit| limit.binds.word()).into()
        }),
        column(["", "lost"], right, if any_loss { 65 } else { 15 }, &|m| Cell {
            text: units::count(m.loss.lost),
            tone: if m.loss.lost > 0 { Tone::Bad } else { Tone::Plain },
        }),
        column(["", "over time"], Align::Left, 70, &|m| curve(m, 10).into()),
        column(["", "verdict"], Align::Left, 97, &|m| Cell {
            text: m.verdict.state.word().into(),
            tone: tone_of(m.verdict.state, Loss::default()),
        }),
    ]
}

fn tone_of(state: State, loss: Loss) -> Tone {
    match state {
        State::Interrupted | State::Failed => Tone::Bad,
        State::Stable if loss == Loss::default() => Tone::Good,
        _ => Tone::Doubtful,
    }
}

fn time(m: &Measurement, of: impl Fn(&hodo_measure::Latency) -> u64) -> Cell {
    m.latency_ns.as_ref().map_or_else(|| UNKNOWN.into(), |latency| units::time_ns(of(latency) as f64)).into()
}

fn whole(value: Option<f64>) -> Cell {
    value.filter(|value| value.is_finite()).map_or_else(|| UNKNOWN.into(), |value| format!("{value:.0}")).into()
}

fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn interval_text(estimate: &Estimate) -> String {
    figure::half_width(estimate).map_or_else(String::new, |half| format!("±{:.1} %", half * 100.0))
}

fn interval_cell(estimate: &Estimate) -> Cell {
    figure::half_width(estimate).map_or_else(|| UNKNOWN.into(), |half| format!("{:.1} %", half * 100.0)).into()
}

fn curve(m: &Measurement, width: usize) -> String {
    let rates: Vec<f64> = figure::interval_rates(m).into_iter().map(|(_, rate)| rate).collect();
    sparkline(&rates, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use hodo_measure::{Fairness, Mode, NodeShare};

    fn plain(width: usize) -> String {
        table(&sample::document().measurements, Style { width, color: false })
    }

    #[test]
    fn looks_as_it_should_on_a_narrow_and_on_a_wide_terminal() {
        sample::snapshot("tests/snapshots/table-100.txt", &plain(100));
        sample::snapshot("tests/snapshots/table-160.txt", &plain(160));
    }

    #[test]
    fn stays_within_the_width() {
        for width in [80, 100, 120, 160, 200] {
            for line in plain(width).lines() {
                assert!(line.chars().count() <= width, "{} > {width}: {line}", line.chars().count());
            }
        }
    }

    #[test]
    fn colours_only_when_asked() {
        let measurements = sample::document().measurements;
        assert!(!plain(160).contains('\u{1b}'));
        let coloured = table(&measurements, Style { width: 160, color: true });
        assert!(coloured.contains("\u{1b}[32mstable"));
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        let mut measurement = sample::rate("tcp", Mode::Send, 64);
        measurement.link = "tcp://\u{1b}[2J\nx".into();
        let text = table(&[measurement], Style { width: 160, color: false });
        assert!(text.contains("tcp://?[2J?x"), "{text}");
    }

    #[test]
    fn unknown_figures_are_dashes() {
        let mut m = sample::rate("tcp", Mode::Send, 64);
        (m.latency_ns, m.limit, m.share_of_limit) = (None, None, Some(f64::NAN));
        m.cpu = hodo_measure::Cpu::default();
        m.rate.payload_bits_per_s = Estimate { median: f64::NAN, ..Estimate::default() };
        m.intervals.clear();
        let text = table(&[m.clone()], Style { width: 160, color: false });
        assert!(!text.contains("NaN"), "{text}");
        assert_eq!(line(&m), "tcp rate send  64 B  32×1  –  stable");
    }

    #[test]
    fn a_finished_row_in_one_line() {
        assert_eq!(
            line(&sample::rate("tcp", Mode::Send, 32_768)),
            "tcp rate send  32 KiB  32×1  40.96 Gbit/s ±0.8 %  p50 205 µs  94 % of baseline  ████████████████  stable"
        );
    }

    #[test]
    fn how_even_the_nodes_were_stands_under_their_row() {
        let mut m = sample::rate("farm", Mode::Send, 32_000);
        m.nodes = (0..).zip([99, 100]).map(|(number, events)| NodeShare { number, events }).collect();
        m.fairness = Fairness::of_nodes(&m.nodes, 1.0, None);
        let text = table(&[m.clone()], Style { width: 100, color: false });
        assert!(
            text.lines().any(|line| line == "    shares of nodes 0.990 least over most, Jain's index 1.0000"),
            "{text}"
        );
        m.nodes.truncate(1);
        assert!(!table(&[m], Style { width: 100, color: false }).contains("shares"), "one is even with itself");
    }

    #[test]
    fn explains_doubts_and_losses() {
        let mut m = sample::rate("udp", Mode::Send, 64);
        (m.operations, m.loss.lost, m.loss.reordered) = (999_000, 1_000, 5);
        m.verdict.state = State::Interrupted;
        m.verdict.text = "the far end is gone".into();
        assert_eq!(
            explain(&m),
            [
                "send 64 B, window 32×1: interrupted: the far end is gone",
                "send 64 B, window 32×1: of 1,000,000 operations, 1,000 lost (0.100 %), 5 out of order (<0.001 %)",
            ]
        );
    }

    /// They are not operations: one may hold many, or a part of one.
    #[test]
    fn packets_sent_again_are_no_share_of_the_operations() {
        let mut m = sample::rate("tcp", Mode::Send, 64);
        (m.operations, m.loss.retransmitted) = (1_000, 1_500);
        assert_eq!(explain(&m), ["send 64 B, window 32×1: 1,500 packets sent again"]);
        m.loss.refused = 10;
        assert_eq!(
            explain(&m),
            ["send 64 B, window 32×1: of 1,010 operations, 10 refused (0.990 %); 1,500 packets sent again"]
        );
    }
}
