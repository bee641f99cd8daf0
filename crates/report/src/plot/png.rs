//! An SVG of this crate as PNG, with the fonts that this crate carries.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use thiserror::Error;

const REGULAR: &[u8] = include_bytes!("../../fonts/Roboto-Regular.ttf");
const MEDIUM: &[u8] = include_bytes!("../../fonts/Roboto-Medium.ttf");

/// The reason that a picture could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The text is no SVG.
    #[error("not an SVG picture: {0}")]
    NotSvg(String),
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

/// The most pixels of a picture: 64 Mi, or 256 MiB of memory while it is drawn.
const PIXELS_MAX: u64 = 64 << 20;

/// Renders an SVG of [`super::svg`] or [`super::sheet`]; `scale` is pixels per unit, 2 for print and sharp screens.
///
/// # Errors
/// [`PlotError::NotSvg`] for another text, [`PlotError::BadSize`] for a scale that gives no pixels or over 64 Mi of them,
/// [`PlotError::Encoding`] if the encoder fails.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, PlotError> {
    let mut options = Options { font_family: "Roboto".into(), ..Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(MEDIUM.to_vec());
    fonts.set_sans_serif_family("Roboto");
    let tree = Tree::from_str(svg, &options).map_err(|error| PlotError::NotSvg(error.to_string()))?;
    let size = tree.size();
    let (width, height) = ((size.width() * scale).ceil() as u32, (size.height() * scale).ceil() as u32);
    let bad_size = PlotError::BadSize { width, height };
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(bad_size);
    }
    let mut pixels = Pixmap::new(width, height).ok_or(bad_size)?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| PlotError::Encoding(error.to_string()))
}
