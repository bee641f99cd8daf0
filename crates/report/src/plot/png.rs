//! Paints a drawing as PNG, with the fonts that this crate carries: a machine without fonts or graphics libraries paints the same picture.

use super::drawing::{
    Anchor, BAND_OPACITY, DASHES, DOT_RADIUS, Drawing, Font, OWN, Shape, Stroke, TRAIL_OPACITY, TRAIL_WIDTH, WHITE,
    palette,
};
use thiserror::Error;
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke as Pen, StrokeDash, Transform,
};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

const REGULAR: &[u8] = include_bytes!("../../fonts/Roboto-Regular.ttf");
const MEDIUM: &[u8] = include_bytes!("../../fonts/Roboto-Medium.ttf");

/// The reason that a picture could not be painted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The picture has no pixels, or more than can be held.
    #[error("a picture of {width} by {height} pixels cannot be drawn; choose another scale, or SVG")]
    BadSize {
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
    },
    /// The pixels could not be compressed.
    #[error("the picture cannot be written as PNG: {0}")]
    Encoding(String),
}

/// The most pixels of a picture: 64 Mi, or 256 MiB of memory while it is painted.
const PIXELS_MAX: u64 = 64 << 20;

/// Returns the file, on white.
pub(super) fn file(drawing: &Drawing, width: f64, height: f64, scale: f32) -> Result<Vec<u8>, PlotError> {
    let [width, height] = [width, height].map(|units| (units * f64::from(scale)).ceil() as u32);
    let bad_size = PlotError::BadSize { width, height };
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(bad_size);
    }
    let mut pixels = Pixmap::new(width, height).ok_or(bad_size)?;
    pixels.fill(Color::WHITE);
    let [regular, medium] = [REGULAR, MEDIUM].map(|font| Face::parse(font, 0).expect("a font of this crate"));
    let scale = Transform::from_scale(scale, scale);
    let mut painter = Painter { pixels, scale, regular, medium };
    painter.paint(&drawing.shapes, "#000000");
    painter.pixels.encode_png().map_err(|error| PlotError::Encoding(error.to_string()))
}

struct Painter {
    pixels: Pixmap,
    /// From units of the drawing to pixels.
    scale: Transform,
    regular: Face<'static>,
    medium: Face<'static>,
}

impl Painter {
    /// Paints shapes, those of [`OWN`] colour in `own`.
    fn paint(&mut self, shapes: &[Shape], own: &str) {
        for shape in shapes {
            match shape {
                Shape::Text { at, anchor, font, text } => self.text(*at, *anchor, *font, text),
                Shape::Path(points, Stroke { color, width, dashes, .. }) => {
                    let pen = Pen { line_cap: LineCap::Round, ..pen(*width, dashes) };
                    self.stroke(path(points, false), &pen, &paint(color, own, 1.0));
                }
                Shape::Band(outline) => self.fill(path(outline, true), &paint(OWN, own, BAND_OPACITY)),
                Shape::Trail(points) => {
                    self.stroke(path(points, false), &pen(TRAIL_WIDTH, DASHES), &paint(OWN, own, TRAIL_OPACITY));
                }
                Shape::Dot((x, y)) => {
                    let circle = PathBuilder::from_circle(*x as f32, *y as f32, DOT_RADIUS as f32);
                    self.fill(circle.clone(), &paint(OWN, own, 1.0));
                    self.stroke(circle, &pen(1.0, ""), &paint(WHITE, own, 1.0));
                }
                Shape::Bar { color, area, .. } => {
                    let sides = [area.left, area.top, area.width, area.height].map(|side| side as f32);
                    let [left, top, width, height] = sides;
                    let bar = Rect::from_xywh(left, top, width, height).map(PathBuilder::from_rect);
                    self.fill(bar, &paint(palette(*color), own, 1.0));
                }
                Shape::Series { color, shapes, .. } => self.paint(shapes, palette(*color)),
            }
        }
    }

    fn fill(&mut self, path: Option<Path>, paint: &Paint<'_>) {
        if let Some(path) = path {
            self.pixels.fill_path(&path, paint, FillRule::Winding, self.scale, None);
        }
    }

    fn stroke(&mut self, path: Option<Path>, pen: &Pen, paint: &Paint<'_>) {
        if let Some(path) = path {
            self.pixels.stroke_path(&path, paint, pen, self.scale, None);
        }
    }

    /// Paints a text; a character that the fonts lack leaves a gap.
    fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, font: Font, text: &str) {
        let face = if font.bold { &self.medium } else { &self.regular };
        let scale = font.size as f32 / f32::from(face.units_per_em());
        let glyphs: Vec<GlyphId> =
            text.chars().map(|character| face.glyph_index(character).unwrap_or(GlyphId(0))).collect();
        let advance = |glyph: GlyphId| f32::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * scale;
        let width: f32 = glyphs.iter().map(|glyph| advance(*glyph)).sum();
        let before = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let mut outline = Outline { path: PathBuilder::new(), left: x as f32 - before, base: y as f32, scale };
        for glyph in glyphs {
            face.outline_glyph(glyph, &mut outline);
            outline.left += advance(glyph);
        }
        self.fill(outline.path.finish(), &paint(font.color, font.color, 1.0));
    }
}

/// Collects the outlines of glyphs, whose vertical axis points up.
struct Outline {
    path: PathBuilder,
    left: f32,
    base: f32,
    scale: f32,
}

impl Outline {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.left + x * self.scale, self.base - y * self.scale)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// Returns a pen with dashes as SVG writes them.
fn pen(width: f64, dashes: &str) -> Pen {
    let lengths = dashes.split(' ').filter_map(|length| length.parse().ok()).collect();
    Pen { width: width as f32, dash: StrokeDash::new(lengths, 0.0), line_join: LineJoin::Round, ..Pen::default() }
}

/// Returns a paint of a colour as SVG writes it.
fn paint(color: &str, own: &str, opacity: f64) -> Paint<'static> {
    let color = if color == OWN { own } else { color };
    let rgb = u32::from_str_radix(color.trim_start_matches('#'), 16).expect("a colour of this crate");
    let [_, red, green, blue] = rgb.to_be_bytes();
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (opacity * 255.0).round() as u8);
    paint
}

fn path(points: &[(f64, f64)], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (place, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        if place == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
    if closed {
        path.close();
    }
    path.finish()
}
