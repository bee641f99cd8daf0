//! Images of area detectors: the pixels of an NTNDArray, decompressed.
//!
//! ADCore's codec plugin compresses the pixels, and says so in `codec.name`; `codec.parameters` is the type of the elements, as the
//! number of pvData's ScalarType. What was compressed is little-endian, as on the hosts of detectors. A codec's claims are checked
//! against the dimensions, and those against a bound, before anything is allocated.

mod blosc;
mod blosclz;
mod jpeg;
mod lz4;
mod picture;
mod shuffle;

pub use picture::Summary;

use crate::machines::{Array, Item, Order, Scalar, Value};
use std::io::Read;
use thiserror::Error;

/// The bytes of pixels that an image may have unless the caller says otherwise.
pub const BYTES_MAX: usize = 1 << 30;

/// An image.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// The sizes of the dimensions. The first is that of neighbours in memory.
    pub dimensions: Vec<usize>,
    /// The meaning of the dimensions.
    pub colour: Colour,
    /// The elements.
    pub elements: Array,
}

/// The colours of an image, and where they lie. The numbers are those of ADCore's attribute `ColorMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Colour {
    /// One brightness per pixel.
    #[default]
    Mono = 0,
    /// One brightness per pixel, behind a mosaic of filters.
    Bayer = 1,
    /// Red, green and blue of a pixel side by side.
    Rgb1 = 2,
    /// Red, green and blue of a row, one after the other.
    Rgb2 = 3,
    /// Red, green and blue of the image, one after the other.
    Rgb3 = 4,
    /// Brightness and colour differences of every pixel.
    Yuv444 = 5,
    /// Colour differences of two pixels together.
    Yuv422 = 6,
    /// Colour differences of four pixels together.
    Yuv411 = 7,
}

/// Why an image cannot be decoded or drawn.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The value is of another type.
    #[error("its type is {0:?}, not NTNDArray: read it as any other value")]
    NotAnImage(String),
    /// The union of pixels is empty.
    #[error("it holds no pixels yet: is the detector acquiring?")]
    NoPixels,
    /// The codec is none of those that are known.
    #[error("codec {0:?} is not known: choose jpeg, zlib, lz4, lz4hdf5, bslz4 or blosc in the detector's codec plugin")]
    UnknownCodec(String),
    /// `codec.parameters` names no type of elements.
    #[error("codec.parameters names no type of elements: the sender has to state it, as ADCore does, as 5 for ubyte")]
    NoElementType,
    /// The dimensions and the bytes do not agree.
    #[error("its dimensions need {need} bytes, and it has {have}: the sender's dimensions and sizes disagree")]
    Sizes {
        /// Bytes that the dimensions and the type of the elements need.
        need: usize,
        /// Bytes that there are, or are claimed.
        have: usize,
    },
    /// The image is larger than allowed.
    #[error("its {bytes} bytes are more than the {max} that are allowed: raise the bound")]
    TooLarge {
        /// Bytes of the image.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// The compressed bytes are none of this codec.
    #[error("its {codec} data are damaged: {why}")]
    Damaged {
        /// The codec.
        codec: &'static str,
        /// The mistake in the data.
        why: String,
    },
    /// It cannot be drawn as a picture.
    #[error("it cannot be drawn: {0}")]
    NoPicture(String),
}

/// Returns the image that an NTNDArray holds, decompressed into at most `bytes_max` bytes. Pixels that are not compressed are shared.
///
/// # Errors
/// An [`ImageError`] if it is none, its codec is not known, or its parts do not agree.
pub fn decode_image(value: &Value, bytes_max: usize) -> Result<Image, ImageError> {
    let id = value.plan().of().id();
    if !id.starts_with("epics:nt/NTNDArray:1.") {
        return Err(ImageError::NotAnImage(id.into()));
    }
    let Some(Item::Array(sent)) = value.get("value").map(Item::content) else { return Err(ImageError::NoPixels) };
    let dimensions = dimensions(value);
    let codec = codec(value);
    let scalar = if codec.is_empty() { Some(sent.scalar()) } else { element_type(value) };
    let scalar = scalar.ok_or(ImageError::NoElementType)?;
    let width = scalar.width().ok_or(ImageError::NoElementType)?;
    let need = dimensions.iter().try_fold(width, |bytes, size| bytes.checked_mul(*size)).unwrap_or(usize::MAX);
    if need > bytes_max {
        return Err(ImageError::TooLarge { bytes: need, max: bytes_max });
    }
    let elements = if codec.is_empty() {
        let elements = sent.first(need / width);
        (elements.bytes().len() == need).then_some(elements)
    } else {
        check_claim(value, need)?;
        let bytes = decompressed(&codec, &compressed(value, sent), &dimensions, width, need)?;
        Array::from_bytes(scalar, Order::Little, bytes.into())
    };
    let have = sent.bytes().len();
    let elements = elements.ok_or(ImageError::Sizes { need, have })?;
    Ok(Image { colour: colour(value, &dimensions), dimensions, elements })
}

/// Returns the sizes of the dimensions; none for what is no size.
fn dimensions(value: &Value) -> Vec<usize> {
    let Some(Item::Elements(dimensions)) = value.get("dimension") else { return Vec::new() };
    let size = |dimension: &Value| usize::try_from(dimension.get("size")?.as_i64()?).ok();
    dimensions.iter().map(|dimension| dimension.as_deref().and_then(size).unwrap_or(0)).collect()
}

/// Returns the name of the codec; empty if the pixels are not compressed.
pub(crate) fn codec(value: &Value) -> String {
    value.get("codec.name").and_then(Item::as_text).map(ToString::to_string).unwrap_or_default()
}

/// Returns the type of the elements before they were compressed.
pub(crate) fn element_type(value: &Value) -> Option<Scalar> {
    use Scalar::{Bool, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let number = value.get("codec.parameters")?.as_i64()?;
    let all = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64];
    usize::try_from(number).ok().and_then(|number| all.get(number).copied())
}

/// Returns the number that `codec.parameters` has for elements of a type: pvData's `ScalarType`. Whoever serves compressed images sets it.
#[must_use]
pub fn type_number(scalar: Scalar) -> i32 {
    use Scalar::{Bool, F32, F64, I8, I16, I32, I64, Text, U8, U16, U32, U64};
    match scalar {
        Bool => 0,
        I8 => 1,
        I16 => 2,
        I32 => 3,
        I64 => 4,
        U8 => 5,
        U16 => 6,
        U32 => 7,
        U64 => 8,
        F32 => 9,
        F64 => 10,
        Text => 11,
    }
}

/// Checks `uncompressedSize`, which some senders leave at 0.
fn check_claim(value: &Value, need: usize) -> Result<(), ImageError> {
    let claimed = value.get("uncompressedSize").and_then(Item::as_i64).unwrap_or(0);
    match usize::try_from(claimed) {
        Ok(have) if have != 0 && have != need => Err(ImageError::Sizes { need, have }),
        _ => Ok(()),
    }
}

/// Returns the compressed bytes, without what some senders leave behind them.
fn compressed(value: &Value, sent: &Array) -> hodo_machine::Bytes {
    let claimed = value.get("compressedSize").and_then(Item::as_i64).and_then(|size| usize::try_from(size).ok());
    let bytes = sent.bytes();
    bytes.slice(..claimed.filter(|size| (1..bytes.len()).contains(size)).unwrap_or(bytes.len()))
}

fn decompressed(
    codec: &str,
    from: &[u8],
    dimensions: &[usize],
    width: usize,
    need: usize,
) -> Result<Vec<u8>, ImageError> {
    let mut bytes = vec![0; need];
    let (codec, done) = match codec {
        "jpeg" => ("jpeg", jpeg::fill(from, dimensions, &mut bytes)),
        "blosc" => ("blosc", blosc::fill(from, &mut bytes)),
        "zlib" => ("zlib", unzlib(from, &mut bytes)),
        "lz4" => ("lz4", lz4::fill(from, &mut bytes)),
        "lz4hdf5" => ("lz4hdf5", lz4::fill_hdf5(from, &mut bytes)),
        "bslz4" => ("bslz4", lz4::fill_shuffled(from, width, &mut bytes)),
        _ => return Err(ImageError::UnknownCodec(codec.into())),
    };
    done.map(|()| bytes).map_err(|why| ImageError::Damaged { codec, why })
}

/// Decompresses a zlib stream into exactly this room.
fn unzlib(from: &[u8], into: &mut [u8]) -> Result<(), String> {
    flate2::read::ZlibDecoder::new(from).read_exact(into).map_err(|why| why.to_string())
}

/// Returns the colours as the attribute `ColorMode` says, or as the dimensions look.
fn colour(value: &Value, dimensions: &[usize]) -> Colour {
    use Colour::{Bayer, Mono, Rgb1, Rgb2, Rgb3, Yuv411, Yuv422, Yuv444};
    let attributes = match value.get("attribute") {
        Some(Item::Elements(attributes)) => attributes,
        _ => &[],
    };
    let is_mode = |attribute: &&Value| {
        attribute.get("name").and_then(Item::as_text).is_some_and(|name| name.as_bytes() == b"ColorMode")
    };
    let mode = attributes.iter().flatten().map(|attribute| &**attribute).find(is_mode);
    let number =
        mode.and_then(|attribute| attribute.get("value")?.as_i64()).and_then(|mode| usize::try_from(mode).ok());
    let all = [Mono, Bayer, Rgb1, Rgb2, Rgb3, Yuv444, Yuv422, Yuv411];
    match (number.and_then(|number| all.get(number)), dimensions) {
        (Some(mode), _) => *mode,
        (None, [3, _, _]) => Rgb1,
        (None, [_, 3, _]) => Rgb2,
        (None, [_, _, 3]) => Rgb3,
        _ => Mono,
    }
}
