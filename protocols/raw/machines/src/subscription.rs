use crate::payload::Payload;
use crate::wire::updates::{ENDED, Ended, STAMP, SUBSCRIBED, Stamp, Subscribe, Subscribed};
use crate::wire::{HEADER, Header, Kind};
use core::time::Duration;
use hodo_machine::{Instant, Outbox};

/// Updates in a million seconds times nanoseconds, over this, are updates.
const MICRO_NANOS: u128 = 1_000_000_000_000_000;

/// The subscriptions of one peer, as its server has them: at most one lives at a time.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    live: Option<Subscription>,
    /// The number of the last subscription that has ended, and what came of it.
    ended: (u64, Ended),
    /// The clock of the client in the last SUBSCRIBE that is not answered.
    asked_ns: Option<u64>,
    owes_ended: bool,
}

/// One subscription. Its updates are numbers until they are sent, so that nothing of them is kept.
#[derive(Debug)]
struct Subscription {
    number: u64,
    size: u32,
    queue: u64,
    rate_micro: u64,
    /// When the first update is due.
    first: Instant,
    /// When the next one is due; without a rate that does not move.
    due: Instant,
    /// Nanoseconds that an update may be late before another has to be skipped.
    patience_ns: u64,
    /// Updates that were sent or skipped.
    next: u64,
    sent: u64,
    skipped: u64,
    /// Nothing is sent from then on, unless the client asks again.
    until: Instant,
}

impl Updates {
    /// Takes a SUBSCRIBE: a new subscription, or the renewal of the live one. What is left over from an earlier one is
    /// passed over.
    pub(crate) fn subscribe(&mut self, now: Instant, number: u64, ask: &Subscribe, lease: Option<Duration>) {
        if self.live.as_ref().map_or(self.ended.0 >= number, |live| live.number > number) {
            return;
        }
        let until = lease.map_or(Instant::MAX, |lease| now + lease);
        self.asked_ns = Some(ask.asked_ns);
        match &mut self.live {
            Some(live) if live.number == number => live.until = until,
            live => *live = Some(Subscription::new(now, number, ask, until)),
        }
    }

    /// Takes an UNSUBSCRIBE, which is answered as often as it comes.
    pub(crate) fn unsubscribe(&mut self, number: u64) {
        match self.live.take_if(|live| live.number <= number) {
            Some(live) if live.number == number => {
                self.ended = (number, Ended { sent: live.sent, skipped: live.skipped });
            }
            _ if self.live.is_none() && number > self.ended.0 => self.ended = (number, Ended::default()),
            _ => {}
        }
        self.owes_ended |= self.ended.0 == number;
    }

    /// Returns whether an answer is owed, or an update is due.
    #[inline]
    pub(crate) fn has_more(&self, now: Instant) -> bool {
        self.asked_ns.is_some() || self.owes_ended || self.live.as_ref().is_some_and(|live| live.is_due(now))
    }

    /// Returns when the next update is due.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        self.live.as_ref().filter(|live| now < live.until).map(|live| live.due)
    }

    /// Writes the answer that is owed, or the update that is due; whether that ends with a checksum stands beside its payload.
    #[inline]
    pub(crate) fn write(
        &mut self,
        now: Instant,
        lease: Option<Duration>,
        payload: (&mut Payload, bool),
        out: &mut Outbox,
    ) {
        if let Some(live) = &mut self.live {
            if let Some(asked_ns) = self.asked_ns.take() {
                let lease_ms = lease.map_or(0, |lease| lease.as_millis() as u32);
                out.copy(&Header::new(Kind::Subscribed, SUBSCRIBED as u32, live.number).encode());
                out.copy(&Subscribed { asked_ns, now_ns: now.as_nanos(), lease_ms }.encode());
            } else if live.is_due(now) {
                live.write(now, payload, out);
            }
        }
        self.asked_ns = self.asked_ns.filter(|_| self.live.is_some());
        if core::mem::take(&mut self.owes_ended) {
            out.copy(&Header::new(Kind::Ended, ENDED as u32, self.ended.0).encode());
            out.copy(&self.ended.1.encode());
        }
    }
}

impl Subscription {
    fn new(now: Instant, number: u64, ask: &Subscribe, until: Instant) -> Self {
        let (first, queue) = (now + Duration::from_nanos(ask.first_after_ns), u64::from(ask.queue.max(1)));
        Subscription {
            number,
            size: ask.size,
            queue,
            rate_micro: ask.rate_micro,
            first,
            due: first,
            patience_ns: after_ns(queue, ask.rate_micro).unwrap_or(u64::MAX),
            next: 0,
            sent: 0,
            skipped: 0,
            until,
        }
    }

    #[inline]
    fn is_due(&self, now: Instant) -> bool {
        now < self.until && now >= self.due
    }

    /// Skips the updates that no longer may wait.
    #[cold]
    fn skip(&mut self, now: Instant) {
        let due = u128::from(now.nanos_since(self.first)) * u128::from(self.rate_micro) / MICRO_NANOS;
        let due_in_all = u64::try_from(due).unwrap_or(u64::MAX - 1) + 1;
        let over = due_in_all.saturating_sub(self.next).saturating_sub(self.queue);
        (self.next, self.skipped) = (self.next + over, self.skipped + over);
        self.set_due();
    }

    fn set_due(&mut self) {
        if let Some(after_ns) = after_ns(self.next, self.rate_micro) {
            self.due = self.first + Duration::from_nanos(after_ns);
        }
    }

    /// Writes the oldest update that may still wait.
    #[inline]
    fn write(&mut self, now: Instant, (payload, is_checked): (&mut Payload, bool), out: &mut Outbox) {
        if now.nanos_since(self.due) >= self.patience_ns {
            self.skip(now);
        }
        let due_ns = if self.rate_micro > 0 { self.due.as_nanos() } else { now.as_nanos() };
        let length = self.size.max((HEADER + STAMP) as u32);
        let mut first = [0; HEADER + STAMP];
        let header = Header { count: self.number as u16, ..Header::new(Kind::Update, length, self.sent) };
        first[..HEADER].copy_from_slice(&header.encode());
        first[HEADER..].copy_from_slice(&Stamp { due_ns, skipped: self.skipped }.encode());
        payload.behind(&first, length as usize - HEADER - STAMP, is_checked, out);
        (self.next, self.sent) = (self.next.saturating_add(1), self.sent + 1);
        self.set_due();
    }
}

/// Returns the nanoseconds from the first update to the one with this number; `None` without a rate.
fn after_ns(number: u64, rate_micro: u64) -> Option<u64> {
    let after_ns = (u128::from(number) * MICRO_NANOS).checked_div(u128::from(rate_micro))?;
    Some(u64::try_from(after_ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const LEASE: Option<Duration> = Some(Duration::from_secs(1));
    /// A thousand a second.
    const KILOHERTZ: u64 = 1_000_000_000;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    fn subscribed(rate_micro: u64, queue: u32) -> Updates {
        let mut updates = Updates::default();
        updates.subscribe(at(0), 1, &Subscribe { rate_micro, queue, size: 64, ..Subscribe::default() }, LEASE);
        assert_eq!(written(&mut updates, at(0), 1)[0].0.kind, Kind::Subscribed);
        updates
    }

    /// Returns the headers and the first bodies of what is written now, `most` at most.
    fn written(updates: &mut Updates, now: Instant, most: usize) -> Vec<(Header, Stamp)> {
        let (mut payload, mut out, mut all) = (Payload::new(), Outbox::new(), Vec::new());
        while all.len() < most && updates.has_more(now) {
            updates.write(now, LEASE, (&mut payload, false), &mut out);
            let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
            let header = Header::decode(bytes.first_chunk().expect("a header")).expect("one of ours");
            assert_eq!(bytes.len(), HEADER + header.body());
            all.push((header, Stamp::decode(&bytes[HEADER..]).expect("two words")));
            out.clear();
        }
        all
    }

    fn due_us(updates: &mut Updates, now: Instant) -> Vec<u64> {
        written(updates, now, 100).iter().map(|(_, stamp)| stamp.due_ns / 1_000).collect()
    }

    #[test]
    fn each_is_sent_when_it_is_due() {
        let mut updates = subscribed(KILOHERTZ, 4);
        assert_eq!(due_us(&mut updates, at(0)), [0]);
        assert_eq!(updates.next_due(at(0)), Some(at(1000)));
        assert!(due_us(&mut updates, at(999)).is_empty());
        assert_eq!(due_us(&mut updates, at(3000)), [1000, 2000, 3000]);
    }

    #[test]
    fn the_oldest_are_skipped_where_too_many_wait() {
        let mut updates = subscribed(KILOHERTZ, 4);
        let late = written(&mut updates, at(9_500), 100);
        let each: Vec<(u64, u64, u64)> =
            late.iter().map(|(header, stamp)| (header.sequence, stamp.due_ns / 1_000, stamp.skipped)).collect();
        assert_eq!(each, [(0, 6000, 6), (1, 7000, 6), (2, 8000, 6), (3, 9000, 6)]);
    }

    #[test]
    fn without_a_rate_there_is_always_another() {
        let mut updates = subscribed(0, 4);
        let all = written(&mut updates, at(5), 50);
        assert!(
            all.iter()
                .zip(0..)
                .all(|((header, stamp), n)| header.sequence == n && *stamp == Stamp { due_ns: 5_000, skipped: 0 })
        );
        assert_eq!((all.len(), updates.next_due(at(5))), (50, Some(at(0))), "it is due already");
    }

    #[test]
    fn a_lease_that_is_not_renewed_pauses_and_a_late_renewal_goes_on() {
        let mut updates = subscribed(KILOHERTZ, 2);
        assert_eq!(due_us(&mut updates, at(999_900)), [998_000, 999_000]);
        assert!(!updates.has_more(at(1_000_000)) && updates.next_due(at(1_000_000)).is_none());
        updates.subscribe(at(1_500_000), 1, &Subscribe::default(), LEASE);
        let all = written(&mut updates, at(1_500_000), 100);
        assert_eq!(all[0].0.kind, Kind::Subscribed);
        let skipped: Vec<u64> = all[1..].iter().map(|(_, stamp)| stamp.skipped).collect();
        assert_eq!(skipped, [998 + 499, 998 + 499], "{all:?}");
    }

    #[test]
    fn the_end_is_told_as_often_as_it_is_asked_for_and_nothing_old_begins_again() {
        let mut updates = subscribed(KILOHERTZ, 4);
        due_us(&mut updates, at(2000));
        for _ in 0..2 {
            updates.unsubscribe(1);
            let ended = written(&mut updates, at(9_000), 9);
            assert_eq!(
                ended.iter().map(|(header, _)| (header.kind, header.sequence)).collect::<Vec<_>>(),
                [(Kind::Ended, 1)]
            );
            // Its body is as a stamp: three were sent, none skipped.
            assert_eq!(ended[0].1, Stamp { due_ns: 3, skipped: 0 });
        }
        updates.subscribe(at(9_000), 1, &Subscribe::default(), LEASE);
        assert!(!updates.has_more(at(9_000)), "a copy that comes late");
        updates.unsubscribe(7);
        updates.subscribe(at(9_000), 7, &Subscribe::default(), LEASE);
        assert_eq!(written(&mut updates, at(9_000), 9)[0].0.kind, Kind::Ended, "one that was overtaken by its end");
        updates.subscribe(at(9_000), 8, &Subscribe::default(), LEASE);
        updates.unsubscribe(3);
        assert_eq!(written(&mut updates, at(9_000), 1)[0].0.sequence, 8);
    }

    #[test]
    fn the_first_waits_for_its_turn() {
        for rate_micro in [0, KILOHERTZ] {
            let mut updates = Updates::default();
            let ask = Subscribe { rate_micro, first_after_ns: 5_000_000, ..Subscribe::default() };
            updates.subscribe(at(0), 1, &ask, None);
            assert_eq!(written(&mut updates, at(4_999), 9).len(), 1);
            assert_eq!(written(&mut updates, at(5_000), 1)[0].1.due_ns, 5_000_000);
        }
    }

    #[test]
    fn the_largest_numbers_are_no_panic() {
        let ask = Subscribe {
            rate_micro: u64::MAX,
            first_after_ns: u64::MAX,
            size: 0,
            queue: u32::MAX,
            ..Subscribe::default()
        };
        let mut updates = Updates::default();
        updates.subscribe(at(0), u64::MAX, &ask, None);
        written(&mut updates, Instant::MAX, 10);
        updates.subscribe(at(0), u64::MAX, &Subscribe { rate_micro: 1, ..ask }, LEASE);
        written(&mut updates, Instant::MAX, 10);
        updates.next_due(Instant::MAX);
    }
}
