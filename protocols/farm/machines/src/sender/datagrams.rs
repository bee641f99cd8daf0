use super::{AGAIN, Kept, PEER, Sender};
use crate::wire::Segment;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;
use hodo_machine::{Instant, Outbox};

/// Datagrams on their way at first, and when many were lost.
const FEW: u64 = 10;
/// Bytes on their way at most: several sources at once are to fit into the socket of their builder.
const MANY: u64 = 512 << 10;
/// Between two parts of an event that is larger than what may be on its way.
const PAUSE: Duration = Duration::from_millis(5);
/// The least time until the builder is asked for what it may not have got.
const SOON: Duration = Duration::from_millis(4);
/// When one that waits at the builder is asked for anew: its token may have been lost.
const ASK: Duration = Duration::from_millis(800);

/// Where an event is, over datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// With the giver: not sent, or being sent now.
    Kept,
    /// On its way, all of it since the first instant; the builder is asked for it at the second.
    Sent(Instant, Instant),
    /// These parts of it were lost, and are sent again.
    Lost(Vec<Range<u32>>),
    /// At the builder, which is asked for it at this instant, since its token may have been lost.
    There(Instant),
}

/// An event whose segments are being sent, and the parts of it that are still to be sent, the first one last.
#[derive(Debug)]
pub(super) struct Amid {
    pub(super) index: usize,
    parts: Vec<Range<u32>>,
}

/// How much is on its way over datagrams: more while all of it arrives, half where something is lost, as TCP has it. So
/// that who gives faster than the network or the builder takes does not go on to lose it.
#[derive(Debug)]
pub(super) struct Flow {
    limit: u64,
    /// Up to here it grows by all that arrives, beyond it slowly.
    doubled_to: u64,
    on_way: u64,
    /// Until then, further losses do not halve the limit again.
    cut_at: Instant,
    /// No event's time is over before.
    due: Instant,
    lost: usize,
    /// From the last segment of an event to the word that all of it is there, smoothed.
    round_trip: Duration,
    /// Bytes that were sent since the last pause, and when that is over.
    burst: u64,
    paused_until: Instant,
    /// Events that were sent again, each time counted.
    pub(super) again: u64,
    /// Whether the builder is to be told what it is asked for.
    pub(super) says_what: bool,
}

impl Flow {
    pub(super) fn new(datagram: Option<u32>) -> Self {
        let few = FEW * u64::from(datagram.unwrap_or(0).max(1));
        Flow {
            limit: few,
            doubled_to: MANY,
            on_way: 0,
            cut_at: Instant::ZERO,
            due: Instant::MAX,
            lost: 0,
            round_trip: AGAIN / 4,
            burst: 0,
            paused_until: Instant::ZERO,
            again: 0,
            says_what: false,
        }
    }

    /// Begins a new connection, over which nothing is on its way.
    pub(super) fn restart(&mut self, datagram: Option<u32>) {
        *self = Flow { again: self.again, ..Flow::new(datagram) };
    }

    fn has_room(&self, size: u64) -> bool {
        self.on_way == 0 || self.on_way + size <= self.limit
    }

    fn arrived(&mut self, size: u64) {
        self.on_way = self.on_way.saturating_sub(size);
        let more = if self.limit < self.doubled_to { size } else { (size * size / self.limit).max(1) };
        self.limit = (self.limit + more).min(MANY);
    }

    fn lost(&mut self, now: Instant, size: u64, datagram: Option<u32>) {
        self.on_way = self.on_way.saturating_sub(size);
        self.lost += 1;
        if now >= self.cut_at {
            self.limit = (self.limit / 2).max(FEW * u64::from(datagram.unwrap_or(0).max(1)));
            (self.doubled_to, self.cut_at) = (self.limit, now + AGAIN);
        }
    }
}

impl Kept {
    /// Bytes that it takes on its way.
    fn weight(&self) -> u64 {
        self.payload.len() as u64 + 1
    }
}

impl Sender {
    /// Events that were sent again over datagrams, each time counted.
    pub(crate) const fn sent_again(&self) -> u64 {
        self.flow.again
    }

    /// Returns when a datagram may have to be sent without anything having come.
    pub(super) fn datagrams_due(&self) -> Option<Instant> {
        let due = if self.amid.is_some() { self.flow.paused_until } else { self.flow.due };
        (due < Instant::MAX).then_some(due)
    }

    /// Tells whether a new event may be put on its way.
    pub(super) fn may_begin(&self, index: usize) -> bool {
        self.kept.get(index).is_some_and(|kept| self.flow.has_room(kept.weight()))
    }

    /// Notes that the builder has this fragment, or that the fragment is not kept any more.
    pub(super) fn arrived(&mut self, now: Instant, index: usize) {
        let Some(kept) = self.kept.get_mut(index) else { return };
        let before = core::mem::replace(&mut kept.way, Way::There(now + ASK));
        self.flow.due = self.flow.due.min(now + ASK);
        match before {
            Way::Sent(since, _) => {
                if kept.times == 1 {
                    self.flow.round_trip = (self.flow.round_trip * 7 + (now - since)) / 8;
                }
                self.flow.arrived(kept.weight());
            }
            Way::Lost(_) => self.flow.lost -= 1,
            // The rest of one that is being sent again is not wanted.
            Way::Kept if self.amid.as_ref().is_some_and(|amid| amid.index == index) => {
                self.amid = None;
                self.flow.arrived(kept.weight());
            }
            Way::Kept | Way::There(_) => {}
        }
    }

    /// Writes the next segment: of the event that is being sent, of one that was lost, or of one that is asked for.
    /// Returns whether there was one.
    pub(super) fn segment(&mut self, now: Instant, out: &mut Outbox) -> bool {
        if self.lines.at(PEER).is_none_or(|line| line.blocked) {
            return false;
        }
        if self.amid.is_none() {
            if self.flow.due <= now
                && let Some(index) = self.look_for_overdue(now)
            {
                self.put(index, 0..0, out);
                return true;
            }
            if self.flow.lost > 0 {
                self.begin_lost();
            }
        }
        let (Some(amid), Some(size)) = (&mut self.amid, self.config.datagram) else { return false };
        if now < self.flow.paused_until {
            return false;
        }
        let (index, part) = (amid.index, amid.parts.pop().unwrap_or(0..0));
        let end = part.end.min(part.start.saturating_add(size.max(1)));
        if end < part.end {
            amid.parts.push(end..part.end);
        }
        let is_last = amid.parts.is_empty();
        self.put(index, part.start..end, out);
        if is_last {
            self.amid = None;
            self.flow.burst = 0;
            self.wait_for(now, index);
        } else {
            self.flow.burst += u64::from(end - part.start);
            if self.flow.burst >= self.flow.limit {
                (self.flow.burst, self.flow.paused_until) = (0, now + PAUSE);
            }
        }
        true
    }

    /// Starts the time in which the builder has to say that it has this event.
    fn wait_for(&mut self, now: Instant, index: usize) {
        let kept = &mut self.kept[index];
        let first = (self.flow.round_trip * 4).clamp(SOON, AGAIN);
        let until = now + (first * (1 << kept.times.min(7))).min(ASK);
        kept.times = kept.times.saturating_add(1);
        kept.way = Way::Sent(now, until);
        self.flow.due = self.flow.due.min(until);
    }

    fn put(&mut self, index: usize, part: Range<u32>, out: &mut Outbox) {
        let Kept { run, event, kind, ref payload, .. } = self.kept[index];
        let (source, total) = (self.config.number, payload.len() as u32);
        let length = part.end - part.start;
        let asks = length == 0 && total > 0 && self.flow.says_what;
        let offset = if asks { crc32fast::hash(payload) } else { part.start };
        out.copy(&Segment { event, run, source, kind, offset, total, length }.encode());
        out.share(payload.slice(part.start as usize..part.end as usize));
    }

    /// Begins to send an event.
    pub(super) fn begin(&mut self, index: usize) {
        let whole = 0..self.kept[index].payload.len() as u32;
        self.begin_parts(index, [whole].to_vec());
    }

    fn begin_parts(&mut self, index: usize, parts: Vec<Range<u32>>) {
        let kept = &mut self.kept[index];
        kept.way = Way::Kept;
        self.flow.on_way += kept.weight();
        self.amid = Some(Amid { index, parts });
    }

    /// Notes that the builder lacks these parts of an event.
    pub(super) fn lacks(&mut self, now: Instant, index: usize, mut parts: Vec<Range<u32>>) {
        let Some(kept) = self.kept.get_mut(index) else { return };
        let total = kept.payload.len() as u32;
        // Only of one that was waited for: what it has not is still coming otherwise.
        if !matches!(kept.way, Way::Sent(..)) || kept.times < 2 || parts.iter().any(|part| part.end > total) {
            return;
        }
        parts.reverse();
        (kept.way, kept.times) = (Way::Lost(parts), 0);
        self.flow.lost(now, kept.weight(), self.config.datagram);
    }

    /// Returns the first event that the builder is to be asked for now.
    fn look_for_overdue(&mut self, now: Instant) -> Option<usize> {
        let mut due = Instant::MAX;
        for (index, kept) in self.kept.iter_mut().take(self.next).enumerate() {
            match &mut kept.way {
                Way::Sent(_, until) if *until <= now => {
                    self.wait_for(now, index);
                    return Some(index);
                }
                Way::There(until) if *until <= now => {
                    *until = now + ASK;
                    return Some(index);
                }
                Way::Sent(_, until) | Way::There(until) => due = due.min(*until),
                Way::Kept | Way::Lost(_) => {}
            }
        }
        self.flow.due = due;
        None
    }

    /// Begins to send the first of those that were lost, where there is room for it.
    fn begin_lost(&mut self) {
        let is_lost = |kept: &Kept| matches!(kept.way, Way::Lost(_));
        let Some(index) = self.kept.iter().take(self.next).position(is_lost) else { return };
        if !self.may_begin(index) {
            return;
        }
        if let Way::Lost(parts) = core::mem::replace(&mut self.kept[index].way, Way::Kept) {
            self.flow.lost -= 1;
            self.flow.again += 1;
            self.begin_parts(index, parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_while_all_of_it_arrives_and_is_halved_once_for_what_is_lost_together() {
        let (mut flow, now) = (Flow::new(Some(1400)), Instant::ZERO + AGAIN);
        assert!(flow.has_room(1 << 20), "one is always on its way");
        let give = |flow: &mut Flow, times: u32| {
            for _ in 0..times {
                flow.on_way += 1400;
                flow.arrived(1400);
            }
            flow.limit
        };
        assert_eq!(give(&mut flow, 20), 30 * 1400, "each that arrives lets two more on their way");
        flow.on_way = 30 * 1400;
        (0..10).for_each(|_| flow.lost(now, 1400, Some(1400)));
        assert_eq!((flow.limit, flow.lost, flow.on_way), (15 * 1400, 10, 20 * 1400));
        assert!(!flow.has_room(1400));
        flow.on_way = 0;
        assert!((15 * 1400 + 1000..17 * 1400).contains(&give(&mut flow, 15)), "one more for all of them");
        (0..10).for_each(|round| flow.lost(now + (round + 1) * AGAIN, 1400, Some(1400)));
        assert_eq!(flow.limit, FEW * 1400);
        assert_eq!(give(&mut flow, 1_000_000), MANY);
    }
}
