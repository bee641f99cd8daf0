//! Bars of a page: the operations of each node of a link to several.

use super::chart::{LABEL, SMALL};
use super::charts::label;
use super::drawing::{Anchor, Area, DASHES, Drawing, OWN, Stroke};
use super::svg;
use crate::units;
use hodo_measure::{Measurement, NodeShare};

/// A finished drawing of bars.
pub(crate) struct Bars {
    pub title: String,
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

/// Draws a bar for each node, beside an equal share.
pub(crate) fn node_bars(group: &[&Measurement]) -> Option<Bars> {
    const HEAD: f64 = 18.0;
    const NUMBERS: f64 = 15.0;
    const GAP: f64 = 12.0;
    const EQUAL: Stroke = Stroke { class: "limit", color: OWN, width: 1.4, dashes: DASHES };
    let members: Vec<&Measurement> = group.iter().filter(|m| events(m) > 0).copied().collect();
    let height = if members.len() > 1 { 64.0 } else { 210.0 };
    let mut drawing = Drawing::default();
    let mut top = 0.0;
    for m in &members {
        drawing.text((0.0, top + 12.0), Anchor::Start, LABEL, &label(m, &members));
        let least = m.fairness.map_or_else(String::new, |f| format!("least over most {:.3}", f.min_over_max));
        drawing.text((WIDTH, top + 12.0), Anchor::End, SMALL, &least);
        let floor = top + HEAD + height;
        let most = m.nodes.iter().map(|node| node.events).max().unwrap_or(1) as f64;
        let each = WIDTH / m.nodes.len() as f64;
        for (place, node) in m.nodes.iter().enumerate() {
            let tall = node.events as f64 / most * height;
            let left = each * (place as f64 + 0.1);
            let area = Area { left, top: floor - tall, width: each * 0.8, height: tall };
            drawing.bar("node", 0, area, &format!("node {}\n{}", node.number, node_text(m, node)));
            if place == 0 || place + 1 == m.nodes.len() {
                let middle = (each * (place as f64 + 0.5), floor + 12.0);
                drawing.text(middle, Anchor::Middle, SMALL, &node.number.to_string());
            }
        }
        let equal = floor - events(m) as f64 / m.nodes.len() as f64 / most * height;
        drawing.series("", 1, None, |drawing| drawing.line((0.0, equal), (WIDTH, equal), EQUAL));
        top = floor + NUMBERS + GAP;
    }
    (!members.is_empty()).then(|| Bars {
        title: "Events of each node".into(),
        note: "in the counted time",
        keys: vec![Key { label: "an equal share".into(), color: 1, dashed: true }],
        svg: svg::element(&drawing, "plot shares", WIDTH, top - GAP, "Events of each node"),
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
