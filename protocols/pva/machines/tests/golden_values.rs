//! Types and values as pvDataCPP encodes them, in both byte orders: ours decode to the same contents and encode to the same bytes.

use crate::golden;

use golden::hex;
use hodo_pva::data::{Length, Members};
use hodo_pva::wire::{Severity, Side, Status};
use hodo_pva::{Array, BitSet, Datum, Limits, Order, Plan, Reader, Scalar, Type, TypeCache, Value, Writer};
use std::collections::BTreeMap;

/// Returns the cases of a kind, each with its bytes in both orders.
fn cases(kind: &str) -> BTreeMap<String, [Vec<u8>; 2]> {
    let text = include_str!("golden/values.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [name, little, big] = words[..] else { panic!("no case: {line}") };
            Some((name.strip_prefix(kind)?.to_string(), [hex(little), hex(big)]))
        })
        .collect()
}

fn encoded(order: Order, write: impl Fn(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new(Side::Client, order);
    write(&mut writer);
    writer.to_vec()
}

const KINDS: [Scalar; 12] = Scalar::ALL;

fn scalars() -> Type {
    Type::structure("all", KINDS.map(|kind| (kind.name(), kind.into())))
}

fn arrays() -> Type {
    Type::structure("", KINDS.map(|kind| (kind.name(), Type::array(kind))))
}

fn bounded() -> Type {
    Type::structure(
        "",
        [
            ("text", Type::BoundedText(8)),
            ("most", Type::Array(Scalar::I32, Length::Bounded(4))),
            ("exactly", Type::Array(Scalar::I16, Length::Fixed(2))),
        ],
    )
}

fn composed() -> Type {
    let pair = Type::structure("", [("a", Scalar::U8.into()), ("b", Scalar::U8.into())]);
    let choice = [("number", Scalar::F64.into()), ("words", Type::array(Scalar::Text)), ("pair", pair)];
    let choices = Members::new("", [("i", Scalar::I32.into()), ("s", Scalar::Text.into())]);
    Type::structure(
        "top",
        [
            ("inner", Type::structure("in", [("x", Scalar::I32.into()), ("y", Scalar::Text.into())])),
            ("choice", Type::union("un", choice)),
            ("any", Type::Any),
            ("rows", Type::StructureArray(Members::new("", [("n", Scalar::I64.into())]))),
            ("choices", Type::UnionArray(choices)),
            ("anys", Type::AnyArray),
        ],
    )
}

fn set(value: &mut Value, fields: Vec<(&str, Datum)>) {
    for (path, datum) in fields {
        value.set(path, datum).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

fn scalar_value(text: &str) -> Value {
    let mut value = Value::of(scalars());
    let fields: Vec<(&str, Datum)> = vec![
        ("boolean", true.into()),
        ("byte", (-2).into()),
        ("short", (-300).into()),
        ("int", (-70_000).into()),
        ("long", (-5_000_000_000i64).into()),
        ("ubyte", 254u8.into()),
        ("ushort", 65_000u16.into()),
        ("uint", 4_000_000_000u32.into()),
        ("ulong", 18_000_000_000_000_000_000u64.into()),
        ("float", 1.5f32.into()),
        ("double", (-2.25).into()),
        ("string", text.into()),
    ];
    set(&mut value, fields);
    value
}

fn array_value(ushorts: usize) -> Value {
    let mut value = Value::of(arrays());
    let long = "y".repeat(260);
    let fields: Vec<(&str, Datum)> = vec![
        ("boolean", Array::bools([true, false, true]).into()),
        ("byte", vec![1i8, -1, 1].into()),
        ("short", vec![1i16, -1, 1].into()),
        ("int", vec![1i32, -1, 1].into()),
        ("long", vec![1i64, -1, 1].into()),
        ("ubyte", vec![1u8, 2, 1].into()),
        ("ushort", (0..ushorts).map(|at| 1 + (at % 2) as u16).collect::<Vec<_>>().into()),
        ("uint", vec![1u32, 2, 1].into()),
        ("ulong", vec![1u64, 2, 1].into()),
        ("float", vec![1f32, -0.5, 1.0].into()),
        ("double", vec![1f64, -0.5, 1.0].into()),
        ("string", Array::texts(["a", &long, "a"]).into()),
    ];
    set(&mut value, fields);
    value
}

fn bounded_value() -> Value {
    let mut value = Value::of(bounded());
    set(&mut value, vec![("text", "short".into()), ("most", vec![7, 8, 7].into()), ("exactly", vec![9i16, 10].into())]);
    value
}

fn composed_value(is_otherwise: bool) -> Value {
    let mut value = Value::of(composed());
    let row = |n: i64| {
        let mut row = Value::of(Type::structure("", [("n", Scalar::I64.into())]));
        row.set("n", n).expect("it fits");
        row
    };
    let union = Type::union("", [("i", Scalar::I32.into()), ("s", Scalar::Text.into())]);
    let mut chosen = Value::of(union.clone());
    chosen.set("", "chosen").expect("it has a text");
    let mut single = Value::of(Type::structure("", [("p", Scalar::F32.into())]));
    single.set("p", 8).expect("it fits");
    let mut any = Value::of(Type::Any);
    any.set("", single).expect("any holds it");
    let mut number = Value::of(Scalar::I32.into());
    number.set("", 77).expect("it fits");
    let mut pair = Value::of(Type::structure("", [("a", Scalar::U8.into()), ("b", Scalar::U8.into())]));
    pair.set("b", 3).expect("it fits");
    let (choice, any_field) = if is_otherwise {
        (Datum::Member("pair".into(), Box::new(pair.into())), Datum::Nothing)
    } else {
        (Datum::Member("number".into(), Box::new(0.125.into())), number.into())
    };
    let fields = vec![
        ("inner.x", 5.into()),
        ("inner.y", "why".into()),
        ("choice", choice),
        ("any", any_field),
        ("rows", Datum::Elements(vec![Some(row(-9)), None, Some(row(0))])),
        ("choices", Datum::Elements(vec![Some(chosen), Some(Value::of(union)), None])),
        ("anys", Datum::Elements(vec![Some(any), None])),
    ];
    set(&mut value, fields);
    value
}

fn values() -> Vec<(&'static str, Value)> {
    vec![
        ("scalars-zero", Value::of(scalars())),
        ("scalars", scalar_value("text")),
        ("scalars-long-text", scalar_value(&"x".repeat(300))),
        ("arrays-empty", Value::of(arrays())),
        ("arrays", array_value(3)),
        ("arrays-long", array_value(300)),
        ("bounded", bounded_value()),
        ("composed-empty", Value::of(composed())),
        ("composed", composed_value(false)),
        ("composed-otherwise", composed_value(true)),
    ]
}

#[test]
fn types_are_those_of_the_peer() {
    let all = cases("type/");
    let ours = [
        ("scalars-zero", scalars()),
        ("arrays-empty", arrays()),
        ("bounded", bounded()),
        ("composed-empty", composed()),
    ];
    assert_eq!(all.len(), ours.len());
    for (name, of) in ours {
        for (order, bytes) in Order::BOTH.into_iter().zip(&all[name]) {
            let limits = Limits::default();
            let mut reader = Reader::new(bytes, order, &limits);
            assert_eq!(TypeCache::new().decode_type(&mut reader), Ok(Some(of.clone())), "{name}");
            assert!(reader.rest().is_empty(), "{name}");
            assert_eq!(&encoded(order, |writer| of.encode(writer)), bytes, "{name}");
        }
    }
}

#[test]
fn values_are_those_of_the_peer() {
    let all = cases("value/");
    let ours = values();
    assert_eq!(all.len(), ours.len());
    for (name, expected) in ours {
        for (order, bytes) in Order::BOTH.into_iter().zip(&all[name]) {
            let limits = Limits::default();
            let mut reader = Reader::new(bytes, order, &limits);
            let mut value = Value::new(expected.plan());
            assert_eq!(value.decode(&mut reader, &mut TypeCache::new()), Ok(()), "{name}");
            assert!(reader.rest().is_empty(), "{name}");
            assert_eq!(value, expected, "{name}");
            assert_eq!(&encoded(order, |writer| value.encode(writer)), bytes, "{name}: as it was decoded");
            assert_eq!(&encoded(order, |writer| expected.encode(writer)), bytes, "{name}: as it was made");
        }
    }
}

/// A message that ends early is refused at every byte, and nothing of it is taken for whole.
#[test]
fn values_cut_at_every_byte_are_refused() {
    let all = cases("value/");
    for (name, expected) in values() {
        let [bytes, _] = &all[name];
        for end in 0..bytes.len() {
            let limits = Limits::default();
            let mut reader = Reader::new(&bytes[..end], Order::Little, &limits);
            let found = Value::new(expected.plan()).decode(&mut reader, &mut TypeCache::new());
            assert!(found.is_err(), "{name} cut at {end}");
        }
    }
}

#[test]
fn sets_of_bits_are_those_of_the_peer() {
    for (name, both) in cases("bits/") {
        let numbers = name.split(',').filter(|_| !name.is_empty()).map(|number| number.parse().expect("a number"));
        let expected: BitSet = numbers.collect();
        for (order, bytes) in Order::BOTH.into_iter().zip(&both) {
            let limits = Limits::default();
            let mut set = BitSet::new();
            assert_eq!(set.decode(200, &mut Reader::new(bytes, order, &limits)), Ok(()), "{name}");
            assert_eq!(set, expected, "{name}");
            assert_eq!(&encoded(order, |writer| expected.encode(writer)), bytes, "{name}");
        }
    }
}

#[test]
fn statuses_are_those_of_the_peer() {
    let all = cases("status/");
    let warning = Status::new(Severity::Warning, "careful", "");
    let error = Status::new(Severity::Error, "no", "here");
    for (name, expected) in [("ok", Status::OK), ("warning", warning), ("error", error)] {
        for (order, bytes) in Order::BOTH.into_iter().zip(&all[name]) {
            let limits = Limits::default();
            assert_eq!(Status::decode(&mut Reader::new(bytes, order, &limits)), Ok(expected.clone()), "{name}");
            assert_eq!(&encoded(order, |writer| expected.encode(writer)), bytes, "{name}");
        }
    }
}

#[test]
fn what_is_changed_is_sent_alone_and_leaves_the_rest() {
    let limits = Limits::default();
    let expected = composed_value(false);
    let plan: &Plan = expected.plan();
    let inner = plan.number("inner").expect("it is there");
    let rows = plan.number("rows").expect("it is there");
    for order in Order::BOTH {
        let bytes = encoded(order, |writer| expected.encode_set(&BitSet::from_iter([inner, inner + 1, rows]), writer));
        let mut value = Value::new(expected.plan());
        value.set("anys", Datum::Elements(vec![None])).expect("it has elements");
        let mut reader = Reader::new(&bytes, order, &limits);
        assert_eq!(value.decode_changed(&mut reader, &mut TypeCache::new()), Ok(()));
        assert!(reader.rest().is_empty(), "the field in the structure is there once");
        assert_eq!(value.get("inner.x"), expected.get("inner.x"));
        assert_eq!(value.get("rows"), expected.get("rows"));
        assert_ne!(value.get("anys"), expected.get("anys"));
        assert!(value.has_changed(inner + 2) && value.has_changed(0) && !value.has_changed(rows + 1));
    }
}
