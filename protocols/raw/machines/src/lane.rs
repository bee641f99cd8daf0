use crate::Error;
use alloc::collections::VecDeque;
use core::time::Duration;
use hodo_machine::Instant;

/// An operation that a later one has overtaken is given up this long, and two usual answer times, after it was sent:
/// networks reorder, and a far end's pause of a few milliseconds is no loss.
const OVERTAKEN: Duration = Duration::from_millis(2);
/// Operations given up that can still be recognised when they come late.
const LATE: usize = 1024;

/// The operations of one direction that are in flight, numbered without gaps.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    base: u64,
    slots: VecDeque<Slot>,
    answered_below: u64,
    /// The usual time of an answer, as TCP smooths its round-trip.
    answer_ns: u64,
    late: VecDeque<Late>,
}

/// An operation that was given up, and may still be answered.
#[derive(Debug)]
struct Late {
    sequence: u64,
    tag: u64,
    sent: Instant,
}

#[derive(Debug)]
struct Slot {
    tag: u64,
    sent: Instant,
    open: bool,
}

/// An answer over UDP, classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Done { tag: u64, reordered: bool },
    Recovered { tag: u64 },
    Duplicate,
    Unknown,
}

impl Lane {
    /// Takes an answer time as the usual one, before the first operation.
    pub(crate) fn expect(&mut self, answer: Duration) {
        self.answer_ns = answer.as_nanos() as u64;
    }

    /// Numbers an operation and keeps it until it is answered or given up.
    #[inline]
    pub(crate) fn push(&mut self, tag: u64, now: Instant) -> u64 {
        let sequence = self.next();
        self.slots.push_back(Slot { tag, sent: now, open: true });
        sequence
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of operations that were sent after the last of those that have been answered.
    #[inline]
    pub(crate) fn ahead(&self) -> u64 {
        self.next() - self.answered_below.max(self.base)
    }

    /// Returns when the oldest operation in flight is given up, if nothing is answered until then.
    pub(crate) fn given_up_at(&self, timeout: Duration) -> Option<Instant> {
        Some(self.slots.front()?.sent + self.patience(timeout))
    }

    /// Returns how long an answer is waited for: longer on a path whose answers take long.
    fn patience(&self, timeout: Duration) -> Duration {
        timeout.max(self.overtaken_after())
    }

    fn next(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Takes the answer to the oldest operation of a stream, and returns its tag.
    #[inline]
    pub(crate) fn answered_in_order(&mut self, sequence: u64) -> Result<u64, Error> {
        match self.slots.front() {
            Some(slot) if sequence == self.base => {
                let tag = slot.tag;
                self.slots.pop_front();
                self.base += 1;
                Ok(tag)
            }
            _ => Err(Error::OutOfOrder { due: self.base, came: sequence }),
        }
    }

    /// Takes the acknowledgement of every operation of a stream below `sequence`.
    pub(crate) fn acknowledged_below(&mut self, sequence: u64, mut done: impl FnMut(u64)) -> Result<(), Error> {
        if sequence > self.next() {
            return Err(Error::OutOfOrder { due: self.base, came: sequence });
        }
        while self.base < sequence {
            done(self.slots.pop_front().expect("base is below next, so a slot is there").tag);
            self.base += 1;
        }
        Ok(())
    }

    /// Takes an answer over UDP, in any order.
    #[inline]
    pub(crate) fn answered(&mut self, now: Instant, sequence: u64) -> Answer {
        if sequence < self.base {
            return self.came_late(now, sequence);
        }
        let Some(slot) = self.slots.get_mut((sequence - self.base) as usize) else { return Answer::Unknown };
        if !slot.open {
            return self.came_late(now, sequence);
        }
        slot.open = false;
        let (tag, sent) = (slot.tag, slot.sent);
        self.smooth(now.nanos_since(sent));
        let reordered = sequence < self.answered_below;
        self.answered_below = self.answered_below.max(sequence + 1);
        self.drop_closed();
        Answer::Done { tag, reordered }
    }

    /// Takes an acknowledgement over UDP of `count` operations from `first`; known ones are skipped.
    pub(crate) fn acknowledged(&mut self, now: Instant, first: u64, count: u64, mut told: impl FnMut(Answer)) {
        let end = first.saturating_add(count).min(self.next());
        let late: alloc::vec::Vec<u64> = if first < self.base && !self.late.is_empty() {
            self.late.iter().map(|late| late.sequence).filter(|late| (first..end).contains(late)).collect()
        } else {
            alloc::vec::Vec::new()
        };
        for sequence in late {
            told(self.came_late(now, sequence));
        }
        for sequence in first.max(self.base)..end {
            let index = (sequence - self.base) as usize;
            if self.slots[index].open {
                self.slots[index].open = false;
                told(Answer::Done { tag: self.slots[index].tag, reordered: false });
            }
        }
        if end > self.answered_below.max(self.base) {
            let sent = self.slots[(end - 1 - self.base) as usize].sent;
            self.smooth(now.nanos_since(sent));
        }
        self.answered_below = self.answered_below.max(end);
        self.drop_closed();
    }

    /// Gives up what has been in flight for longer than `timeout`, or was overtaken some time ago.
    pub(crate) fn expire(&mut self, now: Instant, timeout: Duration, mut lost: impl FnMut(u64)) {
        let (overtaken_after, at_last) = (self.overtaken_after(), self.patience(timeout));
        for (sequence, slot) in (self.base..).zip(self.slots.iter_mut()) {
            let patience = if sequence < self.answered_below { overtaken_after } else { at_last };
            if slot.sent + patience > now {
                break;
            }
            if slot.open {
                slot.open = false;
                if self.late.len() == LATE {
                    self.late.pop_front();
                }
                self.late.push_back(Late { sequence, tag: slot.tag, sent: slot.sent });
                lost(slot.tag);
            }
        }
        self.drop_closed();
    }

    /// Returns when [`Lane::expire`] would give up the oldest operation because it was overtaken.
    #[inline]
    pub(crate) fn overtaken_at(&self) -> Option<Instant> {
        let oldest = self.slots.front().filter(|_| self.base < self.answered_below)?;
        Some(oldest.sent + self.overtaken_after())
    }

    fn overtaken_after(&self) -> Duration {
        OVERTAKEN + Duration::from_nanos(2 * self.answer_ns)
    }

    #[inline]
    fn smooth(&mut self, took_ns: u64) {
        self.answer_ns = if self.answer_ns == 0 { took_ns } else { self.answer_ns - self.answer_ns / 8 + took_ns / 8 };
    }

    fn came_late(&mut self, now: Instant, sequence: u64) -> Answer {
        match self.late.iter().rposition(|late| late.sequence == sequence) {
            Some(index) => {
                let Late { tag, sent, .. } = self.late.remove(index).expect("found just now");
                self.smooth(now.nanos_since(sent));
                Answer::Recovered { tag }
            }
            None => Answer::Duplicate,
        }
    }

    #[inline]
    fn drop_closed(&mut self) {
        while self.slots.front().is_some_and(|slot| !slot.open) {
            self.slots.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const TIMEOUT: Duration = Duration::from_millis(10);

    fn lane_of(count: u64) -> Lane {
        let mut lane = Lane::default();
        for tag in 0..count {
            lane.push(tag, Instant::ZERO);
        }
        lane
    }

    #[test]
    fn answers_in_any_order_are_told_apart_from_duplicates() {
        let mut lane = lane_of(4);
        assert_eq!(lane.answered(Instant::ZERO, 2), Answer::Done { tag: 2, reordered: false });
        assert_eq!(lane.answered(Instant::ZERO, 0), Answer::Done { tag: 0, reordered: true });
        assert_eq!(lane.answered(Instant::ZERO, 0), Answer::Duplicate);
        assert_eq!(lane.answered(Instant::ZERO, 2), Answer::Duplicate);
        assert_eq!(lane.answered(Instant::ZERO, 4), Answer::Unknown);
    }

    #[test]
    fn gives_up_after_the_time_out_and_recovers_what_comes_late() {
        let mut lane = lane_of(3);
        lane.answered(Instant::ZERO, 1);
        let mut lost = Vec::new();
        lane.expire(Instant::ZERO + TIMEOUT, TIMEOUT, |tag| lost.push(tag));
        assert_eq!(lost, [0, 2]);
        assert!(lane.is_empty());
        assert_eq!(lane.answered(Instant::ZERO, 2), Answer::Recovered { tag: 2 });
        assert_eq!(lane.answered(Instant::ZERO, 2), Answer::Duplicate);
    }

    #[test]
    fn what_was_overtaken_is_lost_before_its_time_out() {
        let mut lane = lane_of(10);
        let later = Instant::ZERO + OVERTAKEN + OVERTAKEN / 2;
        lane.acknowledged(Instant::ZERO + OVERTAKEN / 8, 1, 5, |_| {});
        assert!(lane.overtaken_at().is_some_and(|at| at > Instant::ZERO + OVERTAKEN && at <= later));
        let mut lost = Vec::new();
        lane.expire(later, TIMEOUT, |tag| lost.push(tag));
        assert_eq!(lost, [0], "6 to 9 are not overtaken");
        assert_eq!(lane.overtaken_at(), None);
    }

    #[test]
    fn acknowledgements_repeat_themselves_without_harm() {
        let mut lane = lane_of(10);
        let mut done = Vec::new();
        for (first, count) in [(0, 3), (0, 5), (7, 100), (u64::MAX, u64::MAX)] {
            lane.acknowledged(Instant::ZERO, first, count, |answer| done.push(answer));
        }
        assert_eq!(done.len(), 8);
    }

    #[test]
    fn a_stream_that_skips_is_refused() {
        let mut lane = lane_of(2);
        assert_eq!(lane.answered_in_order(0), Ok(0));
        assert_eq!(lane.answered_in_order(2), Err(Error::OutOfOrder { due: 1, came: 2 }));
        assert_eq!(lane.acknowledged_below(9, |_| {}), Err(Error::OutOfOrder { due: 1, came: 9 }));
    }
}
