use crate::client::command::Update;
use crate::data::{BitSet, Plan, Value};
use crate::request::Delivery;
use crate::{Error, Reader, TypeCache};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The client's end of a monitor: the updates that wait to be taken, and the value that those taken so far make.
///
/// An update holds only the fields that changed. With one more than the queue takes the last two become one, and what was
/// overwritten is noted as overrun.
#[derive(Debug)]
pub(crate) struct Subscription {
    delivery: Delivery,
    waiting: VecDeque<Delta>,
    spare: Vec<Delta>,
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
    pub(crate) const fn new(delivery: Delivery) -> Self {
        Subscription {
            delivery,
            waiting: VecDeque::new(),
            spare: Vec::new(),
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
        match self.waiting.back_mut().filter(|_| is_full) {
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
                let fresh = || Delta { value: Value::new(plan), overrun: BitSet::new() };
                let spare = self.spare.pop().filter(|spare| Arc::ptr_eq(spare.value.plan(), plan));
                let mut delta = spare.unwrap_or_else(fresh);
                delta.value.decode_changed(reader, types)?;
                delta.overrun.decode(plan.len(), reader)?;
                self.waiting.push_back(delta);
                Ok(self.waiting.len() == 1)
            }
        }
    }

    /// Tells whether an update waits.
    pub(crate) fn has_update(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the next update, which is then the [current](Subscription::current) one; returns whether there was one.
    pub(crate) fn advance(&mut self) -> bool {
        let Some(mut delta) = self.waiting.pop_front() else { return false };
        match self.former.checked_sub(1) {
            Some(former) => self.former = former,
            None => self.taken += 1,
        }
        core::mem::swap(&mut self.overrun, &mut delta.overrun);
        match &mut self.value {
            Some(value) if Arc::ptr_eq(value.plan(), delta.value.plan()) => {
                value.take_changed(&mut delta.value);
                self.spare.push(delta);
            }
            value => *value = Some(delta.value),
        }
        true
    }

    /// Returns the update that was taken last.
    pub(crate) fn current(&self) -> Option<Update<'_>> {
        Some(Update { value: self.value.as_ref()?, overrun: &self.overrun })
    }
}
