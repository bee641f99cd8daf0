use crate::Error;
use crate::client::{Event, Noticed, Queues};
use crate::tracker::Tracker;
use crate::wire::updates::{Ended, SUBSCRIBE, Stamp, Subscribe, Subscribed, UNSUBSCRIBE, encode_unsubscribe};
use crate::wire::{Header, Kind};
use core::time::Duration;
use hodo_machine::{Difference, Instant, Outbox};

/// A lease is renewed so often while it lasts, because a renewal may be lost.
const RENEWALS: u32 = 4;
/// Without a lease, a subscription is renewed so often: each answer tells the server's clock.
pub(crate) const CLOCK_READ: Duration = Duration::from_millis(250);

/// One channel's subscriptions, one after the other, and what came of them.
#[derive(Debug)]
pub(crate) struct Subscriber {
    number: u64,
    stage: Stage,
    ask: Subscribe,
    /// Whether a SUBSCRIBE or UNSUBSCRIBE is to be written.
    to_send: bool,
    /// When the last one was written, and whether it was answered.
    asked: Instant,
    answered: bool,
    repeat_after: Duration,
    renew_after: Duration,
    difference: Difference,
    arrivals: Tracker,
    /// Updates before this one came before the server's clock was known, and do not count.
    first: Option<u64>,
    /// Updates that the server says it has sent in all.
    sent: u64,
    skipped: u64,
    /// The counts of the subscriptions before this one.
    earlier: Noticed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Live,
    Leaving,
    Over,
}

impl Subscriber {
    /// Creates one without a subscription, which asks again after this time where it is not answered.
    pub(crate) fn new(repeat_after: Duration) -> Self {
        Subscriber {
            number: 0,
            stage: Stage::Over,
            ask: Subscribe::default(),
            to_send: false,
            asked: Instant::ZERO,
            answered: false,
            repeat_after,
            renew_after: CLOCK_READ,
            difference: Difference::default(),
            arrivals: Tracker::default(),
            first: None,
            sent: 0,
            skipped: 0,
            earlier: Noticed::default(),
        }
    }

    /// Begins a subscription; the one before it is over.
    pub(crate) fn subscribe(&mut self, ask: Subscribe) {
        self.earlier = self.noticed();
        (self.arrivals, self.first, self.sent, self.skipped) = (Tracker::default(), None, 0, 0);
        self.number += 1;
        (self.stage, self.ask, self.to_send, self.answered) = (Stage::Live, ask, true, false);
    }

    /// Ends the subscription; returns whether there is one.
    pub(crate) fn unsubscribe(&mut self) -> bool {
        let is_live = self.stage == Stage::Live;
        if is_live {
            (self.stage, self.to_send, self.answered) = (Stage::Leaving, true, false);
        }
        is_live
    }

    /// Returns whether a message is to be written.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.to_send
    }

    /// Writes that message.
    pub(crate) fn write(&mut self, now: Instant, proof: u64, out: &mut Outbox) {
        self.to_send = false;
        self.asked = now;
        if self.stage == Stage::Live {
            out.copy(&Header::new(Kind::Subscribe, SUBSCRIBE as u32, self.number).encode());
            out.copy(&Subscribe { proof, asked_ns: now.as_nanos(), ..self.ask }.encode());
        } else {
            out.copy(&Header::new(Kind::Unsubscribe, UNSUBSCRIBE as u32, self.number).encode());
            out.copy(&encode_unsubscribe(proof));
        }
    }

    /// Returns how far the far end's clock is ahead, and the error of that.
    pub(crate) fn far_clock(&self) -> Option<(i64, u64)> {
        self.difference.known()
    }

    /// Returns when the server is to be asked again: soon where it has not answered, within the lease where it has.
    pub(crate) fn next_check(&self, now: Instant) -> Option<Instant> {
        let from = if self.to_send { now } else { self.asked };
        match self.stage {
            Stage::Over => None,
            _ if !self.answered => Some(from + self.repeat_after),
            _ => Some(from + self.renew_after),
        }
    }

    /// Returns whether it is time to ask again, which the next message then does.
    pub(crate) fn check(&mut self, now: Instant) -> bool {
        let is_time = !self.to_send && self.next_check(now).is_some_and(|at| at <= now);
        self.to_send |= is_time;
        is_time
    }

    /// Takes a SUBSCRIBED, UPDATE or ENDED.
    #[inline]
    pub(crate) fn message(
        &mut self,
        now: Instant,
        header: &Header,
        body: &[u8],
        channel: u32,
        queues: &mut Queues,
    ) -> Result<(), Error> {
        match header.kind {
            Kind::Update => {
                let stamp = Stamp::decode(body)?;
                if self.stage != Stage::Over && header.count == self.number as u16 {
                    self.updated(now, header.sequence, stamp, channel, queues);
                }
            }
            Kind::Subscribed => {
                let Subscribed { asked_ns, now_ns, lease_ms } = Subscribed::decode(body)?;
                if self.stage == Stage::Live && header.sequence == self.number {
                    self.answered = true;
                    self.difference.read(asked_ns, now_ns, now);
                    let lease = Duration::from_millis(u64::from(lease_ms));
                    self.renew_after = if lease.is_zero() { CLOCK_READ } else { (lease / RENEWALS).min(CLOCK_READ) };
                }
            }
            _ => {
                let Ended { sent, skipped } = Ended::decode(body)?;
                if self.stage == Stage::Leaving && header.sequence == self.number {
                    (self.stage, self.answered) = (Stage::Over, true);
                    (self.sent, self.skipped) = (sent, skipped);
                    queues.events.push_back(Event::Unsubscribed { channel });
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn updated(&mut self, now: Instant, sequence: u64, stamp: Stamp, channel: u32, queues: &mut Queues) {
        let Some(took_ns) = self.difference.since(stamp.due_ns, now) else { return };
        if sequence < *self.first.get_or_insert(sequence) {
            return;
        }
        let before = self.arrivals.received;
        self.arrivals.arrived(sequence);
        self.skipped = self.skipped.max(stamp.skipped);
        if self.arrivals.received > before {
            queues.events.push_back(Event::Update { channel, took_ns });
        }
    }

    /// Returns what was irregular, of all subscriptions of the channel.
    pub(crate) fn noticed(&self) -> Noticed {
        let Tracker { next, received, duplicated, reordered, long_ago, .. } = self.arrivals;
        let due = self.first.map_or(0, |first| next.max(self.sent) - first);
        Noticed {
            duplicated: self.earlier.duplicated + duplicated + long_ago,
            reordered: self.earlier.reordered + reordered,
            lost: self.earlier.lost + due.saturating_sub(received),
            overrun: self.earlier.overrun + self.skipped,
            damaged: 0,
        }
    }
}
