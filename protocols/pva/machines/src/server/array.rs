//! Parts of arrays: reading, writing and cutting the first array that a client asked for.

use crate::data::{BitSet, Length, Plan, Step, Value};
use crate::server::client::Talk;
use crate::server::operation::NOT_ALLOWED;
use crate::server::{Access, Shared};
use crate::wire::Status;
use crate::wire::operation::{ArrayPlace, ArraySlice, Operation as Front, Subcommand, decode_length};
use crate::{Array, Error, Reader, Type};
use alloc::boxed::Box;

/// The array that an operation is about, and what is to be read of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slicing {
    /// Number of the field.
    pub(crate) field: usize,
    slice: ArraySlice,
}

impl Slicing {
    /// Returns the first array of numbers, bools or texts among the fields that were asked for.
    pub(crate) fn of(plan: &Plan, mask: &BitSet) -> Option<Self> {
        let is_array = |number: &usize| matches!(plan.leaf(*number).map(|leaf| &leaf.step), Some(Step::Array(..)));
        let field = mask.iter().find(is_array)?;
        Some(Slicing { field, slice: ArraySlice { offset: 0, count: 0, stride: 1 } })
    }

    /// Returns what was asked for of a value.
    pub(crate) fn read(&self, value: &Value) -> Array {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let ArraySlice { offset, count, stride } = self.slice;
        self.array(value).part(whole(offset), whole(count), whole(stride))
    }

    /// Returns the array of a value.
    pub(crate) fn array(&self, value: &Value) -> Array {
        let array = value.at(self.field).and_then(crate::Item::as_array);
        array.cloned().unwrap_or_else(|| Array::empty(crate::Scalar::U8))
    }
}

impl Talk {
    /// Executes an operation on parts of an array.
    pub(crate) fn slice(
        &mut self,
        front: &Front,
        reader: &mut Reader<'_>,
        shared: &mut Shared,
    ) -> Result<Result<(), Status>, Error> {
        let at = front.subcommand;
        let Some(operation) = self.operations.at(front.ioid) else { return Ok(Ok(())) };
        let Some(slicing) = &mut operation.slicing else { return Ok(Ok(())) };
        if at.has(Subcommand::GET) {
            slicing.slice = ArraySlice::decode(reader)?;
        }
        if at.reads_array() {
            self.owed.push_back((front.ioid, at));
            return Ok(Ok(()));
        }
        let (slicing, number, sid) = (*slicing, operation.channel, operation.sid);
        if !self.rights(sid).put {
            return Ok(Err(Status::error(NOT_ALLOWED)));
        }
        let Some(channel) = shared.channel(number) else { return Ok(Err(Status::error("there is no such channel"))) };
        let plan = channel.value.plan().clone();
        let before = slicing.array(&channel.value);
        let max = reader.limits().value_bytes / before.scalar().least_width();
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let after = if at.has(Subcommand::GET_PUT) {
            before.resized(whole(decode_length(reader)?), max)
        } else {
            let ArrayPlace { offset, stride } = ArrayPlace::decode(reader)?;
            let mut elements = Array::empty(before.scalar());
            elements.decode_counted(reader)?;
            before.with_part(whole(offset), whole(stride), &elements, max)
        };
        if let Some(Type::Array(_, Length::Fixed(_))) = plan.field(slicing.field)
            && at.has(Subcommand::GET_PUT)
        {
            return Ok(Err(Status::error("the array has a fixed length")));
        }
        let mut value = Box::new(Value::new(&plan));
        let is_set = after.is_some_and(|after| value.set_at(slicing.field, after).is_ok());
        if !is_set {
            return Ok(Err(Status::error("the array would be longer than it may be")));
        }
        Ok(self.put(front.ioid, number, value, shared))
    }

    /// Puts the changed fields of a value to a channel, as its access says.
    pub(crate) fn put(
        &mut self,
        ioid: u32,
        number: u32,
        mut value: Box<Value>,
        shared: &mut Shared,
    ) -> Result<(), Status> {
        shared.counters.puts += 1;
        match shared.channel(number).map(|channel| channel.access) {
            None => return Err(Status::error("there is no such channel")),
            Some(Access::ReadOnly) => return Err(Status::error("the channel can only be read")),
            Some(Access::Mailbox) => {
                shared.put(number, &mut value);
                if let Some(operation) = self.operations.at(ioid) {
                    operation.put = Some(value);
                }
                self.answered(ioid, Ok(None));
            }
            Some(Access::Handled) => {
                let call = shared.call(self.peer, ioid);
                if let Some(operation) = self.operations.at(ioid) {
                    operation.call = Some(call);
                }
                shared.events.push_back(crate::server::Event::Put { call, peer: self.peer, channel: number, value });
            }
        }
        Ok(())
    }
}
