use crate::client::command::Update;
use crate::data::{BitSet, Packed, Plan, Value};
use crate::request::Delivery;
use crate::{Error, Order, Reader, TypeCache};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// The client's end of a monitor: the updates that wait to be taken, and the value that those taken so far make.
///
/// An update holds only the fields that changed. With one more than the queue takes the last two become one, and what was
/// overwritten is noted as overrun.
#[derive(Debug)]
pub(crate) struct Subscription {
    delivery: Delivery,
    /// The updates in their order; those of numbers alone, without overrun, are in `packed`.
    waiting: VecDeque<Option<Box<Delta>>>,
    packed: Packed,
    spare: VecDeque<Box<Delta>>,
    /// The whole value, and the overrun of the last update.
    value: Option<Value>,
    overrun: BitSet,
    /// Whether the application wants updates, and whether the server has been asked for them.
    runs: bool,
    is_started: bool,
    /// Updates that were taken, and not acknowledged.
    taken: u32,
    /// Waiting updates of an earlier connection, which nobody acknowledges.
    former: usize,
    before: BitSet,
    merged: BitSet,
}

#[derive(Debug)]
struct Delta {
    value: Value,
    overrun: BitSet,
}

/// The next thing that a monitor has to say to its server.
pub(crate) enum Steer {
    Start,
    Stop,
    /// This many further updates may be sent.
    Acknowledge(u32),
}

impl Subscription {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Subscription {
            delivery,
            waiting: VecDeque::new(),
            packed: Packed::default(),
            spare: VecDeque::new(),
            value: None,
            overrun: BitSet::new(),
            runs: false,
            is_started: false,
            taken: 0,
            former: 0,
            before: BitSet::new(),
            merged: BitSet::new(),
        }
    }

    pub(crate) const fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Sets whether updates are wanted.
    pub(crate) const fn run(&mut self, runs: bool) {
        self.runs = runs;
    }

    /// Forgets what the server has been asked for: it is gone, or has ended the monitor.
    pub(crate) fn reset(&mut self) {
        self.is_started = false;
        self.taken = 0;
        self.former = self.waiting.len();
    }

    /// Returns the next thing to say, which counts as said.
    pub(crate) fn steer(&mut self) -> Option<Steer> {
        if self.runs != self.is_started {
            self.is_started = self.runs;
            return Some(if self.runs { Steer::Start } else { Steer::Stop });
        }
        self.owes_acknowledgement().then(|| Steer::Acknowledge(core::mem::take(&mut self.taken)))
    }

    /// Tells whether there is something to say.
    pub(crate) const fn has_more(&self) -> bool {
        self.runs != self.is_started || self.owes_acknowledgement()
    }

    /// Tells whether so many updates were taken that the server may send more.
    const fn owes_acknowledgement(&self) -> bool {
        self.delivery.pipeline && self.taken >= self.delivery.acknowledge_every
    }

    /// Reads an update; returns whether it is the only one that waits.
    ///
    /// # Errors
    /// An [`Error`] for what is no value of this type, or over the limits.
    pub(crate) fn push(
        &mut self,
        plan: &Arc<Plan>,
        reader: &mut Reader<'_>,
        types: &mut TypeCache,
    ) -> Result<bool, Error> {
        let is_full = self.waiting.len() - self.former >= self.delivery.queue as usize;
        if is_full {
            self.unpack_last();
        } else if reader.order() == Order::Little && self.packed.push_same(plan, reader.rest()) {
            reader.bytes(reader.rest().len())?;
            self.waiting.push_back(None);
            return Ok(self.waiting.len() == 1);
        }
        match self.waiting.back_mut().filter(|_| is_full).and_then(Option::as_mut) {
            Some(last) if Arc::ptr_eq(last.value.plan(), plan) => {
                self.before.assign(&last.value.changed);
                plan.expand(&mut self.before);
                last.value.decode_changed(reader, types)?;
                plan.expand(&mut last.value.changed);
                self.merged.decode(plan.len(), reader)?;
                last.overrun.unite(&self.merged);
                self.merged.assign(&self.before);
                self.merged.intersect(&last.value.changed);
                last.overrun.unite(&self.merged);
                last.value.changed.unite(&self.before);
                Ok(false)
            }
            _ => {
                let mut delta = blank(&mut self.spare, plan);
                delta.value.decode_changed(reader, types)?;
                delta.overrun.decode(plan.len(), reader)?;
                if delta.overrun.is_empty() && self.packed.push(&delta.value, &delta.value.changed) {
                    self.spare.push_back(delta);
                    self.waiting.push_back(None);
                } else {
                    self.waiting.push_back(Some(delta));
                }
                Ok(self.waiting.len() == 1)
            }
        }
    }

    /// Makes the last update one that others can be merged into.
    fn unpack_last(&mut self) {
        if let (Some(last @ None), Some(plan)) = (self.waiting.back_mut(), self.packed.plan()) {
            let mut delta = blank(&mut self.spare, plan);
            self.packed.pop_back(&mut delta.value);
            delta.overrun.clear();
            *last = Some(delta);
        }
    }

    /// Tells whether an update waits.
    pub(crate) fn has_update(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the next update, which is then the [current](Subscription::current) one; returns whether there was one.
    pub(crate) fn advance(&mut self) -> bool {
        let Some(next) = self.waiting.pop_front() else { return false };
        match self.former.checked_sub(1) {
            Some(former) => self.former = former,
            None => self.taken += 1,
        }
        let Some(mut delta) = next else {
            self.unpack_first();
            return true;
        };
        core::mem::swap(&mut self.overrun, &mut delta.overrun);
        match &mut self.value {
            Some(value) if Arc::ptr_eq(value.plan(), delta.value.plan()) => {
                value.take_changed(&mut delta.value);
                self.spare.push_back(delta);
            }
            value => *value = Some(delta.value),
        }
        true
    }

    /// Makes the first of the packed updates the current one.
    #[inline]
    fn unpack_first(&mut self) {
        let Some(plan) = self.packed.plan() else { return };
        let value = match &mut self.value {
            Some(value) if Arc::ptr_eq(value.plan(), plan) => value,
            value => value.insert(Value::new(plan)),
        };
        self.packed.pop_front(value);
        self.overrun.clear();
    }

    /// Returns the update that was taken last.
    pub(crate) fn current(&self) -> Option<Update<'_>> {
        Some(Update { value: self.value.as_ref()?, overrun: &self.overrun })
    }
}

/// Returns room for an update of values of this plan.
#[inline]
fn blank(spare: &mut VecDeque<Box<Delta>>, plan: &Arc<Plan>) -> Box<Delta> {
    let fresh = || Box::new(Delta { value: Value::new(plan), overrun: BitSet::new() });
    spare.pop_back().filter(|spare| Arc::ptr_eq(spare.value.plan(), plan)).unwrap_or_else(fresh)
}
