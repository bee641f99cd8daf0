//! One scalar from text.

use super::Mistake;
use hodo_pva::data::SetError;
use hodo_pva::{Array, Datum, Scalar};

/// Reads a scalar: whole numbers also as 0x1F, 0b11 and 1e3, floats also as `nan` and `inf`, bools also as 0 and 1.
pub(crate) fn datum(scalar: Scalar, text: &str) -> Result<Datum, Mistake> {
    let not_a = || Mistake::NotA { text: text.into(), of: scalar.name().into() };
    let trimmed = text.trim();
    Ok(match scalar {
        Scalar::Text => text.into(),
        Scalar::Bool => boolean(trimmed).ok_or_else(not_a)?.into(),
        Scalar::F32 => in_range(single(trimmed).ok_or_else(not_a)?, f32::is_infinite, trimmed)?.into(),
        Scalar::F64 => in_range(float(trimmed).ok_or_else(not_a)?, f64::is_infinite, trimmed)?.into(),
        _ => {
            let whole = whole(trimmed).ok_or_else(not_a)?;
            match (i64::try_from(whole), u64::try_from(whole)) {
                (Ok(signed), _) => signed.into(),
                (_, Ok(unsigned)) => unsigned.into(),
                _ => return Err(SetError::OutOfRange.into()),
            }
        }
    })
}

/// Reads the elements of an array, each from a text.
pub(super) fn array(scalar: Scalar, texts: &[&str]) -> Result<Array, Mistake> {
    let mut elements = Elements::new(scalar);
    texts.iter().try_for_each(|text| elements.push(text))?;
    Ok(elements.into_array())
}

pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "1" => Some(true),
        "false" | "False" | "0" => Some(false),
        _ => None,
    }
}

pub(super) fn float(text: &str) -> Option<f64> {
    text.parse().ok().or_else(|| whole(text).map(|whole| whole as f64))
}

/// Reads a float of 32 bits, rounded once.
fn single(text: &str) -> Option<f32> {
    text.parse().ok().or_else(|| whole(text).map(|whole| whole as f32))
}

/// Returns a number that is not infinite, or is so by name: digits that say more than the type holds are a mistake.
fn in_range<T: Copy>(value: T, is_infinite: impl Fn(T) -> bool, text: &str) -> Result<T, Mistake> {
    if is_infinite(value) && text.contains(|c: char| c.is_ascii_digit()) {
        return Err(SetError::OutOfRange.into());
    }
    Ok(value)
}

pub(super) fn whole(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let of_base = |prefix: [&str; 2], base| {
        let digits = prefix.iter().find_map(|prefix| digits.strip_prefix(prefix))?;
        i64::from_str_radix(digits, base)
            .map(i128::from)
            .or_else(|_| u64::from_str_radix(digits, base).map(i128::from))
            .ok()
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let magnitude = of_base(["0x", "0X"], 16)
        .or_else(|| of_base(["0b", "0B"], 2))
        .or_else(|| digits.parse::<u64>().ok().map(i128::from));
    magnitude.or_else(|| whole_float(digits)).map(|magnitude| sign * magnitude)
}

/// Reads a whole number that is written as a float, as 1e3.
fn whole_float(text: &str) -> Option<i128> {
    /// From here on not every whole number is a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let value: f64 = text.parse().ok()?;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i128)
}

/// The elements of an array that grows.
pub(super) enum Elements {
    Bools(Vec<bool>),
    Texts(Vec<String>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

macro_rules! elements {
    ($($Number:ident)+) => {
        impl Elements {
            pub(super) fn new(scalar: Scalar) -> Self {
                match scalar {
                    Scalar::Bool => Elements::Bools(Vec::new()),
                    Scalar::Text => Elements::Texts(Vec::new()),
                    Scalar::F32 => Elements::F32(Vec::new()),
                    Scalar::F64 => Elements::F64(Vec::new()),
                    $(Scalar::$Number => Elements::$Number(Vec::new()),)+
                }
            }

            /// Adds an element.
            pub(super) fn push(&mut self, text: &str) -> Result<(), Mistake> {
                let trimmed = text.trim();
                let not_a = |of: Scalar| Mistake::NotA { text: text.into(), of: of.name().into() };
                match self {
                    Elements::Bools(into) => into.push(boolean(trimmed).ok_or_else(|| not_a(Scalar::Bool))?),
                    Elements::Texts(into) => into.push(text.into()),
                    Elements::F32(into) => {
                        let single = single(trimmed).ok_or_else(|| not_a(Scalar::F32))?;
                        into.push(in_range(single, f32::is_infinite, trimmed)?);
                    }
                    Elements::F64(into) => {
                        let float = float(trimmed).ok_or_else(|| not_a(Scalar::F64))?;
                        into.push(in_range(float, f64::is_infinite, trimmed)?);
                    }
                    $(Elements::$Number(into) => {
                        let whole = whole(trimmed).ok_or_else(|| not_a(Scalar::$Number))?;
                        into.push(whole.try_into().map_err(|_| SetError::OutOfRange)?);
                    })+
                }
                Ok(())
            }

            pub(super) fn into_array(self) -> Array {
                match self {
                    Elements::Bools(elements) => Array::bools(elements),
                    Elements::Texts(elements) => Array::texts(elements),
                    Elements::F32(elements) => elements.into(),
                    Elements::F64(elements) => elements.into(),
                    $(Elements::$Number(elements) => elements.into(),)+
                }
            }
        }
    };
}

elements!(I8 I16 I32 I64 U8 U16 U32 U64);
