//! Writes the few shapes that a plot is made of as SVG.
//!
//! Every shape carries its look for files as presentation attributes, and a class by which the page's style sheet
//! overrides it. A group sets the colour of what is in it: shapes refer to that colour as [`OWN`].

use std::fmt::Write;

/// The eight colours of curves: Okabe and Ito's palette, which the colour-blind can tell apart, in the order of best
/// contrast on white, and two more. The page has its own for light and dark, as classes `c0` to `c7`.
pub(super) const PALETTE: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6675", "#7a5195"];

/// The colour of the group that a shape is in.
pub(super) const OWN: &str = "currentColor";
pub(super) const GREY: &str = "#6b7280";
pub(super) const INK: &str = "#1f2937";

/// The end of a text that is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The look of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Font {
    pub class: &'static str,
    pub size: f64,
    pub bold: bool,
    pub color: &'static str,
}

/// The look of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stroke {
    pub class: &'static str,
    pub color: &'static str,
    pub width: f64,
    pub dashes: &'static str,
}

/// A rectangle of the drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// A drawing under construction.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
}

impl Svg {
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, font: Font, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let Font { class, size, bold, color } = font;
        let weight = if bold { 500 } else { 400 };
        self.push(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{color}">{}</text>"#,
            escape(text)
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.path(&[from, to], stroke);
    }

    pub(super) fn path(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        if points.is_empty() {
            return;
        }
        let Stroke { class, color, width, dashes } = stroke;
        let dashes = if dashes.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dashes}""#) };
        self.push(format_args!(
            r#"<path class="{class}" d="{}" fill="none" stroke="{color}" stroke-width="{width}" stroke-linejoin="round" stroke-linecap="round"{dashes}/>"#,
            path_data(points)
        ));
    }

    pub(super) fn band(&mut self, outline: &[(f64, f64)]) {
        let data = path_data(outline);
        self.push(format_args!(r#"<path class="band" d="{data}Z" fill="{OWN}" fill-opacity="0.16" stroke="none"/>"#));
    }

    /// Draws broad pale dashes, which are seen on both sides of a curve that lies on them.
    pub(super) fn trail(&mut self, points: &[(f64, f64)]) {
        let data = path_data(points);
        self.push(format_args!(
            r#"<path class="trail" d="{data}" fill="none" stroke="{OWN}" stroke-opacity="0.32" stroke-width="7" stroke-linejoin="round" stroke-dasharray="5 4"/>"#
        ));
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64)) {
        self.push(format_args!(
            r##"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="3.6" fill="{OWN}" stroke="#ffffff" stroke-width="1"/>"##
        ));
    }

    /// Draws a bar in one of the palette's colours, with words for a pointer that rests on it.
    pub(super) fn bar(&mut self, class: &str, color: usize, area: Area, title: &str) {
        let Area { left, top, width, height } = area;
        let (place, color) = (color % PALETTE.len(), PALETTE[color % PALETTE.len()]);
        self.push(format_args!(
            r#"<rect class="{class} c{place}" x="{left:.4}" y="{top:.4}" width="{width:.4}" height="{height:.4}" color="{color}" fill="{OWN}"><title>{}</title></rect>"#,
            escape(title)
        ));
    }

    /// Draws in one of the palette's colours, as one group with a label; with `tips`, a text for each point of its curve,
    /// which the page shows beside the pointer.
    pub(super) fn series(&mut self, label: &str, color: usize, tips: Option<&[&str]>, draw: impl FnOnce(&mut Svg)) {
        let (place, color) = (color % PALETTE.len(), PALETTE[color % PALETTE.len()]);
        let tips = tips.map_or_else(String::new, |tips| {
            let json = serde_json::to_string(tips).expect("strings become JSON");
            format!(r#" data-label="{}" data-tips="{}""#, escape(label), escape(&json))
        });
        self.push(format_args!(r#"<g class="series c{place}" color="{color}"{tips}>"#));
        draw(self);
        self.push(format_args!("</g>"));
    }

    /// Returns the whole file, on white.
    pub(super) fn into_file(self, width: f64, height: f64, title: &str) -> String {
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" "#,
                r#"font-family="Roboto, 'Helvetica Neue', Arial, sans-serif">"#,
                "\n<title>{title}</title>\n",
                r##"<rect width="100%" height="100%" fill="#ffffff"/>"##,
                "\n{body}</svg>\n"
            ),
            w = width,
            h = height,
            title = escape(title),
            body = self.body
        )
    }

    /// Returns the element for a page, whose style gives it fonts, colours and width.
    pub(super) fn into_element(self, class: &str, width: f64, height: f64, title: &str) -> String {
        let (title, body) = (escape(title), self.body);
        format!(r#"<svg class="{class}" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">{body}</svg>"#)
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("a string takes every character");
    }
}

/// Returns the width of a text in Roboto, near enough to place its neighbour.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|character| match character {
            'i' | 'l' | 'j' | '.' | ',' | ' ' | ':' | '|' | '\'' => 0.26,
            'f' | 't' | 'r' | '(' | ')' | '/' | '-' | 'I' => 0.35,
            'm' | 'w' | 'M' | 'W' | '%' => 0.83,
            'A'..='Z' => 0.65,
            _ => 0.56,
        })
        .sum();
    ems * size
}

/// Escapes markup, and replaces characters that XML forbids.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

fn path_data(points: &[(f64, f64)]) -> String {
    let mut data = String::with_capacity(points.len() * 14);
    for (place, (x, y)) in points.iter().enumerate() {
        let verb = if place == 0 { 'M' } else { 'L' };
        write!(data, "{verb}{x:.1} {y:.1}").expect("a string takes every character");
    }
    data
}
