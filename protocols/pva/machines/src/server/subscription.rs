use crate::data::{BitSet, Packed, Plan, Value};
use crate::request::Delivery;
use crate::wire::operation::{Reply, Subcommand};
use crate::wire::{Command, Status};
use crate::{Order, Writer};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// The updates that wait for one subscriber. One more than the queue takes, or than the client has room for, becomes part of the last one,
/// and what it overwrites is told as overrun.
#[derive(Debug)]
pub(crate) struct Subscription {
    delivery: Delivery,
    /// The updates in their order; those of numbers alone, without overrun, are in `packed`.
    waiting: VecDeque<Option<Box<Update>>>,
    packed: Packed,
    spare: Option<Box<Update>>,
    is_running: bool,
    /// Updates that the subscriber has allowed, where it says so.
    allowed: u32,
}

/// One update: a value whose changed fields are sent, and the fields of it that overwrote others.
#[derive(Debug)]
pub(crate) struct Update {
    pub(crate) value: Value,
    pub(crate) overrun: BitSet,
    /// The bytes of memory that it takes.
    bytes: usize,
}

/// The outcome of a change for a subscription.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// Whether there is something to send.
    pub(crate) has_news: bool,
    /// Whether it became part of an update that waits already.
    pub(crate) is_merged: bool,
}

impl Subscription {
    /// Creates a subscription that does not run yet, whose first update is the whole value.
    pub(crate) fn new(delivery: Delivery, allowed: u32, now: &Value, mask: &BitSet, held: &mut usize) -> Self {
        let allowed = if allowed == 0 { delivery.queue } else { allowed };
        let mut fresh = Subscription {
            delivery,
            waiting: VecDeque::new(),
            packed: Packed::default(),
            spare: None,
            is_running: false,
            allowed,
        };
        fresh.push(now, mask, &BitSet::new(), held, 0);
        fresh
    }

    /// Sends updates from now on, or no more.
    pub(crate) fn run(&mut self, runs: bool) {
        self.is_running = runs;
    }

    /// Allows so many further updates.
    pub(crate) fn allow(&mut self, updates: u32) {
        self.allowed = self.allowed.saturating_add(updates);
    }

    /// Takes in fields of a value that have changed, and returns whether they became part of an update that waits already. `overrun`
    /// names fields whose former content is missing. `held` counts the bytes of what waits for the client in all its subscriptions; with
    /// `held_max` of them, each holds no more than one update.
    pub(crate) fn push(
        &mut self,
        from: &Value,
        set: &BitSet,
        overrun: &BitSet,
        held: &mut usize,
        held_max: usize,
    ) -> bool {
        let is_full = self.waiting.len() >= self.delivery.queue as usize;
        let has_room = |bytes: usize| self.waiting.is_empty() || held.saturating_add(bytes) <= held_max;
        if !is_full && overrun.is_empty() && has_room(Packed::LONGEST) {
            let before = self.packed.bytes();
            if self.packed.push(from, set) {
                *held += self.packed.bytes() - before;
                self.waiting.push_back(None);
                return false;
            }
        }
        let is_merged = is_full || !has_room(from.bytes(set));
        if !is_merged {
            let update = blank(&mut self.spare, from.plan());
            self.waiting.push_back(Some(update));
        }
        self.unpack_last();
        if let Some(Some(last)) = self.waiting.back_mut() {
            last.value.merge(from, set, &mut last.overrun);
            let bytes = if is_merged { last.value.bytes(last.value.changed()) } else { from.bytes(set) };
            *held = *held - last.bytes + bytes;
            last.bytes = bytes;
            overrun.iter().filter(|number| set.has(*number)).for_each(|number| last.overrun.insert(number));
        }
        is_merged
    }

    /// Makes the last update one that others can be merged into.
    fn unpack_last(&mut self) {
        if let (Some(last @ None), Some(plan)) = (self.waiting.back_mut(), self.packed.plan()) {
            let mut update = blank(&mut self.spare, plan);
            update.bytes = self.packed.pop_back(&mut update.value);
            *last = Some(update);
        }
    }

    /// Tells whether an update may be sent.
    pub(crate) fn has_next(&self) -> bool {
        self.is_running && !self.waiting.is_empty() && (self.allowed > 0 || !self.delivery.pipeline)
    }

    /// Returns how many updates it takes at once, of which none waits or is merged; `None` unless it runs.
    pub(crate) fn room(&self) -> Option<u32> {
        let most = if self.delivery.pipeline { self.allowed.min(self.delivery.queue) } else { self.delivery.queue };
        self.is_running.then(|| most.saturating_sub(self.waiting.len() as u32))
    }

    /// Writes the next update that may be sent; returns whether there was one.
    pub(crate) fn write_next(&mut self, ioid: u32, writer: &mut Writer, held: &mut usize) -> bool {
        if !self.has_next() {
            return false;
        }
        Reply { ioid, subcommand: Subcommand::NONE, status: Status::OK }.begin(Command::Monitor, writer);
        if writer.order() == Order::Little && matches!(self.waiting.front(), Some(None)) {
            self.waiting.pop_front();
            self.allowed -= u32::from(self.delivery.pipeline);
            writer.bytes(self.packed.first());
            *held -= self.packed.drop_first();
        } else if let Some(update) = self.next(held) {
            update.value.encode_changed(writer);
            update.overrun.encode(writer);
            self.spare = Some(update);
        }
        writer.end();
        true
    }

    /// Returns the next update that may be sent.
    fn next(&mut self, held: &mut usize) -> Option<Box<Update>> {
        if !self.has_next() {
            return None;
        }
        self.allowed -= u32::from(self.delivery.pipeline);
        let next = match self.waiting.pop_front()? {
            Some(update) => update,
            None => {
                let mut update = blank(&mut self.spare, self.packed.plan()?);
                update.bytes = self.packed.pop_front(&mut update.value);
                update
            }
        };
        *held -= next.bytes;
        Some(next)
    }

    /// Returns the bytes of what waits.
    pub(crate) fn bytes(&self) -> usize {
        self.packed.bytes() + self.waiting.iter().flatten().map(|update| update.bytes).sum::<usize>()
    }
}

/// Returns an update in which nothing has changed.
#[inline]
fn blank(spare: &mut Option<Box<Update>>, plan: &Arc<Plan>) -> Box<Update> {
    let fresh = || Box::new(Update { value: Value::new(plan), overrun: BitSet::new(), bytes: 0 });
    let mut update = spare.take().filter(|spare| Arc::ptr_eq(spare.value.plan(), plan)).unwrap_or_else(fresh);
    update.value.unmark();
    update.overrun.clear();
    update.bytes = 0;
    update
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normative::Normative;
    use crate::{Item, Scalar};
    use alloc::vec::Vec;

    fn value(number: f64) -> Value {
        let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().build());
        value.set("value", number).expect("it fits");
        value
    }

    fn subscription(queue: u32, pipeline: bool) -> Subscription {
        let first = value(0.0);
        let mut made = Subscription::new(
            Delivery { queue, pipeline, acknowledge_every: 1 },
            0,
            &first,
            &first.plan().all(),
            &mut 0,
        );
        made.run(true);
        made
    }

    fn sent(subscription: &mut Subscription) -> Vec<(f64, bool)> {
        let mut all = Vec::new();
        while let Some(update) = subscription.next(&mut subscription.bytes()) {
            let number = update.value.get("value").and_then(Item::as_f64).expect("a number");
            all.push((number, update.overrun.has(1)));
            subscription.spare = Some(update);
        }
        all
    }

    #[test]
    fn what_does_not_fit_is_merged_into_the_last_and_told_as_overrun() {
        let mut subscription = subscription(2, false);
        for number in 1..=4 {
            subscription.push(
                &value(number.into()),
                &BitSet::from_iter([1]),
                &BitSet::new(),
                &mut (1 << 30),
                usize::MAX,
            );
        }
        assert_eq!(sent(&mut subscription), [(0.0, false), (4.0, true)]);
        subscription.push(&value(5.0), &BitSet::from_iter([1]), &BitSet::new(), &mut (1 << 30), usize::MAX);
        assert_eq!(sent(&mut subscription), [(5.0, false)]);
    }

    #[test]
    fn a_subscriber_who_counts_gets_as_many_as_it_allowed() {
        let mut subscription = subscription(3, true);
        assert_eq!(sent(&mut subscription).len(), 1);
        for number in 1..=3 {
            subscription.push(
                &value(number.into()),
                &BitSet::from_iter([1]),
                &BitSet::new(),
                &mut (1 << 30),
                usize::MAX,
            );
        }
        assert_eq!(sent(&mut subscription), [(1.0, false), (2.0, false)]);
        subscription.allow(1);
        assert_eq!(sent(&mut subscription), [(3.0, false)]);
    }

    #[test]
    fn a_stopped_one_keeps_its_updates() {
        let mut subscription = subscription(4, false);
        subscription.run(false);
        assert!(sent(&mut subscription).is_empty());
        subscription.run(true);
        assert_eq!(sent(&mut subscription).len(), 1);
    }
    #[test]
    fn what_the_client_has_no_room_for_is_merged() {
        let array = |of: i32| {
            let mut value = Value::of(Normative::scalar_array(Scalar::I32).build());
            value.set("value", alloc::vec![of; 1000]).expect("it fits");
            value
        };
        let (first, set) = (array(0), BitSet::from_iter([1]));
        let delivery = Delivery { queue: 100, pipeline: false, acknowledge_every: 1 };
        let mut held = 0;
        let mut subscription = Subscription::new(delivery, 0, &first, &first.plan().all(), &mut held);
        let merged: Vec<bool> =
            (1..=4).map(|of| subscription.push(&array(of), &set, &BitSet::new(), &mut held, 10_000)).collect();
        assert_eq!((merged, held), (alloc::vec![false, true, true, true], subscription.bytes()));
        assert!((8000..10_000).contains(&held), "{held}");
        subscription.run(true);
        let mut seen = Vec::new();
        while let Some(update) = subscription.next(&mut held) {
            let of = update.value.get("value").and_then(Item::as_array).and_then(|array| array.iter::<i32>()?.next());
            seen.push((of, update.overrun.has(1)));
        }
        assert_eq!((seen, held), (alloc::vec![(Some(0), false), (Some(4), true)], 0));
    }
}
