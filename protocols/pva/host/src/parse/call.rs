//! The arguments of a call, and values whose types nobody states.

use super::scalar::{boolean, float, whole};
use super::{ParseError, json};
use hodo_pva::normative::Normative;
use hodo_pva::{Datum, Scalar, Type, Value};

/// Returns the NTURI of a call: the path, and arguments whose types are guessed from their texts.
///
/// A whole number is a long, another number a double, `true` and `false` a bool, `[…]` and `{…}` are JSON, and anything else is a text. A text in double
/// quotes is one, whatever it looks like.
///
/// # Errors
/// A [`ParseError`] for JSON that is none.
pub fn uri<'a>(path: &str, arguments: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Value, ParseError> {
    let mut guesses = Vec::new();
    for (name, text) in arguments {
        let guess = if text.starts_with(['[', '{', '"']) { json::infer(text) } else { Ok(guess(text)) };
        guesses.push((name, guess.map_err(|error| error.within(name))?));
    }
    let types = guesses.iter().map(|(name, datum)| (*name, type_of(datum)));
    let mut value = Value::of(Normative::uri(types).build());
    value.set("scheme", "pva")?;
    value.set("path", path)?;
    for (name, datum) in guesses {
        value.set(&format!("query.{name}"), datum).map_err(|error| ParseError::from(error).within(name))?;
    }
    value.mark_all();
    Ok(value)
}

/// Returns the scalar that a text looks like.
pub(super) fn guess(text: &str) -> Datum {
    match text {
        "true" | "false" => return boolean(text).unwrap_or_default().into(),
        "null" => return Datum::Nothing,
        _ => {}
    }
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    if let Some(whole) = whole(text).filter(|_| is_number && !text.contains(['.', 'e', 'E']) || text.starts_with("0x"))
    {
        if let Ok(signed) = i64::try_from(whole) {
            return signed.into();
        }
        if let Ok(unsigned) = u64::try_from(whole) {
            return unsigned.into();
        }
    }
    match float(text) {
        Some(float) if is_number || matches!(text, "NaN" | "Infinity") => float.into(),
        _ => text.into(),
    }
}

/// Returns the value that an any-field is to hold.
pub(super) fn guessed(text: &str) -> Datum {
    held(guess(text))
}

/// Returns content as a value with its own type.
pub(super) fn held(datum: Datum) -> Datum {
    match datum {
        Datum::Nothing | Datum::Value(_) => datum,
        datum => {
            let mut value = Value::of(type_of(&datum));
            value.set_at(0, datum).expect("the type is that of the content");
            value.into()
        }
    }
}

/// Returns the type of content.
pub(super) fn type_of(datum: &Datum) -> Type {
    match datum {
        Datum::Bool(_) => Scalar::Bool.into(),
        Datum::Int(_) => Scalar::I64.into(),
        Datum::Uint(_) => Scalar::U64.into(),
        Datum::Float(_) => Scalar::F64.into(),
        Datum::Text(_) => Scalar::Text.into(),
        Datum::Array(array) => Type::array(array.scalar()),
        Datum::Value(value) => value.plan().of().clone(),
        Datum::Elements(_) => Type::AnyArray,
        _ => Type::Any,
    }
}
