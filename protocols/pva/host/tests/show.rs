//! Values as text for people.

use hodo_pva_host::machines::data::{Datum, Members};
use hodo_pva_host::machines::normative::{Alarm, Normative, TimeStamp};
use hodo_pva_host::machines::{Array, Scalar, Type, Value};
use hodo_pva_host::show::{Form, Show, type_text};

fn shown(value: &Value, form: Form) -> String {
    Show { form, ..Show::default() }.text(value)
}

/// Returns what is shown behind the time stamp, which is in local time.
fn behind_time(text: &str) -> &str {
    &text[25..]
}

fn warm() -> Value {
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().time_stamp().build());
    value.set("value", 1.5).unwrap();
    value.set_alarm(&Alarm { severity: 1, status: 1, message: "too hot".into() }).unwrap();
    value.set_time_stamp(TimeStamp { seconds: 1_763_844_420, nanoseconds: 123_456_789, user_tag: 0 }).unwrap();
    value
}

#[test]
fn a_scalar_is_one_line_with_time_and_alarm() {
    let text = shown(&warm(), Form::Nt);
    assert!(text.starts_with("2025-11-2") && text[..25].ends_with(".123  "), "{text}");
    assert_eq!(behind_time(&text), "1.5 MINOR DEVICE too hot");
    let mut fine = warm();
    fine.set_alarm(&Alarm::default()).unwrap();
    assert_eq!(behind_time(&shown(&fine, Form::Nt)), "1.5");
    fine.set_alarm(&Alarm { severity: 9, status: 8, message: String::new() }).unwrap();
    assert_eq!(behind_time(&shown(&fine, Form::Nt)), "1.5 9 8");
    assert_eq!(Show::default().terse(&fine), "1.5");
}

#[test]
fn a_time_stamp_without_a_time_says_so_if_it_was_asked_for() {
    let mut value = Value::of(Normative::scalar(Scalar::I32).time_stamp().build());
    assert_eq!(shown(&value, Form::Nt), "0");
    value.mark_all();
    assert_eq!(shown(&value, Form::Nt), "<undefined>              0");
    value.set("timeStamp.secondsPastEpoch", 631_152_000).unwrap();
    assert!(shown(&value, Form::Nt).starts_with("<undefined>"), "a record that was never processed");
    value.set("timeStamp.secondsPastEpoch", i64::MAX).unwrap();
    assert!(shown(&value, Form::Nt).starts_with("<undefined>"));
}

#[test]
fn numbers_have_all_their_digits_and_no_more() {
    let of = |scalar: Scalar, datum: Datum| {
        let mut value = Value::of(Normative::scalar(scalar).build());
        value.set("value", datum).unwrap();
        shown(&value, Form::Nt)
    };
    for (number, text) in
        [(0.1 + 0.2, "0.30000000000000004"), (5.0, "5"), (-0.0, "-0"), (1e300, "1e300"), (1e-9, "1e-9")]
    {
        assert_eq!(of(Scalar::F64, number.into()), text);
    }
    assert_eq!(of(Scalar::F64, f64::NAN.into()), "nan");
    assert_eq!(of(Scalar::F64, f64::NEG_INFINITY.into()), "-inf");
    assert_eq!(of(Scalar::F32, 0.1f32.into()), "0.1");
    assert_eq!(of(Scalar::U64, u64::MAX.into()), "18446744073709551615");
    assert_eq!(of(Scalar::Bool, true.into()), "true");
}

#[test]
fn no_text_of_a_far_end_controls_the_terminal_or_forges_a_line() {
    let mut value = Value::of(Normative::scalar(Scalar::Text).build());
    value.set("value", "a\nB 5\x1b[2J\u{9b}31m\t\\").unwrap();
    assert_eq!(shown(&value, Form::Nt), "a\\nB 5\\x1b[2J\\x9b31m\\t\\");
    assert_eq!(
        shown(&value, Form::Tree),
        "struct \"epics:nt/NTScalar:1.0\" {\n    string value = \"a\\nB 5\\x1b[2J\\x9b31m\\t\\\\\"\n}"
    );
    let mut hostile = Value::of(Type::structure("id\x1b", [("n\x1b", Scalar::I8.into())]));
    hostile.mark_all();
    for form in [Form::Nt, Form::Raw, Form::Tree, Form::Delta, Form::Json] {
        assert!(!shown(&hostile, form).contains('\x1b'), "{form:?}");
    }
    value.set("value", Datum::Text(b"20\xB0C"[..].into())).unwrap();
    assert_eq!(shown(&value, Form::Nt), "20°C");
}

#[test]
fn long_arrays_are_shown_by_their_ends() {
    let mut value = Value::of(Normative::scalar_array(Scalar::F64).build());
    value.set("value", vec![1.0, 2.5]).unwrap();
    assert_eq!(shown(&value, Form::Nt), "[1,2.5]");
    value.set("value", (0..2000).map(f64::from).collect::<Vec<_>>()).unwrap();
    assert_eq!(shown(&value, Form::Nt), "[0,1,2,...,1997,1998,1999]");
    assert_eq!(Show { elements: 3, ..Show::default() }.text(&value), "[0,1,...,1999]");
    assert_eq!(
        Show { elements: 0, ..Show::default() }.text(&value).len(),
        "[0]".len() + (1..2000).map(|n: i32| n.to_string().len() + 1).sum::<usize>()
    );
    assert_eq!(
        Show { elements: 2, form: Form::Tree, ..Show::default() }.text(&value).lines().nth(1),
        Some("    double[] value = {2000}[0, 1, ...]")
    );
    let mut texts = Value::of(Normative::scalar_array(Scalar::Text).build());
    texts.set("value", Array::texts(["a", "b\"", ""])).unwrap();
    assert_eq!(shown(&texts, Form::Nt), r#"["a","b\"",""]"#);
}

#[test]
fn choices_are_shown_by_their_text() {
    let mut value = Value::of(Normative::enumeration().build());
    value.set("value.choices", Array::texts(["Off", "On"])).unwrap();
    value.set("value.index", 1).unwrap();
    assert_eq!(shown(&value, Form::Nt), "(1) On");
    assert_eq!(Show { numbers: true, ..Show::default() }.text(&value), "1");
    value.set("value.index", 2).unwrap();
    assert_eq!(shown(&value, Form::Nt), "(2) <undefined>");
    value.set("value.index", -1).unwrap();
    assert_eq!(shown(&value, Form::Nt), "(-1) <undefined>");
}

#[test]
fn tables_are_tables() {
    let mut value = Value::of(Normative::table([("a", Scalar::I32), ("b", Scalar::Text)]).build());
    value.set("labels", Array::texts(["first", "second"])).unwrap();
    value.set("value.a", vec![1, 20]).unwrap();
    value.set("value.b", Array::texts(["x", "y z", "longer than the others"])).unwrap();
    assert_eq!(shown(&value, Form::Nt), "first second\n    1      x\n   20  \"y z\"");
    value.set("value.a", (0..3000).collect::<Vec<i32>>()).unwrap();
    value.set("value.b", Array::texts((0..3000).map(|n| n.to_string()))).unwrap();
    assert_eq!(shown(&value, Form::Nt).lines().nth(4), Some("  ...    ..."));
    let mut pairs = Value::of(Normative::name_value(Scalar::F64).build());
    pairs.set("name", Array::texts(["x", "yy"])).unwrap();
    pairs.set("value", vec![0.5, 1.0]).unwrap();
    assert_eq!(shown(&pairs, Form::Nt), "name value\n   x   0.5\n  yy     1");
}

#[test]
fn an_image_is_one_line() {
    let mut value = Value::of(Normative::nd_array().build());
    assert_eq!(shown(&value, Form::Nt), "no image, id 0");
    value.set("value", vec![0u8; 12]).unwrap();
    let Some(Type::StructureArray(of)) = value.plan().field(value.plan().number("dimension").unwrap()) else {
        panic!()
    };
    let dimension = |size: i32| {
        let mut dimension = Value::of(Type::Structure(of.clone()));
        dimension.set("size", size).unwrap();
        Some(dimension)
    };
    let dimensions = Datum::Elements(vec![dimension(4), dimension(3)]);
    value.set("dimension", dimensions).unwrap();
    value.set("uniqueId", 7).unwrap();
    assert_eq!(shown(&value, Form::Nt), "ubyte[4 x 3] 12 bytes, from 0 to 0, mean 0, id 7");
    value.set("value", vec![10u8; 12]).unwrap();
    assert_eq!(shown(&value, Form::Nt), "ubyte[4 x 3] 12 bytes, from 10 to 10, mean 10, id 7");
    value.set("codec.name", "lz4").unwrap();
    let text = shown(&value, Form::Nt);
    assert!(text.starts_with("unknown[4 x 3] 0 bytes, codec lz4 (12 bytes), codec.parameters names no type"), "{text}");
}

#[test]
fn what_is_no_normative_type_is_shown_field_by_field() {
    let inner = Members::new("point", [("x", Type::from(Scalar::I32))]);
    let fields = [
        ("p", Type::Structure(inner.clone())),
        ("u", Type::Union(inner.clone())),
        ("s", Type::StructureArray(inner.clone())),
    ];
    let mut value = Value::of(Type::structure("", fields));
    let mut point = Value::of(Type::Structure(inner));
    point.set("x", 3).unwrap();
    value.set("u", Datum::Member("x".into(), Box::new(4.into()))).unwrap();
    value.set("s", Datum::Elements(vec![Some(point), None])).unwrap();
    let raw = "structure\n    point p\n        int x 0\n    point u\n        int x 4\n    point[] s\n        point\n            int x 3\n        null";
    assert_eq!(shown(&value, Form::Nt), raw);
    let tree = "struct {\n    struct \"point\" {\n        int32_t x = 0\n    } p\n    union \"point\" u.x int32_t = 4\n    struct[] s = {2}[\n        struct \"point\" {\n            int32_t x = 3\n        }\n        null\n    ]\n}";
    assert_eq!(shown(&value, Form::Tree), tree);
    let changed = Show { form: Form::Delta, only_changed: true, ..Show::default() };
    assert_eq!(
        changed.text(&value),
        "u union \"point\"\nu->x int32_t = 4\ns struct[]\ns[0] struct \"point\"\ns[0].x int32_t = 3\ns[1] null"
    );
    let changed = Show { form: Form::Raw, only_changed: true, ..Show::default() };
    assert!(!changed.text(&value).contains(" p\n"));
}

#[test]
fn a_type_is_one_line_a_field() {
    let text = type_text(&Normative::scalar(Scalar::F64).alarm().field("more", Type::array(Scalar::U8)).build());
    let lines = "epics:nt/NTScalar:1.0\n    double value\n    alarm_t alarm\n        int severity\n        int status\n        string message\n    ubyte[] more";
    assert_eq!(text, lines);
}
