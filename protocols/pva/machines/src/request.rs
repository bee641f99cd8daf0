//! The request with which a client sets an operation up: which fields it wants, and with which options.
//!
//! As a text: `field(value,alarm{severity,status},timeStamp)record[queueSize=4,pipeline=true]`. `field()` or nothing is everything;
//! a list of fields alone is that of `field`; `alarm.severity` is `alarm{severity}`; a field may have options of its own, as
//! `value[deadband=abs:0.1]`. An operation that puts and gets has `putField()` and `getField()` in place of `field()`.

mod parser;

use crate::data::{BitSet, Item, Plan, Scalar, Type, Value};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use thiserror::Error;

pub use parser::{DEPTH_MAX, Unreadable};

/// Name of the structure of options.
const OPTIONS: &str = "_options";

/// Which fields, and with which options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The fields of most operations.
    pub field: Selection,
    /// The fields that an operation puts which also gets.
    pub put_field: Option<Selection>,
    /// The fields that an operation gets which also puts.
    pub get_field: Option<Selection>,
    /// Options of the operation: name and value.
    pub options: Vec<(String, String)>,
}

/// Fields of a structure, with the selections within them. None selected is all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Name of each field, and what is selected in it.
    pub fields: Vec<(String, Selection)>,
    /// Options: name and value.
    pub options: Vec<(String, String)>,
}

/// How a monitor delivers updates, from the options of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Updates that wait for the subscriber at most; the last ones become one.
    pub queue: u32,
    /// Whether the subscriber says how many updates may be sent, so that none is lost on the way to it.
    pub pipeline: bool,
    /// After how many updates the subscriber says so again.
    pub acknowledge_every: u32,
}

/// Updates that wait for a subscriber who does not say.
const QUEUE: u32 = 4;

impl Delivery {
    /// Reads `queueSize`, `pipeline` and `ackAny` (a number, or a share of the queue as `25%`). An option that is no number is ignored;
    /// a queue is at least 1 and at most `queue_max`, and is acknowledged at half of it.
    #[must_use]
    pub fn of(request: &Request, queue_max: u32) -> Self {
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let queue = request.option("queueSize").and_then(number).unwrap_or(QUEUE).clamp(1, queue_max.max(1));
        let every = request.option("ackAny").and_then(|text| match text.trim().strip_suffix('%') {
            Some(share) => number(share).map(|share| (u64::from(queue) * u64::from(share.min(100)) / 100) as u32),
            None => number(text),
        });
        Delivery {
            queue,
            pipeline: request.option("pipeline").is_some_and(|text| matches!(text.trim(), "true" | "1")),
            acknowledge_every: every.unwrap_or(queue / 2).clamp(1, queue),
        }
    }
}

/// None of the fields that were asked for is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("none of the requested fields exists")]
pub struct NothingSelected;

impl Request {
    /// Returns an option by its name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value that is sent.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Vec::new();
        let mut texts = Vec::new();
        if !self.options.is_empty() {
            let record = Selection { fields: Vec::new(), options: self.options.clone() };
            fields.push(("record", record.to_type("record", &mut texts)));
        }
        let is_plain = self.put_field.is_none() && self.get_field.is_none();
        let field = (is_plain || !self.field.fields.is_empty()).then_some(&self.field);
        for (name, selection) in
            [("field", field), ("putField", self.put_field.as_ref()), ("getField", self.get_field.as_ref())]
        {
            if let Some(selection) = selection {
                fields.push((name, selection.to_type(name, &mut texts)));
            }
        }
        let mut value = Value::of(Type::structure("", fields));
        for (path, text) in texts {
            value.set(&path, text.as_str()).expect("the type was made with this field");
        }
        value
    }

    /// Reads the value that a client sent. What is not understood is left out.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let selection = |name| match value.get(name) {
            Some(Item::Structure(value, number)) => Some(Selection::read(value, number)),
            _ => None,
        };
        Request {
            field: selection("field").unwrap_or_default(),
            put_field: selection("putField"),
            get_field: selection("getField"),
            options: selection("record").map(|record| record.options).unwrap_or_default(),
        }
    }
}

impl Selection {
    /// Returns the leaves of a value that are selected. Fields that are not there are left out, as other servers do.
    ///
    /// # Errors
    /// [`NothingSelected`] if fields are named, and none of them is there.
    pub fn mask(&self, plan: &Plan) -> Result<BitSet, NothingSelected> {
        let mut set = BitSet::new();
        self.select(plan, 0, &mut set);
        plan.expand(&mut set);
        // A structure without fields has no leaves; all of it is nothing.
        if set.is_empty() && !self.fields.is_empty() { Err(NothingSelected) } else { Ok(set) }
    }

    fn select(&self, plan: &Plan, number: usize, set: &mut BitSet) {
        if self.fields.is_empty() {
            set.insert(number);
        }
        for (name, within) in &self.fields {
            if let Some(child) = plan.child(number, name) {
                let is_structure = matches!(plan.field(child), Some(Type::Structure(_)));
                if is_structure { within.select(plan, child, set) } else { set.insert(child) }
            }
        }
    }

    fn to_type(&self, path: &str, texts: &mut Vec<(String, String)>) -> Type {
        let mut fields = Vec::new();
        if !self.options.is_empty() {
            let named = |(name, _): &(String, String)| (name.clone(), Type::from(Scalar::Text));
            fields.push((OPTIONS.to_string(), Type::structure("", self.options.iter().map(named))));
            for (name, value) in &self.options {
                texts.push((alloc::format!("{path}.{OPTIONS}.{name}"), value.clone()));
            }
        }
        for (name, within) in &self.fields {
            fields.push((name.clone(), within.to_type(&alloc::format!("{path}.{name}"), texts)));
        }
        Type::structure("", fields)
    }

    fn read(value: &Value, number: usize) -> Selection {
        let mut selection = Selection::default();
        let plan = value.plan();
        for child in plan.children(number) {
            match (plan.name(child), value.at(child)) {
                (OPTIONS, Some(Item::Structure(value, number))) => {
                    let option = |child| Some((plan.name(child).to_string(), text(value.at(child)?)?));
                    selection.options = plan.children(number).filter_map(option).collect();
                }
                (name, Some(Item::Structure(value, number))) => {
                    selection.fields.push((name.to_string(), Selection::read(value, number)));
                }
                // A leaf by the name of a field selects that field.
                (name, _) => selection.fields.push((name.to_string(), Selection::default())),
            }
        }
        selection
    }
}

/// Returns an option's value: clients send texts, numbers and bools.
fn text(item: Item<'_>) -> Option<String> {
    Some(match item {
        Item::Text(text) => text.to_string(),
        Item::Bool(value) => value.to_string(),
        Item::Int(value) => value.to_string(),
        Item::Uint(value) => value.to_string(),
        Item::Float(value) => value.to_string(),
        Item::Any(Some(value)) => text(value.at(0)?)?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
