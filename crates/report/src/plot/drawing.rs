//! The few shapes that a plot is made of. A drawing holds them in order, and is written as SVG or painted as PNG.
//!
//! Every shape carries its look for files, and a class by which the page's style sheet overrides it. A series sets the
//! colour of what is in it: shapes refer to that colour as [`OWN`].

/// The eight colours of curves: Okabe and Ito's palette, which the colour-blind can tell apart, in the order of best
/// contrast on white, and two more. The page has its own for light and dark, as classes `c0` to `c7`.
pub(super) const PALETTE: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6675", "#7a5195"];

/// Returns the colour of a series with this number.
pub(super) fn palette(number: usize) -> &'static str {
    PALETTE[number % PALETTE.len()]
}

/// The dashes of a limit, and of the trail below it.
pub(super) const DASHES: &str = "5 4";
pub(super) const BAND_OPACITY: f64 = 0.16;
pub(super) const TRAIL_OPACITY: f64 = 0.32;
pub(super) const TRAIL_WIDTH: f64 = 7.0;
pub(super) const DOT_RADIUS: f64 = 3.6;
pub(super) const WHITE: &str = "#ffffff";

/// The colour of the series that a shape is in.
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

/// One shape of a drawing.
#[derive(Debug)]
pub(super) enum Shape {
    Text {
        at: (f64, f64),
        anchor: Anchor,
        font: Font,
        text: String,
    },
    Path(Vec<(f64, f64)>, Stroke),
    /// A pale area within this outline.
    Band(Vec<(f64, f64)>),
    /// Broad pale dashes, which are seen on both sides of a curve that lies on them.
    Trail(Vec<(f64, f64)>),
    Dot((f64, f64)),
    /// A bar, with words for a pointer that rests on it.
    Bar {
        class: &'static str,
        color: usize,
        area: Area,
        title: String,
    },
    /// One group with a label; with `tips`, a text for each point of its curve, which the page shows beside the pointer.
    Series {
        label: String,
        color: usize,
        tips: Option<Vec<String>>,
        shapes: Vec<Shape>,
    },
}

/// A drawing under construction.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    pub shapes: Vec<Shape>,
}

impl Drawing {
    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, font: Font, text: &str) {
        self.shapes.push(Shape::Text { at, anchor, font, text: text.to_owned() });
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.path(&[from, to], stroke);
    }

    pub(super) fn path(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        if !points.is_empty() {
            self.shapes.push(Shape::Path(points.to_vec(), stroke));
        }
    }

    pub(super) fn band(&mut self, outline: &[(f64, f64)]) {
        self.shapes.push(Shape::Band(outline.to_vec()));
    }

    pub(super) fn trail(&mut self, points: &[(f64, f64)]) {
        self.shapes.push(Shape::Trail(points.to_vec()));
    }

    pub(super) fn dot(&mut self, at: (f64, f64)) {
        self.shapes.push(Shape::Dot(at));
    }

    /// Draws a bar in one of the palette's colours.
    pub(super) fn bar(&mut self, class: &'static str, color: usize, area: Area, title: &str) {
        self.shapes.push(Shape::Bar { class, color, area, title: title.to_owned() });
    }

    /// Draws in one of the palette's colours, as one group.
    pub(super) fn series(
        &mut self,
        label: &str,
        color: usize,
        tips: Option<Vec<String>>,
        draw: impl FnOnce(&mut Drawing),
    ) {
        let mut inner = Drawing::default();
        draw(&mut inner);
        self.shapes.push(Shape::Series { label: label.to_owned(), color, tips, shapes: inner.shapes });
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
