//! Compares two documents, measurement by measurement: the ratio of each figure, and differences that may explain it.

mod answer;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Check};

use crate::figure::{self, Figure, plan_text};
use crate::layout::{Align, Cell, Column, Tone, clean, fit, render, wrap};
use crate::table::Style;
use crate::units::{self, UNKNOWN};
use hodo_measure::{Connection, Document, Environment, Estimate, FarEndFacts, Measurement, Nic, Test};
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
    /// The distance of a ratio from 1 that does not matter, as 0.03.
    pub same_within: f64,
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
    /// The number of repeats that would decide, if these do not; null if no reasonable number would.
    pub repeats_needed: Option<u32>,
    #[serde(skip)]
    kind: Figure,
}

/// Pairs the measurements of the same plan: protocol, test, mode, sizes, window, channels, batch, wait, rate asked, the requested options
/// of the sockets, and the flow beside. A ratio whose whole interval lies within `same_within` of 1 is the same.
///
/// A plan that was run several times is paired in order. The interval of the ratio comes from the two intervals,
/// taken as independent, on the logarithmic scale (the method of variance estimates recovery): with r = b/a,
/// ln r_low = ln r - sqrt(ln(b/b_low)^2 + ln(a_high/a)^2), and so for the upper end. A time has no interval of its own
/// in a document: with one operation at a time its relative interval is that of the operation rate, and in an
/// open-loop test it is not known.
#[must_use]
pub fn compare(a: &Document, b: &Document, same_within: f64) -> Comparison {
    let mut unmatched: Vec<&Measurement> = b.measurements.iter().collect();
    let mut comparison = Comparison {
        pairs: Vec::new(),
        warnings: environment_warnings(&a.environment, &b.environment),
        only_in_a: Vec::new(),
        only_in_b: Vec::new(),
        same_within,
    };
    if (&a.tool.version, &a.tool.commit) != (&b.tool.version, &b.tool.commit) {
        comparison.warnings.push(differs("hodo", &tool_text(a), &tool_text(b)));
    }
    for of_a in &a.measurements {
        match unmatched.iter().position(|of_b| same_plan(of_a, of_b)) {
            Some(place) => {
                let of_b = unmatched.remove(place);
                comparison.warnings.extend(pair_warnings(of_a, of_b));
                comparison.pairs.push(pair(of_a, of_b, same_within));
            }
            None => comparison.only_in_a.push(plan_text(of_a)),
        }
    }
    comparison.only_in_b = unmatched.into_iter().map(plan_text).collect();
    let effect = |pair: &Pair| pair.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    comparison.pairs.sort_by(|a, b| effect(b).total_cmp(&effect(a)));
    comparison
}

/// Draws the comparison as a table for people, with warnings and unmatched plans under it. [`Comparison::sentence`] belongs below.
#[must_use]
pub fn comparison_table(comparison: &Comparison, style: Style) -> String {
    let mut text = match comparison.pairs.iter().find_map(|pair| pair.confidence) {
        _ if comparison.pairs.is_empty() => String::new(),
        confidence => {
            let level = confidence.map_or_else(String::new, |percent| format!(" Intervals at {percent} %."));
            let table = render(&fit(columns(&comparison.pairs), style.width), style.color);
            let same = format!("Same: the whole interval within ± {} %.", comparison.same_percent());
            let legend = format!("B/A over 1: B is faster. For times the ratio is inverted. {same}{level}");
            format!("{table}  {}\n", wrap(&legend, style.width.saturating_sub(2).max(40)).join("\n  "))
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
        Answer::Same | Answer::CannotTell => Tone::Plain,
    };
    Cell { text: pair.ratio.map_or_else(|| UNKNOWN.into(), |ratio| format!("{ratio:.3}")), tone, sort: None }
}

impl Pair {
    /// Returns the file in which nothing was measured, if something was in the other one.
    pub(crate) fn missing_in(&self) -> Option<&'static str> {
        let is_measured = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
        match (is_measured(self.a), is_measured(self.b)) {
            (true, false) => Some("B"),
            (false, true) => Some("A"),
            _ => None,
        }
    }
}

fn pair(a: &Measurement, b: &Measurement, same_within: f64) -> Pair {
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
    let answer = Answer::of(bounds, same_within);
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
        low: bounds.map(|(low, _)| low),
        high: bounds.map(|(_, high)| high),
        confidence: bounds.and(levels).map(|(a, b)| a.min(b)),
        answer,
        repeats_needed: needed.and_then(|ratio| answer::repeats_needed(ratio, bounds, repeats, same_within)),
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
    let drive = |m: &Measurement| (m.window, m.channels, m.batch, m.rounds, m.rate_asked, m.pace_asked);
    let connection = |m: &Measurement| m.connection.as_ref().map(Connection::plan).unwrap_or_default();
    let other =
        |m: &Measurement| m.beside.as_ref().map(|b| (b.protocol.clone(), b.test, b.mode, b.size_bytes, b.pace_asked));
    let is_same_drive = drive(a) == drive(b) && connection(a) == connection(b) && other(a) == other(b);
    figure::protocol_text(a) == figure::protocol_text(b) && a.wait == b.wait && key(a) == key(b) && is_same_drive
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
