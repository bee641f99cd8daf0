//! Bars of a page: the stages of each measurement's operations, and the operations of each node of a link to several.

use super::chart::{LABEL, SMALL};
use super::charts::label;
use super::svg::{Anchor, Area, Font, OWN, Stroke, Svg};
use crate::stages::time;
use crate::units;
use hodo_measure::{Measurement, NodeShare, Side, Stage};

/// A finished drawing of bars.
pub(crate) struct Bars {
    pub title: &'static str,
    pub note: &'static str,
    pub keys: Vec<Key>,
    pub svg: String,
}

/// One entry of the legend of bars.
pub(crate) struct Key {
    pub label: String,
    pub color: usize,
    /// Whether it names a dashed line instead of bars.
    pub dashed: bool,
}

const WIDTH: f64 = 480.0;
const SHARE: Font = Font { class: "share", size: 11.0, bold: true, color: "#ffffff" };

/// Draws a bar for each measurement, in its stages. Stages of the far end are inside the one before them: a lower bar under it.
pub(crate) fn stage_bars(group: &[&Measurement]) -> Option<Bars> {
    const HEAD: f64 = 16.0;
    const BAR: f64 = 34.0;
    const THIN: f64 = 20.0;
    const GAP: f64 = 14.0;
    let has_stages = |m: &&&Measurement| m.stages.iter().any(|stage| stage.side == Side::Local);
    let members: Vec<&Measurement> = group.iter().filter(has_stages).copied().collect();
    let mut keys: Vec<(Side, &str)> = Vec::new();
    for stage in members.iter().flat_map(|m| &m.stages) {
        if !keys.contains(&(stage.side, &stage.name)) {
            keys.push((stage.side, &stage.name));
        }
    }
    let color = |stage: &Stage| keys.iter().position(|key| *key == (stage.side, &stage.name)).unwrap_or_default();
    let mut svg = Svg::default();
    let mut top = 0.0;
    for m in &members {
        svg.text((0.0, top + 12.0), Anchor::Start, LABEL, &label(m, &members));
        let mean = m.latency_ns.as_ref().map_or_else(|| units::UNKNOWN.into(), |latency| units::time_ns(latency.mean));
        svg.text((WIDTH, top + 12.0), Anchor::End, SMALL, &format!("mean {mean}"));
        for Segment { stage, from, to } in parts(&m.stages) {
            let (left, width) = (from * WIDTH, (to - from).max(0.0) * WIDTH);
            let title = format!("{}\n{}", stage_name(stage), stage_text(stage));
            let bar = top + HEAD;
            let (class, top, height) = match stage.side {
                Side::Local => ("stage", bar, BAR),
                Side::Remote => ("stage inner", bar + BAR + 1.0, THIN - 1.0),
            };
            svg.bar(class, color(stage), Area { left, top, width, height }, &title);
            if to - from >= 0.08 {
                let share = format!("{:.0} %", stage.share * 100.0);
                svg.text((left + width / 2.0, top + height / 2.0 + 4.0), Anchor::Middle, SHARE, &share);
            }
        }
        top += HEAD + BAR + THIN + GAP;
    }
    let key = |(color, (side, name)): (usize, &(Side, &str))| Key { label: named(*side, name), color, dashed: false };
    (!members.is_empty()).then(|| Bars {
        title: "Where the time goes",
        note: "under it: of that, at the far end",
        keys: keys.iter().enumerate().map(key).collect(),
        svg: svg.into_element("plot stages", WIDTH, top, "Where the time goes"),
    })
}

/// A stage and its place in the time of an operation, from 0 to 1.
struct Segment<'a> {
    stage: &'a Stage,
    from: f64,
    to: f64,
}

/// Places stages of this side one after another, and those of the far end in the middle of the one before them.
fn parts(stages: &[Stage]) -> Vec<Segment<'_>> {
    let mut parts = Vec::new();
    let mut at = 0.0;
    for (place, stage) in stages.iter().enumerate().filter(|(_, stage)| stage.side == Side::Local) {
        let end = at + stage.share;
        parts.push(Segment { stage, from: at, to: end });
        let within: Vec<&Stage> = stages[place + 1..].iter().take_while(|stage| stage.side == Side::Remote).collect();
        let inner = within.iter().map(|stage| stage.share).sum::<f64>().min(stage.share);
        let mut from = at + (stage.share - inner) / 2.0;
        for stage in within {
            let to = (from + stage.share).min(end);
            parts.push(Segment { stage, from, to });
            from = to;
        }
        at = end;
    }
    parts
}

fn named(side: Side, name: &str) -> String {
    if side == Side::Local { name.to_owned() } else { format!("{name}, far end") }
}

/// Returns a stage's name and side.
pub(crate) fn stage_name(stage: &Stage) -> String {
    format!("{}, {}", stage.name, if stage.side == Side::Local { "here" } else { "far end" })
}

/// Returns a stage's share and times.
pub(crate) fn stage_text(stage: &Stage) -> String {
    let Stage { count, mean_ns, p50_ns, p99_ns, share, .. } = stage;
    let percentiles =
        if p50_ns.is_some() { format!(", p50 {}, p99 {}", time(*p50_ns), time(*p99_ns)) } else { String::new() };
    format!("{:.1} %: mean {}{percentiles} of {}", share * 100.0, units::time_ns(*mean_ns), units::count(*count))
}

/// Draws a bar for each node, beside an equal share.
pub(crate) fn node_bars(group: &[&Measurement]) -> Option<Bars> {
    const HEAD: f64 = 18.0;
    const NUMBERS: f64 = 15.0;
    const GAP: f64 = 12.0;
    const EQUAL: Stroke = Stroke { class: "limit", color: OWN, width: 1.4, dashes: "5 4" };
    let members: Vec<&Measurement> = group.iter().filter(|m| events(m) > 0).copied().collect();
    let height = if members.len() > 1 { 64.0 } else { 210.0 };
    let mut svg = Svg::default();
    let mut top = 0.0;
    for m in &members {
        svg.text((0.0, top + 12.0), Anchor::Start, LABEL, &label(m, &members));
        let least = m.fairness.map_or_else(String::new, |f| format!("least over most {:.3}", f.min_over_max));
        svg.text((WIDTH, top + 12.0), Anchor::End, SMALL, &least);
        let floor = top + HEAD + height;
        let most = m.nodes.iter().map(|node| node.events).max().unwrap_or(1) as f64;
        let each = WIDTH / m.nodes.len() as f64;
        for (place, node) in m.nodes.iter().enumerate() {
            let tall = node.events as f64 / most * height;
            let left = each * (place as f64 + 0.1);
            let area = Area { left, top: floor - tall, width: each * 0.8, height: tall };
            svg.bar("node", 0, area, &format!("node {}\n{}", node.number, node_text(m, node)));
            if place == 0 || place + 1 == m.nodes.len() {
                let middle = (each * (place as f64 + 0.5), floor + 12.0);
                svg.text(middle, Anchor::Middle, SMALL, &node.number.to_string());
            }
        }
        let equal = floor - events(m) as f64 / m.nodes.len() as f64 / most * height;
        svg.series("", 1, None, |svg| svg.line((0.0, equal), (WIDTH, equal), EQUAL));
        top = floor + NUMBERS + GAP;
    }
    (!members.is_empty()).then(|| Bars {
        title: "Events of each node",
        note: "in the counted time",
        keys: vec![Key { label: "an equal share".into(), color: 1, dashed: true }],
        svg: svg.into_element("plot shares", WIDTH, top - GAP, "Events of each node"),
    })
}

fn events(m: &Measurement) -> u64 {
    m.nodes.iter().map(|node| node.events).sum()
}

/// Returns the events of a node, and their share of all nodes' events.
pub(crate) fn node_text(m: &Measurement, node: &NodeShare) -> String {
    let share = node.events as f64 / events(m).max(1) as f64;
    format!("{} events, {:.2} %", units::count(node.events), share * 100.0)
}
