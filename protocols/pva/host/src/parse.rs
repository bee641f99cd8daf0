//! Values from text: JSON by type, and the words of a command line, as pvput and pvxput take them.
//!
//! | words | meaning |
//! |---|---|
//! | `1.5` | the field `value` |
//! | `Running` | the choice by that name, or by its number, if `value` is a choice |
//! | `1 2 3`, `[1,2,3]` | the elements, if `value` is an array |
//! | `value=1 alarm.severity=2` | these fields |
//! | `{"value":1,"alarm":{"severity":2}}` | these fields |

mod call;
mod json;
mod scalar;

use crate::show::is_choice;
use hodo_pva::data::SetError;
use hodo_pva::normative::Normative;
use hodo_pva::{Array, Datum, Item, Scalar, Type, Value};
use thiserror::Error;

pub use call::uri;
pub(crate) use scalar::datum;

/// An error in a text that is to become a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{why}", if field.is_empty() { String::new() } else { format!("{field}: ") })]
pub struct ParseError {
    /// Path of the field, or empty.
    pub field: String,
    /// The mistake.
    pub why: Mistake,
}

/// A mistake in a text that is to become a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Mistake {
    /// The field cannot hold that.
    #[error("{0}")]
    Field(#[from] SetError),
    /// The text is no value of the field's type.
    #[error("{text:?} is no {of}")]
    NotA {
        /// The text.
        text: String,
        /// The name of the type.
        of: String,
    },
    /// The text is none of the choices.
    #[error("{text:?} is none of the choices {choices}")]
    NoChoice {
        /// The text.
        text: String,
        /// The choices.
        choices: String,
    },
    /// There is something else where JSON has to be.
    #[error("JSON: {expected} expected at character {at}")]
    Json {
        /// The text that would have been right.
        expected: &'static str,
        /// Place in the text, counted from 1.
        at: usize,
    },
    /// Values within values, too deep.
    #[error("values are nested deeper than {max} levels")]
    TooDeep {
        /// The bound.
        max: usize,
    },
    /// No words, or several where one is needed.
    #[error("one value is needed, and {count} are there; the elements of an array may be several, or [1,2,3]")]
    Count {
        /// The number of words.
        count: usize,
    },
}

impl From<Mistake> for ParseError {
    fn from(why: Mistake) -> Self {
        ParseError { field: String::new(), why }
    }
}

impl From<SetError> for ParseError {
    fn from(why: SetError) -> Self {
        Mistake::from(why).into()
    }
}

impl ParseError {
    /// Returns the error with the name of a field before the path.
    fn within(mut self, name: &str) -> Self {
        self.field = match (name.is_empty(), self.field.is_empty()) {
            (true, _) => self.field,
            (_, true) => name.into(),
            _ => format!("{name}.{}", self.field),
        };
        self
    }
}

/// Sets a field from JSON, and marks it as changed: of a structure, the fields that are named.
///
/// A number or a text for a structure that has a field `value` is for that. A choice is set by its text or its number.
///
/// # Errors
/// A [`ParseError`] that names the field. Fields before it have been set then.
pub fn json(value: &mut Value, path: &str, text: &str) -> Result<(), ParseError> {
    let number =
        value.plan().number(path).ok_or(SetError::NoField).map_err(|error| ParseError::from(error).within(path))?;
    json::fill(value, number, text).map_err(|error| error.within(path))
}

/// Returns the value that a reply in JSON stands for, whose types nobody states: an object is a structure, a single number, bool or text
/// an NTScalar, and an array an NTScalarArray. `null` is nothing.
///
/// # Errors
/// A [`ParseError`] for JSON that is none.
pub fn reply(text: &str) -> Result<Option<Value>, ParseError> {
    let datum = json::infer(text)?;
    let of = match (&datum, call::type_of(&datum)) {
        (Datum::Nothing, _) => return Ok(None),
        (Datum::Value(_), _) => {
            let Datum::Value(value) = datum else { return Ok(None) };
            return Ok(Some(value));
        }
        (_, Type::Scalar(of)) => Normative::scalar(of).build(),
        (_, Type::Array(of, _)) => Normative::scalar_array(of).build(),
        (_, of) => Type::structure("", [("value", of)]),
    };
    let mut value = Value::of(of);
    value.set("value", datum)?;
    Ok(Some(value))
}

/// Sets fields from the words of a command line, and marks them as changed.
///
/// # Errors
/// A [`ParseError`] that names the field. Fields before it have been set then.
pub fn words<W: AsRef<str>>(value: &mut Value, words: &[W]) -> Result<(), ParseError> {
    let assigned: Option<Vec<_>> = words.iter().map(|word| assignment(value, word.as_ref())).collect();
    match assigned.filter(|assigned| !assigned.is_empty()) {
        Some(assigned) => assigned
            .into_iter()
            .try_for_each(|(path, text)| self::text(value, path, &[text]).map_err(|error| error.within(path))),
        None => {
            let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
            match words[..] {
                [word] if word.trim_start().starts_with('{') => json(value, "", word),
                _ => {
                    let path = if value.plan().child(0, "value").is_some() { "value" } else { "" };
                    text(value, path, &words).map_err(|error| error.within(path))
                }
            }
        }
    }
}

/// Splits `field=text` if there is such a field.
fn assignment<'a>(value: &Value, word: &'a str) -> Option<(&'a str, &'a str)> {
    let (path, text) = word.split_once('=')?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let could_be = !path.is_empty() && path.chars().all(is_name);
    // A text may contain the sign itself: then there is no such field.
    let is_text = matches!(value.get("value"), Some(Item::Text(_))) && value.plan().number(path).is_none();
    (could_be && !is_text).then_some((path, text))
}

/// Sets one field from words.
fn text(value: &mut Value, path: &str, words: &[&str]) -> Result<(), ParseError> {
    let number = value.plan().number(path).ok_or(SetError::NoField)?;
    let of = value.plan().field(number).ok_or(SetError::NoField)?.clone();
    match (&of, words) {
        (Type::Scalar(Scalar::Text) | Type::BoundedText(_), [word]) => {
            if word.starts_with('"') && word.len() > 1 && word.ends_with('"') {
                return json::fill(value, number, word);
            }
            Ok(value.set_at(number, *word)?)
        }
        (Type::Scalar(scalar), [word]) => Ok(value.set_at(number, datum(*scalar, word)?)?),
        (
            Type::Array(..)
            | Type::Any
            | Type::StructureArray(_)
            | Type::UnionArray(_)
            | Type::AnyArray
            | Type::Union(_),
            [word],
        ) if word.trim_start().starts_with(['[', '{', '"']) || *word == "null" => json::fill(value, number, word),
        (Type::Array(scalar, _), words) => Ok(value.set_at(number, scalar::array(*scalar, words)?)?),
        (Type::Structure(_), [word]) if word.trim_start().starts_with('{') => json::fill(value, number, word),
        (Type::Structure(_), [word]) if is_choice(&of) => choose(value, number, word),
        (Type::Any, [word]) => Ok(value.set_at(number, call::guessed(word))?),
        (Type::Union(_), [word]) => Ok(value.set_at(number, call::guess(word))?),
        (_, [word]) => Err(Mistake::NotA { text: (*word).into(), of: crate::show::type_name(&of) }.into()),
        _ => Err(Mistake::Count { count: words.len() }.into()),
    }
}

/// Sets a choice by its text, or else by its number.
pub(crate) fn choose(value: &mut Value, number: usize, text: &str) -> Result<(), ParseError> {
    let plan = value.plan().clone();
    let choices = plan.child(number, "choices").and_then(|child| value.at(child)).and_then(Item::as_array);
    let texts = || choices.and_then(Array::iter_texts).into_iter().flatten();
    let found = texts().position(|choice| choice == text.as_bytes());
    let count = texts().count();
    // Without choices, as in a type alone, any number may be one.
    let by_number = || {
        text.trim()
            .parse::<i32>()
            .ok()
            .filter(|index| count == 0 || usize::try_from(*index).is_ok_and(|index| index < count))
    };
    let index = found.and_then(|at| i32::try_from(at).ok()).or_else(by_number);
    let Some(index) = index else {
        let known: Vec<String> = texts().map(crate::show::plain).collect();
        return Err(Mistake::NoChoice { text: text.into(), choices: known.join(", ") }.into());
    };
    let child = plan.child(number, "index").ok_or(SetError::NoField)?;
    Ok(value.set_at(child, index)?)
}
