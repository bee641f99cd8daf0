//! Writes a drawing as SVG: a file, or an element of the page.

use super::drawing::{
    Anchor, Area, BAND_OPACITY, DASHES, DOT_RADIUS, Drawing, Font, OWN, PALETTE, Shape, Stroke, TRAIL_OPACITY,
    TRAIL_WIDTH, WHITE, palette,
};
use std::fmt::Write;

/// Returns the whole file, on white.
pub(super) fn file(drawing: &Drawing, width: f64, height: f64, title: &str) -> String {
    format!(
        concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" "#,
            r#"font-family="Roboto, 'Helvetica Neue', Arial, sans-serif">"#,
            "\n<title>{title}</title>\n",
            r##"<rect width="100%" height="100%" fill="{white}"/>"##,
            "\n{body}</svg>\n"
        ),
        white = WHITE,
        w = width,
        h = height,
        title = escape(title),
        body = body(&drawing.shapes)
    )
}

/// Returns the element for a page, whose style gives it fonts, colours and width.
pub(super) fn element(drawing: &Drawing, class: &str, width: f64, height: f64, title: &str) -> String {
    let (title, body) = (escape(title), body(&drawing.shapes));
    format!(r#"<svg class="{class}" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">{body}</svg>"#)
}

fn body(shapes: &[Shape]) -> String {
    let mut body = String::new();
    for shape in shapes {
        write(&mut body, shape).expect("a string takes every character");
    }
    body
}

fn write(out: &mut String, shape: &Shape) -> std::fmt::Result {
    match shape {
        Shape::Text { at: (x, y), anchor, font: Font { class, size, bold, color }, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let weight = if *bold { 500 } else { 400 };
            writeln!(
                out,
                r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{color}">{}</text>"#,
                escape(text)
            )
        }
        Shape::Path(points, Stroke { class, color, width, dashes }) => {
            let dashes = if dashes.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dashes}""#) };
            writeln!(
                out,
                r#"<path class="{class}" d="{}" fill="none" stroke="{color}" stroke-width="{width}" stroke-linejoin="round" stroke-linecap="round"{dashes}/>"#,
                path_data(points)
            )
        }
        Shape::Band(outline) => {
            let data = path_data(outline);
            writeln!(
                out,
                r#"<path class="band" d="{data}Z" fill="{OWN}" fill-opacity="{BAND_OPACITY}" stroke="none"/>"#
            )
        }
        Shape::Trail(points) => {
            let data = path_data(points);
            writeln!(
                out,
                r#"<path class="trail" d="{data}" fill="none" stroke="{OWN}" stroke-opacity="{TRAIL_OPACITY}" stroke-width="{TRAIL_WIDTH}" stroke-linejoin="round" stroke-dasharray="{DASHES}"/>"#
            )
        }
        Shape::Dot((x, y)) => writeln!(
            out,
            r##"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="{DOT_RADIUS}" fill="{OWN}" stroke="{WHITE}" stroke-width="1"/>"##
        ),
        Shape::Bar { class, color, area: Area { left, top, width, height }, title } => {
            let (place, color) = (color % PALETTE.len(), palette(*color));
            writeln!(
                out,
                r#"<rect class="{class} c{place}" x="{left:.4}" y="{top:.4}" width="{width:.4}" height="{height:.4}" color="{color}" fill="{OWN}"><title>{}</title></rect>"#,
                escape(title)
            )
        }
        Shape::Series { label, color, tips, shapes } => {
            let (place, color) = (color % PALETTE.len(), palette(*color));
            let tips = tips.as_ref().map_or_else(String::new, |tips| {
                let json = serde_json::to_string(tips).expect("strings become JSON");
                format!(r#" data-label="{}" data-tips="{}""#, escape(label), escape(&json))
            });
            writeln!(out, r#"<g class="series c{place}" color="{color}"{tips}>"#)?;
            shapes.iter().try_for_each(|shape| write(out, shape))?;
            writeln!(out, "</g>")
        }
    }
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
