//! The charts of measurements: which there are, and which curves each holds.

use super::chart::{Chart, Point, Series};
use super::drawing::PALETTE;
use super::scale::Unit;
use crate::distribution::percentiles;
use crate::figure::{self, Figure};
use crate::units;
use hodo_measure::{Latency, Measurement};

/// One kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Picture {
    /// Payload rate and CPU against size, the limit dashed.
    Rate,
    /// Operations per second and the time for each against size, likewise.
    Operations,
    /// p50 and p99 of the operations' times against size.
    Latency,
    /// The times at every percentile.
    Distribution,
    /// The rate over the run.
    OverTime,
    /// CPU of the machine and of either side against size.
    Cpu,
}

impl Picture {
    /// Every picture.
    pub const ALL: [Picture; 6] =
        [Picture::Rate, Picture::Operations, Picture::Latency, Picture::Distribution, Picture::OverTime, Picture::Cpu];

    /// Returns every picture of the page, the most telling for this group's test first, the rate over the run last.
    pub(crate) fn in_order(group: &[&Measurement]) -> [Picture; 5] {
        let [rate, operations] = [Picture::Rate, Picture::Operations];
        match Figure::of(group[0]) {
            Figure::Latency => [Picture::Latency, Picture::Distribution, rate, operations, Picture::OverTime],
            _ => [rate, operations, Picture::Latency, Picture::Distribution, Picture::OverTime],
        }
    }
}

/// Returns the charts of a picture for measurements of one protocol, link and test; none if there is nothing to draw.
pub(crate) fn charts(picture: Picture, group: &[&Measurement]) -> Vec<Chart> {
    let charts = match picture {
        Picture::Rate => against(group, &[rate, cpu, speed]),
        Picture::Operations => against(group, &[operations, spacing]),
        Picture::Latency => against(group, &[latency]),
        Picture::Cpu => against(group, &[machine, here, far, speed, computing]),
        Picture::Distribution => vec![distribution(group)],
        Picture::OverTime => vec![over_time(group)],
    };
    charts.into_iter().filter(|chart| !chart.series.is_empty()).collect()
}

/// Returns charts against the fact that differs within a group; none if nothing differs.
fn against(group: &[&Measurement], charts: &[fn(&[&Measurement], Across) -> Chart]) -> Vec<Chart> {
    let across = Across::of(group);
    across.map_or_else(Vec::new, |across| charts.iter().map(|chart| chart(group, across)).collect())
}

/// The number of series that are shown before a reader chooses: as many as have colours that are easily told apart.
const SHOWN_FIRST: usize = 6;

/// The fact that the horizontal axis counts: the first of these that differs within the group.
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
            Across::Window => m.window.map(f64::from),
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

fn rate(group: &[&Measurement], across: Across) -> Chart {
    let by_operations = group.iter().all(|m| Figure::of(m) == Figure::OperationRate);
    let (title, unit) =
        if by_operations { ("Operations", Unit::OperationsPerS) } else { ("Payload rate", Unit::BitsPerS) };
    chart(group, across, (title, ""), unit, &|m| {
        let (rate, limit) = (&m.rate, m.limit.as_ref());
        let (y, limit) = if by_operations {
            (rate.operations_per_s.median, limit.and_then(|limit| limit.operations_per_s))
        } else {
            (rate.payload_bits_per_s.median, limit.and_then(|limit| limit.payload_bits_per_s))
        };
        Some(Point { y, limit, ..Point::default() })
    })
}

/// Returns a chart of operations per second; none where that is the payload rate's.
fn operations(group: &[&Measurement], across: Across) -> Chart {
    let shown: Vec<&Measurement> = group.iter().copied().filter(|m| Figure::of(m) != Figure::OperationRate).collect();
    chart(&shown, across, ("Operations", ""), Unit::OperationsPerS, &|m| {
        let limit = m.limit.as_ref().and_then(|limit| limit.operations_per_s);
        Some(Point { y: m.rate.operations_per_s.median, limit, ..Point::default() })
    })
}

/// Returns a chart of the time between the ends of two operations.
fn spacing(group: &[&Measurement], across: Across) -> Chart {
    let note = "of an operation: 1 over their rate";
    chart(group, across, ("Average time", note), Unit::TimeNs, &|m| {
        let limit = m.limit.as_ref().and_then(|limit| limit.operations_per_s).map(|rate| 1e9 / rate);
        Some(Point { y: figure::spacing_ns(m)?, limit, ..Point::default() })
    })
}

fn cpu(group: &[&Measurement], across: Across) -> Chart {
    let note = "of the busier side, 100 % is one processor";
    value_chart(group, across, ("CPU", note), Unit::Percent, &|m| {
        let sides = [m.cpu.local, m.cpu.remote].into_iter().flatten();
        sides.map(|process| process.percent).reduce(f64::max)
    })
}

fn machine(group: &[&Measurement], across: Across) -> Chart {
    let note = "100 % is all processors";
    value_chart(group, across, ("CPU of the machine", note), Unit::Percent, &|m| m.cpu.machine_percent)
}

fn here(group: &[&Measurement], across: Across) -> Chart {
    let note = "100 % is one processor";
    value_chart(group, across, ("CPU of this process", note), Unit::Percent, &|m| Some(m.cpu.local?.percent))
}

fn far(group: &[&Measurement], across: Across) -> Chart {
    let note = "100 % is one processor";
    value_chart(group, across, ("CPU of the far end", note), Unit::Percent, &|m| Some(m.cpu.remote?.percent))
}

/// Returns a chart of how fast this host computed a simulated link, whose CPU in virtual time would say nothing.
fn speed(group: &[&Measurement], across: Across) -> Chart {
    let title = ("This host", "simulated time over its own; under 1 it is slower than the link");
    value_chart(group, across, title, Unit::Times, &|m| Some(m.simulation?.times_real_time))
}

fn computing(group: &[&Measurement], across: Across) -> Chart {
    let title = ("CPU time of this host", "to compute an operation");
    value_chart(group, across, title, Unit::TimeNs, &|m| m.simulation?.local_ns_per_operation)
}

fn latency(group: &[&Measurement], across: Across) -> Chart {
    let note = "from its start to its end, with its wait in the window: line p50, band up to p99";
    chart(group, across, ("Time of an operation", note), Unit::TimeNs, &|m| {
        let Latency { p50, p99, .. } = m.latency_ns.as_ref()?;
        let limit = m.limit.as_ref().and_then(|limit| limit.latency_ns);
        Some(Point { y: *p50 as f64, top: Some(*p99 as f64), limit, ..Point::default() })
    })
}

/// Returns a chart of a value without a limit.
fn value_chart(
    group: &[&Measurement],
    across: Across,
    title: (&str, &str),
    unit: Unit,
    value: &dyn Fn(&Measurement) -> Option<f64>,
) -> Chart {
    chart(group, across, title, unit, &|m| value(m).map(|y| Point { y, ..Point::default() }))
}

/// Returns a chart of a value against what differs, a series for all measurements that differ in nothing else.
fn chart(
    group: &[&Measurement],
    across: Across,
    (title, note): (&str, &str),
    unit: Unit,
    value: &dyn Fn(&Measurement) -> Option<Point>,
) -> Chart {
    let (x_label, x_unit) = group.first().map_or(("", Unit::Count), |_| across.label(group));
    let mut series: Vec<Series> = Vec::new();
    let usable = |y: &f64| y.is_finite() && *y > 0.0;
    for m in group {
        let Some((x, point)) = across.value(m).zip(value(m).filter(|point| usable(&point.y))) else { continue };
        let words = format!("{}\n{}", figure::plan_text(m), m.verdict.state.word());
        let tip = format!("{}: {}\n{words}", x_unit.text(x), unit.text(point.y));
        let point = Point { x, tip, limit: point.limit.filter(usable), top: point.top.filter(usable), ..point };
        let label = differences(m, group, Some(across));
        match series.iter_mut().find(|series| series.label == label) {
            Some(series) => series.points.push(point),
            None => {
                let color = series.len();
                series.push(Series { label, color, shown: color < SHOWN_FIRST, dots: true, points: vec![point] });
            }
        }
    }
    for one in &mut series {
        one.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let has_limit = |series: &Series| series.points.iter().filter(|point| point.limit.is_some()).count() > 1;
    let mut sources: Vec<&str> = group.iter().filter_map(|m| Some(m.limit.as_ref()?.source())).collect();
    sources.sort_unstable();
    sources.dedup();
    let limit = series.iter().any(has_limit).then(|| format!("limit ({})", sources.join(", ")));
    Chart { title: title.into(), note: note.into(), x_label, x_unit, unit, limit, series }
}

fn distribution(group: &[&Measurement]) -> Chart {
    let axis = ("share of operations that took no longer", Unit::Tail);
    singly(group, "Distribution of times", axis, Unit::TimeNs, &|m| {
        let histogram = m.latency_ns.as_ref().map_or("", |latency| &latency.histogram);
        percentiles(histogram).into_iter().map(|point| (1.0 / (1.0 - point.share), point.time_ns)).collect()
    })
}

fn over_time(group: &[&Measurement]) -> Chart {
    let by_operations = group.iter().all(|m| m.payload_bytes == 0);
    let unit = if by_operations { Unit::OperationsPerS } else { Unit::BitsPerS };
    let axis = ("time since the counted part began", Unit::Seconds);
    singly(group, "Rate over time", axis, unit, &figure::interval_rates)
}

/// Returns a chart with a curve for each measurement.
fn singly(
    group: &[&Measurement],
    title: &str,
    (x_label, x_unit): (&'static str, Unit),
    unit: Unit,
    points: &dyn Fn(&Measurement) -> Vec<(f64, f64)>,
) -> Chart {
    let members: Vec<&Measurement> = group.iter().filter(|m| points(m).len() > 1).copied().collect();
    let first = spread_out(members.len());
    let series = |(place, m): (usize, &&Measurement)| {
        let shown = first.iter().position(|shown| *shown == place);
        let tip = |x: f64, y: f64| format!("{}: {}", x_unit.text(x), unit.text(y));
        let point = |(x, y): (f64, f64)| Point { x, y, tip: tip(x, y), ..Point::default() };
        Series {
            label: differences(m, &members, None),
            color: shown.unwrap_or(place) % PALETTE.len(),
            shown: shown.is_some(),
            dots: false,
            points: points(m).into_iter().map(point).collect(),
        }
    };
    let series = members.iter().enumerate().map(series).collect();
    Chart { title: title.into(), note: String::new(), x_label, x_unit, unit, limit: None, series }
}

/// Returns the facts that tell a measurement from the others of its group, without the one that the axis counts.
fn differences(m: &Measurement, group: &[&Measurement], across: Option<Across>) -> String {
    let differs = |key: &dyn Fn(&Measurement) -> String| group.iter().any(|other| key(other) != key(m));
    type Fact<'a> = (Option<Across>, &'a dyn Fn(&Measurement) -> String);
    let facts: [Fact<'_>; 9] = [
        (None, &|m| figure::mode_text(m.mode).into()),
        (Some(Across::Size), &figure::size_text),
        (Some(Across::Window), &|m| {
            m.window.map_or_else(|| "no window".to_owned(), |window| format!("window {window}"))
        }),
        (Some(Across::Channels), &|m| format!("{} channel{}", m.channels, if m.channels == 1 { "" } else { "s" })),
        (None, &|m| format!("batch {}", m.batch)),
        (None, &|m| if m.rounds { "in rounds" } else { "sliding window" }.to_owned()),
        (None, &|m| m.wait.clone()),
        (None, &|m| figure::beside_text(m).map_or_else(|| "alone".to_owned(), |other| format!("beside {other}"))),
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

/// Returns the label of a measurement that has a bar of its own among those of its group.
pub(super) fn label(m: &Measurement, group: &[&Measurement]) -> String {
    differences(m, group, None)
}

/// Returns places among `count`, the first and the last in it, as many as are shown at first.
fn spread_out(count: usize) -> Vec<usize> {
    let shown = count.min(SHOWN_FIRST);
    (0..shown).map(|place| if shown < 2 { 0 } else { place * (count - 1) / (shown - 1) }).collect()
}
