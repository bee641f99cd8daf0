//! Updates that a far end posts by itself, to PVs that are made for one subscriber each.
//!
//! The name, `hodo:updates:SIZE:RATE:AFTER:ID`, says how many bytes `value` has, how many updates are due in a million seconds (0: as
//! many as the subscribers take), and how many nanoseconds after the subscription the first one is due. An ID is used once. Beside `value`
//! the PV has `due_ns`, the time on the far end's clock when the update was due, and its `number`, from 1.

use super::pvs::Pvs;
use hodo_machine::{Instant, Timers};
use hodo_pva::server::Server;
use hodo_pva::{BitSet, Value};
use std::time::Duration;

/// Place of the field `due_ns` of a PV.
pub(crate) const DUE: usize = 2;
/// Place of the field `number` of a PV.
pub(crate) const NUMBER: usize = 3;
/// Updates of one PV that are posted at a time.
const AT_A_TIME: u32 = 64;
/// Updates of a PV without a rate that are posted at a time: few, so that the subscriber works on them while the next are posted.
const FAST_AT_A_TIME: u32 = 8;
/// Updates that are late and still posted; of more, the oldest are skipped.
const LATE_MAX: u64 = 10_000;
/// Updates in a million seconds times nanoseconds, over this, are updates.
const MICRO_NANOS: u128 = 1_000_000_000_000_000;

/// The updates that the name of a PV asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Updates {
    pub(crate) size: u32,
    rate_micro: u64,
    first_after: Duration,
}

/// Returns the name of the PV with these updates. `id` is to be another one each time.
pub(crate) fn updates_name(size: u32, rate: Option<f64>, first_after: Duration, id: &str) -> String {
    let rate_micro = rate.map_or(0, |rate| ((rate * 1e6) as u64).max(1));
    let after_ns = u64::try_from(first_after.as_nanos()).unwrap_or(u64::MAX);
    format!("hodo:updates:{size}:{rate_micro}:{after_ns}:{id}")
}

impl Updates {
    /// Reads a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("hodo:updates:")?.split(':');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (size, rate_micro, after_ns) = (u32::try_from(number()?).ok()?, number()?, number()?);
        let is_over = parts.next().is_some_and(|id| !id.is_empty()) && parts.next().is_none();
        is_over.then_some(Updates { size, rate_micro, first_after: Duration::from_nanos(after_ns) })
    }
}

/// The PVs that a machine posts to.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    /// Those without a subscriber so far.
    waiting: Vec<Posting>,
    /// Those that get as many updates as their subscribers take.
    fast: Vec<Posting>,
    /// Those with a rate, by their places, and when the next update of each is due.
    timed: Vec<Option<Posting>>,
    due: Timers<u32>,
    none: BitSet,
}

#[derive(Debug)]
struct Posting {
    name: String,
    channel: u32,
    updates: Updates,
    value: Value,
    /// When the first update is due.
    first: Instant,
    /// Number of the next update.
    next: u64,
}

impl Postings {
    /// Takes in PVs that were made since the last call, and begins with those that have a subscriber now.
    pub(crate) fn look(&mut self, now: Instant, pvs: &Pvs, server: &Server) {
        for name in pvs.take_made() {
            let (Some(updates), Some(channel)) = (Updates::named(&name), server.number(&name)) else { continue };
            let Some(value) = server.value(&name).cloned() else { continue };
            self.waiting.push(Posting { name, channel, updates, value, first: now, next: 1 });
        }
        for place in (0..self.waiting.len()).rev() {
            let posting = &self.waiting[place];
            let is_served = posting.is_served(server);
            if is_served && server.room(posting.channel).is_none() {
                continue;
            }
            let mut posting = self.waiting.swap_remove(place);
            posting.first = now + posting.updates.first_after;
            match posting.updates.rate_micro {
                _ if !is_served => {}
                0 => self.fast.push(posting),
                _ => self.time(posting),
            }
        }
    }

    /// Posts what is due, and returns whether anything was.
    pub(crate) fn post(&mut self, now: Instant, server: &mut Server) -> bool {
        let mut has_posted = false;
        while let Some(place) = self.due.pop_due(now) {
            let Some(posting) = self.timed[place as usize].as_mut().filter(|posting| posting.is_served(server)) else {
                self.timed[place as usize] = None;
                continue;
            };
            posting.skip(now);
            for _ in 0..AT_A_TIME {
                if posting.due() > now {
                    break;
                }
                let due = posting.due();
                posting.post(due, &self.none, server);
                has_posted = true;
            }
            self.due.arm(place, posting.due());
            if posting.due() <= now {
                break;
            }
        }
        self.fast.retain_mut(|posting| {
            let is_served = posting.is_served(server);
            if is_served && posting.first <= now {
                for _ in 0..server.room(posting.channel).unwrap_or(0).min(FAST_AT_A_TIME) {
                    posting.post(now, &self.none, server);
                    has_posted = true;
                }
            }
            is_served
        });
        has_posted
    }

    /// Returns when the next update is due after `now`.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        let fast = self.fast.iter().map(|posting| posting.first).filter(|first| *first > now);
        fast.chain(self.due.next()).min()
    }

    fn time(&mut self, posting: Posting) {
        let free = self.timed.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.timed.push(None);
            self.timed.len() - 1
        });
        self.due.arm(place as u32, posting.due());
        self.timed[place] = Some(posting);
    }
}

impl Posting {
    /// Tells whether somebody still has the PV open.
    fn is_served(&self, server: &Server) -> bool {
        server.name(self.channel) == Some(self.name.as_str())
    }

    /// Returns when the next update is due.
    fn due(&self) -> Instant {
        let after_ns = u128::from(self.next - 1) * MICRO_NANOS / u128::from(self.updates.rate_micro.max(1));
        self.first + Duration::from_nanos(u64::try_from(after_ns).unwrap_or(u64::MAX))
    }

    /// Skips updates that are too late.
    fn skip(&mut self, now: Instant) {
        let since_ns = u128::from(now.nanos_since(self.first));
        let due = since_ns * u128::from(self.updates.rate_micro) / MICRO_NANOS;
        let due = u64::try_from(due).unwrap_or(u64::MAX - 1) + 1;
        self.next = self.next.max(due.saturating_sub(LATE_MAX));
    }

    fn post(&mut self, due: Instant, none: &BitSet, server: &mut Server) {
        self.value.unmark();
        self.value.mark(1);
        self.value.set_at(DUE, due.as_nanos()).expect("the PV was made with this field");
        self.value.set_at(NUMBER, self.next).expect("the PV was made with this field");
        self.next += 1;
        server.post(self.channel, &self.value, none);
    }
}
