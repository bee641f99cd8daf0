//! Images that the field's libraries have compressed; `tests/interop/pva/images.py` says how `golden_images.txt` was made.

use hodo_machine::{Bytes, Random};
use hodo_pva_host::image::{BYTES_MAX, Colour, Image, ImageError, decode_image};
use hodo_pva_host::machines::data::Datum;
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::{Array, Item, Order, Plan, Scalar, Value};

/// A line of the golden file.
struct Golden {
    name: &'static str,
    codec: &'static str,
    scalar: Scalar,
    dimensions: Vec<usize>,
    mode: i32,
    bytes: Vec<u8>,
}

fn golden() -> Vec<Golden> {
    let lines = include_str!("golden_images.txt").lines();
    let all: Vec<Golden> = lines.map(|line| read(line).unwrap_or_else(|| panic!("{line}"))).collect();
    assert!(all.len() > 70);
    all
}

fn read(line: &'static str) -> Option<Golden> {
    let mut words = line.split(' ');
    Some(Golden {
        name: words.next()?,
        codec: words.next()?.trim_start_matches('-'),
        scalar: Scalar::from_name(words.next()?)?,
        dimensions: words.next()?.split(',').map(|size| size.parse().ok()).collect::<Option<_>>()?,
        mode: words.next()?.parse().ok()?,
        bytes: words.next()?.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?,
    })
}

/// Returns what an any-field holds for a number.
fn any(number: i32) -> Datum {
    let mut held = Value::of(Scalar::I32.into());
    held.set("", number).unwrap();
    Datum::Value(held)
}

fn byte(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl Golden {
    /// Returns the value as ADCore sends it.
    fn value(&self) -> Value {
        let sent = if self.codec.is_empty() { self.scalar } else { Scalar::I8 };
        let array = Array::from_bytes(sent, Order::Little, Bytes::from(self.bytes.clone())).unwrap();
        let mut value = Value::of(Normative::nd_array().build());
        value.set("value", Datum::Member(format!("{}Value", sent.name()), Box::new(array.into()))).unwrap();
        value.set("codec.name", self.codec).unwrap();
        value.set("codec.parameters", any(self.type_number())).unwrap();
        let element = |field: &str| {
            Plan::new(value.plan().field(value.plan().number(field).unwrap()).unwrap().element().unwrap())
        };
        let (dimension, attribute) = (element("dimension"), element("attribute"));
        let sizes = self.dimensions.iter().map(|size| {
            let mut one = Value::new(&dimension);
            one.set("size", i32::try_from(*size).unwrap()).unwrap();
            Some(one)
        });
        let mut mode = Value::new(&attribute);
        mode.set("name", "ColorMode").unwrap();
        mode.set("value", any(self.mode)).unwrap();
        let sizes = sizes.collect();
        value.set("dimension", Datum::Elements(sizes)).unwrap();
        value.set("attribute", Datum::Elements(vec![Some(mode)])).unwrap();
        value
    }

    fn type_number(&self) -> i32 {
        use Scalar::{Bool, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
        let all = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64];
        i32::try_from(all.iter().position(|scalar| *scalar == self.scalar).unwrap()).unwrap()
    }

    /// Tells whether it is the pattern that `pixels` in `images.py` makes, in one colour.
    fn has_pattern(&self) -> bool {
        [vec![61, 37], vec![9, 7]].contains(&self.dimensions)
    }

    fn decoded(&self) -> Result<Image, ImageError> {
        decode_image(&self.value(), BYTES_MAX)
    }
}

/// Returns the elements as numbers.
fn numbers(array: &Array) -> Vec<f64> {
    macro_rules! numbers {
        ($($Scalar:ident $Rust:ty),+) => {
            match array.scalar() {
                $(Scalar::$Scalar => array.iter::<$Rust>().unwrap().map(f64::from).collect(),)+
                Scalar::I64 => array.iter::<i64>().unwrap().map(|element| element as f64).collect(),
                Scalar::U64 => array.iter::<u64>().unwrap().map(|element| element as f64).collect(),
                other => panic!("{other:?}"),
            }
        };
    }
    numbers!(I8 i8, I16 i16, I32 i32, U8 u8, U16 u16, U32 u32, F32 f32, F64 f64)
}

#[test]
fn every_codec_of_the_fields_libraries_is_decoded() {
    for golden in golden().iter().filter(|golden| golden.has_pattern()) {
        let image = golden.decoded().unwrap_or_else(|why| panic!("{}: {why}", golden.name));
        assert_eq!((image.elements.scalar(), image.colour), (golden.scalar, Colour::Mono), "{}", golden.name);
        assert_eq!(image.dimensions, golden.dimensions);
        let [width, height] = golden.dimensions[..] else { panic!("{}", golden.name) };
        let (width, height) = (width as i32, height as i32);
        let expected: Vec<f64> = (0..height)
            .flat_map(|y: i32| (0..width).map(move |x: i32| (7 * (x / 6) + 11 * (y / 4) + x / 30 * y) % 251))
            .map(|pattern| match golden.scalar {
                Scalar::F32 | Scalar::F64 => f64::from(pattern) / 4.0 - 10.0,
                Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => f64::from(pattern / 2 - 60),
                Scalar::U8 => f64::from(pattern),
                _ => f64::from(pattern * 257),
            })
            .collect();
        assert!(numbers(&image.elements) == expected, "{} is decoded to something else", golden.name);
    }
}

#[test]
fn other_images_are_as_they_were_made() {
    for golden in golden().iter().filter(|golden| !golden.has_pattern()) {
        let image = golden.decoded().unwrap_or_else(|why| panic!("{}: {why}", golden.name));
        let pixels = numbers(&image.elements);
        let at = |at: usize| pixels[at];
        match golden.name {
            "blosc-far" => assert!(pixels.iter().all(|pixel| *pixel == 0.0)),
            "blosc-stored" => assert_eq!(image.elements.bytes()[..], golden.bytes[16..]),
            "blosc-noise" => {
                assert!(golden.bytes.len() < 700, "the second noise is a copy");
                assert!(pixels[..500] == pixels[9500..10000] && pixels[..500] == pixels[10000..]);
                assert!(pixels[500..9500].iter().all(|pixel| *pixel == 0.0) && pixels[0] != pixels[1]);
            }
            "zlib-rgb" => {
                assert_eq!((image.colour, at(0), at(1), at(2), at(18)), (Colour::Rgb1, 0.0, 50.0, 100.0, 7.0));
            }
            "jpeg-0" => {
                assert!((0..40 * 30).all(|n| (at(n) - f64::from((2 * (n % 40) + 3 * (n / 40)) as u8)).abs() <= 3.0));
            }
            "jpeg-2" => {
                let expected = |n: usize| 2 * (n / 3 % 40) + 3 * (n / 120) + 40 * (n % 3);
                assert!((0..3600).all(|n| (at(n) - expected(n).min(255) as f64).abs() <= 6.0));
            }
            other => panic!("{other} is not checked"),
        }
    }
}

#[test]
fn what_is_not_compressed_is_not_copied() {
    let all = golden();
    let value = all[0].value();
    let Some(Item::Array(sent)) = value.get("value").map(Item::content) else { panic!("no pixels") };
    let image = decode_image(&value, BYTES_MAX).unwrap();
    assert_eq!(image.elements.bytes().as_ptr(), sent.bytes().as_ptr());
}

#[test]
fn mistakes_name_the_culprit_and_the_remedy() {
    let all = golden();
    let good = all.iter().find(|golden| golden.name == "lz4-u2").unwrap();
    let with = |path: &str, datum: Datum| {
        let mut value = good.value();
        value.set(path, datum).unwrap();
        decode_image(&value, BYTES_MAX).unwrap_err()
    };
    assert_eq!(with("codec.name", "h265".into()), ImageError::UnknownCodec("h265".into()));
    assert_eq!(with("codec.parameters", any(99)), ImageError::NoElementType);
    assert_eq!(with("uncompressedSize", 4500.into()), ImageError::Sizes { need: 4514, have: 4500 });
    assert_eq!(decode_image(&good.value(), 4513), Err(ImageError::TooLarge { bytes: 4514, max: 4513 }));
    assert!(matches!(with("codec.name", "jpeg".into()), ImageError::Damaged { codec: "jpeg", .. }));
    let scalar = Value::of(Normative::scalar(Scalar::F64).build());
    assert_eq!(decode_image(&scalar, 1), Err(ImageError::NotAnImage("epics:nt/NTScalar:1.0".into())));
    assert_eq!(decode_image(&Value::of(Normative::nd_array().build()), 1), Err(ImageError::NoPixels));
}

#[test]
fn damaged_data_are_errors_and_never_a_panic() {
    let mut random = Random::new(11);
    let mut errors = 0;
    for golden in golden().iter_mut().filter(|golden| !golden.codec.is_empty() && golden.bytes.len() < 8000) {
        let good = golden.bytes.clone();
        for _ in 0..60 {
            golden.bytes.clone_from(&good);
            for _ in 0..1 + random.below(4) {
                let at = random.below(good.len() as u64) as usize;
                golden.bytes[at] = random.below(256) as u8;
            }
            if random.below(3) == 0 {
                golden.bytes.truncate(random.below(good.len() as u64) as usize);
            }
            errors += u32::from(golden.decoded().is_err());
        }
    }
    assert!(errors > 500, "{errors}");
}

#[test]
fn pictures_have_the_pixels_of_their_images() {
    for (name, color, depth, first) in [
        ("plain-u1", png::ColorType::Grayscale, png::BitDepth::Eight, vec![0, 0, 0, 0, 0, 0, 7]),
        ("bslz4-u2", png::ColorType::Grayscale, png::BitDepth::Sixteen, vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7]),
        ("zlib-rgb", png::ColorType::Rgb, png::BitDepth::Eight, vec![0, 50, 100, 0, 50, 100]),
    ] {
        let all = golden();
        let golden = all.iter().find(|golden| golden.name == name).unwrap();
        let file = golden.decoded().unwrap().png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let found = reader.next_frame(&mut pixels).unwrap();
        let [.., width, height] = golden.dimensions[..] else { panic!("{name}") };
        assert_eq!((found.width as usize, found.height as usize), (width, height), "{name}");
        assert_eq!((found.color_type, found.bit_depth), (color, depth), "{name}");
        assert_eq!(pixels[..first.len()], first, "{name}");
    }
}
