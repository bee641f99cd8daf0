//! The table for people at a terminal.

use crate::columns::{columns, curve, interval_text, losses, tone_of};
use crate::figure::{self, Figure};
use crate::layout::{Align, Column, Tone, clean, fit, fit_all, render_with, wrap};
use crate::stages;
use crate::units::{self, UNKNOWN};
use hodo_measure::{Loss, Measurement};

/// The look of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal. Under 60, lines grow beyond it.
    pub width: usize,
    /// Colour with ANSI escapes.
    pub color: bool,
}

/// Draws a block for every link and test, all with the same columns: a row for every measurement, and sentences under it that explain
/// doubts.
#[must_use]
pub fn table(measurements: &[Measurement], style: Style) -> String {
    let groups = figure::groups(measurements);
    let columns = fit_all(groups.iter().map(|group| columns(group)).collect(), style.width);
    let blocks: Vec<String> =
        groups.iter().zip(columns).map(|(group, columns)| block(group, &columns, style)).collect();
    blocks.join("\n")
}

/// Draws one table of all measurements, each with its protocol, its test and the figure that this is about in front.
#[must_use]
pub fn overview(measurements: &[Measurement], style: Style) -> String {
    let rows: Vec<&Measurement> = measurements.iter().collect();
    let front = |head, align, text: &dyn Fn(&Measurement) -> String| Column {
        head,
        align,
        keep: 100,
        cells: rows.iter().map(|m| text(m).into()).collect(),
    };
    let mut all = vec![
        front(["", "protocol"], Align::Left, &|m| clean(&figure::protocol_text(m))),
        front(["", "test"], Align::Left, &|m| m.test.to_string()),
        front(["", "achieved"], Align::Right, &figure_text),
    ];
    all.extend(columns(&rows).into_iter().map(|column| {
        let keep = match column.head {
            // The figure in front is one of these, and each test has but one row.
            ["" | "payload", "rate"] | ["time", "p50"] => 5,
            ["", "size"] => 93,
            ["", "mode"] => 72,
            ["CPU %", _] => 74,
            _ => column.keep,
        };
        Column { keep, ..column }
    }));
    render_with(&fit(all, style.width), &[], style.color)
}

/// Returns the figure that a row is about.
fn figure_text(m: &Measurement) -> String {
    let figure = Figure::of(m);
    figure.value(m).map_or_else(|| UNKNOWN.into(), |value| figure.text(value))
}

/// Returns a measurement in one line, for progress while others still run. Where the width is too small for all, the curve is left out first,
/// then figures that are not the row's own.
#[must_use]
pub fn line(m: &Measurement, width: usize) -> String {
    let kept = |text: String| (u8::MAX, text);
    let mut parts = vec![
        kept(format!("{} {} {}", clean(&figure::protocol_text(m)), m.test, m.mode)),
        kept(figure::size_text(m)),
        kept(figure::window_text(m)),
        kept(main_figure(m)),
    ];
    match (&m.latency_ns, Figure::of(m)) {
        (Some(latency), Figure::PayloadRate | Figure::OperationRate) => {
            parts.push((3, format!("p50 {}", units::time_ns(latency.p50 as f64))));
        }
        (Some(_), Figure::Latency) => parts.push((3, units::operations_per_s(m.rate.operations_per_s.median))),
        (None, _) => {}
    }
    parts.extend(figure::reached_text(m).map(|text| (2, text)));
    if m.loss.lost > 0 {
        parts.push(kept(format!("{} lost", units::count(m.loss.lost))));
    }
    if let Some(cost) = &m.simulation {
        parts.push((1, format!("{} × real time", units::digits(cost.times_real_time, 2))));
    }
    parts.push((0, curve(m, 16)));
    parts.push(kept(m.verdict.state.word().into()));
    parts.retain(|(_, text)| !text.is_empty());
    let joined = |parts: &[(u8, String)]| parts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("  ");
    while joined(&parts).chars().count() > width
        && let Some(least) = parts.iter().map(|(keep, _)| *keep).min().filter(|keep| *keep < u8::MAX)
    {
        parts.retain(|(keep, _)| *keep != least);
    }
    joined(&parts)
}

/// Returns sentences for what a row cannot say: the reason of a verdict that is not stable or has a doubt, and losses.
#[must_use]
pub fn explain(m: &Measurement) -> Vec<String> {
    let row = format!("{} {}, window {}", m.mode, figure::size_text(m), figure::window_text(m));
    let mut sentences = Vec::new();
    if figure::has_doubt(m) {
        sentences.push(format!("{row}: {}", figure::verdict_text(m)));
    }
    if m.loss != Loss::default() {
        sentences.push(format!("{row}: {}", losses(m)));
    }
    if let Some(clock) = m.clock_difference.filter(|clock| clock.error_ns > 0) {
        let text = figure::clock_text(clock);
        sentences.push(format!("{row}: the far end's clock is {text}; the times are right to that"));
    }
    if !m.published.is_empty() {
        sentences.push(format!("{row}: {}", figure::published_text(m)));
    }
    sentences
}

fn main_figure(m: &Measurement) -> String {
    let (figure, value) = (Figure::of(m), figure_text(m));
    let (value, estimate) = match figure {
        Figure::PayloadRate => (value, &m.rate.payload_bits_per_s),
        Figure::OperationRate => (value, &m.rate.operations_per_s),
        Figure::Latency => return format!("p50 {value}"),
    };
    format!("{value} {}", interval_text(estimate)).trim_end().to_owned()
}

fn block(group: &[&Measurement], columns: &[Column], style: Style) -> String {
    let first = group[0];
    let title =
        format!("{}, {}: {}", clean(&figure::protocol_text(first)), first.test, figure::test_meaning(first.test));
    let link = clean(&figure::link_text(group));
    let beside = title.chars().count() + 2 + link.chars().count() <= style.width;
    let mut text = Tone::Title.paint(&title, style.color);
    text.push_str(if beside { "  " } else { "\n" });
    text.push_str(&Tone::Quiet.paint(&link, style.color));
    text.push('\n');
    let mut under = stages::lines(group, style.color);
    for (lines, m) in under.iter_mut().zip(group) {
        lines.extend(shares(m).map(|text| format!("    {}\n", Tone::Quiet.paint(&text, style.color))));
    }
    text.push_str(&render_with(columns, &under, style.color));
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

/// Returns how even the nodes of a link were, if there are several.
fn shares(m: &Measurement) -> Option<String> {
    m.fairness.filter(|_| m.nodes.len() > 1).map(|fairness| fairness.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use hodo_measure::{ClockDifference, Estimate, Fairness, Mode, NodeShare, State};

    fn plain(width: usize) -> String {
        table(&sample::document().measurements, Style { width, color: false })
    }

    #[test]
    fn looks_as_it_should_on_a_narrow_and_on_a_wide_terminal() {
        sample::snapshot("tests/snapshots/table-80.txt", &plain(80));
        sample::snapshot("tests/snapshots/table-120.txt", &plain(120));
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

    /// Returns the heads of each block, without the name of its first column.
    fn heads(text: &str) -> Vec<Vec<&str>> {
        text.lines().filter(|line| line.starts_with("  mode ")).map(|line| line.split_whitespace().collect()).collect()
    }

    #[test]
    fn limit_what_binds_and_verdict_stay_and_cpu_goes_first() {
        for (width, has_cpu) in [(80, false), (120, false), (250, true)] {
            let text = plain(width);
            let found = heads(&text);
            assert_eq!(found.len(), 6, "{text}");
            for head in &found {
                assert!(
                    ["size", "p50", "limit", "binds", "verdict"].iter().all(|name| head.contains(name)),
                    "{head:?}"
                );
                assert_eq!(head.contains(&"here"), has_cpu, "{width}: {head:?}");
            }
        }
        assert!(heads(&plain(120))[0].contains(&"p99"), "CPU goes before percentiles");
    }

    #[test]
    fn every_block_has_the_same_columns() {
        for width in [80, 100, 120, 160, 250] {
            let text = plain(width);
            let found = heads(&text);
            assert!(found.iter().all(|head| *head == found[0]), "{width}: {found:?}");
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
        (m.latency_ns, m.limit, m.times_plain_loop) = (None, None, Some(f64::NAN));
        m.cpu = hodo_measure::Cpu::default();
        m.rate.payload_bits_per_s = Estimate { median: f64::NAN, ..Estimate::default() };
        m.intervals.clear();
        let text = table(&[m.clone()], Style { width: 160, color: false });
        assert!(!text.contains("NaN"), "{text}");
        assert_eq!(line(&m, usize::MAX), "tcp rate send  64 B  32×1  –  stable");
    }

    #[test]
    fn what_ended_before_anything_was_timed_has_no_figures() {
        let mut m = sample::rate("tcp", Mode::Send, 64);
        (m.operations, m.elapsed_s, m.latency_ns, m.rate) = (0, 0.0, None, hodo_measure::Rate::default());
        m.intervals.clear();
        assert_eq!(line(&m, usize::MAX), "tcp rate send  64 B  32×1  –  stable");
        let text = table(&[m.clone()], Style { width: 160, color: false });
        let limit = m.limit.as_ref().expect("a limit is known beforehand");
        assert!(!text.contains(limit.binds.word()) && !text.contains(" 0 bit/s") && !text.contains("0/s"), "{text}");
        // Nothing came in the counted time, which is a rate.
        m.elapsed_s = 1.0;
        assert!(line(&m, usize::MAX).contains("0 bit/s"), "{}", line(&m, usize::MAX));
    }

    #[test]
    fn a_finished_row_in_one_line() {
        let drifting = &sample::document().measurements[14];
        for (width, text) in [
            (
                usize::MAX,
                "tcp rate receive  1 MiB  32×1  46.18 Gbit/s ±0.7 %  p50 5.82 ms  0.94 × plain loop  ██████▇▇▇▇▇▆▆▆▆▆  drifting",
            ),
            (100, "tcp rate receive  1 MiB  32×1  46.18 Gbit/s ±0.7 %  p50 5.82 ms  0.94 × plain loop  drifting"),
            (80, "tcp rate receive  1 MiB  32×1  46.18 Gbit/s ±0.7 %  p50 5.82 ms  drifting"),
            (10, "tcp rate receive  1 MiB  32×1  46.18 Gbit/s ±0.7 %  drifting"),
        ] {
            assert_eq!(line(drifting, width), text);
        }
    }

    #[test]
    fn what_a_simulation_cost_this_host_has_columns_of_its_own() {
        let text = table(&[sample::simulated(64)], Style { width: 160, color: false });
        let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert!(rows[1].windows(3).any(|heads| heads == ["×", "real", "CPU/op."]), "{text}");
        assert!(rows[2].windows(3).any(|cells| cells == ["2.0", "2.90", "µs"]), "{text}");
        assert!(!text.contains("CPU %") && line(&sample::simulated(64), 160).contains("2.0 × real time"), "{text}");
        assert!(!plain(250).contains("× real"), "no other link has them");
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

    #[test]
    fn times_between_two_hosts_say_how_far_they_may_be_wrong() {
        let mut m = sample::latency(64);
        m.clock_difference = Some(ClockDifference { ahead_ns: -1_500_000, error_ns: 12_000 });
        let row =
            "both 64 B, window 1×1: the far end's clock is 1.50 ms behind, ± 12.0 µs; the times are right to that";
        assert_eq!(explain(&m), [row]);
        m.clock_difference = Some(ClockDifference { ahead_ns: 0, error_ns: 0 });
        assert!(explain(&m).is_empty());
    }

    #[test]
    fn a_stable_row_beside_other_programs_says_so() {
        let mut m = sample::rate("tcp", Mode::Send, 64);
        m.cpu.others_percent = Some(31.0);
        m.verdict.text = format!("stable: the rate varies by 1.0 %; {}", m.cpu.others_text().expect("over 5 %"));
        let [sentence] = &explain(&m)[..] else { panic!("{:?}", explain(&m)) };
        assert!(
            sentence.contains("stable: ") && sentence.contains("other programs took 31 % of the machine"),
            "{sentence}"
        );
    }

    #[test]
    fn a_far_end_that_did_not_keep_its_pace_is_named() {
        let mut m = sample::rate("tcp", Mode::Send, 64);
        m.shortfall_s = Some(0.0);
        assert!(explain(&m).is_empty(), "it kept it");
        m.shortfall_s = Some(0.2);
        m.verdict.text = format!("stable: it is; {}", m.shortfall_text().expect("it fell behind"));
        let [sentence] = &explain(&m)[..] else { panic!("{:?}", explain(&m)) };
        assert!(sentence.contains("the far end fell 0.200 s behind its pace (10.0 % of the time)"), "{sentence}");
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

    #[test]
    fn an_overview_keeps_limit_what_binds_and_verdict_on_a_narrow_terminal() {
        let document = sample::document();
        for (width, heads) in [
            (80, ["protocol", "achieved", "limit", "binds", "verdict"].as_slice()),
            (160, &["protocol", "size", "here", "far", "limit", "binds", "verdict"]),
        ] {
            let table = overview(&document.measurements, Style { width, color: false });
            assert!(table.lines().all(|line| line.chars().count() <= width), "{table}");
            assert!(heads.iter().all(|head| table.contains(head)), "{table}");
            assert!(!table.contains("sim+sim+"), "{table}");
        }
    }
}
