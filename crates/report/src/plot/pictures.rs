//! Which curves a picture of measurements holds.

use super::panel::{Curve, GREY, Key, PALETTE, Panel, Shape, Strip};
use super::scale::Unit;
use crate::distribution::percentiles;
use crate::figure::{self, Figure};
use crate::units;
use hodo_measure::Measurement;

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Picture {
    /// Rate and CPU against size, the limit dashed.
    Rate,
    /// p50 and p99 of the operations' times against size.
    Latency,
    /// The times at every percentile.
    Distribution,
    /// The rate over the run.
    OverTime,
}

impl Picture {
    /// Every picture.
    pub const ALL: [Picture; 4] = [Picture::Rate, Picture::Latency, Picture::Distribution, Picture::OverTime];
}

/// The panel for measurements of one protocol, link and test; none where they hold nothing to draw.
pub(super) fn panel(picture: Picture, group: &[&Measurement]) -> Option<Panel> {
    match picture {
        Picture::Rate => rate(group),
        Picture::Latency => latency(group),
        Picture::Distribution => singly(
            group,
            "Distribution of times",
            "share of operations that took no longer",
            Unit::Tail,
            Unit::TimeNs,
            |m| {
                let histogram = m.latency_ns.as_ref().map_or("", |latency| &latency.histogram);
                percentiles(histogram).into_iter().map(|point| (1.0 / (1.0 - point.share), point.time_ns)).collect()
            },
        ),
        Picture::OverTime => {
            let by_operations = group.iter().all(|m| m.payload_bytes == 0);
            let unit = if by_operations { Unit::OperationsPerS } else { Unit::BitsPerS };
            singly(
                group,
                "Rate over time",
                "time since the counted part began",
                Unit::Seconds,
                unit,
                figure::interval_rates,
            )
        }
    }
}

/// What the horizontal axis counts: the first of these that differs within the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Across {
    Size,
    Channels,
    Window,
    Asked,
}

impl Across {
    fn of(group: &[&Measurement]) -> Option<Across> {
        [Across::Size, Across::Channels, Across::Window, Across::Asked]
            .into_iter()
            .find(|across| group.iter().any(|m| across.value(m) != across.value(group[0])))
    }

    fn value(self, m: &Measurement) -> Option<f64> {
        match self {
            Across::Size => figure::mean_size(m).map(|size| size.max(1.0)),
            Across::Channels => Some(f64::from(m.channels)),
            Across::Window => Some(f64::from(m.window)),
            Across::Asked => m.rate_asked,
        }
    }

    fn label(self, group: &[&Measurement]) -> (&'static str, Unit) {
        match self {
            Across::Size if group[0].size_bytes.is_none() => ("mean payload of an operation", Unit::Bytes),
            Across::Size => ("payload of an operation", Unit::Bytes),
            Across::Channels => ("channels", Unit::Count),
            Across::Window => ("operations in flight per channel", Unit::Count),
            Across::Asked => ("operations per second asked for", Unit::Count),
        }
    }
}

/// Measurements that differ in nothing but what the axis counts.
struct Series<'a> {
    label: String,
    color: &'static str,
    members: Vec<(f64, &'a Measurement)>,
}

fn rate(group: &[&Measurement]) -> Option<Panel> {
    let across = Across::of(group)?;
    let (all, note) = series(group, across);
    let by_operations = group.iter().all(|m| Figure::of(m) == Figure::OperationRate);
    let unit = if by_operations { Unit::OperationsPerS } else { Unit::BitsPerS };
    let achieved = |m: &Measurement| {
        let rate = &m.rate;
        Some(if by_operations { rate.operations_per_s.median } else { rate.payload_bits_per_s.median })
    };
    let limit = |m: &Measurement| {
        m.limit.as_ref().and_then(|limit| if by_operations { limit.operations_per_s } else { limit.payload_bits_per_s })
    };
    let busier = |m: &Measurement| {
        let sides = [m.cpu.local, m.cpu.remote];
        sides.into_iter().flatten().map(|process| process.percent).reduce(f64::max)
    };
    let mut rates = curves(&all, &Shape::Dashed, limit);
    let has_limit = !rates.is_empty();
    rates.extend(curves(&all, &Shape::Dotted, achieved));
    let cpu = curves(&all, &Shape::Dotted, busier);
    let what = if by_operations { "operations" } else { "payload" };
    let mut strips = vec![Strip { label: what.into(), unit, weight: 2.4, curves: rates }];
    if !cpu.is_empty() {
        let label = "CPU of the busier side, 100 % is one processor".into();
        strips.push(Strip { label, unit: Unit::Percent, weight: 1.0, curves: cpu });
    }
    let mut legend = legend(&all);
    if has_limit {
        legend.push(limit_key(group));
    }
    finish(if cpu_missing(&strips) { "Rate" } else { "Rate and CPU" }, note, across.label(group), legend, strips)
}

fn latency(group: &[&Measurement]) -> Option<Panel> {
    let across = Across::of(group)?;
    let (all, note) = series(group, across);
    let of = |pick: fn(&hodo_measure::Latency) -> u64| {
        move |m: &Measurement| m.latency_ns.as_ref().map(|latency| pick(latency) as f64)
    };
    let mut lines = curves(&all, &Shape::Dashed, |m| m.limit.as_ref().and_then(|limit| limit.latency_ns));
    let has_limit = !lines.is_empty();
    let tails = curves(&all, &Shape::Plain, of(|latency| latency.p99));
    let medians = curves(&all, &Shape::Dotted, of(|latency| latency.p50));
    for (median, tail) in medians.iter().zip(&tails) {
        let tops = tail.points.iter().map(|(_, y)| *y).collect();
        lines.push(Curve { shape: Shape::Band(tops), ..median.clone() });
    }
    lines.extend(medians);
    let mut legend = legend(&all);
    if has_limit {
        legend.push(limit_key(group));
    }
    let label = "time of an operation: line p50, band up to p99".into();
    let strips = vec![Strip { label, unit: Unit::TimeNs, weight: 1.0, curves: lines }];
    finish("Time of an operation", note, across.label(group), legend, strips)
}

fn limit_key(group: &[&Measurement]) -> Key {
    let kind = group.iter().find_map(|m| m.limit.as_ref()).map_or("", |limit| limit.kind.word());
    Key { label: format!("limit ({kind})"), color: GREY, dashed: true }
}

/// A picture with a curve for each measurement.
fn singly(
    group: &[&Measurement],
    title: &str,
    x_label: &'static str,
    x_unit: Unit,
    unit: Unit,
    points: impl Fn(&Measurement) -> Vec<(f64, f64)>,
) -> Option<Panel> {
    let mut drawn: Vec<(&Measurement, Vec<(f64, f64)>)> = group.iter().map(|m| (*m, points(m))).collect();
    drawn.retain(|(_, points)| points.len() > 1);
    let found = drawn.len();
    let drawn: Vec<_> = spread_out(found).map(|place| drawn[place].clone()).collect();
    let members: Vec<&Measurement> = drawn.iter().map(|(m, _)| *m).collect();
    let mut legend = Vec::new();
    let mut curves = Vec::new();
    for (color, (m, points)) in PALETTE.into_iter().zip(drawn) {
        legend.push(Key { label: differences(m, &members, None), color, dashed: false });
        curves.push(Curve { color, shape: Shape::Plain, points });
    }
    let label = if unit == Unit::TimeNs { "time of an operation" } else { "rate" };
    let strips = vec![Strip { label: label.into(), unit, weight: 1.0, curves }];
    finish(title, shown(members.len(), found), (x_label, x_unit), legend, strips)
}

fn finish(
    title: &str,
    note: String,
    (x_label, x_unit): (&str, Unit),
    legend: Vec<Key>,
    strips: Vec<Strip>,
) -> Option<Panel> {
    let any = strips.iter().any(|strip| strip.curves.iter().any(|curve| curve.shape != Shape::Dashed));
    any.then(|| Panel { title: title.into(), note, x_label: x_label.into(), x_unit, legend, strips })
}

fn cpu_missing(strips: &[Strip]) -> bool {
    strips.len() < 2
}

/// The group as series of points in rising order, as many as there are colours.
fn series<'a>(group: &[&'a Measurement], across: Across) -> (Vec<Series<'a>>, String) {
    let mut all: Vec<Series<'a>> = Vec::new();
    for m in group {
        let Some(x) = across.value(m) else { continue };
        let label = differences(m, group, Some(across));
        match all.iter_mut().find(|series| series.label == label) {
            Some(series) => series.members.push((x, m)),
            None => all.push(Series { label, color: GREY, members: vec![(x, m)] }),
        }
    }
    let found = all.len();
    all.truncate(PALETTE.len());
    for (series, color) in all.iter_mut().zip(PALETTE) {
        series.color = color;
        series.members.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let note = shown(all.len(), found);
    (all, note)
}

fn curves(all: &[Series<'_>], shape: &Shape, value: impl Fn(&Measurement) -> Option<f64>) -> Vec<Curve> {
    all.iter()
        .map(|series| {
            let point = |(x, m): &(f64, &Measurement)| Some((*x, value(m).filter(|y| y.is_finite() && *y > 0.0)?));
            Curve {
                color: series.color,
                shape: shape.clone(),
                points: series.members.iter().filter_map(point).collect(),
            }
        })
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

/// One entry a series; none where there is only one, which needs no name.
fn legend(all: &[Series<'_>]) -> Vec<Key> {
    let named = all.iter().filter(|series| all.len() > 1 || !series.label.is_empty());
    named.map(|series| Key { label: series.label.clone(), color: series.color, dashed: false }).collect()
}

/// What tells a measurement from the others of its group, without what the axis already says.
fn differences(m: &Measurement, group: &[&Measurement], across: Option<Across>) -> String {
    let differs = |key: &dyn Fn(&Measurement) -> String| group.iter().any(|other| key(other) != key(m));
    type Fact<'a> = (Option<Across>, &'a dyn Fn(&Measurement) -> String);
    let facts: [Fact<'_>; 7] = [
        (None, &|m| figure::mode_text(m.mode).into()),
        (Some(Across::Size), &figure::size_text),
        (Some(Across::Window), &|m| format!("window {}", m.window)),
        (Some(Across::Channels), &|m| format!("{} channel{}", m.channels, if m.channels == 1 { "" } else { "s" })),
        (None, &|m| format!("batch {}", m.batch)),
        (None, &|m| m.wait.clone()),
        (Some(Across::Asked), &|m| m.rate_asked.map_or_else(String::new, units::operations_per_s)),
    ];
    let telling = facts.iter().filter(|(fact, key)| (fact.is_none() || *fact != across) && differs(key));
    let words: Vec<String> = telling.map(|(_, key)| key(m)).collect();
    match (words.is_empty(), across) {
        (false, _) => words.join(", "),
        (true, Some(_)) => figure::mode_text(m.mode).into(),
        (true, None) => format!("{}, {}", figure::mode_text(m.mode), figure::size_text(m)),
    }
}

/// Places among `count`, the first and the last in it, as many as there are colours.
fn spread_out(count: usize) -> impl Iterator<Item = usize> {
    let shown = count.min(PALETTE.len());
    (0..shown).map(move |place| if shown < 2 { 0 } else { place * (count - 1) / (shown - 1) })
}

fn shown(shown: usize, found: usize) -> String {
    if shown < found { format!("{shown} of {found} shown") } else { String::new() }
}
