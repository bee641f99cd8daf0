//! The words of pvput, pvxput, pvcall and pvxcall, which mean here what they mean there.

use super::call::{held, type_of};
use super::scalar::{Elements, datum};
use super::{Mistake, ParseError, json};
use crate::show::is_choice;
use hodo_pva::data::SetError;
use hodo_pva::normative::Normative;
use hodo_pva::{Array, Datum, Item, Scalar, Type, Value};

/// Sets fields as pvput does, and marks them as changed. Returns its warnings.
///
/// The first of several bare words for an array is a count, which is ignored. Words are bare unless they name a field and a value.
///
/// # Errors
/// A [`ParseError`] with what pvput refuses as well.
pub fn pvput<W: AsRef<str>>(value: &mut Value, words: &[W]) -> Result<Vec<String>, ParseError> {
    let (mut bare, mut pairs, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for word in words.iter().map(AsRef::as_ref) {
        match word.split_once('=') {
            Some((field, text)) if !field.is_empty() && value.plan().number(field).is_some() => {
                pairs.push((field, text));
            }
            Some(_) if value.get("value").is_none() => {
                return Err(Mistake::Words("there is no such field, and no field value").into());
            }
            Some((field, _)) if !matches!(value.get("value"), Some(Item::Text(_))) => {
                warnings.push(format!("{field} : Warning: no such field. Ignoring it."));
            }
            _ => bare.push(word),
        }
    }
    match (&bare[..], &pairs[..]) {
        ([], []) => Err(Mistake::Words("No valid value(s) specified").into()),
        ([], _) => {
            pairs.iter().try_for_each(|(field, text)| assign(value, field, text).map_err(|why| why.within(field)))
        }
        (_, [_, ..]) => Err(Mistake::Words("Can't mix bare values and field=value pairs").into()),
        ([word], _) if word.starts_with('{') => json::fill_strictly(value, 0, word),
        ([word], _) if word.starts_with('[') => assign(value, "value", word).map_err(|why| why.within("value")),
        (words, _) => plain(value, words).map_err(|why| why.within("value")),
    }?;
    Ok(warnings)
}

/// Sets one field of pvput's `field=text`.
fn assign(value: &mut Value, field: &str, text: &str) -> Result<(), ParseError> {
    let number = value.plan().number(field).ok_or(SetError::NoField)?;
    match (value.plan().field(number).cloned(), text) {
        (Some(Type::Array(scalar, _)), text) if text.starts_with('[') => {
            let texts = elements(text)?;
            Ok(value.set_at(number, array(scalar, texts.iter().map(String::as_str))?)?)
        }
        (_, text) if text.starts_with('[') => Err(Mistake::Words("Not a scalar array field").into()),
        (_, text) if text.starts_with('{') => json::fill_strictly(value, number, text),
        (Some(of), text) => match scalar_of(&of) {
            Some(scalar) => Ok(value.set_at(number, scalar_datum(scalar, text)?)?),
            None => Err(Mistake::Words("need a scalar field").into()),
        },
        (None, _) => Err(SetError::NoField.into()),
    }
}

/// Sets the field `value` from pvput's bare words.
fn plain(value: &mut Value, words: &[&str]) -> Result<(), ParseError> {
    let plan = value.plan().clone();
    let number = plan.child(0, "value").ok_or(Mistake::Words("Structure has no .value"))?;
    match (plan.field(number), words) {
        // The first is the count.
        (Some(Type::Array(scalar, _)), [_, words @ ..]) => {
            Ok(value.set_at(number, array(*scalar, words.iter().copied())?)?)
        }
        (Some(of), [word]) if is_choice(of) => choose(value, number, word),
        (Some(of), [word]) if scalar_of(of).is_some() => {
            let scalar = scalar_of(of).unwrap_or(Scalar::Text);
            Ok(value.set_at(number, scalar_datum(scalar, word)?)?)
        }
        (Some(of), _) if is_choice(of) => Err(Mistake::Words("Can't assign multiple values to enum").into()),
        (Some(of), _) if scalar_of(of).is_some() => {
            Err(Mistake::Words("Can't assign multiple values to scalar").into())
        }
        _ => Err(Mistake::Words("Don't know how to set field .value").into()),
    }
}

/// Sets a choice by its text, or else by a number, of which there need be no choice.
fn choose(value: &mut Value, number: usize, word: &str) -> Result<(), ParseError> {
    let plan = value.plan().clone();
    let choices = plan.child(number, "choices").and_then(|child| value.at(child)).and_then(Item::as_array);
    let found = choices.and_then(Array::iter_texts).into_iter().flatten().position(|choice| choice == word.as_bytes());
    let index = match found.and_then(|at| i64::try_from(at).ok()) {
        Some(at) => at.into(),
        None => scalar_datum(Scalar::I32, word)?,
    };
    let child = plan.child(number, "index").ok_or(SetError::NoField)?;
    Ok(value.set_at(child, index)?)
}

/// Sets a field as pvxput does: the whole value without a field. JSON begins with a brace, a bracket or a quote.
///
/// # Errors
/// A [`ParseError`] that names the field.
pub fn pvxput(value: &mut Value, field: &str, text: &str) -> Result<(), ParseError> {
    if text.starts_with(['{', '[', '"']) {
        return super::json(value, field, text);
    }
    let set = |value: &mut Value| -> Result<(), ParseError> {
        let number = value.plan().number(field).ok_or(SetError::NoField)?;
        let of = value.plan().field(number).cloned().ok_or(SetError::NoField)?;
        match (scalar_of(&of), is_choice(&of), &of) {
            (Some(scalar), ..) => Ok(value.set_at(number, scalar_datum(scalar, text)?)?),
            (_, true, _) => choose(value, number, text),
            (.., Type::Any) => Ok(value.set_at(number, held(text.into()))?),
            (.., Type::Union(_)) => Ok(value.set_at(number, text)?),
            _ => Err(Mistake::NotA { text: text.into(), of: crate::show::type_name(&of) }.into()),
        }
    };
    set(value).map_err(|why| why.within(field))
}

/// Returns the NTURI of pvcall, or of pvxcall without `is_typed`: every argument is a text, except that pvcall takes `[…]` for an array of texts
/// and `{…}` for JSON.
///
/// # Errors
/// A [`ParseError`] for an argument that is no such, or is named twice.
pub fn call_of_texts(
    scheme: &str,
    path: &str,
    arguments: &[(String, String)],
    is_typed: bool,
) -> Result<Value, ParseError> {
    let mut fields: Vec<(&str, Datum)> = Vec::with_capacity(arguments.len());
    for (name, text) in arguments {
        let within = |why: ParseError| why.within(name);
        let is_between = |first, last| is_typed && text.len() > 1 && text.starts_with(first) && text.ends_with(last);
        if fields.iter().any(|(known, _)| known == name) {
            return Err(within(Mistake::Words("the argument is there twice").into()));
        }
        let datum = if is_between('[', ']') {
            Array::texts(elements(text).map_err(|why| within(why.into()))?).into()
        } else if is_between('{', '}') {
            json::infer(text).map_err(within)?
        } else {
            text.as_str().into()
        };
        fields.push((name, datum));
    }
    let mut value = Value::of(Normative::uri(fields.iter().map(|(name, datum)| (*name, type_of(datum)))).build());
    value.set("scheme", scheme)?;
    value.set("path", path)?;
    for (name, datum) in fields {
        value.set(&format!("query.{name}"), datum).map_err(|why| ParseError::from(why).within(name))?;
    }
    value.mark_all();
    Ok(value)
}

/// Returns the elements of a list in brackets, of which texts may be in quotes.
fn elements(text: &str) -> Result<Vec<String>, Mistake> {
    let list = text.strip_prefix('[').unwrap_or(text);
    let place = |rest: &str| text.chars().count() - rest.chars().count() + 1;
    let (mut rest, mut texts) = (list.trim_start_matches(' '), Vec::new());
    loop {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-');
        if let Some(quoted) = rest.strip_prefix('"') {
            let (element, behind) =
                quoted.split_once('"').ok_or(Mistake::Json { expected: "a quote", at: place("") })?;
            texts.push(element.to_owned());
            rest = behind;
        } else if rest.starts_with(|c: char| is_part(c) && c != '.') {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            texts.push(rest[..end].to_owned());
            rest = &rest[end..];
        } else if !rest.starts_with(']') {
            return Err(Mistake::Json { expected: "a number, a text in quotes or ]", at: place(rest) });
        }
        rest = rest.trim_start_matches(' ');
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind.trim_start_matches(' '),
            None if rest.starts_with(']') => return Ok(texts),
            None => return Err(Mistake::Json { expected: ", or ]", at: place(rest) }),
        }
    }
}

const fn scalar_of(of: &Type) -> Option<Scalar> {
    match of {
        Type::Scalar(scalar) => Some(*scalar),
        Type::BoundedText(_) => Some(Scalar::Text),
        _ => None,
    }
}

/// Reads a scalar as C does: `0x` is hexadecimal, a leading 0 octal; a bool is `true` or `false`.
fn scalar_datum(scalar: Scalar, text: &str) -> Result<Datum, Mistake> {
    let not_a = || Mistake::NotA { text: text.into(), of: scalar.name().into() };
    match scalar {
        Scalar::Text | Scalar::F32 | Scalar::F64 => datum(scalar, text),
        Scalar::Bool if text.eq_ignore_ascii_case("true") => Ok(true.into()),
        Scalar::Bool if text.eq_ignore_ascii_case("false") => Ok(false.into()),
        Scalar::Bool => Err(not_a()),
        _ => {
            let whole = whole(text.trim()).ok_or_else(not_a)?;
            match (i64::try_from(whole), u64::try_from(whole)) {
                (Ok(signed), _) => Ok(signed.into()),
                (_, Ok(unsigned)) => Ok(unsigned.into()),
                _ => Err(SetError::OutOfRange.into()),
            }
        }
    }
}

fn whole(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (radix, digits) = match hexadecimal {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    // A second sign is none.
    let is_unsigned = !digits.starts_with(['-', '+']);
    u64::from_str_radix(digits, radix).ok().filter(|_| is_unsigned).map(|whole| sign * i128::from(whole))
}

/// Reads the elements of an array, each as a scalar.
fn array<'a>(scalar: Scalar, texts: impl Iterator<Item = &'a str>) -> Result<Array, Mistake> {
    let mut elements = Elements::new(scalar);
    for text in texts {
        match scalar_datum(scalar, text)? {
            Datum::Int(whole) => elements.push(&whole.to_string())?,
            Datum::Uint(whole) => elements.push(&whole.to_string())?,
            Datum::Bool(is) => elements.push(if is { "true" } else { "false" })?,
            _ => elements.push(text)?,
        }
    }
    Ok(elements.into_array())
}
