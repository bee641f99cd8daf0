//! The stages of an operation as a waterfall: one row for each, whose bar begins where the last one ended.

use super::bars::{Bars, Key};
use super::chart::{LABEL, SMALL};
use super::charts::label;
use super::drawing::{Anchor, Area, Drawing, Stroke, text_width};
use super::scale::{Scale, Unit};
use super::svg;
use crate::stages::{sum, time};
use crate::units;
use hodo_measure::{Measurement, Side, Stage};

const WIDTH: f64 = 480.0;
const HEAD: f64 = 18.0;
const ROW: f64 = 32.0;
const BAR: f64 = 10.0;
/// From the top of a row to that of its bar: the room of its words.
const WORDS: f64 = 16.0;
const FOOT: f64 = 24.0;
/// How far the rows of the far end are moved to the right.
const INDENT: f64 = 12.0;
/// Names end here.
const NAME_RIGHT: f64 = 222.0;
/// The heads of the figures, and where they end.
const COLUMNS: [(&str, f64); 4] = [("mean", 290.0), ("p50", 352.0), ("p99", 414.0), ("share", WIDTH)];
/// The narrowest bar: a stage of almost no time can still be seen.
const NARROWEST: f64 = 2.0;
/// The axis ends at the longest p99, or at this many times the whole.
const AXIS_MOST: f64 = 1.5;
const GRID: Stroke = Stroke { class: "grid", color: "#e5e7eb", width: 1.0, dashes: "" };
const SPREAD: Stroke = Stroke { class: "spread", color: "#1f2937", width: 1.2, dashes: "" };

/// The place where the time of a row was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Here,
    /// Here, waiting for the stages of the far end, whose rows follow.
    Around,
    FarEnd,
    /// Between the two ends, on the way out or back.
    Between,
}

impl Place {
    const fn class(self) -> &'static str {
        match self {
            Place::Here => "stage here",
            Place::Around => "stage around",
            Place::FarEnd => "stage far",
            Place::Between => "stage between",
        }
    }

    /// Returns the place of its colour in the palette.
    const fn color(self) -> usize {
        match self {
            Place::Here | Place::Around => 0,
            Place::FarEnd => 1,
            Place::Between => 6,
        }
    }
}

/// One row: a stage, and its part of the time of an operation, from 0 to 1.
struct Row {
    stage: Stage,
    place: Place,
    from: f64,
    to: f64,
}

/// Draws a waterfall for each measurement that has stages.
pub(crate) fn waterfalls(group: &[&Measurement]) -> Vec<Bars> {
    let has_stages = |m: &&&Measurement| m.stages.iter().any(|stage| stage.side == Side::Local);
    let members: Vec<&Measurement> = group.iter().filter(has_stages).copied().collect();
    members.iter().filter_map(|m| waterfall(m, &label(m, &members))).collect()
}

fn waterfall(m: &Measurement, label: &str) -> Option<Bars> {
    let whole = sum(&m.stages)?;
    let rows = rows(&m.stages);
    let spreads = rows.iter().filter_map(|row| Some(row.from * whole.mean_ns + row.stage.p99_ns? as f64));
    let longest = spreads.fold(whole.mean_ns, f64::max).min(AXIS_MOST * whole.mean_ns);
    let per_ns = WIDTH / longest;
    if !(per_ns.is_finite() && whole.mean_ns > 0.0) {
        return None;
    }
    let mut drawing = Drawing::default();
    let height = HEAD + ROW * (rows.len() + 1) as f64;
    draw_axis(&mut drawing, longest, rows.len() + 1);
    for (name, right) in COLUMNS {
        drawing.text((right, 12.0), Anchor::End, SMALL, name);
    }
    for (number, row) in rows.iter().enumerate() {
        draw_row(&mut drawing, HEAD + ROW * number as f64, row, whole.mean_ns, per_ns);
    }
    let times = m.latency_ns.as_ref();
    let (p50_ns, p99_ns) = (times.map(|times| times.p50), times.map(|times| times.p99));
    let whole = Stage { p50_ns, p99_ns, ..whole };
    let mean_ns = whole.mean_ns;
    let whole = Row { to: whole.share, stage: whole, place: Place::Around, from: 0.0 };
    draw_row(&mut drawing, height - ROW, &whole, mean_ns, per_ns);
    let title = if label.is_empty() { "Where the time goes".into() } else { format!("Where the time goes: {label}") };
    Some(Bars {
        svg: svg::element(&drawing, "plot stages", WIDTH, height + FOOT, &title),
        title,
        note: "mean, p50 to p99",
        keys: keys(&rows),
    })
}

/// Returns the rows in the order of time: the stages of this side one after another, those of the far end within the one before them.
///
/// What the far end's leave of that stage is the way out and the way back. Only their sum is measured; each is drawn as a half.
fn rows(stages: &[Stage]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut at = 0.0;
    for (number, stage) in stages.iter().enumerate().filter(|(_, stage)| stage.side == Side::Local) {
        let end = at + stage.share;
        let within: Vec<&Stage> = stages[number + 1..].iter().take_while(|stage| stage.side == Side::Remote).collect();
        let place = if within.is_empty() { Place::Here } else { Place::Around };
        rows.push(Row { stage: stage.clone(), place, from: at, to: end });
        // Nothing stamps what is left, so it has no percentiles.
        let (left, far): (Vec<&Stage>, Vec<&Stage>) = within.into_iter().partition(|stage| stage.p50_ns.is_none());
        let way = |direction: &'static str| {
            let half = move |stage: &&Stage| Stage {
                name: format!("{}, {direction}", stage.name),
                mean_ns: stage.mean_ns / 2.0,
                share: stage.share / 2.0,
                ..(*stage).clone()
            };
            left.iter().map(half).map(|stage| (Place::Between, stage))
        };
        let far = far.into_iter().map(|stage| (Place::FarEnd, stage.clone()));
        let mut from = at;
        for (place, stage) in way("out").chain(far).chain(way("back")) {
            let to = (from + stage.share).min(end);
            rows.push(Row { stage, place, from, to });
            from = to;
        }
        at = end;
    }
    rows
}

/// Draws the axis below the rows, and its grid beside their bars: no line crosses a word.
fn draw_axis(drawing: &mut Drawing, longest_ns: f64, rows: usize) {
    let bottom = HEAD + ROW * rows as f64;
    let mut free_from = f64::NEG_INFINITY;
    for (value, label) in Scale::from_zero(Unit::TimeNs, longest_ns).ticks(6) {
        let x = value / longest_ns * WIDTH;
        for row in 0..rows {
            let top = HEAD + ROW * row as f64 + WORDS;
            drawing.line((x, top - 1.0), (x, top + BAR + 1.0), GRID);
        }
        // The first and the last label stay inside the drawing.
        let half = text_width(&label, LABEL.size) * 0.6;
        let middle = x.clamp(half, WIDTH - half);
        if middle - half >= free_from {
            drawing.text((middle, bottom + 15.0), Anchor::Middle, SMALL, &label);
            free_from = middle + half + 8.0;
        }
    }
}

/// Draws the words of a row, and under them its bar and its spread.
fn draw_row(drawing: &mut Drawing, top: f64, row: &Row, whole_ns: f64, per_ns: f64) {
    let Row { stage, place, from, to } = row;
    let indent = if matches!(place, Place::FarEnd | Place::Between) { INDENT } else { 0.0 };
    let base = top + WORDS - 4.0;
    drawing.text((indent, base), Anchor::Start, LABEL, &fitted(&stage.name, NAME_RIGHT - indent));
    let share = format!("{:.1} %", stage.share * 100.0);
    let figures = [units::time_ns(stage.mean_ns), time(stage.p50_ns), time(stage.p99_ns), share];
    for ((_, right), figure) in COLUMNS.iter().zip(&figures) {
        drawing.text((*right, base), Anchor::End, SMALL, figure);
    }
    let scaled = |ns: f64| (ns * per_ns).min(WIDTH);
    let left = scaled(from * whole_ns).min(WIDTH - NARROWEST);
    let width = (scaled(to * whole_ns) - left).max(NARROWEST);
    let bar = Area { left, top: top + WORDS, width, height: BAR };
    let name = if *place == Place::Between { stage.name.clone() } else { stage_name(stage) };
    drawing.bar(place.class(), place.color(), bar, &format!("{name}\n{}", stage_text(stage)));
    if let (Some(p50), Some(p99)) = (stage.p50_ns, stage.p99_ns) {
        let [middle, end] = [p50, p99].map(|ns| from * whole_ns + ns as f64);
        draw_spread(drawing, bar, scaled(middle), scaled(end), end * per_ns <= WIDTH * 1.000_001);
    }
}

/// Draws the line from p50 to p99; one that goes on beyond the axis has no end.
fn draw_spread(drawing: &mut Drawing, bar: Area, middle: f64, end: f64, ends: bool) {
    let y = bar.top + BAR / 2.0;
    drawing.line((middle, bar.top), (middle, bar.bottom()), SPREAD);
    drawing.line((middle, y), (end, y), SPREAD);
    if ends {
        drawing.line((end, y - 2.5), (end, y + 2.5), SPREAD);
    }
}

/// Returns a name that is no wider than this; its last letters make room for an ellipsis.
fn fitted(name: &str, width: f64) -> String {
    if text_width(name, LABEL.size) <= width {
        return name.to_owned();
    }
    let mut fitted = String::new();
    for character in name.chars() {
        fitted.push(character);
        if text_width(&fitted, LABEL.size) > width - LABEL.size {
            fitted.pop();
            break;
        }
    }
    fitted + "…"
}

/// Returns the legend of the places that there are.
fn keys(rows: &[Row]) -> Vec<Key> {
    let named = [("here", Place::Here), ("far end", Place::FarEnd), ("between, drawn as two halves", Place::Between)];
    let is_there = |place: Place| rows.iter().any(|row| row.place.color() == place.color());
    let key = |(label, place): (&str, Place)| Key { label: label.into(), color: place.color(), dashed: false };
    named.into_iter().filter(|(_, place)| is_there(*place)).map(key).collect()
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

#[cfg(test)]
mod tests;
