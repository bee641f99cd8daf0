use super::Standing;
use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Range;
use hodo_machine::Ranges;

/// Ranges that each source may begin however many the others have begun.
pub(super) const RESERVE: usize = 64;
/// Sources of a run whose positions are kept.
const POSITIONS_MAX: usize = 4096;

/// The events of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    pub(super) number: u32,
    /// Ranges with which those that the sources have passed are merged. With twice as many, a source may begin another only within its
    /// reserve.
    ranges_max: usize,
    /// Numbers that came, and all that were passed.
    seen: Ranges,
    /// Those of them that are not in hand, and all that were passed.
    decided: Ranges,
    passed: Ranges,
    /// Passed, and in hand.
    behind: BTreeSet<u64>,
    pub(super) in_hand: u64,
    /// Events with a verdict.
    pub(super) decided_count: u64,
    /// The end of what an earlier process has decided.
    recovered: u64,
    /// With so many ranges the lowest are merged next.
    merge_at: usize,
    /// Events that were offered, and how many when a merge was last tried with too many ranges.
    offers: u64,
    tried: u64,
    positions: BTreeMap<u32, Position>,
    /// The first event behind each gap that a source has opened out of its reserve.
    reserved: BTreeMap<u64, u32>,
}

/// The position of a source in a run.
#[derive(Debug, Clone, Default)]
struct Position {
    /// The last event that it gave.
    last: u64,
    /// The place of that event among the offers of the run.
    offer: u64,
    is_connected: bool,
}

impl Run {
    pub(super) fn new(number: u32, ranges_max: usize) -> Self {
        Run { number, ranges_max, ..Run::default() }
    }

    /// Enters a range of what an earlier process has decided.
    pub(super) fn recover(&mut self, range: Range<u64>) {
        self.recovered = self.recovered.max(range.end);
        self.seen.insert_range(range.clone());
        self.decided.insert_range(range);
        if self.seen.ranges() >= self.ranges_max {
            self.merge(u64::MAX);
        }
    }

    /// Takes an event of a source in, where it is new.
    #[inline]
    pub(super) fn offer(&mut self, source: u32, event: u64) -> Standing {
        self.offers += 1;
        if !self.seen.touches(event..event + 1) && !self.make_room(source, event) {
            return Standing::Passed;
        }
        if !self.reserved.is_empty() {
            self.fill(event);
        }
        self.at(source, event);
        self.enter(event)
    }

    /// Takes an event in, where it is new.
    #[inline]
    pub(super) fn enter(&mut self, event: u64) -> Standing {
        if self.seen.insert(event) {
            self.in_hand += 1;
            return Standing::New;
        }
        match self.decided.contains(event) {
            false => Standing::InHand,
            true if !self.passed.contains(event) => Standing::Decided,
            true if self.behind.contains(&event) => Standing::InHand,
            true => Standing::Passed,
        }
    }

    /// Takes in an event whose number was passed, unless an earlier process may have decided on it.
    pub(super) fn enter_passed(&mut self, event: u64) -> bool {
        event >= self.recovered && self.enter_made(event)
    }

    /// Takes in an event whose number was passed.
    pub(super) fn enter_made(&mut self, event: u64) -> bool {
        let is_new = self.passed.contains(event) && self.behind.insert(event);
        self.in_hand += u64::from(is_new);
        is_new
    }

    /// Enters the verdict on an event; returns `false` if it has one.
    #[inline]
    pub(super) fn decide(&mut self, event: u64) -> bool {
        let is_first = self.behind.remove(&event) || self.decided.insert(event);
        self.decided_count += u64::from(is_first);
        self.in_hand = self.in_hand.saturating_sub(u64::from(is_first));
        is_first
    }

    /// Tells whether an event has its verdict, or its number was passed.
    pub(super) fn is_decided(&self, event: u64) -> bool {
        self.decided.contains(event) && !self.behind.contains(&event)
    }

    /// Notes that a source is not connected.
    pub(super) fn left(&mut self, source: u32) {
        if let Some(position) = self.positions.get_mut(&source) {
            position.is_connected = false;
        }
    }

    /// Returns how many ranges there are.
    #[inline]
    pub(super) fn ranges(&self) -> usize {
        self.seen.ranges().max(self.decided.ranges())
    }

    /// Makes room for the range that an event of a source begins; returns `false` if there is none.
    fn make_room(&mut self, source: u32, event: u64) -> bool {
        let ranges_all_max = 2 * self.ranges_max;
        if (self.merge_at.max(self.ranges_max)..ranges_all_max).contains(&self.seen.ranges()) {
            self.merge(self.lowest(|position| position.is_connected));
            self.merge_at = 2 * self.seen.ranges();
        }
        if self.seen.ranges() < ranges_all_max {
            return true;
        }
        if let Some(between) = self.own(source, event) {
            self.pass(between);
            return true;
        }
        if self.offers >= self.tried + self.ranges_max as u64 / 16 {
            self.tried = self.offers;
            self.merge(self.lowest(|position| self.is_active(position)));
            if self.seen.ranges() < ranges_all_max {
                return true;
            }
        }
        let begun = self.reserved.values().filter(|other| **other == source).count();
        let has_room = begun < RESERVE && self.positions.contains_key(&source);
        if has_room {
            self.reserved.insert(event, source);
        }
        has_room
    }

    /// Returns the numbers from a source's last event to this one where nobody else has given, or is about to give, any of them.
    fn own(&self, source: u32, event: u64) -> Option<Range<u64>> {
        let last = self.positions.get(&source)?.last;
        let (low, high) = (last.min(event), last.max(event));
        let near = low.saturating_sub(16 * self.ranges_max as u64)..high;
        let is_near = |(other, position): (&u32, &Position)| {
            *other != source && self.is_active(position) && near.contains(&position.last)
        };
        let is_own = self.seen.contains(last) && !self.seen.meets(low + 1..high) && !self.positions.iter().any(is_near);
        is_own.then_some(if last < event { last..event } else { event + 1..last + 1 })
    }

    /// Tells whether a source is connected, and has given an event while the others gave as many as there may be ranges.
    fn is_active(&self, position: &Position) -> bool {
        position.is_connected && self.offers - position.offer <= 2 * self.ranges_max as u64
    }

    /// Enters an event that stands right before a range: the gap before that is smaller, or closed.
    fn fill(&mut self, event: u64) {
        if let Some(source) = self.reserved.remove(&(event + 1))
            && !event.checked_sub(1).is_some_and(|before| self.seen.contains(before))
        {
            self.reserved.insert(event, source);
        }
    }

    /// Returns the lowest position of the sources that are waited for.
    fn lowest(&self, is_waited_for: impl Fn(&Position) -> bool) -> u64 {
        let waited_for = self.positions.values().filter(|position| is_waited_for(position));
        waited_for.map(|position| position.last).min().unwrap_or(u64::MAX)
    }

    /// Merges the lower half of the ranges, but none from this number on.
    fn merge(&mut self, to: u64) {
        let middle = self.seen.iter().nth(self.seen.ranges() / 2);
        if let Some(middle) = middle {
            self.pass(0..middle.start.min(to));
        }
    }

    /// Takes all numbers of a range for passed.
    fn pass(&mut self, range: Range<u64>) {
        for Range { start: mut event, end } in self.seen.within(range.clone()) {
            loop {
                event = self.decided.first_missing(event);
                if event >= end {
                    break;
                }
                self.behind.insert(event);
                event += 1;
            }
        }
        self.reserved.retain(|behind, _| !(range.start < *behind && *behind <= range.end));
        for set in [&mut self.seen, &mut self.decided, &mut self.passed] {
            set.insert_range(range.clone());
        }
    }

    /// Enters the position of a source.
    #[inline]
    fn at(&mut self, source: u32, event: u64) {
        let (last, offer, is_connected) = (event, self.offers, true);
        if let Some(position) = self.positions.get_mut(&source) {
            *position = Position { last, offer, is_connected };
        } else if self.positions.len() < POSITIONS_MAX {
            self.positions.insert(source, Position { last, offer, is_connected });
        }
    }
}
