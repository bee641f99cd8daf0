//! One panel of a file: charts of the same measurements under one another, over a shared horizontal axis.

use super::chart::{Chart, LABEL, MARGIN_BOTTOM, MARGIN_LEFT, MARGIN_RIGHT, SMALL, x_scale};
use super::drawing::{Anchor, Area, DASHES, Drawing, Font, GREY, INK, Stroke, palette, text_width};

const TITLE: Font = Font { class: "title", size: 14.0, bold: true, color: INK };
const TITLE_HEIGHT: f64 = 26.0;
/// The room over the curves, for the label of their highest tick.
const GAP: f64 = 9.0;
/// The room between a chart and the title of the next, for the label of its lowest tick.
const BETWEEN: f64 = 8.0;
const LEGEND_LINE: f64 = 17.0;
/// The share of the first chart, where the others have one each.
const FIRST_SHARE: f64 = 2.4;

/// Draws charts into an area. A file cannot be asked for more, so it holds only the series that are shown at first.
pub(super) fn draw_panel(drawing: &mut Drawing, charts: &[Chart], area: Area) {
    let charts: Vec<Chart> = charts.iter().map(shown).collect();
    let (Some(scale), [first, others @ ..]) = (x_scale(&charts), charts.as_slice()) else { return };
    let legend = legend(first);
    let lines = broken(&legend, area.width - 10.0);
    let (left, width) = (area.left + MARGIN_LEFT, area.width - MARGIN_LEFT - MARGIN_RIGHT);
    let titles = (TITLE_HEIGHT + GAP) * charts.len() as f64 + BETWEEN * others.len() as f64;
    let room = area.height - MARGIN_BOTTOM - titles - LEGEND_LINE * lines.len() as f64;
    let share = if others.is_empty() { 1.0 } else { FIRST_SHARE };
    let mut top = area.top;
    for (place, chart) in charts.iter().enumerate() {
        top += if place == 0 { 0.0 } else { BETWEEN };
        draw_title(drawing, chart, (area.left + 10.0, top + 16.0));
        top += TITLE_HEIGHT;
        let mine = if place == 0 { share } else { 1.0 };
        if place == 0 {
            for line in &lines {
                draw_legend(drawing, line, (area.left + 10.0, top + 10.0));
                top += LEGEND_LINE;
            }
        }
        top += GAP;
        let height = room * mine / (share + others.len() as f64);
        let body = Area { left, top, width, height };
        chart.draw_curves(drawing, &scale, body, false);
        top += height;
        if place + 1 == charts.len() {
            chart.draw_x_axis(drawing, &scale, body);
        }
    }
}

/// Returns the chart with the series that are shown at first, and says so.
fn shown(chart: &Chart) -> Chart {
    let mut drawn = chart.clone();
    drawn.series.retain(|series| series.shown);
    let (shown, found) = (drawn.series.len(), chart.series.len());
    if shown < found {
        let comma = if drawn.note.is_empty() { "" } else { ", " };
        drawn.note = format!("{}{comma}{shown} of {found} shown", drawn.note);
    }
    drawn
}

fn draw_title(drawing: &mut Drawing, chart: &Chart, (x, y): (f64, f64)) {
    drawing.text((x, y), Anchor::Start, TITLE, &chart.title);
    let after = x + text_width(&chart.title, TITLE.size) * 1.06 + 8.0;
    drawing.text((after, y), Anchor::Start, SMALL, &chart.note);
}

struct Key {
    label: String,
    color: &'static str,
    dashes: &'static str,
}

impl Key {
    fn width(&self) -> f64 {
        26.0 + text_width(&self.label, LABEL.size) + 14.0
    }
}

fn legend(chart: &Chart) -> Vec<Key> {
    let key = |label: &String, color, dashes| Key { label: label.clone(), color, dashes };
    let series = chart.series.iter().map(|one| key(&one.label, palette(one.color), ""));
    series.chain(chart.limit.iter().map(|limit| key(limit, GREY, DASHES))).collect()
}

/// Breaks a legend into lines no wider than `width`, if a single key is not.
fn broken(keys: &[Key], width: f64) -> Vec<Vec<&Key>> {
    let mut lines: Vec<Vec<&Key>> = Vec::new();
    let mut used = f64::INFINITY;
    for key in keys {
        if used + key.width() > width {
            lines.push(Vec::new());
            used = 0.0;
        }
        used += key.width();
        lines.last_mut().expect("the first key begins a line").push(key);
    }
    lines
}

fn draw_legend(drawing: &mut Drawing, keys: &[&Key], (mut x, y): (f64, f64)) {
    for key in keys {
        let stroke = Stroke { class: "key", color: key.color, width: 2.2, dashes: key.dashes };
        drawing.line((x, y - 4.0), (x + 20.0, y - 4.0), stroke);
        drawing.text((x + 26.0, y), Anchor::Start, LABEL, &key.label);
        x += key.width();
    }
}
