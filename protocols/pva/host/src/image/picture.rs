//! Images as pictures and as a summary.

use super::{Colour, Image, ImageError};
use crate::machines::{Array, Scalar};

/// The least and the greatest element, and their mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
    /// The mean.
    pub mean: f64,
}

impl Image {
    /// Returns what the elements are like, of those that are finite. `None` if there are none.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let (mut least, mut greatest, mut sum, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0u64);
        each(&self.elements, |element| {
            if element.is_finite() {
                (least, greatest, sum, count) = (least.min(element), greatest.max(element), sum + element, count + 1);
            }
        });
        (count > 0).then(|| Summary { least, greatest, mean: sum / count as f64 })
    }

    /// Returns the image as a PNG file. Bytes and 16-bit numbers without sign are as they are; others, between the least and the greatest, become
    /// 16-bit numbers.
    ///
    /// # Errors
    /// [`ImageError::NoPicture`] if it has not two dimensions of pixels, or its colours are none that PNG has.
    pub fn png(&self) -> Result<Vec<u8>, ImageError> {
        let wrong = |why: String| ImageError::NoPicture(why);
        let (width, height, colours) = self.layout()?;
        let (depth, samples) = self.samples();
        let bytes = if depth == png::BitDepth::Eight { 1 } else { 2 };
        // Where the colours of a pixel are, and where the next pixel and the next row are.
        let (colour_step, pixel_step, row_step) = match self.colour {
            Colour::Rgb1 => (1, 3, 3 * width),
            Colour::Rgb2 => (width, 1, 3 * width),
            _ => (width * height, 1, width),
        };
        let mut pixels = Vec::with_capacity(samples.len());
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            for colour in 0..colours {
                let at = bytes * (y * row_step + x * pixel_step + colour * colour_step);
                pixels.extend_from_slice(&samples[at..at + bytes]);
            }
        }
        let size = |size: usize| u32::try_from(size).map_err(|_| wrong(format!("{width} x {height} pixels")));
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, size(width)?, size(height)?);
        encoder.set_color(if colours == 3 { png::ColorType::Rgb } else { png::ColorType::Grayscale });
        encoder.set_depth(depth);
        let done = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&pixels)?;
            writer.finish()
        });
        done.map_err(|why| wrong(why.to_string()))?;
        Ok(file)
    }

    /// Returns width, height and number of colours.
    fn layout(&self) -> Result<(usize, usize, usize), ImageError> {
        let found = match (self.colour, &*self.dimensions) {
            (Colour::Mono | Colour::Bayer, [width, height] | [width, height, 1]) => (*width, *height, 1),
            (Colour::Rgb1, [3, width, height])
            | (Colour::Rgb2, [width, 3, height])
            | (Colour::Rgb3, [width, height, 3]) => (*width, *height, 3),
            (colour, dimensions) => {
                return Err(ImageError::NoPicture(format!(
                    "{colour:?} of dimensions {dimensions:?}; convert it to Mono or RGB1 at the detector"
                )));
            }
        };
        if found.0 == 0 || found.1 == 0 {
            return Err(ImageError::NoPicture("it has no pixels".into()));
        }
        Ok(found)
    }

    /// Returns the elements as PNG has them, 16-bit ones big-endian.
    fn samples(&self) -> (png::BitDepth, Vec<u8>) {
        if self.elements.scalar() == Scalar::U8 {
            return (png::BitDepth::Eight, self.elements.bytes().to_vec());
        }
        let (low, scale) = match (self.elements.scalar(), self.summary()) {
            (Scalar::U16, _) | (_, None) => (0.0, 1.0),
            (_, Some(Summary { least, greatest, .. })) => (least, 65535.0 / (greatest - least).max(f64::MIN_POSITIVE)),
        };
        let mut bytes = Vec::with_capacity(2 * self.elements.len());
        each(&self.elements, |element| {
            // What is no number is black.
            bytes.extend_from_slice(&(((element - low) * scale).round() as u16).to_be_bytes());
        });
        (png::BitDepth::Sixteen, bytes)
    }
}

/// Hands on each element as a number.
fn each(elements: &Array, mut told: impl FnMut(f64)) {
    macro_rules! each {
        ($($Scalar:ident $Rust:ty),+) => {
            match elements.scalar() {
                Scalar::Bool => elements.iter_bools().into_iter().flatten().for_each(|bit| told(u8::from(bit).into())),
                Scalar::I64 => elements.iter::<i64>().into_iter().flatten().for_each(|element| told(element as f64)),
                Scalar::U64 => elements.iter::<u64>().into_iter().flatten().for_each(|element| told(element as f64)),
                Scalar::Text => {}
                $(Scalar::$Scalar => {
                    elements.iter::<$Rust>().into_iter().flatten().for_each(|element| told(element.into()));
                })+
            }
        };
    }
    each!(I8 i8, I16 i16, I32 i32, U8 u8, U16 u16, U32 u32, F32 f32, F64 f64);
}
