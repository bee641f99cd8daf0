use crate::data::value::Object;
use crate::data::{Array, BitSet, Plan, Scalar, Step, TypeCache, Value};
use crate::{Error, Reader, Writer};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Counts one more level of values that hold values. Each may bring a type of its own, which the bound of types does not see.
fn deeper(depth: usize, reader: &Reader<'_>) -> Result<usize, Error> {
    let max = reader.limits().nesting;
    if depth >= max { Err(Error::TooDeep { max }) } else { Ok(depth + 1) }
}

impl Value {
    /// Reads all fields.
    ///
    /// # Errors
    /// An [`Error`] for what is no value of this type, or over the limits. The value is then in part the new one.
    pub fn decode(&mut self, reader: &mut Reader<'_>, types: &mut TypeCache) -> Result<(), Error> {
        self.decode_leaves(0, 0, reader, types)
    }

    /// Reads a set of bits and the fields that it names. The set is then [`Value::changed`]; other fields stay as they were.
    ///
    /// # Errors
    /// An [`Error`] for what is no value of this type, or over the limits. The value is then in part the new one.
    #[inline]
    pub fn decode_changed(&mut self, reader: &mut Reader<'_>, types: &mut TypeCache) -> Result<(), Error> {
        let end = self.plan().len();
        self.changed.decode(end, reader)?;
        let mut from = 0;
        while let Some(number) = self.changed.next(from) {
            self.decode_leaves(number, 0, reader, types)?;
            from = self.plan().end(number);
        }
        Ok(())
    }

    /// Reads a type and a value of it; `None` for the null type.
    ///
    /// # Errors
    /// An [`Error`] for what is none, or over the limits.
    pub fn decode_any(reader: &mut Reader<'_>, types: &mut TypeCache) -> Result<Option<Value>, Error> {
        let mut value = None;
        decode_any(&mut value, 0, reader, types)?;
        Ok(value.map(|value| *value))
    }

    /// Writes all fields.
    pub fn encode(&self, writer: &mut Writer) {
        for leaf in self.plan().leaves() {
            self.encode_leaf(&leaf.step, leaf.place as usize, writer);
        }
    }

    /// Writes the set of changed fields, and those fields.
    pub fn encode_changed(&self, writer: &mut Writer) {
        self.encode_set(&self.changed, writer);
    }

    /// Writes a set of fields, and those fields, whether they have changed or not.
    #[inline]
    pub fn encode_set(&self, set: &BitSet, writer: &mut Writer) {
        set.encode(writer);
        let plan = self.plan();
        let mut from = 0;
        while let Some(number) = set.next(from) {
            for leaf in plan.leaves_of(number) {
                self.encode_leaf(&leaf.step, leaf.place as usize, writer);
            }
            from = plan.end(number);
        }
    }

    /// Writes the type of a value and all its fields, or the null type.
    pub fn encode_any(value: Option<&Value>, writer: &mut Writer) {
        match value {
            None => crate::Type::encode_none(writer),
            Some(value) => {
                value.plan().of().encode(writer);
                value.encode(writer);
            }
        }
    }

    #[inline]
    fn decode_leaves(
        &mut self,
        number: usize,
        depth: usize,
        reader: &mut Reader<'_>,
        types: &mut TypeCache,
    ) -> Result<(), Error> {
        let Value { plan, words, objects, .. } = self;
        for leaf in plan.leaves_of(number) {
            let place = leaf.place as usize;
            if let Step::Word(scalar) = leaf.step {
                words[place] = decode_word(scalar, reader)?;
            } else {
                decode_object(&leaf.step, &mut objects[place], depth, reader, types)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn encode_leaf(&self, step: &Step, place: usize, writer: &mut Writer) {
        if let Step::Word(scalar) = step {
            return encode_word(*scalar, self.words[place], writer);
        }
        match (&self.objects[place], step) {
            (Object::Text(text), _) => writer.text(text.as_bytes()),
            (Object::Array(array), Step::Array(_, fixed)) => array.encode(*fixed, writer),
            (Object::Array(array), _) => array.encode(None, writer),
            (Object::Union(None), _) => writer.null(),
            (Object::Union(Some((selector, value))), _) => {
                writer.size((*selector).into());
                value.encode(writer);
            }
            (Object::Any(value), _) => Value::encode_any(value.as_deref(), writer),
            (Object::Elements(elements), _) => {
                writer.size(elements.len() as u64);
                for element in elements {
                    writer.u8(element.is_some().into());
                    if let Some(element) = element {
                        element.encode(writer);
                    }
                }
            }
        }
    }
}

impl Array {
    /// Writes the number of elements and the elements, as in the messages of [`Command::Array`](crate::wire::Command::Array).
    pub fn encode_counted(&self, writer: &mut Writer) {
        self.encode(None, writer);
    }

    /// Reads the number of elements and the elements, in place of those that are there.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn decode_counted(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        self.decode(None, reader)
    }
}

/// Reads a field that is no word.
fn decode_object(
    step: &Step,
    object: &mut Object,
    depth: usize,
    reader: &mut Reader<'_>,
    types: &mut TypeCache,
) -> Result<(), Error> {
    match (step, object) {
        (_, Object::Text(text)) => {
            let bytes = reader.text()?;
            reader.charge(bytes.len())?;
            text.assign(bytes);
            Ok(())
        }
        (Step::Array(_, fixed), Object::Array(array)) => array.decode(*fixed, reader),
        (Step::Union(members), Object::Union(union)) => decode_union(members, union, depth, reader, types),
        (Step::Elements(plan), Object::Elements(elements)) => decode_elements(plan, elements, depth, reader, types),
        (_, Object::Any(value)) => decode_any(value, depth, reader, types),
        _ => unreachable!("an object is made by its step"),
    }
}

/// Reads a number or bool into a word: signed ones keep their sign, floating-point ones are their bits.
#[inline]
pub(super) fn decode_word(scalar: Scalar, reader: &mut Reader<'_>) -> Result<u64, Error> {
    Ok(match scalar {
        Scalar::F64 | Scalar::I64 | Scalar::U64 => reader.u64()?,
        Scalar::I32 => reader.u32()? as i32 as u64,
        Scalar::U32 | Scalar::F32 => reader.u32()?.into(),
        Scalar::I16 => reader.u16()? as i16 as u64,
        Scalar::U16 => reader.u16()?.into(),
        Scalar::I8 => reader.u8()? as i8 as u64,
        Scalar::U8 => reader.u8()?.into(),
        Scalar::Bool | Scalar::Text => u64::from(reader.u8()? != 0),
    })
}

#[inline]
fn encode_word(scalar: Scalar, word: u64, writer: &mut Writer) {
    match scalar.width() {
        Some(8) => writer.u64(word),
        Some(4) => writer.u32(word as u32),
        Some(2) => writer.u16(word as u16),
        _ => writer.u8(word as u8),
    }
}

/// Returns the value in a place if it has this plan, or a new one that is put there.
fn room<'v>(
    place: Option<Box<Value>>,
    plan: &Arc<Plan>,
    into: &'v mut Option<Box<Value>>,
    reader: &mut Reader<'_>,
) -> Result<&'v mut Value, Error> {
    let value = match place.filter(|value| is_cheaply_same(value.plan(), plan)) {
        Some(value) => value,
        None => {
            reader.charge(Value::memory(plan))?;
            Box::new(Value::new(plan))
        }
    };
    Ok(into.insert(value))
}

/// Tells whether values of two plans have the same type, for types of which that is quickly said.
fn is_cheaply_same(one: &Arc<Plan>, other: &Arc<Plan>) -> bool {
    /// A scalar, an array or a small structure: with a larger type the comparison would cost more than its few bytes.
    const FIELDS: usize = 16;
    Arc::ptr_eq(one, other) || (one.of().weight().max(other.of().weight()) <= FIELDS && one.of() == other.of())
}

fn decode_union(
    members: &[Arc<Plan>],
    union: &mut Option<(u32, Box<Value>)>,
    depth: usize,
    reader: &mut Reader<'_>,
    types: &mut TypeCache,
) -> Result<(), Error> {
    let depth = deeper(depth, reader)?;
    let Some(selector) = reader.size()? else {
        *union = None;
        return Ok(());
    };
    let index = usize::try_from(selector).unwrap_or(usize::MAX);
    let plan = members.get(index).ok_or(Error::Selector { selector, members: members.len() })?;
    let mut place = None;
    let before = union.take().filter(|(before, _)| u64::from(*before) == selector).map(|(_, value)| value);
    room(before, plan, &mut place, reader)?.decode_leaves(0, depth, reader, types)?;
    *union = place.map(|value| (selector as u32, value));
    Ok(())
}

fn decode_any(
    any: &mut Option<Box<Value>>,
    depth: usize,
    reader: &mut Reader<'_>,
    types: &mut TypeCache,
) -> Result<(), Error> {
    let depth = deeper(depth, reader)?;
    let before = any.take();
    if let Some(plan) = types.decode(reader)? {
        room(before, &plan, any, reader)?.decode_leaves(0, depth, reader, types)?;
    }
    Ok(())
}

fn decode_elements(
    plan: &Arc<Plan>,
    elements: &mut Vec<Option<Box<Value>>>,
    depth: usize,
    reader: &mut Reader<'_>,
    types: &mut TypeCache,
) -> Result<(), Error> {
    let depth = deeper(depth, reader)?;
    let count = reader.count(1)?;
    reader.charge(count.saturating_mul(size_of::<Option<Box<Value>>>()))?;
    elements.resize_with(count, || None);
    for element in elements {
        let before = element.take();
        if reader.u8()? != 0 {
            room(before, plan, element, reader)?.decode_leaves(0, depth, reader, types)?;
        }
    }
    Ok(())
}
