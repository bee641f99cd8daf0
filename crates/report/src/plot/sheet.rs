//! Panels on a page.

use super::chart::{Chart, SMALL};
use super::charts::{Picture, charts};
use super::drawing::{Anchor, Area, Drawing, Font};
use super::panel::draw_panel;
use super::png::{self, PlotError};
use super::svg;
use crate::figure;
use crate::layout::clean;
use hodo_measure::{Document, Measurement};

const PANEL_WIDTH: f64 = 480.0;
const PANEL_HEIGHT: f64 = 380.0;
const MARGIN: f64 = 24.0;
const HEADING: f64 = 46.0;
const HEAD: Font = Font { class: "title", size: 17.0, bold: true, color: "#111827" };
const TITLE: Font = Font { size: 22.0, ..HEAD };

/// Panels on a page, drawn.
#[derive(Debug)]
pub struct Sheet {
    pub(super) drawing: Drawing,
    width: f64,
    height: f64,
    title: String,
}

impl Sheet {
    /// Returns the sheet as an SVG file.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::file(&self.drawing, self.width, self.height, &self.title)
    }

    /// Returns the sheet as a PNG file; `scale` is pixels per unit, 2 for print and sharp screens.
    ///
    /// # Errors
    /// [`PlotError::BadSize`] for a scale that gives no pixels or over 64 Mi of them, [`PlotError::Encoding`] if the encoder
    /// fails.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, PlotError> {
        png::file(&self.drawing, self.width, self.height, scale)
    }
}

/// Draws one picture: a panel for every protocol, link and test that has something to show, or `None`.
#[must_use]
pub fn picture(picture: Picture, document: &Document) -> Option<Sheet> {
    let rows: Vec<Row> = figure::groups(&document.measurements)
        .iter()
        .map(|group| Row { heading: heading(group), panels: panels([picture], group) })
        .filter(|row| !row.panels.is_empty())
        .collect();
    let across = if rows.len() > 1 { 2 } else { 1 };
    let cells = rows.chunks(across).map(|rows| rows.iter().collect::<Vec<_>>()).collect::<Vec<_>>();
    (!cells.is_empty()).then(|| draw_rows(&cells, &provenance(document)))
}

/// Draws everything on one sheet: a row for every protocol, link and test with the pictures that suit it.
#[must_use]
pub fn sheet(document: &Document) -> Option<Sheet> {
    let rows: Vec<Row> = figure::groups(&document.measurements)
        .iter()
        .map(|group| Row { heading: heading(group), panels: panels(pictures_of(group).iter().copied(), group) })
        .filter(|row| !row.panels.is_empty())
        .collect();
    let cells: Vec<Vec<&Row>> = rows.iter().map(|row| vec![row]).collect();
    (!cells.is_empty()).then(|| draw_rows(&cells, &provenance(document)))
}

/// Panels that share a heading.
struct Row {
    heading: (String, String),
    panels: Vec<Vec<Chart>>,
}

fn panels(pictures: impl IntoIterator<Item = Picture>, group: &[&Measurement]) -> Vec<Vec<Chart>> {
    let panels = pictures.into_iter().map(|picture| charts(picture, group));
    panels.filter(|charts| !charts.is_empty()).take(ACROSS_MAX).collect()
}

/// The most panels beside one another.
const ACROSS_MAX: usize = 3;

/// Returns the pictures that suit a test, the most telling first.
fn pictures_of(group: &[&Measurement]) -> &'static [Picture] {
    match figure::Figure::of(group[0]) {
        figure::Figure::Latency => &[Picture::Latency, Picture::Distribution, Picture::OverTime],
        _ => &[Picture::Rate, Picture::Latency, Picture::OverTime, Picture::Distribution],
    }
}

fn draw_rows(rows: &[Vec<&Row>], provenance: &[String]) -> Sheet {
    let widest = rows.iter().map(|row| row.iter().map(|cell| cell.panels.len()).sum::<usize>()).max().unwrap_or(1);
    let width = MARGIN * 2.0 + PANEL_WIDTH * widest as f64;
    let mut drawing = Drawing::default();
    let mut top = MARGIN;
    drawing.text((MARGIN + 10.0, top + 18.0), Anchor::Start, TITLE, "Hodoscope");
    for (line, text) in provenance.iter().enumerate() {
        drawing.text((MARGIN + 148.0, top + 10.0 + 15.0 * line as f64), Anchor::Start, SMALL, text);
    }
    top += 44.0;
    for row in rows {
        let mut left = MARGIN;
        for cell in row {
            let (title, link) = &cell.heading;
            drawing.text((left + 10.0, top + 16.0), Anchor::Start, HEAD, title);
            drawing.text((left + 10.0, top + 34.0), Anchor::Start, SMALL, link);
            for panel in &cell.panels {
                let area = Area { left, top: top + HEADING, width: PANEL_WIDTH - 12.0, height: PANEL_HEIGHT };
                draw_panel(&mut drawing, panel, area);
                left += PANEL_WIDTH;
            }
        }
        top += HEADING + PANEL_HEIGHT + MARGIN;
    }
    let title = rows.iter().flatten().map(|row| row.heading.0.as_str()).collect::<Vec<_>>().join("; ");
    Sheet { drawing, width, height: top, title }
}

fn heading(group: &[&Measurement]) -> (String, String) {
    let first = group[0];
    let title = format!("{} · {}", figure::protocol_text(first), first.test);
    (short(&title, 44), short(&format!("{} · {}", figure::test_meaning(first.test), first.link), 78))
}

/// Returns the lines that say where, when and by what it was measured; each fits beside the title of the narrowest page.
fn provenance(document: &Document) -> [String; 2] {
    let (environment, tool) = (&document.environment, &document.tool);
    let program = format!("{} {}", tool.name, tool.version);
    let program = tool.commit.as_ref().map_or_else(|| program.clone(), |commit| format!("{program}, commit {commit}"));
    let line = |facts: [Option<&str>; 3]| short(&facts.into_iter().flatten().collect::<Vec<_>>().join(" · "), 64);
    let of = |fact: &'_ Option<String>| fact.clone().unwrap_or_else(|| "unknown".into());
    let [host, kernel, started] = [&environment.host, &environment.kernel, &environment.started].map(of);
    [line([Some(&host), Some(&kernel), environment.cpu.as_deref()]), line([Some(&started), Some(&program), None])]
}

fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most - 1).chain(['…']).collect()
}
