//! Each form of the results as bytes.

use hodo_measure::Document;
use hodo_report::plot::{self, Picture};
use std::io;

/// A form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One line a measurement.
    Tsv,
    /// The whole document.
    Json,
    /// One page.
    Html,
    /// A picture as SVG.
    Svg,
    /// The sheet of pictures as PNG.
    Png,
    /// A table for a README.
    Markdown,
    /// A folder with a picture of each kind for every test.
    Plots,
}

/// Pixels of a PNG for each unit of the drawing: sharp in print.
const SCALE: f32 = 2.0;

/// Returns the document in this form, or `None` if there is nothing to show yet.
pub fn bytes(form: Form, document: &Document) -> io::Result<Option<Vec<u8>>> {
    let measurements = &document.measurements;
    let text = match form {
        Form::Tsv => Some(hodo_report::tsv(document)),
        Form::Json => Some(hodo_report::json::to_string(document)),
        Form::Html => Some(hodo_report::html(document)),
        Form::Markdown => Some(hodo_report::markdown(measurements)),
        Form::Svg => plot::sheet(document).map(|sheet| sheet.svg()),
        Form::Png => {
            let png = plot::sheet(document).map(|sheet| sheet.png(SCALE)).transpose();
            return png.map_err(io::Error::other);
        }
        Form::Plots => None,
    };
    Ok(text.map(String::into_bytes))
}

/// Returns a picture of each kind that has something to show, with the name of its file.
pub fn plots(document: &Document) -> impl Iterator<Item = (&'static str, String)> {
    Picture::ALL.into_iter().filter_map(|picture| {
        let name = match picture {
            Picture::Rate => "rate.svg",
            Picture::Operations => "operations.svg",
            Picture::Latency => "latency.svg",
            Picture::Distribution => "distribution.svg",
            Picture::OverTime => "over-time.svg",
            Picture::Cpu => "cpu.svg",
        };
        plot::picture(picture, document).map(|sheet| (name, sheet.svg()))
    })
}
