//! One plot: a title, a legend, curves over a shared horizontal axis.

use super::scale::{Scale, Unit};
use super::svg::{Anchor, Font, Stroke, Svg, text_width};

/// Okabe and Ito's palette, which the colour-blind can tell apart, in the order of best contrast on white.
pub(super) const PALETTE: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// For what belongs to no single curve.
pub(super) const GREY: &str = "#6b7280";
const INK: &str = "#1f2937";
const GRID: &str = "#e5e7eb";

/// One plot.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    pub title: String,
    pub note: String,
    pub x_label: String,
    pub x_unit: Unit,
    pub legend: Vec<Key>,
    pub strips: Vec<Strip>,
}

/// One entry of the legend.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub label: String,
    pub color: &'static str,
    pub dashed: bool,
}

/// Curves over one vertical axis; strips of a panel lie under one another.
#[derive(Debug, Clone)]
pub(super) struct Strip {
    pub label: String,
    pub unit: Unit,
    /// Its share of the panel's height.
    pub weight: f64,
    pub curves: Vec<Curve>,
}

/// One curve.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub color: &'static str,
    pub shape: Shape,
    pub points: Vec<(f64, f64)>,
}

/// How a curve is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// A line with a dot at each point.
    Dotted,
    /// A line alone.
    Plain,
    /// A dashed line: a limit.
    Dashed,
    /// The area up to these values, over the same horizontal places as the points.
    Band(Vec<f64>),
}

/// A rectangle of the drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

const TITLE: Font = Font { size: 14.0, bold: true, color: INK };
const LABEL: Font = Font { size: 11.5, bold: false, color: INK };
const SMALL: Font = Font { size: 11.0, bold: false, color: GREY };
const MARGIN_LEFT: f64 = 74.0;
const MARGIN_RIGHT: f64 = 18.0;
const MARGIN_BOTTOM: f64 = 40.0;
const STRIP_GAP: f64 = 26.0;

/// Draws a panel into an area.
pub(super) fn draw(svg: &mut Svg, panel: &Panel, area: Area) {
    let points = panel.strips.iter().flat_map(|strip| &strip.curves).flat_map(|curve| &curve.points);
    let Some(x_scale) = Scale::fitting(panel.x_unit, points.map(|(x, _)| *x)) else { return };
    let top = draw_head(svg, panel, area);
    let inner = Area {
        left: area.left + MARGIN_LEFT,
        top,
        width: area.width - MARGIN_LEFT - MARGIN_RIGHT,
        height: area.top + area.height - MARGIN_BOTTOM - top,
    };
    let weights: f64 = panel.strips.iter().map(|strip| strip.weight).sum();
    let usable = inner.height - STRIP_GAP * panel.strips.len() as f64;
    let mut strip_top = inner.top;
    for strip in &panel.strips {
        let height = usable * strip.weight / weights;
        draw_strip(svg, strip, &x_scale, Area { top: strip_top + STRIP_GAP, height, ..inner });
        strip_top += STRIP_GAP + height;
    }
    draw_x_axis(svg, panel, &x_scale, inner);
}

/// Title and legend; returns where they end.
fn draw_head(svg: &mut Svg, panel: &Panel, area: Area) -> f64 {
    let mut y = area.top + 16.0;
    svg.text((area.left + 10.0, y), Anchor::Start, TITLE, &panel.title);
    let title_end = area.left + 10.0 + text_width(&panel.title, TITLE.size) * 1.06 + 8.0;
    svg.text((title_end, y), Anchor::Start, SMALL, &panel.note);
    let mut x = area.left + 10.0;
    y += 20.0;
    for key in &panel.legend {
        let width = 26.0 + text_width(&key.label, LABEL.size) + 14.0;
        if x + width > area.left + area.width && x > area.left + 10.0 {
            x = area.left + 10.0;
            y += 17.0;
        }
        let dashes = if key.dashed { "5 4" } else { "" };
        svg.line((x, y - 4.0), (x + 20.0, y - 4.0), Stroke { color: key.color, width: 2.2, dashes });
        svg.text((x + 26.0, y), Anchor::Start, LABEL, &key.label);
        x += width;
    }
    y + 2.0
}

fn draw_strip(svg: &mut Svg, strip: &Strip, x_scale: &Scale, area: Area) {
    let bands = strip.curves.iter().filter_map(|curve| match &curve.shape {
        Shape::Band(tops) => Some(tops),
        _ => None,
    });
    let values = strip.curves.iter().flat_map(|curve| curve.points.iter().map(|(_, y)| *y));
    let Some(scale) = Scale::fitting(strip.unit, values.chain(bands.flatten().copied())) else { return };
    let bottom = area.top + area.height;
    svg.text((area.left, area.top - 7.0), Anchor::Start, SMALL, &strip.label);
    for (value, label) in scale.ticks((area.height / 32.0) as usize) {
        let Some(place) = scale.place(value) else { continue };
        let y = bottom - place * area.height;
        let right = area.left + area.width;
        svg.line((area.left, y), (right, y), Stroke { color: GRID, width: 1.0, dashes: "" });
        svg.text((area.left - 8.0, y + 4.0), Anchor::End, LABEL, &label);
    }
    svg.line((area.left, bottom), (area.left + area.width, bottom), Stroke { color: GREY, width: 1.0, dashes: "" });
    let place =
        |x: f64, y: f64| Some((area.left + x_scale.place(x)? * area.width, bottom - scale.place(y)? * area.height));
    for curve in &strip.curves {
        draw_curve(svg, curve, &place);
    }
}

fn draw_curve(svg: &mut Svg, curve: &Curve, place: &impl Fn(f64, f64) -> Option<(f64, f64)>) {
    let points: Vec<(f64, f64)> = curve.points.iter().filter_map(|(x, y)| place(*x, *y)).collect();
    let stroke = |width, dashes| Stroke { color: curve.color, width, dashes };
    match &curve.shape {
        Shape::Plain => svg.path(&points, stroke(1.8, "")),
        Shape::Dashed => svg.path(&points, stroke(1.4, "5 4")),
        Shape::Dotted => {
            svg.path(&points, stroke(2.0, ""));
            for point in points {
                svg.dot(point, 3.4, curve.color);
            }
        }
        Shape::Band(tops) => {
            let over = curve.points.iter().zip(tops).filter_map(|((x, _), top)| place(*x, *top));
            let outline: Vec<(f64, f64)> = points.iter().copied().chain(over.rev()).collect();
            svg.area(&outline, curve.color, 0.16);
        }
    }
}

fn draw_x_axis(svg: &mut Svg, panel: &Panel, scale: &Scale, inner: Area) {
    let bottom = inner.top + inner.height;
    let mut free_from = f64::NEG_INFINITY;
    for (value, label) in scale.ticks((inner.width / 58.0) as usize) {
        let Some(place) = scale.place(value) else { continue };
        let x = inner.left + place * inner.width;
        svg.line((x, bottom), (x, bottom + 4.0), Stroke { color: GREY, width: 1.0, dashes: "" });
        let half = text_width(&label, LABEL.size) / 2.0;
        if x - half >= free_from {
            svg.text((x, bottom + 17.0), Anchor::Middle, LABEL, &label);
            free_from = x + half + 6.0;
        }
    }
    svg.text((inner.left + inner.width / 2.0, bottom + 34.0), Anchor::Middle, SMALL, &panel.x_label);
}
