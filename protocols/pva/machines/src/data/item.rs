use crate::data::value::{Object, is_same};
use crate::data::{Array, Plan, Scalar, Step, Text, Type, Value};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use thiserror::Error;

/// A field's content, to be read.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A bool.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(&'a Text),
    /// An array of scalars.
    Array(&'a Array),
    /// A structure: the value that contains it, and its number there.
    Structure(&'a Value, usize),
    /// The name of the chosen member and its value, or nothing.
    Union(Option<(&'a str, &'a Value)>),
    /// A value with a type of its own, or nothing.
    Any(Option<&'a Value>),
    /// Elements that are structures, unions or any.
    Elements(&'a [Option<Box<Value>>]),
}

impl<'a> Item<'a> {
    /// Returns what a union or an any-field holds, if it holds something; any other field as it is.
    #[must_use]
    pub fn content(self) -> Item<'a> {
        let mut item = self;
        while let Item::Any(Some(value)) | Item::Union(Some((_, value))) = item {
            match value.at(0) {
                Some(inner) => item = inner,
                None => return item,
            }
        }
        item
    }

    /// Returns a number or bool, perhaps held by a union or an any-field, as a floating-point number.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        match self.content() {
            Item::Bool(value) => Some(f64::from(u8::from(value))),
            Item::Int(value) => Some(value as f64),
            Item::Uint(value) => Some(value as f64),
            Item::Float(value) => Some(value),
            _ => None,
        }
    }

    /// Returns a whole number or bool, perhaps held by a union or an any-field, if it fits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self.content() {
            Item::Bool(value) => Some(value.into()),
            Item::Int(value) => Some(value),
            Item::Uint(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// Returns a text, perhaps held by a union or an any-field.
    #[must_use]
    pub fn as_text(self) -> Option<&'a Text> {
        match self.content() {
            Item::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an array of scalars, perhaps held by a union or an any-field.
    #[must_use]
    pub fn as_array(self) -> Option<&'a Array> {
        match self.content() {
            Item::Array(array) => Some(array),
            _ => None,
        }
    }
}

/// Content for a field.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Datum {
    /// A bool.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(Text),
    /// An array of scalars.
    Array(Array),
    /// The member of a union, by name, and its content.
    Member(String, Box<Datum>),
    /// A whole value: of a structure, of what an any-field is to hold, or of the only member of a union with its type.
    Value(Value),
    /// Elements that are structures, unions or any.
    Elements(Vec<Option<Value>>),
    /// Nothing: for a union or an any-field.
    Nothing,
}

macro_rules! datum_from {
    ($($Rust:ty => $Variant:ident $(as $As:ty)?),+ $(,)?) => { $(
        impl From<$Rust> for Datum {
            fn from(value: $Rust) -> Self {
                Datum::$Variant(value $(as $As)?.into())
            }
        }
    )+ };
}

datum_from! {
    bool => Bool, i8 => Int, i16 => Int, i32 => Int, i64 => Int, u8 => Uint, u16 => Uint, u32 => Uint, u64 => Uint,
    f32 => Float, f64 => Float, &str => Text, String => Text, Text => Text, Array => Array, Value => Value,
}

impl<T: crate::data::Element + Send> From<Vec<T>> for Datum {
    fn from(elements: Vec<T>) -> Self {
        Datum::Array(elements.into())
    }
}

/// An error in what is put into a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetError {
    /// There is no field of that number or path.
    #[error("there is no such field")]
    NoField,
    /// A content that a field of this type cannot hold.
    #[error("a field of another type cannot hold this")]
    WrongType,
    /// A number that does not fit.
    #[error("the number does not fit into the field")]
    OutOfRange,
    /// A union without a member of that name or type.
    #[error("the union has no such member")]
    NoMember,
    /// An array or a text that is longer than its bound.
    #[error("longer than the bound of {max}")]
    TooLong {
        /// The bound.
        max: u64,
    },
}

impl Value {
    /// Puts content into a field by its path, and marks it as changed.
    ///
    /// # Errors
    /// A [`SetError`] if there is no such field, or it cannot hold that. The value is as it was then.
    pub fn set(&mut self, path: &str, datum: impl Into<Datum>) -> Result<(), SetError> {
        let number = self.plan().number(path).ok_or(SetError::NoField)?;
        self.set_at(number, datum)
    }

    /// Puts content into a field by its number, and marks it as changed.
    ///
    /// # Errors
    /// A [`SetError`] if there is no such field, or it cannot hold that. The value is as it was then.
    pub fn set_at(&mut self, number: usize, datum: impl Into<Datum>) -> Result<(), SetError> {
        let plan = self.plan().clone();
        let of = plan.field(number).ok_or(SetError::NoField)?;
        let datum = datum.into();
        match plan.leaf(number) {
            None => self.set_structure(number, of, &datum)?,
            Some(leaf) => {
                let place = leaf.place as usize;
                match &leaf.step {
                    Step::Word(scalar) => self.words[place] = word(*scalar, &datum)?,
                    step => self.objects[place] = object(of, step, datum)?,
                }
            }
        }
        self.mark(number);
        Ok(())
    }

    fn set_structure(&mut self, number: usize, of: &Type, datum: &Datum) -> Result<(), SetError> {
        let Datum::Value(from) = datum else { return Err(SetError::WrongType) };
        if from.plan().of() != of {
            return Err(SetError::WrongType);
        }
        let plan = self.plan().clone();
        for (to, from_leaf) in plan.leaves_of(number).iter().zip(from.plan().leaves()) {
            let (to, at) = (to.place as usize, from_leaf.place as usize);
            match from_leaf.step {
                Step::Word(_) => self.words[to] = from.words[at],
                _ => self.objects[to].clone_from(&from.objects[at]),
            }
        }
        Ok(())
    }
}

/// Returns the word of a number or bool.
fn word(scalar: Scalar, datum: &Datum) -> Result<u64, SetError> {
    let whole = match *datum {
        Datum::Bool(value) => i128::from(value),
        Datum::Int(value) => value.into(),
        Datum::Uint(value) => value.into(),
        Datum::Float(value) => {
            return match scalar {
                Scalar::F64 => Ok(value.to_bits()),
                Scalar::F32 => Ok((value as f32).to_bits().into()),
                _ => Err(SetError::WrongType),
            };
        }
        _ => return Err(SetError::WrongType),
    };
    let (min, max): (i128, i128) = match scalar {
        Scalar::Bool => (0, 1),
        Scalar::I8 => (i8::MIN.into(), i8::MAX.into()),
        Scalar::I16 => (i16::MIN.into(), i16::MAX.into()),
        Scalar::I32 => (i32::MIN.into(), i32::MAX.into()),
        Scalar::I64 => (i64::MIN.into(), i64::MAX.into()),
        Scalar::U8 => (0, u8::MAX.into()),
        Scalar::U16 => (0, u16::MAX.into()),
        Scalar::U32 => (0, u32::MAX.into()),
        Scalar::U64 => (0, u64::MAX.into()),
        Scalar::F32 => return Ok((whole as f32).to_bits().into()),
        Scalar::F64 => return Ok((whole as f64).to_bits()),
        Scalar::Text => return Err(SetError::WrongType),
    };
    if (min..=max).contains(&whole) { Ok(whole as u64) } else { Err(SetError::OutOfRange) }
}

/// Returns the object of a leaf that is no word.
fn object(of: &Type, step: &Step, datum: Datum) -> Result<Object, SetError> {
    Ok(match (step, datum) {
        (Step::Text, Datum::Text(text)) => {
            if let Type::BoundedText(max) = of {
                fits(text.as_bytes().len(), *max)?;
            }
            Object::Text(text)
        }
        (Step::Array(scalar, fixed), Datum::Array(array)) if array.scalar() == *scalar => {
            if let Type::Array(_, crate::data::Length::Bounded(max)) = of {
                fits(array.len(), *max)?;
            }
            if let Some(count) = fixed {
                fits(array.len(), *count)?;
            }
            Object::Array(array)
        }
        (Step::Union(_), Datum::Nothing) => Object::Union(None),
        (Step::Union(plans), datum) => Object::Union(Some(member(of, plans, datum)?)),
        (Step::Any, Datum::Nothing) => Object::Any(None),
        (Step::Any, Datum::Value(value)) => Object::Any(Some(boxed(value))),
        (Step::Elements(plan), Datum::Elements(elements)) => {
            if elements.iter().flatten().any(|value| !is_same(value.plan(), plan)) {
                return Err(SetError::WrongType);
            }
            Object::Elements(elements.into_iter().map(|element| element.map(boxed)).collect())
        }
        _ => return Err(SetError::WrongType),
    })
}

/// Returns the chosen member of a union, and its value.
fn member(of: &Type, plans: &[Arc<Plan>], datum: Datum) -> Result<(u32, Box<Value>), SetError> {
    let (index, datum) = match datum {
        Datum::Member(name, datum) => {
            let members = of.members().ok_or(SetError::WrongType)?;
            let index = members.fields().iter().position(|field| *field.name == *name);
            (index.ok_or(SetError::NoMember)?, *datum)
        }
        datum => (only(plans, &datum).ok_or(SetError::NoMember)?, datum),
    };
    let value = match datum {
        Datum::Value(whole) if is_same(whole.plan(), &plans[index]) => whole,
        datum => {
            let mut value = Value::new(&plans[index]);
            value.set_at(0, datum)?;
            value
        }
    };
    Ok((index as u32, boxed(value)))
}

/// Returns a value that another one holds: it is sent whole.
fn boxed(mut value: Value) -> Box<Value> {
    value.unmark();
    Box::new(value)
}

/// Returns the first member of a union that has the type of this content.
fn only(plans: &[Arc<Plan>], datum: &Datum) -> Option<usize> {
    plans.iter().position(|plan| match (plan.of(), datum) {
        (Type::Array(scalar, _), Datum::Array(array)) => array.scalar() == *scalar,
        (of, Datum::Value(value)) => value.plan().of() == of,
        (Type::Scalar(Scalar::Text), Datum::Text(_))
        | (Type::Scalar(Scalar::Bool), Datum::Bool(_))
        | (Type::Scalar(Scalar::F64 | Scalar::F32), Datum::Float(_)) => true,
        (Type::Scalar(scalar), Datum::Int(_) | Datum::Uint(_)) => {
            !matches!(scalar, Scalar::Bool | Scalar::Text | Scalar::F32 | Scalar::F64) && word(*scalar, datum).is_ok()
        }
        _ => false,
    })
}

fn fits(length: usize, max: u64) -> Result<(), SetError> {
    if length as u64 > max { Err(SetError::TooLong { max }) } else { Ok(()) }
}
