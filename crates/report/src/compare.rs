//! Compares two documents, measurement by measurement: the ratio of each figure, and differences that may explain it.

mod answer;

pub use answer::{Answer, Check};

use crate::figure::{self, Figure, plan_text};
use crate::layout::{Align, Cell, Column, Tone, clean, fit, render, wrap};
use crate::table::Style;
use crate::units::{self, UNKNOWN};
use hodo_measure::{Document, Environment, Estimate, FarEndFacts, Measurement, Nic, Test};
use serde::Serialize;

/// The comparison of two documents.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// One for every plan that both have, the largest effect first.
    pub pairs: Vec<Pair>,
    /// Differences of the environment, or doubts of the figures, that could explain a ratio. Sentences.
    pub warnings: Vec<String>,
    /// Plans that only the first has.
    pub only_in_a: Vec<String>,
    /// Plans that only the second has.
    pub only_in_b: Vec<String>,
}

/// A plan that is in both documents.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The plan in words.
    pub plan: String,
    /// The figure compared, with its unit: `payload_bits_per_s`, `operations_per_s` or `latency_p50_ns`.
    pub figure: &'static str,
    /// The figure in the first document; null if it is missing.
    pub a: Option<f64>,
    /// The figure in the second document.
    pub b: Option<f64>,
    /// The speed of the second over that of the first: b/a of a rate, a/b of a time. Over 1 is faster.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's confidence interval; null if one of the two has none.
    pub low: Option<f64>,
    /// Upper end of the ratio's confidence interval.
    pub high: Option<f64>,
    /// The interval's level in percent: the lower of the two.
    pub confidence: Option<f64>,
    /// The conclusion.
    pub answer: Answer,
    /// The number of repeats that would decide, if these do not; null if the two are too near to each other for any number.
    pub repeats_needed: Option<u32>,
    #[serde(skip)]
    kind: Figure,
}

/// Pairs the measurements of the same plan: protocol, test, mode, sizes, window, channels, batch, wait and rate asked.
///
/// A plan that was run several times is paired in order. The interval of the ratio comes from the two intervals,
/// taken as independent, on the logarithmic scale (the method of variance estimates recovery): with r = b/a,
/// ln r_low = ln r - sqrt(ln(b/b_low)^2 + ln(a_high/a)^2), and so for the upper end. A time has no interval of its own
/// in a document: with one operation at a time its relative interval is that of the operation rate, and in an
/// open-loop test it is not known.
#[must_use]
pub fn compare(a: &Document, b: &Document) -> Comparison {
    let mut unmatched: Vec<&Measurement> = b.measurements.iter().collect();
    let mut comparison = Comparison {
        pairs: Vec::new(),
        warnings: environment_warnings(&a.environment, &b.environment),
        only_in_a: Vec::new(),
        only_in_b: Vec::new(),
    };
    if (&a.tool.version, &a.tool.commit) != (&b.tool.version, &b.tool.commit) {
        comparison.warnings.push(differs("hodo", &tool_text(a), &tool_text(b)));
    }
    for of_a in &a.measurements {
        match unmatched.iter().position(|of_b| same_plan(of_a, of_b)) {
            Some(place) => {
                let of_b = unmatched.remove(place);
                comparison.warnings.extend(pair_warnings(of_a, of_b));
                comparison.pairs.push(pair(of_a, of_b));
            }
            None => comparison.only_in_a.push(plan_text(of_a)),
        }
    }
    comparison.only_in_b = unmatched.into_iter().map(plan_text).collect();
    let effect = |pair: &Pair| pair.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    comparison.pairs.sort_by(|a, b| effect(b).total_cmp(&effect(a)));
    comparison
}

/// Draws the comparison as a table for people, with warnings and unmatched plans under it.
#[must_use]
pub fn comparison_table(comparison: &Comparison, style: Style) -> String {
    let mut text = match comparison.pairs.iter().find_map(|pair| pair.confidence) {
        _ if comparison.pairs.is_empty() => "  no plan is in both\n".to_owned(),
        confidence => {
            let level = confidence.map_or_else(String::new, |percent| format!(" Intervals at {percent} %."));
            let table = render(&fit(columns(&comparison.pairs), style.width), style.color);
            let sentence = wrap(&comparison.sentence(), style.width.saturating_sub(2).max(40)).join("\n  ");
            format!("{table}  B/A over 1: B is faster. For times the ratio is inverted.{level}\n  {sentence}\n")
        }
    };
    let mut section = |tone: Tone, head: &str, lines: &[String]| {
        for line in lines {
            text.push_str(&tone.paint(head, style.color));
            text.push_str(&wrap(&clean(line), style.width.saturating_sub(head.len()).max(40)).join("\n    "));
            text.push('\n');
        }
    };
    section(Tone::Doubtful, "  ! ", &comparison.warnings);
    section(Tone::Quiet, "  only in A: ", &comparison.only_in_a);
    section(Tone::Quiet, "  only in B: ", &comparison.only_in_b);
    text
}

fn columns(pairs: &[Pair]) -> Vec<Column> {
    let column = |head, align, keep, cell: &dyn Fn(&Pair) -> Cell| Column {
        head,
        align,
        keep,
        cells: pairs.iter().map(cell).collect(),
    };
    let value = |pair: &Pair, value: Option<f64>| value.map_or_else(|| UNKNOWN.into(), |value| pair.kind.text(value));
    vec![
        column(["", "plan"], Align::Left, 10, &|pair| clean(&pair.plan).into()),
        column(["", "figure"], Align::Left, 1, &|pair| pair.kind.name().into()),
        column(["", "A"], Align::Right, 2, &|pair| value(pair, pair.a).into()),
        column(["", "B"], Align::Right, 3, &|pair| value(pair, pair.b).into()),
        column(["", "B/A"], Align::Right, 8, &ratio_cell),
        column(["", "interval"], Align::Left, 5, &|pair| match (pair.low, pair.high) {
            (Some(low), Some(high)) => format!("{low:.3}..{high:.3}").into(),
            _ => UNKNOWN.into(),
        }),
        column(["", "answer"], Align::Left, 10, &|pair| pair.answer.text().into()),
        column(["", "would tell"], Align::Left, 9, &|pair| {
            pair.repeats_needed.map_or_else(String::new, |repeats| format!("{repeats} repeats")).into()
        }),
    ]
}

/// Returns the ratio, green or red only if the interval excludes 1.
fn ratio_cell(pair: &Pair) -> Cell {
    let tone = match pair.answer {
        Answer::Faster => Tone::Good,
        Answer::Slower => Tone::Bad,
        Answer::CannotTell => Tone::Plain,
    };
    Cell { text: pair.ratio.map_or_else(|| UNKNOWN.into(), |ratio| format!("{ratio:.3}")), tone, sort: None }
}

fn pair(a: &Measurement, b: &Measurement) -> Pair {
    let figure = Figure::of(a);
    let (value_a, value_b) = (figure.value(a), figure.value(b));
    let ratio = value_a.zip(value_b).and_then(|(a, b)| {
        let ratio = if figure == Figure::Latency { a / b } else { b / a };
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    });
    let spreads = ratio.zip(spread(figure, a)).zip(spread(figure, b));
    let bounds = spreads.map(|((ratio, of_a), of_b)| {
        (ratio * (-of_b.down.hypot(of_a.up)).exp(), ratio * of_b.up.hypot(of_a.down).exp())
    });
    // A measurement beside itself is the same for certain, however few its repeats.
    let bounds = bounds.filter(|_| a != b).or_else(|| (a == b).then_some((ratio?, ratio?)));
    let (low, high) = (bounds.map(|(low, _)| low), bounds.map(|(_, high)| high));
    let answer = Answer::of(low, high);
    let repeats = a.repeats.min(b.repeats);
    let needed = ratio.filter(|_| answer == Answer::CannotTell);
    let level = |estimate: Option<&Estimate>| estimate.and_then(|estimate| estimate.confidence);
    let levels = level(estimate(figure, a)).zip(level(estimate(figure, b)));
    Pair {
        plan: plan_text(a),
        figure: match figure {
            Figure::PayloadRate => "payload_bits_per_s",
            Figure::OperationRate => "operations_per_s",
            Figure::Latency => "latency_p50_ns",
        },
        a: value_a,
        b: value_b,
        ratio,
        low,
        high,
        confidence: bounds.and(levels).map(|(a, b)| a.min(b)),
        answer,
        repeats_needed: needed.and_then(|ratio| answer::repeats_needed(ratio, low, high, repeats)),
        kind: figure,
    }
}

/// Returns how far an estimate reaches below and above its median, in natural logarithms.
#[derive(Debug, Clone, Copy)]
struct Spread {
    down: f64,
    up: f64,
}

fn spread(figure: Figure, m: &Measurement) -> Option<Spread> {
    let estimate = estimate(figure, m)?;
    let (down, up) = ((estimate.median / estimate.low?).ln(), (estimate.high? / estimate.median).ln());
    (down.is_finite() && up.is_finite()).then(|| Spread { down: down.max(0.0), up: up.max(0.0) })
}

/// Returns the estimate whose relative interval holds for the figure.
fn estimate(figure: Figure, m: &Measurement) -> Option<&Estimate> {
    match figure {
        Figure::PayloadRate => Some(&m.rate.payload_bits_per_s),
        Figure::OperationRate => Some(&m.rate.operations_per_s),
        Figure::Latency => (m.test == Test::Latency).then_some(&m.rate.operations_per_s),
    }
}

fn same_plan(a: &Measurement, b: &Measurement) -> bool {
    let key = |m: &Measurement| (m.test, m.mode, m.size_bytes, m.size_min_bytes, m.size_max_bytes);
    let drive = |m: &Measurement| (m.window, m.channels, m.batch, m.rate_asked);
    figure::protocol_text(a) == figure::protocol_text(b) && a.wait == b.wait && key(a) == key(b) && drive(a) == drive(b)
}

fn tool_text(document: &Document) -> String {
    let tool = &document.tool;
    tool.commit.as_ref().map_or_else(|| tool.version.clone(), |commit| format!("{} ({commit})", tool.version))
}

fn pair_warnings(a: &Measurement, b: &Measurement) -> Vec<String> {
    let plan = plan_text(a);
    let mut warnings = Vec::new();
    for (side, m) in [("A", a), ("B", b)] {
        if figure::has_doubt(m) {
            warnings.push(format!("{plan}: {side} is {}", figure::verdict_text(m)));
        }
    }
    let lossy = |m: &Measurement| m.loss.lost as f64 / (m.operations + m.loss.lost).max(1) as f64;
    if (lossy(a) - lossy(b)).abs() > 0.001 {
        warnings.push(format!("{plan}: A lost {}, B {}", units::percent(lossy(a)), units::percent(lossy(b))));
    }
    warnings
}

fn environment_warnings(a: &Environment, b: &Environment) -> Vec<String> {
    facts(a)
        .into_iter()
        .zip(facts(b))
        .filter(|((_, of_a), (_, of_b))| of_a != of_b)
        .map(|((name, of_a), (_, of_b))| {
            let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
            differs(name, &text(of_a), &text(of_b))
        })
        .collect()
}

fn differs(name: &str, a: &str, b: &str) -> String {
    format!("{name} differs: A {a}, B {b}")
}

/// Returns the settings that can make a link faster or slower, by name.
fn facts(environment: &Environment) -> Vec<(&'static str, Option<String>)> {
    let e = environment;
    let nic = |of: &dyn Fn(&Nic) -> Option<String>| e.nic.as_ref().and_then(of);
    let far = |of: &dyn Fn(&FarEndFacts) -> Option<String>| e.far_end.as_ref().and_then(of);
    vec![
        ("host", e.host.clone()),
        ("kernel", e.kernel.clone()),
        ("cpu", e.cpu.clone()),
        ("cores", e.cores.map(|cores| cores.to_string())),
        ("memory", e.memory_bytes.map(units::bytes)),
        ("hypervisor", e.hypervisor.clone()),
        ("governor", e.governor.clone()),
        ("placement", e.placement.clone()),
        ("scheduling", e.scheduling.clone()),
        ("congestion control", e.congestion_control.clone()),
        ("mtu", e.mtu.map(|mtu| mtu.to_string())),
        ("nic", nic(&|nic| Some(nic.name.clone()))),
        ("nic driver", nic(&|nic| nic.driver.clone())),
        ("nic speed", nic(&|nic| nic.speed_mbit_per_s.map(|speed| format!("{speed} Mbit/s")))),
        ("nic coalescence", nic(&coalescence)),
        ("nic offloads", nic(&|nic| Some(nic.offloads.join(" ")))),
        ("far end's wait", far(&|far| far.wait.clone())),
        ("far end's placement", far(&|far| far.placement.clone())),
        ("far end's scheduling", far(&|far| far.scheduling.clone())),
        ("far end's kernel", far(&|far| far.kernel.clone())),
        ("far end's congestion control", far(&|far| far.congestion_control.clone())),
        ("far end's line", far(&|far| far.line_bits_per_s.map(|bits| units::bits_per_s(bits as f64)))),
        ("clock", e.clock.as_ref().map(|clock| clock.source.clone())),
    ]
}

/// Returns how long interrupts are held back on receive and on transmit.
fn coalescence(nic: &Nic) -> Option<String> {
    let way = |usecs: Option<u32>, adaptive: Option<bool>| {
        let number = usecs.map_or_else(|| "?".to_owned(), |usecs| usecs.to_string());
        if adaptive == Some(true) { format!("adaptive from {number}") } else { number }
    };
    nic.rx_usecs?;
    Some(format!("{}/{} µs", way(nic.rx_usecs, nic.rx_adaptive), way(nic.tx_usecs, nic.tx_adaptive)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use hodo_measure::Mode;

    #[test]
    fn another_far_end_is_warned_of() {
        let (a, mut b) = (sample::document(), sample::document());
        let far_end = b.environment.far_end.as_mut().expect("the sample has one");
        (far_end.wait, far_end.line_bits_per_s) = (Some("spin".into()), Some(10_000_000_000));
        let warnings = environment_warnings(&a.environment, &b.environment);
        assert_eq!(
            warnings,
            ["far end's wait differs: A adaptive, B spin", "far end's line differs: A unknown, B 10.00 Gbit/s"]
        );
    }

    fn only(measurement: Measurement) -> Document {
        Document { measurements: vec![measurement], ..sample::document() }
    }

    fn faster(by: f64) -> Document {
        let mut m = sample::rate("tcp", Mode::Send, 64);
        let bits = &mut m.rate.payload_bits_per_s;
        *bits = Estimate { median: 100.0 * by, low: Some(98.0 * by), high: Some(103.0 * by), ..*bits };
        only(m)
    }

    #[test]
    fn a_document_against_itself_is_one() {
        let document = sample::document();
        let comparison = compare(&document, &document);
        assert_eq!(comparison.pairs.len(), document.measurements.len());
        assert!(comparison.pairs.iter().all(|pair| pair.ratio == Some(1.0)));
        assert!(comparison.only_in_a.is_empty() && comparison.only_in_b.is_empty());
        assert!(comparison.warnings.iter().all(|warning| warning.contains(" is ")), "{:?}", comparison.warnings);
    }

    #[test]
    fn a_simulated_link_is_not_compared_to_a_real_one() {
        let mut simulated = sample::rate("udp", Mode::Send, 64);
        simulated.link = "sim+udp://?delay=5us".into();
        let comparison = compare(&only(sample::rate("udp", Mode::Send, 64)), &only(simulated));
        assert_eq!(comparison.pairs.len(), 0);
        assert!(comparison.only_in_b[0].starts_with("sim+udp rate"), "{:?}", comparison.only_in_b);
    }

    #[test]
    fn the_interval_combines_both() {
        let comparison = compare(&faster(1.0), &faster(1.2));
        let pair = &comparison.pairs[0];
        assert!((pair.ratio.unwrap() - 1.2).abs() < 1e-9);
        // sqrt(ln(100/98)^2 + ln(103/100)^2) = 0.03580
        assert!((pair.low.unwrap() - 1.2 * (-0.035_80f64).exp()).abs() < 1e-4, "{pair:?}");
        assert!((pair.high.unwrap() - 1.2 * 0.035_80f64.exp()).abs() < 1e-4, "{pair:?}");
        assert_eq!((pair.figure, pair.confidence), ("payload_bits_per_s", Some(95.0)));
    }

    #[test]
    fn a_check_fails_what_is_slower_for_certain_and_leaves_open_what_nobody_can_tell() {
        let counts = |comparison: &Comparison, threshold| {
            let check = comparison.check(threshold);
            (check.failed.len(), check.open.len())
        };
        let comparison = compare(&faster(1.0), &faster(0.97));
        assert_eq!(counts(&comparison, 0.95), (0, 1), "0.97 could be 0.936");
        assert_eq!(counts(&comparison, 0.93), (0, 0));
        assert_eq!(counts(&compare(&faster(1.0), &faster(0.9)), 0.95), (1, 0));
        let mut empty = faster(1.0);
        empty.measurements[0].rate.payload_bits_per_s.median = 0.0;
        assert_eq!(counts(&compare(&faster(1.0), &empty), 0.95), (0, 1), "nothing measured is no success");
    }

    #[test]
    fn a_file_beside_itself_is_alike_for_certain() {
        let mut single = faster(1.0);
        (single.measurements[0].rate.payload_bits_per_s.low, single.measurements[0].repeats) = (None, 1);
        let comparison = compare(&single, &single);
        let check = comparison.check(0.95);
        assert!(check.failed.is_empty() && check.open.is_empty());
        assert_eq!((comparison.pairs[0].answer, comparison.pairs[0].repeats_needed), (Answer::CannotTell, None));
    }

    #[test]
    fn the_repeats_that_would_tell_grow_with_the_square_of_what_is_missing() {
        let answer = |by| {
            let pair = compare(&faster(1.0), &faster(by)).pairs.remove(0);
            (pair.answer, pair.repeats_needed)
        };
        assert_eq!(answer(1.2), (Answer::Faster, None));
        assert_eq!(answer(0.9), (Answer::Slower, None));
        // 5 repeats reach 0.0358 of the 0.01 that are to be told: 5 x 3.6^2.
        assert_eq!(answer(1.01), (Answer::CannotTell, Some(65)));
        let mut single = faster(1.1);
        single.measurements[0].rate.payload_bits_per_s.low = None;
        assert_eq!(compare(&faster(1.0), &single).pairs[0].repeats_needed, Some(6));
    }

    #[test]
    fn the_largest_effect_stands_first_and_a_sentence_last() {
        let two = |first: f64, second: f64| Document {
            measurements: [first, second]
                .map(|by| {
                    let mut m = faster(by).measurements.remove(0);
                    m.window = Some(if by == first { 1 } else { 2 });
                    m
                })
                .to_vec(),
            ..sample::document()
        };
        let comparison = compare(&two(1.0, 1.001), &two(1.02, 0.801));
        assert_eq!(comparison.pairs[0].plan, "tcp rate send 64 B 2×1 adaptive");
        assert_eq!(
            comparison.sentence(),
            "Of 2 plans, B is faster in 0 and slower in 1; 1 cannot tell; the largest effect: tcp rate send 64 B 2×1 \
             adaptive, 0.800."
        );
    }

    #[test]
    fn a_shorter_time_is_faster() {
        let mut fast = sample::document().measurements[0].clone();
        let slow = fast.clone();
        fast.latency_ns = Some(sample::latency_around(3_050.0, 1_000_000));
        let pair = compare(&only(slow), &only(fast)).pairs.remove(0);
        assert_eq!(pair.figure, "latency_p50_ns");
        assert!((pair.ratio.unwrap() - 2.0).abs() < 0.05, "{pair:?}");
        assert!(pair.low.unwrap() < pair.ratio.unwrap());
    }

    #[test]
    fn names_what_else_differs_and_what_has_no_partner() {
        let a = sample::document();
        let mut b = sample::document();
        b.environment.kernel = Some("6.12.9".into());
        b.environment.governor = Some("performance".into());
        b.environment.nic = Some(Nic { name: "eth0".into(), ..Nic::default() });
        b.tool.commit = None;
        b.measurements[0].window = Some(2);
        let comparison = compare(&a, &b);
        let warned = |text: &str| comparison.warnings.iter().any(|warning| warning == text);
        assert!(warned("kernel differs: A 6.1.0-18-amd64, B 6.12.9"));
        assert!(warned("governor differs: A unknown, B performance"));
        assert!(warned("nic differs: A unknown, B eth0"));
        assert!(warned("hodo differs: A 0.1.0 (0123abc), B 0.1.0"));
        assert_eq!(comparison.only_in_a, ["tcp latency both 64 B 1×1 spin"]);
        assert_eq!(comparison.only_in_b, ["tcp latency both 64 B 2×1 spin"]);
    }

    #[test]
    fn the_table_says_which_figure_and_which_way() {
        let comparison = compare(&faster(1.0), &faster(1.2));
        assert_eq!(
            comparison_table(&comparison, Style { width: 104, color: false }),
            "  plan                              figure                  A            B    B/A  interval      answer\n  \
             tcp rate send 64 B 32×1 adaptive  payload rate  100.0 bit/s  120.0 bit/s  1.200  1.158..1.244  faster\n  \
             B/A over 1: B is faster. For times the ratio is inverted. Intervals at 95 %.\n  \
             Of 1 plan, B is faster in 1 and slower in 0; 0 cannot tell; the largest effect: tcp rate send 64 B\n  \
             32×1 adaptive, 1.200.\n"
        );
        let nothing = Comparison { pairs: Vec::new(), ..comparison };
        assert_eq!(comparison_table(&nothing, Style { width: 100, color: false }), "  no plan is in both\n");
    }

    #[test]
    fn the_answer_stays_on_a_narrow_terminal() {
        let document = sample::document();
        let mut other = sample::document();
        other.measurements[5].rate.payload_bits_per_s.median *= 1.001;
        let table = comparison_table(&compare(&document, &other), Style { width: 80, color: false });
        let rows: Vec<&str> = table.lines().take_while(|line| !line.contains("B/A over 1")).collect();
        assert!(rows.iter().all(|row| row.chars().count() <= 80), "{table}");
        assert!(rows[0].ends_with("B/A  answer       would tell"), "{table}");
        assert!(rows[1].contains("cannot tell  ") && rows[1].ends_with(" repeats"), "{table}");
    }

    /// Returns whether the second of two runs of one link, with so many repeats that vary by 5 %, is faster or slower for certain.
    fn differs_by_chance(link: &Measurement, seed: u64, repeats: u32) -> bool {
        let mut state = seed;
        // The sum of twelve uniform numbers has the spread of 1.
        let mut normal = || {
            (0..12).fold(-6.0, |sum, _| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sum + (state >> 11) as f64 / (1u64 << 53) as f64
            })
        };
        let mut run = || {
            let repeats: Vec<f64> = (0..repeats).map(|_| 1e9 * (1.0 + 0.05 * normal())).collect();
            let mut m = link.clone();
            m.rate.payload_bits_per_s = hodo_measure::statistics::estimate(&repeats, 95.0);
            m
        };
        pair(&run(), &run()).answer != Answer::CannotTell
    }

    #[test]
    fn two_runs_of_one_link_seldom_differ_for_certain() {
        let link = sample::rate("tcp", Mode::Send, 64);
        for repeats in [3, 5, 6, 10] {
            let wrong = (0..300).filter(|seed| differs_by_chance(&link, *seed * 7 + 1, repeats)).count();
            assert!(wrong < 24, "{repeats} repeats: {wrong} of 300");
        }
    }

    #[test]
    fn coalescence_that_the_driver_adapts_is_told_apart() {
        let nic = |adaptive| Nic { rx_usecs: Some(3), rx_adaptive: adaptive, ..Nic::default() };
        assert_eq!(coalescence(&nic(Some(true))).as_deref(), Some("adaptive from 3/? µs"));
        assert_eq!(coalescence(&nic(Some(false))).as_deref(), Some("3/? µs"));
        assert_eq!(coalescence(&nic(None)).as_deref(), Some("3/? µs"));
        assert_eq!(coalescence(&Nic::default()), None);
    }
}
