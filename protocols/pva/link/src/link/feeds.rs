//! The monitors of a link, one for each channel that is subscribed.

use super::reporter::Reporter;
use crate::far_end::{DUE, NUMBER};
use hodo_machine::Instant;
use hodo_measure::{Completion, Outcome};
use hodo_pva::client::Client;
use hodo_pva::{Item, Request};

/// The monitors of a link.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    each: Vec<Feed>,
    /// The place in `each` of each channel of the link, and of each operation of the client.
    by_channel: Places,
    by_operation: Places,
    /// Operations for which updates wait.
    pub(super) waiting: Vec<u32>,
    /// Channels whose subscription has ended and was not reported.
    pub(super) ended: Vec<u32>,
    /// Updates that did not arrive, because others took their place.
    pub(super) overrun: u64,
    /// How many are live, and how many there have been so far.
    live: u32,
    count: u64,
}

/// The monitor of a channel. The client's numbers are used again.
#[derive(Debug)]
pub(super) struct Feed {
    /// The channel of the link.
    channel: u32,
    pub(super) pv: u32,
    pub(super) operation: u32,
    is_live: bool,
    /// Number of the last update that was counted.
    last: Option<u64>,
}

impl Feeds {
    /// Returns a monitor for a channel, and a number that no other has. `fresh` makes numbers for the client.
    pub(super) fn begin(&mut self, channel: u32, fresh: impl FnOnce() -> (u32, u32)) -> (&Feed, u64) {
        self.count += 1;
        let place = self.by_channel.get(channel).unwrap_or_else(|| {
            let (pv, operation) = fresh();
            self.each.push(Feed { channel, pv, operation, is_live: false, last: None });
            let place = self.each.len() - 1;
            self.by_channel.set(channel, place);
            self.by_operation.set(operation, place);
            place
        });
        let feed = &mut self.each[place];
        self.live += u32::from(!feed.is_live);
        (feed.is_live, feed.last) = (true, None);
        (feed, self.count)
    }

    /// Tells whether there is no subscription.
    #[inline]
    pub(super) const fn is_idle(&self) -> bool {
        self.live == 0
    }

    /// Ends all that are live; `close` is given the client's number of each channel.
    pub(super) fn end(&mut self, mut close: impl FnMut(u32)) {
        for feed in self.each.iter_mut().filter(|feed| feed.is_live) {
            feed.is_live = false;
            self.live -= 1;
            close(feed.pv);
            self.ended.push(feed.channel);
        }
    }

    /// Takes the updates that wait.
    pub(super) fn take(&mut self, client: &mut Client, reporter: &Reporter, now: Instant, done: &mut Vec<Completion>) {
        for operation in self.waiting.drain(..) {
            let Some(place) = self.by_operation.get(operation) else { continue };
            let Some(feed) = self.each.get_mut(place).filter(|feed| feed.is_live) else { continue };
            while let Some(update) = client.next_update(operation) {
                let number = |place| match update.value.at(place) {
                    Some(Item::Uint(number)) => number,
                    _ => 0,
                };
                // The first value is no update, and those before the far end's clock is known have no age.
                let (number, due_ns) = (number(NUMBER), number(DUE));
                let Some(took_ns) = reporter.since(due_ns, now).filter(|_| number > 0) else { continue };
                let before = feed.last.replace(number).unwrap_or(number - 1);
                self.overrun += number.saturating_sub(before).saturating_sub(1);
                done.push(Completion { tag: u64::from(feed.channel), outcome: Outcome::Update { took_ns } });
            }
        }
    }
}

/// Places in a table by small numbers.
#[derive(Debug, Default)]
struct Places(Vec<Option<u32>>);

impl Places {
    #[inline]
    fn get(&self, number: u32) -> Option<usize> {
        self.0.get(number as usize).copied().flatten().map(|place| place as usize)
    }

    fn set(&mut self, number: u32, place: usize) {
        if self.0.len() <= number as usize {
            self.0.resize(number as usize + 1, None);
        }
        self.0[number as usize] = Some(place as u32);
    }
}

/// Returns the request of a monitor that loses nothing unless more than `queue` updates wait.
pub(super) fn request(queue: u32) -> Request {
    format!("field(value,due_ns,number)record[queueSize={queue},pipeline=true]").parse().expect("a request")
}
