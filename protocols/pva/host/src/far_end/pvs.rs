//! The far end of a link: PVs of any size, made when a client opens them.
//!
//! | name | value |
//! |---|---|
//! | `hodo:double:N` | a double |
//! | `hodo:double:COUNT:N` | an array of doubles |
//! | `hodo:ubyte:COUNT:N` | an array of bytes |
//!
//! What is put becomes the value. All that have the same size share one array until they are put to.

use crate::machines::normative::Normative;
use crate::machines::server::{Access, Source};
use crate::machines::{Array, Datum, Scalar, Value};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Sizes of which an array is kept.
const KEPT: usize = 16;

/// The PVs of the far end.
#[derive(Debug)]
pub(crate) struct FarEnd {
    size_max: usize,
    arrays: Mutex<BTreeMap<(bool, usize), Array>>,
}

/// The value that the name of a PV asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Double,
    Doubles(usize),
    Bytes(usize),
}

impl FarEnd {
    /// Creates PVs of up to so many bytes.
    pub(crate) fn new(size_max: u32) -> Self {
        FarEnd { size_max: size_max as usize, arrays: Mutex::default() }
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
            ("double", _, Some(count)) if count <= self.size_max / size_of::<f64>() => Some(Content::Doubles(count)),
            ("ubyte", _, Some(count)) if count <= self.size_max => Some(Content::Bytes(count)),
            _ => None,
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

impl Source for FarEnd {
    fn has(&self, name: &str) -> bool {
        self.asked(name).is_some()
    }

    fn make(&self, name: &str) -> Option<(Value, Access)> {
        let (of, content): (Normative, Datum) = match self.asked(name)? {
            Content::Double => (Normative::scalar(Scalar::F64), 1.5.into()),
            Content::Doubles(count) => (Normative::scalar_array(Scalar::F64), self.array(true, count).into()),
            Content::Bytes(count) => (Normative::scalar_array(Scalar::U8), self.array(false, count).into()),
        };
        let mut value = Value::of(of.build());
        value.set_at(1, content).ok()?;
        Some((value, Access::Mailbox))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::Item;

    #[test]
    fn names_say_what_is_made() {
        let far_end = FarEnd::new(8000);
        let value = |name: &str| far_end.make(name).map(|(value, _)| value);
        assert_eq!(value("hodo:double:7").unwrap().get("value").and_then(Item::as_f64), Some(1.5));
        let array = value("hodo:double:1000:7").unwrap();
        assert_eq!(array.get("value").and_then(Item::as_array).unwrap().len(), 1000);
        assert_eq!(value("hodo:ubyte:3:0").unwrap().get("value").and_then(Item::as_array).unwrap().len(), 3);
        let none = ["hodo:double:1001:7", "hodo:double", "hodo:double:x", "hodo:text:1", "hodo:double:1:2:3", "other"];
        assert!(none.iter().all(|name| !far_end.has(name) && value(name).is_none()));
    }
}
