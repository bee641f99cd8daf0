//! Pictures of measurements, as SVG and as PNG.
//!
//! One drawing serves both: the SVG is made here, the PNG is that SVG rendered with the fonts that this crate carries,
//! so that a machine without fonts or graphics libraries draws the same picture.

mod panel;
mod pictures;
mod png;
mod scale;
mod sheet;
mod svg;

pub use pictures::Picture;
pub use png::{PlotError, png};
pub use sheet::{sheet, svg};

#[cfg(test)]
mod tests;
