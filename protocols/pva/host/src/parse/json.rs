//! JSON into the fields of a value, by their types. Numbers are read where they stand: 64 bits lose nothing.

use super::call::{guess, held, type_of};
use super::scalar::Elements;
use super::{Mistake, ParseError, choose, datum};
use crate::show::is_choice;
use hodo_pva::data::{Members, SetError};
use hodo_pva::{Array, Datum, Plan, Scalar, Type, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Levels of values within values.
const DEPTH_MAX: usize = 64;

/// Sets a field.
pub(super) fn fill(value: &mut Value, number: usize, text: &str) -> Result<(), ParseError> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.field(value, number)?;
    reader.end()
}

/// Returns the content of a text whose type nobody states.
pub(super) fn infer(text: &str) -> Result<Datum, ParseError> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let datum = reader.anything()?;
    reader.end()?;
    Ok(datum)
}

/// A text, and how far it has been read.
#[derive(Clone)]
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn field(&mut self, value: &mut Value, number: usize) -> Result<(), ParseError> {
        let plan = value.plan().clone();
        let of = plan.field(number).ok_or(SetError::NoField)?;
        match of {
            Type::Structure(_) => self.deeper(|reader| reader.structure(value, number)),
            Type::Scalar(Scalar::Text) | Type::BoundedText(_) => {
                let text = self.scalar()?;
                Ok(value.set_at(number, text.as_ref())?)
            }
            Type::Scalar(scalar) => {
                let text = self.scalar()?;
                Ok(value.set_at(number, datum(*scalar, &text)?)?)
            }
            Type::Array(scalar, _) => {
                let array = self.array(*scalar)?;
                Ok(value.set_at(number, array)?)
            }
            Type::Union(members) => {
                let datum = self.deeper(|reader| reader.union(members))?;
                Ok(value.set_at(number, datum)?)
            }
            Type::Any => {
                let datum = self.anything()?;
                Ok(value.set_at(number, held(datum))?)
            }
            Type::StructureArray(_) | Type::UnionArray(_) | Type::AnyArray => {
                let element = Plan::new(of.element().ok_or(SetError::WrongType)?);
                let elements = self.deeper(|reader| reader.elements(&element))?;
                Ok(value.set_at(number, Datum::Elements(elements))?)
            }
        }
    }

    fn structure(&mut self, value: &mut Value, number: usize) -> Result<(), ParseError> {
        let plan = value.plan().clone();
        if self.peek() != Some('{') {
            if plan.field(number).is_some_and(is_choice) {
                let text = self.scalar()?;
                return choose(value, number, &text);
            }
            let child = plan.child(number, "value").ok_or_else(|| self.expected("an object"))?;
            return self.field(value, child).map_err(|error| error.within("value"));
        }
        self.object(|reader, name| {
            let child = plan.child(number, name).ok_or(SetError::NoField);
            child
                .map_err(ParseError::from)
                .and_then(|child| reader.field(value, child))
                .map_err(|error| error.within(name))
        })
    }

    /// Reads null, an object with the chosen member, or the content of the first member that it fits.
    fn union(&mut self, members: &Arc<Members>) -> Result<Datum, ParseError> {
        if self.peek() == Some('{') {
            let mut ahead = self.clone();
            ahead.at += 1;
            let member = if ahead.peek() == Some('"') { members.field(&ahead.string()?).cloned() } else { None };
            if let Some(member) = member {
                let mut chosen = Datum::Nothing;
                self.object(|reader, name| {
                    if name != &*member.name {
                        return Err(ParseError::from(SetError::NoMember).within(name));
                    }
                    let mut value = Value::of(member.of.clone());
                    reader.field(&mut value, 0).map_err(|error| error.within(name))?;
                    chosen = Datum::Member(name.into(), Box::new(Datum::Value(value)));
                    Ok(())
                })?;
                return Ok(chosen);
            }
        }
        // Whatever member takes the content as it is written.
        let from = self.clone();
        if self.word_is("null") {
            return Ok(Datum::Nothing);
        }
        for member in members.fields() {
            let mut value = Value::of(member.of.clone());
            *self = from.clone();
            if self.field(&mut value, 0).is_ok() {
                return Ok(Datum::Member(member.name.to_string(), Box::new(Datum::Value(value))));
            }
        }
        *self = from;
        Err(SetError::NoMember.into())
    }

    fn elements(&mut self, plan: &Arc<Plan>) -> Result<Vec<Option<Value>>, ParseError> {
        let mut elements = Vec::new();
        self.list(|reader| {
            if reader.word_is("null") {
                elements.push(None);
                return Ok(());
            }
            let mut element = Value::new(plan);
            let at = elements.len();
            reader.field(&mut element, 0).map_err(|error| error.within(&format!("[{at}]")))?;
            elements.push(Some(element));
            Ok(())
        })?;
        Ok(elements)
    }

    fn array(&mut self, scalar: Scalar) -> Result<Array, ParseError> {
        let mut elements = Elements::new(scalar);
        self.list(|reader| {
            let text = reader.scalar()?;
            Ok(elements.push(&text)?)
        })?;
        Ok(elements.into_array())
    }

    /// Reads content whose type nobody states: arrays of one type of scalar are such arrays, and others arrays of any.
    fn anything(&mut self) -> Result<Datum, ParseError> {
        match self.peek() {
            Some('"') => Ok(self.string()?.as_ref().into()),
            Some('{') => self.deeper(|reader| {
                let mut fields: Vec<(String, Datum)> = Vec::new();
                reader.object(|reader, name| {
                    fields.push((name.into(), reader.anything()?));
                    Ok(())
                })?;
                let types = fields.iter().map(|(name, datum)| (name.as_str(), type_of(datum)));
                let mut value = Value::of(Type::structure("", types));
                // By number, not by path: a name may have a dot. A name that stands twice is two fields.
                let numbers: Vec<usize> = value.plan().children(0).collect();
                for (number, (_, datum)) in numbers.into_iter().zip(fields) {
                    value.set_at(number, datum)?;
                }
                Ok(value.into())
            }),
            Some('[') => self.deeper(Reader::any_array),
            _ => {
                let word = self.word()?;
                if word.starts_with(char::is_alphabetic)
                    && !matches!(word, "true" | "false" | "null" | "NaN" | "Infinity" | "nan" | "inf")
                {
                    return Err(self.expected("a value"));
                }
                Ok(guess(word))
            }
        }
    }

    fn any_array(&mut self) -> Result<Datum, ParseError> {
        let mut elements = Vec::new();
        self.list(|reader| {
            elements.push(reader.anything()?);
            Ok(())
        })?;
        let is = |scalar: fn(&Datum) -> bool| !elements.is_empty() && elements.iter().all(scalar);
        if is(|datum| matches!(datum, Datum::Int(_))) {
            let numbers =
                elements.iter().filter_map(|datum| if let Datum::Int(value) = datum { Some(*value) } else { None });
            return Ok(numbers.collect::<Vec<_>>().into());
        }
        if is(|datum| matches!(datum, Datum::Uint(_) | Datum::Int(0..))) {
            let number = |datum: &Datum| match datum {
                Datum::Int(value) => Some(*value as u64),
                Datum::Uint(value) => Some(*value),
                _ => None,
            };
            return Ok(elements.iter().filter_map(number).collect::<Vec<_>>().into());
        }
        if is(|datum| matches!(datum, Datum::Int(_) | Datum::Float(_))) {
            let number = |datum: &Datum| match datum {
                Datum::Int(value) => Some(*value as f64),
                Datum::Float(value) => Some(*value),
                _ => None,
            };
            return Ok(elements.iter().filter_map(number).collect::<Vec<_>>().into());
        }
        if is(|datum| matches!(datum, Datum::Bool(_))) {
            return Ok(Array::bools(elements.iter().map(|datum| *datum == Datum::Bool(true))).into());
        }
        if is(|datum| matches!(datum, Datum::Text(_))) {
            let texts = elements
                .iter()
                .filter_map(|datum| if let Datum::Text(text) = datum { Some(text.as_bytes()) } else { None });
            return Ok(Array::texts(texts).into());
        }
        let one = |datum| match held(datum) {
            Datum::Value(inner) => {
                let mut value = Value::of(Type::Any);
                value.set_at(0, inner).expect("any holds anything");
                Some(value)
            }
            _ => None,
        };
        Ok(Datum::Elements(elements.into_iter().map(one).collect()))
    }

    fn object(&mut self, mut told: impl FnMut(&mut Self, &str) -> Result<(), ParseError>) -> Result<(), ParseError> {
        self.sequence('{', '}', "an object", |reader| {
            let name = reader.string()?;
            reader.take(':', "a colon")?;
            told(reader, &name)
        })
    }

    fn list(&mut self, told: impl FnMut(&mut Self) -> Result<(), ParseError>) -> Result<(), ParseError> {
        self.sequence('[', ']', "an array", told)
    }

    fn sequence(
        &mut self,
        open: char,
        close: char,
        what: &'static str,
        mut told: impl FnMut(&mut Self) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        self.take(open, what)?;
        if self.peek() == Some(close) {
            return self.take(close, what);
        }
        loop {
            told(self)?;
            if self.peek() != Some(',') {
                return self.take(close, if open == '{' { "a comma or }" } else { "a comma or ]" });
            }
            self.take(',', "a comma")?;
        }
    }

    /// Reads a number, a bool or a text, as text.
    fn scalar(&mut self) -> Result<Cow<'a, str>, ParseError> {
        if self.peek() == Some('"') { self.string() } else { self.word().map(Cow::Borrowed) }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, ParseError> {
        let rest = self.rest();
        let mut is_escaped = false;
        let quote = rest.strip_prefix('"').and_then(|text| {
            text.find(|c| {
                let is_end = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                is_end
            })
        });
        let Some(length) = quote else { return Err(self.expected("a text in double quotes")) };
        let quoted = &rest[..length + 2];
        let text = if quoted.contains('\\') {
            serde_json::from_str::<String>(quoted)
                .map_err(|_| self.expected("a text with escapes as \\n or \\u00b0"))?
                .into()
        } else {
            Cow::Borrowed(&quoted[1..=length])
        };
        self.at += quoted.len();
        Ok(text)
    }

    fn word(&mut self) -> Result<&'a str, ParseError> {
        let rest = self.rest();
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.expected("a number, true, false or a text in double quotes"));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    fn word_is(&mut self, word: &str) -> bool {
        let is = self.rest().starts_with(word);
        self.at += if is { word.len() } else { 0 };
        is
    }

    fn take(&mut self, c: char, what: &'static str) -> Result<(), ParseError> {
        if self.peek() != Some(c) {
            return Err(self.expected(what));
        }
        self.at += c.len_utf8();
        Ok(())
    }

    fn peek(&mut self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Returns what has not been read, behind white space.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn end(&mut self) -> Result<(), ParseError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.expected("the end")) }
    }

    fn expected(&self, expected: &'static str) -> ParseError {
        Mistake::Json { expected, at: self.text[..self.at].chars().count() + 1 }.into()
    }

    fn deeper<T>(&mut self, told: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth == DEPTH_MAX {
            return Err(Mistake::TooDeep { max: DEPTH_MAX }.into());
        }
        self.depth += 1;
        let done = told(self);
        self.depth -= 1;
        done
    }
}
