//! JPEG: one byte for each pixel, or red, green and blue side by side.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Decodes a picture of these dimensions into exactly this room.
pub fn fill(from: &[u8], dimensions: &[usize], into: &mut [u8]) -> Result<(), String> {
    let (width, height, colours) = match dimensions {
        [width, height] | [width, height, 1] => (*width, *height, ColorSpace::Luma),
        [3, width, height] => (*width, *height, ColorSpace::RGB),
        _ => return Err(format!("a JPEG has two dimensions, or three with colours first, not {dimensions:?}")),
    };
    // The dimensions are those of the image, so that a header that claims more is refused before anything is allocated.
    let options = DecoderOptions::default().set_max_width(width).set_max_height(height);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(from), options.jpeg_set_out_colorspace(colours));
    decoder.decode_headers().map_err(|why| why.to_string())?;
    let found = decoder.dimensions().unwrap_or_default();
    if found != (width, height) || decoder.output_buffer_size() != Some(into.len()) {
        return Err(format!(
            "the picture has {} x {} pixels, and the dimensions say {width} x {height}",
            found.0, found.1
        ));
    }
    decoder.decode_into(into).map_err(|why| why.to_string())
}
