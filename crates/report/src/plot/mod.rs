//! Pictures of measurements: SVG files and PNG, and the elements of the HTML page.
//!
//! Every chart is drawn once, here. A file's colours and fonts are attributes of its shapes; the page's style sheet
//! overrides them by class, so that the same shapes are light or dark.
//!
//! A plotting crate would not be less code. plotters draws neither groups nor classes nor data attributes, on which the
//! page's choosing, pointing and dark colours rest, and has no ticks for powers of two or percentiles; charming and
//! plotly draw in JavaScript, and are a megabyte of it in each page.

mod bars;
mod chart;
mod charts;
mod drawing;
mod load;
mod panel;
mod png;
mod scale;
mod sheet;
mod svg;
mod waterfall;

pub(crate) use bars::{Bars, node_bars, node_text};
pub(crate) use chart::Chart;
pub use charts::Picture;
pub(crate) use charts::charts;
pub(crate) use load::load_chart;
pub use png::PlotError;
pub use sheet::{Sheet, picture, sheet};
pub(crate) use waterfall::{stage_name, stage_text, waterfalls};

#[cfg(test)]
mod tests;
