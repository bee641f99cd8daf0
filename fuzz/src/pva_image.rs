use bytes::Bytes;
use hodo_pva::data::Datum;
use hodo_pva::normative::Normative;
use hodo_pva::{Array, Order, Plan, Scalar, Value};
use hodo_pva_host::image::{Image, decode_image};
use hodo_pva_host::show::Show;

/// Bytes that an image may have, and the dimensions of one.
const BYTES_MAX: usize = 1 << 16;
const DIMENSIONS_MAX: u8 = 4;
const CODECS: [&str; 8] = ["", "jpeg", "zlib", "lz4", "lz4hdf5", "bslz4", "blosc", "none of these"];

/// The types of elements, by their numbers.
const SCALARS: [Scalar; 11] = {
    use Scalar::{Bool, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64]
};

/// Decodes an image: the first bytes choose codec, element, colour mode and dimensions of 16 bits, and the rest are its pixels.
pub fn image(input: &[u8]) {
    let Some((front, rest)) = input.split_first_chunk::<4>() else { return };
    let [codec, scalar, mode, count] = *front;
    let count = usize::from(count % (DIMENSIONS_MAX + 1));
    let Some((sizes, pixels)) = rest.split_at_checked(2 * count) else { return };
    let sizes = sizes.chunks(2).map(|size| i32::from(u16::from_le_bytes([size[0], size[1]]))).collect::<Vec<i32>>();
    let codec = CODECS[usize::from(codec) % CODECS.len()];
    let number = i32::from(scalar);
    let Some(value) = value(codec, number, i32::from(mode), &sizes, pixels) else { return };
    // A line for people, of whatever it is.
    let _ = Show::default().text(&value);
    let Ok(image) = decode_image(&value, BYTES_MAX) else { return };
    check(&image);
}

fn check(image: &Image) {
    assert!(image.elements.bytes().len() <= BYTES_MAX, "{} bytes", image.elements.bytes().len());
    let pixels: usize = image.dimensions.iter().product();
    assert_eq!(image.elements.len(), pixels, "{:?}", image.dimensions);
    let _ = image.summary();
    let _ = image.png();
}

/// Returns the value as a detector sends it, or `None` if its bytes are no elements.
fn value(codec: &str, number: i32, mode: i32, sizes: &[i32], pixels: &[u8]) -> Option<Value> {
    let plain = SCALARS[usize::try_from(number).ok()? % SCALARS.len()];
    let sent = if codec.is_empty() { plain } else { Scalar::I8 };
    let array = Array::from_bytes(sent, Order::Little, Bytes::copy_from_slice(pixels))?;
    let mut value = Value::of(Normative::nd_array().build());
    value.set("value", Datum::Member(format!("{}Value", sent.name()), Box::new(array.into()))).ok()?;
    value.set("codec.name", codec).ok()?;
    value.set("codec.parameters", any(number)).ok()?;
    let plan = value.plan().clone();
    let element = |field: &str| Some(Plan::new(plan.field(plan.number(field)?)?.element()?));
    let (dimension, attribute) = (element("dimension")?, element("attribute")?);
    let dimensions = sizes.iter().map(|size| {
        let mut one = Value::new(&dimension);
        one.set("size", *size).ok()?;
        Some(Some(one))
    });
    value.set("dimension", Datum::Elements(dimensions.collect::<Option<_>>()?)).ok()?;
    let mut colour = Value::new(&attribute);
    colour.set("name", "ColorMode").ok()?;
    colour.set("value", any(mode)).ok()?;
    value.set("attribute", Datum::Elements(vec![Some(colour)])).ok()?;
    Some(value)
}

/// Returns what an any-field holds for a number.
fn any(number: i32) -> Datum {
    let mut held = Value::of(Scalar::I32.into());
    held.set("", number).expect("it is one");
    Datum::Value(held)
}
