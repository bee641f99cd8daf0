//! Contents are put into fields and read from them by path; what does not fit changes nothing.

use hodo_pva::data::{Datum, Item, Length, Members, SetError};
use hodo_pva::normative::{Alarm, Normative, TimeStamp};
use hodo_pva::{Array, BitSet, Scalar, Type, Value};

fn numbers() -> Value {
    Value::of(Type::structure("", Scalar::ALL.map(|kind| (kind.name(), kind.into()))))
}

#[test]
fn numbers_fit_or_are_refused() {
    let mut value = numbers();
    for (path, datum, found) in [
        ("byte", Datum::from(-128), Ok(())),
        ("byte", Datum::from(128), Err(SetError::OutOfRange)),
        ("ubyte", Datum::from(-1), Err(SetError::OutOfRange)),
        ("ulong", Datum::from(u64::MAX), Ok(())),
        ("long", Datum::from(u64::MAX), Err(SetError::OutOfRange)),
        ("boolean", Datum::from(true), Ok(())),
        ("boolean", Datum::from(2), Err(SetError::OutOfRange)),
        ("double", Datum::from(7), Ok(())),
        ("int", Datum::from(1.5), Err(SetError::WrongType)),
        ("string", Datum::from(1), Err(SetError::WrongType)),
        ("int", Datum::from("1"), Err(SetError::WrongType)),
        ("absent", Datum::from(1), Err(SetError::NoField)),
    ] {
        assert_eq!(value.set(path, datum), found, "{path}");
    }
    let read = ["byte", "ulong", "boolean", "double", "int"].map(|path| value.get(path).and_then(Item::as_f64));
    assert_eq!(read, [Some(-128.0), Some(u64::MAX as f64), Some(1.0), Some(7.0), Some(0.0)]);
    assert_eq!(value.get("ulong").and_then(Item::as_i64), None, "it does not fit");
    let changed: Vec<&str> = value.changed().iter().map(|number| value.plan().name(number)).collect();
    assert_eq!(changed, ["boolean", "byte", "ulong", "double"]);
}

#[test]
fn a_value_is_shown_by_its_paths_with_marks_at_what_has_changed() {
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().build());
    value.set("alarm.message", "high").expect("it fits");
    let shown = format!("{value:?}");
    let expected = "epics:nt/NTScalar:1.0{value: Float(0.0), alarm.severity: Int(0), alarm.status: Int(0), \
                    alarm.message*: Text(\"high\")}";
    assert_eq!(shown, expected);
}

#[test]
fn bounds_of_arrays_and_texts_are_kept() {
    let mut value = Value::of(Type::structure(
        "",
        [
            ("text", Type::BoundedText(3)),
            ("most", Type::Array(Scalar::I32, Length::Bounded(2))),
            ("any", Type::array(Scalar::I32)),
        ],
    ));
    assert_eq!(value.set("text", "long"), Err(SetError::TooLong { max: 3 }));
    assert_eq!(value.set("most", vec![1, 2, 3]), Err(SetError::TooLong { max: 2 }));
    assert_eq!(value.set("any", vec![1u8]), Err(SetError::WrongType));
    assert_eq!(value.set("most", vec![1, 2]), Ok(()));
    assert!(value.get("most").and_then(Item::as_array).is_some_and(|array| *array == Array::from(vec![1, 2])));
}

#[test]
fn unions_take_a_member_by_name_or_by_type() {
    let inner = Type::structure("", [("x", Scalar::I32.into())]);
    let union =
        Type::union("", [("number", Scalar::F64.into()), ("words", Type::array(Scalar::Text)), ("in", inner.clone())]);
    let mut value = Value::of(Type::structure("", [("u", union), ("any", Type::Any)]));
    assert_eq!(value.set("u", Array::texts(["a"])), Ok(()));
    assert!(matches!(value.get("u"), Some(Item::Union(Some(("words", _))))));
    assert_eq!(value.set("u", vec![1u8]), Err(SetError::NoMember));
    assert_eq!(value.set("u", Datum::Member("none".into(), Box::new(1.into()))), Err(SetError::NoMember));
    let mut chosen = Value::of(inner);
    chosen.set("x", 5).expect("it fits");
    assert_eq!(value.set("u", chosen.clone()), Ok(()));
    assert_eq!(value.set("any", chosen), Ok(()));
    let paths = ["u.x", "u.in.x", "any.x", "u.number", "any.y", "u.x.z"];
    let found = paths.map(|path| value.get(path).and_then(Item::as_i64));
    assert_eq!(found, [Some(5), Some(5), Some(5), None, None, None]);
    assert_eq!(value.set("u", Datum::Nothing), Ok(()));
    assert_eq!(value.get("u"), Some(Item::Union(None)));
}

#[test]
fn structures_and_elements_are_put_whole() {
    let row = Members::new("row", [("n", Scalar::I64.into())]);
    let top = [("row", Type::Structure(row.clone())), ("rows", Type::StructureArray(row.clone()))];
    let mut value = Value::of(Type::structure("", top));
    let mut one = Value::of(Type::Structure(row));
    one.set("n", 3).expect("it fits");
    assert_eq!(value.set("row", one.clone()), Ok(()));
    assert_eq!(value.get("row.n").and_then(Item::as_i64), Some(3));
    assert_eq!(value.set("rows", Datum::Elements(vec![Some(one.clone()), None])), Ok(()));
    assert_eq!(value.set("rows", Datum::Elements(vec![Some(numbers())])), Err(SetError::WrongType));
    assert_eq!(value.set("row", numbers()), Err(SetError::WrongType));
    let Some(Item::Elements(rows)) = value.get("rows") else { panic!("{value:?}") };
    assert!(rows.len() == 2 && rows[1].is_none() && rows[0].as_deref().is_some_and(|row| *row == one));
}

#[test]
fn alarm_and_time_stamp_are_read_as_they_were_set() {
    let mut value = Value::of(Normative::scalar(Scalar::I16).alarm().time_stamp().build());
    let alarm = Alarm { severity: 2, status: 3, message: "high".into() };
    let at = TimeStamp { seconds: 1_700_000_000, nanoseconds: 5, user_tag: -1 };
    assert_eq!((value.set_alarm(&alarm), value.set_time_stamp(at)), (Ok(()), Ok(())));
    assert_eq!((value.alarm(), value.time_stamp()), (Some(alarm.clone()), Some(at)));
    let mut bare = Value::of(Normative::scalar(Scalar::I16).build());
    assert_eq!((bare.set_alarm(&alarm), bare.alarm(), bare.time_stamp()), (Err(SetError::NoField), None, None));
}

#[test]
fn a_change_is_seen_in_the_field_in_what_contains_it_and_in_what_it_contains() {
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().time_stamp().build());
    let number = |value: &Value, path: &str| value.plan().number(path).expect("it is there");
    let changed = |value: &Value, paths: [&'static str; 4]| paths.map(|path| value.has_changed(number(value, path)));
    let paths = ["", "alarm", "alarm.status", "timeStamp"];
    assert_eq!(changed(&value, paths), [false; 4]);
    value.set("alarm.severity", 1).expect("it fits");
    assert_eq!(changed(&value, paths), [true, true, false, false]);
    value.mark(number(&value, "alarm"));
    assert_eq!(changed(&value, paths), [true, true, true, false]);
    value.mark_all();
    assert_eq!(changed(&value, paths), [true; 4]);
    value.mark(999);
    assert_eq!(value.changed(), &BitSet::from_iter([0]), "there is no such field");
}
