use crate::data::{Field, Length, Members, Plan, Scalar, Type};
use crate::{Error, Order, Reader, Writer};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

const ARRAY: u8 = 0x08;
const BOUNDED: u8 = 0x10;
const FIXED: u8 = 0x18;
const SHAPE: u8 = 0x18;
const STRUCTURE: u8 = 0x80;
const UNION: u8 = 0x81;
const ANY: u8 = 0x82;
const BOUNDED_TEXT: u8 = 0x83;
const REMEMBER: u8 = 0xFD;
const REMEMBERED: u8 = 0xFE;
const NONE: u8 = 0xFF;

/// The types that a peer has sent with a number. Each direction of a connection has its own, and begins without any.
///
/// Beside them it keeps the last few types that came in full: a peer that numbers none sends the same one for every channel.
#[derive(Debug, Default)]
pub struct TypeCache {
    entries: BTreeMap<u16, Entry>,
    weight: usize,
    recent: [Option<Recent>; RECENT],
    next: usize,
    /// Whether the type that is being decoded has, or is, a number.
    is_numbered: bool,
}

/// Types in full that are kept, the bytes that one may have, and those that it has for each field: one of very short names would take much
/// more memory than its bytes.
const RECENT: usize = 4;
const RECENT_BYTES: usize = 4096;
const FIELD_BYTES: usize = 6;

/// A type that came in full: its bytes, in their order.
#[derive(Debug)]
struct Recent {
    order: Order,
    bytes: Box<[u8]>,
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct Entry {
    of: Type,
    plan: Option<Arc<Plan>>,
}

impl TypeCache {
    /// Creates an empty cache.
    #[must_use]
    pub const fn new() -> Self {
        TypeCache { entries: BTreeMap::new(), weight: 0, recent: [const { None }; RECENT], next: 0, is_numbered: false }
    }

    /// Decodes a type, and compiles how its values are read and written. `None` is the null type.
    ///
    /// # Errors
    /// An [`Error`] for what is no type, and for one over the limits.
    pub fn decode(&mut self, reader: &mut Reader<'_>) -> Result<Option<Arc<Plan>>, Error> {
        let (code, id) = match *reader.rest() {
            [code @ (REMEMBER | REMEMBERED), first, second, ..] => (code, reader.order().u16([first, second])),
            _ => return self.decode_full(reader),
        };
        if code == REMEMBER {
            self.decode_type(reader)?;
        } else {
            reader.bytes(3)?;
        }
        let entry = self.entries.get_mut(&id).ok_or(Error::TypeId { id })?;
        if let Some(plan) = &entry.plan {
            return Ok(Some(plan.clone()));
        }
        reader.charge_fields(entry.of.weight())?;
        let plan = Plan::new(entry.of.clone());
        entry.plan = Some(plan.clone());
        Ok(Some(plan))
    }

    /// Decodes a type that has no number itself.
    fn decode_full(&mut self, reader: &mut Reader<'_>) -> Result<Option<Arc<Plan>>, Error> {
        let (order, bytes) = (reader.order(), reader.rest());
        let is_it = |recent: &&Recent| recent.order == order && bytes.starts_with(&recent.bytes);
        if let Some(Recent { bytes, plan, .. }) = self.recent.iter().flatten().find(is_it) {
            reader.bytes(bytes.len())?;
            reader.charge_fields(plan.of().weight())?;
            return Ok(Some(plan.clone()));
        }
        self.is_numbered = false;
        let Some(of) = self.decode_type(reader)? else { return Ok(None) };
        reader.charge_fields(of.weight())?;
        let plan = Plan::new(of);
        let bytes = &bytes[..bytes.len() - reader.rest().len()];
        let is_large = bytes.len() > RECENT_BYTES || bytes.len() < FIELD_BYTES * plan.of().weight();
        if !self.is_numbered && !is_large {
            self.recent[self.next] = Some(Recent { order, bytes: bytes.into(), plan: plan.clone() });
            self.next = (self.next + 1) % RECENT;
        }
        Ok(Some(plan))
    }

    /// Decodes a type. `None` is the null type.
    ///
    /// # Errors
    /// An [`Error`] for what is no type, and for one over the limits.
    pub fn decode_type(&mut self, reader: &mut Reader<'_>) -> Result<Option<Type>, Error> {
        self.node(reader, 0)
    }

    fn node(&mut self, reader: &mut Reader<'_>, depth: usize) -> Result<Option<Type>, Error> {
        let nesting = reader.limits().nesting;
        // An array of structures, or a number for a type, is a step of this function but no level.
        if depth > 2 * nesting + 1 {
            return Err(Error::TooDeep { max: nesting });
        }
        let code = reader.u8()?;
        let found = match code {
            NONE => return Ok(None),
            REMEMBER => {
                self.is_numbered = true;
                let id = reader.u16()?;
                let of = self.node(reader, depth + 1)?.ok_or(Error::Null { what: "a type to be remembered" })?;
                self.remember(id, of.clone(), reader.limits().cached_fields)?;
                of
            }
            REMEMBERED => {
                self.is_numbered = true;
                let id = reader.u16()?;
                self.entries.get(&id).ok_or(Error::TypeId { id })?.of.clone()
            }
            STRUCTURE => Type::Structure(self.members(reader, depth)?),
            UNION => Type::Union(self.members(reader, depth)?),
            ANY => Type::Any,
            BOUNDED_TEXT => Type::BoundedText(size(reader)?),
            0x88 | 0x89 => {
                let element = self.node(reader, depth + 1)?.ok_or(Error::Null { what: "the type of elements" })?;
                match (code, element) {
                    (0x88, Type::Structure(members)) => Type::StructureArray(members),
                    (0x89, Type::Union(members)) => Type::UnionArray(members),
                    _ => return Err(Error::TypeCode { code }),
                }
            }
            0x8A => Type::AnyArray,
            _ => {
                let scalar = Scalar::from_code(code & !SHAPE).ok_or(Error::TypeCode { code })?;
                match code & SHAPE {
                    ARRAY => Type::array(scalar),
                    BOUNDED => Type::Array(scalar, Length::Bounded(size(reader)?)),
                    FIXED => Type::Array(scalar, Length::Fixed(size(reader)?)),
                    _ => Type::Scalar(scalar),
                }
            }
        };
        // A number can stand for a whole type, so that few bytes could name very much.
        let (weight, max) = (found.weight(), reader.limits().fields);
        if weight > max {
            return Err(Error::OverLimit { what: "fields of a type", count: weight as u64, max: max as u64 });
        }
        if found.depth() > nesting {
            return Err(Error::TooDeep { max: nesting });
        }
        Ok(Some(found))
    }

    fn members(&mut self, reader: &mut Reader<'_>, depth: usize) -> Result<Arc<Members>, Error> {
        let id = name(reader)?;
        let count = reader.count(2)?;
        let mut fields = Vec::new();
        let mut weight = 1usize;
        let max = reader.limits().fields;
        for _ in 0..count {
            let name = name(reader)?;
            let of = self.node(reader, depth + 1)?.ok_or(Error::Null { what: "the type of a field" })?;
            weight = weight.saturating_add(of.weight());
            if weight > max {
                return Err(Error::OverLimit { what: "fields of a type", count: weight as u64, max: max as u64 });
            }
            fields.push(Field { name, of });
        }
        Ok(Arc::new(Members::of(id, fields.into_boxed_slice())))
    }

    fn remember(&mut self, id: u16, of: Type, max: usize) -> Result<(), Error> {
        let before = self.entries.get(&id).map_or(0, |entry| entry.of.weight());
        let weight = self.weight - before + of.weight();
        if weight > max {
            return Err(Error::OverLimit { what: "fields of remembered types", count: weight as u64, max: max as u64 });
        }
        self.weight = weight;
        self.entries.insert(id, Entry { of, plan: None });
        Ok(())
    }
}

impl Type {
    /// Writes the type, without a number.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Type::Scalar(scalar) => writer.u8(scalar.code()),
            Type::BoundedText(max) => {
                writer.u8(BOUNDED_TEXT);
                writer.size(*max);
            }
            Type::Array(scalar, length) => {
                let (shape, size) = match length {
                    Length::Variable => (ARRAY, None),
                    Length::Bounded(max) => (BOUNDED, Some(*max)),
                    Length::Fixed(count) => (FIXED, Some(*count)),
                };
                writer.u8(scalar.code() | shape);
                if let Some(size) = size {
                    writer.size(size);
                }
            }
            Type::Structure(members) => encode_members(&[STRUCTURE], members, writer),
            Type::Union(members) => encode_members(&[UNION], members, writer),
            Type::Any => writer.u8(ANY),
            Type::StructureArray(members) => encode_members(&[STRUCTURE | ARRAY, STRUCTURE], members, writer),
            Type::UnionArray(members) => encode_members(&[UNION | ARRAY, UNION], members, writer),
            Type::AnyArray => writer.u8(ANY | ARRAY),
        }
    }

    /// Writes the null type.
    pub fn encode_none(writer: &mut Writer) {
        writer.u8(NONE);
    }
}

fn encode_members(codes: &[u8], members: &Members, writer: &mut Writer) {
    writer.bytes(codes);
    writer.text(members.id().as_bytes());
    writer.size(members.fields().len() as u64);
    for field in members.fields() {
        writer.text(field.name.as_bytes());
        field.of.encode(writer);
    }
}

fn name(reader: &mut Reader<'_>) -> Result<Box<str>, Error> {
    reader.text().map(|text| String::from_utf8_lossy(text).into_owned().into_boxed_str())
}

fn size(reader: &mut Reader<'_>) -> Result<u64, Error> {
    reader.size()?.ok_or(Error::Null { what: "the size of a bounded or fixed type" })
}
