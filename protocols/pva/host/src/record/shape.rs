//! Which fields of a type have columns of their own.

use super::types;
use crate::machines::{BitSet, Plan, Type, Value};
use crate::{parse, show};
use hodo_machine::Bytes;
use std::sync::Arc;

/// A type, as the rows of a recording have it.
pub(crate) struct Shape {
    plan: Arc<Plan>,
    /// The type as text.
    pub(super) text: Bytes,
    /// The field `value`, if it is a scalar or an array of scalars; the whole, if that is one.
    pub(super) value: Option<usize>,
    pub(super) has_stamp: bool,
    pub(super) has_alarm: bool,
    pub(super) is_choice: bool,
    /// The leaves that have columns.
    covered: BitSet,
}

impl Shape {
    pub(crate) fn new(plan: &Arc<Plan>) -> Self {
        let value = if matches!(plan.of(), Type::Structure(_)) { plan.number("value") } else { Some(0) };
        let of = value.and_then(|number| plan.field(number));
        let is_choice = of.is_some_and(show::is_choice);
        let value = value.filter(|number| is_native(plan.field(*number)));
        let blank = Value::new(plan);
        let (has_stamp, has_alarm) = (blank.time_stamp().is_some(), blank.alarm().is_some());
        let mut covered = BitSet::from_iter(value);
        for (path, is_there) in [("timeStamp", has_stamp), ("alarm", has_alarm)] {
            covered.unite(&BitSet::from_iter(plan.number(path).filter(|_| is_there)));
        }
        plan.expand(&mut covered);
        let text = Bytes::from(types::text(plan.of()));
        Shape { plan: plan.clone(), text, value, has_stamp, has_alarm, is_choice, covered }
    }

    /// Returns the shape of the type that a text stands for; `None` for another text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(Shape::new(&Plan::new(types::parse(text)?)))
    }

    pub(crate) const fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub(super) fn is_of(&self, plan: &Arc<Plan>) -> bool {
        Arc::ptr_eq(&self.plan, plan)
    }

    /// Returns as JSON what has no column of its own: of a type whose value has one, the other fields that have changed, or
    /// `None` if none has; of any other type the whole.
    pub(super) fn json(&self, value: &Value) -> Option<String> {
        if self.value.is_none() {
            return Some(show::json(value, false));
        }
        let mut rest = value.changed().clone();
        self.plan.expand(&mut rest);
        let mut at = 0;
        while let Some(number) = self.covered.next(at) {
            rest.remove(number);
            at = number + 1;
        }
        if rest.is_empty() {
            return None;
        }
        let mut others = value.clone();
        others.unmark();
        let mut at = 0;
        while let Some(number) = rest.next(at) {
            others.mark(number);
            at = number + 1;
        }
        Some(show::json(&others, true))
    }

    /// Sets the fields that JSON names.
    pub(super) fn set_json(value: &mut Value, json: &str) -> Result<(), String> {
        parse::json(value, "", json).map_err(|why| why.to_string())
    }
}

fn is_native(of: Option<&Type>) -> bool {
    matches!(of, Some(Type::Scalar(_) | Type::Array(..) | Type::BoundedText(_)))
}
