//! Printed forms and words of the programs of pvAccessCPP and pvxs. The texts are those of pvget 7.1.8 and pvxget 1.5.3 for the same values.

use hodo_pva_host::machines::data::Length;
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::{Array, Datum, Scalar, Type, Value};
use hodo_pva_host::parse;
use hodo_pva_host::show::{Form, PvDataForm, Show, json, pvdata_text, pvdata_type, pvxs_type};

const TEXT: Type = Type::Scalar(Scalar::Text);
const INT: Type = Type::Scalar(Scalar::I32);

fn structure() -> Value {
    let inner = Type::structure("my", [("z", Type::Array(Scalar::F64, Length::Variable)), ("note", TEXT)]);
    let element = Type::structure("", [("q", INT)]);
    let of = Type::structure(
        "",
        [
            ("x", INT),
            ("y", inner),
            ("u", Type::union("", [("a", INT), ("b", TEXT)])),
            ("v", Type::Any),
            ("sa", element.clone().into_array().unwrap()),
            ("av", Type::AnyArray),
            ("nothing", Type::Any),
        ],
    );
    let mut value = Value::of(of);
    value.set("x", 1).unwrap();
    value.set("y.z", vec![1.0, 2.0]).unwrap();
    value.set("y.note", "hello you").unwrap();
    value.set("u", Datum::Member("b".into(), Box::new("x y".into()))).unwrap();
    let mut any = Value::of(Type::Scalar(Scalar::F64));
    any.set("", 5.25).unwrap();
    value.set("v", any).unwrap();
    let elements = [1, 2].map(|q| {
        let mut one = Value::of(element.clone());
        one.set("q", q).unwrap();
        Some(one)
    });
    value.set("sa", Datum::Elements(elements.into())).unwrap();
    value
}

fn all(value: &Value, form: PvDataForm) -> String {
    pvdata_text(value, form, None, None)
}

#[test]
fn structures_are_printed_as_by_pvget() {
    let raw = "structure \n    int x 1\n    my y\n        double[] z [1,2]\n        string note \"hello you\"\n    union u\n        \
               string  \"x y\"\n    any v\n        double  5.25\n    structure[] sa\n        structure \n            int q 1\n        \
               structure \n            int q 2\n    any[] av\n    any nothing\n        (none)\n";
    let value = structure();
    assert_eq!(all(&value, PvDataForm::Nt), raw);
    assert_eq!(all(&value, PvDataForm::Raw), raw);
    let json = "{x:1,y:{z:[1.0,2.0],note:\"hello you\"},u:\"x y\",v:5.25,sa:[{q:1},{q:2}],av:[],nothing:null}\n";
    assert_eq!(all(&value, PvDataForm::Json), json);
    let mut changed = structure();
    changed.unmark();
    changed.set("y.note", "n").unwrap();
    let shown = pvdata_text(&changed, PvDataForm::Raw, Some(changed.changed()), None);
    assert_eq!(shown, "structure \n    my y\n        string note n\n");
    changed.unmark();
    assert_eq!(pvdata_text(&changed, PvDataForm::Raw, Some(changed.changed()), None), "");
    let bold = Value::of(Type::structure("", [("x", INT)]));
    let marked = [1].into_iter().collect();
    assert_eq!(pvdata_text(&bold, PvDataForm::Raw, None, Some(&marked)), "structure \n\x1b[1m    int x 0\n\x1b[0m",);
}

#[test]
fn normative_types_are_printed_as_by_pvget() {
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().time_stamp().build());
    value.set("value", 5.5).unwrap();
    value.set("alarm.severity", 2).unwrap();
    value.set("alarm.status", 3).unwrap();
    value.set("alarm.message", "too hot").unwrap();
    assert_eq!(all(&value, PvDataForm::Nt), "<undefined>              5.5 MAJOR RECORD too hot \n");
    // The last millisecond is not rounded into the next second; the others are rounded.
    for (nanoseconds, printed) in [(600_099, ".001  "), (999_599_933, ".999  "), (499_999, ".000  ")] {
        value.set("timeStamp.secondsPastEpoch", 1_700_000_000_i64).unwrap();
        value.set("timeStamp.nanoseconds", nanoseconds).unwrap();
        assert_eq!(&all(&value, PvDataForm::Nt)[19..25], printed);
    }
    let mut value = Value::of(Normative::scalar_array(Scalar::Text).build());
    value.set("value", Array::texts(["a", "b c", ""])).unwrap();
    assert_eq!(all(&value, PvDataForm::Nt), "[a, \"b c\", ]\n");
    assert_eq!(all(&value, PvDataForm::Json), "{value:[\"a\",\"b c\",\"\"]}\n");
    let mut value = Value::of(Normative::enumeration().build());
    value.set("value.choices", Array::texts(["Off", "On it"])).unwrap();
    for (index, printed) in [(1, "(1) \"On it\"\n"), (0, "(0) Off\n"), (9, "(9) <undefined>\n")] {
        value.set("value.index", index).unwrap();
        assert_eq!(all(&value, PvDataForm::Nt), printed);
    }
    let mut value = Value::of(Normative::table([("name", Scalar::Text), ("position", Scalar::F64)]).build());
    value.set("labels", Array::texts(["name", "position"])).unwrap();
    value.set("value.name", Array::texts(["first one", "second"])).unwrap();
    value.set("value.position", vec![1.5, 10_000_000.5]).unwrap();
    assert_eq!(all(&value, PvDataForm::Nt), "\n       name position\n\"first one\"      1.5\n     second    1e+07\n");
}

#[test]
fn numbers_of_json_have_all_their_digits_and_a_fraction() {
    let mut value = Value::of(Normative::scalar_array(Scalar::F64).build());
    value.set("value", vec![f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0, 1e5, 0.00001, 123_456.5]).unwrap();
    let printed = "{value:[NaN,+Infinity,-Infinity,-0.0,100000.0,1.0000000000000001e-05,123456.5]}\n";
    assert_eq!(all(&value, PvDataForm::Json), printed);
}

#[test]
fn types_are_printed_as_by_pvinfo_and_pvxinfo() {
    let value = structure();
    let lines = "structure\n    int x\n    my y\n        double[] z\n        string note\n    union u\n        int a\n        string b\n    \
                 any v\n    structure[] sa\n        structure\n            int q\n    any[] av\n        any\n    any nothing\n";
    assert_eq!(pvdata_type(value.plan().of(), 0), lines);
    let lines = "struct {\n    int32_t x\n    struct \"my\" {\n        double[] z\n        string note\n    } y\n    union {\n        \
                 int32_t a\n        string b\n    } u\n    any v\n    struct[] {\n        int32_t q\n    } sa\n    any[] av\n    any nothing\n}\n";
    assert_eq!(pvxs_type(value.plan().of()), lines);
}

#[test]
fn trees_are_printed_as_by_pvxget() {
    let show = Show { form: Form::Tree, elements: 0, as_pvxget: true, ..Show::default() };
    let empty = Value::of(Type::structure("", [("query", Type::structure("", [] as [(&str, Type); 0]))]));
    assert_eq!(show.text(&empty), "struct {\n    struct {} query\n}");
    let text = show.text(&structure());
    assert!(text.contains("    any[] av = {0}[]\n"), "{text}");
    // An array that was not sent is none, and not an empty one.
    let mut value = Value::of(Normative::scalar_array(Scalar::Bool).build());
    let sent = Show { only_changed: true, ..show };
    assert!(sent.text(&value).contains("    bool[] value = {?}[]\n}"), "{}", sent.text(&value));
    value.mark_all();
    assert!(sent.text(&value).contains("    bool[] value = {0}[]\n}"), "{}", sent.text(&value));
    value.set("value", Array::bools([true, false])).unwrap();
    value.unmark();
    value.mark(1);
    let show = Show { form: Form::Delta, only_changed: true, ..show };
    assert_eq!(show.text(&value), "value bool[] = {2}[1, 0]");
    let mut value = Value::of(Normative::scalar(Scalar::F64).build());
    value.set("value", 1_234_567.891).unwrap();
    assert_eq!(show.text(&value), "value double = 1.23457e+06");
}

/// Returns what the words of pvput change, or why nothing.
fn put(mut value: Value, words: &[&str]) -> String {
    value.unmark();
    match parse::pvput(&mut value, words) {
        Ok(warnings) => warnings.concat() + &json(&value, true),
        Err(why) => format!("{why}"),
    }
}

#[test]
fn pvput_drops_the_count_of_an_array() {
    let array = || Value::of(Normative::scalar_array(Scalar::I32).build());
    assert_eq!(put(array(), &["3", "1", "2", "3"]), r#"{"value":[1,2,3]}"#);
    assert_eq!(put(array(), &["X", "010", "0x10"]), r#"{"value":[8,16]}"#);
    assert_eq!(put(array(), &["3"]), r#"{"value":[]}"#);
    assert_eq!(put(array(), &["[4, 5,]"]), r#"{"value":[4,5]}"#);
    assert_eq!(put(array(), &["value=[4]"]), r#"{"value":[4]}"#);
    assert!(put(array(), &["value=4"]).contains("need a scalar field"));
    let texts = || Value::of(Normative::scalar_array(Scalar::Text).build());
    assert_eq!(put(texts(), &["2", "a", "b c"]), r#"{"value":["a","b c"]}"#);
    assert_eq!(put(texts(), &[r#"["x", "y z"]"#]), r#"{"value":["x","y z"]}"#);
}

#[test]
fn pvput_takes_scalars_choices_fields_and_json() {
    let int = || Value::of(Normative::scalar(Scalar::I32).alarm().build());
    assert_eq!(put(int(), &["-5"]), r#"{"value":-5}"#);
    assert_eq!(put(int(), &["010"]), r#"{"value":8}"#);
    assert_eq!(put(int(), &["value=3", "alarm.severity=1"]), r#"{"value":3,"alarm":{"severity":1}}"#);
    assert_eq!(put(int(), &[r#"{"value":22}"#]), r#"{"value":22}"#);
    for (words, says) in [
        (&["1", "2"][..], "Can't assign multiple values to scalar"),
        (&["value=3", "4"], "Can't mix bare values"),
        (&["nosuch=4"], "No valid value(s) specified"),
        (&["abc"], "is no int"),
        (&["99999999999"], "does not fit"),
        (&["[1]"], "Not a scalar array field"),
        (&["value=[1"], "Not a scalar array field"),
    ] {
        assert!(put(int(), words).contains(says), "{words:?}: {}", put(int(), words));
    }
    assert_eq!(put(Value::of(Normative::scalar(Scalar::Text).build()), &["a=b"]), r#"{"value":"a=b"}"#);
    let bool = || Value::of(Normative::scalar(Scalar::Bool).build());
    assert_eq!(put(bool(), &["True"]), r#"{"value":true}"#);
    assert!(put(bool(), &["1"]).contains("is no boolean"));
    let mut choice = Value::of(Normative::enumeration().build());
    choice.set("value.choices", Array::texts(["Off", "On it"])).unwrap();
    assert_eq!(put(choice.clone(), &["On it"]), r#"{"value":{"index":1}}"#);
    assert_eq!(put(choice.clone(), &["9"]), r#"{"value":{"index":9}}"#);
    assert!(put(choice.clone(), &["Onn"]).contains("Onn"));
    // In JSON a choice is the structure that it is.
    assert_eq!(put(choice.clone(), &[r#"{"value":{"index":1}}"#]), r#"{"value":{"index":1}}"#);
    assert_eq!(put(choice.clone(), &[r#"value={"index":1}"#]), r#"{"value":{"index":1}}"#);
    for by_text in [r#"{"value":"On it"}"#, r#"{"value":1}"#] {
        assert_eq!(put(choice.clone(), &[by_text]), "value: Can't assign value");
    }
    assert_eq!(put(int(), &[r#"{"alarm":1}"#]), "alarm: Can't assign value");
}

#[test]
fn pvxput_takes_a_value_or_json_for_a_field() {
    let set = |mut value: Value, field: &str, text: &str| {
        value.unmark();
        parse::pvxput(&mut value, field, text).map_or_else(|why| why.to_string(), |()| json(&value, true))
    };
    let array = Value::of(Normative::scalar_array(Scalar::I32).build());
    assert_eq!(set(array.clone(), "value", "[1,2]"), r#"{"value":[1,2]}"#);
    assert!(set(array, "value", "1").contains("is no int[]"));
    let int = Value::of(Normative::scalar(Scalar::I32).build());
    assert_eq!(set(int.clone(), "value", "7"), r#"{"value":7}"#);
    assert_eq!(set(int, "", r#"{"value":8}"#), r#"{"value":8}"#);
    assert!(set(structure(), "v", "7").contains(r#""v":"7""#));
}

#[test]
fn calls_of_the_field_tools_have_texts() {
    let call = |typed: bool, arguments: &[(&str, &str)]| {
        let arguments: Vec<_> = arguments.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let value = parse::call_of_texts("pva", "S", &arguments, typed).map_err(|why| why.to_string())?;
        Ok::<_, String>(json(&value, false))
    };
    let arguments = [("a", "007"), ("b", "true"), ("c", "[1, \"b c\"]"), ("d", "{\"x\":1}")];
    let query = r#""query":{"a":"007","b":"true","c":["1","b c"],"d":{"x":1}}}"#;
    assert_eq!(call(true, &arguments).unwrap(), format!(r#"{{"scheme":"pva","authority":"","path":"S",{query}"#));
    let query = r#""query":{"c":"[1]"}}"#;
    assert_eq!(call(false, &[("c", "[1]")]).unwrap(), format!(r#"{{"scheme":"pva","authority":"","path":"S",{query}"#));
    assert!(call(true, &[("a", "1"), ("a", "2")]).unwrap_err().contains("twice"));
    assert!(call(true, &[("a", "[.]")]).unwrap_err().contains("JSON"));
}
