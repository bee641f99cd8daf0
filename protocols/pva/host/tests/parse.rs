//! Values from text, and as JSON.

use crate::any;

use hodo_pva_host::machines::data::{Datum, Members, SetError};
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::{Array, Item, Scalar, Type, Value};
use hodo_pva_host::parse::{self, Mistake};
use hodo_pva_host::show::json;

fn scalar(of: Scalar) -> Value {
    Value::of(Normative::scalar(of).alarm().build())
}

/// Returns what words make of a value: its changed fields, or why they do not.
fn made(mut value: Value, words: &[&str]) -> String {
    match parse::words(&mut value, words) {
        Ok(()) => json(&value, true),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_word_alone_is_the_value() {
    assert_eq!(made(scalar(Scalar::F64), &["1.5"]), r#"{"value":1.5}"#);
    assert_eq!(made(scalar(Scalar::F64), &["1e3"]), r#"{"value":1000.0}"#);
    assert_eq!(made(scalar(Scalar::F64), &["nan"]), r#"{"value":NaN}"#);
    assert_eq!(made(scalar(Scalar::F32), &["0.1"]), r#"{"value":0.1}"#);
    assert_eq!(made(scalar(Scalar::I32), &["-0x1F"]), r#"{"value":-31}"#);
    assert_eq!(made(scalar(Scalar::U64), &["18446744073709551615"]), r#"{"value":18446744073709551615}"#);
    assert_eq!(made(scalar(Scalar::I64), &["-9223372036854775808"]), r#"{"value":-9223372036854775808}"#);
    assert_eq!(made(scalar(Scalar::Bool), &["true"]), r#"{"value":true}"#);
    assert_eq!(made(scalar(Scalar::Text), &["a=b c"]), r#"{"value":"a=b c"}"#);
    assert_eq!(made(scalar(Scalar::Text), &[r#""quoted\n""#]), r#"{"value":"quoted\n"}"#);
    assert_eq!(made(Value::of(Scalar::I8.into()), &["5"]), "5");
}

#[test]
fn a_number_beyond_the_type_is_a_mistake_and_not_infinity() {
    let too_large = "the number does not fit into the field";
    for (of, word) in [(Scalar::F64, "1e400"), (Scalar::F64, "-1e309"), (Scalar::F32, "1e39")] {
        assert!(made(scalar(of), &[word]).contains(too_large), "{word}");
        let array = Value::of(Normative::scalar_array(of).build());
        assert!(made(array, &["1", word]).contains(too_large), "{word}");
    }
    assert_eq!(made(scalar(Scalar::F64), &["-inf"]), r#"{"value":-Infinity}"#);
    assert_eq!(made(scalar(Scalar::F64), &["1e-400"]), r#"{"value":0.0}"#);
}

#[test]
fn fields_are_set_by_name_or_as_an_object() {
    assert_eq!(made(scalar(Scalar::F64), &["value=1", "alarm.severity=2"]), r#"{"value":1.0,"alarm":{"severity":2}}"#);
    let object = r#" { "value" : 1 , "alarm" : { "severity" : 2, "message" : "h\u00e9\n" } } "#;
    assert_eq!(made(scalar(Scalar::F64), &[object]), r#"{"value":1.0,"alarm":{"severity":2,"message":"hé\n"}}"#);
    assert_eq!(made(scalar(Scalar::F64), &["alarm={\"severity\":1}"]), r#"{"alarm":{"severity":1}}"#);
}

#[test]
fn arrays_are_words_or_json() {
    let array = |of| Value::of(Normative::scalar_array(of).build());
    for words in [&["1", "2", "3"][..], &["[1, 2,3]"], &["value=[1,2,3]"], &[r#"{"value":[1,"2",3]}"#]] {
        assert_eq!(made(array(Scalar::I16), words), r#"{"value":[1,2,3]}"#);
    }
    assert_eq!(made(array(Scalar::Text), &["a", "b c"]), r#"{"value":["a","b c"]}"#);
    assert_eq!(made(array(Scalar::F64), &["[NaN, -Infinity, 1]"]), r#"{"value":[NaN,-Infinity,1.0]}"#);
    assert_eq!(made(array(Scalar::Bool), &["[]"]), r#"{"value":[]}"#);
    assert_eq!(made(array(Scalar::U8), &["1", "256"]), "value: the number does not fit into the field");
}

#[test]
fn a_choice_is_set_by_its_text_or_its_number() {
    let mut choice = Value::of(Normative::enumeration().build());
    choice.set("value.choices", Array::texts(["Off", "On", "2"])).unwrap();
    choice.unmark();
    let on = r#"{"value":{"index":1}}"#;
    for words in
        [&["On"][..], &["1"], &["value=On"], &["value.index=1"], &[r#"{"value":"On"}"#], &[r#"{"value":1}"#], &[on]]
    {
        assert_eq!(made(choice.clone(), words), on, "{words:?}");
    }
    assert_eq!(made(choice.clone(), &["2"]), r#"{"value":{"index":2}}"#, "a text comes before a number");
    assert_eq!(made(choice, &["Of"]), "value: \"Of\" is none of the choices Off, On, 2");
}

#[test]
fn unions_and_any_take_what_fits() {
    let fields = [
        ("value", Type::union("", [("n", Type::from(Scalar::I32)), ("t", Type::from(Scalar::Text))])),
        ("any", Type::Any),
    ];
    let value = || Value::of(Type::structure("", fields.clone()));
    for (text, shown) in [
        (r#"{"value":{"t":"x"}}"#, r#"{"value":{"t":"x"}}"#),
        (r#"{"value":5}"#, r#"{"value":{"n":5}}"#),
        (r#"{"value":"x"}"#, r#"{"value":{"t":"x"}}"#),
        (r#"{"value":null}"#, r#"{"value":null}"#),
        (
            r#"{"any":{"a":[1,2],"b":[1,2.5],"c":[1,"x",null],"d":true}}"#,
            r#"{"any":{"a":[1,2],"b":[1.0,2.5],"c":[1,"x",null],"d":true}}"#,
        ),
        (r#"{"any":18446744073709551615}"#, r#"{"any":18446744073709551615}"#),
    ] {
        assert_eq!(made(value(), &[text]), shown);
    }
}

#[test]
fn a_mistake_names_the_field_and_the_remedy() {
    for (words, why) in [
        (&["x"][..], "value: \"x\" is no int"),
        (&["1.5"], "value: \"1.5\" is no int"),
        (&["99999999999"], "value: the number does not fit into the field"),
        (&["nothing=1"], "nothing: there is no such field"),
        (&[r#"{"alarm":{"severity":"x"}}"#], "alarm.severity: \"x\" is no int"),
        (&[r#"{"value":1"#], "JSON: a comma or } expected at character 11"),
        (&[r#"{"value":1} x"#], "JSON: the end expected at character 13"),
        (&["{1}"], "JSON: a text in double quotes expected at character 2"),
        (
            &["1", "2"],
            "value: one value is needed, and 2 are there; the elements of an array may be several, or [1,2,3]",
        ),
    ] {
        assert_eq!(made(scalar(Scalar::I32), words), why);
    }
    let mut any = Value::of(Type::Any);
    let deep = "[".repeat(100_000);
    assert!(matches!(parse::json(&mut any, "", &deep).unwrap_err().why, Mistake::TooDeep { .. }));
    let mut bounded = Value::of(Type::BoundedText(2));
    assert_eq!(parse::json(&mut bounded, "", "\"abc\"").unwrap_err().why, Mistake::Field(SetError::TooLong { max: 2 }));
}

#[test]
fn arguments_of_a_call_are_guessed() {
    let arguments =
        [("n", "5"), ("x", "1.0"), ("t", "text"), ("q", "\"5\""), ("b", "true"), ("l", "[1,2]"), ("minus", "-")];
    let value = parse::uri("sum", arguments).unwrap();
    let query = r#""query":{"n":5,"x":1.0,"t":"text","q":"5","b":true,"l":[1,2],"minus":"-"}"#;
    assert!(json(&value, false).ends_with(&format!(r#""path":"sum",{query}}}"#)), "{}", json(&value, false));
    assert_eq!(value.plan().of().id(), "epics:nt/NTURI:1.0");
    assert!(parse::uri("sum", [("l", "[1")]).unwrap_err().to_string().starts_with("l: JSON"));
}

#[test]
fn a_text_that_is_not_utf_8_is_latin_1_in_json() {
    let mut value = Value::of(Scalar::Text.into());
    value.set_at(0, Datum::Text(b"20\xB0C\x00"[..].into())).unwrap();
    assert_eq!(json(&value, false), "\"20°C\\u0000\"");
}

/// Tells whether a value has a part whose type only the value itself knows.
fn has_any(of: &Type) -> bool {
    matches!(of, Type::Any | Type::AnyArray)
        || of
            .members()
            .is_some_and(|members: &std::sync::Arc<Members>| members.fields().iter().any(|field| has_any(&field.of)))
}

#[test]
fn any_value_of_any_type_survives_json() {
    let mut exact = 0;
    for seed in 0..3000 {
        let value = any::of_seed(seed);
        let text = json(&value, false);
        let read = |text: &str| {
            let mut read = Value::new(value.plan());
            parse::json(&mut read, "", text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            json(&read, false)
        };
        let again = read(&text);
        if !has_any(value.plan().of()) {
            assert_eq!(again, text, "seed {seed}");
            exact += 1;
        }
        assert_eq!(read(&again), again, "seed {seed}");
    }
    assert!(exact > 300, "{exact}");
}

#[test]
fn any_text_is_a_value_or_a_mistake() {
    let mut random = hodo_machine::Random::new(5);
    let parts =
        ["{", "}", "[", "]", ",", ":", "\"", "\\", "value", "1", "-", "e", "null", "é", " ", "\\u12", "0x", "."];
    for _ in 0..20_000 {
        let text: String = (0..random.below(12)).map(|_| parts[random.below(parts.len() as u64) as usize]).collect();
        let mut value = any::of_seed(random.below(30));
        let _ = parse::words(&mut value, &[&text]);
        let mut value = Value::of(Type::structure("", [("value", Type::Any)]));
        let _ = parse::words(&mut value, &[&text]);
        assert!(matches!(value.get("value"), Some(Item::Any(_))));
    }
}
