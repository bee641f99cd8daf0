//! The few shapes that a plot is made of, written as SVG.

use std::fmt::Write;

/// Where a text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Font {
    pub size: f64,
    pub bold: bool,
    pub color: &'static str,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stroke {
    pub color: &'static str,
    pub width: f64,
    pub dashes: &'static str,
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
        let weight = if font.bold { 500 } else { 400 };
        let (size, color) = (font.size, font.color);
        self.push(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{color}">{}</text>"#,
            escape(text)
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.path(&[from, to], stroke);
    }

    pub(super) fn path(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        if points.len() < 2 {
            return;
        }
        let Stroke { color, width, dashes } = stroke;
        let dashes = if dashes.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dashes}""#) };
        self.push(format_args!(
            r#"<path d="{}" fill="none" stroke="{color}" stroke-width="{width}" stroke-linejoin="round" stroke-linecap="round"{dashes}/>"#,
            path_data(points)
        ));
    }

    pub(super) fn area(&mut self, outline: &[(f64, f64)], color: &str, opacity: f64) {
        if outline.len() >= 3 {
            let data = path_data(outline);
            self.push(format_args!(r#"<path d="{data}Z" fill="{color}" fill-opacity="{opacity}" stroke="none"/>"#));
        }
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), radius: f64, color: &str) {
        self.push(format_args!(
            r##"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{color}" stroke="#ffffff" stroke-width="1"/>"##
        ));
    }

    /// The whole document, on white.
    pub(super) fn finish(self, width: f64, height: f64, title: &str) -> String {
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

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("a string takes every character");
    }
}

/// The width of a text in Roboto, near enough to place its neighbour.
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

/// Text that is no markup and holds no character that XML forbids.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
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
