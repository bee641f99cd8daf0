//! One chart: curves over two axes. Drawn once, for the panels of a file and for the figures of the page.

use super::drawing::{Anchor, Area, DASHES, Drawing, Font, GREY, INK, OWN, Stroke, text_width};
use super::scale::{Scale, Unit};
use super::svg;

/// A chart, not yet drawn.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub title: String,
    pub note: String,
    pub x_label: &'static str,
    pub x_unit: Unit,
    pub unit: Unit,
    /// The name of the dashed lines, if there are any.
    pub limit: Option<String>,
    pub series: Vec<Series>,
}

/// One curve, and what is drawn with it.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub label: String,
    /// The place of the series' colour in the palette.
    pub color: usize,
    /// Whether it is shown before a reader chooses.
    pub shown: bool,
    pub dots: bool,
    pub points: Vec<Point>,
}

/// One point of a curve.
#[derive(Debug, Clone, Default)]
pub(crate) struct Point {
    pub x: f64,
    pub y: f64,
    /// The upper end of the band over the curve.
    pub top: Option<f64>,
    pub limit: Option<f64>,
    /// The page's words about this point.
    pub tip: String,
}

pub(super) const LABEL: Font = Font { class: "tick", size: 12.0, bold: false, color: INK };
pub(super) const SMALL: Font = Font { class: "label", size: 11.0, bold: false, color: GREY };
const GRID: Stroke = Stroke { class: "grid", color: "#e5e7eb", width: 1.0, dashes: "" };
const AXIS: Stroke = Stroke { class: "axis", color: GREY, width: 1.0, dashes: "" };
const LIMIT: Stroke = Stroke { class: "limit", color: OWN, width: 1.4, dashes: DASHES };

/// The room that labels need beside and under the curves.
pub(super) const MARGIN_LEFT: f64 = 80.0;
pub(super) const MARGIN_RIGHT: f64 = 16.0;
pub(super) const MARGIN_BOTTOM: f64 = 42.0;

impl Chart {
    /// Draws the chart as an element of the page. Its title and legend are the page's.
    pub(crate) fn element(&self) -> String {
        const WIDTH: f64 = 480.0;
        const HEIGHT: f64 = 276.0;
        const TOP: f64 = 12.0;
        let (width, height) = (WIDTH - MARGIN_LEFT - MARGIN_RIGHT, HEIGHT - TOP - MARGIN_BOTTOM);
        let area = Area { left: MARGIN_LEFT, top: TOP, width, height };
        let mut drawing = Drawing::default();
        if let Some(scale) = x_scale([self]) {
            self.draw_curves(&mut drawing, &scale, area, true);
            self.draw_x_axis(&mut drawing, &scale, area);
        }
        svg::element(&drawing, "plot", WIDTH, HEIGHT, &self.title)
    }

    /// Draws the curves over their vertical axis, with `tips` for a page that shows them.
    pub(super) fn draw_curves(&self, drawing: &mut Drawing, x_scale: &Scale, area: Area, tips: bool) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let heights = points.flat_map(|point| [Some(point.y), point.top, point.limit]).flatten();
        let Some(scale) = Scale::fitting(self.unit, heights) else { return };
        for (value, label) in scale.ticks(((area.height / 34.0) as usize).max(2)) {
            let Some(place) = scale.place(value) else { continue };
            let y = area.bottom() - place * area.height;
            drawing.line((area.left, y), (area.right(), y), GRID);
            drawing.text((area.left - 8.0, y + 4.0), Anchor::End, LABEL, &label);
        }
        drawing.line((area.left, area.bottom()), (area.right(), area.bottom()), AXIS);
        let place = |x: f64, y: f64| {
            Some((area.left + x_scale.place(x)? * area.width, area.bottom() - scale.place(y)? * area.height))
        };
        for series in &self.series {
            series.draw(drawing, &place, tips);
        }
    }

    pub(super) fn draw_x_axis(&self, drawing: &mut Drawing, scale: &Scale, area: Area) {
        let bottom = area.bottom();
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in scale.ticks((area.width / 60.0) as usize) {
            let Some(place) = scale.place(value) else { continue };
            let x = area.left + place * area.width;
            drawing.line((x, bottom), (x, bottom + 4.0), AXIS);
            let half = text_width(&label, LABEL.size) * 0.55;
            let middle = x.min(area.right() + MARGIN_RIGHT - half);
            if middle - half >= free_from {
                drawing.text((middle, bottom + 17.0), Anchor::Middle, LABEL, &label);
                free_from = middle + half + 10.0;
            }
        }
        drawing.text((area.left + area.width / 2.0, bottom + 35.0), Anchor::Middle, SMALL, self.x_label);
    }
}

impl Series {
    /// Draws limit, band, line and dots as one group. Points without a place are left out.
    fn draw(&self, drawing: &mut Drawing, place: &impl Fn(f64, f64) -> Option<(f64, f64)>, tips: bool) {
        let placed = || self.points.iter().filter_map(|point| Some((point, place(point.x, point.y)?)));
        let tips: Option<Vec<String>> = tips.then(|| placed().map(|(point, _)| point.tip.clone()).collect());
        let line: Vec<(f64, f64)> = placed().map(|(_, at)| at).collect();
        let over = |value: fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
            placed().filter_map(|(point, _)| place(point.x, value(point)?)).collect()
        };
        let (limits, tops) = (over(|point| point.limit), over(|point| point.top));
        drawing.series(&self.label, self.color, tips, |drawing| {
            if limits.len() > 1 {
                drawing.trail(&limits);
                drawing.path(&limits, LIMIT);
            }
            if tops.len() == line.len() && tops.len() > 1 {
                let outline: Vec<(f64, f64)> = line.iter().copied().chain(tops.into_iter().rev()).collect();
                drawing.band(&outline);
            }
            drawing.path(&line, Stroke { class: "curve", color: OWN, width: 2.0, dashes: "" });
            if self.dots {
                line.iter().for_each(|at| drawing.dot(*at));
            }
        });
    }
}

/// Fits a horizontal axis to all points of these charts, which share it.
pub(super) fn x_scale<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> Option<Scale> {
    let mut charts = charts.into_iter().peekable();
    let unit = charts.peek()?.x_unit;
    let points = charts.flat_map(|chart| &chart.series).flat_map(|series| &series.points);
    Scale::fitting(unit, points.map(|point| point.x))
}
