//! PVs of any size, made when a client opens them.
//!
//! | name | value |
//! |---|---|
//! | `hodo:double:N` | a double |
//! | `hodo:double:COUNT:N` | an array of doubles |
//! | `hodo:ubyte:COUNT:N` | an array of bytes |
//! | `hodo:bytes:N` | an array of bytes, at first none |
//! | `hodo:call:N` | nothing; it is [called](crate::call) |
//! | `hodo:updates:…` | a double or an array, to which [updates](super::posting) are posted |
//!
//! What is put becomes the value. All that have the same size share one array until they are put to.

use super::posting::Updates;
use crate::call;
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Source};
use hodo_pva::wire::Status;
use hodo_pva::{Array, Datum, Scalar, Type, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Sizes of which an array is kept.
const KEPT: usize = 16;

/// The PVs of the far end.
#[derive(Debug)]
pub(crate) struct Pvs {
    size_max: usize,
    arrays: Arc<Mutex<BTreeMap<(bool, usize), Array>>>,
    /// Names of those that were made, and that updates are to be posted to.
    made: Mutex<Vec<String>>,
    /// The reply to a call, without its bytes.
    reply: Value,
}

/// The value that the name of a PV asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Double,
    Doubles(usize),
    Bytes(usize),
}

impl Pvs {
    /// Creates PVs of up to so many bytes.
    pub(crate) fn new(size_max: usize) -> Self {
        Pvs { size_max, arrays: Arc::default(), made: Mutex::default(), reply: call::reply() }
    }

    /// Returns the PVs of another machine, which share the arrays of these.
    pub(crate) fn beside(&self) -> Self {
        Pvs { arrays: self.arrays.clone(), ..Pvs::new(self.size_max) }
    }

    /// Returns the reply to a call: as many bytes as its argument asks for.
    pub(crate) fn called(&self, argument: Option<&Value>) -> Result<Value, Status> {
        let back = call::asked(argument).filter(|back| *back <= self.size_max);
        let back = back.ok_or_else(|| {
            Status::error(format!("the argument has no field `back` of at most {} bytes", self.size_max))
        })?;
        // Sizes that are drawn at random share arrays.
        let array = self.array(false, back.next_power_of_two().min(self.size_max)).first(back);
        let mut reply = self.reply.clone();
        reply.set_at(1, array).expect("the type was made with this field");
        Ok(reply)
    }

    /// Returns the names of PVs to which updates are to be posted, that were made since the last call.
    pub(crate) fn take_made(&self) -> Vec<String> {
        std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn asked(&self, name: &str) -> Option<Content> {
        let mut parts = name.strip_prefix("hodo:")?.split(':');
        let (kind, first, second) = (parts.next()?, parts.next()?, parts.next());
        if parts.next().is_some() || second.unwrap_or(first).parse::<u32>().is_err() {
            return None;
        }
        let count = second.and_then(|_| first.parse::<usize>().ok());
        match (kind, second, count) {
            ("double", None, _) => Some(Content::Double),
            ("bytes", None, _) => Some(Content::Bytes(0)),
            ("double", _, Some(count)) if count <= self.size_max / size_of::<f64>() => Some(Content::Doubles(count)),
            ("ubyte", _, Some(count)) if count <= self.size_max => Some(Content::Bytes(count)),
            _ => None,
        }
    }

    /// Makes a PV to which updates are posted.
    fn updated(&self, name: &str) -> Option<Value> {
        let updates = Updates::named(name).filter(|updates| updates.size as usize <= self.size_max)?;
        let content = Content::of(updates.size);
        let fields = [("value", content.of_type()), ("due_ns", Scalar::U64.into()), ("number", Scalar::U64.into())];
        let mut value = Value::of(Type::structure("", fields));
        value.set_at(1, self.content(content)).ok()?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
        Some(value)
    }

    fn content(&self, content: Content) -> Datum {
        match content {
            Content::Double => 1.5.into(),
            Content::Doubles(count) => self.array(true, count).into(),
            Content::Bytes(count) => self.array(false, count).into(),
        }
    }

    fn array(&self, is_double: bool, count: usize) -> Array {
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        if arrays.len() >= KEPT {
            arrays.clear();
        }
        let fresh = || if is_double { vec![1.5f64; count].into() } else { vec![1u8; count].into() };
        arrays.entry((is_double, count)).or_insert_with(fresh).clone()
    }
}

impl Source for Pvs {
    fn has(&self, name: &str) -> bool {
        self.asked(name).is_some() || call::is_call_name(name) || Updates::named(name).is_some()
    }

    fn make(&self, name: &str) -> Option<(Value, Access)> {
        if let Some(value) = self.updated(name) {
            return Some((value, Access::ReadOnly));
        }
        if call::is_call_name(name) {
            return Some((call::reply(), Access::Handled));
        }
        let content = self.asked(name)?;
        let of = match content {
            Content::Double => Normative::scalar(Scalar::F64),
            Content::Doubles(_) => Normative::scalar_array(Scalar::F64),
            Content::Bytes(_) => Normative::scalar_array(Scalar::U8),
        };
        let mut value = Value::of(of.build());
        value.set_at(1, self.content(content)).ok()?;
        Some((value, Access::Mailbox))
    }
}

impl Content {
    /// Returns the content that has this many bytes.
    fn of(size: u32) -> Self {
        match size {
            8 => Content::Double,
            _ if size.is_multiple_of(8) => Content::Doubles(size as usize / 8),
            _ => Content::Bytes(size as usize),
        }
    }

    fn of_type(self) -> Type {
        match self {
            Content::Double => Scalar::F64.into(),
            Content::Doubles(_) => Type::array(Scalar::F64),
            Content::Bytes(_) => Type::array(Scalar::U8),
        }
    }
}

/// Returns the name of the PV of this size and number.
pub(crate) fn name_of(size: u32, number: u32) -> String {
    match Content::of(size) {
        Content::Double => format!("hodo:double:{number}"),
        Content::Doubles(count) => format!("hodo:double:{count}:{number}"),
        Content::Bytes(_) => bytes_name(size, number),
    }
}

/// Returns the name of the PV of this number to which any number of bytes can be put.
pub(crate) fn any_name(number: u32) -> String {
    format!("hodo:bytes:{number}")
}

/// Returns the name of the PV of this number that is an array of `count` bytes.
pub(crate) fn bytes_name(count: u32, number: u32) -> String {
    format!("hodo:ubyte:{count}:{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_pva::Item;

    #[test]
    fn names_say_what_is_made() {
        let far_end = Pvs::new(8000);
        let value = |name: &str| far_end.make(name).map(|(value, _)| value);
        assert_eq!(value("hodo:double:7").unwrap().get("value").and_then(Item::as_f64), Some(1.5));
        let array = value("hodo:double:1000:7").unwrap();
        assert_eq!(array.get("value").and_then(Item::as_array).unwrap().len(), 1000);
        assert_eq!(value("hodo:ubyte:3:0").unwrap().get("value").and_then(Item::as_array).unwrap().len(), 3);
        let none = [
            "hodo:double:1001:7",
            "hodo:double",
            "hodo:double:x",
            "hodo:text:1",
            "hodo:double:1:2:3",
            "hodo:call:x",
            "other",
        ];
        assert!(none.iter().all(|name| !far_end.has(name) && value(name).is_none()));
        for (size, count) in [(8, None), (64, Some(8)), (7, Some(7))] {
            let name = crate::far_end::updates_name(size, Some(2.5), std::time::Duration::from_nanos(9), "a-1");
            let made = value(&name).expect("it is a name");
            assert_eq!(made.get("value").and_then(Item::as_array).map(Array::len), count, "{name}");
            assert_eq!(far_end.take_made(), [name]);
        }
        let none = ["hodo:updates:8:0:0", "hodo:updates:8:0:0:", "hodo:updates:8:0:0:1:2", "hodo:updates:8001:0:0:1"];
        assert!(none.iter().all(|name| value(name).is_none()) && far_end.take_made().is_empty());
    }
}
